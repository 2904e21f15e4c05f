"""Settings of `generate`, and its defaults."""

from dataclasses import dataclass, field

from glassformer.config import require, share, stack_of_size
from glassformer.config.decoding import DecodeConfig
from glassformer.config.values import Values, build, plain

BY_SAMPLING: Values = {"method": "sample", "sample": {"temperature": 0.8, "top_p": 0.95}}


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateConfig:
    """Settings of the job.

    Args:
        max_length: Number of tokens in a window, the longest context in training.
        stride: Steps between two windows in evaluation, where every token after the first window
            sees at least `max_length - stride` tokens before it; none for half a window.
        label_smoothing: Share of the target that is spread evenly over all tokens.
        decode: Decoding settings, for predictions.
    """

    max_length: int = 256
    stride: int | None = None
    label_smoothing: float = 0.0
    decode: DecodeConfig = field(default_factory=lambda: build(DecodeConfig, BY_SAMPLING))

    def __post_init__(self) -> None:
        require(self.max_length > 1, "task.max_length must be at least 2: a start and a token")
        require(
            self.stride is None or 0 < self.stride <= self.max_length,
            f"task.stride must lie in 1 ... task.max_length ({self.max_length}), got {self.stride}",
        )
        share("task.label_smoothing", self.label_smoothing)

    @property
    def evaluation_stride(self) -> int:
        """Steps between two windows in evaluation."""
        return self.stride or self.max_length // 2


def generate_defaults(accelerated: bool) -> Values:
    """Defaults of the job, on top of the general ones."""
    size = "base" if accelerated else "tiny"
    return {
        "model": {"decoder": plain(stack_of_size(size, style="llama", dropout=0.1))},
        "data": {
            "batch_tokens": 32768 if accelerated else 4096,
            "valid_share": 0.05,
            "test_share": 0.05,
            "tokenizer": {"vocabulary": 8000},
        },
        "task": {"decode": BY_SAMPLING},
    }
