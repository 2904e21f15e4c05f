"""Runs of translators: resumed, compared, continued, with a curve, with back-translations."""

import json
import math

import pytest
import small_translator
from quick import quickly
from small_runs import same, weights
from small_translators import WRITING, translate, write_pairs

from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.runs import api
from glassformer.runs.learning_curve import Curve
from glassformer.tasks.translate.task import TranslateTask
from glassformer.training.weights import read_tensors

# What is tested here is how runs hang together; shapes are checked in tests/tasks.
pytestmark = pytest.mark.usefixtures("without_shape_hook")


@pytest.fixture(autouse=True)
def _quickly():
    with quickly():
        yield


@pytest.fixture
def data(tmp_path):
    return write_pairs(tmp_path / "pairs.tsv")


@pytest.fixture(scope="module")
def backward(tmp_path_factory):
    """A run of the other direction."""
    folder = tmp_path_factory.mktemp("backward")
    with quickly():
        translate(write_pairs(folder / "pairs.tsv", turned=True), folder / "run", steps=12)
    return folder / "run"


@pytest.fixture(scope="module")
def run_of_words(tmp_path_factory):
    """Pairs without a word in common, and a run that has learned a little of them."""
    folder = tmp_path_factory.mktemp("words")
    pairs = small_translator.write_pairs(folder / "pairs.tsv", 97)
    with quickly():
        translate(pairs, folder / "run", "train.optimiser.lr=1e-2", steps=60)
    return pairs, folder / "run"


def report_of(run):
    return json.loads((run / "report.json").read_text(encoding="utf-8"))


def tables_of(run):
    return {table["title"]: table for table in report_of(run)["tables"]}


def test_going_on_gives_the_same_bits(data, tmp_path, monkeypatch):
    often = ("train.validate_every=2", "train.save_every=1", "data.token_dropout=0.1")
    translate(data, tmp_path / "peace", *often, steps=4)

    def interrupted(self, model, batches):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TranslateTask, "score", interrupted)
        with pytest.raises(KeyboardInterrupt):
            translate(data, tmp_path / "torn", *often, steps=4)
    api.resume(tmp_path / "torn", quiet=True)
    assert same(weights(tmp_path / "torn"), weights(tmp_path / "peace"))
    assert report_of(tmp_path / "torn")["scores"] == report_of(tmp_path / "peace")["scores"]


def test_the_report_shows_rows_the_worst_of_them_and_lengths(data, tmp_path):
    run = translate(data, tmp_path / "run")
    tables = tables_of(tmp_path / "run")
    assert list(tables) == ["Some rows", "The worst rows", "By length"]
    samples = Samples.open(tmp_path / "run" / "data")
    sources, targets = samples.texts("test", "source"), samples.texts("test", "target")
    shown = tables["Some rows"]["rows"]
    assert {tuple(row[:2]) for row in shown} <= set(zip(sources, targets, strict=True))
    said = {source: run.predict(source).text for source, _, _ in shown}
    assert [row[2] for row in shown] == [said[row[0]] for row in shown]
    worst = [row[3] for row in tables["The worst rows"]["rows"]]
    assert worst == sorted(worst, reverse=True)
    assert sum(row[1] for row in tables["By length"]["rows"]) == len(sources)


