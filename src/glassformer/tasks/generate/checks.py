"""What the doctor looks for in texts to learn by heart: repetition, and what is no text.

Near duplicates are found by MinHash: texts share as many of the smallest hashes of their phrases as
of their phrases. Broder, 1997.
"""

from collections import Counter
from collections.abc import Iterator
from zlib import crc32

import numpy as np
from jaxtyping import UInt64

from glassformer.data.doctor.check import Check, Figures, Finding, HashSample, Specimen
from glassformer.data.rows import CONTINUED
from glassformer.tasks.shared.language_groups import language_groups
from glassformer.tasks.shared.language_outliers import LanguageOutliers, pieces_of, script_of
from glassformer.tasks.shared.text_checks import is_spaced, words_of
from glassformer.wording import counted

PHRASE = 5  # words
HASHES, BANDS = 64, 16  # a pair that shares all hashes of a band is compared
ALIKE = 0.8  # of the phrases, in a near duplicate
FEWEST_WORDS = 20  # of a text that is compared
MANY = 0.01  # of the texts: more are no accident

SHORTEST_LINE = 20  # characters of a line that may be boilerplate
CELLS = 1 << 20  # hash buckets for counts of lines
SEVERAL, OFTEN = 10, 0.05  # a line of boilerplate is in so many texts, and in this share of them

LONG_LINE = 10_000  # characters
READ = 2_000  # characters of a text whose language is looked at
FEW_LETTERS = 20
SECOND_SCRIPT = 0.01  # of the texts: less is an accident
ENOUGH, MOST = 100, 1_000  # texts that are looked at for two languages in one script


class NearDuplicates(Check):
    """Texts that nearly repeat an earlier one."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.factors, self.shifts = rng.integers(1, 2**63, (2, HASHES, 1), dtype=np.uint64)
        self.bands: dict[tuple[int, int], int] = {}
        self.signatures: list[UInt64[np.ndarray, " hashes"]] = []
        self.contents: list[int] = []
        self.numbers: list[int] = []
        self.seen = 0

    def see(self, row: Specimen) -> None:
        self.seen += 1
        words = words_of(row.sample["text"])
        if len(words) < FEWEST_WORDS:
            return
        own, number = self.signature(words), len(self.signatures)
        self.signatures.append(own)
        self.contents.append(row.content)
        earlier = set()
        for band, some in enumerate(own.reshape(BANDS, -1)):
            earlier.add(self.bands.setdefault((band, hash(some.tobytes())), number))
        if any(self._alike(number, other) for other in earlier - {number}):
            self.numbers.append(row.number)

    def signature(self, words: list[str]) -> UInt64[np.ndarray, " hashes"]:
        """The smallest of the hashes of all phrases, by many hash functions."""
        hashes = np.array([crc32(w.encode("utf-8", "replace")) for w in words], dtype=np.uint64)
        phrases = np.zeros(len(words) - PHRASE + 1, dtype=np.uint64)
        for place in range(PHRASE):
            phrases = phrases * np.uint64(1_000_003) + hashes[place : place + len(phrases)]
        return (np.unique(phrases) * self.factors + self.shifts).min(axis=1)

    def _alike(self, one: int, other: int) -> bool:
        same = (self.signatures[one] == self.signatures[other]).mean()
        return bool(same >= ALIKE) and self.contents[one] != self.contents[other]

    def findings(self) -> Iterator[Finding]:
        if self.numbers:
            share = len(self.numbers) / self.seen
            what = (
                f"{counted(len(self.numbers), 'text')} ({share:.1%}) that nearly "
                f"{'repeats' if len(self.numbers) == 1 else 'repeat'} an earlier one"
            )
            advice = (
                "they are learned by heart, and make scores optimistic where one is held "
                "out; keep one of each"
            )
            severity = "warning" if share >= MANY else "note"
            yield Finding("near duplicates", severity, what, advice, self.numbers)


class Boilerplate(Check):
    """Lines that stand in many different texts: menus, licences, signatures."""

    def __init__(self) -> None:
        self.contents: set[int] = set()
        self.counts = np.zeros(CELLS, dtype=np.int64)
        self.examples: dict[int, tuple[str, int]] = {}

    def see(self, row: Specimen) -> None:
        if row.content in self.contents:
            return
        self.contents.add(row.content)
        lines = {line.strip() for line in row.sample["text"].splitlines()}
        for line in lines:
            if len(line) >= SHORTEST_LINE:
                cell = crc32(line.encode("utf-8", "replace")) % CELLS
                self.counts[cell] += 1
                if self.counts[cell] == SEVERAL:
                    self.examples[cell] = line, row.number

    def findings(self) -> Iterator[Finding]:
        least = max(SEVERAL, OFTEN * len(self.contents))
        common = sorted(
            ((int(self.counts[cell]), *example) for cell, example in self.examples.items()),
            reverse=True,
        )
        common = [found for found in common if found[0] >= least]
        if common:
            texts, line, _ = common[0]
            what = (
                f"{counted(len(common), 'line')} in {OFTEN:.0%} of the texts or more; "
                f"{line[:60]!r} is in {texts:,}"
            )
            advice = "the model will write them, too; remove what no reader would miss"
            numbers = sorted({number for *_, number in common})
            yield Finding("boilerplate", "warning", what, advice, numbers)


class LongLines(Check):
    """Very long lines: tables, encoded data, or text that lost its line breaks.

    A text that is read in sections counts once, and a line may go on in the next section.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.longest = 0
        self.next: int | None = None  # the row that goes on with the last text
        self.begun = 0  # characters of a line that goes on there
        self.counted = False  # whether that text was

    def see(self, row: Specimen) -> None:
        if row.number != self.next:
            self.begun, self.counted = 0, False
        text = row.sample["text"]
        sizes = [len(line) for line in text.splitlines()]
        sizes[0] += self.begun
        self.longest = max(self.longest, *sizes)
        if max(sizes) > LONG_LINE and not self.counted:
            self.numbers.append(row.number)
            self.counted = True
        self.next = row.number + 1 if row.sample.get(CONTINUED) else None
        self.begun = 0 if len(f"{text}.".splitlines()) > len(sizes) else sizes[-1]

    def findings(self) -> Iterator[Finding]:
        if self.numbers:
            what = (
                f"{counted(len(self.numbers), 'text')} with a line of more than "
                f"{LONG_LINE:,} characters; the longest has {self.longest:,}"
            )
            advice = "look whether it is text; what is data or code on one line is best left out"
            yield Finding("long lines", "note", what, advice, self.numbers)


