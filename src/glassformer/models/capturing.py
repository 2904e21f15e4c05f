"""A step recorded once as a CUDA graph and replayed: no time goes into launching its kernels."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

Step = Callable[[Int[Tensor, "B W"]], Float[Tensor, "B W V"]]


class CapturedStep:
    """Calls a step of fixed shapes and addresses: the first time as it is, then as a graph.

    All that the step changes must be changed in place. What it returns is overwritten by the next
    call.
    """

    def __init__(self, step: Step) -> None:
        self.step = step
        self._graph: torch.cuda.CUDAGraph | None = None
        self._tokens: Int[Tensor, "B W"] | None = None
        self._scores: Float[Tensor, "B W V"] | None = None

    def __call__(self, tokens: Int[Tensor, "B W"]) -> Float[Tensor, "B W V"]:
        if self._tokens is None:
            self._tokens = tokens.clone()
            return self._warm_up(self._tokens)
        self._tokens.copy_(tokens)
        if self._graph is None or self._scores is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._scores = self.step(self._tokens)
        self._graph.replay()
        return self._scores

    def _warm_up(self, tokens: Int[Tensor, "B W"]) -> Float[Tensor, "B W V"]:
        """The first step, on a stream of its own, so that libraries are ready for the capture."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            scores = self.step(tokens)
        torch.cuda.current_stream().wait_stream(side)
        return scores
