"""The state of a training. Random generators are not part of it: seeds follow from the step."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from glassformer import processes
from glassformer.config import TrainConfig
from glassformer.errors import GlassformerError
from glassformer.training.averages import MovingAverage
from glassformer.training.checkpoints import (
    find_checkpoint,
    intact_best,
    name_latest,
    prune_checkpoints,
    read_group,
    rewrite_progress,
    write_checkpoint,
)
from glassformer.training.fsdp import is_sharded
from glassformer.training.optimisers import Optimisers
from glassformer.training.progress import Progress, read_progress
from glassformer.training.weights import Weights, load_weights, weights_of


class State:
    """A model in training: its weights, the optimiser state, the moving average, and progress.

    Attributes:
        damaged: What is wrong with the newest checkpoints, which `load` skipped, or with the best
            ones.
    """

    def __init__(self, model: nn.Module, config: TrainConfig) -> None:
        freeze(model, config.freeze)
        self.model, self.config = model, config
        self.damaged: list[str] = []
        self._reset(Progress())

    def _reset(self, progress: Progress) -> None:
        self.progress = progress
        self.optimisers = Optimisers(self.model, self.config.optimiser)
        decay = self.config.ema
        self.average = MovingAverage(decay, weights_of(self.model)) if decay else None

    @property
    def averaged_weights(self) -> Weights | None:
        """The moving average, to evaluate instead of the model's own weights; None without one."""
        return None if self.average is None else self.average.weights

    def save(self, folder: Path) -> None:
        """Save a checkpoint, then remove those that are neither recent nor among the best."""
        groups: dict[str, Mapping[str, Tensor]] = {
            "model": weights_of(self.model),
            "optimiser": self.optimisers.tensors(),
        }
        if self.average is not None:
            groups["average"] = self.average.weights
        write_checkpoint(folder, self.progress, groups, sharded=is_sharded(self.model))
        prune_checkpoints(folder, self.progress)

    def save_progress(self, folder: Path) -> None:
        """Update the existing checkpoint of this step, then remove others as `save` does."""
        rewrite_progress(folder, self.progress)
        prune_checkpoints(folder, self.progress)

    def load(self, folder: Path) -> bool:
        """Load the newest intact checkpoint; False if there is none yet."""
        found = find_checkpoint(folder) if processes.is_first() else None
        name = processes.broadcast(found.home.name if found else "")
        if not name:
            return False
        home = folder / name
        self.damaged = found.damaged if found else []
        progress = found.progress if found else read_progress(home / "state.json")[0]
        progress.best, lost = intact_best(folder, progress)
        if not self.damaged:  # otherwise a later step had superseded the best, and will again
            self.damaged = lost
        load_weights(self.model, read_group(home, "model"), str(home))
        self.optimisers.load(read_group(home, "optimiser"))
        if self.average is not None:
            self.average.load(read_group(home, "average"))
        self.progress = progress
        name_latest(folder, progress.step)
        prune_checkpoints(folder, progress)
        return True

    def roll_back(self, folder: Path, initial_weights: Mapping[str, Tensor]) -> None:
        """Return to the newest checkpoint, or to the start, and halve the learning rate.

        The decision is saved, so that a resumed run repeats it.
        """
        halvings, micro_batches = self.progress.halvings + 1, self.progress.micro_batches
        if self.load(folder):
            self.progress.halvings, self.progress.micro_batches = halvings, micro_batches
            rewrite_progress(folder, self.progress)
        else:
            load_weights(self.model, initial_weights, "the initial weights")
            self._reset(Progress(halvings=halvings, micro_batches=micro_batches))
            self.save(folder)


def freeze(model: nn.Module, prefixes: tuple[str, ...]) -> None:
    """Freeze the parameters whose names start with one of the prefixes."""
    named = list(model.named_parameters(remove_duplicate=False))  # shared ones by all their names
    for prefix in prefixes:
        found = [p for name, p in named if (name + ".").startswith(prefix + ".")]
        if not found:
            modules = sorted({name.split(".")[0] for name, _ in named})
            raise GlassformerError(
                f"train.freeze: no parameter name starts with {prefix!r}; the model's modules are "
                f"{', '.join(modules)}"
            )
        for parameter in found:
            parameter.requires_grad_(False)
    if not any(p.requires_grad for p in model.parameters()):
        raise GlassformerError(
            "train.freeze leaves nothing to train; freeze less, such as train.freeze=encoder"
        )
