"""Watching: the weights of any layer, head and query are those of `plain`, whatever runs."""

import copy
from itertools import cycle, product

import pytest
import torch
from torch.nn.attention import flex_attention
from watched_models import (
    SOURCE,
    TARGET,
    TIGHT,
    B,
    G,
    H,
    S,
    T,
    V,
    batch,
    language_model,
    shaken,
    stack,
    translator,
    whole_pass,
)

from glassformer.config import ModelConfig
from glassformer.config.values import build
from glassformer.core.kernels import KERNELS, plain
from glassformer.core.kinds import KINDS
from glassformer.core.layout import Layout
from glassformer.core.positions import POSITIONS
from glassformer.explaining.watching import attention_layers, cross_attentions, watching
from glassformer.models.blocks import BLOCKS
from glassformer.models.build import (
    build_classifier,
    build_language_model,
    build_transcriber,
    build_transformer,
)
from glassformer.models.incremental import BranchingScorer, continuing
from glassformer.models.packing import PackedLinear, int8_twin, packed_twin


def weights_of_plain(model, run, monkeypatch):
    """What the kernel `plain` computes in a pass, in the order of its calls."""
    seen = []
    original = plain.attention_weights
    with monkeypatch.context() as patch:
        patch.setattr(
            plain, "attention_weights", lambda *call: seen.append(original(*call)) or seen[-1]
        )
        run(with_kernel(copy.deepcopy(model), "plain"))
    return seen


def with_kernel(model, name):
    for layer in attention_layers(model).values():
        layer.kernel = name
    return model


def assert_same_for_real_queries(found, expected, name):
    lengths = SOURCE if name.startswith("encoder") else TARGET
    for row, length in enumerate(lengths):
        torch.testing.assert_close(found[row, :, :length], expected[row, :, :length], **TIGHT)


ATTENTIONS = {"grouped": {}, "window": {"window": 3}, "normed": {"qk_norm": True, "kv_heads": H}}
FORMS = ["padded", "packed"]
CASES = list(zip(POSITIONS, cycle(ATTENTIONS), cycle(FORMS), strict=False))


@torch.no_grad()
def assert_shows_what_plain_computes(model, form, monkeypatch, kernel="auto"):
    ids, layouts = batch(getattr(Layout, form))
    expected = weights_of_plain(model, lambda one: one(*ids, **layouts), monkeypatch)
    with watching(with_kernel(model, kernel)) as (watched, maps):
        scores = watched(*ids, **layouts)
    torch.testing.assert_close(scores, model(*ids, **layouts), **TIGHT)
    assert len(maps) == len(expected) == 3
    for (name, found), right in zip(maps.items(), expected, strict=True):
        assert maps.shape(name) == found.shape == right.shape
        assert_same_for_real_queries(found, right, name)
    return maps


def assert_parts_are_those_of_the_whole(maps):
    for name, found in maps.items():
        chosen = maps.rows(name, heads=[4, 1], queries=[5, 2, 3, -1])
        torch.testing.assert_close(chosen, found[:, [4, 1]][:, :, [5, 2, 3, -1]], **TIGHT)
        pieces = list(maps.pieces(name, most=3 * B * H * found.shape[-1]))
        assert [piece.shape[2] for piece in pieces[:2]] == [3, 3]
        torch.testing.assert_close(torch.cat(pieces, 2), found, **TIGHT)


@pytest.mark.parametrize(("position", "attention", "form"), CASES)
def test_weights_are_those_of_plain_in_all_or_in_part(position, attention, form, monkeypatch):
    model = translator(attention=ATTENTIONS[attention], position={"kind": position})
    maps = assert_shows_what_plain_computes(model, form, monkeypatch)
    assert_parts_are_those_of_the_whole(maps)


