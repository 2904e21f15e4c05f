"""Settings of `recognise`, and its defaults."""

from dataclasses import dataclass, field

from glassformer.config import positive, require, share, stack_of_size
from glassformer.config.values import Values, plain

HALF_TURN = 180  # degrees


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageAugmentConfig:
    """How images are changed in training, anew in each epoch.

    Args:
        crop: Largest shift, as a share of the longer side; the border is repeated.
        flip: Whether half of the images are mirrored; unsuitable for letters and digits.
        erase: Share of the images in which a rectangle is replaced by noise.
        mixup: Each image and its labels are mixed with another, in a proportion drawn from
            Beta(mixup, mixup); 0 for none, 0.2 is usual.
        rotate: Largest rotation, either way, in degrees.
        zoom: Largest change of scale, up or down, as a share.
    """

    crop: float = 0.125
    flip: bool = False
    erase: float = 0.0
    mixup: float = 0.0
    rotate: float = 0.0
    zoom: float = 0.0

    def __post_init__(self) -> None:
        share("task.augment.crop", self.crop)
        share("task.augment.erase", self.erase)
        require(self.mixup >= 0, f"task.augment.mixup must be 0 (none) or more, got {self.mixup:g}")
        require(
            0 <= self.rotate <= HALF_TURN,
            f"task.augment.rotate must be from 0 to {HALF_TURN} degrees, got {self.rotate:g}",
        )
        require(
            0 <= self.zoom < 1,
            f"task.augment.zoom must be at least 0 and below 1, got {self.zoom:g}",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RecogniseConfig:
    """Settings of the job.

    Args:
        height: Height to which images are scaled, in pixels; none for the median of the training
            images.
        width: Width to which images are scaled, in pixels; none for the median of the training
            images.
        largest: Largest longer side, in pixels, if the size is taken from the median.
        channels: 1 for grey, 3 for colour; none for 3 if any image has colours.
        patch: Side of a square patch, in pixels; none for about an eighth of the longer side, at
            least 2.
        separator: What separates several labels in one field; none detects it. Implies
            `multi_label`.
        multi_label: Whether an image may have any number of labels; none decides by the data.
        threshold: Probability from which a label is predicted, if images may have several; none for
            the one that suits the validation rows best.
        class_weights: Whether rows are weighted so that every label has the same total weight.
        label_smoothing: Share of the target that is spread evenly over all labels.
        rarest: Smallest number of rows of a label; rarer labels are refused, because they cannot be
            both trained on and scored.
    """

    height: int | None = None
    width: int | None = None
    largest: int = 64
    channels: int | None = None
    patch: int | None = None
    augment: ImageAugmentConfig = field(default_factory=ImageAugmentConfig)
    separator: str | None = None
    multi_label: bool | None = None
    threshold: float | None = None
    class_weights: bool = False
    label_smoothing: float = 0.0
    rarest: int = 2

    def __post_init__(self) -> None:
        for name in ("height", "width", "largest", "patch", "rarest"):
            positive(f"task.{name}", getattr(self, name))
        if self.threshold is not None:
            between = f"task.threshold must lie between 0 and 1, got {self.threshold}"
            require(0 < self.threshold < 1, between)
        share("task.label_smoothing", self.label_smoothing)
        require(
            self.channels in (None, 1, 3),
            f"task.channels must be 1 (grey) or 3 (colours), got {self.channels}",
        )


def recognise_defaults(accelerated: bool) -> Values:
    """Defaults of the job, on top of the general ones."""
    size = "small" if accelerated else "tiny"
    stack = stack_of_size(size, position="none", dropout=0.1)
    return {
        "model": {"encoder": plain(stack), "frontend": {"kind": "patches"}},
        "data": {"batch_tokens": 32768 if accelerated else 4096},
        "train": {"patience": 5},
    }
