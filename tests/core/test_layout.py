"""Layouts: where every token lies and stands, told again by plain loops."""

from dataclasses import FrozenInstanceError, fields, replace

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor
from torch.utils import _pytree as pytree

from glassformer.core.layout import Layout, pack, pad

D = 11
LENGTHS = [5, 0, 7, 2]
STARTS = [3, 13, 0, 1]

some_lengths = st.lists(st.integers(0, 7), min_size=1, max_size=5)
spare = st.integers(0, 5)


def in_rows(lengths, longest, starts):
    """The position of every place of the padded form, and whether it is real."""
    positions = [[start + step for step in range(longest)] for start in starts]
    real = [[step < length for step in range(longest)] for length in lengths]
    return positions, real


def end_to_end(lengths, starts):
    """Row and position of every token of the packed form."""
    rows = [row for row, length in enumerate(lengths) for _ in range(length)]
    pairs = zip(starts, lengths, strict=True)
    return rows, [start + step for start, length in pairs for step in range(length)]


def facts(layout):
    """Everything a layout knows, as plain Python."""
    values = {field.name: getattr(layout, field.name) for field in fields(layout)}
    return {n: v.tolist() if isinstance(v, Tensor) else v for n, v in values.items()}


def counting_up(lengths, longest):
    """A number for every token, in padded and in packed form; the padding holds zeros."""
    numbers = iter(range(1, 1 + sum(lengths)))
    rows = [[next(numbers) for _ in range(length)] for length in lengths]
    padded = [row + [0] * (longest - len(row)) for row in rows]
    packed = [number for row in rows for number in row]
    return torch.tensor(padded, dtype=torch.long), torch.tensor(packed, dtype=torch.long)


# Positions, rows and what is real


@given(some_lengths, spare)
def test_padded_rows_stand_where_a_loop_says(lengths, spare):
    longest = max(lengths) + spare
    layout = Layout.padded(lengths, longest=longest)
    positions, real = in_rows(lengths, longest, starts=[0] * len(lengths))
    assert layout.positions.expand(len(lengths), -1).tolist() == positions
    assert layout.real.tolist() == real
    assert layout.lengths.tolist() == lengths
    assert (layout.rows, layout.longest, layout.reach) == (len(lengths), longest, longest)
    assert layout.tokens == sum(lengths)
    assert not layout.is_packed
    assert not layout.is_full


@given(some_lengths, spare)
def test_packed_rows_stand_where_a_loop_says(lengths, spare):
    longest = max(lengths) + spare
    layout = Layout.packed(lengths, longest=longest)
    rows, positions = end_to_end(lengths, starts=[0] * len(lengths))
    assert layout.row_of.tolist() == rows
    assert layout.positions.tolist() == positions
    assert layout.real.tolist() == [True] * sum(lengths)
    assert layout.bounds.tolist() == [sum(lengths[:row]) for row in range(len(lengths) + 1)]
    assert layout.lengths.tolist() == lengths
    assert (layout.rows, layout.longest, layout.reach) == (len(lengths), longest, longest)
    assert layout.tokens == sum(lengths)
    assert layout.is_packed


@given(some_lengths, st.data())
def test_shifted_rows_stand_where_a_loop_says(lengths, data):
    each = st.lists(st.integers(0, 9), min_size=len(lengths), max_size=len(lengths))
    starts = data.draw(each | st.lists(st.integers(0, 9), min_size=1, max_size=1))
    padded = Layout.padded(lengths).shifted(torch.tensor(starts), reach=17)
    packed = Layout.packed(lengths).shifted(torch.tensor(starts), reach=17)
    starts = starts if len(starts) > 1 else starts * len(lengths)
    positions, real = in_rows(lengths, max(lengths), starts)
    assert padded.positions.expand(len(lengths), -1).tolist() == positions
    assert padded.real.tolist() == real
    assert packed.positions.tolist() == end_to_end(lengths, starts)[1]
    assert padded.reach == packed.reach == 17


