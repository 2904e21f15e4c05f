"""The heads of a run, in Python and on the command line."""

import json

import pytest
from quick import quickly, unchecked
from small_runs import learn, write_reviews
from small_translator import SETTINGS, write_pairs

from glassformer.cli import main
from glassformer.errors import GlassformerError
from glassformer.runs import api
from glassformer.tasks.classify.explainer import LabelExplainer

ONE_STEP = {"steps": 1, "pretrain": False, "set": SETTINGS}


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    return write_reviews(tmp_path_factory.mktemp("heads") / "reviews.csv", count=83)


@pytest.fixture(scope="module")
def run(reviews):
    with quickly(), unchecked():
        return learn(reviews, reviews.parent / "run", "model.encoder.depth=2", steps=3)


def test_heads_are_profiled_on_the_validation_rows_or_on_a_file(run, tmp_path, capsys):
    found = run.heads.look(rows=3)
    few = write_reviews(tmp_path / "few.csv", count=5)
    assert list(found.heads) == ["0.0", "0.1", "1.0", "1.1"]
    assert found.rows == 3
    for label, one in found.heads.items():
        layer, head = label.split(".")
        assert (one.layer, str(one.head)) == (f"encoder.blocks.{layer}.attention", head)
        assert 0 < one.evenness <= 1
    assert main(["explain", str(run.folder.path), str(few), "--heads"]) == 0
    shown = capsys.readouterr().out
    assert "on 5 rows" in shown
    assert "of 4 heads have a name" in shown
    assert main(["explain", str(run.folder.path), str(few), "--heads", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in values["heads"]] == list(found.heads)


def test_rows_that_cannot_be_explained_are_left_out(run, monkeypatch):
    texts, original = [], LabelExplainer.subject

    def some(self, model, given, **options):
        texts.extend([] if given in texts else [given])
        if texts.index(given) != 1:
            raise GlassformerError("nothing was read")
        return original(self, model, given, **options)

    monkeypatch.setattr(LabelExplainer, "subject", some)
    found = run.heads.look(rows=3)
    assert (found.rows, len(found.heads), len(texts)) == (1, 4, 3)
    assert run.explainer.summary(method="attention", rows=3).found.rows == 1
    with pytest.raises(GlassformerError, match="nothing was read"):
        run.heads.look(rows=1)
    with pytest.raises(GlassformerError, match="nothing was read"):
        run.explainer.summary(method="attention", rows=1)


def test_ablations_are_compared_with_the_whole_model_on_the_same_rows(run, reviews, capsys):
    found = run.heads.ablate("0.1", "0.0,0.1,1.0,1.1", "1", data=reviews)
    assert found.as_values()["rows"] == 83
    whole = run.evaluate(reviews).scores["accuracy"]
    assert found.whole.score == whole
    assert set(found.without) == {"0.1", "0.0,0.1,1.0,1.1", "1"}
    for comparison in found.without.values():
        assert comparison.wins + comparison.losses + comparison.ties == 83
        assert comparison.difference.value == (comparison.wins - comparison.losses) / 83
    assert main(["explain", str(run.folder.path), str(reviews), "--ablate", "0.1"]) == 0
    shown = capsys.readouterr().out
    assert "With all heads, on 83 rows: accuracy" in shown
    assert "higher is better" in shown
    assert "head 0.1" in shown
    assert main(["explain", str(run.folder.path), "--ablate", "heads", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert list(values["without"]) == ["0.0", "0.1", "1.0", "1.1"]
    assert values["score"] == "accuracy"


def test_results_about_heads_show_themselves(run):
    found = run.heads.ablate("0.1", "1", "0.0,0.1")
    lines = repr(found).splitlines()
    assert lines[0].startswith("With all heads, on ")
    assert [line.split("  ")[0] for line in lines[2:]] == ["head 0.1", "layer 1", "heads 0.0,0.1"]
    assert "<th>change of accuracy</th>" in found._repr_html_()
    assert "<p>" in run.heads.look(rows=1)._repr_html_()


def test_heads_are_pruned_until_the_score_gets_worse(run, reviews, capsys):
    found = run.heads.prune(reviews, tolerance=1.0)
    assert found.heads == 4
    assert found.tolerance == pytest.approx(found.whole.score.value)
    sizes = [len(step.removed) for step in found.steps]
    assert sizes == list(range(1, len(sizes) + 1))
    kept = [step for step in found.steps if not step.worse]
    assert len(found.removed) == len(kept)
    assert main(["explain", str(run.folder.path), "--prune"]) == 0
    assert "of 4 heads can go together before the model is" in capsys.readouterr().out
    assert main(["explain", str(run.folder.path), "--prune", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["tolerance"] == pytest.approx(0.01 * values["whole"]["value"])


@pytest.mark.full
def test_the_heads_of_a_translator_are_those_of_both_its_sides(tmp_path):
    pairs = write_pairs(tmp_path / "pairs.tsv", 60)
    with quickly(), unchecked():
        run = api.train("translate", pairs, run=tmp_path / "run", quiet=True, **ONE_STEP)
        found = run.heads.look(rows=2)
        assert list(found.heads) == [
            *("encoder.0.0", "encoder.0.1", "decoder.0.0", "decoder.0.1", "cross.0.0", "cross.0.1")
        ]
        with pytest.raises(GlassformerError, match=r"of this model is 0 on these rows.*longer"):
            run.heads.ablate("cross.0", data=pairs)
    assert "previous" not in found.heads["cross.0.0"].shares


@pytest.mark.parametrize("suffix", [".html", ".json", ".svg"])
def test_a_study_is_written_as_its_name_says(run, suffix, tmp_path, capsys):
    path = tmp_path / f"heads{suffix}"
    assert main(["explain", str(run.folder.path), "--heads", "--out", str(path)]) == 0
    assert capsys.readouterr() == ("", f"wrote {path}\n")
    text = path.read_text(encoding="utf-8")
    if suffix == ".json":
        assert len(json.loads(text)["heads"]) == 4
    else:
        assert text.startswith({".html": "<!DOCTYPE html>", ".svg": "<?xml"}[suffix])
        assert suffix == ".svg" or "of 4 heads have a name" in text


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--ablate", "7.0"), "'7.0' is no head or layer of this model"),
        (("--heads", "--prune"), "--heads and --prune are separate studies; give one of them"),
        (("--prune", "--out", "why.gif"), "an explanation is written as .html, .json, .png"),
        (("--heads", "--unit", "word"), "--unit is for explaining an input; leave it out with --h"),
        (("--faithfulness", "--method", "rollout"), "--method is for explaining an input; leave"),
        (("--prune", "--nearest", "3"), "--nearest is for explaining an input; leave it out with"),
        ((), "nothing to explain; give a text, or --"),
    ],
)
def test_what_cannot_be_studied_is_refused_in_one_line(run, options, error, capsys):
    assert main(["explain", str(run.folder.path), *options]) == 1
    assert error in capsys.readouterr().err
