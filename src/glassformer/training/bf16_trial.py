"""A trial that finds out whether bf16 works on this CPU, and whether it is faster.

A processor may report instructions that its virtual machine does not allow, and then the first
matrix product kills the process; or it emulates bf16, at a third of the speed of fp32. So a child
process runs the operations of training in both precisions (`bf16_work.py`). The verdict is stored
in the user's cache, for this processor, torch version and relevant environment variables.
"""

import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from glassformer.files import cache_folder, locked, write_json

WORK = Path(__file__).with_name("bf16_work.py")
VERSION = 1  # of the trial: verdicts of other versions are ignored
TIME_LIMIT = 60.0  # seconds, most of them for a cold start of PyTorch on a busy machine
TOLERANCE = 0.05  # bf16 has three significant digits, a long sum about two
MIN_SPEEDUP = 1.1  # over fp32
VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "MKL_ENABLE_INSTRUCTIONS",
    *(
        f"{library}_{name}"
        for library in ("ONEDNN", "DNNL")
        for name in ("MAX_CPU_ISA", "CPU_ISA_HINTS", "DEFAULT_FPMATH_MODE")
    ),
)
CPUINFO_KEYS = {  # lines of /proc/cpuinfo that identify a processor and do not change over time
    "vendor_id", "cpu family", "model", "model name", "stepping", "microcode", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a trial: whether bf16 works here, whether it is faster, and the reason."""

    works: bool
    faster: bool
    finding: str


def known_verdict() -> Verdict | None:
    """The verdict of an earlier trial on this machine, if there was one."""
    return _read(verdict_file()) or _unsaved.get(verdict_file())


def find_verdict() -> Verdict:
    """The verdict on this machine, from a trial if there is none yet."""
    file = verdict_file()
    with ExitStack() as stack:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(file.parent, wait=True))  # concurrent trials would be slow
        except OSError:
            pass  # not writable; try all the same
        if verdict := known_verdict():
            return verdict
        verdict = try_bf16()
        save_verdict(verdict)
    return verdict


def save_verdict(verdict: Verdict) -> None:
    """Save the result of a trial on this machine."""
    file = verdict_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json({"for": machine_key(), **asdict(verdict)}, file)
    except OSError:
        _unsaved[file] = verdict


def try_bf16() -> Verdict:
    """Run the operations of training in a child process and judge by its outcome."""
    # -P: do not import from the script's folder, whose modules would shadow others.
    command = [sys.executable, "-P", str(WORK), str(torch.get_num_threads())]
    try:
        child = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIME_LIMIT
        )
    except subprocess.TimeoutExpired:
        return Verdict(False, False, f"it timed out after {TIME_LIMIT:g} seconds")
    except OSError as error:
        return Verdict(False, False, f"it could not be started: {error}")
    if child.returncode:
        return Verdict(False, False, _exit_message(child.returncode, child.stderr))
    try:
        found = json.loads(child.stdout)
        fp32, bf16, difference = (float(found[name]) for name in ("fp32", "bf16", "difference"))
    except (ValueError, TypeError, KeyError):
        return Verdict(False, False, "its output cannot be read")
    if not difference <= TOLERANCE:
        return Verdict(False, False, f"its results differ from fp32 by {difference:.1%}")
    times = f"it took {1e3 * bf16:.1f} ms, fp32 {1e3 * fp32:.1f} ms"
    return Verdict(True, fp32 >= MIN_SPEEDUP * bf16, times)


def verdict_file() -> Path:
    """The file that stores the verdict on this machine."""
    key = json.dumps(machine_key(), sort_keys=True).encode()
    return cache_folder() / "bf16" / f"{hashlib.sha256(key).hexdigest()[:16]}.json"


def machine_key() -> dict[str, object]:
    """Everything that a verdict depends on."""
    lines = _cpuinfo()
    traits = json.dumps(lines, sort_keys=True).encode()
    return {
        "trial": VERSION,
        "processor": lines.get("model name") or platform.processor() or platform.machine(),
        "traits": hashlib.sha256(traits).hexdigest()[:16],
        "kernel": platform.release(),
        "torch": str(torch.__version__),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def _cpuinfo() -> dict[str, str]:
    """What Linux reports about the first processor; empty on other systems."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs if key.strip() in CPUINFO_KEYS}


def _exit_message(code: int, stderr: bytes) -> str:
    """How a failed child process ended."""
    if code < 0:
        names = {known.value: known.name for known in signal.Signals}
        return f"it was killed by {names.get(-code, f'signal {-code}')}"
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return f"it failed with exit code {code}" + (f": {lines[-1]}" if lines else "")


def _read(file: Path) -> Verdict | None:
    """A saved verdict; None if it is damaged or belongs to another machine."""
    try:
        saved = json.loads(file.read_bytes())
        if saved.pop("for") != machine_key():
            return None
        verdict = Verdict(**saved)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    types = {"works": bool, "faster": bool, "finding": str}
    return verdict if all(type(getattr(verdict, n)) is t for n, t in types.items()) else None


_unsaved: dict[Path, Verdict] = {}  # if the cache is not writable: one trial per process
