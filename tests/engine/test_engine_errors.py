"""What goes wrong with one request is told, and harms no other."""

import copy
from dataclasses import replace

import pytest
import torch
from test_engine import PAGE, STACK, V, alone, assert_nothing_lost, assert_same, model, translator

from glassformer.config import AttentionConfig, ModelConfig, PositionConfig, StackConfig
from glassformer.config.decoding import DecodeConfig
from glassformer.core.layout import Layout
from glassformer.engine import Engine, GenerationRequest, Source
from glassformer.errors import GlassformerError, NonFiniteScoresError
from glassformer.models.build import build_language_model

__all__ = ["model", "translator"]  # fixtures


def test_a_request_without_an_answer_says_why(model):
    engine = Engine(model, pages=100, page_size=PAGE)
    request = GenerationRequest(prompt=(5, 6), decode=DecodeConfig(max_length=3))
    every = tuple((token,) for token in range(V))
    answers = engine.answers([request, replace(request, forbidden=every), request])
    assert_same(next(answers), alone(model, request))
    with pytest.raises(GlassformerError, match=r"^the given rules allow no token; forbid"):
        next(answers)
    assert_nothing_lost(engine)
    broken = copy.deepcopy(model)
    broken.tokens.table.weight.data[7] = torch.nan
    with pytest.raises(NonFiniteScoresError, match=r"^the model's scores are not finite"):
        next(Engine(broken, pages=100, page_size=PAGE).answers([request]))


def test_a_source_that_cannot_be_encoded_harms_no_other_request(translator):
    source = torch.tensor([[5, 6, 7]])
    layout = Layout.full(1, 3)
    request = GenerationRequest(
        prompt=(1,),
        decode=DecodeConfig(max_length=5),
        source=Source(3, lambda: translator.encode(source, layout)),
    )
    wrong = replace(request, source=Source(3, lambda: 1 / 0))
    engine = Engine(translator, pages=60, page_size=PAGE)
    numbers = [engine.submit(one) for one in (request, wrong, request)]
    found = {}
    while engine.busy:
        found |= {one.number: one for one in engine.step() if one.finished}
    first, failed, last = (found[number] for number in numbers)
    assert isinstance(failed.error, ZeroDivisionError)
    assert_same(last.answer, first.answer)
    assert_nothing_lost(engine)


def test_a_token_that_the_model_does_not_have_is_refused_and_harms_no_other_request(model):
    engine, size = Engine(model, pages=100, page_size=PAGE), model.tokens.table.num_embeddings
    request = GenerationRequest(prompt=(5, 6), decode=DecodeConfig(max_length=3))
    for token in (-1, size):
        with pytest.raises(ValueError, match="not one of the model's"):
            engine.submit(replace(request, prompt=(5, token)))
    assert_same(next(engine.answers([request])), alone(model, request))


def test_what_cannot_be_served_is_refused(model, translator):
    engine = Engine(model, pages=3, page_size=PAGE)
    with pytest.raises(GlassformerError, match="30 tokens of memory in 1 row, more"):
        engine.submit(GenerationRequest(prompt=(5,), decode=DecodeConfig(max_length=30)))
    with pytest.raises(GlassformerError, match="the prompt is empty"):
        GenerationRequest(prompt=())
    with pytest.raises(GlassformerError, match="greedy or sample"):
        GenerationRequest(prompt=(5,), decode=DecodeConfig(method="beam"))
    with pytest.raises(ValueError, match="a source with every request"):
        Engine(translator, pages=3, memory_pages=3).submit(GenerationRequest(prompt=(1,)))
    long = GenerationRequest(prompt=(1,), source=Source(99, list))
    with pytest.raises(GlassformerError, match="99 vectors, more than the engine has memory for"):
        Engine(translator, pages=99, memory_pages=3, page_size=PAGE).submit(long)
    learned = StackConfig(position=PositionConfig("learned"), max_length=8, **STACK)
    short = build_language_model(ModelConfig(decoder=learned), vocabulary=V).eval()
    with pytest.raises(GlassformerError, match="9 tokens and the model 8 positions"):
        Engine(short, pages=9).submit(GenerationRequest(prompt=(5,) * 9))
    linear = replace(learned, attention=AttentionConfig(kind="linear"))
    with pytest.raises(GlassformerError, match="softmax attention"):
        Engine(build_language_model(ModelConfig(decoder=linear), vocabulary=V), pages=9)
