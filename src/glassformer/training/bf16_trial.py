"""Whether bf16 can be used on this CPU, and pays: tried, not believed.

A processor may report instructions that a virtual machine does not let programs use, and then the
first product kills the process; or it computes in bf16 by detours, at a third of the speed of fp32.
So a child process does the work of training in both precisions (`bf16_work.py`). The verdict is
kept in the user's cache, for this processor, torch version and what the environment says of it.
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
VERSION = 1  # of the trial: verdicts of another one are not read
TIME_LIMIT = 60.0  # seconds, most of them for a cold start of PyTorch on a busy machine
FAR = 0.05  # bf16 has three significant digits; a sum of many keeps two
PAYS = 1.1  # times as fast as fp32, at least
VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "MKL_ENABLE_INSTRUCTIONS",
    *(
        f"{library}_{name}"
        for library in ("ONEDNN", "DNNL")
        for name in ("MAX_CPU_ISA", "CPU_ISA_HINTS", "DEFAULT_FPMATH_MODE")
    ),
)
STEADY = {  # lines of /proc/cpuinfo that say what a processor is, not what it does at the moment
    "vendor_id", "cpu family", "model", "model name", "stepping", "microcode", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a trial came to: whether bf16 works here, whether it is faster, and why, in words."""

    works: bool
    faster: bool
    finding: str


def known_verdict() -> Verdict | None:
    """The verdict of an earlier trial on this machine, if there was one."""
    return _read(verdict_file()) or _unkept.get(verdict_file())


def find_verdict() -> Verdict:
    """The verdict on this machine, after a trial if there was none."""
    file = verdict_file()
    with ExitStack() as held:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(file.parent, wait=True))  # a trial beside another is slow
        except OSError:
            pass  # nothing can be kept there; the trial is made all the same
        if verdict := known_verdict():
            return verdict
        verdict = try_bf16()
        keep_verdict(verdict)
    return verdict


def keep_verdict(verdict: Verdict) -> None:
    """Remember what a trial on this machine came to."""
    file = verdict_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json({"for": machine_key(), **asdict(verdict)}, file)
    except OSError:
        _unkept[file] = verdict


def try_bf16() -> Verdict:
    """Do the work of training in a child process and judge by what becomes of it."""
    # -P: the folder of the program is not searched for modules, which would hide others.
    command = [sys.executable, "-P", str(WORK), str(torch.get_num_threads())]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIME_LIMIT
        )
    except subprocess.TimeoutExpired:
        return Verdict(False, False, f"it was not done after {TIME_LIMIT:g} seconds")
    except OSError as error:
        return Verdict(False, False, f"it could not be started: {error}")
    if done.returncode:
        return Verdict(False, False, _ending(done.returncode, done.stderr))
    try:
        found = json.loads(done.stdout)
        fp32, bf16, apart = (float(found[name]) for name in ("fp32", "bf16", "difference"))
    except (ValueError, TypeError, KeyError):
        return Verdict(False, False, "its answer cannot be read")
    if not apart <= FAR:
        return Verdict(False, False, f"its answers are {apart:.1%} away from those of fp32")
    times = f"it took {1e3 * bf16:.1f} ms for what takes {1e3 * fp32:.1f} ms in fp32"
    return Verdict(True, fp32 >= PAYS * bf16, times)


def verdict_file() -> Path:
    """Where the verdict on this machine is kept."""
    key = json.dumps(machine_key(), sort_keys=True).encode()
    return cache_folder() / "bf16" / f"{hashlib.sha256(key).hexdigest()[:16]}.json"


def machine_key() -> dict[str, object]:
    """All that a verdict holds for."""
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
    """What Linux says about the first processor; nothing elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs if key.strip() in STEADY}


def _ending(code: int, errors: bytes) -> str:
    """How a child ended that did not do its work."""
    if code < 0:
        names = {known.value: known.name for known in signal.Signals}
        return f"it was killed by {names.get(-code, f'signal {-code}')}"
    said = errors.decode("utf-8", "replace").strip().splitlines()
    return f"it ended with exit code {code}" + (f": {said[-1]}" if said else "")


def _read(file: Path) -> Verdict | None:
    """A verdict that was kept; one that is damaged or for another machine is none."""
    try:
        kept = json.loads(file.read_bytes())
        if kept.pop("for") != machine_key():
            return None
        verdict = Verdict(**kept)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    types = {"works": bool, "faster": bool, "finding": str}
    return verdict if all(type(getattr(verdict, n)) is t for n, t in types.items()) else None


_unkept: dict[Path, Verdict] = {}  # where nothing can be written, one trial a process is enough
