"""An ensemble: each member is a classifier of its own, and the mean of them answers."""

from dataclasses import replace

import pytest
import torch

from glassformer.config import FrontendConfig, ModelConfig, StackConfig
from glassformer.core.layout import Layout, pack
from glassformer.errors import GlassformerError
from glassformer.explaining.watching import watching
from glassformer.models.build import build_classifier
from glassformer.models.ensemble import ensemble_of, members_of
from glassformer.models.fused_encoder import FusedEncoder
from glassformer.models.packing import for_inference

WORDS, CLASSES, MEMBERS, DIM = 29, 5, 3, 12
STACK = StackConfig(dim=DIM, depth=2, max_length=23, dropout=0.0)
LENGTHS = (7, 2, 11)
CONFIG = ModelConfig(encoder=replace(STACK, attention=replace(STACK.attention, heads=2)))
KINDS = {
    "tokens": CONFIG,
    "n-grams": replace(CONFIG, pool="attention", frontend=FrontendConfig(kind="ngrams", buckets=7)),
    "maximum": replace(CONFIG, pool="max"),
    "gru": replace(CONFIG, encoder=replace(STACK, kind="gru")),
}


def members(config=CONFIG):
    return [build_classifier(config, classes=CLASSES, source=WORDS) for _ in range(MEMBERS)]


def batch(lengths=LENGTHS):
    return torch.randint(WORDS, (len(lengths), max(lengths))), Layout.padded(lengths)


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_its_answer_is_the_mean_of_its_members(kind):
    alone, (ids, layout) = members(KINDS[kind]), batch()
    model = ensemble_of(alone).eval()
    each = torch.stack([one.eval()(ids, layout=layout) for one in alone], 1)
    torch.testing.assert_close(model(ids, layout=layout), each.mean(1))
    model.train()
    torch.testing.assert_close(model(ids, layout=layout), each)
    flat = layout.as_packed()
    packed = model(pack(ids, flat), layout=flat)
    torch.testing.assert_close(packed, each, atol=1e-5, rtol=1e-5)
    vectors = torch.cat([one.pooled(ids, layout=layout) for one in alone], -1)
    torch.testing.assert_close(model.pooled(ids, layout=layout), vectors)


def test_nothing_passes_between_members():
    model, (ids, layout) = ensemble_of(members()).train(), batch()
    model(ids, layout=layout)[:, 1].square().sum().backward()
    learned = {name for name, one in model.named_parameters() if one.grad is not None}
    touched = {name for name in learned if model.get_parameter(name).grad.abs().sum() > 0}
    assert touched
    assert all(".members.1." in name for name in touched)


def test_settings_make_one_whose_members_start_apart():
    model = build_classifier(replace(CONFIG, members=MEMBERS), classes=CLASSES, source=WORDS)
    encoders = members_of(model.encoder)
    assert (model.members, len(encoders), model.frontend.dim) == (MEMBERS, MEMBERS, MEMBERS * DIM)
    first, second = (one.blocks[0].attention.to_q.weight for one in encoders[:2])
    assert not torch.equal(first, second)
    one = build_classifier(CONFIG, classes=CLASSES, source=WORDS)
    assert (one.members, members_of(one.encoder)) == (1, [one.encoder])


def test_one_frontend_does_not_make_several_members():
    frontend = build_classifier(CONFIG, classes=CLASSES, source=WORDS).frontend
    with pytest.raises(GlassformerError, match="members = 3 needs as many frontends"):
        build_classifier(replace(CONFIG, members=3), classes=CLASSES, source=frontend)


@torch.inference_mode()
def test_members_of_the_usual_kind_are_fused():
    model, (ids, layout) = ensemble_of(members()).eval(), batch()
    twin = for_inference(model)
    assert all(isinstance(one, FusedEncoder) for one in members_of(twin.encoder))
    torch.testing.assert_close(twin(ids, layout=layout), model(ids, layout=layout))
    unusual = ensemble_of([*members(), *members(KINDS["gru"])])
    assert for_inference(unusual) is unusual


def test_the_attention_of_each_member_is_seen():
    model, (ids, layout) = ensemble_of(members(KINDS["n-grams"])).eval(), batch()
    with torch.no_grad(), watching(model) as (watched, maps):
        watched(ids, layout=layout)
    groups = [list(some) for some in maps.by_member()]
    assert groups[2] == [
        *(f"encoder.members.2.blocks.{block}.attention" for block in range(2)),
        "pool.members.2",
    ]
    assert len(groups) == MEMBERS
    with torch.no_grad(), watching(members_of(model.encoder)[0]) as (watched, maps):
        watched(torch.zeros(1, 3, DIM), layout=Layout.padded([3]))
    assert [list(some) for some in maps.by_member()] == [list(maps)]


def test_more_networks_than_any_memory_holds_are_refused():
    with pytest.raises(GlassformerError, match="members must be at most 32, got 1000"):
        replace(CONFIG, members=1000)
