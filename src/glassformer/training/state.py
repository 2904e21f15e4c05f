"""All that changes while a model learns. Dice need no memory: they follow from seed and step."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from glassformer import processes
from glassformer.config import TrainConfig
from glassformer.errors import GlassformerError
from glassformer.training.averages import MovingAverage
from glassformer.training.checkpoints import (
    find_checkpoint,
    read_group,
    rewrite_progress,
    tidy,
    whole_best,
    write_checkpoint,
)
from glassformer.training.fsdp import is_sharded
from glassformer.training.optimisers import Optimisers
from glassformer.training.progress import Progress, read_progress
from glassformer.training.weights import Weights, put_weights, weights_of


class State:
    """A model that learns: its weights, what the optimisers remember, averages, and progress.

    Attributes:
        damaged: What is wrong with the newest checkpoints, which `load` had to pass over, or with
            the best one.
    """

    def __init__(self, model: nn.Module, config: TrainConfig) -> None:
        freeze(model, config.freeze)
        self.model, self.config = model, config
        self.damaged: list[str] = []
        self._begin(Progress())

    def _begin(self, progress: Progress) -> None:
        self.progress = progress
        self.optimisers = Optimisers(self.model, self.config.optimiser)
        decay = self.config.ema
        self.average = MovingAverage(decay, weights_of(self.model)) if decay else None

    @property
    def useful(self) -> Weights | None:
        """Weights better than the model's own, where there are such."""
        return None if self.average is None else self.average.weights

    def save(self, folder: Path) -> None:
        """A checkpoint; then forget those that are neither new nor among the best."""
        groups: dict[str, Mapping[str, Tensor]] = {
            "model": weights_of(self.model),
            "optimiser": self.optimisers.tensors(),
        }
        if self.average is not None:
            groups["average"] = self.average.weights
        write_checkpoint(folder, self.progress, groups, sharded=is_sharded(self.model))
        tidy(folder, self.progress)

    def save_progress(self, folder: Path) -> None:
        """Into the checkpoint of this step, which is there; then forget as `save` does."""
        rewrite_progress(folder, self.progress)
        tidy(folder, self.progress)

    def load(self, folder: Path) -> bool:
        """Go on from the newest whole checkpoint; False when there is none yet."""
        found = find_checkpoint(folder) if processes.is_first() else None
        name = processes.broadcast(found.home.name if found else "")
        if not name:
            return False
        home = folder / name
        self.damaged = found.damaged if found else []
        progress = found.progress if found else read_progress(home / "state.json")[0]
        progress.best, lost = whole_best(folder, progress)
        if not self.damaged:  # else a later one had replaced it, and will again
            self.damaged = lost
        put_weights(self.model, read_group(home, "model"), str(home))
        self.optimisers.put(read_group(home, "optimiser"))
        if self.average is not None:
            self.average.put(read_group(home, "average"))
        self.progress = progress
        tidy(folder, progress)
        return True

    def step_back(self, folder: Path, beginning: Mapping[str, Tensor]) -> None:
        """Back to the newest checkpoint, or to the beginning, and from there at half the rate.

        The decision is written down, so that a resumed run repeats it.
        """
        halvings, micro_batches = self.progress.halvings + 1, self.progress.micro_batches
        if self.load(folder):
            self.progress.halvings, self.progress.micro_batches = halvings, micro_batches
            rewrite_progress(folder, self.progress)
        else:
            put_weights(self.model, beginning, "the weights at the beginning")
            self._begin(Progress(halvings=halvings, micro_batches=micro_batches))
            self.save(folder)


def freeze(model: nn.Module, starts: tuple[str, ...]) -> None:
    """Let the parameters whose names begin so learn nothing."""
    named = list(model.named_parameters(remove_duplicate=False))  # shared ones by all their names
    for start in starts:
        found = [p for name, p in named if (name + ".").startswith(start + ".")]
        if not found:
            parts = sorted({name.split(".")[0] for name, _ in named})
            raise GlassformerError(
                f"train.freeze: no parameter begins with {start!r}; the parts are "
                f"{', '.join(parts)}"
            )
        for parameter in found:
            parameter.requires_grad_(False)
    if not any(p.requires_grad for p in model.parameters()):
        raise GlassformerError(
            "train.freeze leaves nothing to learn; freeze fewer parts, such as train.freeze=encoder"
        )
