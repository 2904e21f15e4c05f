"""Windows of a stream: of one size for training, and sliding over each document for evaluation."""

from functools import cached_property

import numpy as np

from glassformer.data.jagged import places_in_rows
from glassformer.tasks.generate.stream import Numbers, Stream, Windows
from glassformer.tasks.generate.unknown import TextSizes
from glassformer.tasks.shared.losses import IGNORED


class TrainingWindows:
    """Windows of one size, which begin elsewhere in every epoch: the stream is taken as a ring."""

    def __init__(self, stream: Stream, width: int) -> None:
        self.stream, self.step = stream, width
        self.width = min(width, stream.size)

    @property
    def lengths(self) -> Numbers:
        """The number of places of each window."""
        count = max(1, self.stream.size // self.step) if self.stream.size else 0
        return np.full(count, self.width)

    def take(self, rows: Numbers, seed: int, epoch: int) -> Windows:
        """These windows, as they are in an epoch."""
        shift = np.random.default_rng([seed, epoch]).integers(self.stream.size)
        steps = np.arange(self.width)
        places = (rows[:, None] * self.step + shift + steps) % self.stream.size
        begins = np.broadcast_to(steps == 0, places.shape)
        return self.stream.take(places.ravel(), begins.ravel())


class SlidingWindows:
    """Overlapping windows of each document, in which every place counts once.

    The first window of a document counts all its places, each later one only those that no window
    before it had; the others are context.

    Args:
        width: Places in a window.
        stride: Places between two windows, all of which count.
        text_sizes: Finds the bytes of text of tokens.
    """

    def __init__(self, stream: Stream, width: int, stride: int, text_sizes: TextSizes) -> None:
        self.stream, self.text_sizes = stream, text_sizes
        sizes = stream.counts + 1
        each = 1 + np.maximum(0, -(-(sizes - width) // stride))  # windows of each document
        self.document = np.repeat(np.arange(len(sizes)), each)
        self.begins = places_in_rows(each) * stride
        self.ends = np.minimum(self.begins + width, sizes[self.document])
        self.counted = np.where(self.begins == 0, 0, self.begins + width - stride)

    @property
    def lengths(self) -> Numbers:
        """The number of places of each window."""
        return self.ends - self.begins

    def take(self, rows: Numbers) -> tuple[Windows, Numbers, Numbers]:
        """These windows, and of each place the document, -1 for context, and its bytes."""
        lengths = self.lengths[rows]
        within = np.repeat(self.begins[rows], lengths) + places_in_rows(lengths)
        places = np.repeat(self.stream.starts[self.document[rows]], lengths) + within
        counts = within >= np.repeat(self.counted[rows], lengths)
        found = self.stream.take(places, within == np.repeat(self.begins[rows], lengths))
        labels = np.where(counts, found.labels, IGNORED)
        documents = np.where(labels == IGNORED, -1, self.documents[places])
        return Windows(found.ids, labels, found.lengths), documents, self.bytes[places]

    @cached_property
    def bytes(self) -> Numbers:
        """The bytes of text of what comes next at every place."""
        every = np.arange(self.stream.size)
        labels = self.stream.take(every, every == 0).labels
        return self.text_sizes.of(labels, self._documents)

    @cached_property
    def documents(self) -> Numbers:
        """The document of every place; sections that go on in the next are one."""
        return self.stream.wholes[self._documents]

    @property
    def _documents(self) -> Numbers:
        """The document, or section of one, of every place."""
        return np.repeat(np.arange(len(self.stream.counts)), self.stream.counts + 1)
