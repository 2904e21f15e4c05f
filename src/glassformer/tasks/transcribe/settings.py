"""Settings of `transcribe`, and its defaults."""

from dataclasses import dataclass, field

from glassformer.config import choose, positive, require, share, stack_of_size
from glassformer.config.decoding import DecodeConfig
from glassformer.config.values import Values, plain

FEATURE_NAMES = ("mel", "mfcc")
NORMALISE_NAMES = ("recording", "all")
STORE_NAMES = ("auto", "features", "waveforms")
SPEEDS = (0.5, 2.0)
SEARCH_NAMES = ("auto", "ctc", "attention", "joint")
MEASURE_NAMES = ("auto", "words", "characters")
RATES = (2000, 192_000)  # samples a second
MOST_LM = 10.0  # of the weight of a language model


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
class AugmentConfig:
    """How recordings are changed while training, anew in each epoch.

    Args:
        speeds: Speeds at which they are played, such as 0.9, 1 and 1.1. Ko et al., 2015.
        volume: Decibels by which they are made louder or quieter, at most.
        noise: The lowest and the highest signal-to-noise ratio of white noise, in decibels.
    """

    speeds: tuple[float, ...] = ()
    volume: float = 0.0
    noise: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        slowest, fastest = SPEEDS
        require(
            all(slowest <= speed <= fastest for speed in self.speeds),
            f"task.augment.speeds must lie in [{slowest}, {fastest}], got {list(self.speeds)}",
        )
        require(
            self.volume >= 0, f"task.augment.volume must be 0 decibels or more, got {self.volume:g}"
        )
        require(
            not self.noise or (len(self.noise) == 2 and self.noise[0] <= self.noise[1]),
            f"task.augment.noise must be a lowest and a highest ratio in decibels, such as "
            f"[10, 30]; got {list(self.noise)}",
        )

    @property
    def changes(self) -> bool:
        """Whether anything is changed."""
        return bool(self.speeds or self.volume or self.noise)

    @property
    def slowest(self) -> float:
        """The speed at which a recording lasts longest."""
        return min(self.speeds, default=1.0)

    @property
    def fastest(self) -> float:
        """The speed at which a recording is shortest."""
        return max(self.speeds, default=1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class TranscribeConfig:
    """Settings of the job.

    Args:
        rate: Samples a second; recordings of another rate are resampled.
        features: Log-mel energies, or cepstral coefficients (MFCC); model.frontend.bins a frame.
        normalise: By the mean and variance of each recording, or of all training recordings.
        store: Whether a run stores features, or waveforms to compute them from on the fly; auto
            stores waveforms if task.augment changes them.
        max_seconds: Longer recordings are neither trained on nor scored.
        max_piece: Recordings longer than so many seconds are cut at pauses to be transcribed; 0 is
            a quarter more than the longest one that is trained on.
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
        augment: How recordings are changed while training.
        decode: Decoding settings: greedy or beam.
        lm: The weight of an n-gram model of the training transcripts in beam searches; by default
            chosen on the validation rows, 0 for none.
    """

    rate: int = 16000
    features: str = "mel"
    normalise: str = "recording"
    store: str = "auto"
    max_seconds: float = 30.0
    max_piece: float = 0.0
    lowercase: bool = True
    punctuation: bool = False
    ctc_weight: float = 0.3
    intermediate: float = 0.0
    label_smoothing: float = 0.1
    search: str = "auto"
    measure: str = "auto"
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    decode: DecodeConfig = field(default_factory=lambda: DecodeConfig(method="beam"))
    lm: float | None = None

    def __post_init__(self) -> None:
        lowest, highest = RATES
        require(
            lowest <= self.rate <= highest,
            f"task.rate must lie in {lowest:,} ... {highest:,} samples a second, got {self.rate}",
        )
        require(
            self.max_seconds >= 1, f"task.max_seconds must be 1 or more, got {self.max_seconds:g}"
        )
        require(
            self.max_piece == 0 or self.max_piece >= 1,
            f"task.max_piece must be 1 or more, or 0, got {self.max_piece:g}",
        )
        self._check_sound()
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
        require(
            self.lm is None or 0 <= self.lm <= MOST_LM,
            f"task.lm must lie in [0, {MOST_LM:g}], got {self.lm}; 0.3 is usual",
        )
        require(
            not self.lm or self.decode.method == "beam",
            "task.lm needs task.decode.method = beam; leave it out, or search by beam",
        )
        trained = self.searches
        require(
            self.search in ("auto", *trained),
            f"task.search = {self.search} needs scores that task.ctc_weight = {self.ctc_weight:g} "
            f"does not train; choose {' or '.join(trained)}",
        )

    def _check_sound(self) -> None:
        choose("task.features", self.features, FEATURE_NAMES)
        choose("task.normalise", self.normalise, NORMALISE_NAMES)
        choose("task.store", self.store, STORE_NAMES)
        require(
            not self.augment.volume or self.normalise == "all",
            "task.augment.volume has no effect where each recording is normalised; leave it out, "
            "or set task.normalise=all",
        )
        require(
            not self.augment.changes or self.store != "features",
            "task.augment changes waveforms, but task.store = features; leave task.store out",
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
