"""The Python language reference, as it ships with every Python for `help("topics")`.

Some paragraphs stand in several topics; each is kept once, where it comes first. Whole topics are
held out.
"""

from collections.abc import Iterator
from hashlib import sha256
from pydoc_data.topics import topics

from glassformer.data.catalog.storage import Entry
from glassformer.data.rows import Row

HELD_OUT = {"test": 0.06, "valid": 0.06}  # of all characters
LONGEST = 0.03  # of all characters, in a topic that is held out


def rows() -> Iterator[Row]:
    """Every topic: its name, its text and its split."""
    texts = different_paragraphs()
    splits = held_out({topic: len(text) for topic, text in texts.items()})
    for number, (topic, text) in enumerate(texts.items(), start=1):
        values = {"topic": topic, "text": text, "split": splits.get(topic, "train")}
        yield Row(values, "python-reference", number)


def different_paragraphs() -> dict[str, str]:
    """The text of every topic, without paragraphs that earlier ones have."""
    seen: set[str] = set()
    found = {}
    for topic, text in sorted(topics.items()):
        paragraphs = [part for part in text.strip("\n").split("\n\n") if part not in seen]
        seen.update(paragraphs)
        if paragraphs:
            found[topic] = "\n\n".join(paragraphs) + "\n"
    return found


def held_out(sizes: dict[str, int]) -> dict[str, str]:
    """The split of topics that are not for training, in an order by hash."""
    total, splits = sum(sizes.values()), {}
    short = [topic for topic, size in sizes.items() if size <= LONGEST * total]
    order = iter(sorted(short, key=lambda topic: sha256(topic.encode()).digest()))
    for split, share in HELD_OUT.items():
        left = share * total
        while left > 0:
            topic = next(order)
            splits[topic] = split
            left -= sizes[topic]
    return splits


PYTHON_REFERENCE = Entry(
    name="python-reference",
    what="The Python language reference by topic, about 0.4 MB of English; for generate.",
    licence="Python Software Foundation License",
    source="https://docs.python.org/3/reference/",
    rows=rows,
)
