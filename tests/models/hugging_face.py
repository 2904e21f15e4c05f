"""Small Hugging Face models with random weights, ours with the same weights, and their comparison.

Nothing is downloaded: theirs are made from configurations. What they hold is named part by part in
our words and loaded strictly, so no weight of ours is left to chance.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from glassformer.config import ModelConfig, StackConfig, build
from glassformer.core.layout import Layout
from glassformer.models.build import build_language_model

H, K, D, HIDDEN, V = 3, 11, 33, 41, 53  # widths that differ, so that no two can be swapped
DEPTH, MAX_LENGTH = 2, 47
B, S, STEPS = 2, 31, 7
FULL, PADDED = (S, S), (19, S)

each_padding = pytest.mark.parametrize("lengths", [FULL, PADDED], ids=["full", "padded"])


# Making both


def huggingface(name):
    return pytest.importorskip(f"transformers.models.{name}.modeling_{name}")


@torch.no_grad()
def randomised(module):
    """In evaluation, and with no weight left at zero or one, where a mistake could hide."""
    for weight in module.parameters():
        if not weight.requires_grad:  # a sinusoidal table
            continue
        if weight.ndim == 1:
            weight.add_(0.3 * torch.randn_like(weight))
        else:
            nn.init.normal_(weight, std=weight[0].numel() ** -0.5)
    return module.eval()


def stack(feedforward, *, bias=True, hidden=HIDDEN, dim=D, depth=DEPTH, heads=None, **settings):
    """Our stack without dropout; `heads` are settings of its attention."""
    values = {
        "dim": dim,
        "depth": depth,
        "dropout": 0.0,
        "max_length": MAX_LENGTH,
        "attention": {"bias": bias, **(heads or {"heads": H})},
        "feedforward": {"kind": feedforward, "hidden": hidden, "bias": bias},
    }
    return build(StackConfig, values | settings)


def filled(ours, state):
    ours.load_state_dict(state)
    return ours.eval()


def named(parts, prefix=""):
    """A state from their modules, or (weight, bias), under the names of ours."""
    state = {}
    for name, part in parts.items():
        both = part if isinstance(part, tuple) else (part.weight, getattr(part, "bias", None))
        for kind, tensor in zip(("weight", "bias"), both, strict=True):
            if tensor is not None:
                state[f"{prefix}{name}.{kind}"] = tensor
    return state


def blocks(layers, parts_of_layer, prefix=""):
    """The state of all blocks, from what one layer holds."""
    states = (
        named(parts_of_layer(layer), f"{prefix}blocks.{number}.")
        for number, layer in enumerate(layers)
    )
    return {key: tensor for state in states for key, tensor in state.items()}


# Llama and its kin


def like_llama(name, theirs=None, ours=None, attention=None, outside=None, parts=None):
    """A language model of Llama's family, and ours with its weights.

    Args:
        theirs: Settings of theirs beyond the sizes.
        ours: Settings of our stack beyond the sizes.
        attention: Settings of our attention beyond the heads.
        outside: Settings of our model beyond the stack.
        parts: What a layer holds, if not the same as Llama's.
    """
    models, family = huggingface(name), name.capitalize()
    dim, width = 6 * K, 2 * K + 4  # heads wider than their share, and even, as rotary wants them
    config = getattr(models, f"{family}Config")(
        vocab_size=V,
        hidden_size=dim,
        num_hidden_layers=DEPTH,
        num_attention_heads=6,
        num_key_value_heads=H,
        head_dim=width,
        intermediate_size=HIDDEN,
        max_position_embeddings=MAX_LENGTH,
        rms_norm_eps=1e-6,
        eos_token_id=None,
        **(theirs or {}),
    )
    model = randomised(getattr(models, f"{family}ForCausalLM")(config))
    heads = {"heads": 6, "kv_heads": H, "key_width": width, **(attention or {})}
    norm = {"kind": "rms", "epsilon": 1e-6}
    ours = {"feedforward": "swiglu", **(ours or {})}
    decoder = stack(bias=False, dim=dim, heads=heads, norm=norm, **ours)
    whole = ModelConfig(decoder=decoder, **{"scale": False, "tie": False, **(outside or {})})
    tensors = {"tokens.table": model.model.embed_tokens, "decoder.norm": model.model.norm}
    tensors |= {} if whole.tie else {"unembed": model.lm_head}
    state = named(tensors) | blocks(model.model.layers, parts or parts_of_llama, "decoder.")
    return filled(build_language_model(whole, vocabulary=V), state), model


def parts_of_llama(layer):
    return {
        "attention.to_q": layer.self_attn.q_proj,
        "attention.to_k": layer.self_attn.k_proj,
        "attention.to_v": layer.self_attn.v_proj,
        "attention.to_out": layer.self_attn.o_proj,
        "attention_residual.before": layer.input_layernorm,
        "feedforward.gate": layer.mlp.gate_proj,
        "feedforward.widen": layer.mlp.up_proj,
        "feedforward.narrow": layer.mlp.down_proj,
        "feedforward_residual.before": layer.post_attention_layernorm,
    }


class Reader(nn.Module):
    """A frontend and an encoder: a Classifier before it pools."""

    def __init__(self, frontend, encoder):
        super().__init__()
        self.frontend, self.encoder = frontend, encoder

    def forward(self, samples, *, layout):
        x, layout = self.frontend(samples, layout)
        return self.encoder(x, layout=layout)


# Asking both


def tokens(length=S):
    """Of any kind, in the padding too: it must not matter what lies there."""
    return torch.randint(V, (B, length))


def layout_of(lengths, longest=S):
    """Full rows say so, as they do in the models."""
    full = min(lengths) == longest
    return Layout.full(B, longest) if full else Layout.padded(lengths, longest=longest)


def seen(layout):
    """The mask as theirs take it: one for a token, zero for padding."""
    return layout.real.expand(layout.rows, -1).long()


class Pair(NamedTuple):
    """Our model, a call of it, and what theirs answers: both at real positions only."""

    ours: nn.Module
    answer: Callable[[], Tensor]
    expected: Tensor


def assert_same(ours, theirs):
    """The same, to the precision of fp32 at their size."""
    size = theirs.abs().max().item()
    assert size > 0.1  # two silences would agree on anything
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * size)


def continuing(make, lengths):
    ours, theirs = make()
    ids, layout = tokens(), layout_of(lengths)
    expected, real = theirs(ids, attention_mask=seen(layout)).logits, seen(layout).bool()
    return Pair(ours, lambda: ours(ids, layout=layout)[real], expected[real])


@torch.no_grad()
def assert_every_weight_is_noticed(pair):
    """A small change of any copied weight, and the answers are no longer the same."""
    for key, weight in pair.ours.named_parameters():
        if key.endswith("to_k.bias"):  # adds the same to all scores of a query: softmax forgets it
            continue
        copied = weight.clone()
        weight.add_(0.01 * torch.randn_like(weight))
        with pytest.raises(AssertionError, match="not close"):
            assert_same(pair.answer(), pair.expected)
        weight.copy_(copied)
    assert_same(pair.answer(), pair.expected)


@torch.no_grad()
def assert_goes_on_as_theirs(ours, theirs, lengths):
    """Both continue prompts of these lengths alike, token by token, with their caches."""
    ids, layout = tokens(), layout_of(lengths)
    on_the_right = torch.stack(  # theirs goes on where a row ends, so it has its padding before
        [row.roll(S - length) for row, length in zip(ids, lengths, strict=True)]
    )
    expected = theirs.generate(
        on_the_right,
        attention_mask=seen(layout).flip(1),
        do_sample=False,
        max_new_tokens=STEPS,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_logits=True,
    )
    caches = ours.decoder.new_caches()
    scores = [ours(ids, layout=layout, caches=caches)[range(B), [n - 1 for n in lengths]]]
    for _ in range(STEPS - 1):
        best = scores[-1].argmax(dim=-1, keepdim=True)  # (B, 1)
        scores.append(ours(best, layout=Layout.full(B, 1), caches=caches)[:, 0])
    assert_same(torch.stack(scores), torch.stack(expected.logits))
    chosen = torch.stack(scores, dim=1).argmax(dim=-1)  # (B, STEPS)
    assert chosen.tolist() == expected.sequences[:, S:].tolist()
