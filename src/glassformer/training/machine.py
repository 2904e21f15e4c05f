"""The machine: where a model runs, how exactly, and on how many threads."""

import contextlib
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch

from glassformer import processes
from glassformer.config import MachineConfig
from glassformer.errors import GlassformerError


@dataclass(frozen=True, slots=True)
class Machine:
    """A device, the precision of matrix products on it, and whether models are compiled."""

    device: torch.device
    precision: torch.dtype
    compile: bool

    def autocast(self) -> AbstractContextManager[object]:
        """Where matrix products run in this precision; weights and sums stay in fp32."""
        if self.precision == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self.precision)

    @property
    def described(self) -> str:
        """In words: "cpu, fp32, 2 threads"."""
        kind = {torch.float32: "fp32", torch.bfloat16: "bf16"}[self.precision]
        if processes.count() > 1:
            kind += f", {processes.count()} processes"
        if self.device.type == "cuda":
            return f"{torch.cuda.get_device_name(self.device)}, {kind}"
        return f"{self.device}, {kind}, threads {torch.get_num_threads()}"


def choose_machine(config: MachineConfig) -> Machine:
    """The machine the settings ask for, made ready."""
    device = torch.device(_device(config.device))
    if device.type == "cuda" and processes.is_launched():
        device = torch.device("cuda", processes.place_here())
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    if config.deterministic:
        # cuBLAS reads this when it is first used.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    precision = _precision(config.precision, device)
    return Machine(device, precision, config.compile)


def _device(asked: str) -> str:
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if asked == "auto":
        return "cuda" if there["cuda"] else "mps" if there["mps"] else "cpu"
    if not there[asked]:
        found = ", ".join(name for name, is_there in there.items() if is_there)
        raise GlassformerError(
            f"--device {asked}: this machine has no such device, only {found}; use --device auto"
        )
    return asked


def _precision(asked: str, device: torch.device) -> torch.dtype:
    if asked == "auto":
        pays = {
            "cuda": lambda: torch.cuda.is_bf16_supported(including_emulation=False),
            "cpu": torch.cpu._is_amx_tile_supported,  # measured: docs/log.md
        }.get(device.type, bool)
        return torch.bfloat16 if pays() else torch.float32
    return {"fp32": torch.float32, "bf16": torch.bfloat16}[asked]
