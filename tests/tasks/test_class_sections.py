"""What a report on a classifier shows besides its scores."""

import numpy as np
import pytest

from glassformer.reports import Report
from glassformer.reports.page import page
from glassformer.tasks.shared.label_sections import classification_sections

CLASSES = ["cat", "dog", "<script>"]
LABELS = np.array([0, 1, 2, 0, 1])
CHANCES = np.array(
    [[0.9, 0.1, 0.0], [0.7, 0.2, 0.1], [0.1, 0.85, 0.05], [0.6, 0.3, 0.1], [0.0, 1.0, 0.0]]
)
TEXTS = ["one", "two", "three <b>", "four", "five"]


def sections(labels=LABELS, chances=CHANCES, texts=TEXTS):
    return classification_sections(labels, chances, CLASSES, texts)


def test_classes_are_scored_in_their_order():
    table = sections().tables[0]
    assert [row[0] for row in table.rows] == CLASSES
    precision, recall, f1, low, high, rows = table.rows[0][1:]
    assert (precision, recall, f1) == (pytest.approx(2 / 3), 1.0, pytest.approx(0.8))
    assert (low, high, rows) == (None, None, 2), "too few rows for an interval"
    *scores, low, high, rows = table.rows[2][1:]
    assert (scores, low, high, rows) == ([0.0, 0.0, 0.0], None, None, 1)


def test_a_class_of_five_rows_has_an_interval():
    table = sections(np.repeat(LABELS, 5), CHANCES.repeat(5, 0), TEXTS * 5).tables[0]
    _, _, f1, low, high, rows = table.rows[0][1:]
    assert low < f1 < high
    assert rows == 10


def test_the_most_confident_mistake_comes_first():
    table = sections().tables[1]
    assert table.rows == [("three <b>", "<script>", "dog", 0.85), ("two", "dog", "cat", 0.7)]
    assert table.note == "2 of 2."


def test_without_mistakes_the_table_says_so():
    table = sections(labels=CHANCES.argmax(axis=1)).tables[1]
    assert table.rows == []
    assert table.note == "No mistakes."


def test_at_most_ten_mistakes_are_shown_and_all_are_counted():
    labels, chances = np.zeros(37, dtype=int), np.tile([0.2, 0.8, 0.0], (37, 1))
    table = sections(labels, chances, ["t"] * 37).tables[1]
    assert len(table.rows) == 10
    assert table.note == "10 of 37."


def test_long_texts_are_cut_and_line_ends_become_spaces():
    table = sections(texts=["a\nb " * 10_000] * 5).tables[1]
    assert len(table.rows[0][0]) <= 240
    assert table.rows[0][0].startswith("a b a b")
    assert table.rows[0][0].endswith("…")


def test_confusions_and_reliability_count_every_row():
    found = sections()
    assert found.heat_map.counts == [[2, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert found.heat_map.low[0][0] < 2 < found.heat_map.high[0][0]
    assert sum(entry.count for entry in found.reliability) == 5


def test_several_labels_have_mistakes_of_both_kinds_and_no_heat_map():
    labels = np.array([[1, 0, 0], [0, 1, 1]])
    chances = np.array([[0.05, 0.1, 0.2], [0.8, 0.9, 0.7]])
    found = classification_sections(labels, chances, CLASSES, ["one", "two"])
    assert found.heat_map is None
    assert found.tables[1].rows == [
        ("one", "cat", "not cat", 0.95),
        ("two", "not cat", "cat", 0.8),
    ]
    assert sum(entry.count for entry in found.reliability) == 6


def test_sections_fit_into_a_report():
    found = sections()
    report = Report(
        title="t", tables=found.tables, heat_map=found.heat_map, reliability=found.reliability
    )
    text = page(report)
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    assert "three &lt;b&gt;" in text
