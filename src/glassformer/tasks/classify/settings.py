"""Settings of `classify`, and its defaults."""

from dataclasses import dataclass

from glassformer.config import choose, positive, require, share, stack_of_size
from glassformer.config.values import Values, plain
from glassformer.tasks.shared.sound_settings import SoundConfig

LONG_NAMES = ("head", "tail", "both", "windows")
VECTOR_NAMES = ("random", "ppmi")


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifyConfig(SoundConfig):
    """Settings of the job, besides those of recordings.

    Args:
        max_length: Largest number of tokens of a text that are encoded at once.
        long: Which part of a text longer than `max_length` is used: `head`, `tail`, `both` (ends)
            or `windows` (all of it, part by part).
        vectors: Start of the token vectors: `random`, or `ppmi`, by how often tokens occur near
            each other in the training texts.
        separator: What separates several labels in one field; none detects it. Implies
            `multi_label`.
        multi_label: Whether a row may have any number of labels; none decides by the data.
        threshold: Probability from which a label is predicted, if rows may have several; none for
            the one that suits the validation rows best.
        class_weights: Whether rows are weighted so that every label has the same total weight.
        label_smoothing: Share of the target that is spread evenly over all labels.
        rarest: Smallest number of rows of a label; rarer labels are refused, because they cannot be
            both trained on and scored.
    """

    max_length: int = 256
    long: str = "head"
    vectors: str = "random"
    separator: str | None = None
    multi_label: bool | None = None
    threshold: float | None = None
    class_weights: bool = False
    label_smoothing: float = 0.0
    rarest: int = 2

    def __post_init__(self) -> None:
        self.check_sound()
        choose("task.long", self.long, LONG_NAMES)
        choose("task.vectors", self.vectors, VECTOR_NAMES)
        positive("task.max_length", self.max_length)
        positive("task.rarest", self.rarest)
        if self.threshold is not None:
            between = f"task.threshold must lie between 0 and 1, got {self.threshold}"
            require(0 < self.threshold < 1, between)
        share("task.label_smoothing", self.label_smoothing)
        require(self.max_length > 1, "task.max_length must be at least 2: a start and a token")


def classify_defaults(accelerated: bool) -> Values:
    """Defaults of the job, on top of the general ones."""
    size, length = ("small", 512) if accelerated else ("tiny", 256)
    stack = stack_of_size(size, max_length=length, dropout=0.2)
    return {
        "model": {"encoder": plain(stack)},
        "data": {"batch_tokens": 16384 if accelerated else 4096},
        "train": {"patience": 5},
        "task": {"max_length": length},
    }
