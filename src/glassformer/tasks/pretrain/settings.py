"""Settings of `pretrain`, and its defaults."""

from dataclasses import dataclass

from glassformer.config import require, share, stack_of_size
from glassformer.config.values import Values, plain


@dataclass(frozen=True, kw_only=True, slots=True)
class PretrainConfig:
    """Settings of the job.

    Args:
        max_length: Largest number of tokens of a text that are encoded at once.
        masked: Share of the words that are masked.
    """

    max_length: int = 256
    masked: float = 0.25

    def __post_init__(self) -> None:
        require(self.max_length > 1, "task.max_length must be at least 2: a start and a token")
        share("task.masked", self.masked)
        require(self.masked > 0, "task.masked must be above 0: without masks nothing is learned")


def pretrain_defaults(accelerated: bool) -> Values:
    """Defaults of the job, on top of the general ones."""
    size = "small" if accelerated else "tiny"
    stack = stack_of_size(size, max_length=512, dropout=0.1)
    return {
        "model": {"encoder": plain(stack)},
        "data": {
            "batch_tokens": 32768 if accelerated else 4096,
            "valid_share": 0.05,
            "test_share": 0.0,
            "tokenizer": {"kind": "bpe", "vocabulary": 16000},
        },
    }
