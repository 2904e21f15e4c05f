"""Greedy and beam search say what Hugging Face's `generate` says with the same weights."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parents[1] / "models"))  # where weights are copied

from test_hugging_face_other import marian
from test_hugging_face_text import gpt2, llama

from glassformer.config.decoding import BeamConfig, DecodeConfig
from glassformer.core.layout import Layout
from glassformer.decode import Request, decode
from glassformer.models.incremental import continuing, translating

FIRST, V, STEPS = 0, 53, 17
LENGTHS = (19, 5, 11, 2, 7)
METHODS = {
    "greedy": (DecodeConfig(max_length=STEPS), {}),
    "beam": (
        DecodeConfig(method="beam", best=4, max_length=STEPS),
        {"num_beams": 4, "early_stopping": "never", "length_penalty": 1.0},
    ),
    "beam, no penalty": (
        DecodeConfig(
            method="beam", best=2, max_length=STEPS, beam=BeamConfig(width=3, penalty="none")
        ),
        {"num_beams": 3, "early_stopping": "never", "length_penalty": 0.0},
    ),
    "beam that stops soon": (
        DecodeConfig(method="beam", max_length=STEPS, beam=BeamConfig(stopping="soon")),
        {"num_beams": 4, "early_stopping": False, "length_penalty": 1.0},
    ),
    "no run twice": (DecodeConfig(max_length=STEPS, no_repeat=2), {"no_repeat_ngram_size": 2}),
    "repetition": (DecodeConfig(max_length=STEPS, repetition=1.3), {"repetition_penalty": 1.3}),
    "repetition, beam": (
        DecodeConfig(method="beam", best=4, max_length=STEPS, repetition=1.3),
        {
            "num_beams": 4,
            "early_stopping": "never",
            "length_penalty": 1.0,
            "repetition_penalty": 1.3,
        },
    ),
    "least length": (DecodeConfig(max_length=STEPS, min_length=9), {"min_new_tokens": 9}),
}
each_method = pytest.mark.parametrize("method", METHODS)


def telling_end(scorer):
    """The token at which rows would end at as many different steps as there are."""
    free = [
        row[0].tokens for row in decode(scorer, Request(end=-1), DecodeConfig(max_length=STEPS))
    ]

    def steps(token):
        return {said.index(token) if token in said else STEPS for said in free}

    end = max(range(2, V), key=lambda token: len(steps(token)))
    assert len(steps(end)) > 1
    return end


def generated(theirs, config, more, inputs, end):
    """What follows their first tokens, a tuple for each of `best` answers of each row."""
    out = theirs.generate(
        inputs,
        do_sample=False,
        max_new_tokens=config.max_length,
        num_return_sequences=config.best,
        eos_token_id=end,
        pad_token_id=1,
        forced_eos_token_id=None,
        **more,
    )
    begin = 1 if theirs.config.is_encoder_decoder else inputs.shape[1]
    lines = [tuple(line[begin:].tolist()) for line in out]
    cut = [line[: line.index(end)] if end in line else line for line in lines]
    return [cut[at : at + config.best] for at in range(0, len(cut), config.best)]


@each_method
@torch.no_grad()
def test_translations_are_those_of_hugging_face(method):
    ours, theirs = marian()
    config, more = METHODS[method]
    samples, layout = torch.randint(2, V, (len(LENGTHS), max(LENGTHS))), Layout.padded(LENGTHS)
    more = more | {"decoder_start_token_id": FIRST, "attention_mask": layout.real.long()}
    scorer = translating(ours, samples, layout, first=FIRST)
    end = telling_end(scorer)
    expected = generated(theirs, config, more, samples, end)
    found = decode(scorer, Request(end=end), config)
    assert [[h.tokens for h in row] for row in found] == expected


@each_method
@pytest.mark.parametrize("make", [gpt2, llama], ids=["gpt2", "llama"])
@torch.no_grad()
def test_continuations_are_those_of_hugging_face(make, method):
    ours, theirs = make()
    config, more = METHODS[method]
    prompts = torch.randint(2, V, (7, 6))
    more = more | {"attention_mask": torch.ones_like(prompts)}
    scorer = continuing(ours, prompts.tolist())
    end = telling_end(scorer)
    expected = generated(theirs, config, more, prompts, end)
    found = decode(scorer, Request(end=end, prompts=prompts.tolist()), config)
    assert [[h.tokens for h in row] for row in found] == expected
