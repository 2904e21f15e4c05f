"""No request is forgotten, whenever it comes."""

import asyncio
from threading import Event

import pytest

from glassformer.serving.batching import Batcher
from glassformer.serving.settings import Batching
from glassformer.serving.worker import Worker


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
