"""What every position scheme promises, and what each of them is.

The promises run over POSITIONS, so a new scheme is held to them the moment it is listed.
"""

import itertools
import math

import pytest
import torch
from torch import nn

from glassformer.core.attention import Heads, MultiHeadAttention
from glassformer.core.layout import Layout, pack
from glassformer.core.masks import causal, everything
from glassformer.core.positions import POSITIONS, Position, Sinusoidal, Yarn, make_position

B, H, T, S, D = 2, 3, 7, 13, 37  # all different and prime, so a swapped axis cannot hide
K = 2 * 5  # rotary turns pairs of channels, so a head cannot have a prime width
LONGEST = 31
ORDER = torch.tensor([3, 0, 6, 4, 1, 2, 5])

each_scheme = pytest.mark.parametrize("name", POSITIONS)


def scheme(name, max_length=LONGEST, **options):
    """The scheme with no weight left at zero, where a mistake could hide."""
    position = make_position(name, D, H, max_length, width=K, **options)
    for weight in position.parameters():
        nn.init.normal_(weight)
    return position


def standing(start, length, rows=B):
    """Full rows whose first tokens stand at `start`."""
    return Layout.full(rows, length).shifted(torch.tensor([start]), start + length)


def scores(position, q, k, queries, keys):
    """What attention takes the softmax of, once the last two doors are passed: (B, H, T, S)."""
    turned_q, turned_k = position.turn(q, q, queries)[0], position.turn(k, k, keys)[1]
    bias = position.bias(turned_q, queries, keys)
    plain = turned_q @ turned_k.mT / math.sqrt(q.shape[-1])
    return plain if bias is None else plain + bias.scores(queries, keys)


def answers(position, x, layout, mask=everything):
    """The whole way, by the first door and then through the same attention every time."""
    attend, chance = MultiHeadAttention(D, Heads(H, key_width=K)), torch.Generator().manual_seed(1)
    for weight in attend.parameters():
        nn.init.normal_(weight, std=D**-0.5, generator=chance)
    x = position.embed(x, layout)
    return attend.to(x.dtype)(x, position=position, layout=layout, mask=mask)


def varies(x, along):
    return not x.narrow(along, 0, 1).expand_as(x).equal(x)


# Every scheme


@each_scheme
def test_where_enters_by_one_door_or_by_none(name):
    # The same vector everywhere: what then varies along the sequence, varies by position.
    position, layout = scheme(name), Layout.full(B, T)
    x, q = torch.randn(B, 1, D).expand(B, T, D), torch.randn(B, H, 1, K).expand(B, H, T, K)
    bias = position.bias(q, layout, layout)
    doors = {
        "embed": varies(position.embed(x, layout), along=1),
        "turn": any(varies(turned, along=2) for turned in position.turn(q, q, layout)),
        "bias": bias is not None and varies(bias.scores(layout, layout), along=3),
    }
    assert sum(doors.values()) == (0 if name == "none" else 1), doors


@each_scheme
def test_where_depends_only_on_where(name):
    position, whole, part, cut = scheme(name), Layout.full(B, S), standing(4, T), slice(4, 4 + T)
    x, q, k = torch.randn(B, S, D), torch.randn(B, H, S, K), torch.randn(B, H, S, K)
    assert position.embed(x[:, cut], part).equal(position.embed(x, whole)[:, cut])
    all_scores = scores(position, q, k, whole, whole)
    rows = scores(position, q[:, :, cut], k, part, whole)
    columns = scores(position, q, k[:, :, cut], whole, part)
    torch.testing.assert_close(rows, all_scores[:, :, cut])
    torch.testing.assert_close(columns, all_scores[:, :, :, cut])


@each_scheme
@pytest.mark.parametrize("mask", [everything, causal], ids=str)
def test_packed_padded_and_each_row_alone_are_answered_alike(name, mask):
    position, lengths, starts = scheme(name), [2, T, 5], [11, 0, 17]
    packed = Layout.packed(lengths).shifted(torch.tensor(starts), 17 + T)
    padded, x = packed.as_padded(), torch.randn(3, T, D)
    in_pack = answers(position, pack(x, packed), packed, mask)
    torch.testing.assert_close(in_pack, pack(answers(position, x, padded, mask), packed))
    alone = [
        answers(position, x[row : row + 1, :length], standing(start, length, rows=1), mask)[0]
        for row, (length, start) in enumerate(zip(lengths, starts, strict=True))
    ]
    torch.testing.assert_close(in_pack, torch.cat(alone))


@each_scheme
def test_only_schemes_of_the_first_door_care_where_you_start(name):
    position, x = scheme(name), torch.randn(B, T, D)
    here, there = (answers(position, x, standing(start, T), causal) for start in (0, 17))
    if POSITIONS[name].embed is Position.embed:
        torch.testing.assert_close(there, here)
    else:
        assert (there - here).abs().max() > 0.01


