"""Our model with the weights of Hugging Face's, and our decoding."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.benchmarks.generation.contest import Side, TokenRows
from glassformer.benchmarks.generation.llama import EPSILON, Size
from glassformer.config import (
    AttentionConfig,
    FeedForwardConfig,
    ModelConfig,
    NormConfig,
    StackConfig,
)
from glassformer.config.decoding import DecodeConfig
from glassformer.decode import Request, decode
from glassformer.models.build import build_language_model
from glassformer.models.incremental import continuing
from glassformer.models.packing import for_inference
from glassformer.models.transformer import LanguageModel

NAMES = {
    "model": "",
    "embed_tokens": "tokens.table",
    "norm": "decoder.norm",
    "layers": "decoder.blocks",
    "self_attn": "attention",
    "mlp": "feedforward",
    "q_proj": "to_q",
    "k_proj": "to_k",
    "v_proj": "to_v",
    "o_proj": "to_out",
    "gate_proj": "gate",
    "up_proj": "widen",
    "down_proj": "narrow",
    "input_layernorm": "attention_residual.before",
    "post_attention_layernorm": "feedforward_residual.before",
}


def our_model(theirs: Any, size: Size, length: int) -> LanguageModel:
    """Our language model with the weights of theirs."""
    stack = StackConfig(
        dim=size.dim,
        depth=size.depth,
        dropout=0.0,
        max_length=length,
        norm=NormConfig("rms", epsilon=EPSILON),
        attention=AttentionConfig(heads=size.heads, bias=False),
        feedforward=FeedForwardConfig(kind="swiglu", hidden=size.hidden, bias=False),
    )
    config = ModelConfig(decoder=stack, scale=False)
    model = build_language_model(config, vocabulary=size.vocabulary)
    state = {our_name(key): tensor for key, tensor in theirs.model.state_dict().items()}
    model.load_state_dict(state)
    return model.eval()


def our_name(key: str) -> str:
    """Our name of one of their weights.

    >>> our_name("layers.3.mlp.up_proj.weight")
    'decoder.blocks.3.feedforward.widen.weight'
    """
    return ".".join(NAMES.get(part, part) for part in key.split("."))


def generating(model: LanguageModel, prompts: Int[Tensor, "B P"], length: int) -> Side:
    """Greedy generation, as a run does it for predictions."""
    fast = for_inference(model)
    assert isinstance(fast, LanguageModel)
    lists = prompts.tolist()
    config = DecodeConfig(method="greedy", max_length=length)

    @torch.no_grad()
    def generate() -> TokenRows:
        found = decode(continuing(fast, lists), Request(end=-1), config)
        return [row[0].tokens for row in found]

    return generate
