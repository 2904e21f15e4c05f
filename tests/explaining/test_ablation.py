"""Ablation: a copy without some heads or layers, and which heads can go together."""

import pytest
import torch
from torch import nn
from watched_models import B, C, H, T, V, batch, classifier, language_model, translator

from glassformer.config import ModelConfig
from glassformer.config.values import build
from glassformer.core.int8 import Int8Linear
from glassformer.core.layout import Layout
from glassformer.errors import GlassformerError
from glassformer.explaining.ablation import ablated, heads_of, layers_of, named_parts
from glassformer.explaining.pruning import by_importance, head_importance, is_worse, prune
from glassformer.explaining.watching import watching
from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison
from glassformer.models.blocks import BLOCKS
from glassformer.models.build import build_classifier
from glassformer.models.ensemble import ensemble_of
from glassformer.models.incremental import continuing
from glassformer.models.incremental.fused import FusedScorer
from glassformer.models.packing import for_inference, int8_twin

LENGTHS = (7, 2, 5)
MEMBERS = (
    r"'0\.1' is no head or layer of this model; give a member of the ensemble, a layer and a head, "
    r"counted from 0: encoder\.members\.0\.0 to encoder\.members\.2\.0, "
    r"encoder\.members\.0\.0\.0 to encoder\.members\.2\.0\.5"
)


def answers_without(layer, heads, run):
    """What a model says if the answers of these heads are zero, by hand."""
    project = layer.project_out
    keep = torch.ones(H, 1, 1)
    keep[heads] = 0
    vars(layer)["project_out"] = lambda answer: project(answer * keep)
    try:
        return run()
    finally:
        del vars(layer)["project_out"]


@torch.no_grad()
@pytest.mark.parametrize("block", BLOCKS)
def test_an_ablated_head_adds_nothing_and_the_model_stays_as_it_was(block):
    model, ids, layout = classifier(block=block), torch.randint(V, (B, T)), Layout.padded(LENGTHS)
    before = model(ids, layout=layout)
    twin = ablated(model, named_parts(model, "1.5, 1.2"))
    expected = answers_without(
        model.encoder.blocks[1].attention, [5, 2], lambda: model(ids, layout=layout)
    )
    torch.testing.assert_close(twin(ids, layout=layout), expected)
    assert not torch.allclose(expected, before)
    torch.testing.assert_close(model(ids, layout=layout), before, rtol=0, atol=0)
    owned = {id(weight) for weight in model.parameters()}
    assert sum(id(weight) not in owned for weight in twin.parameters()) == 1


@torch.no_grad()
@pytest.mark.parametrize("kind", ["linear", "linformer"])
def test_heads_of_other_kinds_of_attention_are_ablated_as_well(kind):
    model = classifier(attention={"kind": kind}, position={"kind": "learned"})
    ids, layout = torch.randint(V, (B, T)), Layout.full(B, T)
    expected = answers_without(
        model.encoder.blocks[0].attention, [3], lambda: model(ids, layout=layout)
    )
    twin = ablated(model, named_parts(model, "0.3"))
    torch.testing.assert_close(twin(ids, layout=layout), expected)


@torch.no_grad()
def test_a_layer_that_is_left_out_passes_its_input_on():
    model, ids, layout = language_model(depth=3), torch.randint(V, (B, T)), Layout.full(B, T)
    twin = ablated(model, named_parts(model, "2,0"))
    shorter = language_model(depth=1)
    shorter.load_state_dict(
        {
            name.replace("blocks.1.", "blocks.0."): weight
            for name, weight in model.state_dict().items()
            if ".blocks." not in name or ".blocks.1." in name
        }
    )
    torch.testing.assert_close(twin(ids, layout=layout), shorter(ids, layout=layout))
    assert len(model.decoder.blocks) == 3
    twice = ablated(model, named_parts(model, "2,0,2"))
    torch.testing.assert_close(twice(ids, layout=layout), shorter(ids, layout=layout))


