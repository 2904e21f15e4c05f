"""Labels for new images."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from glassformer.data.images.bundles import Pixels, is_bundle
from glassformer.data.images.reading import Picture, read_image
from glassformer.data.samples import Sample
from glassformer.errors import GlassformerError
from glassformer.tasks.predictor import BaselinePredictor, Prediction, Predictor
from glassformer.tasks.recognise.images import ImageBatch, laid_out, scaled
from glassformer.tasks.recognise.pixel_baseline import PixelBaseline
from glassformer.tasks.recognise.task import RecogniseTask
from glassformer.tasks.served import ImageReader
from glassformer.tasks.shared.image_data import picture_of
from glassformer.tasks.shared.label_predictor import NextBest, unlabelled

TOGETHER = 64  # images per batch, after the first one if more are still to come

Image = Picture | np.ndarray


class ImagePredictor(Predictor[RecogniseTask, Image], ImageReader):
    """What is the same for all that reads images."""

    kinds = (str, Path, np.ndarray, Picture)
    noun = "image"

    def pixels(self, image: Image) -> Pixels:
        """An image at the size that is read."""
        found = read_image(image) if isinstance(image, Picture) else image
        return self.task.inputs.fit(found)

    def accept(self, value: Any) -> Image:
        value = super().accept(value)
        if isinstance(value, str | Path):
            return named(str(value))
        return value if isinstance(value, Picture) else checked(value)

    def from_sample(self, sample: Sample) -> Image:
        return picture_of(sample)

    def example(self) -> str:
        return "picture.png"


class ImageLabelPredictor(NextBest, ImagePredictor):
    """The label or labels of an image, and the probability of every label."""

    def predict(self, model: nn.Module, inputs: Iterable[Image]) -> Iterator[Prediction]:
        task, device = self.task, next(model.parameters()).device
        rest, size = map(self.pixels, inputs), TOGETHER if isinstance(inputs, list) else 1
        while some := list(islice(rest, size)):
            images, layout = laid_out(scaled(np.stack(some)), task.inputs.vectors)
            none, row_ids = unlabelled(task.labels, len(some)), torch.arange(len(some))
            batch = ImageBatch(images, layout, none, row_ids).to(device)
            with torch.no_grad():
                found = task.answers(model, [batch]).probabilities()
            yield from task.labels.predictions(found, self.alternatives)
            size = TOGETHER

    def baseline(self) -> "PixelPredictor | None":
        stored = PixelBaseline.load(self.task.folder)
        return None if stored is None else PixelPredictor(self.task, stored)


class PixelPredictor(BaselinePredictor[RecogniseTask, Image], ImagePredictor):
    """The same from the baseline of the run."""

    def __init__(self, task: RecogniseTask, stored: PixelBaseline) -> None:
        super().__init__(task)
        self.stored = stored

    def predict(self, model: nn.Module, inputs: Iterable[Image]) -> Iterator[Prediction]:
        for image in inputs:
            chances = self.stored.probabilities(self.pixels(image)[None])
            yield from self.task.labels.predictions(chances, self.alternatives, baseline=True)


def named(path: str) -> Picture:
    """The image of a path; `FILE#17` is number 17 of a file that holds many."""
    file, mark, number = path.rpartition("#")
    if mark and is_bundle(Path(file)):
        return picture_of({"path": file, "number": number})
    return picture_of({"path": path})


def checked(pixels: np.ndarray) -> Pixels:
    """Pixels from Python, refused if they are no image."""
    shaped = pixels[..., None] if pixels.ndim == 2 else pixels
    if shaped.dtype != np.uint8 or shaped.ndim != 3 or shaped.shape[2] not in (1, 3):
        raise GlassformerError(
            f"an image is an array of bytes (uint8) of shape (height, width) or (height, width, "
            f"3); got {pixels.dtype} of shape {pixels.shape}"
        )
    if not shaped.size:
        raise GlassformerError("an image without pixels was given; give at least one")
    return shaped
