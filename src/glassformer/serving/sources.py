"""Answers that a decoder writes from what an encoder has read, by the engine."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torch import nn

from glassformer.decode.paths import Hypothesis
from glassformer.runs.run import Run
from glassformer.serving.batching import Options
from glassformer.serving.generation import Generator, Writing
from glassformer.serving.worker import Call, settle
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.served import EngineWork, SourceWriter


class SourceAnswers:
    """Answers requests through the engine, as a batcher answers them in batches."""

    def __init__(self, generator: Generator, run: Run, model: nn.Module) -> None:
        self.generator, self.run, self.model = generator, run, model

    async def answers(
        self, inputs: list[Any], options: Options, check: Callable[[Sequence[Any]], None]
    ) -> list[Prediction]:
        """The predictions for the inputs of one request."""
        works: list[EngineWork] = []

        def prepare() -> list[Any]:
            check(inputs)
            works.extend(self._works(inputs, dict(options)))
            return [request for work in works for request in work.requests]

        found: dict[int, Sequence[Hypothesis]] = {}
        async for piece in self.generator.write(Writing(prepare)):
            assert piece.found is not None
            found[piece.number] = (piece.found, *piece.others)
        return await self._by_worker(partial(finished, works, found))

    def _works(self, inputs: list[Any], options: dict[str, Any]) -> list[EngineWork]:
        writer = self.run.configured(**options)
        assert isinstance(writer, SourceWriter)
        return [writer.engine_work(self.model, writer.accept(given)) for given in inputs]

    async def _by_worker(self, call: Callable[[], list[Prediction]]) -> list[Prediction]:
        """What the worker finds: only its thread calls models."""
        future = asyncio.get_running_loop().create_future()
        worker = self.generator.worker

        def run() -> None:
            if future.done():
                return
            with self.generator.inference():
                found = attempted(call)
            worker.deliver(partial(settle, future, found))

        worker.post(self.generator, run)
        answer: list[Prediction] = await future
        return answer


def attempted(call: Call) -> object:
    """What a call returns, or the error that it raises."""
    try:
        return call()
    except Exception as error:
        return error


def finished(
    works: Sequence[EngineWork], found: dict[int, Sequence[Hypothesis]]
) -> list[Prediction]:
    """The predictions for all inputs, from the texts in the order of their requests."""
    texts = iter(found[number] for number in sorted(found))
    return [work.finish([next(texts) for _ in work.requests]) for work in works]
