"""Explained continuations: every token by the prompt and what was written before it."""

import math

import pytest
import torch
from small_jobs import job_of

from glassformer.errors import GlassformerError
from glassformer.explaining.methods import METHODS
from glassformer.explaining.watching import watching
from glassformer.tasks.generate import explainer as module
from glassformer.tasks.generate.explainer import GenerateExplainer
from glassformer.tasks.generate.predictor import GeneratePredictor

TEXTS = ("the cat sat on the mat", "a fox in a box", "knock at the door")
DECODER = {"dim": 24, "depth": 1, "dropout": 0.0, "attention": {"heads": 2}}
SHORT = ("decode.max_length=9", "decode.min_length=7")


def explained(folder, kind="characters", **decoder):
    tokenizer = {"kind": kind, "vocabulary": 300}
    values = {"model": {"decoder": DECODER | decoder}, "data": {"tokenizer": tokenizer}}
    job = job_of("generate", folder, [{"text": text} for text in TEXTS], **values)
    torch.manual_seed(2)
    return GenerateExplainer(job), job.model().eval()


@pytest.mark.parametrize("method", ["occlusion", "occlusion_of_spans"])
@pytest.mark.parametrize("position", ["rotary", "alibi", "learned"])
def test_a_piece_has_no_influence_on_what_was_written_before_it(tmp_path, position, method):
    explainer, model = explained(tmp_path, position={"kind": position})
    subject = explainer.subject(model, "the fox ", target="in a box")
    assert subject.pieces == ("the ", "fox ", *"in a bo")
    found = METHODS[method].influence(subject)
    for piece, first in enumerate(
        (0, 0, 1, 2, 3, 4, 5, 6, 7)
    ):  # the first token that it comes before
        assert (found[:first, piece].abs() < 1e-4).all()
        assert found[first:, piece].abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["characters", "bytes", "bpe"])
def test_scores_are_those_of_the_text_that_is_left(tmp_path, kind):
    explainer, model = explained(tmp_path, kind)
    subject = explainer.subject(model, "the cat sat", target=" on")
    kept = torch.ones(2, len(subject.pieces), dtype=torch.bool)
    kept[1, 1] = False  # cat
    found = subject.scores_of(kept)
    assert torch.allclose(found[0], subject.scores(model, copies=3)[2], atol=1e-4)
    left = "".join(piece for at, piece in enumerate(subject.pieces[:3]) if at != 1)
    shorter = explainer.subject(model, "the sat", target=" on")
    assert left == shorter.given
    assert torch.allclose(found[1], shorter.scores(model)[0], atol=1e-4)


def test_a_token_after_one_that_is_left_out_is_predicted_from_the_one_before(tmp_path):
    explainer, model = explained(tmp_path)
    subject = explainer.subject(model, "a fox", target="in", unit="token")
    kept = torch.ones(1, len(subject.pieces), dtype=torch.bool)
    kept[0, -1] = False  # the i that was written
    without = explainer.subject(model, "a fox", target="n", unit="token")
    assert torch.allclose(subject.scores_of(kept)[0, 1], without.scores(model)[0, 0], atol=1e-4)


def test_targets_are_the_tokens_that_predict_writes(tmp_path):
    explainer, model = explained(tmp_path)
    subject = explainer.configured(set=SHORT).subject(model, "the cat")
    predictor = GeneratePredictor(explainer.task).configured(set=SHORT)
    *_, prediction = predictor.predict(model, ["the cat"])
    tokens = prediction.details["tokens"]
    assert [one.text for one in subject.targets] == [token["piece"] for token in tokens]
    assert subject.answer == prediction.details["continuation"]
    probabilities = torch.tensor([one.probability for one in subject.targets])
    scores = torch.tensor([token["log_probability"] for token in tokens])
    assert torch.allclose(probabilities.log(), scores, atol=1e-4)
    assert torch.allclose(subject.scores(model)[0], probabilities.logit(), atol=1e-3)


def test_a_model_that_knows_nothing_is_as_unsure_as_can_be(tmp_path):
    explainer, model = explained(tmp_path)
    with torch.no_grad():
        model.tokens.table.weight.zero_()
    [target] = explainer.subject(model, "the", target=" ").targets
    size = explainer.task.tokenizer.size
    assert target.entropy == pytest.approx(math.log2(size), abs=1e-4)
    assert target.probability == pytest.approx(1 / size)
    assert all(text not in ("<unknown>", "<mask>", "<start>") for text, _ in target.alternatives)


def test_attention_has_a_row_for_every_written_token(tmp_path):
    explainer, model = explained(tmp_path)
    subject = explainer.subject(model, "a fox", target=" in")
    with watching(model) as (watched, maps):
        subject.scores(watched)
        [found] = subject.attention_of(maps)
    assert found.queries == (" ", "i", "n")
    assert found.keys == ("<start>", *"a fox i")
    assert torch.allclose(found.weights.sum(-1), torch.ones(()))
    assert found.weights[:, 0, 6:].abs().max() == 0  # the future
    assert subject.readers.argmax(-1)[0, :, 0].tolist() == [5, 6, 7]


@pytest.mark.parametrize(("name", "size"), [("READ", 5), ("WRITTEN", 256 - 5)])
def test_of_a_long_prompt_the_end_is_read(tmp_path, monkeypatch, name, size):
    monkeypatch.setattr(module, name, size)
    explainer, model = explained(tmp_path)
    subject = explainer.subject(model, "the cat sat", target=" on")
    assert subject.given == "… t sat"
    assert "".join(subject.pieces) == "t sat o"
    assert subject.notes == ("Only the last 5 tokens of the prompt are explained.",)


def test_continuations_are_short_and_examples_end_with_a_word(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WRITTEN", 4)
    monkeypatch.setattr(module, "EXAMPLE", 9)
    explainer, model = explained(tmp_path)
    assert len(explainer.subject(model, "").targets) <= 4
    assert len(explainer.subject(model, "a", target="fox in a box").targets) == 4
    assert explainer.example("the cat sat on") == "the cat"
    assert explainer.example("the cat") == "the cat"


def test_a_target_that_cannot_be_written_is_refused(tmp_path):
    explainer, model = explained(tmp_path)
    with pytest.raises(GlassformerError, match="cannot write 'é': some of it is in no training"):
        explainer.subject(model, "a", target="é")
