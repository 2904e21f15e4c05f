"""The doctor finds what a training would refuse, and what was taken for names of columns."""

import pytest
from ailing import examined, found_in, reviews, table

REFUSED = {
    "one text": (
        [{"text": "the same", "label": "a"}] * 200,
        "200 rows with only 1 different text are too few to hold some out for validation",
    ),
    "one row": (
        [{"text": "a b", "label": "a"}],
        "1 row is too few to hold some out for validation",
    ),
    "no row": (
        [{"text": "", "label": "a"}] * 3,
        "no usable row",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_training_refuses_is_an_error(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows, told = REFUSED[case]
    table(tmp_path / "x.csv", rows)
    finding, _ = found_in("x.csv", "no training", job="classify")
    assert finding.severity == "error"
    assert finding.what == f"training would refuse x.csv: {told}"
    assert not examined("x.csv", job="classify").verdict


def test_parts_that_are_given_are_enough(tmp_path):
    train, valid = (table(tmp_path / f"{n}.csv", reviews(4, seed=n)) for n in (1, 2))
    assert "no training" in {finding.kind for finding in examined(train).findings}
    assert "no training" not in {finding.kind for finding in examined(train, valid=valid).findings}


def test_data_that_are_all_to_evaluate_on_get_a_note(tmp_path):
    path = table(tmp_path / "x.csv", [row | {"split": "test"} for row in reviews(60)])
    finding, _ = found_in(path, "no training")
    assert finding.severity == "note"
    assert finding.what.endswith("60 rows, all of them in test, with none left to train on")
    path = table(tmp_path / "y.csv", [row | {"split": "test"} for row in reviews(1)])
    finding, _ = found_in(path, "no training", job="classify")
    assert finding.what.endswith(": 1 row, which is in test, with none left to train on")


def test_a_first_row_taken_for_names_is_told(tmp_path):
    words = ["Hund", "Katze", "Baum", "Haus"]
    path = tmp_path / "x.tsv"
    path.write_text("".join(f"{word}\t{word.lower()}{n}\n" for n, word in enumerate(words * 20)))
    path.write_text("Maus\tmouse\n" + path.read_text())
    (finding,) = (
        f for f in examined(path, job="translate").findings if f.kind == "names of columns"
    )
    assert finding.what == (f"the first row of {path} (Maus, mouse) was read as the column names")
    path.write_text("source\ttarget\n" + path.read_text())
    kinds = {f.kind for f in examined(path, job="translate").findings}
    assert "names of columns" not in kinds


def test_the_verdict_is_true(tmp_path):
    rows = list(reviews(200))
    assert examined(table(tmp_path / "x.csv", rows)).verdict.startswith("All clear")
    found = examined(table(tmp_path / "y.csv", [*rows, rows[0]]))
    assert [finding.severity for finding in found.findings] == ["note"]
    assert found.verdict == "No errors or warnings; check whether the notes matter to you."
    assert examined(table(tmp_path / "z.csv", [*rows, {"text": "", "label": "a"}])).verdict == ""
