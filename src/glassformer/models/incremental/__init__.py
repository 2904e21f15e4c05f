"""Models step by step: how decoding gets the scores of the next token, or of the next frames.

    translating   an encoder-decoder: the source, of any kind, is encoded once
    attending     the same with a memory that is already there
    continuing    a language model: prompts of different lengths are read once
    Listener      an encoder of sound: a stream is read chunk by chunk (`listening`)
    WholeScorer   a model of any other class: every step reads all tokens again (`whole`)

A decoder with softmax attention uses a `BranchingCache` (`branching`); one that keeps a state
instead of keys uses `states`. A language model that will not change any more takes faster steps
(`fused`), with blocks laid out for them (`layer`), and still faster ones on a CPU where all rows
are at one position (`even`). On CUDA a step is captured as a graph (`core.cuda_graphs`). What is
read before the first step is in `prompt`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.core.caches import Cache
from glassformer.core.layout import Layout, pad
from glassformer.decode import Scorer
from glassformer.errors import GlassformerError
from glassformer.models.frontends import Tokens
from glassformer.models.incremental.branching import BranchingScorer, keeps_keys
from glassformer.models.incremental.fused import FusedScorer, fused_model
from glassformer.models.incremental.prompt import Prompt, in_rows, rows_of, without_padding
from glassformer.models.incremental.states import StateScorer
from glassformer.models.incremental.whole import WholeScorer, last_scores
from glassformer.models.transcriber import Transcriber
from glassformer.models.transformer import LanguageModel, Transformer

__all__ = [
    "BranchingScorer",
    "StateScorer",
    "WholeScorer",
    "attending",
    "continuing",
    "translating",
]

Writes = Transformer | Transcriber


@torch.no_grad()
def translating(model: nn.Module, samples: Tensor, layout: Layout, *, first: int) -> Scorer:
    """A scorer of what `model` generates for these samples, starting after the token `first`."""
    if not isinstance(model, Transformer):
        return reading_again(model, samples, layout, first=first)
    if isinstance(model.frontend, Tokens):
        samples, layout = without_padding(samples, layout)
    return attending(model, model.encode(samples, layout), layout, first=first)


def reading_again(model: nn.Module, samples: Tensor, layout: Layout, *, first: int) -> Scorer:
    """The same for a model of any class, which is called as a Transformer is."""
    if layout.is_packed:
        samples, layout = pad(samples, layout), layout.as_padded()

    def score(tokens: Tensor, target: Layout, rows: Tensor) -> Tensor:
        source = rows_of(layout, rows)
        return last_scores(model(samples[rows], tokens, source=source, target=target), target)

    return WholeScorer(score, [[first]] * layout.rows, layout.device)


@torch.no_grad()
def attending(model: Writes, memory: Sequence[Any], layout: Layout, *, first: int) -> Scorer:
    """A scorer of what a decoder generates from what it keeps of a source of this layout."""
    decoder, target = model.decoder, model.target
    if decoder is None or target is None:
        raise ValueError("this model has no decoder to write with; search its frames by CTC")
    kept = [in_rows(one) for one in memory]
    start = torch.full((layout.rows,), first, device=layout.device)
    if keeps_keys(decoder):
        return BranchingScorer(decoder, target, model.unembed, start, memory=kept)
    return StateScorer(model.decode, decoder, start, memory=kept)


@torch.no_grad()
def continuing(model: nn.Module, prompts: Sequence[Sequence[int]]) -> Scorer:
    """A scorer of how `model` continues these prompts, of at least one token each."""
    for number, prompt in enumerate(prompts, 1):
        if not prompt:
            raise GlassformerError(
                f"prompt {number} is empty; give at least one token to continue from"
            )
    if not isinstance(model, LanguageModel):
        return WholeScorer(
            lambda tokens, layout, rows: last_scores(model(tokens, layout=layout), layout),
            prompts,
            next(model.parameters()).device,
        )
    device = model.tokens.table.weight.device
    first = torch.tensor([prompt[-1] for prompt in prompts], device=device)
    read = Prompt.of([prompt[:-1] for prompt in prompts], device)
    fused = fused_model(model)
    if fused is not None:
        return FusedScorer(model.decoder, fused, first, read)
    if keeps_keys(model.decoder):
        return BranchingScorer(model.decoder, model.tokens, model.unembed, first, prompt=read)

    def score(tokens: Tensor, layout: Layout, memory: None, caches: Sequence[Cache]) -> Tensor:
        return model(tokens, layout=layout, caches=caches)

    return StateScorer(score, model.decoder, first, prompt=read)
