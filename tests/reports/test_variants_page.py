"""A comparison of variants in words, in Markdown and as a page."""

import re

import pytest

from glassformer.metrics.intervals import Score
from glassformer.reports.variants import VariantComparison, VariantResult, markdown_table
from glassformer.reports.variants_page import variants_page, write_comparison


def variant(name, value, p_value=None, **more):
    usual = {
        "settings": (f"model.position={name}",),
        "scores": {"accuracy": Score(value, value - 0.02, value + 0.02)},
        "by_seed": [value],
        "difference": None if p_value is None else Score(value - 0.9, value - 0.93, value - 0.87),
        "parameters": 12_345,
        "steps": 7,
        "tokens_per_second": 18_587.0,
        "rows_per_second": 950.0,
        "bytes": 589_000_000,
        "curve": [(1.0, value / 2), (7.0, value)],
    }
    return VariantResult(name=name, p_value=p_value, **usual | more)


def comparison(*variants):
    return VariantComparison(
        title="classify on <films>: model.position",
        varied=("model.position",),
        goal="accuracy",
        facts={"budget": "7 steps", "command": "glassformer compare"},
        variants=variants,
        notes=["A note."],
    )


@pytest.fixture
def found():
    return comparison(
        variant("rotary", 0.9), variant("<b>", 0.89, 0.3), variant("none", 0.7, 0.001)
    )


def test_ties_are_called_ties(found):
    assert [one.verdict for one in found.variants] == ["best", "tie", "worse"]
    assert found.verdict() == "rotary is best, accuracy 0.900; tied with it: <b>; worse: none."
    alone = comparison(variant("a", 0.9), variant("b", 0.5, 0.01))
    assert alone.verdict() == "a is best, accuracy 0.900; no other is tied with it; worse: b."
    tied = comparison(variant("a", 0.9), variant("b", 0.89, 0.06))
    assert tied.verdict() == (
        "No significant difference: both are tied; a has the best mean, accuracy 0.900."
    )


def test_the_table_has_a_row_for_every_variant(found):
    assert found.header()[:5] == [
        *("model.position", "accuracy", "difference from the best", "p", "verdict")
    ]
    assert found.rows()[2] == [
        *("none", "0.700 [0.680, 0.720]", "-0.200 [-0.230, -0.170]", "0.001", "worse"),
        *("12,345", "18.6 K", "950", "589 MB"),
    ]
    assert found.drawing()[0].endswith("├─●─┤")


def test_steps_are_shown_where_they_differ():
    found = comparison(variant("a", 0.9), variant("b", 0.8, 0.01, steps=9))
    assert found.rows()[1][found.header().index("steps")] == "9"


def test_longer_sequences_have_columns_and_a_chart():
    reach = {1: Score(0.9, 0.8, 1.0), 2: Score(0.8, 0.7, 0.9)}
    found = comparison(
        variant("a", 0.9, lengths=reach, longer={"long.csv": Score(0.6, 0.5, 0.7)}),
        variant("b", 0.8, 0.01, lengths={1: reach[1], 2: None}, longer={"long.csv": reach[1]}),
    )
    assert found.header()[-2:] == ["accuracy, 2× length", "accuracy, long.csv"]
    assert [row[-2:] for row in found.rows()] == [
        ["0.800 [0.700, 0.900]", "0.600 [0.500, 0.700]"],
        ["–", "0.900 [0.800, 1.000]"],
    ]
    assert "times the length in training" in variants_page(found)
    values = found.as_values()["variants"]
    assert values[1]["lengths"]["2"] is None
    assert values[0]["longer"]["long.csv"]["value"] == 0.6


def test_the_page_stands_alone_and_shows_names_as_text(found):
    page = variants_page(found)
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert not re.findall(r'(?:src|href)="|<script', page)
    assert page.count("<svg") >= 3 + 2 + 1 + 5 * 3
    assert page.count(' ours">rotary') == 1
    assert "times the length" not in page


def test_all_three_files_are_written(found, tmp_path):
    write_comparison(found, tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["comparison.html", "comparison.json", "comparison.md"]
    text = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    assert text.startswith("# classify on <films>: model.position\n\n- budget: 7 steps\n")
    assert text.endswith("worse: none.**\n\n- A note.\n")


def test_a_cell_of_markdown_keeps_its_bar():
    assert markdown_table(["a"], [["x|y"]]).splitlines()[2] == "| x\\|y |"


def test_it_shows_itself_in_a_terminal_and_in_a_notebook(found):
    assert "├─●─┤" in repr(found)
    assert repr(found).endswith("A note.")
    assert "<p>A note.</p>" in found._repr_html_()
