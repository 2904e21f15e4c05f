"""Garbled texts, and texts that are too long, are told by row."""

import pytest
from ailing import examined, found_in, reviews, table


@pytest.fixture
def rows():
    return list(reviews())


def test_lost_and_garbled_characters_are_told(tmp_path, rows):
    rows[8]["text"] += " caf\ufffd"
    rows[9]["text"] += " it’s a café".encode().decode("cp1252")
    rows[10]["text"] += " it’s a café, ÇA VÂ à l’âge"
    path = table(tmp_path / "x.csv", rows)
    assert found_in(path, "lost characters")[1] == [9]
    assert found_in(path, "garbled text")[1] == [10]


@pytest.mark.parametrize(("long", "severity"), [(3, "note"), (30, "warning")])
def test_texts_that_are_not_read_to_the_end_are_told(tmp_path, rows, long, severity):
    for number in range(long):
        rows[2 * number]["text"] += f" {number}" * 60
    path = table(tmp_path / "x.csv", rows)
    finding, numbers = found_in(path, "cut short", set="task.max_length=52")
    assert (finding.severity, finding.count, numbers[:2]) == (severity, long, [1, 3])
    assert "the 50 words that are read; the longest has 75" in finding.what
    for settings in (("task.max_length=77",), ("task.max_length=52", "task.long=windows")):
        assert "cut short" not in [f.kind for f in examined(path, set=settings).findings]


def test_short_texts_are_counted_in_characters(tmp_path):
    rows = [{"text": f"name{'x' * (n % 7)}{n}", "label": "ab"[n % 2]} for n in range(60)]
    finding, _ = found_in(table(tmp_path / "x.csv", rows), "cut short", set="task.max_length=10")
    assert "the 8 characters that are read" in finding.what
