"""Checks for every job that reads texts: garbled characters, and texts that are truncated.

The tokenizer is trained later, so tokens are estimated here: as words, in any script, or as
characters if texts are so short that characters will be the tokens.
"""

import re
from array import array
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from glassformer.data.doctor.check import Check, Figures, Finding, Specimen
from glassformer.tasks.shared.text import SHORT
from glassformer.wording import counted

MANY = 0.2  # of the texts truncated: what is lost may matter

PERCENTILES = {"shortest": 0, "5 %": 5, "median": 50, "95 %": 95, "longest": 100}

LOST = "\ufffd"  # replaces a character that could not be decoded

# UTF-8 that was read as cp1252: a lead byte's character, then those of the bytes that follow it.
FOLLOWING = bytes(range(0x80, 0xC0)).decode("cp1252", "ignore")
GARBLED = re.compile(f"[ÂÃÐÑ][{FOLLOWING}]|[âãäå][{FOLLOWING}]{{2}}")

# In scripts without spaces every character is a word, as with tokens of kind "words".
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
WORD = rf"[{UNSPACED}]|[^\W{UNSPACED}]+(?:['’][^\W{UNSPACED}]+)*"

_words = re.compile(WORD).findall
_unspaced = re.compile(f"[{UNSPACED}]").match
_tokens = re.compile(rf"{WORD}|[^\w\s]").findall


class GarbledText(Check):
    """Characters that were lost or garbled because the text was decoded wrongly.

    Args:
        roles: The roles that are texts.
    """

    def __init__(self, *roles: str) -> None:
        self.roles = roles
        self.lost: list[int] = []
        self.garbled: list[int] = []

    def see(self, row: Specimen) -> None:
        text = " ".join(row.sample[role] for role in self.roles)
        if text.isascii():
            return
        if LOST in text:
            self.lost.append(row.number)
        if is_garbled(text):
            self.garbled.append(row.number)

    def findings(self) -> Iterator[Finding]:
        faults = {
            "lost characters": (self.lost, f"with lost characters ({LOST})"),
            "garbled text": (self.garbled, "with UTF-8 decoded as cp1252 (Ã© for é)"),
        }
        for kind, (numbers, words) in faults.items():
            if numbers:
                what = f"{counted(len(numbers), 'row')} {words}"
                advice = "the file was already damaged: export the data again, as UTF-8"
                yield Finding(kind, "warning", what, advice, numbers)


def is_garbled(text: str) -> bool:
    """Whether some of the text is UTF-8 that was decoded as cp1252.

    >>> is_garbled("cafÃ©"), is_garbled("itâ€™s"), is_garbled("CAFÉ Â l'âge")
    (True, True, False)
    """
    return any(_is_utf8(match[0]) for match in GARBLED.finditer(text))


def _is_utf8(piece: str) -> bool:
    try:
        piece.encode("cp1252").decode("utf-8")
    except UnicodeError:
        return False
    return True


class Lengths(Check):
    """Texts that are too long to be read in full.

    Args:
        role: The role of the text.
        longest: The maximum number of tokens; None for a job that reads all.
        tokens: Their kind, as in `data.tokenizer.kind`.
        advice: What else to do about texts that are truncated.
    """

    def __init__(self, role: str, longest: int | None, tokens: str, advice: str = "") -> None:
        self.role, self.longest, self.tokens, self.advice = role, longest, tokens, advice
        self.words, self.characters, self.numbers = array("L"), array("L"), array("Q")

    def see(self, row: Specimen) -> None:
        text = row.sample[self.role]
        self.words.append(count_tokens(text))
        self.characters.append(len(text))
        self.numbers.append(row.number)

    def findings(self) -> Iterator[Finding]:
        if self.longest is None or not self.numbers:
            return
        unit, lengths = self._counted()
        cut = np.flatnonzero(lengths > self.longest)
        share = len(cut) / len(lengths)
        if len(cut):
            what = (
                f"about {counted(len(cut), 'text')} ({share:.1%}) longer than the "
                f"{self.longest:,} {unit} that are read; the longest has {lengths.max():,}"
            )
            advice = f"read more with --set task.max_length=N{self.advice}"
            severity, numbers = "warning" if share >= MANY else "note", np.array(self.numbers)[cut]
            yield Finding("cut short", severity, what, advice, numbers.tolist())

    def _counted(self) -> tuple[str, np.ndarray]:
        characters = np.array(self.characters)
        by_character = self.tokens in ("characters", "bytes") or (
            self.tokens == "auto" and characters.mean() <= SHORT
        )
        return ("characters", characters) if by_character else ("words", np.array(self.words))

    def figures(self) -> Figures:
        if not self.numbers:
            return {}
        lengths = {"words": np.array(self.words), "characters": np.array(self.characters)}
        return {
            f"{unit} in a text": {
                name: int(np.percentile(found, percent, method="lower"))
                for name, percent in PERCENTILES.items()
            }
            for unit, found in lengths.items()
        }


def words_of(text: str) -> list[str]:
    """The words of a text, without case and punctuation.

    >>> words_of("A film, isn't it? 好片")
    ['a', 'film', "isn't", 'it', '好', '片']
    """
    return _words(text.casefold())


def is_spaced(word: str) -> bool:
    """Whether a word belongs to a script that puts spaces between words.

    >>> is_spaced("film"), is_spaced("片")
    (True, False)
    """
    return _unspaced(word) is None


@lru_cache(maxsize=16)  # equal rows often stand together
def count_tokens(text: str) -> int:
    """The number of words and punctuation marks.

    >>> count_tokens("A film, isn't it? 好片")
    8
    """
    return len(_tokens(text))