@each_scheme
def test_only_without_positions_does_permuting_the_input_permute_the_output(name):
    position, layout = scheme(name).double(), Layout.full(B, T)
    x = torch.randn(B, T, D, dtype=torch.float64)
    before, after = answers(position, x, layout), answers(position, x[:, ORDER], layout)
    if name == "none":
        torch.testing.assert_close(after, before[:, ORDER], rtol=0, atol=1e-14)
    else:
        assert (after - before[:, ORDER]).abs().max() > 0.01


@pytest.mark.parametrize("name", [name for name in POSITIONS if name != "learned"])
def test_beyond_max_length_a_scheme_goes_on_as_if_it_had_been_made_longer(name):
    short, long = scheme(name, max_length=5), scheme(name, max_length=1009)
    long.load_state_dict(short.state_dict())
    x, layout = torch.randn(B, S, D), standing(211, S)
    beyond = answers(short, x, layout)
    assert beyond.isfinite().all()
    assert beyond.equal(answers(long, x, layout))


@pytest.mark.usefixtures("half_on_cpu")
@each_scheme
def test_half_precision_in_is_half_precision_out_and_close(name):
    position, x, layout = scheme(name), torch.randn(B, T, D), Layout.full(B, T)
    exact = answers(position, x, layout)
    rounded = answers(position.bfloat16(), x.bfloat16(), layout)
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.float(), exact, atol=0.05, rtol=0)


def test_a_misspelt_scheme_is_answered_with_the_nearest_and_all_choices():
    with pytest.raises(ValueError) as refusal:  # noqa: PT011, the words are compared below
        make_position("rotery", D, H, LONGEST)
    assert str(refusal.value) == (
        f"unknown position 'rotery'; did you mean 'rotary'? The choices are {', '.join(POSITIONS)}"
    )


CHECKPOINT_KEYS = {
    **{name: {} for name in ("none", "sinusoidal", "rotary", "alibi")},
    "learned": {"table.weight": (LONGEST, D)},
    "t5": {"worth.weight": (32, H)},
    "shaw": {"keys.weight": (33, K)},
    "transformer-xl": {"content": (H, K), "distance": (H, K), "to_r.weight": (H * K, D)},
}


@pytest.mark.parametrize("name", CHECKPOINT_KEYS)
def test_weights_keep_their_names_in_checkpoints(name):
    shapes = {key: tuple(weight.shape) for key, weight in scheme(name).state_dict().items()}
    assert shapes == CHECKPOINT_KEYS[name]


# Learned


def test_a_learned_table_ends_with_an_error_that_gives_both_numbers_and_ways_out():
    position, x = scheme("learned", max_length=S), torch.randn(B, T, D)
    last = position.embed(x, standing(S - T, T)) - x
    torch.testing.assert_close(last, position.table.weight[S - T :].expand(B, T, D))
    with pytest.raises(ValueError) as refusal:  # noqa: PT011, the words are compared below
        position.embed(x, standing(S - T + 1, T))
    assert str(refusal.value) == (
        "positions up to 13 are needed, but the learned table has only 13; "
        "shorten the input, raise max_length and train again, "
        "or choose a scheme that extends (rotary, alibi, sinusoidal)"
    )


# Sinusoidal


