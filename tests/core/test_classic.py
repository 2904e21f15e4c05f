"""The classic attentions: each equals its formula, and padding is never looked at."""

import math

import pytest
import torch
import torch.nn.functional as F

from glassformer.core.attention import Heads, MultiHeadAttention, attend, describe
from glassformer.core.classic import (
    AdditiveAttention,
    KernelRegression,
    all_but_self,
    basic_self_attention,
    dot_product_attention,
    masked_softmax,
    wide_attention,
)
from glassformer.core.masks import valid_lengths

B, H, T, S, K, W = 2, 3, 5, 7, 11, 13  # all different and prime, so a swapped axis cannot hide
QUERY_DIM, KEY_DIM, HIDDEN = 17, 19, 23

LENGTHS = {
    "none": None,
    "a row": torch.tensor([4, S]),
    "a query": torch.tensor([[1, 2, 3, 5, 7], [7, 6, 2, 1, 4]]),
}
BLIND = {"a row": torch.tensor([0, S]), "a query": torch.tensor([[0] * T, [1, 2, 3, 5, 7]])}

each_length = pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS.keys())
each_blind = pytest.mark.parametrize("lengths", BLIND.values(), ids=BLIND.keys())


def lengths_of_each_query(lengths):
    """The same promise, spelt out: one length for every query."""
    if lengths is None:
        return [[S] * T] * B
    return (lengths if lengths.ndim == 2 else lengths[:, None].expand(B, T)).tolist()


def may_see(lengths):
    return torch.tensor(
        [[[s < n for s in range(S)] for n in row] for row in lengths_of_each_query(lengths)]
    )


# The parameter-free one


def test_basic_self_attention_is_unscaled_softmax_of_all_pairs():
    x = torch.randn(B, T, K)
    torch.testing.assert_close(
        basic_self_attention(x), F.scaled_dot_product_attention(x, x, x, scale=1.0)
    )


def test_permuting_the_input_permutes_the_output():
    x, order = torch.randn(B, T, K), torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(basic_self_attention(x[:, order]), basic_self_attention(x)[:, order])


# Padding


@each_length
def test_weights_are_the_softmax_of_the_real_keys_and_zero_on_the_rest(lengths):
    scores = torch.randn(B, T, S)
    weights = masked_softmax(scores, lengths)
    for b, row in enumerate(lengths_of_each_query(lengths)):
        for t, real in enumerate(row):
            torch.testing.assert_close(weights[b, t, :real], scores[b, t, :real].softmax(-1))
            assert weights[b, t, real:].eq(0).all()


@each_length
def test_each_query_shares_out_exactly_one(lengths):
    weights = masked_softmax(9 * torch.randn(B, T, S), lengths)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, T))


@each_blind
def test_a_query_without_keys_takes_nothing_from_anyone(lengths):
    weights = masked_softmax(torch.randn(B, T, S), lengths)
    assert weights[0].eq(0).all()
    torch.testing.assert_close(weights[1].sum(-1), torch.ones(T))


@pytest.mark.parametrize("attention", ["dot product", "additive"])
@each_blind
def test_a_blind_query_answers_zero_with_finite_gradients(attention, lengths):
    q, k, v = (torch.randn(B, n, K, requires_grad=True) for n in (T, S, S))
    attend = AdditiveAttention(K, K, HIDDEN) if attention == "additive" else dot_product_attention
    answers = attend(q, k, v, lengths)
    assert answers[0].eq(0).all()
    assert answers[1].ne(0).all()
    with torch.autograd.set_detect_anomaly(True):  # not even on the way may there be a NaN
        attend(q, k, v, lengths).square().sum().backward()
    for leaf in (q, k, v):
        assert leaf.grad.isfinite().all()
        assert leaf.grad[0].eq(0).all()
        assert leaf.grad[1].ne(0).any()


@pytest.mark.parametrize("attention", ["dot product", "additive"])
def test_what_is_in_the_padding_changes_nothing(attention):
    q, k, v = torch.randn(B, T, K), torch.randn(B, S, K), torch.randn(B, S, W)
    attend = AdditiveAttention(K, K, HIDDEN) if attention == "additive" else dot_product_attention
    before = attend(q, k, v, torch.tensor([4, S]))
    k[0, 4:], v[0, 4:] = 100.0, -100.0
    assert attend(q, k, v, torch.tensor([4, S])).equal(before)
    k[0, 3] = 100.0
    assert not attend(q, k, v, torch.tensor([4, S])).equal(before)


@pytest.mark.usefixtures("half_on_cpu")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_weights_keep_the_precision_they_were_given(dtype):
    weights = masked_softmax(torch.randn(B, T, S, dtype=dtype), torch.tensor([0, 4]))
    assert weights.dtype == dtype
    torch.testing.assert_close(weights[1].sum(-1), torch.ones(T, dtype=dtype))