@pytest.mark.parametrize("form", ["as_padded", "as_packed"])
def test_a_layout_fits_where_its_tokens_do_however_far_padding_and_fillers_stand(form):
    layout = getattr(Layout.packed([5, 2], longest=11, budget=18, rows=5), form)()
    assert (layout.fits(5), layout.fits(4)) == (True, False)
    further = layout.shifted(torch.tensor([1, 13, 0, 0, 0]), reach=24)
    assert (further.fits(15), further.fits(14)) == (True, False)
    assert further.ends.tolist() == [6, 15, 4, 4, 3]
    full = Layout.full(3, 5, "meta")  # known without asking the device
    assert (full.fits(5), full.fits(4)) == (True, False)


def test_full_rows_are_the_padded_ones_without_padding():
    full, padded = Layout.full(3, 5), Layout.padded([5, 5, 5])
    assert full.is_full
    assert full.positions.equal(padded.positions)
    assert full.real.equal(padded.real)
    assert full.lengths.equal(padded.lengths)
    ours, theirs = facts(full), facts(padded)
    assert ours | {"row_lengths": [5, 5, 5]} == theirs


def test_lengths_are_the_same_as_numbers_and_as_a_tensor():
    for make in (Layout.padded, Layout.packed):
        assert facts(make(LENGTHS)) == facts(make(torch.tensor(LENGTHS)))


# A budget


@given(some_lengths.filter(any), spare, st.integers(0, 23))
def test_fillers_bring_a_pack_to_its_budget_and_are_not_real(lengths, wider, spare):
    budget, longest = sum(lengths) + spare, max(lengths) + wider
    layout = Layout.packed(lengths, longest=longest, budget=budget)
    ours, theirs = layout.lengths.tolist()[: len(lengths)], layout.lengths.tolist()[len(lengths) :]
    assert (ours, sum(theirs)) == (lengths, spare)
    if theirs:
        assert layout.fillers.tolist() == [False] * len(ours) + [True] * len(theirs)
    assert all(0 < filler <= longest for filler in theirs)
    assert layout.longest == longest
    rows, positions = end_to_end(ours + theirs, starts=[0] * layout.rows)
    assert layout.row_of.tolist() == rows
    assert layout.positions.tolist() == positions
    assert layout.real.tolist() == [row < len(lengths) for row in rows]
    assert len(layout.real) == layout.bounds[-1] == layout.tokens == budget


def test_a_pack_without_any_token_is_filled_to_its_budget_too():
    layout = Layout.packed([0, 0], longest=5, budget=7)
    assert layout.real.tolist() == [False] * 7
    assert Layout.packed([0, 0], budget=0).lengths.tolist() == [0, 0]


def test_fillers_are_not_real_in_padded_form_either():
    layout = Layout.packed([2, 3], budget=7)
    assert pack(layout.as_padded().real, layout).equal(layout.real)
    assert facts(layout.as_padded().as_packed()) == facts(layout)


@given(some_lengths.filter(any), some_lengths.filter(any))
def test_batches_of_any_content_have_one_shape(one, other):
    rows, budget = max(len(one), len(other)) + 13, max(sum(one), sum(other)) + 2
    longest = max(*one, *other)
    first, second = (
        Layout.packed(lengths, longest=longest, budget=budget, rows=rows)
        for lengths in (one, other)
    )
    assert pytree.tree_structure(first) == pytree.tree_structure(second)
    shapes = [
        [None if x is None else x.shape for x in pytree.tree_leaves(layout)]
        for layout in (first, second)
    ]
    assert shapes[0] == shapes[1]
    assert (int(first.real.sum()), int(second.real.sum())) == (sum(one), sum(other))
    fillers = first.lengths[len(one) :]
    assert fillers.max() - fillers.min() <= 1


@pytest.mark.parametrize("form", ["as_padded", "as_packed"])
def test_a_layout_taken_twice_is_that_of_the_rows_and_their_copies(form):
    once = Layout.packed([3, 1], longest=3, budget=9, rows=5)
    both = Layout.packed([*once.lengths.tolist()] * 2, longest=3)
    assert once.twice().real.tolist() == [*once.real.tolist()] * 2
    twice = getattr(once, form)().twice()
    expected = getattr(replace(both, fillers=torch.cat([once.fillers] * 2)), form)()
    assert facts(twice) == facts(expected)
    moved = Layout.padded([3, 1]).shifted(torch.tensor([2, 5]), reach=8)
    assert moved.twice().starts.tolist() == [2, 5, 2, 5]


