"""A step captured once as a CUDA graph and replayed: no time is spent launching its kernels."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

Step = Callable[[Int[Tensor, "B W"]], Float[Tensor, "B W V"]]


class CapturedStep:
    """Calls a step of fixed shapes and addresses: directly the first time, then as a graph.

    It must be the same step every time, and make all changes in place. Its result is overwritten by
    the next call. Under autocast, a graph reads the weights as they were converted at capture; it
    must not outlive that autocast.
    """

    def __init__(self) -> None:
        self._graph: torch.cuda.CUDAGraph | None = None
        self._tokens: Int[Tensor, "B W"] | None = None
        self._scores: Float[Tensor, "B W V"] | None = None

    def __call__(self, step: Step, tokens: Int[Tensor, "B W"]) -> Float[Tensor, "B W V"]:
        if self._tokens is None:
            self._tokens = tokens.clone()
            with side_stream():  # libraries initialise before the capture
                return step(self._tokens)
        self._tokens.copy_(tokens)
        if self._graph is None or self._scores is None:
            self._graph = torch.cuda.CUDAGraph()
            with side_stream(), recording(self._graph):
                self._scores = step(self._tokens)
        self._graph.replay()
        return self._scores


def graph_on(device: torch.device, *, fixed: bool) -> CapturedStep | None:
    """A step to capture, if shapes and addresses are fixed and the device is CUDA."""
    return CapturedStep() if fixed and device.type == "cuda" else None


def stepped(
    step: Step, tokens: Int[Tensor, "B W"], graph: CapturedStep | None
) -> Float[Tensor, "B W V"]:
    """The scores of a step, by its graph if there is one."""
    return step(tokens) if graph is None else graph(step, tokens)


@contextmanager
def side_stream() -> Iterator[None]:
    """Run on a separate stream, synchronised with the current one before and after."""
    side, usual = torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_stream(usual)
    with torch.cuda.stream(side):
        yield
    usual.wait_stream(side)


@contextmanager
def recording(graph: torch.cuda.CUDAGraph, pool: Any = None) -> Iterator[None]:
    """Capture kernels instead of running them; other threads may keep using the GPU.

    `torch.cuda.graph` would synchronise and release all cached memory every time.
    """
    graph.capture_begin(pool=pool, capture_error_mode="thread_local")
    try:
        yield
    finally:
        graph.capture_end()