def test_an_empty_batch_is_answered_with_an_empty_batch():
    none = torch.zeros(0, dtype=torch.long)
    assert masked_softmax(torch.zeros(0, T, S), none).shape == (0, T, S)


@pytest.mark.parametrize("shape", [(T,), (B, S), (B, T, S), ()], ids=str)
@pytest.mark.usefixtures("without_shape_hook")
def test_lengths_of_a_wrong_shape_are_refused_in_words(shape):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011, the words are compared below
        masked_softmax(torch.zeros(B, T, S), torch.ones(shape, dtype=torch.long))
    assert str(refusal.value) == (
        f"valid_lengths of shape {shape} do not fit scores of shape (2, 5, 7); "
        "give one length per row, shape (2,), or one per query, shape (2, 5)"
    )


@each_blind
def test_valid_lengths_mean_the_same_as_a_mask(lengths):
    q, k, v = torch.randn(B, T, K), torch.randn(B, S, K), torch.randn(B, S, W)
    heads = [x[:, None] for x in (q, k, v)]
    mask = valid_lengths(lengths)
    answer = attend(*heads, describe(*heads[:2], mask=mask))[:, 0]
    torch.testing.assert_close(answer, dot_product_attention(q, k, v, lengths))


def test_lengths_beyond_the_keys_are_refused_in_words():
    with pytest.raises(
        ValueError,
        match=r"^a valid length is 8, but there are only 7 keys; "
        "shorten it to 7 or pad the keys to 8$",
    ):
        masked_softmax(torch.zeros(B, T, S), torch.tensor([3, 8]))


def test_negative_lengths_are_refused_in_words():
    with pytest.raises(
        ValueError,
        match=r"^a valid length is -1, but must be from 0 to 7, the number of keys; "
        "use 0 for a query that may see nothing$",
    ):
        masked_softmax(torch.zeros(B, T, S), torch.tensor([-1, 3]))


def test_lengths_on_another_device_are_not_read():
    # A tensor on "meta" has no values: reading one raises, as reading from a GPU would wait.
    scores, lengths = torch.zeros(B, T, S, device="meta"), torch.tensor([3, 8]).to("meta")
    assert masked_softmax(scores, lengths).shape == (B, T, S)


# Dot product


@each_length
def test_dot_product_attention_equals_torch(lengths):
    q, k, v = torch.randn(B, T, K), torch.randn(B, S, K), torch.randn(B, S, W)
    torch.testing.assert_close(
        dot_product_attention(q, k, v, lengths),
        F.scaled_dot_product_attention(q, k, v, attn_mask=may_see(lengths)),
    )


@pytest.mark.usefixtures("without_shape_hook")
def test_a_dot_product_of_different_widths_is_refused_in_words():
    with pytest.raises(
        ValueError,
        match=r"^a dot product needs one width: queries have 11, keys 13; "
        "project one of them, or use AdditiveAttention$",
    ):
        dot_product_attention(torch.zeros(B, T, K), torch.zeros(B, S, W), torch.zeros(B, S, W))


# Additive


@each_length
def test_additive_attention_equals_its_formula_pair_by_pair(lengths):
    attend = AdditiveAttention(QUERY_DIM, KEY_DIM, HIDDEN)
    q, k, v = torch.randn(B, T, QUERY_DIM), torch.randn(B, S, KEY_DIM), torch.randn(B, S, W)
    expected = torch.zeros(B, T, W)
    for b, row in enumerate(lengths_of_each_query(lengths)):
        for t, real in enumerate(row):
            scores = []
            for s in range(real):
                hidden = torch.tanh(attend.to_q.weight @ q[b, t] + attend.to_k.weight @ k[b, s])
                scores.append(torch.dot(attend.to_score.weight[0], hidden))
            total = sum(score.exp() for score in scores)
            expected[b, t] = sum(score.exp() / total * v[b, s] for s, score in enumerate(scores))
    torch.testing.assert_close(attend(q, k, v, lengths), expected)
    torch.testing.assert_close(attend.weights(q, k, lengths) @ v, expected)


def test_additive_attention_keeps_its_names_in_checkpoints():
    shapes = {
        name: tuple(x.shape) for name, x in AdditiveAttention(17, 19, 23).state_dict().items()
    }
    assert shapes == {"to_q.weight": (23, 17), "to_k.weight": (23, 19), "to_score.weight": (1, 23)}


# Kernel regression


def noisy_curve(points, seed):
    """Samples of y = 2 sin(x) + x^0.8, blurred by noise."""
    chance = torch.Generator().manual_seed(seed)
    x = 5 * torch.rand(points, generator=chance)
    return x, 2 * x.sin() + x**0.8 + 0.5 * torch.randn(points, generator=chance)


