"""A classifier with n-grams: how it is trained, reported on, evaluated and used."""

import json
import random
import re
import shutil

import numpy as np
import pytest
import torch

import glassformer
from glassformer.errors import GlassformerError
from glassformer.runs import api
from glassformer.runs.folds import Fold, pooled_parts
from glassformer.runs.listing import list_runs_in
from glassformer.runs.report import OURS
from glassformer.tasks.classify import contributions, reporter
from glassformer.tasks.classify.blend import Blend, NgramPart
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.tasks.shared import ngrams
from glassformer.tasks.shared.label_answers import ClassAnswers

ALONE = "Transformer alone"
TINY = {"model.encoder.dim": 8, "model.encoder.depth": 1, "model.encoder.attention.heads": 2}
SHARES = {"data__valid_share": 0.0, "data__test_share": 0.0}  # splits are given
WORDS = {"good": ("great", "lovely", "warm"), "bad": ("dull", "weak", "slow")}


def reviews(count=301, *, several=False):
    """Rows whose label follows from two words of ten; `dog` is a second label if there may be."""
    rng = random.Random(0)
    for number in range(count):
        label = ("good", "bad")[number % 2]
        words = [*rng.choices(("the", "film", "dog", "town"), k=8), *rng.choices(WORDS[label], k=2)]
        labels = [label, *(["dog"] if "dog" in words else [])]
        text = " ".join([*words, str(number)])
        yield {"text": text, "label": labels if several else label}


def train(folder, rows, *, quiet=True, **settings):
    settings = TINY | {name.replace("__", "."): value for name, value in settings.items()}
    options = {"steps": 3, "pretrain": False, "device": "cpu", "quiet": quiet}
    return glassformer.train("classify", rows, run=folder / "run", set=settings, **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tmp_path_factory.mktemp("both"), list(reviews()))


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    settings = {"task__class_weights": True, "model__ngrams": "yes"}
    return train(tmp_path_factory.mktemp("several"), list(reviews(several=True)), **settings)


def test_the_report_has_three_systems_and_says_why(run):
    report = json.loads((run.folder.path / "report.json").read_text())
    ours, baseline, alone, constant = report["scores"]
    assert constant.startswith("always the most frequent label (")
    assert (ours, alone) == (OURS, ALONE)
    assert baseline.startswith("n-grams (")
    assert report["scores"][ours]["accuracy"]["value"] > 0.9
    assert report["scores"][alone]["accuracy"]["value"] < 0.8
    assert any("Predictions come from" in note for note in report["notes"])
    tables = {table["title"]: table["rows"] for table in report["tables"]}
    assert f"{OURS} against {ALONE}" in tables
    cases = {name: counts for name, *counts in tables["What the parts mend for each other"]}
    assert sum(rows for rows, _ in cases.values()) == sum(row[-1] for row in tables["By class"])
    assert cases["only n-grams alone right"][1] > 0
    [first, *_] = tables["Rows that one part mended for the other"]
    _, label, model, grams, together = first
    assert label == grams == together != model


def test_a_prediction_tells_what_each_part_contributed(run):
    found = run.predict("a great and lovely film").as_values()
    parts, names = found["parts"], list(found["probabilities"])
    logits = np.array([parts["model"][name] + parts["ngrams"][name] for name in names])
    chances = np.exp(logits) / np.exp(logits).sum()
    assert chances == pytest.approx(list(found["probabilities"].values()), abs=1e-5)
    assert found["prediction"] == "good"
    strongest = found["ngrams"][0]
    assert strongest["adds"] > 0
    assert {"lovely", "great"} & {one["ngram"] for one in found["ngrams"]}
    assert {one["unit"] for one in found["ngrams"]} <= {"word", "character"}


