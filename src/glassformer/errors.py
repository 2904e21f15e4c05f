"""Errors a person can do something about. The command line prints these without a traceback.

Messages are written in the words of the command line, such as `--run`. Where they are read in
Python, they speak of arguments instead.
"""

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from os import PathLike
from pathlib import Path

NO_MEMORY = (  # as PyTorch, its libraries and the system say it
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "could not create a primitive",
    "std::bad_alloc",
    "can't start new thread",
    "failed to map segment",
    "Cannot allocate memory",
)

UNUSABLE = (  # what a person can do about a path
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR),
    *(errno.ELOOP, errno.ENAMETOOLONG, errno.EIO),
)


MANY_CHOICES = 8  # of more, the closest are shown
CLOSE = 0.75  # how similar a name must be that is suggested besides the closest
MOST_CHOICES = 40  # listed where none is close

_at_command_line = False

# What an option is called in Python, if not the same with underscores.
ARGUMENTS = {
    "from": "from_",
    "with": "required",
    "without": "forbidden",
    "no-pretrain": "pretrain=False",
    "fix": ".fix(path)",
}
SHELL = r"`(?!glassformer )[^`]*`"  # another command, which keeps its options
SETTING = r"--set ([\w.]+=(?:\.\.\.|[^\s,;:]*[^\s,;:.]))"
VERBS = {"resume": "glassformer.resume({})", "predict": "glassformer.load({}).predict(...)"}


class GlassformerError(Exception):
    """Says what was wrong, what was found, and what to do."""

    def __str__(self) -> str:
        return worded(super().__str__())