@torch.no_grad()
@pytest.mark.parametrize("names", ["0", "2, 0, 1"])
def test_where_no_layer_is_left_the_input_passes_through(names):
    model = language_model(depth=names.count(",") + 1)
    ids, layout = torch.randint(V, (B, T)), Layout.full(B, T)
    twin = ablated(model, named_parts(model, names))
    given = model.decoder.norm(model.tokens(ids, layout)[0], layout)
    vectors, _ = twin.tokens(ids, layout)
    passed = twin.decoder(vectors, layout=layout)
    torch.testing.assert_close(passed, given)
    assert not torch.allclose(model.decoder(vectors, layout=layout), given)
    caches = twin.decoder.new_caches()
    steps = [
        twin.decoder(vectors[:, [n]], layout=Layout.full(B, 1), caches=caches) for n in range(T)
    ]
    torch.testing.assert_close(torch.cat(steps, 1), given)


@torch.no_grad()
def test_the_only_layer_of_a_decoder_is_left_out_with_its_memory():
    model = translator()
    rows, layouts = batch()
    twin = ablated(model, named_parts(model, "encoder.0, decoder.0"))
    memory = model.encoder.norm(model.frontend(rows[0], layouts["source"])[0], layouts["source"])
    source = twin.encoder(twin.frontend(rows[0], layouts["source"])[0], layout=layouts["source"])
    real = layouts["source"].real
    torch.testing.assert_close(source[real], memory[real])
    assert not torch.allclose(twin(*rows, **layouts), model(*rows, **layouts))


@torch.no_grad()
def test_a_layer_of_one_member_of_an_ensemble_is_left_out_and_named_with_it():
    members = [classifier(depth=1) for _ in range(3)]
    model, ids, layout = ensemble_of(members).eval(), torch.randint(V, (B, T)), Layout.full(B, T)
    labels = [part.label for part in layers_of(model)]
    assert labels == [f"encoder.members.{member}.0" for member in range(3)]
    members[1] = ablated(members[1], named_parts(members[1], "0"))
    twin = ablated(model, named_parts(model, labels[1]))
    expected = ensemble_of(members).eval()(ids, layout=layout)
    torch.testing.assert_close(twin(ids, layout=layout), expected)
    assert not torch.allclose(model(ids, layout=layout), expected)
    with pytest.raises(GlassformerError, match=MEMBERS):
        named_parts(model, "0.1")


@torch.no_grad()
def test_fast_steps_and_int8_leave_the_same_heads_out():
    model, prompt = language_model(dim=72), [[1, 2, 3]]
    twin = ablated(for_inference(model), named_parts(model, "0.1"))
    scorers = [continuing(one, prompt) for one in (twin, for_inference(twin))]
    assert [isinstance(scorer, FusedScorer) for scorer in scorers] == [False, True]
    slow, fast = (one.step(torch.tensor([[3]]), one.begin(1, 1))[0] for one in scorers)
    torch.testing.assert_close(slow, fast, rtol=1e-4, atol=1e-4)
    rough = ablated(int8_twin(model), named_parts(model, "0.1"))
    assert isinstance(rough.decoder.blocks[0].attention.to_out, Int8Linear)
    ids, layout = torch.tensor(prompt), Layout.full(1, 3)
    said, exact, whole = (one(ids, layout=layout) for one in (rough, twin, model))
    assert (said - exact).std() < 0.3 * (whole - exact).std()


def test_an_ablated_model_can_be_watched():
    model, ids = classifier(), torch.randint(V, (B, T))
    with watching(ablated(model, named_parts(model, "0.1"))) as (watched, maps):
        scores = watched(ids, layout=Layout.full(B, T))
    assert maps["encoder.blocks.0.attention"].shape == (B, H, T, T)
    assert not torch.allclose(scores, model(ids, layout=Layout.full(B, T)))


def test_heads_and_layers_are_numbered_from_zero_with_their_stack_where_there_are_several():
    one, several = classifier(), translator(depth=2)
    assert [part.label for part in heads_of(one)][5:8] == ["0.5", "1.0", "1.1"]
    assert [part.label for part in layers_of(one)] == ["0", "1"]
    labels = [part.label for part in heads_of(several)]
    assert labels[::H] == [
        *("encoder.0.0", "encoder.1.0", "decoder.0.0", "cross.0.0", "decoder.1.0", "cross.1.0")
    ]
    (found,) = named_parts(several, "cross.1.4")
    assert (found.path, found.head) == ("decoder.blocks.1.cross_attention", 4)
    assert [part.label for part in named_parts(several, "cross.1")] == labels[-H:]
    assert [part.label for part in named_parts(several, "decoder.1")] == ["decoder.1"]


