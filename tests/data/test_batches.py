"""Batches: every row once, within the budget, the same for any number of workers."""

import threading
import time
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, strategies as st

from glassformer.data.batches import (
    ahead,
    dealt,
    epoch_batches,
    ordered_batches,
    row_noise,
    row_rng,
)

BUDGET = 97

both_ways = pytest.mark.parametrize("padded", [True, False])


@pytest.fixture
def lengths():
    return np.random.default_rng(0).integers(1, 31, size=1009)


def batches_of(lengths, *, padded=True, seed=0, epoch=0, budget=BUDGET):
    return epoch_batches(lengths, budget, padded=padded, seed=seed, epoch=epoch)


def cost(batch, lengths, padded):
    own = lengths[batch]
    return len(own) * own.max() if padded else own.sum()


def equal(first, second):
    return len(first) == len(second) and all(map(np.array_equal, first, second))


@both_ways
@pytest.mark.parametrize("epoch", [0, 1, 5])
def test_every_row_comes_exactly_once_an_epoch(lengths, padded, epoch):
    found = np.concatenate(batches_of(lengths, padded=padded, epoch=epoch))
    assert np.array_equal(np.sort(found), np.arange(len(lengths)))
    found = np.concatenate(ordered_batches(lengths, BUDGET, padded=padded))
    assert np.array_equal(np.sort(found), np.arange(len(lengths)))


@both_ways
def test_no_batch_is_over_its_budget_and_most_are_nearly_full(lengths, padded):
    for batches in (
        batches_of(lengths, padded=padded),
        ordered_batches(lengths, BUDGET, padded=padded),
    ):
        costs = np.array([cost(batch, lengths, padded) for batch in batches])
        assert costs.max() <= BUDGET
        assert np.median(costs) > 0.8 * BUDGET


def one_by_one(order, lengths, padded, budget):
    """Batches of rows in this order, each row put into the last one if it still fits there."""
    batches = []
    for row in order:
        if batches and cost([*batches[-1], row], lengths, padded) <= budget:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


@both_ways
@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 30))
def test_a_batch_holds_as_many_rows_as_fit(padded, own, budget):
    lengths = np.array(own, dtype=np.int64)
    batches = ordered_batches(lengths, budget, padded=padded)
    order = np.argsort(lengths, kind="stable").tolist()
    assert [batch.tolist() for batch in batches] == one_by_one(order, lengths, padded, budget)


@both_ways
def test_mixed_batches_hold_as_many_rows_as_fit(lengths, padded):
    batches = epoch_batches(lengths, BUDGET, padded=padded, seed=0, epoch=0, mixed=True)
    order = np.concatenate(batches).tolist()
    assert [batch.tolist() for batch in batches] == one_by_one(order, lengths, padded, BUDGET)
    assert np.mean([np.ptp(lengths[batch]) for batch in batches]) > 0.5 * np.ptp(lengths)


def test_a_packed_batch_holds_more_than_a_padded_one():
    lengths = np.array([1, 2, 3, 4])
    assert len(ordered_batches(lengths, 10, padded=False)) == 1
    assert len(ordered_batches(lengths, 10, padded=True)) == 2
    [short, long] = ordered_batches(lengths, 10, padded=True)
    assert (short.tolist(), long.tolist()) == ([0, 1, 2], [3])


@both_ways
def test_a_row_over_the_budget_stands_alone(padded):
    lengths = np.array([3, 200, 4, 150, 3])
    batches = batches_of(lengths, padded=padded, budget=20)
    assert sorted(batch.tolist() for batch in batches if len(batch) == 1) == [[1], [3]]
    assert len(batches) == 3


@both_ways
def test_seed_and_epoch_say_it_all(lengths, padded):
    first = batches_of(lengths, padded=padded, seed=3, epoch=2)
    assert equal(first, batches_of(lengths.copy(), padded=padded, seed=3, epoch=2))
    assert not equal(first, batches_of(lengths, padded=padded, seed=3, epoch=3))
    assert not equal(first, batches_of(lengths, padded=padded, seed=4, epoch=2))
    together = {frozenset(batch.tolist()) for batch in first}
    next_time = {frozenset(b.tolist()) for b in batches_of(lengths, padded=padded, seed=3, epoch=3)}
    assert len(together & next_time) < 0.1 * len(together)  # neighbours change, too


def test_rows_of_a_batch_have_about_one_length(lengths):
    spread = [np.ptp(lengths[batch]) for batch in batches_of(lengths)]
    assert np.mean(spread) < 0.1 * np.ptp(lengths)


def test_long_and_short_batches_come_mixed(lengths):
    """Sorted batches would teach the short rows first; a walk up the lengths would show."""
    means = np.array([lengths[batch].mean() for batch in batches_of(lengths)])
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.2


def test_evaluation_goes_from_short_to_long_without_dice(lengths):
    found = np.concatenate(ordered_batches(lengths, BUDGET, padded=True))
    assert (np.diff(lengths[found]) >= 0).all()


def test_no_rows_make_no_batches():
    nothing = np.zeros(0, dtype=np.int64)
    assert batches_of(nothing) == []
    assert ordered_batches(nothing, BUDGET, padded=True) == []


