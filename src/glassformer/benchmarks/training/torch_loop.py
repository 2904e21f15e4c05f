"""Their side: a plain training loop in torch, with all batches on the device beforehand."""

from collections.abc import Callable, Sequence
from itertools import cycle

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from glassformer.benchmarks.training.padding import PaddedBatch
from glassformer.benchmarks.training.product import STEPS
from glassformer.benchmarks.training.torch_models import compile_parts
from glassformer.training.setup import TrainSetup


class TorchLoop:
    """A model that returns its loss, compiled on a GPU, and its optimiser.

    Args:
        setup: As for ours: precision, clipping, an average of the weights.
    """

    def __init__(
        self,
        model: nn.Module,
        setup: TrainSetup,
        *,
        optimiser: Callable[[nn.Module], Optimizer] | None = None,
    ) -> None:
        self.machine, self.clip = setup.machine, setup.train.clip
        model.to(self.machine.device).train()
        self.weights = list(model.parameters())
        self.optimiser = adamw(model, setup) if optimiser is None else optimiser(model)
        self.ema = setup.train.ema
        self.average = [weight.detach().clone() for weight in self.weights if self.ema]
        self.model = model
        if self.machine.device.type == "cuda":
            compile_parts(model)

    def step(self, inputs: Sequence[Tensor]) -> Tensor:
        """One full step; returns the loss."""
        with self.machine.autocast():
            loss: Tensor = self.model(*inputs)
        loss.backward()
        nn.utils.clip_grad_norm_(self.weights, self.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        if self.average:
            torch._foreach_lerp_(self.average, [x.detach() for x in self.weights], 1 - self.ema)
        return loss.detach()


def adamw(model: nn.Module, setup: TrainSetup) -> Optimizer:
    """The optimiser that ours uses."""
    config = setup.train.optimiser
    decay, betas = config.weight_decay, (config.beta1, config.beta2)
    return AdamW(model.parameters(), config.lr, betas, weight_decay=decay, fused=True)


class TorchSide:
    """The loop over these batches, again and again."""

    def __init__(self, loop: TorchLoop, batches: Sequence[PaddedBatch]) -> None:
        self.loop, self.batches = loop, cycle(batches)
        self.remarks: list[str] = []

    def advance(self) -> int:
        """As many steps as ours makes between two reports; then the loss is read."""
        tokens = 0
        for _ in range(STEPS):
            batch = next(self.batches)
            loss = self.loop.step(batch.inputs)
            tokens += batch.tokens
        float(loss)
        return tokens

    def close(self) -> None:
        """Nothing runs between two turns."""
