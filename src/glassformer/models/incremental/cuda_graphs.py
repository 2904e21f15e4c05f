"""A step recorded once as a CUDA graph and replayed: no time goes into launching its kernels."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor

Step = Callable[[Int[Tensor, "B W"]], Float[Tensor, "B W V"]]


class CapturedStep:
    """Calls a step of fixed shapes and addresses: the first time as it is, then as a graph.

    It must be the same step every time, and change in place all that it changes. What it returns is
    overwritten by the next call. Under autocast, a graph reads the weights as they were converted
    for it; it must not outlive the autocast that it was captured in.
    """

    def __init__(self) -> None:
        self._graph: torch.cuda.CUDAGraph | None = None
        self._tokens: Int[Tensor, "B W"] | None = None
        self._scores: Float[Tensor, "B W V"] | None = None

    def __call__(self, step: Step, tokens: Int[Tensor, "B W"]) -> Float[Tensor, "B W V"]:
        if self._tokens is None:
            self._tokens = tokens.clone()
            with stream_of_its_own():  # libraries become ready for the capture
                return step(self._tokens)
        self._tokens.copy_(tokens)
        if self._graph is None or self._scores is None:
            self._graph = torch.cuda.CUDAGraph()
            with stream_of_its_own(), recording(self._graph):
                self._scores = step(self._tokens)
        self._graph.replay()
        return self._scores


def graph_on(device: torch.device, *, fixed: bool) -> CapturedStep | None:
    """Room for a graph where steps have fixed shapes and addresses, on CUDA."""
    return CapturedStep() if fixed and device.type == "cuda" else None


def stepped(
    step: Step, tokens: Int[Tensor, "B W"], graph: CapturedStep | None
) -> Float[Tensor, "B W V"]:
    """The scores of a step, by its graph where there is one."""
    return step(tokens) if graph is None else graph(step, tokens)


@contextmanager
def stream_of_its_own() -> Iterator[None]:
    """What happens inside begins after all before it and ends before all after it."""
    side, usual = torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_stream(usual)
    with torch.cuda.stream(side):
        yield
    usual.wait_stream(side)


@contextmanager
def recording(graph: torch.cuda.CUDAGraph) -> Iterator[None]:
    """What is launched inside is recorded, not done; other threads may go on using the GPU.

    `torch.cuda.graph` would wait for the GPU and give all spare memory back every time.
    """
    graph.capture_begin(capture_error_mode="thread_local")
    try:
        yield
    finally:
        graph.capture_end()
