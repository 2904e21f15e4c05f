"""Self-pretraining: tried, decided, told, and the same after any interruption."""

import json
import re
import tomllib
from contextlib import contextmanager

import pytest
from quick import quickly
from small_runs import learn, same, weights, write_reviews

from glassformer.errors import GlassformerError
from glassformer.runs import api, fit as fitting, pretraining
from glassformer.runs.folder import RunFolder
from glassformer.runs.pretraining import Trial
from glassformer.training.state import State
from glassformer.training.weights import read_tensors


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    monkeypatch.setattr(pretraining, "FEW", 1)
    with quickly():
        yield


@pytest.fixture
def data(tmp_path):
    return write_reviews(tmp_path / "reviews.csv")


def config_of(run):
    return tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))


def notes_of(run):
    """What the report says, but for the verdict and remarks that rows are few."""
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    few = "selected the model|scored rows|too few"
    notes = [note for note in report["notes"] if note not in report["verdict"]]
    return [note for note in notes if not re.search(few, note)]


def decided(monkeypatch, helps):
    monkeypatch.setattr(Trial, "helps", property(lambda trial: helps))


@contextmanager
def stopped_before(owner, name, call):
    """Someone presses Ctrl-C when this is called for the n-th time."""
    original, calls = getattr(owner, name), []

    def stop(*args, **options):
        calls.append(name)
        if len(calls) == call:
            raise KeyboardInterrupt
        return original(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, stop)
        yield


# The trial


@pytest.mark.parametrize(("helps", "decision"), [(True, "yes"), (False, "no")])
def test_the_trial_is_told_written_down_and_obeyed(
    helps, decision, data, tmp_path, monkeypatch, capsys
):
    decided(monkeypatch, helps)
    learn(data, tmp_path / "run", steps=4, pretrain=True, quiet=False)
    err = capsys.readouterr().err
    told = [
        line for line in err.splitlines() if line.startswith("Pretraining trial, equal compute")
    ]
    assert len(told) == 1
    assert told[0].endswith(f"the run {'uses' if helps else 'skips'} it.")
    assert "testing whether pretraining helps" in err
    assert notes_of(tmp_path / "run") == told
    assert config_of(tmp_path / "run")["pretrain"] == decision
    assert (tmp_path / "run" / "pretrain" / "model.safetensors").exists() == helps
    assert (tmp_path / "run" / "initial.safetensors").exists() == helps


@pytest.mark.parametrize(
    ("without", "pretrained", "p_value", "helps"),
    [(0.8, 0.9, 0.01, True), (0.8, 0.9, 0.3, False), (0.9, 0.8, 0.01, False)],
)
def test_only_a_gain_beyond_chance_helps(without, pretrained, p_value, helps):
    assert Trial(without, pretrained, p_value).helps == helps


