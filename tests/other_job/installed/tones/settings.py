"""Settings of `listen`, and its defaults."""

from dataclasses import dataclass

from glassformer.config import positive, stack_of_size
from glassformer.config.values import Values, plain


@dataclass(frozen=True, kw_only=True, slots=True)
class ListenConfig:
    """Settings of the job.

    Args:
        rate: Samples a second, of every recording.
        frame: Samples that become one vector.
        longest: Frames of a recording, at most.
        quieter: The share of its volume that a recording may lose at random while training.
    """

    rate: int = 2000
    frame: int = 20
    longest: int = 61
    quieter: float = 0.5

    def __post_init__(self) -> None:
        for name in ("rate", "frame", "longest"):
            positive(f"task.{name}", getattr(self, name))


def listen_defaults(accelerated: bool) -> Values:
    """Defaults that suit the job, over those of the records."""
    return {
        "model": {"encoder": plain(stack_of_size("tiny", depth=1, dropout=0.0))},
        "data": {"batch_tokens": 16384 if accelerated else 512},
    }
