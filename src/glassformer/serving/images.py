"""Uploaded pictures as pixels: those with too many are refused by their header.

As with recordings, nothing that a client calls its file is used.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from fastapi import FastAPI, Form, Request, UploadFile
from starlette.responses import Response

from glassformer.data.images.bundles import Pixels
from glassformer.data.images.reading import Picture, read_image
from glassformer.errors import GlassformerError
from glassformer.serving.errors import RefusedError, json_response
from glassformer.serving.models import Models
from glassformer.serving.predictions import listed
from glassformer.serving.schemas import ImageRequest
from glassformer.serving.settings import Limits
from glassformer.serving.waiting import answered
from glassformer.tasks import JOBS
from glassformer.tasks.predictor import Prediction


def add_images(app: FastAPI, models: Models, limits: Limits) -> None:
    """A path for each job that predicts from images."""
    for job in dict.fromkeys(one.job for one in models if one.reads_images):
        path = f"/v1/images/{job}"
        answer = handler(models, limits, path)
        app.post(path, summary=JOBS.about(job).summary, name=f"images_{job}")(answer)


def handler(models: Models, limits: Limits, path: str) -> Callable[..., Any]:
    """What answers the images of one job."""

    async def predict(body: Annotated[ImageRequest, Form()], request: Request) -> Response:
        model = models.find(body.model, path)

        async def work() -> list[Prediction]:
            pixels = await read_picture(body.file, limits.pixels)
            return await model.predict([pixels], (), lambda inputs: None)

        found = await answered(request, work(), limits.seconds, model)
        return json_response(listed(model, found))

    return predict


async def read_picture(upload: UploadFile, most: int) -> Pixels:
    """The pixels of an uploaded picture of at most so many."""
    return await asyncio.to_thread(read_file, upload.file, most)


def read_file(file: BinaryIO, most: int) -> Pixels:
    with tempfile.TemporaryDirectory(prefix="glassformer-") as folder:
        path = Path(folder) / "picture"
        with path.open("wb") as copy:
            shutil.copyfileobj(file, copy)
        try:
            return read_image(Picture(path=path), most=most)
        except GlassformerError as error:
            message = str(error).replace(str(path), "the image")
            raise RefusedError(422, message, code="invalid_image", param="file") from None
