"""Settings of jobs that read recordings."""

from dataclasses import dataclass, field

from glassformer.config import choose, positive, require, share

FEATURE_NAMES = ("mel", "mfcc", "tone")
NORMALISE_NAMES = ("all", "recording")
STORE_NAMES = ("auto", "features", "waveforms")
SPEEDS = (0.5, 2.0)
FEW_SPEEDS = 3  # features at so many take 1.5 times the space of waveforms
RATES = (2000, 192_000)  # samples a second
WINDOWS = (25, 1000)  # milliseconds


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskingConfig:
    """SpecAugment: which parts of the features are hidden in training. Park et al., 2019.

    Args:
        frequencies: Number of bands of neighbouring mel bins that are hidden.
        bins: Largest width of a band, in bins.
        times: Number of stretches of time that are hidden.
        share: Largest length of a stretch, as a share of the recording.
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
    """How recordings are changed in training, anew in each epoch.

    Args:
        speeds: Speeds at which recordings are played, such as 0.9, 1 and 1.1. Ko et al., 2015.
        volume: Largest change of volume, up or down, in decibels.
        noise: Lowest and highest signal-to-noise ratio of added white noise, in decibels.
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
    def has_no_end(self) -> bool:
        """Whether there are too many versions of a recording to be computed beforehand."""
        return bool(self.volume or self.noise) or len({1.0, *self.speeds}) > FEW_SPEEDS

    @property
    def slowest(self) -> float:
        """The speed at which a recording lasts longest."""
        return min(self.speeds, default=1.0)

    @property
    def fastest(self) -> float:
        """The speed at which a recording is shortest."""
        return max(self.speeds, default=1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class SoundConfig:
    """How recordings are read, and how they are changed while training.

    Args:
        rate: Samples per second; recordings at another rate are resampled.
        features: `mel` (log-mel energies), `mfcc` (cepstral coefficients) or `tone` (log energies
            around the loudest pitch of a recording); `model.frontend.bins` per frame.
        window: Length of a frame in milliseconds; a hundred frames start in each second. Longer
            frames separate pitches better from each other and from noise, and blur their changes.
        normalise: Whose mean and variance normalise the features: those of `all` training
            recordings, or of each `recording`.
        store: What a run stores: `features` or `waveforms`; `auto` stores waveforms if
            `task.augment` makes too many versions of the features.
        max_seconds: Longest recording, in seconds. Longer ones are cut to their beginning where
            labels are predicted, and left out of training and scores where transcripts are.
        masking: What is hidden in training.
        augment: How recordings are changed in training.
    """

    rate: int = 16000
    features: str = "mel"
    window: int = 25
    normalise: str = "all"
    store: str = "auto"
    max_seconds: float = 30.0
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)

    def check_sound(self) -> None:
        """Refuse settings that do not fit."""
        lowest, highest = RATES
        require(
            lowest <= self.rate <= highest,
            f"task.rate must lie in {lowest:,} ... {highest:,} samples a second, got {self.rate}",
        )
        require(
            self.max_seconds >= 1, f"task.max_seconds must be 1 or more, got {self.max_seconds:g}"
        )
        shortest, longest = WINDOWS
        require(
            shortest <= self.window <= longest,
            f"task.window must lie in {shortest} ... {longest:,} milliseconds, got {self.window}",
        )
        choose("task.features", self.features, FEATURE_NAMES)
        choose("task.normalise", self.normalise, NORMALISE_NAMES)
        choose("task.store", self.store, STORE_NAMES)
        require(
            not self.augment.volume or self.normalise == "all",
            "task.augment.volume has no effect with task.normalise = recording; leave one of them "
            "out",
        )
        require(
            not self.augment.has_no_end or self.store != "features",
            "task.augment changes waveforms, but task.store = features; leave task.store out",
        )
