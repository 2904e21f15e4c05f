"""Rows without labels: pretraining reads them, and so does consistency training."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_recordings import WORDS, record

import glassformer
from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.runs.request import TrainRequest
from glassformer.tasks.shared.losses import IGNORED

TINY = {"model.encoder.dim": 8, "model.encoder.depth": 1, "model.encoder.attention.heads": 2}
ROWS = [
    {"text": f"a {word} film in town {n}", "label": word}
    for n in range(30)
    for word in ("good", "bad")
]


def options(folder, **more):
    return {
        **{"run": folder / "run", "steps": 2, "device": "cpu", "quiet": True},
        **{"set": TINY | {"pretrain": "yes", "model.ngrams": "no"}},
        **more,
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unlabelled")
    test = [{"text": "a film nobody saw before", "label": "good"}, *ROWS[:2]]
    texts = [{"review": f"more of the warm town {n}"} for n in range(23)]
    texts += [{"review": "A film nobody  saw before"}, {"review": " "}]
    (folder / "texts.jsonl").write_text("\n".join(map(json.dumps, texts)))
    given = {"unlabelled": folder / "texts.jsonl", "test": test}
    return glassformer.train("classify", ROWS[2:], **options(folder, **given))


def test_pretraining_reads_them_beside_the_training_rows(run):
    labelled = Samples.open(run.folder.data)
    read = Samples.open(run.folder.pretrain.data)
    texts = [sample["text"] for sample in read.of("train")]
    assert len(texts) == len(labelled.rows("train")) + 23
    assert "more of the warm town 7" in texts
    assert len(read.rows("valid")) == len(labelled.rows("valid"))
    assert len(
        run.folder.pretrain.open_task(run.folder.pretrain.config(), read.folder).tokens.lengths
    )


def test_what_is_held_out_is_not_among_them(run):
    read = Samples.open(run.folder.pretrain.data)
    assert not any("nobody" in sample["text"] for sample in read)
    assert "nobody" in next(Samples.open(run.folder.data).of("test"))["text"]


def test_they_are_told_and_counted(tmp_path, capsys):
    texts = [{"text": "one more"}, {"text": ROWS[0]["text"]}, {"text": ""}]
    more = {"unlabelled": texts, "test": ROWS[:1], "quiet": False}
    glassformer.train("classify", ROWS[1:], **options(tmp_path, **more))
    shown = capsys.readouterr().err
    assert "unlabelled rows: 1" in shown
    assert "left out: 1 unlabelled rows with empty text" in shown
    assert "left out: 1 unlabelled row that" in shown


def test_texts_that_nothing_reads_are_told_of(tmp_path, capsys):
    more = {"unlabelled": [{"text": "one more"}], "test": ROWS[:1], "quiet": False}
    more["set"] = TINY | {"model.ngrams": "no"}
    glassformer.train("classify", ROWS[1:], **options(tmp_path, **more))
    assert "The unlabelled texts take no part." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("job", "more", "message"),
    [
        ("classify", {"pretrain": False}, "unlabelled is for pretraining, which"),
        ("generate", {}, "unlabelled: generate has no pretraining stage, only classify"),
        (
            "classify",
            {"settings": ("model.frontend.kind=ngrams",)},
            "reads n-grams, which cannot be masked",
        ),
    ],
)
def test_they_are_refused_where_nothing_would_read_them(job, more, message):
    request = TrainRequest(job=job, data=("rows.csv",), unlabelled=("texts.csv",), **more)
    with pytest.raises(GlassformerError, match=message):
        request.resolve()
    assert "--unlabelled texts.csv" in request.command()


def test_texts_are_of_no_use_to_a_classifier_of_recordings(tmp_path):
    rows = record(tmp_path / "sounds", WORDS * 4)
    table = [{"path": row["path"], "label": row["text"][0]} for row in rows]
    given = {"unlabelled": [{"text": "more of the town"}], "set": TINY}
    with pytest.raises(GlassformerError, match=r"brings rows with a text, but those of .* none"):
        glassformer.train("classify", table, **options(tmp_path, **given))


def test_a_file_that_cannot_be_read_leaves_nothing_behind(tmp_path):
    with pytest.raises(GlassformerError, match=r"nowhere\.csv: not found"):
        glassformer.train(
            "classify", ROWS, **options(tmp_path, unlabelled=tmp_path / "nowhere.csv")
        )
    assert not (tmp_path / "run").exists()
    assert not any(tmp_path.iterdir())


def consistent_task(run):
    """The task of the run as if it had been trained with R-Drop."""
    config = run.config
    regularise = replace(config.train.regularise, r_drop=1.0)
    config = replace(config, train=replace(config.train, regularise=regularise))
    return run.folder.open_task(config, run.folder.data)


def test_each_training_row_brings_one_along_where_two_views_are_compared(run):
    task, rows = consistent_task(run), np.arange(5)
    plain = run.folder.open_task(run.config, run.folder.data)
    first, again, later = (task.batch("train", rows, epoch) for epoch in (0, 0, 1))
    assert first.labels[5:].eq(IGNORED).all()
    assert len(first.labels) == 10
    assert first.labels[:5].equal(plain.batch("train", rows, 0).labels)
    assert first.ids.equal(again.ids)
    assert not first.ids.equal(later.ids)
    texts = [task.tokenize(task.samples[n]["text"]) for n in task.samples.rows("train")[:5]]
    shown = [task.reader.pieces(row.tolist()) for row in first.ids]
    assert [row[1 : 1 + len(text)] for row, text in zip(shown, texts, strict=False)] == texts
    assert not any(row[1] == texts[0][0] for row in shown[5:])  # "a", with which no other begins
    assert (task.lengths("train") > plain.lengths("train")).all()


def test_they_are_asked_for_agreement_and_for_no_label(run):
    task, rows = consistent_task(run), np.arange(5)
    batch = task.batch("train", rows, 0)
    output = torch.randn(10, 2, generator=torch.Generator().manual_seed(0))
    others = torch.cat([output[:5], -output[5:]])
    assert task.loss(output, batch).total.equal(task.loss(others, batch).total)
    assert task.loss(output, batch).count == 5
    assert task.divergence(output, others, batch).total > 0


def test_validation_rows_stay_alone(run):
    task = consistent_task(run)
    assert len(task.batch("valid", np.arange(2), None).labels) == 2
    assert len(task.batch("train", np.arange(2), None).labels) == 2
