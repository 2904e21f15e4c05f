"""Forward and backward recorded as CUDA graphs.

On a GPU a small model spends most of a step on launching kernels. Where batches are filled up to
one shape, all of them are recorded once and replayed: one launch then.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from glassformer.models.incremental.cuda_graphs import recording, side_stream
from glassformer.tasks.task import Loss, SomeBatch, Task
from glassformer.training.compiled import CompiledLosses, compiled_blocks
from glassformer.training.loader import Piece, Shape
from glassformer.training.objective import reseeding
from glassformer.training.setup import TrainSetup
from glassformer.training.step import EagerStep

WARM_UPS = 3  # runs before a recording, in which libraries and compilers get ready
TIMED = 5  # replays that tell how long a step takes


class CapturedStep(EagerStep):
    """The same as CUDA graphs, for batches of one shape; others run kernel by kernel.

    Args:
        first: A batch of this shape.
        compiled: Whether blocks and losses are compiled before they are recorded.
    """

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        setup: TrainSetup,
        *,
        shape: Shape,
        first: SomeBatch,
        compiled: bool = False,
    ) -> None:
        super().__init__(model, task, setup)
        self.shape = shape
        self.batch = tree_map_only(Tensor, Tensor.clone, first.to(setup.machine.device))
        self.graphs: list[tuple[int, torch.cuda.CUDAGraph]] = []
        model.train()
        with keeping_buffers(model), side_stream(), ExitStack() as stack:
            if compiled:
                stack.enter_context(compiled_blocks(model))
                self.losses = CompiledLosses(task)
            for _ in range(WARM_UPS):
                self.run(self.batch, reseeding(0))
                model.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()  # what the warm-up used is not to be held twice
            self.loss = self._record()
        self.losses = task
        learning = [(p, p.grad) for p in model.parameters() if p.grad is not None]
        self.learning, self.gradients = [p for p, _ in learning], [grad for _, grad in learning]
        model.zero_grad(set_to_none=True)

    def _record(self) -> Loss:
        """Record a run: a graph of its own wherever random numbers begin again."""
        pool = torch.cuda.graph_pool_handle()
        with ExitStack() as stack:

            def reseed(offset: int) -> None:
                stack.close()  # ends the graph before
                torch.manual_seed(offset)
                self.graphs.append((offset, torch.cuda.CUDAGraph()))
                stack.enter_context(recording(self.graphs[-1][1], pool))

            return self.run(self.batch, reseed)

    def __call__(self, piece: Piece, seed: int) -> Loss:
        if not piece.fixed:
            return super().__call__(piece, seed)
        earlier = [p.grad for p in self.learning if p.grad is not None]  # of this step
        if earlier and earlier[0] is self.gradients[0]:
            earlier = [gradient.clone() for gradient in self.gradients]
        self.replay(piece.batch, seed)
        if earlier:
            torch._foreach_add_(self.gradients, earlier)
        for parameter, gradient in zip(self.learning, self.gradients, strict=True):
            parameter.grad = gradient
        return Loss(self.loss.total.clone(), self.loss.count.clone())

    def replay(self, batch: SomeBatch, seed: int) -> None:
        """Run the graphs on a batch of their shape."""
        for mine, other in zip(tree_leaves(self.batch), tree_leaves(batch), strict=True):
            if isinstance(mine, Tensor):
                mine.copy_(other, non_blocking=True)
        for offset, graph in self.graphs:
            torch.manual_seed(seed + offset)
            graph.replay()

    def seconds(self) -> float:
        """How long a replay takes."""
        with keeping_buffers(self.model):
            for timed in range(TIMED + 1):
                if timed == 1:
                    torch.cuda.synchronize()
                    started = time.perf_counter()
                self.replay(self.batch, 0)
            torch.cuda.synchronize()
        return (time.perf_counter() - started) / TIMED


@contextmanager
def keeping_buffers(model: nn.Module) -> Iterator[None]:
    """Runs inside that only warm up leave no trace in running statistics."""
    before = [buffer.clone() for buffer in model.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in zip(model.buffers(), before, strict=True):
                buffer.copy_(value)