def test_dice_of_a_row_are_its_own_in_every_epoch():
    places = [(seed, epoch, row) for seed in (0, 1) for epoch in range(3) for row in range(5)]
    throws = {place: tuple(row_rng(*place).random(3)) for place in places}
    assert len(set(throws.values())) == len(places)
    assert throws[1, 2, 3] == tuple(row_rng(1, 2, 3).random(3))
    many = np.array([row_rng(0, 0, row).random() for row in range(500)])
    assert abs(np.corrcoef(many[:-1], many[1:])[0, 1]) < 0.15
    assert abs(many.mean() - 0.5) < 0.05


def test_noise_of_a_row_is_its_own_whatever_its_neighbours():
    rows, lengths = np.array([5, 2, 9]), np.array([7, 0, 3])
    together = row_noise(1, 2, rows, lengths)
    alone = [row_noise(1, 2, rows[[n]], lengths[[n]]) for n in (2, 0)]
    assert np.concatenate(alone[::-1]).tolist() == together.tolist()
    longer = row_noise(1, 2, rows[[0]], np.array([11]))
    assert longer[:7].tolist() == together[:7].tolist(), "a row may be cut"


def noise_by(axis, size):
    """A table of noise: so many steps along one of its coordinates, and 997 places."""
    first = {"seed": 3, "epoch": 4, "row": 5, "stream": 6}
    steps = [first | {axis: first[axis] + step} for step in range(size)]
    return np.stack(
        [
            row_noise(
                at["seed"],
                at["epoch"],
                np.array([at["row"]]),
                np.array([997]),
                stream=at["stream"],
            )
            for at in steps
        ]
    )


@pytest.mark.parametrize("axis", ["seed", "epoch", "row", "stream"])
def test_noise_is_uniform_and_independent_along_every_coordinate(axis):
    table = noise_by(axis, 101)
    sure = 5 / np.sqrt(table.size)  # five standard deviations of a correlation
    assert table.min() >= 0
    assert table.max() < 1
    assert abs(table.mean() - 0.5) < sure * np.sqrt(1 / 12)
    assert table.var() == pytest.approx(1 / 12, abs=sure * np.sqrt(1 / 180))
    shares = np.histogram(table, bins=64, range=(0, 1))[0] / table.size
    assert np.abs(64 * shares - 1).max() < sure * 8
    assert len(np.unique(table)) == table.size, "nothing comes twice"
    for one, other in (
        (table[1:], table[:-1]),
        (table[:, 1:], table[:, :-1]),
        (table[1:, 1:], table[:-1, :-1]),
        (table[1:, :-1], table[:-1, 1:]),
    ):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < sure


def test_every_bit_of_a_place_changes_half_of_the_bits_of_its_noise():
    rows = np.array([0, *(1 << np.arange(40))])
    bits = (row_noise(0, 0, rows, np.full(len(rows), 31)) * 2.0**53).astype(np.uint64)
    bits = bits.reshape(len(rows), 31)
    changed = np.bitwise_count(bits[1:] ^ bits[0]) / 53
    assert changed.mean() == pytest.approx(0.5, abs=0.01)
    assert np.abs(changed.mean(1) - 0.5).max() < 0.06


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
def test_processes_share_a_batch_by_the_batch_alone_and_evenly(lengths, processes):
    for batch in batches_of(lengths, padded=False, budget=400)[:20]:
        shares = dealt(batch, processes)
        assert len(shares) == processes
        assert sorted(np.concatenate(shares).tolist()) == sorted(batch.tolist())
        assert equal(shares, dealt(batch.copy(), processes))
        sizes = [len(share) for share in shares]
        assert max(sizes) - min(sizes) <= 1
        tokens = [lengths[share].sum() for share in shares]
        assert max(tokens) - min(tokens) <= lengths[batch].max()


def slow_square(number):
    time.sleep(0.002 * (number % 3))  # later ones are ready first
    return number * number


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers_gives_the_same_in_the_same_order(workers):
    assert list(ahead(slow_square, range(23), workers)) == [n * n for n in range(23)]
    assert list(ahead(slow_square, [], workers)) == []


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_are_gone_when_the_caller_stops_early(workers):
    made = []
    going = ahead(lambda n: made.append(n) or n, iter(range(10**9)), workers)
    assert [next(going) for _ in range(3)] == [0, 1, 2]
    assert threads()
    going.close()
    assert not threads()
    assert len(made) <= 3 + 2 * workers + 1  # nor did they run far ahead


def test_threads_are_gone_when_all_is_done():
    assert list(ahead(lambda n: n, range(5), 2)) == list(range(5))
    assert not threads()


def test_what_goes_wrong_in_a_worker_reaches_the_caller_in_its_turn():
    def broken(number):
        if number == 4:
            raise ZeroDivisionError(f"row {number}")
        return number

    going = ahead(broken, range(100), 3)
    assert list(islice(going, 4)) == [0, 1, 2, 3]
    with pytest.raises(ZeroDivisionError, match="row 4"):
        next(going)
    assert not threads()


def test_what_goes_wrong_with_the_jobs_themselves_ends_the_threads():
    def jobs():
        yield from range(9)
        raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        list(ahead(lambda n: n, jobs(), 2))
    assert not threads()


def test_batches_are_made_while_the_caller_works():
    begun = threading.Event()

    def make(number):
        if number == 1:
            begun.set()
        return number

    going = ahead(make, range(9), 1)
    next(going)
    assert begun.wait(timeout=5)  # without asking for the second
    going.close()
