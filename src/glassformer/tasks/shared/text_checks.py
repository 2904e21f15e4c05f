"""Checks of texts, for every job that reads some: garbled characters, and texts that are cut.

Words are found in any script, fast, and near enough to the tokens that will be learned. Those are
learned later, so they are counted as words here, or as characters where texts are so short that
characters will be the tokens.
"""

import re
from array import array
from collections.abc import Iterator

import numpy as np

from glassformer.data.doctor.check import Check, Figures, Specimen
from glassformer.data.doctor.finding import Finding, Where, counted, named
from glassformer.tasks.shared.text import SHORT

MANY = 0.2  # of the texts cut short: what is lost may matter

PERCENTILES = {"shortest": 0, "5 %": 5, "median": 50, "95 %": 95, "longest": 100}

LOST = "\ufffd"  # what stands where a character could not be decoded

# UTF-8 that was read as cp1252: a lead byte's character, then those of the bytes that follow it.
FOLLOWING = bytes(range(0x80, 0xC0)).decode("cp1252", "ignore")
GARBLED = re.compile(f"[ÂÃÐÑ][{FOLLOWING}]|[âãäå][{FOLLOWING}]{{2}}")

# Scripts without blanks give a word a character, as the tokens "words" do.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
WORD = rf"[{UNSPACED}]|[^\W{UNSPACED}]+(?:['’][^\W{UNSPACED}]+)*"

_words = re.compile(WORD).findall
_unspaced = re.compile(f"[{UNSPACED}]").match
_tokens = re.compile(rf"{WORD}|[^\w\s]").findall


class GarbledText(Check):
    """Characters that were lost, or garbled, when somebody read the text in a wrong encoding.

    Args:
        roles: Those that are texts.
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

    def findings(self, where: Where) -> Iterator[Finding]:
        faults = {
            "lost characters": (self.lost, f"with a character that was lost ({LOST})"),
            "garbled text": (self.garbled, "with UTF-8 that was read as cp1252 (Ã© for é)"),
        }
        for kind, (numbers, words) in faults.items():
            if numbers:
                yield Finding(
                    kind=kind,
                    severity="warning",
                    what=f"{counted(len(numbers), 'row')} {words}",
                    advice="the damage was done before: export the data again, as UTF-8",
                    count=len(numbers),
                    rows=named(numbers, where),
                )


def is_garbled(text: str) -> bool:
    """Whether some of the text is UTF-8 that was read as cp1252.

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
    """Texts longer than what is read of them.

    Args:
        role: The text.
        longest: Tokens that are read of it; None for a job that reads all.
        tokens: Their kind, as in `data.tokenizer.kind`.
        advice: What else to do about texts that are cut.
    """

    def __init__(self, role: str, longest: int | None, tokens: str, advice: str = "") -> None:
        self.role, self.longest, self.tokens, self.advice = role, longest, tokens, advice
        self.words, self.characters, self.numbers = array("L"), array("L"), array("Q")

    def see(self, row: Specimen) -> None:
        text = row.sample[self.role]
        self.words.append(count_tokens(text))
        self.characters.append(len(text))
        self.numbers.append(row.number)

    def findings(self, where: Where) -> Iterator[Finding]:
        if self.longest is None or not self.numbers:
            return
        unit, lengths = self._counted()
        cut = np.flatnonzero(lengths > self.longest)
        share = len(cut) / len(lengths)
        if len(cut):
            yield Finding(
                kind="cut short",
                severity="warning" if share >= MANY else "note",
                what=f"about {counted(len(cut), 'text')} ({share:.1%}) longer than the "
                f"{self.longest:,} {unit} that are read; the longest has {lengths.max():,}",
                advice=f"read more with --set task.max_length=N{self.advice}",
                count=len(cut),
                rows=named((self.numbers[place] for place in cut), where),
            )

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
    """Its words, without case and signs.

    >>> words_of("A film, isn't it? 好片")
    ['a', 'film', "isn't", 'it', '好', '片']
    """
    return _words(text.casefold())


def is_spaced(word: str) -> bool:
    """Whether a word is of a script that sets blanks between words.

    >>> is_spaced("film"), is_spaced("片")
    (True, False)
    """
    return _unspaced(word) is None


def count_tokens(text: str) -> int:
    """Words and single signs.

    >>> count_tokens("A film, isn't it? 好片")
    8
    """
    return len(_tokens(text))