def test_both_ways_of_the_trial_do_the_same_work(data, tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(
        pretraining, "run_through", lambda task, model, setup: done.append((task.name, setup.steps))
    )
    decided(monkeypatch, False)
    with stopped_before(api, "fit", 1), pytest.raises(KeyboardInterrupt):
        learn(data, tmp_path / "run", steps=300, pretrain=True)
    (alone, labels), (first, gaps), (then, rest) = done
    assert (alone, first, then) == ("classify", "pretrain", "classify")
    assert (labels, rest) == (60, 30)
    folder = RunFolder(tmp_path / "run")
    vocabulary = folder.config().data.tokenizer.vocabulary
    model = folder.open_task(folder.config(), folder.data).model()
    encoder = sum(weight.numel() for weight in model.encoder.parameters())
    assert gaps == round(30 * encoder / (encoder + 0.25 * vocabulary * 16))


SKIPPED = {
    "short texts": (0, (), "the texts are too short for it."),
    "no rows held out": (
        17,
        ("data.valid_share=0.0",),
        "there are no validation rows to test it on",
    ),
    "phrases": (
        17,
        ("model.frontend.kind=ngrams",),
        "the default CPU model reads n-grams, which cannot be masked",
    ),
}


@pytest.mark.parametrize("case", SKIPPED)
def test_where_it_cannot_help_it_is_not_tried_and_it_says_so(case, tmp_path, monkeypatch, capsys):
    length, settings, told = SKIPPED[case]

    def never(*_):
        raise AssertionError("it was tried")

    monkeypatch.setattr(pretraining, "try_both", never)
    data = write_reviews(tmp_path / "data.csv", length=length)
    learn(data, tmp_path / "run", *settings, pretrain=True, quiet=False)
    assert f"No pretraining: {told}" in capsys.readouterr().err
    assert told in notes_of(tmp_path / "run")[0]
    assert config_of(tmp_path / "run")["pretrain"] == "no"


@pytest.mark.parametrize(("fitting", "trial"), [(250, 10), (237, 0), (1000, 40)])
def test_a_time_budget_is_not_spent_on_a_trial_alone(fitting, trial, data, tmp_path, monkeypatch):
    tried = []

    def try_both(run, display, steps):
        tried.append(steps)
        return Trial(0.5, 0.4, 1.0)

    monkeypatch.setattr(pretraining, "steps_in", lambda *_: fitting)
    monkeypatch.setattr(pretraining, "try_both", try_both)
    with stopped_before(api, "fit", 1), pytest.raises(KeyboardInterrupt):
        learn(data, tmp_path / "run", steps=None, time=60, pretrain=True)
    assert tried == ([trial] if trial else [])
    if not trial:
        assert "too short" in pretraining.decision_note(RunFolder(tmp_path / "run"))[0]


def test_a_budget_of_compute_has_a_trial_too(data, tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(pretraining, "try_both", lambda *given: tried.append(given[-1]))
    with pytest.raises(AttributeError):  # no trial was held
        learn(data, tmp_path / "run", steps=None, flops=1e12, pretrain=True)
    assert tried[0] >= pretraining.LEAST


def test_no_pretrain_does_nothing_of_it(data, tmp_path, monkeypatch):
    def never(*_):
        raise AssertionError("it was done")

    for name in ("decide", "pretrain"):
        monkeypatch.setattr(pretraining, name, never)
    learn(data, tmp_path / "run", pretrain=False)
    assert config_of(tmp_path / "run")["pretrain"] == "no"
    assert notes_of(tmp_path / "run") == []
    there = {path.name for path in (tmp_path / "run").iterdir()}
    assert not there & {"pretrain", "pretraining.json", "initial.safetensors"}


# Learning the texts first


def test_all_members_of_an_ensemble_begin_with_what_one_model_learned(data, tmp_path):
    settings = ("pretrain=yes", "model.members=2")
    run = learn(data, tmp_path / "run", *settings, steps=2, pretrain=True)
    learned, initial = weights(tmp_path / "run" / "pretrain"), read_tensors(run.folder.initial)
    name = "encoder{}.blocks.0.attention.to_q.weight"
    for member in range(2):
        assert initial[name.format(f".members.{member}")].equal(learned[name.format("")])


def test_a_trial_gives_what_was_learned_to_all_members(data, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(pretraining, "run_through", lambda task, model, setup: seen.append(model))
    learn(data, tmp_path / "run", "model.members=2", steps=2, pretrain=True)
    _, before, after = seen
    learned = before.encoder.blocks[0].attention.to_q.weight
    assert all(m.blocks[0].attention.to_q.weight.equal(learned) for m in after.encoder.members)


def test_asked_for_it_begins_with_what_was_learned_without_a_trial(data, tmp_path, monkeypatch):
    def never(*_):
        raise AssertionError("it was tried")

    monkeypatch.setattr(pretraining, "try_both", never)
    settings = ("pretrain=yes", "train.optimiser.lr=1e-12", "train.save_every=5")
    learn(data, tmp_path / "run", *settings, steps=8, pretrain=True)
    inside = tmp_path / "run" / "pretrain"
    learned, initial = weights(inside), read_tensors(tmp_path / "run" / "initial.safetensors")
    shared = [name for name in initial if name in learned]
    assert {name.split(".")[0] for name in shared} == {"frontend", "encoder"}
    assert all(initial[name].equal(learned[name]) for name in shared)
    assert all(t.allclose(initial[n], atol=1e-6) for n, t in weights(tmp_path / "run").items())
    assert notes_of(tmp_path / "run") == ["Pretrained first, as requested."]
    assert config_of(inside)["train"]["save_every"] == 5


def test_a_mistake_in_the_settings_shows_before_the_texts_are_learned(data, tmp_path, monkeypatch):
    def never(*_):
        raise AssertionError("it was done")

    monkeypatch.setattr(api, "pretrain_first", never)
    for setting, told in (
        ('train.freeze=["encodr"]', "no parameter name starts with 'encodr'"),
        ("model.encoder.dim=17", "this model cannot be built"),
    ):
        with pytest.raises(GlassformerError, match=told):
            learn(data, tmp_path / "run", "pretrain=yes", setting, pretrain=True)
    assert list(tmp_path.iterdir()) == [data]


def test_steps_count_the_job_alone(data, tmp_path):
    learn(data, tmp_path / "run", "pretrain=yes", steps=5, pretrain=True)
    report = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    lines = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert report["facts"]["steps"].startswith("5 of 5, kept")
    assert json.loads(lines[-1])["step"] == 5
    assert config_of(tmp_path / "run")["train"]["steps"] == 5
    inside = config_of(tmp_path / "run" / "pretrain")
    assert inside["job"] == "pretrain"
    assert 5 < inside["train"]["steps"] <= 15


STAGES = [
    (pretraining, "try_both", 1),  # before the trial
    (pretraining, "run_through", 3),  # within it
    (pretraining, "pretrain", 1),  # decided
    (pretraining, "fit", 1),  # the run inside is settled
    (State, "save", 3),  # the run inside has checkpoints
    (fitting, "keep_weights", 1),  # it came to its end
    (pretraining, "start_from", 1),  # its model is kept
    (api, "fit", 1),  # what to begin with is kept
    (State, "save", 2),  # the job has a checkpoint
    (fitting, "keep_weights", 1),  # it came to its end
    (api, "report_on", 1),  # its model is kept
]


def test_stopped_between_any_two_stages_it_comes_to_the_same_end(data, tmp_path, monkeypatch):
    decided(monkeypatch, True)
    asked = {"steps": 4, "pretrain": True}
    learn(data, tmp_path / "peace", "train.save_every=1", **asked)
    with stopped_before(*STAGES[0]), pytest.raises(KeyboardInterrupt):
        learn(data, tmp_path / "stopped", "train.save_every=1", **asked)
    for stage in STAGES[1:]:
        with stopped_before(*stage), pytest.raises(KeyboardInterrupt):
            api.resume(tmp_path / "stopped", quiet=True)
    api.resume(tmp_path / "stopped", quiet=True)
    for part in ("", "pretrain"):
        first, second = (weights(tmp_path / name / part) for name in ("peace", "stopped"))
        assert same(first, second)
        assert config_of(tmp_path / "peace" / part) == config_of(tmp_path / "stopped" / part)
    names = [{path.name for path in (tmp_path / run).iterdir()} for run in ("peace", "stopped")]
    assert names[0] == names[1]
    assert notes_of(tmp_path / "peace") == notes_of(tmp_path / "stopped")