def test_it_predicts_without_scikit_learn_and_one_by_one_as_all_at_once(run, monkeypatch):
    monkeypatch.setattr(ngrams, "import_module", None)
    loaded, texts = glassformer.load(run.folder.path), [row["text"] for row in reviews(29)]
    together = [one.confidence for one in loaded.predict(texts)]
    assert together == pytest.approx([loaded.predict(text).confidence for text in texts], abs=1e-5)


def test_evaluation_scores_both_parts_together(run):
    found = run.evaluate(list(reviews(97)))
    assert found.scores["accuracy"].value > 0.95


def test_several_labels_and_class_weights_have_ngrams_as_well(several):
    assert several.predict("the lovely dog was warm").details["labels"] == ["dog", "good"]
    found = several.predict("a dull town").as_values()
    logits = [found["parts"]["model"][n] + found["parts"]["ngrams"][n] for n in ("bad", "dog")]
    chances = [found["probabilities"][name] for name in ("bad", "dog")]
    assert 1 / (1 + np.exp(-np.array(logits))) == pytest.approx(chances, abs=1e-5)


def test_what_parts_contributed_is_worked_out_when_somebody_looks(run, monkeypatch):
    looked = []
    found = contributions.contributions
    monkeypatch.setattr(contributions, "contributions", lambda *a: looked.append(1) or found(*a))
    some = run.predict(["the great film", "a dull plot"])
    assert [one.details["probabilities"].keys() for one in some] == [{"good", "bad"}] * 2
    assert not looked
    assert [*some[1].details] == ["label", "probabilities", "parts", "ngrams"]
    assert len(some[0].details) == 4 == len(some[0].as_values()) - 2
    assert looked == [1]  # for both


def test_a_plan_tells_how_large_they_may_become(run):
    options = {"steps": 3, "pretrain": False, "device": "cpu", "quiet": True, "set": TINY}
    found = glassformer.plan("classify", list(reviews()), **options).notes
    [note] = [note for note in found if "n-grams" in note]
    bound = int(re.search(r"at most about ([\d,]+) parameters", note)[1].replace(",", ""))
    weights = run.folder.open_task(run.config, None).stored.weights.size
    assert weights <= bound <= 5 * weights
    options["set"] = TINY | {"model.ngrams": "no"}
    assert "n-grams" not in repr(glassformer.plan("classify", list(reviews(61)), **options).notes)


def test_an_explanation_is_of_the_label_that_both_parts_predict(run):
    for row in reviews(5):  # the Transformer alone has the same label for all of them
        found = run.explain(row["text"], method="ngrams")
        assert found.answer == run.predict(row["text"]).text == row["label"]
    alone = "N-grams alone make the prediction: only occlusion and `ngrams` explain it."
    shared = "N-grams are part of the model: occlusion explains the whole of it"
    assert found.notes[-1].startswith(shared if run.task.blend.model else alone)


@pytest.mark.parametrize(
    ("held_out", "most", "refit", "learned"),
    [
        (True, 121, "none", True),
        (True, 120, "none", False),
        (True, 121, False, False),  # as for a comparison on validation rows
        (False, 121, "none", False),
    ],
)
def test_they_learn_from_validation_rows_unless_these_are_scored_or_add_little(
    tmp_path, held_out, most, refit, learned, monkeypatch
):
    monkeypatch.setattr(reporter, "MOST_REFITTED", most)
    run = train(tmp_path, weather(held_out), model__ngrams="yes", train__refit=refit, **SHARES)
    assert run.task.stored.knows("sunny") == learned
    told = "the network the training rows alone" in repr(run.report["notes"])
    assert told == learned


def weather(held_out=True):
    """Rows in splits; only validation rows have the words `sunny` and `rainy`."""
    rows = [{**row, "split": "train"} for row in reviews(121)]
    for word, label in (("sunny", "good"), ("rainy", "bad")):
        rows += [{"text": f"{word} {n}", "label": label, "split": "valid"} for n in range(20)]
    return rows + [{**row, "split": "test"} for row in reviews(7)] * held_out


