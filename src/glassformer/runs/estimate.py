"""The estimated cost of a training run, and advice where it does not fit."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from glassformer import notebook
from glassformer.runs.display import clock, in_bytes
from glassformer.terminal import aligned
from glassformer.training.cost import Part

FITS = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """Training steps, tokens and FLOPs.

    Attributes:
        flops: Of one step, forward and backward.
        speed: FLOPs per second during steps; None if none was measured.
    """

    steps: int
    epochs: float
    tokens_a_step: float
    tokens_an_epoch: int
    flops: float
    speed: float | None

    @property
    def flops_in_all(self) -> float:
        """FLOPs of all steps, without validation."""
        return self.flops * self.steps

    def rows(self) -> list[tuple[str, str, str]]:
        """Steps, tokens and FLOPs, each with its breakdown."""
        speed = "" if self.speed is None else f", {self.speed / 1e9:,.1f} GFLOP/s"
        tokens = f"{self.tokens_a_step:,.0f} per step, {self.tokens_an_epoch:,} per epoch"
        flops = f"{self.flops / 1e9:,.2f} GFLOP per step{speed}"
        return [
            ("steps", f"{self.steps:,}", f"{self.epochs:,.1f} epochs"),
            ("tokens", f"{self.steps * self.tokens_a_step:,.0f}", tokens),
            ("compute", f"{self.flops_in_all / 1e12:,.2f} TFLOP", flops),
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes at the peak of training.

    Attributes:
        before: What the process holds without the model: program, libraries, data; 0 on a GPU.
        activations: What a step needs on top, including the allocator's reserve.
        measured: Whether steps were run; otherwise activations are extrapolated from a few rows.
        room: Memory available to this process; None if unknown.
    """

    before: int
    weights: int
    gradients: int
    optimiser: int
    averages: int
    activations: int
    measured: bool
    room: int | None

    @property
    def total(self) -> int:
        """The sum."""
        state = self.weights + self.gradients + self.optimiser + self.averages
        return self.before + state + self.activations

    @property
    def fits(self) -> bool | None:
        """Whether the device has enough memory; None if unknown."""
        return None if self.room is None else self.total <= self.room

    def rows(self) -> list[tuple[str, str, str]]:
        """What is needed, with its breakdown, and what there is."""
        kinds = ("before", "weights", "gradients", "optimiser", "averages", "activations")
        held = [
            f"{name} {in_bytes(count)}"
            for name, count in ((name, getattr(self, name)) for name in kinds)
            if count or name == "activations"
        ]
        room = "unknown" if self.room is None else in_bytes(self.room)
        return [
            ("memory", in_bytes(self.total), ", ".join(held)),
            ("available", room, f"enough: {FITS[self.fits]}"),
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    """Bytes of the run folder at its largest, and free disk space."""

    total: int
    room: int

    @property
    def fits(self) -> bool:
        """Whether there is enough disk space."""
        return self.total <= self.room


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """The estimated cost of a training run.

    Attributes:
        parts: Parameters by module of the model.
        work, disk: None for a model too large to build.
        seconds: Time by activity; empty if no step could be measured.
        notes: What the numbers leave out, and what to change where it does not fit.
    """

    job: str
    machine: str
    parts: Mapping[str, Part]
    work: Work | None
    memory: Memory
    disk: Disk | None
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> int:
        """The total number of parameters."""
        return sum(part.trainable + part.frozen for part in self.parts.values())

    @property
    def time(self) -> float | None:
        """Total seconds; None if not measured."""
        return sum(self.seconds.values()) if self.seconds else None

    @property
    def fits(self) -> bool:
        """Whether memory and disk suffice, as far as known."""
        return self.memory.fits is not False and (self.disk is None or self.disk.fits)

    @property
    def title(self) -> str:
        """The job and the machine."""
        return f"{self.job} on {self.machine}"

    def rows(self) -> list[tuple[str, str, str]]:
        """Each resource, its total, and its breakdown."""
        modules = [
            f"{name} {part.trainable + part.frozen:,}{frozen_share(part)}"
            for name, part in self.parts.items()
        ]
        disk = self.disk
        room = (
            [] if disk is None else [("disk", in_bytes(disk.total), f"{in_bytes(disk.room)} free")]
        )
        spent = [f"{name} {clock(seconds)}" for name, seconds in self.seconds.items()]
        time = "not measured" if self.time is None else clock(self.time)
        return [
            ("parameters", f"{self.parameters:,}", ", ".join(modules)),
            *([] if self.work is None else self.work.rows()),
            *self.memory.rows(),
            *room,
            ("time", time, ", ".join(spent)),
        ]

    def __repr__(self) -> str:
        return "\n".join([self.title, aligned(self.rows()), *self.notes])

    def _repr_html_(self) -> str:
        return notebook.table(self.title, self.rows()) + notebook.paragraphs(self.notes)

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        values = asdict(self)
        values["parameters"], values["fits"] = self.parameters, self.fits
        if self.work is not None:
            values["work"]["flops_in_all"] = self.work.flops_in_all
        values["memory"]["total"] = self.memory.total
        values["seconds"] = dict(self.seconds) | {"in all": self.time}
        return values


def frozen_share(part: Part) -> str:
    """How many of a module's parameters are frozen, in brackets; empty for none."""
    if not part.frozen:
        return ""
    return f" ({f'{part.frozen:,}' if part.trainable else 'all'} frozen)"


def advice(memory: Memory, disk: Disk, batch_tokens: int, accumulate: int) -> list[str]:
    """What to change where it does not fit."""
    notes = []
    if memory.fits is False and memory.room is not None:
        over = memory.total - memory.room
        without = memory.total - memory.activations
        if over < memory.activations and without < memory.room:
            share = (memory.room - without) / memory.activations
            parts = max(2, round(1 / share + 0.5))
            notes.append(
                f"Out of memory: needs {in_bytes(memory.total)}, {in_bytes(memory.room)} are "
                f"available. For the same result with smaller batches: --set "
                f"data.batch_tokens={max(1, batch_tokens // parts)} --set "
                f"train.accumulate={accumulate * parts}"
            )
        else:
            notes.append(
                f"Out of memory, even with smaller batches: needs {in_bytes(memory.total)}, "
                f"{in_bytes(memory.room)} are available; use a smaller --size."
            )
    if not disk.fits:
        notes.append(
            f"Not enough disk space: needs {in_bytes(disk.total)}, {in_bytes(disk.room)} are free; "
            f"free some, or choose another folder with --run."
        )
    return notes
