"""Images as a model reads them: at one size, and changed anew in every epoch of training.

What an epoch sees of a row is a function of (seed, epoch, row) alone, and so is the other row that
it is mixed with.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn
from torch.utils._pytree import register_dataclass

from glassformer.config import DataConfig, FrontendConfig, ModelConfig, require
from glassformer.config.run import Config
from glassformer.core.layout import Layout
from glassformer.data.arrays import map_array
from glassformer.data.batches import row_noise, row_rng
from glassformer.data.images.augment import erased, flipped, mixed, shifted, warped
from glassformer.data.images.bundles import Pixels
from glassformer.data.images.fitting import fitted
from glassformer.data.images.reading import read_image
from glassformer.data.samples import Sample, Samples
from glassformer.errors import GlassformerError
from glassformer.models.transformer import ClassScores, Noise
from glassformer.tasks.recognise.settings import RecogniseConfig
from glassformer.tasks.shared.batches import LaidOutBatch, pad_first
from glassformer.tasks.shared.image_data import picture_of
from glassformer.tasks.shared.label_inputs import Inputs, Read, Rows
from glassformer.tasks.shared.own_models import given

STORE = "images.npy"
ACROSS = 8  # patches along the longer side, about, unless the settings say
SMALLEST = 2  # pixels of the side of a patch

Stored = UInt8[np.ndarray, "N height width channels"]
Images = Float[np.ndarray, "B height width channels"]  # as a model reads them, from -1 to 1
Mixes = tuple[Rows, Float[np.ndarray, " chosen"]]  # the other row, and the share of this one


@dataclass(frozen=True, slots=True)
class ImageBatch(LaidOutBatch):
    """Some images and their labels.

    Attributes:
        layout: Of the vectors that they become.
        labels: Of each image its label, or a share of every label.
        row_ids: The row of the split that each row is.
    """

    images: Float[Tensor, "B channels height width"]
    layout: Layout
    labels: Tensor
    row_ids: Int[Tensor, " B"]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of images; all are of one size."""
        return (len(self.images),)

    def filled(self, sizes: tuple[int, ...]) -> "ImageBatch":
        """The same with images that count nothing."""
        [rows] = sizes
        images, labels = (pad_first(x, rows, 0) for x in (self.images, self.labels))
        fillers = torch.arange(rows) >= len(self.images)
        layout = replace(Layout.full(rows, self.layout.longest), fillers=fillers)
        return ImageBatch(images, layout, labels, pad_first(self.row_ids, rows, -1))

    def twice(self) -> "ImageBatch":
        """All images, and then all of them again."""
        images, labels, row_ids = (
            torch.cat([x, x]) for x in (self.images, self.labels, self.row_ids)
        )
        return ImageBatch(images, self.layout.twice(), labels, row_ids)


register_dataclass(ImageBatch)


