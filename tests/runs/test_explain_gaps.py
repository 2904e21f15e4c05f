"""Gaps explained: what fills them, and which words around them speak for it."""

import random

import pytest
import torch
from quick import quickly, unchecked

from glassformer.errors import GlassformerError
from glassformer.explaining.methods import METHODS
from glassformer.runs import api

PAIRS = {"north": "cold", "south": "warm"}
TEXT = "they came from the north where it was <mask> ."
SETTINGS = (
    *("model.encoder.dim=32", "model.encoder.depth=1", "model.encoder.attention.heads=2"),
    *("train.validate_every=1000", "train.optimiser.lr=1e-2", "data.tokenizer.kind=words"),
    *("data.batch_tokens=1024", "model.encoder.dropout=0"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("gaps"), random.Random(1)
    lines = []
    for number in range(200):
        side = rng.choice(list(PAIRS))
        who = rng.choice(["they", "we", "you", "people"])
        lines.append(f"{who} came from the {side} where it was {PAIRS[side]} . {number}")
    (folder / "texts.txt").write_text("\n".join(lines))
    options = {"run": folder / "run", "quiet": True, "steps": 150, "set": SETTINGS}
    with quickly(), unchecked():
        return api.train("pretrain", folder / "texts.txt", **options)


def test_a_gap_is_explained_by_the_word_that_decides_it(run):
    found = run.explain(TEXT, method="occlusion")
    assert "".join(found.pieces) == TEXT
    assert found.targets[0].text == "cold"
    assert found.influence[0, found.pieces.index("north ")] > 0.5
    assert found.influence[0, found.pieces.index("<mask>")] == 0
    assert found.answer == TEXT.replace("<mask>", "cold")


def test_another_word_for_the_gap_is_explained_if_asked_for(run):
    found = run.explain(TEXT, method="occlusion", target="warm")
    assert found.targets[0].text == "warm"
    assert found.targets[0].alternatives[0][0] == "cold"
    north, predicted = found.pieces.index("north "), run.explain(TEXT, method="occlusion")
    assert found.influence[0, north] < predicted.influence[0, north] - 0.5


@pytest.mark.parametrize("method", [name for name in METHODS if name != "ngrams"])
def test_every_method_explains_each_gap(run, method):
    found = run.explain("they came <mask> the <mask> and it was warm", method=method)
    assert found.influence.shape == (2, len(found.pieces))
    assert torch.isfinite(found.influence).all()


def test_the_scores_of_all_pieces_are_those_of_the_input(run):
    subject = run.explainer.job.subject(run.model, TEXT)
    every = torch.ones(1, len(subject.pieces), dtype=torch.bool)
    scores = subject.scores(subject.model, copies=3)
    assert torch.allclose(scores, subject.scores_of(every).expand(3, -1), atol=1e-5)
    assert scores[0].sigmoid().item() == pytest.approx(subject.targets[0].probability, abs=1e-5)


def test_an_example_is_a_stored_text_with_a_gap(run):
    example = run.explainer.job.example("they came from the north")
    assert example.count("<mask>") == 1
    assert len(example.split()) == 5


def test_what_cannot_fill_a_gap_is_refused(run):
    with pytest.raises(GlassformerError, match="'no gap here' has no gap to fill"):
        run.explain("no gap here")
    with pytest.raises(GlassformerError, match="takes one token, but 'cold warm' has 2"):
        run.explain(TEXT, target="cold warm")
    with pytest.raises(GlassformerError, match="the model cannot write 'zebra'"):
        run.explain(TEXT, target="zebra")
