"""A language model of Llama's kind with random weights, as Hugging Face has it."""

from dataclasses import dataclass
from typing import Any

import torch

from glassformer.benchmarks.peers import needed

EPSILON = 1e-5
SPREAD = 2.0  # of the vectors of tokens, relative to 1/√D: wide enough that few scores are close


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The shape of a model; embeddings are tied."""

    vocabulary: int
    dim: int
    depth: int
    heads: int
    hidden: int


GPT2_SIZED = Size(vocabulary=50_304, dim=768, depth=12, heads=12, hidden=2048)  # 124M
SMALL = Size(vocabulary=4096, dim=256, depth=4, heads=4, hidden=640)  # 4M
TINY = Size(vocabulary=211, dim=32, depth=2, heads=2, hidden=48)


@torch.no_grad()
def random_model(size: Size, length: int) -> Any:
    """A LlamaForCausalLM with random weights, for sequences of up to `length` tokens."""
    models = needed("transformers.models.llama.modeling_llama", "language models")
    config = models.LlamaConfig(
        vocab_size=size.vocabulary,
        hidden_size=size.dim,
        intermediate_size=size.hidden,
        num_hidden_layers=size.depth,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        max_position_embeddings=length,
        rms_norm_eps=EPSILON,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    model = models.LlamaForCausalLM(config).eval()
    for name, weight in model.named_parameters():
        if weight.ndim == 1:  # no weight stays at 1, which could hide a mistake
            weight.add_(0.1 * torch.randn_like(weight))
        else:
            spread = SPREAD if "embed_tokens" in name else 1.0
            weight.normal_(std=spread * weight.shape[1] ** -0.5)
    return model