def test_n_grams_alone_are_not_compared_with_themselves(tmp_path):
    run = train(tmp_path, list(reviews(43)))  # so few that n-grams answer
    assert run.task.blend.model == 0
    notes = run.report["notes"]
    assert any(note.startswith("The n-grams alone were best on the valid") for note in notes[:2])
    assert "the baseline (n-grams)" not in repr(notes)


def test_a_baseline_learns_validation_rows_where_the_network_does(tmp_path):
    run = train(tmp_path, weather(), model__ngrams="no", train__refit=True, **SHARES)
    assert run.task.stored.knows("sunny")
    assert "the network the training rows alone" not in repr(run.report["notes"])


def test_occlusion_leaves_words_out_of_both_parts(run):
    texts = ("the great film was warm", "the film was warm")
    subject = run.explainer.job.subject(run.model, texts[0], unit="word")
    kept = torch.ones(2, len(subject.pieces), dtype=torch.bool)
    kept[1, 1] = False
    for text, scores in zip(texts, subject.scores_of(kept), strict=True):
        expected = run.predict(text).details["probabilities"]
        there = [expected[target.text] for target in subject.targets]
        assert scores.sigmoid().tolist() == pytest.approx(there, abs=1e-5)
    assert torch.allclose(subject.scores(subject.model)[0], subject.scores_of(kept)[0], atol=1e-4)


def test_a_run_without_them_has_no_parts(tmp_path):
    run = train(tmp_path, list(reviews(61)), model__ngrams="no")
    assert not (run.folder.path / "ngrams.json").exists()
    assert list(json.loads((run.folder.path / "report.json").read_text())["scores"])[3:] == []
    assert "parts" not in run.predict("great").as_values()


def test_ngrams_that_cannot_be_fitted_are_refused_before_training(tmp_path, monkeypatch):
    asked = {"model__ngrams": "yes"}
    with pytest.raises(GlassformerError, match="ngrams = yes needs validation rows"):
        train(tmp_path, list(reviews(61)), data__valid_share=0.0, **asked)
    for wrong, written in (("maybe", "maybe"), ("Auto", "Auto"), (True, "true"), (False, "false")):
        told = f"unknown ngrams '{written}'; .*the choices are auto, no, yes"
        with pytest.raises(GlassformerError, match=f"(?i){told}"):
            train(tmp_path, list(reviews(61)), model__ngrams=wrong)

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(ngrams, "import_module", missing)
    with pytest.raises(GlassformerError, match=r"model\.ngrams = yes needs scikit-learn, which"):
        train(tmp_path, list(reviews(61)), **asked)
    run = train(tmp_path, list(reviews(61)))
    assert "parts" not in run.predict("great").as_values()
    assert any(note.startswith("No n-grams: they need scik") for note in run.report["notes"])


def test_without_validation_rows_there_are_none_and_all_say_so(tmp_path, capsys):
    rows, told = list(reviews(61)), "No n-grams: there are no validation rows to weigh them; give "
    run = train(tmp_path, rows, data__valid_share=0.0, quiet=False)
    assert capsys.readouterr().err.count(told) == 1
    assert [told in note for note in run.report["notes"]].count(True) == 1
    for settings, words in (
        ({"data.valid_share": 0.0}, told),
        ({"model.ngrams": "yes"}, "Not included: n-grams: at most about"),
        ({}, "Not included: n-grams, if they help on the validation rows: at most about"),
    ):
        options = {"steps": 3, "pretrain": False, "device": "cpu", "quiet": True}
        found = glassformer.plan("classify", rows, set=TINY | settings, **options).notes
        assert sum(note.startswith(words) for note in found) == 1


@pytest.mark.parametrize("file", ["baseline.json", "ngrams.json"])
def test_a_run_whose_ngrams_are_gone_is_refused(run, tmp_path, file):
    shutil.copytree(run.folder.path, tmp_path / "run")
    (tmp_path / "run" / file).unlink()
    with pytest.raises(GlassformerError, match="the files of its n-grams are gone; copy the run"):
        glassformer.load(tmp_path / "run").predict("great")


