"""No request is forgotten, whenever it comes."""

import asyncio
import socket
from threading import Event, current_thread

import pytest

from glassformer.serving.batching import Batcher
from glassformer.serving.settings import Batching
from glassformer.serving.worker import Source, Worker


def run(test):
    """A test on an event loop, with a worker that stops afterwards."""

    async def whole():
        worker = Worker()
        worker.start()
        try:
            return await asyncio.wait_for(test(worker), 20)
        finally:
            worker.stop(10.0)

    return asyncio.run(whole())


def accept(inputs):
    return None


def test_a_request_that_comes_while_a_batch_is_gathered_is_answered():
    begun, go_on = Event(), Event()

    def hold(inputs):
        begun.set()
        assert go_on.wait(10)

    async def test(worker):
        batcher = Batcher(worker, lambda inputs, options: inputs, Batching(wait=0.0))
        first = asyncio.ensure_future(batcher.answers([1], (), hold))
        assert await asyncio.to_thread(begun.wait, 30)
        second = asyncio.ensure_future(batcher.answers([2, 3], (), accept))
        await asyncio.sleep(0)
        go_on.set()
        return await asyncio.gather(first, second)

    assert run(test) == [[1], [2, 3]]


def test_a_batch_holds_requests_with_the_same_options_up_to_its_size():
    batches = []

    def answer(inputs, options):
        batches.append((inputs, options))
        return inputs

    async def test(worker):
        batcher = Batcher(worker, answer, Batching(wait=0.2, most=4))
        batcher.expected = 5
        asked = [([1, 2], ()), ([3], (("a", 1),)), ([4, 5, 6], ()), ([7, 8], ()), ([9], ())]
        found = await asyncio.gather(*(batcher.answers(*one, accept) for one in asked))
        assert found == [given for given, _ in asked]

    run(test)
    assert batches[0] == ([1, 2, 7, 8], {})
    assert ([3], {"a": 1}) in batches
    assert sorted(len(inputs) for inputs, _ in batches) == [1, 4, 4]


def test_a_batch_waits_for_as_many_as_there_were_before():
    begun, go_on, sizes = Event(), Event(), []

    def answer(inputs, options):
        sizes.append(len(inputs))
        begun.set()
        assert go_on.wait(10)
        return inputs

    async def test(worker):
        batcher = Batcher(worker, answer, Batching(wait=600.0))

        def ask(n):
            return asyncio.ensure_future(batcher.answers([n], (), accept))

        first = ask(1)
        assert await asyncio.to_thread(begun.wait, 30)
        beside = [ask(2), ask(3)]
        await asyncio.sleep(0)
        go_on.set()
        await first  # without waiting for others
        await asyncio.gather(*beside, ask(4))  # and those beside it, for its client
        later = [ask(5), ask(6)]
        await asyncio.sleep(0.05)
        assert not any(one.done() for one in later)
        await asyncio.gather(*later, ask(7))

    run(test)
    assert sizes == [1, 3, 3]


def test_a_batch_does_not_wait_for_long():
    async def test(worker):
        batcher = Batcher(worker, lambda inputs, options: inputs, Batching(wait=0.05))
        batcher.expected = 2
        await batcher.answers([1], (), accept)
        assert batcher.expected == 1

    run(test)


@pytest.mark.parametrize("most", [1, 2])
def test_those_beside_and_after_one_that_fails_are_answered(most):
    def answer(inputs, options):
        if 1 in inputs:
            raise RuntimeError("broken")
        return inputs

    async def test(worker):
        batcher = Batcher(worker, answer, Batching(wait=0.1, most=most))
        asked = [asyncio.ensure_future(batcher.answers([n], (), accept)) for n in (1, 2)]
        with pytest.raises(RuntimeError, match="broken"):
            await asked[0]
        assert await asked[1] == [2]

    run(test)


def test_a_brief_batch_is_answered_by_the_event_loop_unless_the_worker_is_busy():
    begun, go_on, threads = Event(), Event(), []

    def answer(inputs, options):
        threads.append(current_thread().name)
        if inputs == ["long"]:
            begun.set()
            assert go_on.wait(10)
        return inputs

    def is_brief(inputs):
        return inputs != ["long"]

    async def test(worker):
        other, own = (Batcher(worker, answer, Batching(), is_brief=is_brief) for _ in range(2))
        assert await own.answers(["brief"], (), accept) == ["brief"]
        long = asyncio.ensure_future(other.answers(["long"], (), accept))
        assert await asyncio.to_thread(begun.wait, 30)
        beside = asyncio.ensure_future(own.answers(["beside"], (), accept))
        await asyncio.sleep(0.05)
        assert not beside.done()
        go_on.set()
        assert await asyncio.gather(long, beside) == [["long"], ["beside"]]
        while not worker.is_idle:
            await asyncio.sleep(0.01)
        assert await own.answers(["brief"], (), accept) == ["brief"]

    run(test)
    assert threads == ["MainThread", "models", "models", "MainThread"]


def test_a_request_that_arrives_during_a_brief_batch_is_expected_with_it_again():
    here, there = socket.socketpair()
    sizes = []

    def answer(inputs, options):
        sizes.append(len(inputs))
        if len(sizes) == 1:
            there.send(b"!")  # read by the event loop once it has answered
        return inputs

    async def test(worker):
        loop, late = asyncio.get_running_loop(), []
        batcher = Batcher(worker, answer, Batching(wait=600.0), is_brief=lambda inputs: True)

        def read():
            here.recv(1)
            late.append(asyncio.ensure_future(batcher.answers([2], (), accept)))

        loop.add_reader(here, read)
        await batcher.answers([1], (), accept)
        await asyncio.sleep(0.05)
        assert not late[0].done()
        await asyncio.gather(*late, batcher.answers([3], (), accept))
        loop.remove_reader(here)

    with here, there:
        run(test)
    assert sizes == [1, 2]


def test_a_brief_batch_that_fails_ends_nothing_else():
    def observe(inputs):
        if observe.fails:
            raise RuntimeError("broken")

    observe.fails = True

    async def test(worker):
        batcher = Batcher(worker, lambda inputs, _: inputs, Batching(), observe, lambda _: True)
        with pytest.raises(RuntimeError, match="broken"):
            await batcher.answers([1], (), accept)
        observe.fails = False
        assert await batcher.answers([2], (), accept) == [2]

    run(test)


def test_a_worker_is_busy_until_the_last_step_of_a_source():
    stepped, go_on = Event(), Event()

    class Steps(Source):
        def step(self):
            stepped.set()
            return None if go_on.is_set() else 0.01

        def fail(self, error):
            raise AssertionError

    async def test(worker):
        assert worker.is_idle
        worker.post(Steps(), lambda: None)
        assert await asyncio.to_thread(stepped.wait, 30)
        await asyncio.sleep(0.05)
        assert not worker.is_idle
        go_on.set()
        while not worker.is_idle:
            await asyncio.sleep(0.01)

    run(test)
