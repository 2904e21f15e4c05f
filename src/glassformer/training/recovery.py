"""Training that does not give up at once: when it diverges it steps back and goes on slower."""

from collections.abc import Callable, Generator

from glassformer.errors import GlassformerError
from glassformer.tasks.task import Task
from glassformer.training.loop import train
from glassformer.training.progress import HALVINGS
from glassformer.training.setup import Event, TrainSetup, Trouble
from glassformer.training.state import State
from glassformer.training.trouble import DivergedError
from glassformer.training.weights import Weights


def train_with_recovery(
    state: State,
    task: Task,
    setup: TrainSetup,
    beginning: Callable[[], Weights],
    stop: Callable[[], bool] = lambda: False,
) -> Generator[Event, None, None]:
    """The loop; a loss that is no number leads back to the last checkpoint and half the rate.

    Args:
        beginning: The weights before the first step, for when there is no checkpoint yet.
    """
    while True:
        try:
            yield from train(state, task, setup, stop)
        except DivergedError as trouble:
            said = trouble.with_rows(task)
            if setup.checkpoints is None or state.progress.halvings == HALVINGS:
                tried = f", after {HALVINGS} tries at lower rates" if setup.checkpoints else ""
                lower = min(1e-3, state.progress.pace * setup.train.optimiser.lr / 3)
                raise GlassformerError(
                    f"{said}{tried}; look at these rows, or lower the learning rate: "
                    f"--set train.optimiser.lr={lower:.1g}"
                ) from None
            state.step_back(setup.checkpoints, beginning())
            yield Trouble(
                state.progress.step,
                f"{said}; went back to step {state.progress.step:,} and goes on at "
                f"{state.progress.pace:.3g} of the rate",
            )
        else:
            return
