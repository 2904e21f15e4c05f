"""How a model is trained, and on what machine."""

from dataclasses import dataclass, field

from glassformer.config.checks import (
    above_zero,
    at_most,
    choose,
    not_negative,
    positive,
    require,
    share,
)

OPTIMISER_NAMES = ("adamw", "muon")
SCHEDULE_NAMES = ("cosine", "linear", "inverse-root", "constant")
DEVICE_NAMES = ("auto", "cpu", "cuda", "mps")
PRECISION_NAMES = ("auto", "fp32", "bf16")
MOST_THREADS = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimiserConfig:
    """The optimiser.

    Args:
        kind: `adamw`, or `muon` for the matrices inside blocks and AdamW for the rest.
        lr: The highest learning rate, reached after the warm-up.
        weight_decay: Weight decay of matrices.
        beta1: Decay of the mean of the gradients.
        beta2: Decay of the mean of their squares.
        schedule: `cosine`, `linear`, `inverse-root` or `constant`: how the learning rate goes on
            after the warm-up.
        warmup: Share of the steps in which it rises from zero.
        floor: Share of the highest learning rate at which `cosine` and `linear` end.
    """

    kind: str = "adamw"
    lr: float = 1e-3
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.98
    schedule: str = "cosine"
    warmup: float = 0.1
    floor: float = 0.0

    def __post_init__(self) -> None:
        choose("train.optimiser.kind", self.kind, OPTIMISER_NAMES)
        choose("train.optimiser.schedule", self.schedule, SCHEDULE_NAMES)
        above_zero("train.optimiser.lr", self.lr)
        not_negative("train.optimiser.weight_decay", self.weight_decay)
        for name in ("beta1", "beta2", "warmup", "floor"):
            share(f"train.optimiser.{name}", getattr(self, name))


@dataclass(frozen=True, kw_only=True, slots=True)
class VirtualAdversaryConfig:
    """Virtual adversarial training. Miyato et al., 2016.

    Args:
        weight: Weight of its loss; 0 disables it.
        distance: Norm of the noise, relative to the vectors it is added to.
        probe: Norm of the probe that finds the worst direction, also relative.
    """

    weight: float = 0.0
    distance: float = 0.3
    probe: float = 0.01

    def __post_init__(self) -> None:
        above_zero("train.regularise.vat.distance", self.distance)
        above_zero("train.regularise.vat.probe", self.probe)
        not_negative("train.regularise.vat.weight", self.weight)


@dataclass(frozen=True, kw_only=True, slots=True)
class RegulariserConfig:
    """Regularisation against overfitting, for any job.

    Args:
        r_drop: Weight of the divergence of two passes with different dropout. Liang et al., 2021.
    """

    r_drop: float = 0.0
    vat: VirtualAdversaryConfig = field(default_factory=VirtualAdversaryConfig)

    def __post_init__(self) -> None:
        not_negative("train.regularise.r_drop", self.r_drop)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """The length of training, its stability, and which checkpoints are kept.

    Args:
        steps: Length of training in steps; one of `steps`, `epochs`, `time` and `flops`.
        epochs: Length of training in epochs.
        time: Seconds for the whole run, its report included; becomes a number of steps, which
            follows the clock while training runs.
        flops: Length of training in floating-point operations of all steps; becomes a number of
            steps at the start.
        accumulate: Batches per step.
        clip: Largest gradient norm; 0 for no clipping.
        ema: Decay of an exponential average of the weights, used instead of the last ones.
        average: Use the mean of this many best checkpoints, if that is better than the best.
        save_every: Steps between checkpoints; none saves at each validation.
        validate_every: Steps between validations; none for up to ten in a run.
        validate_rows: Rows to validate on; none for all, or a fixed sample if all would take more
            than a tenth of the time.
        log_every: Steps between two lines of the log.
        patience: Stop after so many validations without improvement; none for never.
        weights: Which weights are used in the end: `best`, of the best validation, or `last`, where
            a few validation rows tell less than training to the end.
        keep: How many of the best checkpoints are kept.
        freeze: Freeze parameters whose names start with these prefixes.
        refit: Train again on the training and validation rows together, for as many epochs as the
            weights that are used; without test rows, which then give the scores, it is left out.
            `none` lets n-grams alone, which are quickly fitted, learn the validation rows; `false`
            nothing.
        recompute: Recompute the activations inside blocks in the backward pass: less memory, about
            a third more time.
        shard: Shard the model over the processes, for one that fits no single device.
    """

    steps: int | None = None
    epochs: float | None = None
    time: float | None = None
    flops: float | None = None
    accumulate: int = 1
    clip: float = 1.0
    ema: float = 0.0
    average: int = 1
    save_every: int | None = None
    validate_every: int | None = None
    validate_rows: int | None = None
    log_every: int = 10
    patience: int | None = None
    weights: str = "best"
    keep: int = 1
    freeze: tuple[str, ...] = ()
    refit: bool | None = None
    recompute: bool = False
    shard: bool = False
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    regularise: RegulariserConfig = field(default_factory=RegulariserConfig)

    def __post_init__(self) -> None:
        counts = ("steps", "accumulate", "average", "patience", "keep")
        intervals = ("save_every", "validate_every", "validate_rows", "log_every")
        for name in (*counts, *intervals):
            positive(f"train.{name}", getattr(self, name))
        above_zero("train.epochs", self.epochs)
        above_zero("train.time", self.time)
        above_zero("train.flops", self.flops)
        not_negative("train.clip", self.clip)
        share("train.ema", self.ema)
        require(
            not self.ema or self.average == 1,
            "train.ema and train.average both average weights; use one of them",
        )
        choose("train.weights", self.weights, ("best", "last"))
        require(
            self.weights == "best" or self.average == 1,
            "train.average averages the best checkpoints, but train.weights = last; set "
            "train.weights=best, or average over steps with train.ema",
        )
        require(
            not self.shard or self.optimiser.kind == "adamw",
            "train.shard=true splits matrices, but Muon needs them whole; use "
            "train.optimiser.kind=adamw",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineConfig:
    """The device and precision.

    Args:
        device: `auto`, `cpu`, `cuda` or `mps`; `auto` takes the best available.
        precision: `auto`, `fp32` or `bf16`; `auto` takes bf16 where it works and is faster.
        compile: `auto`, `true` or `false`: whether steps are compiled, and on a GPU captured as
            CUDA graphs; `auto` captures on a GPU, and compiles if the run is long enough for it to
            pay.
        deterministic: Whether a GPU must give bit-identical results; a CPU does anyway.
        threads: Threads of one process; none leaves it to PyTorch.
    """

    device: str = "auto"
    precision: str = "auto"
    compile: bool | str = "auto"
    deterministic: bool = False
    threads: int | None = None

    def __post_init__(self) -> None:
        require(self.device != "gpu", "unknown machine.device 'gpu'; use cuda, or mps on a Mac")
        choose("machine.device", self.device, DEVICE_NAMES)
        choose("machine.precision", self.precision, PRECISION_NAMES)
        require(
            self.compile in ("auto", True, False),
            f"machine.compile must be auto, true or false, got {self.compile}",
        )
        positive("machine.threads", self.threads)
        at_most("machine.threads", self.threads, MOST_THREADS)
