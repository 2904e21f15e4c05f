"""The measurements and the machine, as tables and as plain values."""

import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from rich.box import SIMPLE_HEAD
from rich.table import Table

from glassformer.benchmarks import attention, complexity, features, layers, translation
from glassformer.benchmarks.complexity import LAYERS, exponents
from glassformer.benchmarks.layers import Growth
from glassformer.benchmarks.pairs import Result, batch_of, dtype_of

Measured = TypeVar("Measured")

TITLES = {
    "ladder": (
        f"The ladder: kernels against PyTorch's function, our module against others; "
        f"{attention.HEADS} heads of {attention.WIDTH}"
    ),
    "complexity": (
        f"Cost against length, in training; dim {complexity.DIM}, {complexity.HEADS} heads"
    ),
    "layers": f"Layers against their peers, in training; {layers.BATCH} rows",
    "packing": "Rows of different lengths through our encoder, in training",
    "even": f"Translation, same weights; {translation.ROWS} rows of equal output length",
    "features": f"Log-mel features of {features.RATE // 1000} kHz; lengths are seconds of sound",
    "ragged": f"Translation, same weights; {translation.ROWS} rows with outputs as long as inputs",
}


@dataclass(kw_only=True)
class AnyReport(ABC, Generic[Measured]):
    """The results of one benchmark run.

    Attributes:
        machine: The machine and settings.
        sections: The results by name.
        notes: What was skipped, and why.
    """

    legend: ClassVar[str]

    machine: dict[str, Any]
    notes: list[str]
    sections: dict[str, list[Measured]] = field(default_factory=dict)

    def drop_empty(self) -> bool:
        """Drop the sections without results; whether any are left."""
        self.sections = {name: found for name, found in self.sections.items() if found}
        return bool(self.sections)

    @abstractmethod
    def as_values(self) -> dict[str, Any]:
        """Everything as plain values, in seconds and bytes."""

    @abstractmethod
    def tables(self) -> list[Table]:
        """Everything, for people to read."""


@dataclass(kw_only=True)
class Report(AnyReport[Result]):
    """Measured pairs, and the growth of memory if requested."""

    legend = "Ratio below 1: ours is faster. Low and high are the 95 % interval."

    growths: list[Growth] = field(default_factory=list)

    def as_values(self) -> dict[str, Any]:
        sections = {name: [asdict(r) for r in results] for name, results in self.sections.items()}
        return {
            "machine": self.machine,
            "notes": self.notes,
            **sections,
            "exponents": exponents(self.sections.get("complexity", [])),
            "growth": [asdict(growth) for growth in self.growths],
        }

    def tables(self) -> list[Table]:
        tables = [pair_table(TITLES[name], results) for name, results in self.sections.items()]
        if "complexity" in self.sections:
            tables.append(exponent_table(self.sections["complexity"]))
        if self.growths:
            tables.append(growth_table(self.growths))
        return tables


def describe_machine(device: torch.device, rounds: int) -> dict[str, Any]:
    """The facts needed to interpret the numbers."""
    on_cuda = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if on_cuda else processor(),
        "type": device.type,
        "threads": torch.get_num_threads(),
        "dtype": str(dtype_of(device)).removeprefix("torch."),
        "batch": batch_of(device),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "rounds": rounds,
    }


def busy() -> list[str]:
    """A warning if the machine is busy, which medians only partly correct."""
    if not hasattr(os, "getloadavg"):
        return []
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load < processors / 2:
        return []
    return [
        f"the machine was busy (load {load:.1f} on {processors} processors); "
        f"measure again when it is idle"
    ]


def processor() -> str:
    """The name of the processor, if known."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def pair_table(title: str, results: Sequence[Result]) -> Table:
    """One row per pair; low and high are the 95 % interval of the ratio, below 1 ours is faster."""
    numbers = ("ms", "their ms", "ratio", "low", "high", "MB", "their MB")
    table = empty_table(title, ("case", "ours", "against"), ("length", *numbers))
    for this, following in zip(results, [*results[1:], None], strict=True):
        table.add_row(
            this.case,
            this.ours,
            this.theirs,
            str(this.length),
            milliseconds(this.time.ours),
            milliseconds(this.time.theirs),
            *map(times, (this.time.ratio, this.time.low, this.time.high)),
            megabytes(this.memory),
            megabytes(this.their_memory),
            end_section=following is None or following.length != this.length,
        )
    return table


def exponent_table(results: Sequence[Result]) -> Table:
    """The published complexity beside the measured growth."""
    table = empty_table(
        "Growth over the longest lengths: time and memory as powers of n",
        ("layer", "operations", "sequential steps", "longest path"),
        ("time grows as", "memory grows as"),
    )
    for name, measured in exponents(results).items():
        layer = LAYERS[name]
        table.add_row(
            name,
            layer.operations,
            layer.steps,
            layer.path,
            power(measured["time"]),
            power(measured["memory"]),
        )
    return table


def growth_table(growths: Sequence[Growth]) -> Table:
    """One row per mask; n¹ is linear, and `plain`, which materialises weights, is the control."""
    lengths = map(str, growths[0].lengths)
    title = "Peak memory of our attention in training, MB by length"
    table = empty_table(title, ("mask", "kernel"), (*lengths, "grows as"))
    for one in growths:
        table.add_row(one.case, one.kernel, *map(megabytes, one.memory), power(one.exponent))
    return table


def empty_table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    """Columns of words, then columns of numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for name in words:
        table.add_column(name, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def milliseconds(seconds: float) -> str:
    """Milliseconds with three significant digits or so."""
    value = seconds * 1000
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def times(ratio: float) -> str:
    """A ratio."""
    return f"{ratio:.2f}" if ratio < 100 else f"{ratio:.0f}"


def megabytes(amount: int | None) -> str:
    """Megabytes of a million bytes each."""
    return "-" if amount is None else f"{amount / 1e6:.1f}"


def power(exponent: float | None) -> str:
    """A power of n."""
    return "-" if exponent is None else f"n^{exponent:.2f}"
