"""The machine: device, precision, and number of threads."""

import contextlib
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import torch

from glassformer import processes
from glassformer.config import MachineConfig
from glassformer.errors import GlassformerError
from glassformer.training.bf16_trial import find_verdict, known_verdict, verdict_file
from glassformer.training.memory import keep_heap


@dataclass(frozen=True, slots=True)
class Machine:
    """A device, the precision of matrix products on it, and whether steps are compiled.

    Attributes:
        compile: None compiles if a run is long enough for it to pay.
        deterministic: Whether results must be reproducible bit for bit.
    """

    device: torch.device
    precision: torch.dtype
    compile: bool | None = None
    deterministic: bool = False

    def autocast(self) -> AbstractContextManager[object]:
        """A context in which matrix products run in this precision; weights stay in fp32."""
        if self.precision == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self.precision)

    @property
    def described(self) -> str:
        """A description: "cpu, fp32, threads 2"."""
        kind = {torch.float32: "fp32", torch.bfloat16: "bf16"}[self.precision]
        if processes.world_size() > 1:
            kind += f", {processes.world_size()} processes"
        if self.device.type == "cuda":
            return f"{torch.cuda.get_device_name(self.device)}, {kind}"
        return f"{self.device}, {kind}, threads {torch.get_num_threads()}"


def choose_machine(config: MachineConfig, *, trial: bool = False) -> Machine:
    """The machine that the settings select; also sets threads and determinism in PyTorch.

    Args:
        trial: Whether to try bf16 on a CPU without a known result, which takes seconds; otherwise
            such a CPU computes in fp32 unless the settings request bf16.
    """
    device = torch.device(_device(config.device))
    if device.type == "cuda" and processes.is_launched():
        device = torch.device("cuda", processes.local_rank())
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    if config.deterministic:
        # cuBLAS reads this at its first use.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    precision = _precision(config.precision, device, trial)
    wanted = None if isinstance(config.compile, str) else config.compile
    return Machine(device, precision, wanted, config.deterministic)


def training_machine(config: MachineConfig) -> Machine:
    """The machine for training: bf16 is tried if necessary; all processes use one precision."""
    machine = choose_machine(config, trial=True)
    keep_heap(machine.device)
    if processes.any_of(machine.precision == torch.float32):
        return replace(machine, precision=torch.float32)
    return machine


def _device(requested: str) -> str:
    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if requested == "auto":
        return "cuda" if available["cuda"] else "mps" if available["mps"] else "cpu"
    if not available[requested]:
        found = ", ".join(name for name, present in available.items() if present)
        raise GlassformerError(
            f"--device {requested}: not available on this machine, only {found}; use --device auto"
        )
    return requested


def _precision(requested: str, device: torch.device, trial: bool) -> torch.dtype:
    if requested == "bf16":
        _refuse_failing_bf16(device)
        return torch.bfloat16
    return torch.bfloat16 if requested == "auto" and _bf16_pays(device, trial) else torch.float32


def _bf16_pays(device: torch.device, trial: bool) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # Without AMX tiles, which make bf16 fast, a CPU is not tried: docs/dev/log.md.
    if device.type != "cpu" or not torch.cpu._is_amx_tile_supported():
        return False
    verdict = find_verdict() if trial else known_verdict()
    return verdict is not None and verdict.works and verdict.faster


def _refuse_failing_bf16(device: torch.device) -> None:
    if device.type == "cpu" and not (verdict := find_verdict()).works:
        raise GlassformerError(
            f"machine.precision=bf16: a trial of bf16 on this CPU failed, {verdict.finding}; use "
            f"machine.precision=fp32, or delete {verdict_file()} to repeat the trial"
        )
