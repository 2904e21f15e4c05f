"""/v1/training: runs as they learn; one that has ended its training is served from then on."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

from fastapi import FastAPI
from starlette.responses import Response

from glassformer.errors import GlassformerError, unknown
from glassformer.runs.in_training import RunInTraining
from glassformer.serving.errors import RefusedError, json_response
from glassformer.serving.models import Models

log = logging.getLogger(__name__)
EVERY = 2.0  # seconds between two looks at a run in training
PATH = "/v1/training"


class Watch:
    """The runs of a server, in training or not, by name.

    One at a time is read, and one computes answers: uploads and reloads need threads, too.
    """

    def __init__(self, models: Models) -> None:
        self.models, self.reading, self.answering = models, asyncio.Lock(), asyncio.Lock()
        self.runs: dict[str, RunInTraining] = {}
        self.read_last: dict[str, tuple[float, dict[str, object]]] = {}  # since when

    def named(self, name: str) -> RunInTraining:
        """The run of that name, refused if there is none."""
        paths = {**self.models.training, **self.models.paths}
        if name not in paths:
            message = unknown("model", name[:100], paths)
            raise RefusedError(404, message, code="model_not_found")
        return self.runs.setdefault(name, RunInTraining(paths[name], self.models.device))

    async def values(self, name: str) -> dict[str, object]:
        """How a run has learned, read once for all who ask meanwhile."""
        run, asked = self.named(name), time.monotonic()
        async with self.reading:
            if name not in self.read_last or self.read_last[name][0] < asked:
                begun = time.monotonic()
                self.read_last[name] = begun, await readable(name, run.as_values)
            return self.read_last[name][1]

    async def answered(self, name: str) -> RunInTraining:
        """The run, with the answers of its newest checkpoint."""
        run = self.named(name)
        if name in self.models.training:
            async with self.answering:
                with suppress(GlassformerError, OSError, ValueError):  # it is being written
                    await asyncio.to_thread(run.answer)
        return run


def add_training(app: FastAPI, models: Models) -> None:
    """The paths."""
    watch = Watch(models)

    @app.get(PATH, summary="List the runs in training.", name="runs_in_training")
    async def list_runs() -> Response:
        found = [
            await readable(name, partial(listed, name, watch.named(name)))
            for name in list(models.training)
        ]
        return json_response({"object": "list", "data": found})

    @app.get(PATH + "/{name}", summary="Show how a run has learned so far.", name="training")
    async def describe(name: str) -> Response:
        values = await watch.values(name)
        return json_response({"object": "training", "id": name, **values})

    @app.get(
        PATH + "/{name}/samples",
        summary="Show what a run in training answers for a few validation rows.",
        name="training_samples",
    )
    async def answers(name: str) -> Response:
        run = await watch.answered(name)
        return json_response({"object": "list", "id": name, "data": run.samples})


def listed(name: str, run: RunInTraining) -> dict[str, object]:
    return {"id": name, "object": "training", "job": run.job, "state": run.state}


async def readable(name: str, read: Callable[[], dict[str, object]]) -> dict[str, object]:
    """What is read of a run; while it is being replaced, it may not be there."""
    try:
        return await asyncio.to_thread(read)
    except Exception as error:  # of this run alone
        log.warning("%s cannot be read: %s", name, error)
        raise RefusedError(
            503, f"{name} cannot be read at the moment", code="unreadable", retry_after=1
        ) from None


@asynccontextmanager
async def admitting(models: Models, renew: Callable[[], None]) -> AsyncIterator[None]:
    """Meanwhile, serve runs as soon as their training has ended."""
    task = asyncio.ensure_future(admit_each(models, renew))
    try:
        yield
    finally:
        task.cancel()


async def admit_each(models: Models, renew: Callable[[], None]) -> None:
    """Look at the runs in training again and again, as long as there are some."""
    waiting = dict(models.training)
    while waiting:
        for name, path in list(waiting.items()):
            ended = partial(getattr, RunInTraining(path), "state")
            try:
                if await asyncio.to_thread(ended) != "finished":
                    continue
                del waiting[name]
                await models.admit(name)
                renew()
            except Exception as error:  # of this run alone
                waiting.pop(name, None)
                log.warning("%s is not served: %s", name, error)
        await asyncio.sleep(EVERY)