# From one form to the other


@given(some_lengths, spare)
def test_pad_and_pack_undo_each_other(lengths, spare):
    longest = max(lengths) + spare
    layout = Layout.packed(lengths, longest=longest)
    padded, packed = counting_up(lengths, longest)
    assert pad(packed, layout).equal(padded)
    assert pack(padded, layout).equal(packed)
    assert pack(padded - 1, layout).equal(packed - 1)  # whatever lies in the padding


@given(some_lengths, spare)
def test_a_layout_changes_form_and_comes_back(lengths, spare):
    starts, longest = torch.arange(len(lengths)), max(lengths) + spare
    packed = Layout.packed(lengths, longest=longest).shifted(starts, reach=19)
    padded = Layout.padded(lengths, longest=longest).shifted(starts, reach=19)
    assert facts(packed.as_padded()) == facts(padded)
    assert facts(padded.as_packed()) == facts(packed)
    assert packed.as_packed() is packed


def test_full_rows_are_packed_as_they_are():
    layout = Layout.full(3, 5).as_packed()
    assert facts(layout) == facts(Layout.packed([5, 5, 5]))


def test_pad_and_pack_take_vectors_of_any_shape():
    layout, packed = Layout.packed(LENGTHS), torch.randn(sum(LENGTHS), 3, D)
    padded = pad(packed, layout)
    assert padded.shape == (len(LENGTHS), max(LENGTHS), 3, D)
    assert pack(padded, layout).equal(packed)


def test_gradients_go_through_pad_and_pack_to_where_the_token_came_from():
    layout = Layout.packed(LENGTHS)
    packed = torch.randn(sum(LENGTHS), D, requires_grad=True)
    padded = torch.randn(len(LENGTHS), max(LENGTHS), D, requires_grad=True)
    arriving, leaving = torch.randn(padded.shape), torch.randn(packed.shape)
    pad(packed, layout).backward(arriving)
    assert packed.grad.equal(pack(arriving, layout))
    pack(padded, layout).backward(leaving)
    assert padded.grad.equal(pad(leaving, layout))


# A value

LAYOUTS = {
    "full": Layout.full(3, 5),
    "padded": Layout.padded(LENGTHS, longest=11),
    "packed": Layout.packed(LENGTHS, budget=17),
    "shifted": Layout.padded(LENGTHS).shifted(torch.tensor(STARTS), reach=17),
}
each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


@each_layout
def test_a_layout_is_a_tree_of_tensors_that_is_put_together_again(layout):
    leaves, spec = pytree.tree_flatten(layout)
    ours = [x for x in facts(layout).values() if isinstance(x, list)]
    assert sorted(x.tolist() for x in leaves if x is not None) == sorted(ours)
    assert facts(pytree.tree_unflatten(leaves, spec)) == facts(layout)


@each_layout
def test_a_function_mapped_over_a_layout_reaches_every_tensor_and_no_number(layout):
    turned = pytree.tree_map(lambda x: None if x is None else x.flip(0), {"layout": layout})
    expected = {n: x[::-1] if isinstance(x, list) else x for n, x in facts(layout).items()}
    assert facts(turned["layout"]) == expected


@each_layout
def test_a_layout_cannot_be_changed(layout):
    for field in fields(layout):
        with pytest.raises(FrozenInstanceError):
            setattr(layout, field.name, None)


@each_layout
def test_moving_to_another_device_moves_the_tensors_and_keeps_the_numbers(layout):
    moved = layout.to("meta")
    for field in fields(layout):
        here, there = getattr(layout, field.name), getattr(moved, field.name)
        if isinstance(here, Tensor):
            assert there.is_meta
            assert (there.shape, there.dtype) == (here.shape, here.dtype)
        elif field.name != "device":
            assert there == here
    assert moved.device == moved.positions.device == moved.real.device == torch.device("meta")
    assert moved.positions.shape == layout.positions.shape


