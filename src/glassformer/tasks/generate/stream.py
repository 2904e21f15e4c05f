"""Documents as one stream of tokens, of which any places can be taken.

A document of n tokens has n + 1 places: at place 0 the start is read and the first token comes
next; at place n the last token is read and the end comes next. Where a document is only continued
by another section, what comes next is not known, and not counted.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from glassformer.data.shards import Shards
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.tasks.shared.losses import IGNORED

Numbers = Int[np.ndarray, " _"]  # no name: windows have different lengths


@dataclass(frozen=True, slots=True)
class Windows:
    """Some windows, end to end.

    Attributes:
        ids: What is read at each place.
        labels: What comes next; `IGNORED` where it is not known.
        lengths: Of the pieces of documents in them, which do not see each other.
    """

    ids: Numbers
    labels: Numbers
    lengths: Numbers


class Stream:
    """The documents of a split, end to end.

    Args:
        tokens: Of all documents.
        documents: Which of them.
        continued: For each of all documents, whether another one continues it.
    """

    def __init__(
        self, tokens: Shards, documents: Numbers, continued: Bool[np.ndarray, " all"]
    ) -> None:
        self.tokens = tokens
        self.counts = tokens.lengths[documents]
        self.first = tokens.starts[documents]  # token of each
        self.ends = np.cumsum(self.counts + 1)
        self.starts = self.ends - self.counts - 1
        self.after = np.where(continued[documents], IGNORED, Tokenizer.end)
        goes_on = continued[documents[:-1]] & (np.diff(documents) == 1)
        # Of each document, the whole that it is a section of: the first of its sections.
        self.wholes = np.arange(len(documents))
        self.wholes[1:][goes_on] = 0
        self.wholes = np.maximum.accumulate(self.wholes)

    @property
    def size(self) -> int:
        """How many places there are."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def take(self, places: Numbers, begins: Bool[np.ndarray, " _"]) -> Windows:
        """What is read and what comes next at these places.

        Args:
            begins: Where a window begins, which sees nothing before.
        """
        document = np.searchsorted(self.ends, places, side="right")
        place = places - self.starts[document]
        label = self.first[document] + place
        last = place == self.counts[document]
        labels = np.where(last, self.after[document], self.tokens.take(label))
        ids = np.where(place == 0, Tokenizer.start, self.tokens.take(label - 1))
        pieces = np.flatnonzero(begins | (place == 0))
        lengths = np.diff(pieces, append=len(places))
        return Windows(ids.astype(np.int64), labels.astype(np.int64), lengths)
