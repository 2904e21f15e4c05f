"""Translators beside a translation memory, in their reports."""

import json

import pytest
from quick import quickly
from small_translators import translate, write_pairs

from glassformer.runs.report import baseline_of
from glassformer.tasks.shared import ngrams
from glassformer.tasks.translate.reporter import TranslateReporter

pytest.importorskip("sklearn")
pytestmark = pytest.mark.usefixtures("without_shape_hook")
REMEMBER = TranslateReporter.baseline  # before it is replaced
ROWS = [("ab ab", "x", "one"), ("ab ab", "y", "two"), ("cd cd", "z", "one"), ("cd cd", "w", "two")]


def job_of(run):
    return run.folder.open_task(run.config, run.folder.data)


@pytest.fixture(scope="module")
def tagged(tmp_path_factory):
    """A run of two target languages; what is held out is in the training rows, too."""
    folder = tmp_path_factory.mktemp("tagged")
    lines = ["source\ttarget\tto\tsplit"]
    parts = {"train": ROWS * 3, "valid": ROWS[:1], "test": ROWS}
    lines += ["\t".join((*row, part)) for part, rows in parts.items() for row in rows]
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with quickly():
        return translate(folder / "pairs.tsv", folder / "run")


def test_a_memory_answers_in_the_language_asked_for(tagged):
    found = TranslateReporter(job_of(tagged)).baseline("test")
    answers = found.answers
    assert found.name.startswith("translation memory (character ")
    assert answers.hypotheses == [target for _, target, _ in ROWS]
    assert answers.values()["exact"] == 1.0
    assert "loss" not in {**answers.values(), **answers.scores()}
    assert found.notes == []


def test_a_language_none_of_whose_rows_were_learned_from_gets_no_answer(tagged, monkeypatch):
    monkeypatch.setattr(ngrams, "MOST_ROWS", 1)
    found = TranslateReporter(job_of(tagged)).baseline("test")
    assert sorted(bool(text) for text in found.answers.hypotheses) == [False, False, True, True]
    assert found.notes == ["The baseline learned from 1 of the training rows."]


def test_without_scikit_learn_a_note_says_so(tagged, monkeypatch):
    def missing(part):
        raise ImportError(part)

    monkeypatch.setattr(ngrams, "import_module", missing)
    found, notes = baseline_of(TranslateReporter(job_of(tagged)), "test")
    assert found is None
    assert notes[0].startswith("No baseline: the baseline needs scikit-learn")


def test_a_report_compares_the_translator_with_it(tmp_path, monkeypatch):
    with quickly():
        monkeypatch.setattr(TranslateReporter, "baseline", REMEMBER)
        run = translate(write_pairs(tmp_path / "pairs.tsv"), tmp_path / "run")
    report = json.loads((run.folder.path / "report.json").read_text(encoding="utf-8"))
    assert [name.partition(" (")[0] for name in report["scores"]] == [
        "this model",
        "translation memory",
    ]
    assert report["notes"][0].startswith("No verdict against the baseline (translation memory)")
    assert TranslateReporter(job_of(run)).baseline_seconds() == pytest.approx(1.0, abs=0.1)
