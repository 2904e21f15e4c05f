"""/v1/training: runs as they learn; one that has ended its training is served from then on."""

import asyncio
import logging
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
    """The runs of a server, in training or not, by name; one is read at a time."""

    def __init__(self, models: Models) -> None:
        self.models, self.reading = models, asyncio.Lock()
        self.runs: dict[str, RunInTraining] = {}

    def named(self, name: str) -> RunInTraining:
        """The run of that name, refused if there is none."""
        paths = {**self.models.training, **self.models.paths}
        if name not in paths:
            message = unknown("model", name[:100], paths)
            raise RefusedError(404, message, code="model_not_found")
        return self.runs.setdefault(name, RunInTraining(paths[name], self.models.device))

    async def read(self, name: str, *, answer: bool = False) -> RunInTraining:
        """The run, with the answers of its newest checkpoint if they are wanted."""
        run = self.named(name)
        if answer and name in self.models.training:
            async with self.reading:
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
        run = await watch.read(name)
        values = await readable(name, run.as_values)
        return json_response({"object": "training", "id": name, **values})

    @app.get(
        PATH + "/{name}/samples",
        summary="Show what a run in training answers for a few validation rows.",
        name="training_samples",
    )
    async def answers(name: str) -> Response:
        run = await watch.read(name, answer=True)
        return json_response({"object": "list", "id": name, "data": run.samples})


def listed(name: str, run: RunInTraining) -> dict[str, object]:
    return {"id": name, "object": "training", "job": run.job, "state": run.state}


async def readable(name: str, read: Callable[[], dict[str, object]]) -> dict[str, object]:
    """What is read of a run; while it is being replaced, it may not be there."""
    try:
        return await asyncio.to_thread(read)
    except (GlassformerError, OSError) as error:
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
            if await asyncio.to_thread(ended) != "finished":
                continue
            del waiting[name]
            try:
                await models.admit(name)
                renew()
            except GlassformerError as error:
                log.warning("%s is not served: %s", name, error)
        await asyncio.sleep(EVERY)
