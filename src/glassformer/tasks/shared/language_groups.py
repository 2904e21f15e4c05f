"""Two languages in a set of texts, found without knowing any.

Texts are divided into two groups by their words: each text moves to the group whose words it has,
until none moves. Groups of one language share its function words, whatever they are about; groups
of two languages share hardly any. The division starts from the texts with a frequent word and those
without; of several starts, the groups that share the least count. (Hard expectation maximisation of
a mixture of two bags of words: Nigam et al., 2000.)
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

STARTS = 100  # frequent words that a division starts from
WORDS = 2_000  # frequent words that are counted
OFTEN, SHARE = 5, 0.005  # such a word is in more texts than this, and in more than this share
ROUNDS = 20  # of moving texts
FEWEST, SMALLEST = 10, 0.02  # texts of a group, and their share
SMOOTH = 0.5  # added to every count
# Of the words of a group, in the other: up to 0.18 for two languages, 0.4 and more for one
# (captions, reviews, plays and manuals).
SHARED = 0.25
SHOWN = 3  # words that stand for a language

Words = Float[np.ndarray, "texts words"]
Members = Bool[np.ndarray, " texts"]


@dataclass(frozen=True, slots=True)
class LanguageGroups:
    """Two groups of texts that share hardly any words.

    Attributes:
        smaller: The numbers of the texts in the smaller group.
        words: The most frequent words of the larger group, and of the smaller.
    """

    smaller: Sequence[int]
    words: tuple[Sequence[str], Sequence[str]]


def language_groups(texts: Sequence[Collection[str]]) -> LanguageGroups | None:
    """Two groups of texts in different languages, given as their words; None if there is one."""
    counts = Counter(word for text in texts for word in {*text})
    often = max(OFTEN, SHARE * len(texts))
    column = {
        word: place
        for place, (word, count) in enumerate(counts.most_common(WORDS))
        if count > often
    }
    words = np.zeros((len(texts), len(column)))
    for row, text in enumerate(texts):
        words[row, [column[word] for word in text if word in column]] = 1
    fewest = max(FEWEST, SMALLEST * len(texts))
    least, best = SHARED, None
    for place in range(min(STARTS, len(column))):
        members = divided(words, words[:, place] > 0)
        if min(members.sum(), (~members).sum()) >= fewest:
            shared = shared_by(words, members)
            least, best = (shared, members) if shared < least else (least, best)
    if best is None:
        return None
    smaller = best if best.sum() <= len(texts) / 2 else ~best
    names = list(column)
    frequent = [
        [names[place] for place in np.argsort(-difference)[:SHOWN]]
        for difference in _differences(words, smaller)
    ]
    return LanguageGroups(np.flatnonzero(smaller).tolist(), (frequent[0], frequent[1]))


def divided(words: Words, members: Members) -> Members:
    """The texts of a group, once each text is in the group that its words are likelier in."""
    for _ in range(ROUNDS):
        if members.all() or not members.any():
            break
        inside, outside = (
            words[group].sum(axis=0) + SMOOTH for group in (members, ~members)
        )  # counts of words
        odds = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
        moved = words @ odds > 0
        if (moved == members).all():
            break
        members = moved
    return members


def shared_by(words: Words, members: Members) -> float:
    """How much of the words of a group the other has as well, from 0 to 1."""
    inside, outside = words[members].mean(axis=0), words[~members].mean(axis=0)
    return float(np.minimum(inside, outside).sum() / max(1e-9, min(inside.sum(), outside.sum())))


def _differences(
    words: Words, smaller: Members
) -> tuple[Float[np.ndarray, " words"], Float[np.ndarray, " words"]]:
    """How much more frequent words are in the larger group, and in the smaller."""
    difference = words[~smaller].mean(axis=0) - words[smaller].mean(axis=0)
    return difference, -difference