class NonFiniteScoresError(GlassformerError):
    """A model's scores are NaN or infinite."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the device, or the machine, could not hold something.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("no such shape"))
    (True, False)
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    message = str(error)
    return isinstance(error, RuntimeError | ImportError) and any(w in message for w in NO_MEMORY)


@contextmanager
def usable_paths() -> Iterator[None]:
    """Turn the refusal of a path by the system, wherever it was met, into a one-line error."""
    try:
        yield
    except OSError as error:
        path = error.filename2 or error.filename
        if error.errno not in UNUSABLE or not isinstance(path, str | PathLike):
            raise
        raise GlassformerError(
            f"{_refused(Path(path))}: cannot be used ({error.strerror}); check the path and its "
            f"permissions"
        ) from None


def _refused(path: Path) -> Path:
    """The outermost folder on the way to a path that may not be entered, or the path itself."""
    closed = (f for f in reversed(path.parents) if os.access(f, os.F_OK) > os.access(f, os.X_OK))
    return next(closed, path)


def refuse_unwritable(path: Path) -> None:
    """Refuse a folder, or a file in a folder that may not be written to, before work is done."""
    folder = path.absolute().parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise GlassformerError(
            f"{path}: cannot be written, its folder may not be written to; name another folder, "
            f"or check its permissions"
        )
    if path.is_dir():
        raise GlassformerError(f"{path}: is a folder; name a file")


def unknown(kind: str, name: str, choices: Iterable[str], *, listed_in: str = "") -> str:
    """The sentence for a name that is not one of the choices.

    Where one of many choices is close to it, only the closest few are shown.

    Args:
        listed_in: Where all choices are listed.

    >>> unknown("position", "rotery", ["rotary", "alibi"])
    "unknown position 'rotery'; did you mean 'rotary'? The choices are rotary, alibi"
    >>> unknown("setting", "a4", [f"a{n}{n}" for n in range(20)], listed_in="a.md")
    "unknown setting 'a4'; did you mean 'a44'? a.md lists all 20"
    """
    listed = list(choices)
    near = _close(name, listed)
    hint = f"did you mean {near[0]!r}? " if near else ""
    if near and len(listed) > MANY_CHOICES:
        close = _close(name, listed, cutoff=CLOSE)[1:]
        others = f"Close to it are also {', '.join(close)}; " if close else ""
        first = f"The choices begin with {', '.join(listed[:3])}, {len(listed):,} in all"
        hint += others + (f"{listed_in} lists all {len(listed)}" if listed_in else first)
        return f"unknown {kind} {name!r}; {hint}"
    shown = listed if len(listed) <= MOST_CHOICES else [*listed[:MOST_CHOICES], "..."]
    return f"unknown {kind} {name!r}; {hint}The choices are {', '.join(shown)}".replace(
        "; The", "; the"
    )


def _close(name: str, choices: list[str], cutoff: float = 0.6) -> list[str]:
    """The choices close to a name, the closest first; a table that all are in does not count."""
    table = name.rpartition(".")[0]
    if not table or not all(choice.rpartition(".")[0] == table for choice in choices):
        return get_close_matches(name, choices, cutoff=cutoff)
    own = {choice.rpartition(".")[2]: choice for choice in choices}
    return [own[key] for key in get_close_matches(name.rpartition(".")[2], own, cutoff=cutoff)]


def install(extra: str) -> str:
    """How to get the libraries of an extra, from a package and from a clone.

    >>> install("audio")
    "pip install 'glassformer[audio]' (in a clone: pip install -e '.[audio]')"
    """
    return f"pip install 'glassformer[{extra}]' (in a clone: pip install -e '.[{extra}]')"


@contextmanager
def at_command_line() -> Iterator[None]:
    """While this lasts, messages are read at the command line."""
    global _at_command_line
    before, _at_command_line = _at_command_line, True
    try:
        yield
    finally:
        _at_command_line = before


def worded(message: str) -> str:
    """A message in the words of its reader: options, or in Python arguments."""
    return message if _at_command_line else in_python(message)


def in_python(message: str) -> str:
    """A message about options as one about arguments; other commands in it stay as they are.

    >>> in_python("name another with --run, or resume it with `glassformer resume runs/a`")
    'name another with run=..., or resume it with `glassformer.resume("runs/a")`'
    >>> in_python("add --from RUN, --no-pretrain or --set train.clip=0.5 --set seed=1")
    'add from_=RUN, pretrain=False or set=["train.clip=0.5", "seed=1"]'
    """
    if "--" not in message and "glassformer " not in message:
        return message
    pieces = re.split(f"({SHELL})", message)
    return "".join(text if number % 2 else _arguments(text) for number, text in enumerate(pieces))


def _arguments(text: str) -> str:
    text = re.sub(r"glassformer doctor ('[^']+'|\S+)(?: --job (\w+))? --fix OUT", _copy, text)
    text = re.sub(
        r"glassformer predict (\S+) --embed", r'glassformer.load("\1").embed(texts)', text
    )
    for verb, call in VERBS.items():
        for path in re.findall(rf"glassformer {verb} ('[^']+'|[^\s`,;]+)", text):
            shown = call.format('"' + path.strip("'") + '"')
            text = text.replace(f"glassformer {verb} {path}", shown)
    text = re.sub(rf"{SETTING}(?: {SETTING})*", _settings, text)
    text = re.sub(r"--columns (\w+=[\w.]+(?:,\w+=[\w.]+)*)", r'columns="\1"', text)
    text = re.sub(r"--device (\w+)", r'device="\1"', text)
    text = re.sub(r"--(from|module) (\S+)", lambda m: f"{_argument(m[1])}={m[2]}", text)
    text = re.sub(r"with --(run|valid|columns)", r"with \1=...", text)
    return re.sub(r"(?<![\w-])--([a-z][a-z0-9-]*)", lambda m: _argument(m[1]), text)


def _copy(found: re.Match[str]) -> str:
    """A cleaned copy, in Python."""
    path = found[1].strip("'")
    job = f', job="{found[2]}"' if found[2] else ""
    return f'glassformer.doctor("{path}"{job}).fix(path)'


def _settings(found: re.Match[str]) -> str:
    """The settings of one or several `--set`, as text or a list."""
    texts = [f'"{setting}"' for setting in re.findall(SETTING, found[0])]
    return f"set={texts[0]}" if len(texts) == 1 else f"set=[{', '.join(texts)}]"


def _argument(option: str) -> str:
    return ARGUMENTS.get(option, option.replace("-", "_"))
