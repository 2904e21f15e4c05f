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
        kind: `adamw`, or `muon` for the matrices inside blocks with AdamW for all other weights.
        lr: The highest learning rate, reached at the end of the warm-up.
        weight_decay: Weight decay, applied to matrices only.
        beta1: Decay of the running mean of the gradients.
        beta2: Decay of the running mean of the squared gradients.
        schedule: Course of the learning rate after the warm-up: `cosine`, `linear`, `inverse-root`
            or `constant`.
        warmup: Share of the steps during which the learning rate rises from zero.
        floor: Learning rate at the end of `cosine` and `linear`, as a share of the highest.
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
        weight: Weight of this loss; 0 turns it off.
        distance: Norm of the noise, relative to the vectors it is added to.
        probe: Norm of the probe that finds the worst direction, relative to the same vectors.
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
    """Regularisation against overfitting, for every job.

    Args:
        r_drop: Weight of the divergence between two passes with different dropout (R-Drop); 0 turns
            it off. Liang et al., 2021.
    """

    r_drop: float = 0.0
    vat: VirtualAdversaryConfig = field(default_factory=VirtualAdversaryConfig)

    def __post_init__(self) -> None:
        not_negative("train.regularise.r_drop", self.r_drop)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """The length of training, its stability, and the checkpoints that are kept.

    Args:
        steps: Length of training in steps. Give one of `steps`, `epochs`, `time` and `flops`, or
            none for the usual epochs of the job.
        epochs: Length of training in passes over the training rows.
        time: Seconds for the whole run, report included. They become a number of steps, which is
            adjusted to the clock during training.
        flops: Length of training in floating-point operations, over all steps. They become a number
            of steps at the start.
        accumulate: Number of batches per step (gradient accumulation).
        clip: Largest gradient norm, to which longer gradients are scaled down; 0 for no clipping.
        ema: Decay of an exponential moving average of the weights, which is used instead of the
            last weights; 0 for none.
        average: Number of best checkpoints whose mean is used if it scores better than the best
            one.
        save_every: Steps between checkpoints; none for a checkpoint at each validation.
        validate_every: Steps between validations; none for up to ten validations in a run.
        validate_rows: Number of rows to validate on; none for all, or for a fixed sample if all
            would take more than a tenth of the time.
        log_every: Steps between two lines of the log.
        patience: Stop after this many validations without improvement; none for never.
        weights: Which weights the run ends with: `best` (of the best validation) or `last` (the
            final ones, better if the validation rows are too few to choose by).
        keep: Number of best checkpoints that are kept.
        freeze: Prefixes of parameter names; parameters that start with one are not trained.
        refit: Whether to train again on the training and validation rows together, for as many
            epochs as the chosen weights took; without test rows, the validation rows give the
            scores, and this is skipped. `none` refits only n-grams, which is quick; `false` refits
            nothing.
        recompute: Whether to recompute the activations inside blocks in the backward pass, which
            saves memory and takes about a third more time.
        shard: Whether to shard the model over the processes, for a model too large for one device.
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
        device: `auto`, `cpu`, `cuda` or `mps`; `auto` uses the best that is available.
        precision: `auto`, `fp32` or `bf16`; `auto` uses bf16 where it works and is faster.
        compile: Whether steps are compiled, and on a GPU captured as CUDA graphs: `auto`, `true` or
            `false`; `auto` captures on a GPU, and compiles if the run is long enough for it to pay.
        deterministic: Whether results on a GPU must be bit-identical between runs; on a CPU they
            always are.
        threads: Threads per process; none leaves the choice to PyTorch.
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
