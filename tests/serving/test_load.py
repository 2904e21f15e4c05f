"""Under load, every accepted request gets the answer that it gets alone, and nothing is left."""

import asyncio

import pytest
from load import REFUSED, memory, put_under_load
from small_served import Served
from small_translator import unchecked

# Fewer than come at once; on a busy machine, even those that wait are not late.
FULL = {"limits": {"queue": 40, "concurrency": 1000, "seconds": 900.0, "patience": 300.0}}


@pytest.fixture
def server(runs):
    with unchecked(), Served(runs.values(), **FULL) as found:
        yield found


def assert_nothing_is_left(generator):
    """No text, and no page once nothing is kept for others."""
    engine = generator.engine
    assert not generator.open
    assert not engine.busy
    engine.forget()
    for pool in (engine.decoder.pool, engine.decoder.sources):
        assert pool is None or pool.free_pages == pool.pages


def check(server, count, **bounds):
    outcome = asyncio.run(put_under_load(server, count, **bounds))
    statuses = outcome.statuses
    assert not outcome.wrong
    assert {*statuses} <= {200, *REFUSED, "left", "broken"}
    assert statuses[200] + statuses["left"] + statuses["broken"] == outcome.sent
    assert statuses[503] > 0
    server.idle()
    generators = [one.generator for one in server.models if one.generator is not None]
    assert len(generators) == 6
    for generator in generators:
        assert_nothing_is_left(generator)
    return outcome


def test_every_accepted_request_is_answered_as_if_it_were_alone(server):
    assert check(server, 10_000, seconds=8).sent > 100


@pytest.mark.full
@pytest.mark.timeout(1800)  # two minutes where nothing else runs
def test_ten_thousand_requests_leave_nothing_behind(server):
    check(server, 1000)  # until all that grows once has grown
    before = memory()
    outcome = check(server, 10_000)
    grown = memory() - before
    print(f"{dict(outcome.statuses)}, {grown / 2**20:+.1f} MiB of {before / 2**20:.0f}")
    assert outcome.sent == 10_000
    assert grown < 64 << 20
