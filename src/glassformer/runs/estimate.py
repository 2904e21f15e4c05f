"""What a training is foreseen to take: a record, and what it comes to in words."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from glassformer.runs.display import in_bytes
from glassformer.training.cost import Part


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """How much is learned from, and how many operations that takes.

    Attributes:
        flops: Of one step, forwards and backwards.
        speed: Operations a second, while steps are taken; None where none was.
    """

    steps: int
    epochs: float
    tokens_a_step: float
    tokens_an_epoch: int
    flops: float
    speed: float | None

    @property
    def flops_in_all(self) -> float:
        """Of all steps; validations come on top."""
        return self.flops * self.steps


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes at the peak of training.

    Attributes:
        before: What the process holds without the model: program, libraries, data; 0 on a GPU.
        activations: What a step needs besides, with what the allocator keeps for itself.
        measured: Whether steps were taken; or else activations are counted on fewer rows.
        room: What the device has for this process; None where that cannot be known.
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
        """All of it."""
        state = self.weights + self.gradients + self.optimiser + self.averages
        return self.before + state + self.activations

    @property
    def fits(self) -> bool | None:
        """Whether the device has as much; None where that cannot be known."""
        return None if self.room is None else self.total <= self.room


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    """Bytes of the whole run folder at its largest, and what the disk has."""

    total: int
    room: int

    @property
    def fits(self) -> bool:
        """Whether the disk has as much."""
        return self.total <= self.room


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A training before it begins.

    Attributes:
        parts: Parameters by part of the model.
        work, disk: Not known of a model too large to be built.
        seconds: By what they are spent on; empty where no step could be measured.
        notes: What is not in the numbers, and what to change where it does not fit.
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
        """All of them."""
        return sum(part.learning + part.frozen for part in self.parts.values())

    @property
    def time(self) -> float | None:
        """Seconds in all."""
        return sum(self.seconds.values()) if self.seconds else None

    @property
    def fits(self) -> bool:
        """Whether memory and disk are enough, as far as that can be known."""
        return self.memory.fits is not False and (self.disk is None or self.disk.fits)

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        values = asdict(self)
        values["parameters"], values["fits"] = self.parameters, self.fits
        if self.work is not None:
            values["work"]["flops_in_all"] = self.work.flops_in_all
        values["memory"]["total"] = self.memory.total
        values["seconds"] = dict(self.seconds) | {"in all": self.time}
        return values


def advice(memory: Memory, disk: Disk, batch_tokens: int, accumulate: int) -> list[str]:
    """What to change where it does not fit."""
    said = []
    if memory.fits is False and memory.room is not None:
        over = memory.total - memory.room
        without = memory.total - memory.activations
        if over < memory.activations and without < memory.room:
            share = (memory.room - without) / memory.activations
            parts = max(2, round(1 / share + 0.5))
            said.append(
                f"It does not fit: {in_bytes(memory.total)} are needed, {in_bytes(memory.room)} "
                f"are there. The same with smaller batches: --set "
                f"data.batch_tokens={max(1, batch_tokens // parts)} --set "
                f"train.accumulate={accumulate * parts}"
            )
        else:
            said.append(
                f"It does not fit, however small its batches are: {in_bytes(memory.total)} are "
                f"needed, {in_bytes(memory.room)} are there; use a smaller --size."
            )
    if not disk.fits:
        said.append(
            f"The disk is too small: {in_bytes(disk.total)} are needed, {in_bytes(disk.room)} are "
            f"free; free some, or choose another place with --run."
        )
    return said