class Parts(ClassifyReporter):
    """A reporter of no task."""

    def __init__(self):
        pass

    def parts(self, answers):
        return {} if answers.ngrams is None else {ALONE: answers.without_ngrams()}


def test_a_fold_without_ngrams_counts_as_it_is():
    labels, blend = np.array([0, 1]), Blend(model=1.0, ngrams=1.0, kept=True, sentence="")
    logits = np.array([[2.0, 1.0], [1.0, 3.0]], dtype=np.float32)
    both = ClassAnswers(3 * logits, labels, ngrams=NgramPart(-3 * logits, blend))
    answers = [ClassAnswers(logits, labels), both]
    pooled = pooled_parts([Fold(Parts(), [], one, [], None, []) for one in answers])[ALONE]
    assert pooled.logits.tolist() == [*logits.tolist(), *(3 * logits).tolist()]
    assert (both.logits == 0).all()


# A run that n-grams alone answer for


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Of so few validation rows that they cannot decide."""
    return train(tmp_path_factory.mktemp("alone"), list(reviews(61)))


def test_where_ngrams_alone_answer_the_network_is_not_kept(alone, tmp_path, monkeypatch):
    assert not alone.folder.keeps_network
    there = {path.name for path in alone.folder.path.iterdir()}
    assert not there & {"checkpoints", "refit"}
    assert alone.folder.model.stat().st_size < 1000
    with monkeypatch.context() as patch:
        patch.setattr(api, "drop_unneeded", lambda *_: None)  # as earlier versions left it
        whole = train(tmp_path, list(reviews(61)))
    assert whole.folder.keeps_network
    texts = [row["text"] for row in reviews(5)]
    found = alone.predict(texts)
    for others in (whole.predict(texts), alone.predict(texts, baseline=True)):
        assert [one.text for one in found] == [one.text for one in others]
        sure = [one.confidence for one in others]
        assert [one.confidence for one in found] == pytest.approx(sure, abs=1e-6)
    assert [one.text for one in found] == [row["label"] for row in reviews(5)]


def test_a_run_without_its_network_is_finished_and_whole(alone):
    [listed] = list_runs_in(alone.folder.path)
    assert listed.state == "finished"
    with pytest.raises(GlassformerError, match="already finished"):
        glassformer.resume(alone.folder.path, quiet=True)
    rows = list(reviews(20))
    assert alone.evaluate(rows).scores["accuracy"].value == 1


def test_what_needs_the_network_says_that_it_was_not_kept(alone, tmp_path):
    found = alone.explain(next(iter(reviews()))["text"])
    assert found.method in ("occlusion", "ngrams")
    assert "The run did not keep its network, which takes no part." in found.notes
    assert found.attention == ()
    for method in ("rollout", "integrated_gradients"):
        with pytest.raises(GlassformerError, match=f"{method} looks inside it: choose ngrams, occ"):
            alone.explain("a film", method=method)
    with pytest.raises(GlassformerError, match=r"its network was not kept; .* it has no heads"):
        alone.heads  # noqa: B018
    with pytest.raises(GlassformerError, match="which this run did not keep"):
        alone.predictor.embed(alone.model, ["a film"])
    with pytest.raises(GlassformerError, match=r"its network was not kept; .* start from another"):
        glassformer.train(
            "classify", list(reviews(61)), run=tmp_path / "x", from_=alone.folder.path, steps=1
        )


def test_a_second_training_is_left_out_where_ngrams_alone_answer(tmp_path, capsys):
    train(tmp_path, list(reviews(61)), train__refit=True, quiet=False)
    told = capsys.readouterr().err
    assert "no second training on all rows: n-grams alone make the predictions" in told
    assert "n-grams alone answer, so the network is not kept" in told