def learnt_width(x, y, may_see):
    kernel = KernelRegression(width=1.0, learn=True)
    optimizer = torch.optim.Adam(kernel.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        F.mse_loss(kernel(x, x, y, may_see), y).backward()
        optimizer.step()
    return kernel


@pytest.mark.parametrize("width", [0.3, 1.0, 4.0])
def test_kernel_regression_is_the_gaussian_average_of_nadaraya_and_watson(width):
    queries, keys, values = torch.randn(T), torch.randn(S), torch.randn(S)
    near = torch.distributions.Normal(keys, width).log_prob(queries[:, None]).exp()  # (T, S)
    torch.testing.assert_close(
        KernelRegression(width)(queries, keys, values), (near * values).sum(1) / near.sum(1)
    )


def test_far_from_every_sample_the_nearest_one_answers():
    kernel = KernelRegression(width=0.01)
    answer = kernel(
        torch.tensor([1000.0]), torch.tensor([0.0, 2.0, 1.0]), torch.tensor([3.0, 5.0, 7.0])
    )
    assert answer.item() == 5.0


def test_a_hidden_sample_might_as_well_not_exist():
    kernel, queries, keys, values = (
        KernelRegression(0.7),
        torch.randn(T),
        torch.randn(S),
        torch.randn(S),
    )
    allowed = torch.ones(T, S, dtype=torch.bool)
    allowed[:, 3] = False
    others = torch.tensor([0, 1, 2, 4, 5, 6])
    torch.testing.assert_close(
        kernel(queries, keys, values, allowed), kernel(queries, keys[others], values[others])
    )


def test_a_lone_sample_that_may_not_see_itself_answers_zero_with_finite_gradients():
    kernel, x = KernelRegression(learn=True), torch.tensor([2.0], requires_grad=True)
    answer = kernel(x, x, torch.tensor([3.0]), all_but_self(x))
    answer.square().sum().backward()
    assert answer.item() == 0
    assert x.grad.item() == 0
    assert kernel.log_width.grad.item() == 0


def test_a_fixed_width_is_no_parameter_and_a_learnt_one_is():
    fixed, learnt = KernelRegression(0.5), KernelRegression(0.5, learn=True)
    assert [name for name, _ in fixed.named_parameters()] == []
    assert [name for name, _ in learnt.named_parameters()] == ["log_width"]


@pytest.mark.parametrize("learn", [False, True])
def test_the_width_survives_a_checkpoint(learn):
    saved = KernelRegression(0.5, learn=True).state_dict()
    assert list(saved) == ["log_width"]
    kernel = KernelRegression(3.0, learn)
    kernel.load_state_dict(saved)
    assert kernel.width.item() == pytest.approx(0.5)


def test_the_learnt_width_beats_the_widest_and_the_narrowest():
    x, y = noisy_curve(53, seed=0)
    asked, truth = noisy_curve(101, seed=1)
    learnt = learnt_width(x, y, all_but_self(x))
    error = {
        name: F.mse_loss(kernel(asked, x, y), truth).item()
        for name, kernel in {
            "learnt": learnt,
            "narrowest": KernelRegression(0.02),
            "widest": KernelRegression(2.0),
        }.items()
    }
    assert error["learnt"] < min(error["narrowest"], error["widest"])
    assert 0.02 < learnt.width.item() < 2.0


def test_a_width_learnt_while_each_sample_sees_itself_collapses():
    x, y = noisy_curve(53, seed=0)
    honest = learnt_width(x, y, all_but_self(x)).width.item()
    assert learnt_width(x, y, None).width.item() < honest / 7


@pytest.mark.parametrize("width", [0.0, -1.5, math.inf, math.nan])
def test_a_width_that_is_no_width_is_refused_in_words(width):
    with pytest.raises(ValueError, match=f"^width must be a number above 0, got {width}; try 1.0$"):
        KernelRegression(width)


# Wide heads


def parameters(module):
    return sum(x.numel() for x in module.parameters())


def test_wide_heads_have_as_many_times_the_parameters_as_there_are_heads():
    dim = H * K
    narrow, wide = MultiHeadAttention(dim, Heads(H)), wide_attention(dim, H)
    assert parameters(narrow) == 4 * dim**2
    assert parameters(wide) == H * parameters(narrow)


def test_wide_heads_answer_in_the_shape_of_narrow_ones():
    x, narrow, wide = (
        torch.randn(B, T, H * K),
        MultiHeadAttention(H * K, H),
        wide_attention(H * K, H),
    )
    assert wide(x).shape == narrow(x).shape == x.shape


def test_wide_heads_are_whole_attentions_side_by_side():
    wide, x = (
        wide_attention(K, H),
        torch.randn(B, T, K),
    )  # K is not a multiple of H, and need not be
    q, k, v = (F.linear(x, to.weight).chunk(H, dim=-1) for to in (wide.to_q, wide.to_k, wide.to_v))
    heads = [dot_product_attention(q[h], k[h], v[h]) for h in range(H)]  # each (B, T, K)
    torch.testing.assert_close(wide(x), F.linear(torch.cat(heads, dim=-1), wide.to_out.weight))
