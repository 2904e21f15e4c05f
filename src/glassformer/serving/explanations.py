"""/v1/explain, /v1/audio/explain and /v1/images/explain: what a prediction is based on."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import FastAPI, Form, Request
from starlette.responses import Response

from glassformer.serving.audio import read_upload
from glassformer.serving.batching import Options
from glassformer.serving.errors import json_response
from glassformer.serving.images import read_picture
from glassformer.serving.models import Models, ServedModel
from glassformer.serving.predictions import check_lengths
from glassformer.serving.schemas import (
    AudioExplainRequest,
    Explained,
    ExplainRequest,
    ImageExplainRequest,
)
from glassformer.serving.settings import Limits
from glassformer.serving.waiting import answered

TEXTS, RECORDINGS, IMAGES = "/v1/explain", "/v1/audio/explain", "/v1/images/explain"
SUMMARY = "Show what a prediction is based on."


def add_explanations(app: FastAPI, models: Models, limits: Limits) -> None:
    """The paths, for models whose predictions can be explained."""
    paths = {path for one in models for path in one.forms}
    if TEXTS in paths:

        @app.post(TEXTS, summary=SUMMARY, name="explain")
        async def explain(body: ExplainRequest, request: Request) -> Response:
            model = models.find(body.model, TEXTS)
            check = partial(check_lengths, model, limits.explained)
            work = explained(model, body.input, options_of(body), check)
            return json_response(await answered(request, work, limits.seconds, model))

    if RECORDINGS in paths:

        @app.post(RECORDINGS, summary=SUMMARY, name="audio_explain")
        async def explain_sound(
            body: Annotated[AudioExplainRequest, Form()], request: Request
        ) -> Response:
            model = models.find(body.model, RECORDINGS)

            async def work() -> dict[str, Any]:
                sound = await read_upload(model, body.file, limits.explained_audio)
                return await explained(model, sound, options_of(body), lambda inputs: None)

            return json_response(await answered(request, work(), limits.seconds, model))

    if IMAGES in paths:

        @app.post(IMAGES, summary=SUMMARY, name="images_explain")
        async def explain_image(
            body: Annotated[ImageExplainRequest, Form()], request: Request
        ) -> Response:
            model = models.find(body.model, IMAGES)

            async def work() -> dict[str, Any]:
                pixels = await read_picture(body.file, limits.pixels)
                return await explained(model, pixels, options_of(body), lambda inputs: None)

            return json_response(await answered(request, work(), limits.seconds, model))


async def explained(model: ServedModel, given: Any, options: Options, check: Any) -> dict[str, Any]:
    """The explanation of one prediction, without the names of files."""
    [found] = await model.explanations.answers([given], options, check)
    neighbours = [without_place(one) for one in found.get("neighbours", ())]
    return {"object": "explanation", "model": model.name, **found, "neighbours": neighbours}


def without_place(neighbour: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in neighbour.items() if name != "where"}


def options_of(body: Explained) -> Options:
    """What was set, as options of a run's `explain`."""
    names: Sequence[str] = ("method", "target", "unit")
    found = tuple((name, value) for name in names if (value := getattr(body, name)) is not None)
    return (*found, ("packed", True)) if body.packed else found
