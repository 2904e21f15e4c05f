"""Uploads as samples: in a file of our own with a name of our own, decoded up to a length limit.

Nothing that a client calls its file is used. What decodes to far more than was sent is given up
at the limit.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Annotated, Any, BinaryIO

import numpy as np
from fastapi import FastAPI, Form, Request, UploadFile
from starlette.responses import Response

from glassformer.data.audio.decoders import open_sound
from glassformer.data.audio.reading import Sound, read_blocks
from glassformer.errors import GlassformerError
from glassformer.serving.errors import RefusedError, json_response
from glassformer.serving.models import Models, ServedModel
from glassformer.serving.predictions import listed
from glassformer.serving.schemas import AudioRequest
from glassformer.serving.settings import Limits
from glassformer.serving.waiting import answered
from glassformer.tasks import JOBS
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.shared.sound_predictor import SoundPredictor
from glassformer.wording import counted

FASTEST = 192_000 * 2  # samples a second, of all channels together


def add_recordings(app: FastAPI, models: Models, limits: Limits) -> None:
    """A path for each job that predicts from recordings."""
    plain = [one for one in models if one.reads_sound and not one.writes_speech]
    for job in dict.fromkeys(one.job for one in plain):
        path = f"/v1/audio/{job}"
        answer = handler(models, limits, path)
        app.post(path, summary=JOBS.about(job).summary, name=f"audio_{job}")(answer)


def handler(models: Models, limits: Limits, path: str) -> Callable[..., Any]:
    """What answers the recordings of one job."""

    async def predict(body: Annotated[AudioRequest, Form()], request: Request) -> Response:
        model = models.find(body.model, path)
        work = predicted(model, body.file, limits)
        found, _ = await answered(request, work, limits.seconds, model)
        return json_response(listed(model, [found]))

    return predict


async def predicted(
    model: ServedModel, upload: UploadFile, limits: Limits, **options: Any
) -> tuple[Prediction, float]:
    """The prediction for an uploaded recording, and its length in seconds."""
    sound = await read_upload(model, upload, limits.audio)
    [found] = await model.predict([sound], tuple(options.items()), lambda inputs: None)
    return found, len(sound) / sampling_rate(model)


async def read_upload(model: ServedModel, upload: UploadFile, longest: float) -> Sound:
    """The samples of an uploaded recording, at the rate of the model."""
    rate, stopped = sampling_rate(model), Event()
    try:
        return await asyncio.to_thread(read_file, upload.file, rate, longest, stopped)
    finally:
        stopped.set()


def sampling_rate(model: ServedModel) -> int:
    """Of the recordings that a model reads."""
    assert isinstance(model.predictor, SoundPredictor)
    return model.predictor.sampling_rate


def read_file(file: BinaryIO, rate: int, longest: float, stopped: Event) -> Sound:
    """A recording of at most so many seconds, unless it is stopped."""
    with tempfile.TemporaryDirectory(prefix="glassformer-") as folder:
        path = Path(folder) / "recording"
        with path.open("wb") as copy:
            shutil.copyfileobj(file, copy)
        try:
            with open_sound(path) as decoder:
                if decoder.rate * decoder.channels > FASTEST:
                    raise GlassformerError(
                        f"{path}: has {decoder.channels} channels at {decoder.rate} Hz; convert it "
                        f"to one channel"
                    )
            return read_within(path, rate, longest, stopped)
        except GlassformerError as error:
            message = str(error).replace(str(path), "the recording")
            raise RefusedError(422, message, code="invalid_audio", param="file") from None


def read_within(path: Path, rate: int, longest: float, stopped: Event) -> Sound:
    blocks, samples = list[Sound](), 0
    for block in read_blocks(path, rate):
        blocks.append(block)
        samples += len(block)
        if samples > longest * rate or stopped.is_set():
            raise RefusedError(
                422,
                f"the recording is longer than {counted(longest, 'second')}; send a part of it",
                code="audio_too_long",
                param="file",
            )
    return np.concatenate(blocks)
