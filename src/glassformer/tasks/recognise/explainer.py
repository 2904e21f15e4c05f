"""What speaks for and against each label of an image: patches."""

from functools import cached_property

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.data.images.reading import Picture
from glassformer.errors import GlassformerError
from glassformer.explaining.parts import AttentionMap, Image
from glassformer.explaining.watching import Maps
from glassformer.models.pooling import AttentionPool
from glassformer.models.transformer import Classifier, Noise
from glassformer.tasks.explainer import Explainer
from glassformer.tasks.recognise.images import ImageBatch, laid_out, scaled
from glassformer.tasks.recognise.predictor import TOGETHER, Image as Input, ImageLabelPredictor
from glassformer.tasks.recognise.task import RecogniseTask
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.label_predictor import unlabelled
from glassformer.tasks.shared.label_subject import LabelSubject
from glassformer.tasks.shared.targets import labelled_map

CLASS = "class"  # what the class token is called


class ImageLabelExplainer(Explainer[RecogniseTask, Input]):
    """Explains the labels of images."""

    def subject(
        self,
        model: nn.Module,
        given: Input,
        *,
        target: str | None = None,
        unit: str | None = None,
    ) -> "LabelledImage":
        if unit is not None:
            raise GlassformerError("the pieces of an image are its patches; leave out the unit")
        pixels = torch.from_numpy(ImageLabelPredictor(self.task).pixels(given).copy())
        name = str(given) if isinstance(given, Picture) else "an image"
        return LabelledImage(self.task, model, pixels, name, target)


class LabelledImage(LabelSubject):
    """An image and the labels that it may have.

    A patch that is left out has the mean colour of the image.

    Attributes:
        pixels: The image as it was read.
        batched: The same as a batch of one.
    """

    task: RecogniseTask

    def __init__(
        self,
        task: RecogniseTask,
        model: nn.Module,
        pixels: UInt8[Tensor, "height width channels"],
        name: str,
        target: str | None,
    ) -> None:
        self.task, self.model, self.given, self.pixels = task, model, name, pixels
        self.device, f = next(model.parameters()).device, task.inputs.frontend
        images, self.layout = laid_out(scaled(pixels[None].numpy()), task.inputs.vectors)
        self.batched = images.to(self.device)
        self.rows, self.columns, self.patch = f.height // f.patch, f.width // f.patch, f.patch
        self.pieces = tuple(
            f"{row},{column} "
            for row in range(1, self.rows + 1)
            for column in range(1, self.columns + 1)
        )
        first = task.inputs.vectors - len(self.pieces)  # 1 with a class token
        self.piece_of = torch.arange(-first, len(self.pieces), device=self.device)[None]
        every = torch.ones(1, len(self.pieces), dtype=torch.bool)
        self._settle(self._answers(every), target)
        if isinstance(model, Classifier):  # rather than one of the user's own
            self.readers = self._readers(model)
            with torch.no_grad():
                self.blank, _ = model.frontend(self.mean.expand_as(self.batched), self.layout)

    @cached_property
    def mean(self) -> Float[Tensor, "1 channels 1 1"]:
        """The mean colour."""
        return self.batched.mean((2, 3), keepdim=True)

    @property
    def image(self) -> Image:
        """What was read, as pictures show it."""
        return Image(pixels=self.pixels, rows=self.rows, columns=self.columns)

    def scores(
        self, model: nn.Module, *, copies: int = 1, noise: Noise | None = None
    ) -> Float[Tensor, "copies targets"]:
        batch = self._batch(self.batched.expand(copies, -1, -1, -1))
        logits = self.task.forward(model, batch, noise=noise)
        return self._log_odds(logits / self.task.labels.temperature)

    def scores_of(self, kept: Bool[Tensor, "variants pieces"]) -> Float[Tensor, "variants targets"]:
        return self._log_odds(torch.from_numpy(self._answers(kept).logits))

    def attention_of(self, maps: Maps) -> tuple[AttentionMap, ...]:
        patches = [piece.strip() for piece in self.pieces]
        names = [CLASS, *patches] if len(self.piece_of[0]) > len(patches) else patches
        found = []
        for name, weights in maps.items():
            pools = isinstance(self.model.get_submodule(name), AttentionPool)
            found.append(labelled_map(name, weights[0], ["label"] if pools else names, names))
        return tuple(found)

    def _answers(self, kept: Bool[Tensor, "variants pieces"]) -> ClassAnswers:
        """The model's answers if only these patches are seen."""
        grid = kept.reshape(-1, 1, self.rows, self.columns).to(self.device)
        seen = grid.repeat_interleave(self.patch, 2).repeat_interleave(self.patch, 3)
        numbers = torch.arange(len(kept)).split(TOGETHER)
        batches = (self._batch(torch.where(seen[n], self.batched, self.mean), n) for n in numbers)
        with torch.no_grad():
            return self.task.answers(self.model, batches)

    def _batch(
        self,
        images: Float[Tensor, "rows channels height width"],
        row_ids: Tensor | None = None,
    ) -> ImageBatch:
        rows, vectors = len(images), self.task.inputs.vectors
        layout = Layout.full(rows, vectors, self.device)
        numbers = torch.arange(rows) if row_ids is None else row_ids
        return ImageBatch(images, layout, unlabelled(self.task.labels, rows), numbers)