def wave(at, dim):
    """p[i, 2j] = sin(i / 10000^(2j/d)) and p[i, 2j+1] = cos(i / 10000^(2j/d)), spelt out."""
    code = []
    for channel in range(dim):
        angle = at / 10_000 ** (2 * (channel // 2) / dim)
        code.append(math.cos(angle) if channel % 2 else math.sin(angle))
    return torch.tensor(code)


@pytest.mark.parametrize("dim", [1, 2, D, D + 1])
def test_sinusoidal_codes_are_the_interleaved_formula_for_even_and_odd_widths(dim):
    x, expected = torch.randn(B, S, dim), torch.stack([wave(at, dim) for at in range(S)])
    added = Sinusoidal(dim, 1, T).embed(x, Layout.full(B, S)) - x
    torch.testing.assert_close(added, expected.expand(B, S, dim))


@pytest.mark.parametrize("step", [1, 5, -3])
def test_moving_turns_each_sine_and_cosine_by_an_angle_that_does_not_depend_on_where(step):
    dim, nothing = 2 * S, torch.zeros(1, S, 2 * S)
    before, after = (
        Sinusoidal(dim, 1, T).embed(nothing, standing(start, S, rows=1))[0]
        for start in (19, 19 + step)
    )
    for j in range(S):
        angle, pair = step / 10_000 ** (2 * j / dim), slice(2 * j, 2 * j + 2)
        cos, sin = math.cos(angle), math.sin(angle)
        torch.testing.assert_close(
            before[:, pair] @ torch.tensor([[cos, sin], [-sin, cos]]).T, after[:, pair]
        )


# Rotary


def as_complex(x):
    """Channels j and j + K/2 as one number each, in double precision."""
    return torch.complex(*x.double().chunk(2, dim=-1))


@pytest.mark.parametrize("scaling", [None, Yarn(7.0, 211)], ids=str)
def test_turning_changes_no_length_but_by_the_sharpness(scaling):
    x, sharpness = torch.randn(B, H, T, K), 1.0 if scaling is None else scaling.sharpness
    for turned in scheme("rotary", scaling=scaling).turn(x, x, standing(1009, T)):
        torch.testing.assert_close(turned.norm(dim=-1), sharpness * x.norm(dim=-1))


@pytest.mark.parametrize("at", [0, 3, LONGEST - 1], ids=["first", "later", "beyond the table"])
def test_compiled_models_look_up_the_same_angles(monkeypatch, at):
    position, x = scheme("rotary", scaling=Yarn(7.0, 211)), torch.randn(B, H, T, K)
    expected = position.turn(x, x, standing(at, T))
    if at + T <= LONGEST:
        position.speed.fill_(torch.nan)  # so that nothing can be computed
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for found, computed in zip(position.turn(x, x, standing(at, T)), expected, strict=True):
        assert torch.equal(found, computed)


@pytest.mark.usefixtures("half_on_cpu")
def test_angles_are_exact_to_the_rounding_of_bf16_even_at_position_100_000():
    at, x = 100_000, torch.randn(B, H, T, K).bfloat16()
    where = torch.arange(at, at + T)
    speed = 10_000.0 ** (-2 * torch.arange(K // 2, dtype=torch.float64) / K)
    truth = as_complex(x) * torch.exp(1j * where.double()[:, None] * speed)

    def error(turned):
        return ((as_complex(turned) - truth).abs() / truth.abs()).max()

    enough = 2 * torch.finfo(torch.bfloat16).eps  # cosine, product and sum are rounded once each
    for turned in scheme("rotary").turn(x, x, standing(at, T)):
        assert turned.dtype == torch.bfloat16
        assert error(turned) < enough
    angle, (a, b) = where.bfloat16()[:, None] * speed.bfloat16(), x.chunk(2, dim=-1)
    careless = [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
    assert error(torch.cat(careless, dim=-1)) > 1


def test_an_odd_head_is_refused_with_its_width():
    words = "rotary positions rotate pairs of channels, but a head has 11; choose an even width"
    with pytest.raises(ValueError, match=f"^{words}$"):
        make_position("rotary", H * 11, H, LONGEST)
    with pytest.raises(ValueError, match=r"a head has 3, 0\.25 of 12; choose an even width"):
        make_position("rotary", H * 12, H, LONGEST, fraction=0.25)


# ALiBi


EIGHT = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
SIXTEEN = [2 ** (-n / 2) for n in range(1, 17)]
PUBLISHED = {8: EIGHT, 12: EIGHT + SIXTEEN[::2][:4], 16: SIXTEEN}


@pytest.mark.parametrize(("heads", "slopes"), PUBLISHED.items(), ids=str)
def test_alibi_prefers_the_near_by_the_published_slope_for_every_step(heads, slopes):
    position, layout = make_position("alibi", D, heads, LONGEST), standing(5, T)
    bias = position.bias(torch.randn(B, heads, T, K), layout, layout).scores(layout, layout)
    for t, s in itertools.product(range(T), range(T)):
        torch.testing.assert_close(bias[0, :, t, s], -abs(t - s) * torch.tensor(slopes))


# T5


@pytest.mark.parametrize(
    ("buckets", "max_distance", "both_ways"),
    [(32, 128, True), (32, 128, False), (12, 23, True), (28, 441, True)],
)
def test_buckets_are_those_of_hugging_face(buckets, max_distance, both_ways):
    theirs = pytest.importorskip("transformers.models.t5.modeling_t5").T5Attention
    options = {"buckets": buckets, "max_distance": max_distance, "both_ways": both_ways}
    distance = torch.arange(-500, 501)
    expected = theirs._relative_position_bucket(distance, both_ways, buckets, max_distance)
    assert scheme("t5", **options).bucket(distance).equal(expected)


# Shaw and Transformer-XL


def test_shaw_scores_are_the_formula_pair_by_pair():
    position, layout = scheme("shaw", clip=3), standing(4, T)
    q, k = torch.randn(B, H, T, K), torch.randn(B, H, T, K)
    expected = torch.zeros(B, H, T, T)
    for i, j in itertools.product(range(T), range(T)):
        a = position.keys.weight[max(-3, min(3, j - i)) + 3]
        expected[:, :, i, j] = (q[:, :, i] * (k[:, :, j] + a)).sum(-1) / math.sqrt(K)
    torch.testing.assert_close(scores(position, q, k, layout, layout), expected)


def test_transformer_xl_scores_are_the_formula_pair_by_pair():
    position, layout = scheme("transformer-xl"), standing(4, T)
    q, k = torch.randn(B, H, T, K), torch.randn(B, H, T, K)
    u, v, to_r = position.content, position.distance, position.to_r.weight
    expected = torch.zeros(B, H, T, T)
    for i, j in itertools.product(range(T), range(T)):
        r = (to_r @ wave(i - j, D)).unflatten(0, (H, K))
        content = ((q[:, :, i] + u) * k[:, :, j]).sum(-1)  # (B, H)
        distance = ((q[:, :, i] + v) * r).sum(-1)
        expected[:, :, i, j] = (content + distance) / math.sqrt(K)
    torch.testing.assert_close(scores(position, q, k, layout, layout), expected)
