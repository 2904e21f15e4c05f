"""The embedded set `python-reference`: topics of Python's own help, none twice, some held out."""

from glassformer.data.catalog import CATALOG


def test_topics_are_held_out_whole_and_no_paragraph_stands_twice():
    rows = [row.values for row in CATALOG["python-reference"].rows()]
    assert rows == [row.values for row in CATALOG["python-reference"].rows()]
    sizes = dict.fromkeys(("train", "valid", "test"), 0)
    paragraphs = []
    for row in rows:
        sizes[row["split"]] += len(row["text"])
        paragraphs += row["text"].rstrip("\n").split("\n\n")
    assert len({row["topic"] for row in rows}) == len(rows) > 60
    assert len({*paragraphs}) > 0.99 * len(paragraphs)  # in one topic, a paragraph may be repeated
    total = sum(sizes.values())
    assert total > 300_000
    for split in ("valid", "test"):
        assert 0.05 < sizes[split] / total < 0.1
