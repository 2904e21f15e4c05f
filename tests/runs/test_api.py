"""train, resume and load in Python, and how a run shows itself."""

import json
import math
import shutil
from functools import partial

import pytest
from quick import quickly
from small_runs import learn, same, weights, write_reviews

import glassformer
from glassformer import GlassformerError, Run
from glassformer.runs import api
from glassformer.runs.checksums import known_checksums
from glassformer.runs.evaluation import Evaluation
from glassformer.runs.folder import reporter_of
from glassformer.runs.listing import list_runs_in
from glassformer.tasks.about import About
from glassformer.tasks.predictor import Prediction, refuse_foreign_options
from glassformer.training.machine import choose_machine

TEXTS = ["a great dull film", "the people said", "a warm town"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Data, and a run that learned them with everything: a baseline and TensorBoard, too."""
    folder = tmp_path_factory.mktemp("home")
    data = write_reviews(folder / "reviews.csv")
    write_reviews(folder / "test.csv", 31, seed=2)
    learn(data, folder / "run", "train.validate_every=10", "model.ngrams=no", steps=30)
    return folder


@pytest.fixture
def run(home):
    return glassformer.load(home / "run")


# Training


def test_train_gives_a_run_that_can_be_used_at_once(home, tmp_path):
    with quickly():
        made = glassformer.train(
            "classify",
            home / "reviews.csv",
            run=str(tmp_path / "run"),
            valid=home / "test.csv",
            columns="text=text,label=label",
            set="train.clip=0.5",
            size="tiny",
            epochs=1,
            pretrain=False,
            quiet=True,
        )
    assert isinstance(made, Run)
    assert made.config.data.valid == (str(home / "test.csv"),)
    assert made.config.data.columns == {"text": "text", "label": "label"}
    assert (made.config.train.clip, made.config.train.epochs) == (0.5, 1.0)
    assert made.predict("a great film").text in ("good", "bad")
    assert made.report["facts"]["command"].startswith(f"glassformer train classify {home}")


def test_quiet_says_nothing_and_otherwise_it_is_on_standard_error(home, tmp_path, capsys):
    with quickly():
        learn(home / "reviews.csv", tmp_path / "silent")
        assert capsys.readouterr() == ("", "")
        learn(home / "reviews.csv", tmp_path / "loud", quiet=False)
    out, err = capsys.readouterr()
    assert out == ""
    assert f"run folder: {tmp_path / 'loud'}\n" in err


def test_the_report_has_the_scores_of_a_baseline_on_the_same_rows(run):
    ours, theirs, *_ = run.report["scores"].values()
    us, them, *_ = run.report["scores"]
    assert us == "this model"
    assert them.startswith("n-grams (")
    assert ours.keys() == theirs.keys()
    titles = [table["title"] for table in run.report["tables"]]
    assert "Some rows" in titles
    page = (run.folder.path / "report.html").read_text(encoding="utf-8")
    assert "n-grams (" in page


def test_the_baseline_stays_in_the_run_and_predicts_as_it_was_scored(run):
    found = run.predict(TEXTS, baseline=True)
    assert {one.text for one in found} <= {"good", "bad"}
    assert run.predict(TEXTS[0], baseline=True).details == found[0].details
    task = run.folder.open_task(run.config, run.folder.data)
    scored = reporter_of(task).baseline("test").answers.probabilities()
    samples = [sample["text"] for sample in task.samples.of("test")]
    again = [one.details["probabilities"] for one in run.predict(samples, baseline=True)]
    assert [list(one.values()) for one in again] == pytest.approx(scored, abs=1e-5)
    assert {"baseline.json", "baseline.safetensors"} <= known_checksums(run.folder.path).keys()


def test_what_happened_is_written_line_by_line_and_for_tensorboard(run):
    lines = [json.loads(line) for line in run.folder.metrics.read_text().splitlines()]
    validated = [line["step"] for line in lines if "scores" in line]
    assert validated == [10, 20, 30]
    assert {"loss", "lr", "norm", "tokens_per_second"} <= lines[0].keys()
    assert list((run.folder.path / "board").glob("events.*"))
    assert "validation accuracy" in run.report["curves"]


def test_an_interrupted_run_goes_on_to_the_same_weights(home, tmp_path, monkeypatch, capsys):
    with quickly():
        learn(home / "reviews.csv", tmp_path / "peace", "train.save_every=2", steps=7)

        def stop(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("glassformer.runs.fit.keep_weights", stop)
            with pytest.raises(KeyboardInterrupt):
                learn(home / "reviews.csv", tmp_path / "stopped", "train.save_every=2", steps=7)
        with pytest.raises(GlassformerError, match="has no trained model"):
            glassformer.load(tmp_path / "stopped")
        done = glassformer.resume(tmp_path / "stopped")
    assert isinstance(done, Run)
    assert "resuming from step 7 of 7\n" in capsys.readouterr().err
    assert same(weights(tmp_path / "peace"), weights(tmp_path / "stopped"))
    assert done.report["facts"]["command"]


def test_an_error_after_a_checkpoint_keeps_what_was_learned(home, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise GlassformerError("no baseline today")

    monkeypatch.setattr(api, "report_on", fail)
    with quickly(), pytest.raises(GlassformerError, match="no baseline today"):
        learn(home / "reviews.csv", tmp_path / "run")
    assert (tmp_path / "run" / "checkpoints" / "latest").exists()


# Using


def test_one_text_gives_one_prediction_and_several_a_list(run):
    one = run.predict("a great and lovely film")
    assert isinstance(one, Prediction)
    assert one.text == "good"
    several = run.predict(["a great and lovely film", "", "such a dull and awful story"])
    assert [type(found) for found in several] == [Prediction] * 3
    assert several[0].confidence == pytest.approx(one.confidence, abs=1e-4)
    assert several[2].text == "bad"
    assert run.predict([]) == []


@pytest.mark.parametrize("inputs", [[1], [b"x"], ["fine", 2.5], None, 3, {"text": "a great film"}])
def test_what_is_no_text_is_refused_in_words(run, inputs, without_shape_hook):
    with pytest.raises(GlassformerError, match="predict takes a text or a list of texts, got"):
        run.predict(inputs)


def test_what_is_no_option_or_no_path_is_refused_in_words(run, home, without_shape_hook):
    with pytest.raises(GlassformerError, match="no option align, only alternatives; leave it out"):
        run.predict("a film", align=True)
    with pytest.raises(GlassformerError, match="listen has no options; leave out align"):
        refuse_foreign_options(About(name="listen", summary="", job=""), {"align": True})
    for wrong in (glassformer.load, glassformer.resume):
        with pytest.raises(GlassformerError, match="a run must be a path, got None"):
            wrong(None)
    with pytest.raises(GlassformerError, match="a run must be a path, got 3"):
        run.evaluate(home / "test.csv", against=3)
    with pytest.raises(GlassformerError, match="run must be a path, got 3"):
        glassformer.train("classify", home / "test.csv", run=3)


def test_columns_are_named_alike_in_training_and_in_evaluation(run, tmp_path, without_shape_hook):
    data, rows = tmp_path / "other.csv", [("a great film", "good"), ("a dull film", "bad")]
    lines = [f"{number},{text},{label}" for number, (text, label) in enumerate(rows * 9)]
    data.write_text("\n".join(["text,a,label", *lines]), encoding="utf-8")
    by_words, by_values = (
        run.evaluate(data, columns=named).as_values() for named in ("text=a", {"text": "a"})
    )
    assert by_words == by_values != run.evaluate(data).as_values()
    for verb in (run.evaluate, partial(glassformer.train, "classify")):
        with pytest.raises(GlassformerError, match="columns must map roles to columns"):
            verb(data, columns=["text"])


def test_another_run_may_be_given_by_its_path(run, home):
    found = run.evaluate(home / "test.csv", against=home / "run")
    assert found.comparison["accuracy"].p_value == 1


def test_evaluate_gives_scores_the_rows_and_the_comparison(run, home):
    found = run.evaluate(home / "test.csv", against=run)
    assert isinstance(found, Evaluation)
    assert found.scores["accuracy"].value > 0.9
    assert sum(found.ingest.counts.values()) == 31
    assert found.comparison["accuracy"].p_value == 1
    assert run.evaluate(home / "test.csv").comparison is None


def test_confidence_is_calibrated_and_the_temperature_is_kept_in_the_run(home, tmp_path):
    """Logits are divided by it: without it, the model is surer by that factor."""
    shutil.copytree(home / "run", tmp_path / "run")
    path = tmp_path / "run" / "labels.json"
    labels = json.loads(path.read_text(encoding="utf-8"))
    assert labels["temperature"] != 1.0
    path.write_text(json.dumps(labels | {"temperature": 1.0}), encoding="utf-8")
    (tmp_path / "run" / "checksums.json").unlink()
    calm, raw = (
        [math.log(p.confidence / (1 - p.confidence)) for p in glassformer.load(run).predict(TEXTS)]
        for run in (home / "run", tmp_path / "run")
    )
    assert [labels["temperature"] * logit for logit in calm] == pytest.approx(raw, rel=1e-3)


def test_a_copied_run_works_elsewhere_without_its_data(home, tmp_path):
    with quickly():
        data = write_reviews(tmp_path / "reviews.csv")
        learn(data, tmp_path / "first" / "run")
    before = glassformer.load(tmp_path / "first" / "run").predict("a great film")
    shutil.copytree(tmp_path / "first" / "run", tmp_path / "far" / "away")
    shutil.rmtree(tmp_path / "first")
    data.unlink()
    moved = glassformer.load(tmp_path / "far" / "away")
    assert moved.predict("a great film") == before
    assert moved.evaluate(home / "test.csv").as_values()["rows"] == 31
    with quickly():
        again = learn(home / "reviews.csv", tmp_path / "next", from_=tmp_path / "far" / "away")
    assert again.config.origin == str(tmp_path / "far" / "away")


# Showing itself


def test_a_run_says_what_it_is_and_how_good(run):
    said = repr(run)
    assert said.startswith(f"Run('{run.folder.path}', classify: accuracy ")
    assert "macro_f1 " in said


def test_in_a_notebook_a_run_is_a_table_beside_the_baseline(run):
    page = run._repr_html_()
    assert page.count("<tr>") == 1 + len(run.report["scores"])
    assert "<th>accuracy</th>" in page
    assert "<td>this model</td>" in page
    assert "n-grams" in page


def test_scores_are_written_as_on_pages_and_may_be_no_numbers(home, tmp_path):
    shutil.copytree(home / "run", tmp_path / "run")
    (tmp_path / "run" / "checksums.json").unlink()
    report = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    nothing = {"value": None, "low": None, "high": None}
    bleu = {"value": 31.234, "low": 30.0, "high": 32.0}
    for scores, said, cell in [
        ({"bleu": bleu}, "bleu 31.2", "31.2 [30.0, 32.0]"),
        ({"loss": nothing}, "loss –", "<td>–</td>"),
    ]:
        report["scores"] = {"this model": scores}
        (tmp_path / "run" / "report.json").write_text(json.dumps(report), encoding="utf-8")
        run = glassformer.load(tmp_path / "run")
        assert repr(run).endswith(f": {said})")
        assert cell in run._repr_html_()
        [listed] = list_runs_in(tmp_path)
        assert listed.score == said


def test_a_run_stays_on_the_device_that_was_asked_for(home, tmp_path, monkeypatch):
    devices = []

    def noted(config):
        devices.append(config.device)
        return choose_machine(config)

    monkeypatch.setattr("glassformer.runs.run.choose_machine", noted)
    with quickly():
        learn(home / "reviews.csv", tmp_path / "run", device="cpu")
    glassformer.load(home / "run", device="cpu").evaluate(home / "test.csv", against=home / "run")
    assert devices == ["cpu", "cpu", "cpu"]


def test_nothing_in_a_run_can_become_part_of_a_page(home, tmp_path):
    odd = tmp_path / "<script>alert(1)<" / "b>"
    shutil.copytree(home / "run", odd)
    (odd / "checksums.json").unlink()
    report = json.loads((odd / "report.json").read_text(encoding="utf-8"))
    report["scores"] = {"<i>x": {"<b>": {"value": 1.0, "low": 0.5, "high": 1.0}}}
    (odd / "report.json").write_text(json.dumps(report), encoding="utf-8")
    page = glassformer.load(odd)._repr_html_()
    assert "<script" not in page
    assert "<i>" not in page
    assert "<b>" not in page.removeprefix("<b>")
    assert "&lt;script&gt;alert(1)&lt;" in page


def test_a_run_without_a_report_still_shows_itself(home, tmp_path):
    shutil.copytree(home / "run", tmp_path / "run")
    (tmp_path / "run" / "report.json").unlink()
    run = glassformer.load(tmp_path / "run")
    assert repr(run) == f"Run('{tmp_path / 'run'}', classify)"
    assert str(tmp_path / "run") in run._repr_html_()


def test_a_path_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(GlassformerError, match="not found; check the path"):
        glassformer.load(tmp_path / "none")
    with pytest.raises(GlassformerError, match="not a run folder"):
        glassformer.load(tmp_path)
