"""Pairs of texts, one to be read and one to be written: what can be wrong with them, and the checks
that a job which learns from pairs lists.
"""

from array import array
from collections.abc import Iterator

import numpy as np

from glassformer.config import TokenizerConfig
from glassformer.data.doctor.check import Check, Specimen, hashed
from glassformer.data.doctor.each_language import EachLanguage, Tags
from glassformer.data.doctor.finding import Finding, Where, counted, named
from glassformer.data.doctor.mixed_scripts import MixedScripts
from glassformer.data.doctor.pair_languages import PairLanguages
from glassformer.data.doctor.pair_lengths import PairLengths
from glassformer.data.doctor.repeats import RepeatedTexts, SharedGroups
from glassformer.data.doctor.rows import EmptyRows, GarbledText
from glassformer.data.doctor.simplified import Simplified
from glassformer.data.doctor.words import words_of
from glassformer.data.splits import content_key

SIMPLIFIED = "data.tokenizer.simplified"
WORDS = 3  # names and numbers stay as they are; so many words seldom do
MANY = 0.001  # of the pairs: copies teach a model to copy


def checks_of_pairs(
    reads: TokenizerConfig | None = None, writes: TokenizerConfig | None = None
) -> list[Check]:
    """For a job that reads one text and writes another.

    Args:
        reads: How the source falls into tokens: sides that are read in simplified Chinese are
            compared in it.
        writes: The same of the target; None for that of the source.
    """
    sides = {
        "source": (SIMPLIFIED, reads),
        "target": ("task.target.simplified", writes) if writes else (SIMPLIFIED, reads),
    }
    alike = [side for side, (_, tokens) in sides.items() if tokens and tokens.simplified]
    return [
        EmptyRows(),
        GarbledText(),
        SharedGroups(),
        Tags(),
        EachLanguage(PairLengths),
        EachLanguage(PairLanguages),
        Simplified(alike, [RepeatedTexts(), CopiedSources(), ManyTargets()]),
        MixedScripts({side: key for side, (key, _) in sides.items() if side not in alike}),
    ]


class CopiedSources(Check):
    """Pairs whose target only repeats the source."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.seen = 0

    def see(self, row: Specimen) -> None:
        self.seen += 1
        source, target = row.sample["source"], row.sample["target"]
        copied = content_key(source) == content_key(target)
        if copied and sum(word.isalpha() for word in words_of(source)) >= WORDS:
            self.rows.append(row.number)

    def findings(self, where: Where) -> Iterator[Finding]:
        if self.rows:
            share = len(self.rows) / self.seen
            yield Finding(
                kind="copied source",
                severity="warning" if share >= MANY else "note",
                what=f"{counted(len(self.rows), 'pair')} ({share:.2%}) with the source again as "
                f"target",
                advice="a model learns to copy from them; translate or drop them",
                count=len(self.rows),
                rows=named(self.rows, where),
            )


class ManyTargets(Check):
    """Sources with several targets: fine to learn from, but one answer cannot be all of them.

    A source that is to be said in several languages is another one in each.
    """

    def __init__(self) -> None:
        self.sources, self.targets, self.numbers = array("Q"), array("Q"), array("Q")

    def see(self, row: Specimen) -> None:
        asked = f"{row.sample.get('to', '')}\n{content_key(row.sample['source'])}"
        self.sources.append(hashed(asked))
        self.targets.append(hashed(content_key(row.sample["target"])))
        self.numbers.append(row.number)

    def findings(self, where: Where) -> Iterator[Finding]:
        if not self.numbers:
            return
        pairs = np.stack([np.array(self.sources), np.array(self.targets)], axis=1)
        different = np.unique(pairs, axis=0)
        sources, counts = np.unique(different[:, 0], return_counts=True)
        several = np.flatnonzero(np.isin(pairs[:, 0], sources[counts > 1]))
        if len(several):
            yield Finding(
                kind="several targets",
                severity="note",
                what=f"{counted(int((counts > 1).sum()), 'source')} in "
                f"{counted(len(several), 'row')} with different targets",
                advice="they stay in one part; scores that accept one answer will seem low",
                count=len(several),
                rows=named((self.numbers[row] for row in several.tolist()), where),
            )
