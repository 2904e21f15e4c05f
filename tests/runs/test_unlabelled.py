"""Rows without labels: pretraining reads them, and nothing else does."""

import json

import pytest

import glassformer
from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.runs.request import TrainRequest

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


@pytest.mark.parametrize(
    ("job", "more", "message"),
    [
        ("classify", {"pretrain": False}, "unlabelled is for pretraining, which"),
        ("generate", {}, "unlabelled: generate has no pretraining stage, only classify"),
        ("classify", {"settings": ("model.frontend.kind=ngrams",)}, "no single tokens to mask"),
    ],
)
def test_they_are_refused_where_nothing_would_read_them(job, more, message):
    request = TrainRequest(job=job, data=("rows.csv",), unlabelled=("texts.csv",), **more)
    with pytest.raises(GlassformerError, match=message):
        request.resolve()
    assert "--unlabelled texts.csv" in request.command()


def test_a_file_that_cannot_be_read_leaves_nothing_behind(tmp_path):
    with pytest.raises(GlassformerError, match=r"nowhere\.csv: not found"):
        glassformer.train(
            "classify", ROWS, **options(tmp_path, unlabelled=tmp_path / "nowhere.csv")
        )
    assert not (tmp_path / "run").exists()
    assert not any(tmp_path.iterdir())
