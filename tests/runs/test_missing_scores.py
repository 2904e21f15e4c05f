"""A translator without the libraries of some scores: it trains with the others, and says so."""

import sys

import pytest
from quick import quickly
from small_translators import translate

from glassformer.errors import GlassformerError
from glassformer.tasks.translate.answers import goal_of, missing_line

pytestmark = pytest.mark.usefixtures("without_shape_hook")
SENTENCES = [(f"the dog has {n} old bones", f"der Hund hat {n} alte Knochen") for n in range(140)]


@pytest.fixture
def without(monkeypatch):
    """Hide libraries."""

    def hide(*names):
        for name in names:
            inside = [one for one in sys.modules if one.startswith(f"{name}.")]
            for module in (name, *inside):
                monkeypatch.setitem(sys.modules, module, None)

    return hide


def test_it_trains_with_the_scores_it_has_and_says_what_is_missing(without, tmp_path, capsys):
    without("sacrebleu", "rapidfuzz")
    with quickly():
        run = translate(SENTENCES, tmp_path / "run", quiet=False)
    assert run.config.task.measure == "text"
    assert run.task.goal == run.config.task.goal == "exact"
    assert {*run.report["scores"]["this model"]} == {"exact", "loss"}
    line = (
        "no BLEU, chrF, TER, word error rate, character error rate: sacrebleu and rapidfuzz not "
        "installed; to have them, pip install 'glassformer[translate]'"
    )
    assert line in capsys.readouterr().err
    assert any(note.startswith(line) for note in run.report["notes"])
    found = run.evaluate(SENTENCES[:5])
    assert {*found.scores} == {"exact", "loss"}
    assert any(note.startswith(line) for note in found.notes)


def test_the_goal_is_the_best_one_that_can_be_computed(without):
    assert [goal_of(name, "auto") for name in ("text", "symbols", "letters")] == [
        *("bleu", "exact", "exact")
    ]
    assert missing_line("text") == ""
    without("sacrebleu")
    assert goal_of("text", "auto") == "cer"
    assert missing_line("text").startswith("no BLEU, chrF, TER: sacrebleu not installed; ")
    assert missing_line("symbols") == ""
    without("rapidfuzz")
    assert goal_of("text", "auto") == "exact"
    assert missing_line("symbols").startswith("no symbol error rate: rapidfuzz not installed; ")


def test_a_goal_that_cannot_be_computed_is_refused(without, tmp_path):
    with pytest.raises(GlassformerError, match=r"task.goal for task.measure = symbols.*'bleu'"):
        goal_of("symbols", "bleu")
    with quickly():
        run = translate(SENTENCES, tmp_path / "run", "task.goal=cer", steps=1)
    assert (run.task.goal, run.task.higher_is_better, run.task.perfect) == ("cer", False, 0.0)
    without("rapidfuzz")
    with pytest.raises(
        GlassformerError, match="error rates need rapidfuzz, which is not installed"
    ):
        run.task.score(run.model, [])
