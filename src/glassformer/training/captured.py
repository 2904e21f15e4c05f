"""Forward and backward captured as CUDA graphs.

A small model on a GPU spends most of a step launching kernels. Where all batches are padded to one
shape, the kernels are captured once and replayed with a single launch.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from glassformer.core.cuda_graphs import recording, side_stream
from glassformer.tasks.task import Loss, SomeBatch, Task
from glassformer.training.compiled import compiled_parts
from glassformer.training.loader import Shape, TrainingBatch
from glassformer.training.objective import reseeding
from glassformer.training.setup import TrainSetup
from glassformer.training.step import EagerStep

Compiled = Literal["blocks", "stacks"]
WARM_UPS = 3  # runs before the capture, in which libraries and compilers initialise
TIMED = 5  # replays timed to measure a step


class CapturedStep(EagerStep):
    """A step captured as CUDA graphs for batches of one shape; other batches run eagerly.

    Args:
        first: A batch of this shape.
        compiled: What is compiled before the capture.
    """

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        setup: TrainSetup,
        *,
        shape: Shape,
        first: SomeBatch,
        compiled: Compiled | None = None,
    ) -> None:
        super().__init__(model, task, setup)
        self.shape = shape
        self.batch = tree_map_only(Tensor, Tensor.clone, first.to(setup.machine.device))
        self.graphs: list[tuple[int, torch.cuda.CUDAGraph]] = []
        model.train()
        with preserving_buffers(model), side_stream(), ExitStack() as stack:
            if compiled is not None:
                stack.enter_context(compiled_parts(model, whole=compiled == "stacks"))
            for _ in range(WARM_UPS):
                self.run(self.batch, reseeding(0))
                model.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()  # the graphs' pool cannot reuse what the warm-up cached
            self.loss = self._capture()
        trainable = [(p, p.grad) for p in model.parameters() if p.grad is not None]
        self.trainable, self.gradients = [p for p, _ in trainable], [grad for _, grad in trainable]
        model.zero_grad(set_to_none=True)

    def _capture(self) -> Loss:
        """Capture one run, starting a new graph at every reseed."""
        pool = torch.cuda.graph_pool_handle()
        with ExitStack() as stack:

            def reseed(offset: int) -> None:
                stack.close()  # ends the previous graph
                torch.manual_seed(offset)
                self.graphs.append((offset, torch.cuda.CUDAGraph()))
                stack.enter_context(recording(self.graphs[-1][1], pool))

            return self.run(self.batch, reseed)

    def __call__(self, batch: TrainingBatch, seed: int) -> Loss:
        if not batch.fixed_shape:
            return super().__call__(batch, seed)
        earlier = [p.grad for p in self.trainable if p.grad is not None]  # accumulated so far
        if earlier and earlier[0] is self.gradients[0]:
            earlier = [gradient.clone() for gradient in self.gradients]
        self.replay(batch.batch, seed)
        if earlier:
            torch._foreach_add_(self.gradients, earlier)
        for parameter, gradient in zip(self.trainable, self.gradients, strict=True):
            parameter.grad = gradient
        return self.loss.map(Tensor.clone)

    def replay(self, batch: SomeBatch, seed: int) -> None:
        """Replay the graphs on a batch of their shape."""
        for static, new in zip(tree_leaves(self.batch), tree_leaves(batch), strict=True):
            if isinstance(static, Tensor):
                static.copy_(new, non_blocking=True)
        for offset, graph in self.graphs:
            torch.manual_seed(seed + offset)
            graph.replay()

    def seconds(self) -> float:
        """Seconds per replay."""
        with preserving_buffers(self.model):
            for timed in range(TIMED + 1):
                if timed == 1:
                    torch.cuda.synchronize()
                    started = time.perf_counter()
                self.replay(self.batch, 0)
            torch.cuda.synchronize()
        return (time.perf_counter() - started) / TIMED


@contextmanager
def preserving_buffers(model: nn.Module) -> Iterator[None]:
    """Restore the model's buffers afterwards, so that trial runs leave running statistics alone."""
    before = [buffer.clone() for buffer in model.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in zip(model.buffers(), before, strict=True):
                buffer.copy_(value)