def test_a_report_on_sentences_tells_how_to_repeat_its_scores(tmp_path):
    words = ["the", "red", "cat", "sees", "a", "dog", "under", "some", "old", "tree"]
    rows = [
        {
            "source": " ".join(words[(n + k) % 10] for k in range(7)) + f" {n}.",
            "target": " ".join(words[(n + 2 * k) % 10] for k in range(7)) + f" {n}.",
            "to": "de" if n % 2 else "fr",
        }
        for n in range(120)
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    run = translate(path, tmp_path / "run")
    report = report_of(tmp_path / "run")
    assert list(report["scores"]["this model"])[:3] == ["bleu", "chrf", "ter"]
    [signed] = [note for note in report["notes"] if note.startswith("bleu by sacreBLEU: ")]
    assert "tok:13a" in signed
    by_language = tables_of(tmp_path / "run")["By target language"]
    assert [row[0] for row in by_language["rows"]] == ["de", "fr"]
    assert signed in run.evaluate(path).as_values()["notes"]


def test_two_runs_are_compared_on_the_same_rows(data, tmp_path):
    run = translate(data, tmp_path / "run")
    found = run.evaluate(data, against=tmp_path / "run")
    assert found.comparison["exact"].ties == 97
    samples = Samples.open(tmp_path / "run" / "data")
    assert found.trained_on == len(samples.rows("train")) + len(samples.rows("valid"))
    assert found.as_values()["rows"] == 97


def test_a_run_goes_on_with_the_tokens_and_the_shape_of_another(data, tmp_path):
    translate(data, tmp_path / "first")
    more = write_pairs(tmp_path / "more.tsv", seed=2)
    settings = (*WRITING, "machine.threads=1")  # the widths come from the first run
    second = api.train(
        "translate",
        more,
        run=tmp_path / "second",
        from_=tmp_path / "first",
        steps=1,
        quiet=True,
        set=settings,
    )
    assert second.config.model.decoder.dim == second.config.model.encoder.dim == 16
    assert second.config.task.target.kind == "characters"
    assert same(read_tensors(second.folder.initial), weights(tmp_path / "first"))


def test_a_run_begins_with_an_encoder_that_has_read_texts(data, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(f"{n} abcdef fedcba" for n in range(60)), encoding="utf-8")
    stack = ("model.encoder.dim=16", "model.encoder.depth=1", "model.encoder.attention.heads=2")
    api.train("pretrain", texts, run=tmp_path / "reader", steps=2, quiet=True, set=stack)
    run = translate(data, tmp_path / "run", "model.share=false", from_=tmp_path / "reader")
    reader = api.load(tmp_path / "reader")
    assert run.task.pair.source.to_json() == reader.task.tokenizer.to_json()
    assert not run.task.pair.joint


def test_a_learning_curve_is_drawn_for_translators_too(tmp_path):
    data = write_pairs(tmp_path / "pairs.tsv", 120)
    translate(data, tmp_path / "run", curve=True)
    rows = tables_of(tmp_path / "run")["Learning curve"]["rows"]
    assert len(rows) == 4
    assert rows[-1][0] == len(Samples.open(tmp_path / "run" / "data").rows("train"))


def test_a_curve_of_bleu_counts_to_a_hundred():
    points = [(100, 10.0), (200, 20.0), (400, 28.0)]
    curve = Curve("bleu", True, points, 100.0)
    assert 28 < 100 - curve.doubled() < 40
    assert "twice the rows might give 3" in curve.sentence()
    assert Curve("bleu", True, [(1, 50.0), (2, 50.0)], 100.0).sentence().endswith("hardly help.")


# Back-translation


def test_texts_of_the_target_language_are_translated_back_and_learned_from(
    data, tmp_path, backward, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    plain = translate(data, tmp_path / "plain")
    samples = Samples.open(tmp_path / "plain" / "data")
    held_out = samples.texts("valid", "target")[0]
    lines = ["aabb", "fedc", "", held_out, "ccdd"]
    (tmp_path / "more.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = ("task.monolingual=more.txt", f"task.backward={backward}")
    run = translate(data, tmp_path / "run", *settings)
    after = Samples.open(tmp_path / "run" / "data")
    for part in ("valid", "test"):
        assert list(after.of(part)) == list(samples.of(part))
    count = len(samples.rows("train"))
    old, new = list(after.of("train"))[:count], list(after.of("train"))[count:]
    assert old == list(samples.of("train"))
    assert [one["target"] for one in new] == ["aabb", "fedc", "ccdd"]
    other = api.load(backward)
    assert [one["source"] for one in new] == [other.predict(one["target"]).text for one in new]
    assert new[1]["where"] == "more.txt row 2"
    assert run.folder.intake()["counts"]["train"] == count + 3
    notes = report_of(tmp_path / "run")["notes"]
    assert f"3 training rows were added, back-translations of more.txt by {backward}." in notes
    assert any("1 lines with a target of valid or test, first more.txt row 4" in n for n in notes)
    assert run.config.task.monolingual == ("more.txt",)
    (tmp_path / "more.txt").unlink()  # the run has all that it needs
    assert (
        api.load(tmp_path / "run").evaluate(data).scores.keys()
        == plain.evaluate(data).scores.keys()
    )


def test_what_cannot_be_translated_back_is_refused(data, tmp_path, backward):
    more = write_pairs(tmp_path / "more.tsv", 5)
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(f"{n} abc" for n in range(60)), encoding="utf-8")
    stack = ("model.encoder.dim=16", "model.encoder.depth=1", "model.encoder.attention.heads=2")
    api.train("pretrain", texts, run=tmp_path / "reader", steps=1, quiet=True, set=stack)
    wanted = {
        f"task.backward={tmp_path / 'nowhere'}": "nowhere: not found; check the path",
        f"task.backward={tmp_path / 'reader'}": "reader: is a run of pretrain; set task.backward",
    }
    for setting, complaint in wanted.items():
        with pytest.raises(GlassformerError, match=complaint):
            translate(data, tmp_path / "run", f"task.monolingual={more}", setting)
        assert not (tmp_path / "run").exists()
    tagged = tmp_path / "tagged.tsv"
    lines = [line + "\tde" for line in data.read_text(encoding="utf-8").splitlines()[1:]]
    tagged.write_text("\n".join(["source\ttarget\tto", *lines]), encoding="utf-8")
    with pytest.raises(GlassformerError, match="needs a single target language, but the data"):
        translate(
            tagged, tmp_path / "run", f"task.monolingual={texts}", f"task.backward={backward}"
        )


def test_a_backward_run_of_the_same_direction_is_refused(tmp_path, run_of_words):
    pairs, backwards = run_of_words
    (tmp_path / "more.txt").write_text("rot alt neu\n", encoding="utf-8")
    settings = (f"task.monolingual={tmp_path / 'more.txt'}", f"task.backward={backwards}")
    with pytest.raises(GlassformerError) as caught:
        translate(pairs, tmp_path / "run", *settings)
    assert str(caught.value) == (
        f"{backwards}: translates from the source language; set task.backward to a run that "
        f"translates from the target language to the source language"
    )
    assert not (tmp_path / "run").exists()
    turned = tmp_path / "turned.tsv"
    lines = pairs.read_text(encoding="utf-8").splitlines()[1:]
    turned.write_text("\n".join(["target\tsource", *lines]), encoding="utf-8")
    translate(turned, tmp_path / "run", *settings)


# Depth


@pytest.mark.full
@pytest.mark.parametrize("order", ["pre", "post"])
def test_six_and_six_layers_learn_in_either_order_with_what_is_assumed(order, tmp_path):
    deep = (f"order={order}", "depth=6", "dim=128", "attention.heads=4", "dropout=0")
    stacks = [f"model.{stack}.{setting}" for stack in ("encoder", "decoder") for setting in deep]
    others = ("data.batch_tokens=512", "task.label_smoothing=0", "train.validate_every=200")
    run = translate(
        write_pairs(tmp_path / "pairs.tsv"), tmp_path / "run", *stacks, *others, steps=120
    )
    report = json.loads((run.folder.path / "report.json").read_text(encoding="utf-8"))
    losses = [loss for _, loss in report["curves"]["training loss"]]
    knowing_letters_alone = 4 / 5 * math.log(6)
    assert losses[0] > knowing_letters_alone
    assert losses[-1] < 0.6 * knowing_letters_alone
