"""The parts of the documentation that are computed: write what has changed, and fail if any has.

python site/docs.py          the pages of commands, results and settings, and what the chapters show
python site/docs.py 03 05    these chapters only
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from chapters import chapters, run, stale
from commands import PAGE as COMMANDS, commands_page
from results import PAGE as RESULTS, results_page
from settings import (
    CHINESE_PAGE as CHINESE_SETTINGS,
    PAGE as SETTINGS,
    chinese_settings_page,
    settings_page,
)

ROOT = Path(__file__).parents[1]


def changes(numbers: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """The files that differ from what the code gives, with what they should contain."""
    written = (
        {}
        if numbers
        else {
            COMMANDS: commands_page,
            RESULTS: results_page,
            SETTINGS: settings_page,
            CHINESE_SETTINGS: chinese_settings_page,
        }
    )
    for path, page in written.items():
        if not path.exists() or path.read_text(encoding="utf-8") != page():
            yield path, page()
    for chapter in chapters():
        if not numbers or chapter.path.name[:2] in numbers:
            yield from stale(chapter, run(chapter))


def main(numbers: Sequence[str]) -> int:
    """Write what has changed; 1 if anything has."""
    changed = 0
    for path, content in changes(numbers):
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
        print(f"changed: {path.relative_to(ROOT)}")
        changed += 1
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
