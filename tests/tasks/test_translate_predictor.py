"""What a translator is asked: whole words, nothing about nothing, and scores that are numbers."""

import re
from copy import copy

import pytest
import torch
from small_jobs import everything
from small_pairs import pair_job

from glassformer.errors import GlassformerError
from glassformer.tasks.shared.generation import GenerationOptions
from glassformer.tasks.translate.predictor import TranslatePredictor

PAIRS = [("the old tomcat", "der alte Kater")] * 9 + [("a car", "Autobahn Hausauto auto")] * 9
BPE = {"kind": "bpe", "vocabulary": 290}


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    settings = {"data": {"tokenizer": BPE}, "task": {"target": BPE, "max_length": 17}}
    return pair_job(tmp_path_factory.mktemp("pairs"), PAIRS, **settings)


def model_of(job, seed):
    torch.manual_seed(seed)
    return job.model().eval()


def said(job, model, texts, **options):
    predictor = TranslatePredictor(job).configured(**options)
    return [found.text for found in predictor.predict(model, texts)]


@pytest.mark.parametrize("seed", range(3))
def test_a_required_word_stands_apart_from_its_neighbours(job, seed):
    bare, inside = (job.pair.target.encode([text])[0] for text in ("auto", " auto"))
    assert len(bare) <= len(inside)
    options = {"required": ("auto", "Kater"), "prefix": "der alte"}
    for text in said(job, model_of(job, seed), ["the old tomcat", "a car"], **options):
        assert re.search(r"\sauto(?!\w)", text)
        assert re.search(r"\sKater(?!\w)", text)


def test_a_text_with_nothing_in_it_is_answered_by_nothing_whatever_the_options(job):
    options = {"prefix": "der", "required": "Kater"}
    first, second, third = said(job, model_of(job, 1), ["", "a car", " \t"], **options)
    assert (first, third) == ("", "")
    assert second.startswith("der")


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_weights_that_are_no_numbers_are_told(job, method):
    model = model_of(job, 1)
    with torch.no_grad():
        next(model.parameters()).fill_(torch.nan)
    decode = {"method": method}
    with pytest.raises(GlassformerError, match="row 1: the model's scores are not finite"):
        said(job, model, ["a car"], set=[f"decode.method={method}"])
    with_options = copy(job)
    with_options.writer = job.writer.with_options(GenerationOptions(decode=decode))
    with pytest.raises(GlassformerError, match="row 1: the model's scores are not finite"):
        with_options.answers(model, [everything(job)])


def test_a_row_of_a_table_is_asked_as_it_would_be_typed(tmp_path):
    job = pair_job(
        tmp_path / "job",
        [{"source": "a", "target": "b", "to": "fr"}, {"source": "b", "target": "c", "to": "de"}],
    )
    typed = TranslatePredictor(job).from_sample
    assert typed({"source": "a film", "to": "de"}) == typed({"source": "<de> a film"})
    bare = TranslatePredictor(pair_job(tmp_path / "bare", PAIRS)).from_sample
    assert bare({"source": "a film", "to": "de"}) == "a film"


def test_nothing_is_said_of_nothing(tmp_path):
    job = pair_job(tmp_path / "job", PAIRS)
    empty, said, blank = TranslatePredictor(job).predict(model_of(job, 1), ["", "ab", " \t"])
    assert (empty.text, blank.text) == ("", "")
    assert empty.details["tokens"] is not blank.details["tokens"]
    assert (said.guess or said).details["tokens"]
    assert list(TranslatePredictor(job).predict(model_of(job, 1), [])) == []
    with pytest.raises(GlassformerError, match="no rows to translate; give at least one"):
        job.answers(model_of(job, 1), [])
