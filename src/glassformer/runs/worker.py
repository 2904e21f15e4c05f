"""A process that trains one prepared run, and stops with a checkpoint when its parent goes away.

Usage: python -m glassformer.runs.worker RUN. Its standard input must stay open until then.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from glassformer.errors import GlassformerError, at_command_line
from glassformer.runs.api import resume
from glassformer.terminal import print_line


def stop_at_end_of_input() -> None:
    """Wait until nobody can write to standard input, then ask this process to stop."""
    while os.read(sys.stdin.fileno(), 1):  # unbuffered: a lock would disturb the end of the process
        pass
    os.kill(os.getpid(), signal.SIGTERM)


@at_command_line()
def main(path: Path) -> int:
    """Train a run; the exit code says whether it succeeded, standard error why not."""
    threading.Thread(target=stop_at_end_of_input, daemon=True).start()
    try:
        resume(path, quiet=True)
    except GlassformerError as error:
        print_line(str(error), stderr=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
