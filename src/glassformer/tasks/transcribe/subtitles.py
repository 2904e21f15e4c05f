"""Subtitles: words with their times, a line or so at a time, as SRT or WebVTT."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from glassformer.errors import GlassformerError, refuse_unwritable
from glassformer.files import write_text
from glassformer.tasks.served import Spoken

WIDEST = 42  # characters of a cue
LONGEST = 6.0  # seconds that a cue stays
PAUSE = 0.8  # seconds of silence after which a new cue begins
FORMATS = ("srt", "vtt")


def check_subtitles(path: Path) -> None:
    """Refuse a file that cannot be written before anything is transcribed."""
    if not path.absolute().parent.is_dir():
        raise GlassformerError(f"{path.parent}: no such folder for subtitles; create it first")
    refuse_unwritable(path)


def write_subtitles(words: Sequence[Spoken], path: Path, *, form: str, between: str = " ") -> None:
    """Write the words to a file, in one of `FORMATS`, with `between` between two of them."""
    write_text(subtitles(words, form=form, between=between), path)


def subtitles(words: Sequence[Spoken], *, form: str, between: str = " ") -> str:
    """The words in one of `FORMATS`."""
    point, lines = (".", ["WEBVTT", ""]) if form == "vtt" else (",", [])
    for number, cue in enumerate(cues(words, between), start=1):
        times = f"{clock(cue.start, point)} --> {clock(cue.end, point)}"
        lines += [str(number), times, cue.text, ""]
    return "\n".join(lines) + "\n"


def cues(words: Sequence[Spoken], between: str = " ") -> Iterator[Spoken]:
    """Words that are shown together."""
    shown: Spoken | None = None
    for word in words:
        if shown is not None and _fits(shown, word):
            shown = Spoken(f"{shown.text}{between}{word.text}", shown.start, word.end)
            continue
        if shown is not None:
            yield shown
        shown = word
    if shown is not None:
        yield shown


def _fits(shown: Spoken, word: Spoken) -> bool:
    """Whether a word can be shown with those before it."""
    short = len(shown.text) + 1 + len(word.text) <= WIDEST and word.end - shown.start <= LONGEST
    return short and word.start - shown.end < PAUSE


def clock(seconds: float, point: str) -> str:
    """A time as subtitles write it.

    >>> clock(3661.5, ",")
    '01:01:01,500'
    """
    milliseconds = round(1000 * seconds)
    minutes, rest = divmod(milliseconds, 60_000)
    whole, part = divmod(rest, 1000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{whole:02}{point}{part:03}"
