"""A step recorded once as a CUDA graph and replayed: no time goes into launching its kernels."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

Step = Callable[[Int[Tensor, "B W"]], Float[Tensor, "B W V"]]


def graph_on(device: torch.device, *, fixed: bool) -> "CapturedStep | None":
    """Room for a graph where steps have fixed shapes and addresses, on CUDA."""
    return CapturedStep() if fixed and device.type == "cuda" else None


class CapturedStep:
    """Calls a step of fixed shapes and addresses: the first time as it is, then as a graph.

    It must be the same step every time, and change in place all that it changes. What it returns is
    overwritten by the next call.
    """

    def __init__(self) -> None:
        self._graph: torch.cuda.CUDAGraph | None = None
        self._tokens: Int[Tensor, "B W"] | None = None
        self._scores: Float[Tensor, "B W V"] | None = None

    def __call__(self, step: Step, tokens: Int[Tensor, "B W"]) -> Float[Tensor, "B W V"]:
        if self._tokens is None:
            self._tokens = tokens.clone()
            return _warmed_up(step, self._tokens)
        self._tokens.copy_(tokens)
        if self._graph is None or self._scores is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._scores = step(self._tokens)
        self._graph.replay()
        return self._scores


def _warmed_up(step: Step, tokens: Int[Tensor, "B W"]) -> Float[Tensor, "B W V"]:
    """The first step, on a stream of its own, so that libraries are ready for the capture."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        scores = step(tokens)
    torch.cuda.current_stream().wait_stream(side)
    return scores
