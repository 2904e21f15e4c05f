"""Recovery from divergence: roll back to a checkpoint and continue at a lower learning rate."""

from collections.abc import Callable, Generator

from glassformer.errors import GlassformerError
from glassformer.tasks.task import Task
from glassformer.training.diverged import DivergedError
from glassformer.training.loop import train
from glassformer.training.progress import MAX_HALVINGS
from glassformer.training.setup import Event, TrainSetup, Trouble
from glassformer.training.state import State
from glassformer.training.weights import Weights


def train_with_recovery(
    state: State,
    task: Task,
    setup: TrainSetup,
    initial_weights: Callable[[], Weights],
    stop: Callable[[], bool] = lambda: False,
) -> Generator[Event, None, None]:
    """Train; if the loss diverges, roll back to the last checkpoint and halve the learning rate.

    Args:
        initial_weights: The weights before the first step, in case there is no checkpoint yet.
    """
    while True:
        try:
            yield from train(state, task, setup, stop)
        except DivergedError as error:
            message = error.with_rows(task)
            if setup.checkpoints is None or state.progress.halvings == MAX_HALVINGS:
                tried = ""
                if setup.checkpoints:
                    tried = f", after {MAX_HALVINGS} retries at lower learning rates"
                lower = min(1e-3, state.progress.lr_scale * setup.train.optimiser.lr / 3)
                raise GlassformerError(
                    f"{message}{tried}; check these rows, or start a new run with a lower "
                    f"learning rate: --set train.optimiser.lr={lower:.1g}"
                ) from None
            state.roll_back(setup.checkpoints, initial_weights())
            yield Trouble(
                state.progress.step,
                f"{message}; went back to step {state.progress.step:,}, continuing at "
                f"{state.progress.lr_scale:.3g}x the learning rate",
            )
        else:
            return
