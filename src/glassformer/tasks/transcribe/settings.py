"""Settings of `transcribe`, and its defaults."""

from dataclasses import dataclass, field

from glassformer.config import choose, positive, require, share, stack_of_size
from glassformer.config.decoding import DecodeConfig
from glassformer.config.values import Values, plain

SEARCH_NAMES = ("auto", "ctc", "attention", "joint")
MEASURE_NAMES = ("auto", "words", "characters")
RATES = (2000, 192_000)  # samples a second


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskingConfig:
    """SpecAugment: what of the features is hidden while training. Park et al., 2019.

    Args:
        frequencies: How many bands of neighbouring mel bins.
        bins: The width of a band, at most.
        times: How many stretches of time.
        share: The length of a stretch, at most, as a share of the recording.
    """

    frequencies: int = 2
    bins: int = 20
    times: int = 2
    share: float = 0.1

    def __post_init__(self) -> None:
        for name in ("frequencies", "times"):
            value = getattr(self, name)
            require(value >= 0, f"task.masking.{name} must be 0 or more, got {value}")
        positive("task.masking.bins", self.bins)
        share("task.masking.share", self.share)


@dataclass(frozen=True, kw_only=True, slots=True)
class TranscribeConfig:
    """Settings of the job.

    Args:
        rate: Samples a second; recordings of another rate are resampled.
        max_seconds: Longer recordings are not trained on, and are cut at a pause to be transcribed.
        lowercase: Whether transcripts are lowercased.
        punctuation: Whether transcripts keep their punctuation.
        ctc_weight: The share of CTC in the loss and in a joint search; the rest is attention's.
            1 is CTC alone, without a decoder; 0 is attention alone.
        intermediate: The share of CTC's loss that is taken after half of the encoder's blocks.
        label_smoothing: Of the attention loss.
        search: Which scores decide what is written; auto uses all that are trained.
        measure: What the goal counts: errors in words, or in characters where a script has no
            spaces; auto looks at the transcripts.
        masking: What is hidden while training.
        decode: Decoding settings: greedy or beam.
    """

    rate: int = 16000
    max_seconds: float = 30.0
    lowercase: bool = True
    punctuation: bool = False
    ctc_weight: float = 0.3
    intermediate: float = 0.0
    label_smoothing: float = 0.1
    search: str = "auto"
    measure: str = "auto"
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    decode: DecodeConfig = field(default_factory=lambda: DecodeConfig(method="beam"))

    def __post_init__(self) -> None:
        lowest, highest = RATES
        require(
            lowest <= self.rate <= highest,
            f"task.rate must lie in {lowest:,} ... {highest:,} samples a second, got {self.rate}",
        )
        require(
            self.max_seconds >= 1, f"task.max_seconds must be 1 or more, got {self.max_seconds:g}"
        )
        share("task.label_smoothing", self.label_smoothing)
        share("task.intermediate", self.intermediate)
        require(
            not self.intermediate or self.ctc_weight > 0,
            "task.intermediate is a share of CTC's loss, which task.ctc_weight = 0 leaves out; "
            "raise that one, or leave it out",
        )
        require(
            0 <= self.ctc_weight <= 1,
            f"task.ctc_weight must lie in [0, 1], got {self.ctc_weight}; 0.3 is usual",
        )
        choose("task.search", self.search, SEARCH_NAMES)
        choose("task.measure", self.measure, MEASURE_NAMES)
        require(
            self.decode.method != "sample",
            "task.decode.method = sample would write something else each time; use greedy or beam",
        )
        trained = self.searches
        require(
            self.search in ("auto", *trained),
            f"task.search = {self.search} needs scores that task.ctc_weight = {self.ctc_weight:g} "
            f"does not train; choose {' or '.join(trained)}",
        )

    @property
    def searches(self) -> tuple[str, ...]:
        """The searches that the trained scores allow, the default first."""
        if self.ctc_weight == 1:
            return ("ctc",)
        return ("attention",) if self.ctc_weight == 0 else ("joint", "attention", "ctc")


def transcribe_defaults(accelerated: bool) -> Values:
    """Defaults of the job, on top of the general ones."""
    size = "small" if accelerated else "tiny"
    encoder = plain(stack_of_size(size, block="conformer", dropout=0.1))
    decoder = plain(stack_of_size(size, dropout=0.1))
    return {
        "model": {"frontend": {"kind": "subsampling"}, "encoder": encoder, "decoder": decoder},
        "data": {
            "batch_tokens": 16384 if accelerated else 2048,
            "tokenizer": {"vocabulary": 1000},
        },
        "task": {"decode": {"method": "beam"}},
        "train": {"average": 5 if accelerated else 1},
    }