def test_lengths_on_another_device_are_never_read_when_the_longest_is_told():
    # A tensor on "meta" has no values: reading one raises, as reading from a GPU would wait.
    layout = Layout.padded(torch.tensor(LENGTHS).to("meta"), longest=7)
    assert (layout.rows, layout.longest, layout.reach, layout.device.type) == (4, 7, 7, "meta")
    assert (layout.positions.shape, layout.real.shape) == ((1, 7), (4, 7))
    assert layout.shifted(torch.tensor(STARTS).to("meta"), reach=20).positions.shape == (4, 7)
    assert layout.tokens is None


def test_a_layout_whose_tokens_are_counted_is_packed_without_asking_the_device():
    for layout in (Layout.full(3, 5, "meta"), Layout.padded([5, 3, 7], device="meta")):
        packed = layout.as_packed()
        assert (packed.row_of.shape, packed.positions.shape) == ((15,), (15,))
        assert pack(torch.zeros(3, packed.longest, D, device="meta"), packed).shape == (15, D)


# Refusals

REFUSALS = {
    "too long": (
        lambda: Layout.padded([3, 9, 2], longest=7),
        "a row has 9 tokens, but the batch is only 7 long; shorten the row or widen the batch",
    ),
    "too long to pack": (
        lambda: Layout.packed([3, 9, 2], longest=7),
        "a row has 9 tokens, but the batch is only 7 long; shorten the row or widen the batch",
    ),
    "negative": (lambda: Layout.padded([3, -2]), "lengths must be 0 or more, got -2"),
    "negative to pack": (lambda: Layout.packed([3, -2]), "lengths must be 0 or more, got -2"),
    "none": (lambda: Layout.padded([]), "lengths must be one number a row, got shape (0,)"),
    "two axes": (
        lambda: Layout.padded(torch.zeros(2, 3, dtype=torch.long)),
        "lengths must be one number a row, got shape (2, 3)",
    ),
    "over budget": (
        lambda: Layout.packed([5, 7], budget=11),
        "12 tokens do not fit a budget of 11; raise the budget or drop 1 tokens",
    ),
    "fillers of no length": (
        lambda: Layout.packed([0, 0], budget=5),
        "5 filler tokens need rows of at least 1; give a `longest`",
    ),
    "bounds": (
        lambda: Layout.padded([5, 7]).bounds,
        "a padded layout has no bounds in a pack; call .as_packed() first",
    ),
    "pad": (
        lambda: pad(torch.zeros(12, D), Layout.padded([5, 7])),
        "a padded layout has no bounds in a pack; call .as_packed() first",
    ),
    "pack wider": (
        lambda: pack(torch.arange(22).view(2, 11), Layout.packed([5, 7])),
        "the batch holds (2, 11) tokens, but its layout describes (2, 7); "
        "make the layout from this batch, with its width as `longest`",
    ),
    "pack more rows": (
        lambda: pack(torch.zeros(3, 7, D), Layout.packed([5, 7])),
        "the batch holds (3, 7) tokens, but its layout describes (2, 7); "
        "make the layout from this batch, with its width as `longest`",
    ),
    "starts": (
        lambda: Layout.padded([5, 7, 2]).shifted(torch.tensor([1, 2]), reach=9),
        "got 2 starts for 3 rows; give one a row, or one for all",
    ),
    "elsewhere": (
        lambda: Layout.padded(torch.tensor([5, 7]).to("meta")),
        "lengths on a GPU need `longest`, so that nothing waits for the device",
    ),
}


@pytest.mark.parametrize(("wrong", "words"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.usefixtures("without_shape_hook")
def test_lengths_that_make_no_sense_are_refused_in_words(wrong, words):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011, the words are compared below
        wrong()
    assert str(refusal.value) == words


def test_rows_to_fill_need_a_budget():
    with pytest.raises(
        ValueError, match=r"^rows = 5 needs a budget to fill; give both or neither$"
    ):
        Layout.packed([2, 3], rows=5)
    layout = Layout.packed([2, 3], longest=4, budget=11, rows=6)
    assert layout.lengths.tolist() == [2, 3, 2, 2, 1, 1]
    assert layout.real.sum() == 5
    with pytest.raises(
        ValueError, match=r"^2 rows and 2 to fill the budget make 4, but only 3 were"
    ):
        Layout.packed([2, 3], longest=4, budget=11, rows=3)
