"""A step captured once as a CUDA graph and replayed: no time is spent launching its kernels."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

Step = Callable[[Tensor], Tensor]


class CapturedStep:
    """Calls a step of fixed shapes and addresses: directly the first time, then as a graph.

    It must be the same step every time, and make all changes in place. Its result is overwritten by
    the next call, and may be its next input. Under autocast, a graph reads the weights as they were
    converted at capture; it must not outlive that autocast.
    """

    def __init__(self) -> None:
        self._graph: torch.cuda.CUDAGraph | None = None
        self._warm = False
        self._input: Tensor | None = None
        self._output: Tensor | None = None

    def __call__(self, step: Step, x: Tensor) -> Tensor:
        if not self._warm:
            self._warm = True
            with side_stream():  # libraries initialise before the capture
                return step(x)
        if self._graph is None or self._input is None or self._output is None:
            self._graph, self._input = torch.cuda.CUDAGraph(), x.contiguous()
            with side_stream(), recording(self._graph):
                self._output = step(self._input)
        elif x.data_ptr() != self._input.data_ptr():
            self._input.copy_(x)
        self._graph.replay()
        return self._output


def graph_on(device: torch.device, *, fixed: bool) -> CapturedStep | None:
    """A step to capture, if shapes and addresses are fixed and the device is CUDA."""
    return CapturedStep() if fixed and device.type == "cuda" else None


def stepped(step: Step, x: Tensor, graph: CapturedStep | None) -> Tensor:
    """The result of a step, by its graph if there is one."""
    return step(x) if graph is None else graph(step, x)


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

    `torch.cuda.graph` would synchronise and release all cached memory every time. Python collects
    no garbage meanwhile: another graph in it would be destroyed, which spoils a capture.
    """
    collects = gc.isenabled()
    gc.disable()
    graph.capture_begin(pool=pool, capture_error_mode="thread_local")
    try:
        yield
    finally:
        graph.capture_end()
        if collects:
            gc.enable()