class ImageInputs(Inputs):
    """Images. What counts towards the size of a batch is their patches."""

    role, noun = "path", "image"
    epochs = 60.0
    batch = ImageBatch

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.settings = config, config.task
        self.frontend = config.model.frontend
        self.vectors = vectors_of(config.model)
        if data is not None:
            self.images = open_store(data / STORE, self.frontend)
            self.train = Samples.open(data).rows("train")

    @staticmethod
    def prepare(config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        refuse_settings_of_texts(config)
        task = settled(config.task, samples)
        frontend = replace(
            config.model.frontend,
            **{name: getattr(task, name) for name in ("channels", "patch", "height", "width")},
        )
        model = replace(config.model, frontend=frontend)
        assert model.encoder is not None
        longest = max(model.encoder.max_length, vectors_of(model))
        model = replace(model, encoder=replace(model.encoder, max_length=longest))
        return replace(config, model=model, task=task, pretrain="no")

    def index(self, samples: Samples, data: Path) -> None:
        found = (self.fit(read_image(picture_of(sample))) for sample in samples)
        write_store(data / STORE, found, len(samples), self.frontend)

    def fit(self, pixels: Pixels) -> Pixels:
        """An image at the size that is read."""
        f = self.frontend
        return fitted(pixels, f.height, f.width, f.channels)

    def lengths(self, numbers: Rows, *, training: bool) -> Rows:
        return np.full(len(numbers), self.vectors)

    def read(self, numbers: Rows, epoch: int | None) -> Read:
        if epoch is None:
            images = scaled(self.images[numbers])
        else:
            images = np.stack([self._changed(number, epoch) for number in numbers.tolist()])
            images = self._warped(images, numbers, epoch)
        return *laid_out(images, self.vectors), np.arange(len(numbers))

    def _changed(self, number: int, epoch: int) -> Float[np.ndarray, "height width channels"]:
        """An image as an epoch sees it."""
        rng = row_rng(self.config.seed, epoch, number)
        if not self.settings.augment.mixup:
            return scaled(self._augmented(number, rng))
        other, share = self._mix(rng)
        first, second = (scaled(self._augmented(row, rng)) for row in (number, other))
        return mixed(first, second, share)

    def _augmented(self, number: int, rng: np.random.Generator) -> Pixels:
        augment, pixels = self.settings.augment, self.images[number]
        if most := round(augment.crop * max(pixels.shape[:2])):
            pixels = shifted(pixels, rng, most)
        if augment.flip:
            pixels = flipped(pixels, rng)
        return erased(pixels, rng, augment.erase) if augment.erase else pixels

    def _warped(self, images: Images, numbers: Rows, epoch: int) -> Images:
        """Images turned and scaled as an epoch sees them, all at once: one by one is slow."""
        augment = self.settings.augment
        if not (augment.rotate or augment.zoom):
            return images
        noise = row_noise(self.config.seed, epoch, numbers, np.full(len(numbers), 2))
        turn, scale = (2 * noise - 1).reshape(-1, 2).T
        return warped(images, turn * augment.rotate, 1 + scale * augment.zoom)

    def mixes(self, numbers: Rows, epoch: int) -> Mixes:
        """Which training row each row is mixed with in an epoch, and how much of it is left."""
        drawn = [self._mix(row_rng(self.config.seed, epoch, n)) for n in numbers.tolist()]
        others, shares = zip(*drawn, strict=True)
        return np.array(others), np.array(shares)

    def _mix(self, rng: np.random.Generator) -> tuple[int, float]:
        """The first numbers of a row's generator."""
        alpha = self.settings.augment.mixup
        return int(self.train[rng.integers(len(self.train))]), float(rng.beta(alpha, alpha))

    def forward(self, model: nn.Module, batch: ImageBatch, noise: Noise | None) -> ClassScores:
        """Scores of the labels."""
        return model(batch.images, layout=batch.layout, **given(noise=noise))

    def shown(self, sample: Sample) -> str:
        picture = picture_of(sample)
        return str(replace(picture, path=Path(picture.path.name)))


def vectors_of(model: ModelConfig) -> int:
    """How many vectors an image becomes."""
    f = model.frontend
    return (f.height // f.patch) * (f.width // f.patch) + (model.pool == "first")


def scaled(pixels: UInt8[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Pixels from -1 (black) to 1."""
    return pixels.astype(np.float32) / 127.5 - 1


def laid_out(
    images: Float[np.ndarray, "B height width channels"], vectors: int
) -> tuple[Float[Tensor, "B channels height width"], Layout]:
    """Images as a frontend reads them, and the layout of their vectors."""
    tensor = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    return tensor, Layout.full(len(images), vectors)


def settled(task: RecogniseConfig, samples: Samples) -> RecogniseConfig:
    """Settings that leave nothing open: the size of the images, and of their patches."""
    facts = [sample["image"] for sample in samples.of("train")]
    height, width = (int(np.median([fact[side] for fact in facts])) for side in ("height", "width"))
    scale = min(1.0, task.largest / max(height, width))
    longest = max(task.height or round(height * scale), task.width or round(width * scale))
    patch = task.patch or max(SMALLEST, round(longest / ACROSS))
    colours = task.channels or (1 if all(fact["grey"] for fact in facts) else 3)
    task = replace(
        task,
        patch=patch,
        channels=colours,
        height=task.height or whole(height * scale, patch),
        width=task.width or whole(width * scale, patch),
    )
    assert task.height is not None
    assert task.width is not None
    require(
        task.height % patch == 0 and task.width % patch == 0,
        f"images of {task.height} x {task.width} pixels do not divide into patches of {patch} x "
        f"{patch}; change task.patch, or task.height and task.width",
    )
    return task


def whole(side: float, patch: int) -> int:
    """The multiple of a patch that is nearest to a side."""
    return patch * max(1, round(side / patch))


def write_store(path: Path, images: Iterable[Pixels], count: int, size: FrontendConfig) -> None:
    """Write images of one size into one file."""
    shape = (count, size.height, size.width, size.channels)
    store = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape)
    for row, pixels in enumerate(images):
        store[row] = pixels
    store.flush()


def open_store(path: Path, size: FrontendConfig) -> Stored:
    """What `write_store` wrote, mapped."""
    store = map_array(path, axes=4)
    if store.dtype != np.uint8 or store.shape[1:] != (size.height, size.width, size.channels):
        raise GlassformerError(f"{path}: not the images of this run; copy the run again")
    return store


def refuse_settings_of_texts(config: Config) -> None:
    """Refuse a frontend that reads no images."""
    kind = config.model.frontend.kind
    require(
        kind == "patches" and config.data.tokenizer == DataConfig().tokenizer,
        f"recognise reads images as patches, found model.frontend.kind = {kind}; leave it out",
    )