@pytest.mark.full
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("position", POSITIONS)
def test_weights_are_those_of_plain_in_every_combination(kernel, position, monkeypatch):
    monkeypatch.setattr(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    for attention, form in product(ATTENTIONS.values(), FORMS):
        model = translator(attention=attention, position={"kind": position})
        maps = assert_shows_what_plain_computes(model, form, monkeypatch, kernel)
        assert_parts_are_those_of_the_whole(maps)


@pytest.mark.parametrize("kernel", ["loop", "plain", "tiled", "fused", "packed"])
def test_weights_are_those_of_plain_whatever_kernel_runs(kernel, monkeypatch):
    model = translator(attention={"window": 3}, position={"kind": "alibi"})
    assert_shows_what_plain_computes(model, "padded", monkeypatch, kernel)


@torch.no_grad()
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_recurrent_decoder_shows_the_weights_of_each_step(cell):
    config = {"encoder": stack(), "decoder": stack(kind=cell)}
    model = shaken(build_transformer(build(ModelConfig, config), vocabulary=V))
    (source, target), layouts = batch()
    contexts = []
    with watching(model) as (watched, maps):
        original = watched.decoder._attend
        watched.decoder._attend = lambda *call: contexts.append(original(*call)) or contexts[-1]
        memory = watched.encode(source, layouts["source"])
        watched.decode(target, layouts["target"], memory)
        watched.decode(target, layouts["target"], memory)  # the latest pass alone counts
    assert cross_attentions(model) == ["decoder.attention"]
    weights = maps["decoder.attention"]
    assert maps.shape("decoder.attention") == weights.shape == (B, 1, T, S)
    torch.testing.assert_close(weights[:, 0] @ memory[0].v[:, 0], torch.stack(contexts[T:], 1))
    assert not weights[1, :, :, SOURCE[1] :].any()


@torch.no_grad()
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "softmax"])
def test_weights_of_other_kinds_are_those_that_give_their_answers(kind):
    attention, learned = {"kind": kind, "summary": 5}, {"kind": "learned"}
    config = {"encoder": stack(attention=attention, position=learned)}
    if kind == "linear":
        config = {"decoder": stack(attention=attention, position=learned)}
        model = shaken(build_language_model(build(ModelConfig, config), vocabulary=V))
        stacked = model.decoder
    else:
        model = shaken(build_classifier(build(ModelConfig, config), source=V, classes=2))
        stacked = model.encoder
    layer, values, answers = stacked.blocks[0].attention, [], []
    attend, project = layer.attend, layer.project_out
    vars(layer)["attend"] = lambda q, k, v, *more: values.append(v) or attend(q, k, v, *more)
    vars(layer)["project_out"] = lambda answer: answers.append(answer) or project(answer)
    with watching(model) as (watched, maps):
        watched(torch.randint(V, (B, T)), layout=Layout.padded(TARGET))
    (weights,) = (found for name, found in maps.items() if name.endswith("attention"))
    assert weights.shape == (B, H, T, 5 if kind == "linformer" else T)
    found = weights @ values[0].repeat_interleave(H // G, 1)
    for row, length in enumerate(TARGET):
        torch.testing.assert_close(found[row, :, :length], answers[0][row, :, :length], **TIGHT)
        torch.testing.assert_close(weights[row, :, :length].sum(-1), torch.ones(H, length))


@pytest.mark.parametrize("block", BLOCKS)
def test_gradients_pass_through_the_weights_of_every_block(block):
    frontend = {"kind": "subsampling", "bins": 7, "factor": 2}
    config = {"frontend": frontend, "encoder": stack(block=block), "decoder": stack()}
    model = shaken(build_transcriber(build(ModelConfig, config), vocabulary=V))
    sound, (_, target), layouts = torch.randn(B, 2 * S, 7), *batch()
    layouts["source"] = Layout.padded([2 * length for length in SOURCE])
    real = layouts["target"].real
    assert_derivatives_are_right(model, lambda one: one(sound, target, **layouts).written[real])


@pytest.mark.parametrize("form", ["padded", "packed"])
@pytest.mark.parametrize("kind", ["softmax", "gru", "linear"])
def test_gradients_pass_through_the_weights_of_every_kind(kind, form):
    decoder = {
        "softmax": stack(),
        "gru": stack(kind="gru"),
        "linear": stack(attention={"kind": "linear"}, position={"kind": "learned"}),
    }[kind]
    config = build(ModelConfig, {"encoder": stack(), "decoder": decoder})
    ids, layouts = batch(getattr(Layout, form))
    model = shaken(build_transformer(config, vocabulary=V))
    real = layouts["target"].real
    assert_derivatives_are_right(model, lambda one: one(*ids, **layouts)[real])


def assert_derivatives_are_right(model, run):
    """The derivative by a weight is what the score gains, to first order, when it grows."""
    with watching(model, gradients=True) as (watched, maps):
        scores = run(watched)
    torch.testing.assert_close(scores, run(model), atol=1e-4, rtol=1e-4)
    gradients = maps.gradients(scores[..., 3].sum())
    assert list(gradients) == list(maps)
    for name, gradient in gradients.items():
        torch.manual_seed(1)
        nudge = torch.randn(gradient.shape) * maps[name].detach()
        gained = [run(nudged(model, name, size * nudge))[..., 3].sum() for size in (1e-3, -1e-3)]
        slope = (gained[0] - gained[1]) / 2e-3
        torch.testing.assert_close((gradient * nudge).sum(), slope, rtol=0.03, atol=0.03)


def nudged(model, name, nudge):
    """The same model with other weights in one of its layers."""
    with watching(model, gradients=True) as (watched, _):
        layer, step = attention_layers(watched)[name], iter(nudge.unbind(2))
        original = layer.weigh
        if "weigh" in vars(layer):  # of a recurrent decoder, step by step
            vars(layer)["weigh"] = lambda *call: original(*call) + next(step)
        else:
            vars(layer)["weigh"] = lambda *call: original(*call) + nudge
    return watched


def test_a_pool_that_attends_is_watched_as_one_head_and_one_query():
    config = build(ModelConfig, {"encoder": stack(), "pool": "attention"})
    model = shaken(build_classifier(config, source=V, classes=2))
    ids = torch.randint(V, (B, S))
    with watching(model, gradients=True) as (watched, maps):
        scores = watched(ids, layout=Layout.padded(SOURCE))
    assert maps.shape("pool") == (B, 1, 1, S)
    torch.testing.assert_close(maps["pool"].sum(-1), torch.ones(B, 1, 1))
    assert not maps["pool"][2, 0, 0, SOURCE[2] :].any()
    assert maps.gradients(scores[:, 0].sum())["pool"][0].abs().min() > 0


def test_only_the_named_layers_are_recorded():
    model, ids = language_model(depth=3), torch.randint(V, (B, T))
    with watching(model, layers=["decoder.blocks.1.attention"]) as (watched, maps):
        watched(ids, layout=Layout.full(B, T))
    assert list(maps) == ["decoder.blocks.1.attention"]
    right = whole_pass(model, ids)["decoder.blocks.1.attention"]
    torch.testing.assert_close(maps["decoder.blocks.1.attention"], right)


def test_a_model_made_for_inference_is_watched_without_what_makes_it_fast():
    model, ids = language_model(), torch.randint(V, (B, T))
    packed = packed_twin(model)
    packed.frozen = True
    assert any(isinstance(part, PackedLinear) for part in packed.modules())
    with watching(packed, gradients=True) as (watched, maps):
        scores = watched(ids, layout=Layout.full(B, T))
    assert isinstance(continuing(watched, [[1, 2]]), BranchingScorer)
    assert watched.tokens.table.weight is model.tokens.table.weight
    assert maps.gradients(scores.sum())["decoder.blocks.0.attention"].abs().sum() > 0
    for name, right in whole_pass(model, ids).items():
        torch.testing.assert_close(maps[name], right, **TIGHT)


@pytest.mark.full
def test_a_compiled_model_is_watched_in_eager_mode():
    model, ids = language_model(), torch.randint(V, (B, T))
    right = whole_pass(model, ids)["decoder.blocks.0.attention"]
    model.decoder.blocks[0].compile()  # at its first call, which the copy never makes
    for compiled in (model, torch.compile(model)):
        found = whole_pass(compiled, ids)["decoder.blocks.0.attention"]
        torch.testing.assert_close(found, right)


def test_int8_shows_its_own_weights_and_has_no_gradients():
    model = shaken(
        build_language_model(build(ModelConfig, {"decoder": stack(dim=72)}), vocabulary=V)
    )
    ids, int8 = torch.randint(V, (B, T)), int8_twin(model)
    (exact,), (rough,) = (whole_pass(one, ids).values() for one in (model, int8))
    assert 0 < (exact - rough).abs().max() < 0.1
    with pytest.raises(ValueError, match="int8 have no gradients; watch the model that"):
        watching(int8, gradients=True).__enter__()


@torch.no_grad()
def test_a_long_input_is_read_without_memory_for_all_its_weights():
    model, length = language_model(depth=2, max_length=4096), 4096
    with watching(model) as (watched, maps):
        watched(torch.randint(V, (1, length)), layout=Layout.full(1, length))
    name = "decoder.blocks.1.attention"
    assert maps.shape(name) == (1, H, length, length)
    row = maps.rows(name, heads=[5], queries=[4000])
    assert row.shape == (1, 1, 1, length)
    torch.testing.assert_close(row.sum(), torch.tensor(1.0))
    assert not row[..., 4001:].any()
    kept = [maps.recordings[one] for one in maps]
    assert sum(one.q.numel() + one.k.numel() for one in kept) == 2 * length * (24 + 8)
    assert next(maps.pieces(name)).numel() <= 2**22


def test_what_cannot_be_watched_is_refused():
    model = language_model()
    with pytest.raises(ValueError, match=r"unknown attention layer 'decoder\.0'; the choices are"):
        watching(model, layers=["decoder.0"]).__enter__()
    with watching(model) as (watched, maps):
        watched(torch.ones(1, 2, dtype=torch.long), layout=Layout.full(1, 2))
    with pytest.raises(KeyError, match=r"did you mean 'decoder\.blocks\.0\.attention'"):
        maps["decoder.blocks.1.attention"]
    with pytest.raises(ValueError, match="there are 6 heads, and no number 6; count from 0"):
        maps.rows("decoder.blocks.0.attention", heads=[6])
    with pytest.raises(ValueError, match=r"no gradients pass.*gradients=True"):
        maps.gradients(torch.tensor(1.0, requires_grad=True))
