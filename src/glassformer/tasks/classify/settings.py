"""Settings of `classify`, and its defaults."""

from dataclasses import dataclass

from glassformer.config import choose, positive, require, share, stack_of_size
from glassformer.config.values import Values, plain

LONG_NAMES = ("head", "tail", "both", "windows")


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifyConfig:
    """Settings of the job.

    Args:
        max_length: Tokens of a text that are read at once.
        long: What is read of a longer text.
        separator: What stands between several labels in one field; sets the job multi-label.
        multi_label: Whether a text has any number of labels; lists in the data set it, too.
        class_weights: Whether rare labels count for more, so that all labels count alike.
        rarest: Labels with fewer rows are refused: they could be learned or checked, not both.
    """

    max_length: int = 256
    long: str = "head"
    separator: str | None = None
    multi_label: bool | None = None
    class_weights: bool = False
    label_smoothing: float = 0.0
    rarest: int = 2

    def __post_init__(self) -> None:
        choose("task.long", self.long, LONG_NAMES)
        positive("task.max_length", self.max_length)
        positive("task.rarest", self.rarest)
        share("task.label_smoothing", self.label_smoothing)
        require(self.max_length > 1, "task.max_length must be at least 2: a start and a token")


def classify_defaults(accelerated: bool) -> Values:
    """Defaults that suit the job, over those of the records."""
    size, length = ("small", 512) if accelerated else ("tiny", 256)
    stack = stack_of_size(size, max_length=length, dropout=0.2)
    return {
        "model": {"encoder": plain(stack)},
        "data": {"batch_tokens": 16384 if accelerated else 4096},
        "train": {"patience": 5},
        "task": {"max_length": length},
    }
