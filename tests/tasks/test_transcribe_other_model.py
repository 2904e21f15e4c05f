"""transcribe with the language model of another run: its scores, and what is refused."""

from dataclasses import replace

import pytest
import torch
from small_jobs import job_of
from small_recordings import SETTINGS, WORDS, record

from glassformer.config.values import merge_values
from glassformer.core.layout import Layout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.tasks import JOBS
from glassformer.tasks.extension import Companion

SMALL = {"model": {"decoder": {"dim": 16, "depth": 1, "attention": {"heads": 2}}}}


def language_model(folder, texts=(*WORDS, "AAAAAA zzzzz" * 9), **settings):
    rows = [{"text": text, "split": "train"} for text in texts]
    task = job_of("generate", folder, rows, **merge_values(SMALL, settings))
    torch.manual_seed(0)
    return Companion(
        path="poems", job="generate", task=task, model=task.model().eval(), predict=iter
    )


def transcriber(folder, **task):
    rows = record(folder / "clips", WORDS)
    return job_of("transcribe", folder / "run", rows, **merge_values(SETTINGS, {"task": task}))


def fused(task, lm, weight=None):
    found = JOBS["transcribe"].predictor(task).configured(lm=lm, lm_weight=weight)
    return found.searcher.fusion


def test_its_scores_are_those_of_its_own_tokens_whatever_stands_behind_a_prefix(tmp_path):
    task, lm = transcriber(tmp_path), language_model(tmp_path / "lm", task={"max_length": 4})
    fusion, ours, theirs = fused(task, lm, 0.5), task.tokenizer, lm.task.tokenizer
    assert ours.encode(["abcde"])[0].tolist() != theirs.encode(["abcde"])[0].tolist()
    texts = ["", "b", "bead", "decade"]
    ids = [list(row) for row in ours.encode(texts)]
    tokens = torch.tensor([[*row, *[8] * (7 - len(row))] for row in ids])
    found = fusion.next(tokens, torch.tensor([len(row) for row in ids]))
    letters = ours.encode(["abcde"])[0].tolist()
    for text, row in zip(texts, found, strict=True):
        read = [Tokenizer.start, *theirs.encode([text])[0].tolist()][-4:]
        scores = lm.model(torch.tensor(read), layout=Layout.packed(torch.tensor([len(read)])))
        expected = 0.5 * scores[-1].log_softmax(-1)[theirs.encode(["abcde"])[0]]
        torch.testing.assert_close(row[letters], expected)
        torch.testing.assert_close(row[Tokenizer.end], 0.5 * scores[-1].log_softmax(-1)[3])


def test_it_must_be_a_language_model_of_the_same_characters(tmp_path):
    task = transcriber(tmp_path)
    words = language_model(tmp_path / "words", data={"tokenizer": {"kind": "bpe"}})
    with pytest.raises(GlassformerError, match=r"poems: reads other tokens \(bpe\) than .*kind="):
        fused(task, words)
    with pytest.raises(GlassformerError, match="poems: never read 'e', which this run writes"):
        fused(task, language_model(tmp_path / "some", ["abcd"]))
    other = replace(words, job="classify", model=torch.nn.Identity())
    with pytest.raises(GlassformerError, match=r"poems: a run of classify; lm takes one of"):
        fused(task, other)
    lm = language_model(tmp_path / "lm")
    with pytest.raises(GlassformerError, match="lm_weight must be above 0, got -1"):
        fused(task, lm, -1.0)
    with pytest.raises(GlassformerError, match="lm_weight is that of lm"):
        fused(task, None, 0.3)
    with pytest.raises(GlassformerError, match=r"lm needs a search by beam"):
        fused(transcriber(tmp_path / "greedy", decode={"method": "greedy"}), lm)
