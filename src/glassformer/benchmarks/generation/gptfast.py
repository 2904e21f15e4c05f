"""gpt-fast's model, compiled as its authors do; it comes as a file, and is no part of ours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from glassformer.benchmarks.generation.contest import Side, TokenRows
from glassformer.benchmarks.generation.llama import EPSILON, Size
from glassformer.benchmarks.peers import load_file

FILE = "gptfast.py"
# mode="reduce-overhead" and the settings of its generate.py
OPTIONS: dict[str, str | int | bool | Callable[..., Any]] = {
    "triton.cudagraphs": True,
    "coordinate_descent_tuning": True,
    "triton.unique_kernel_names": True,
}
NAMES = {
    "embed_tokens": "tok_embeddings",
    "self_attn": "attention",
    "q_proj": "wq",
    "k_proj": "wk",
    "v_proj": "wv",
    "o_proj": "wo",
    "mlp": "feed_forward",
    "gate_proj": "w1",
    "down_proj": "w2",
    "up_proj": "w3",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
}


def gptfast_model(folder: Path, theirs: Any, size: Size, length: int) -> Any:
    """Its model with the weights of Hugging Face's."""
    library: Any = load_file(folder / FILE)
    config = library.ModelArgs(
        block_size=length,
        vocab_size=size.vocabulary,
        n_layer=size.depth,
        n_head=size.heads,
        dim=size.dim,
        intermediate_size=size.hidden,
        norm_eps=EPSILON,
    )
    model = library.Transformer(config)
    state = {}
    for key, tensor in theirs.model.state_dict().items():
        name = ".".join(NAMES.get(part, part) for part in key.split("."))
        turns = "q_proj" in key or "k_proj" in key
        state[name] = interleaved(tensor, size.heads) if turns else tensor
    state["output.weight"] = state["tok_embeddings.weight"]
    model.load_state_dict(state)
    model.output.weight = model.tok_embeddings.weight
    return model.eval()


def interleaved(weight: Tensor, heads: int) -> Tensor:
    """Rows in the order of its rotation, which turns channels 2 j and 2 j + 1 together."""
    return weight.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)


def generating(model: Any, prompts: Int[Tensor, "B P"], length: int, *, compiled: bool) -> Side:
    """Greedy generation by its loop."""
    rows, read = prompts.shape
    with torch.device(prompts.device):
        model.setup_caches(rows, read + length)

    def step(tokens: Tensor, position: Tensor) -> Tensor:
        found: Tensor = model(tokens, position)[:, -1].argmax(-1, keepdim=True)
        return found

    fast = torch.compile(step, fullgraph=True, options=OPTIONS) if compiled else step

    @torch.no_grad()
    def generate() -> TokenRows:
        newest = step(prompts, torch.arange(read, device=prompts.device))
        found, position = [newest], torch.tensor([read], device=prompts.device)
        for _ in range(length - 1):
            with sdpa_kernel(SDPBackend.MATH):  # which the compiler makes kernels of its own from
                newest = fast(newest, position).clone()
            position += 1
            found.append(newest)
        output: TokenRows = torch.cat(found, 1).tolist()
        return output

    return generate
