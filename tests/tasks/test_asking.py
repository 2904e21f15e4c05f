"""What a translator is asked: whole words, nothing about nothing, and scores that are numbers."""

import re

import pytest
import torch
from small_jobs import everything
from small_pairs import pair_job

from glassformer.errors import GlassformerError
from glassformer.tasks.shared.generation import Wish

PAIRS = [("the old tomcat", "der alte Kater")] * 9 + [("a car", "Autobahn Hausauto auto")] * 9
BPE = {"kind": "bpe", "vocabulary": 290}


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    settings = {"data": {"tokenizer": BPE}, "task": {"target": BPE, "max_length": 17}}
    return pair_job(tmp_path_factory.mktemp("pairs"), PAIRS, **settings)


def model_of(job, seed):
    torch.manual_seed(seed)
    return job.model().eval()


def said(job, model, texts, wish):
    return [found.text for found in job.as_wished(wish).predict(model, texts)]


@pytest.mark.parametrize("seed", range(3))
def test_a_required_word_stands_apart_from_its_neighbours(job, seed):
    bare, inside = (job.pair.target.encode([text])[0] for text in ("auto", " auto"))
    assert len(bare) <= len(inside)
    wish = Wish(required=("auto", "Kater"), prefix="der alte")
    for text in said(job, model_of(job, seed), ["the old tomcat", "a car"], wish):
        assert re.search(r"\sauto(?!\w)", text)
        assert re.search(r"\sKater(?!\w)", text)


def test_a_text_with_nothing_in_it_is_answered_by_nothing_whatever_is_wished(job):
    wish = Wish(prefix="der", required="Kater")
    first, second, third = said(job, model_of(job, 1), ["", "a car", " \t"], wish)
    assert (first, third) == ("", "")
    assert second.startswith("der")


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_weights_that_are_no_numbers_are_told(job, method):
    model = model_of(job, 1)
    with torch.no_grad():
        next(model.parameters()).fill_(torch.nan)
    wish = Wish(decode={"method": method})
    with pytest.raises(GlassformerError, match="row 1: the model's scores are not numbers"):
        said(job, model, ["a car"], wish)
    with pytest.raises(GlassformerError, match="row 1: the model's scores are not numbers"):
        job.as_wished(wish).answers(model, [everything(job)])
