"""Under load, every accepted request gets the answer that it gets alone, and nothing is left."""

import asyncio

import pytest
from load import REFUSED, memory, put_under_load
from small_served import Served
from small_translator import unchecked

FULL = {"limits": {"queue": 40, "concurrency": 1000}}  # fewer than come at once


@pytest.fixture
def server(runs):
    with unchecked(), Served(runs.values(), **FULL) as found:
        yield found


def pages(server):
    """The pages of the engine, and those that are free once nothing is kept for others."""
    engine = server.models.served["bottles"].generator.engine
    engine.forget()
    return engine.decoder.pool.pages, engine.decoder.pool.free_pages


def check(server, count):
    outcome = asyncio.run(put_under_load(server, count))
    statuses = outcome.statuses
    assert not outcome.wrong
    assert {*statuses} <= {200, *REFUSED, "left", "broken"}
    assert statuses[200] + statuses["left"] + statuses["broken"] == count
    assert statuses[503] > 0
    server.idle()
    generator = server.models.served["bottles"].generator
    assert not generator.open
    assert not generator.engine.busy
    total, free = pages(server)
    assert total == free


def test_every_accepted_request_is_answered_as_if_it_were_alone(server):
    check(server, 400)


@pytest.mark.full
def test_ten_thousand_requests_leave_nothing_behind(server):
    check(server, 1000)  # until all that grows once has grown
    before = memory()
    check(server, 10_000)
    assert memory() - before < 64 << 20
