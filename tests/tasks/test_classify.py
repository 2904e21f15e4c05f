"""`classify` from a raw file to answers a person can use."""

import itertools
import json
import random

import numpy as np
import pytest
import torch
from small_jobs import everything, job_of, labelled, taught

from glassformer.config import STACK_NAMES
from glassformer.errors import GlassformerError
from glassformer.metrics.calibration import log_loss
from glassformer.runs.api import load, train
from glassformer.tasks.classify.predictor import TOGETHER, TextLabelPredictor
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.tasks.classify.task import ClassifyTask
from glassformer.tasks.shared.labels import Labels

COLOURS = ("red", "green", "blue")


def sentences(count, seed=0):
    """Texts whose label is the colour in them, wherever it stands."""
    rng = random.Random(seed)
    for n in range(count):
        words = rng.choices(("stone", "river", "cloud", "lamp", "seven"), k=rng.randrange(2, 7))
        words.insert(rng.randrange(len(words) + 1), COLOURS[n % 3])
        yield " ".join(words), COLOURS[n % 3]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on a small file, trained as a person would."""
    folder = tmp_path_factory.mktemp("classify")
    lines = [f"{text},{label}" for text, label in sentences(160)]
    (folder / "colours.csv").write_text("\n".join(["text,label", *lines]))
    small = ("dim=16", "depth=1", "attention.heads=2")
    return train(
        "classify",
        folder / "colours.csv",
        run=folder / "run",
        steps=60,
        pretrain=False,
        quiet=True,
        set=(
            *(f"model.encoder.{setting}" for setting in small),
            "train.optimiser.lr=0.02",
            "train.validate_every=60",
            "data.tokenizer.kind=words",
            "data.batch_tokens=512",
        ),
    )


def test_it_learns_a_rule_by_heart_from_a_file(run):
    answers = run.predict([text for text, _ in sentences(60, seed=1)])
    right = [a.text == label for a, (_, label) in zip(answers, sentences(60, seed=1), strict=True)]
    assert np.mean(right) > 0.95
    assert run.report["scores"]["this model"]["accuracy"]["value"] > 0.9
    best = run.predict("stone red river")
    assert best.text == best.details["label"] == "red"
    assert best.confidence == best.details["probabilities"]["red"] > 0.5
    assert sum(best.details["probabilities"].values()) == pytest.approx(1)


def test_a_loaded_run_says_the_same(run):
    texts = [text for text, _ in sentences(7, seed=2)]
    assert load(run.folder.path).predict(texts) == run.predict(texts)


def test_a_text_of_any_length_gets_an_answer_and_one_of_unknown_words_is_marked(run):
    for text in ("Ω 日本 🎬", "red " * 1000):
        found = run.predict(text)
        assert found.best in COLOURS
        assert found.unknown == (found.text is None) == ("red" not in text)


def test_an_empty_text_has_an_empty_answer_that_is_marked(run):
    first, second, third = run.predict(["", "red", "   "])
    assert (first.text, first.empty, first.confidence) == ("", True, 0.0)
    assert (second.text in COLOURS, second.empty) == (True, False)
    assert third == first


def test_the_next_likely_labels_are_alternatives(run):
    found = run.predict("stone red river", alternatives=2)
    others = found.details["alternatives"]
    chances = found.details["probabilities"]
    assert [one["text"] for one in others] == sorted(
        {*COLOURS} - {"red"}, key=lambda n: -chances[n]
    )
    assert [one["confidence"] for one in others] == [chances[one["text"]] for one in others]
    assert found.below[0].startswith(f"  or {others[0]['text']}\t0.")
    assert len(run.predict("stone red river", alternatives=1).below) == 1
    assert "alternatives" not in run.predict("stone red river").details
    with pytest.raises(GlassformerError, match="alternatives must be 0 or more, got -1"):
        run.predict("red", alternatives=-1)


def test_data_of_unseen_labels_alone_are_refused_with_their_row(run, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("text,label\na grey stone,grey\na pink stone,pink\n")
    with pytest.raises(GlassformerError) as refusal:
        run.evaluate(path)
    assert str(refusal.value) == (
        f"{path} row 1 (line 2): no row has a label that the model knows; found grey, pink; its "
        f"labels are blue, green, red; train on rows with these labels, or name the column with "
        f'columns="label=..."'
    )


def test_the_temperature_is_stored_and_makes_validation_no_worse(run):
    labels = Labels.load(run.folder.path / "labels.json")
    job = ClassifyTask(run.config, run.folder.path, run.folder.data)
    with torch.no_grad():
        found = job.answers(run.model, [everything(job, "valid")])
    before = log_loss(found.logits * labels.temperature, found.labels)
    assert labels.temperature != 1
    assert log_loss(found.logits, found.labels) <= before


def small_job(folder, count=24, **settings):
    held = [(text, label) for text, label in sentences(15, seed=3)]
    rows = labelled(*sentences(count)) + labelled(*held, split="valid")
    data = {"tokenizer": {"kind": "words"}} | settings.pop("data", {})
    return job_of("classify", folder, rows, data=data, **settings)


def test_calibration_never_raises_the_validation_loss_and_can_be_repeated(tmp_path):
    job = small_job(tmp_path)
    model = job.model().eval()
    with torch.no_grad():
        model.to_class.weight.mul_(40)
        raw = job.answers(model, [everything(job, "valid")])
        ClassifyReporter(job).calibrate(raw)
        warm = job.answers(model, [everything(job, "valid")])
        first = job.labels.temperature
        ClassifyReporter(job).calibrate(warm)
    assert first > 2, "the model was far too sure"
    assert log_loss(warm.logits, warm.labels) < 0.8 * log_loss(raw.logits, raw.labels)
    assert warm.right().tolist() == raw.right().tolist(), "no answer changes"
    assert job.labels.temperature == first, "to the last digit"
    stored = json.loads((tmp_path / "labels.json").read_text())
    assert stored["temperature"] == job.labels.temperature


def test_predictions_are_as_sure_as_the_temperature_allows(tmp_path):
    job = small_job(tmp_path)
    model = job.model().eval()
    with torch.no_grad():
        model.to_class.weight.mul_(40)
    before = next(TextLabelPredictor(job).predict(model, ["a red stone"]))
    with torch.no_grad():
        ClassifyReporter(job).calibrate(job.answers(model, [everything(job, "valid")]))
    after = next(TextLabelPredictor(job).predict(model, ["a red stone"]))
    logits = np.log(list(before.details["probabilities"].values())) / job.labels.temperature
    by_hand = np.exp(logits) / np.exp(logits).sum()
    assert list(after.details["probabilities"].values()) == pytest.approx(by_hand, abs=1e-5)


def test_answers_come_in_order_as_if_each_text_were_alone(tmp_path):
    job = small_job(tmp_path, task={"max_length": 6, "long": "windows"})
    model = taught(job, 5)
    texts = [text * (n % 4) for n, (text, _) in enumerate(sentences(2 * TOGETHER, seed=4))]
    together = list(TextLabelPredictor(job).predict(model, iter(texts)))
    some = range(0, len(texts), 37)
    alone = [next(TextLabelPredictor(job).predict(model, [texts[n]])) for n in some]
    for n, one in zip(some, alone, strict=True):
        assert together[n].details["probabilities"] == pytest.approx(
            one.details["probabilities"], abs=1e-5
        )
    assert len(together) == len(texts)
    assert list(TextLabelPredictor(job).predict(model, [])) == []


def test_predict_streams_from_inputs_that_never_end(tmp_path):
    job = small_job(tmp_path)
    model, given = job.model().eval(), itertools.count()
    answers = TextLabelPredictor(job).predict(
        model, (f"stone {next(given)}" for _ in itertools.count())
    )
    next(answers)
    assert next(given) == 1, "the first answer waits for the first text alone"
    assert torch.is_grad_enabled(), "between answers, the caller does as it likes"
    assert len(list(itertools.islice(answers, 300))) == 300
    assert next(given) < 300 + 2 * TOGETHER


@pytest.mark.parametrize("kind", STACK_NAMES)
def test_every_kind_of_encoder_learns_the_rule(tmp_path, kind):
    encoder = {"kind": kind, "convolution": {"width": 3}}
    data = {"batch_tokens": 256}
    job = small_job(tmp_path, 48, model={"encoder": encoder, "pool": "max"}, data=data)
    model = taught(job, 60, rate=2e-2)
    with torch.no_grad():
        found = job.score(model, [everything(job)])
    assert found["accuracy"] == 1
    assert found["macro_f1"] == 1
    assert found["loss"] < 0.3


def test_several_labels_are_learned_each_for_itself(tmp_path):
    texts = [
        " ".join(c for c, on in zip(COLOURS, bits, strict=True) if on) + " stone"
        for bits in itertools.product((0, 1), repeat=3)
    ]
    rows = [{"text": text, "label": [c for c in COLOURS if c in text]} for text in texts] * 2
    job = job_of(
        "classify", tmp_path, rows, data={"tokenizer": {"kind": "words"}}, model={"pool": "max"}
    )
    model = taught(job, 60, rate=2e-2)
    with torch.no_grad():
        assert job.score(model, [everything(job)])["accuracy"] == 1
    found = next(TextLabelPredictor(job).predict(model, ["blue red stone"]))
    assert found.details["labels"] == ["blue", "red"]
    assert found.text == "blue, red"
    chances = found.details["probabilities"]
    assert min(chances["blue"], chances["red"]) > 0.5 > chances["green"]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "settings", [{}, {"label_smoothing": 0.3}, {"class_weights": True}], ids=str
)
def test_the_loss_that_training_logs_is_what_validation_measures(tmp_path, several, settings):
    rows = labelled(*((text, label) for text, label in [*sentences(7), *sentences(3, seed=1)]))
    if several:
        rows = [row | {"label": [row["label"], "any"]} for row in rows]
    data = {"tokenizer": {"kind": "words"}}
    job = job_of("classify", tmp_path, rows, data=data, task=settings)
    model, batch = job.model().eval(), everything(job)
    with torch.no_grad():
        logged = job.loss(job.forward(model, batch), batch).logged
        measured = job.score(model, [batch])["loss"]
    assert float(logged.total / logged.count) == pytest.approx(measured, rel=1e-5)


def test_tokens_are_learned_from_the_training_part_alone(tmp_path):
    rows = labelled(
        *((f"{n} plain words", "ab"[n]) for n in (0, 1)), ("0 more", "a"), ("1 more", "b")
    )
    for split in ("valid", "test"):
        rows += labelled(*((f"secret {n}", "a") for n in range(9)), split=split)
    job = job_of("classify", tmp_path, rows, data={"tokenizer": {"kind": "words"}})
    [ids] = job.inputs.tokenizer.encode(["secret plain 1"])
    assert job.inputs.tokenizer.pieces(ids) == ["<unknown>", "plain", "1"]
    assert job.config.data.tokenizer.vocabulary == job.inputs.tokenizer.size == 4 + 5


@pytest.mark.parametrize(
    ("text", "kind"),
    [("Anna", "characters"), ("a sentence that is longer than most names", "words")],
)
def test_the_kind_of_tokens_follows_from_the_texts_and_is_written_down(tmp_path, text, kind):
    rows = labelled(*((f"{text} {n}", "ab"[n % 2]) for n in range(4)))
    settled = job_of("classify", tmp_path, rows).config.data.tokenizer
    assert settled.kind == kind
    assert settled.lowercase == (kind == "words")


def test_the_model_reaches_as_far_as_a_text_may_be(tmp_path):
    job = small_job(tmp_path, task={"max_length": 1031})
    assert job.config.model.encoder.max_length == 1031


def test_comparing_answers_says_which_is_better(tmp_path):
    job = small_job(tmp_path, 48, model={"pool": "max"})
    models = taught(job, 60, rate=2e-2), job.model().eval()
    with torch.no_grad():
        good, bad = (job.answers(model, [everything(job)]) for model in models)
    found = ClassifyReporter(job).compare(good, bad)["accuracy"]
    assert found.difference.value == pytest.approx(good.accuracy() - bad.accuracy())
    assert found.p_value < 0.01
    assert ClassifyReporter(job).scores(good)["accuracy"].value == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"long": "heads"}, "unknown task.long 'heads'; did you mean 'head'?"),
        ({"max_length": 1}, "task.max_length must be at least 2: a start and a token"),
        ({"label_smoothing": 1.0}, "task.label_smoothing must lie in [0, 1), got 1.0"),
        ({"rarest": 0}, "task.rarest must be at least 1, got 0"),
    ],
)
def test_wrong_settings_of_the_job_are_refused(tmp_path, settings, words):
    with pytest.raises(GlassformerError) as refusal:
        small_job(tmp_path, task=settings)
    assert str(refusal.value).startswith(words)