ADVICE = "the model learns all of them; drop those that it should not write"


class LanguageMix(Check):
    """Texts in another script or language than most."""

    def __init__(self) -> None:
        self.outliers = LanguageOutliers()
        self.scripts: Counter[str] = Counter()
        self.rows: dict[str, list[int]] = {}
        self.sample = HashSample[tuple[str, set[str]]](MOST)

    def see(self, row: Specimen) -> None:
        text = row.sample["text"][:READ]
        letters = Counter(script_of(letter) for letter in text if letter.isalpha())
        if letters.total() < FEW_LETTERS:
            return
        [(script, _)] = letters.most_common(1)
        self.scripts[script] += 1
        self.rows.setdefault(script, []).append(row.number)
        self.outliers.see(row.number, text, pieces_of(text))
        self.sample.see(row.number, row.content, lambda: (script, spaced_words(text)))

    def findings(self) -> Iterator[Finding]:
        two = list(self.two_languages())
        yield from two
        outliers = {*self.outliers.found()}.difference(*(finding.numbers for finding in two))
        for script, count in self.scripts.most_common()[1:]:
            if count > SECOND_SCRIPT * self.scripts.total():
                outliers.update(self.rows[script])
        if outliers:
            share = len(outliers) / self.scripts.total()
            what = (
                f"{counted(len(outliers), 'text')} ({share:.1%}) in another script or "
                f"language than most"
            )
            yield Finding("language mix", "note", what, ADVICE, sorted(outliers))

    def two_languages(self) -> Iterator[Finding]:
        """A finding if the texts in the most common script are in two languages."""
        ((main, count),) = self.scripts.most_common(1) or [("", 0)]
        rows = [(number, words) for number, (script, words) in self.sample.rows() if script == main]
        found = language_groups([words for _, words in rows]) if len(rows) >= ENOUGH else None
        if found is not None:
            numbers = sorted(rows[place][0] for place in found.smaller)
            share = len(numbers) / len(rows)
            larger, smaller = (", ".join(words) for words in found.words)
            what = (
                f"texts in two languages: about {share:.0%} with words such as {smaller}, and "
                f"the others with {larger}"
            )
            total = max(len(numbers), round(share * count))
            yield Finding("two languages", "note", what, ADVICE, numbers, total=total)

    def figures(self) -> Figures:
        if len(self.scripts) < 2:
            return {}
        return {"texts by script": {name.title(): n for name, n in self.scripts.most_common(8)}}


def spaced_words(text: str) -> set[str]:
    """The words of a text, but for scripts without spaces."""
    return {word for word in words_of(text) if word[0].isalpha() and is_spaced(word)}