def test_a_head_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(GlassformerError, match=r"'2\.0' is no head .* 0 to 1, 0\.0 to 1\.5"):
        named_parts(classifier(), "2.0")
    with pytest.raises(GlassformerError, match=r"cross\.0\.0 to cross\.1\.5"):
        named_parts(translator(depth=2), "3.5")
    config = build(ModelConfig, {"encoder": {"kind": "gru", "dim": 8, "depth": 1}})
    with pytest.raises(GlassformerError, match="no heads to ablate; use one whose encoder"):
        named_parts(build_classifier(config, source=V, classes=C), "0.0")


@pytest.mark.parametrize("form", ["padded", "packed"])
def test_importance_is_the_mean_slope_of_the_loss_as_a_head_of_a_row_grows(form):
    model, ids = classifier(), torch.randint(V, (B, T))
    layout, right = Layout.padded(LENGTHS), torch.tensor([0, 3, 1])

    def losses(one):
        if form == "packed":
            scores = one(ids[layout.real], layout=layout.as_packed())
        else:
            scores = one(ids, layout=layout)
        yield nn.functional.cross_entropy(scores, right, reduction="sum")

    found = head_importance(model, losses)
    slopes = torch.zeros(H)
    for head in range(H):
        for row, length in enumerate(LENGTHS):
            gained = []
            for size in (1.01, 0.99):
                layer = model.encoder.blocks[1].attention
                factor, project = torch.ones(H, 1, 1), layer.project_out
                factor[head] = size
                vars(layer)["project_out"] = lambda a, f=factor, p=project: p(a * f)
                scores = model(ids[row : row + 1, :length], layout=Layout.full(1, length))
                gained.append(nn.functional.cross_entropy(scores, right[row : row + 1]).item())
                del vars(layer)["project_out"]
            slopes[head] += abs(gained[0] - gained[1])
    torch.testing.assert_close(
        found["encoder.blocks.1.attention"], slopes / slopes.norm(), atol=0.02, rtol=0.05
    )


def test_heads_that_do_nothing_come_first():
    model = classifier()
    idle = named_parts(model, "1.3,0.2")
    twin = ablated(model, idle)
    ids, right = torch.randint(V, (B, T)), torch.tensor([0, 3, 1])

    def losses(one):
        for _ in range(2):
            yield nn.functional.cross_entropy(one(ids, layout=Layout.full(B, T)), right)

    order = by_importance(twin, losses)
    assert {part.label for part in order[:2]} == {"1.3", "0.2"}
    assert len(set(order)) == 2 * H


def compared(value, reach=0.01):
    return Comparison(Score(value, value - reach, value + reach), 0.5, 0, 0, 0)


@pytest.mark.parametrize(
    ("comparison", "higher", "worse"),
    [
        (compared(-0.04, reach=0.05), True, False),
        (compared(-0.06, reach=0.1), True, True),
        (compared(-0.02, reach=0.01), True, True),
        (compared(0.5), True, False),
        (compared(0.06, reach=0.1), False, True),
        (compared(0.02, reach=0.01), False, True),
        (compared(-0.5), False, False),
    ],
    ids=["within", "beyond", "certain", "better", "more errors", "certainly more", "fewer"],
)
def test_a_score_is_worse_beyond_its_tolerance_or_beyond_doubt(comparison, higher, worse):
    assert is_worse(comparison, higher_is_better=higher, tolerance=0.05) == worse


def test_heads_go_a_few_at_a_time_until_the_score_falls():
    model, sizes = classifier(), []

    def compare(twin):
        layers = [block.attention for block in twin.encoder.blocks]
        silent = sum(
            int((layer.to_out.weight.unflatten(1, (H, -1)) == 0).all(-1).all(0).sum())
            for layer in layers
        )
        sizes.append(silent)
        return compared(0.0 if silent <= 7 else -0.3)

    order = heads_of(model)
    steps = list(prune(model, order, compare, steps=5))
    assert sizes == [3, 6, 9, 7, 8]
    assert [step.worse for step in steps] == [False, False, True, False, True]
    assert steps[3].removed == tuple(order[:7])
    kept = list(prune(model, order, lambda twin: compared(0.0), steps=5))
    assert [len(step.removed) for step in kept] == [3, 6, 9, 12]
    assert not any(step.worse for step in kept)
