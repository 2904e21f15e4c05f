"""Training events as JSON Lines, and for TensorBoard if it is installed."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from glassformer.files import to_json, write_text
from glassformer.training.setup import Event, Step, Trouble, Validation

LARGEST = 1e100  # number shown; a damaged file may hold any


class Log:
    """metrics.jsonl, from this step on; later events of an interrupted run are dropped.

    Args:
        unvalidated: Whether the validation of this step is still to come, and is dropped, too.
    """

    def __init__(self, metrics: Path, board: Path, step: int, *, unvalidated: bool = False) -> None:
        self.metrics = metrics
        self.forget_after(step, unvalidated=unvalidated)
        self.board = open_board(board, step)

    def forget_after(self, step: int, *, unvalidated: bool = False) -> None:
        """Drop later events."""
        kept = [
            line
            for line in read(self.metrics)
            if line["step"] <= step
            and not (unvalidated and line["step"] == step and "scores" in line)
        ]
        write_text("".join(to_json(line) + "\n" for line in kept), self.metrics)

    def write(self, event: Event) -> None:
        """Add an event; after trouble, training may have gone back to an earlier step."""
        line = asdict(event)
        if isinstance(event, Step):
            name = line.pop("loss_name")
            line = {name if key == "loss" else key: value for key, value in line.items()}
        if isinstance(event, Trouble):
            self.forget_after(event.step)
        with self.metrics.open("a", encoding="utf-8", errors="replace") as file:
            file.write(to_json(line) + "\n")
        if self.board is not None and isinstance(event, Step | Validation):
            numbers = {k: v for k, v in line.items() if k != "step" and v is not None}
            scores = numbers if isinstance(event, Step) else event.scores
            group = "train" if isinstance(event, Step) else "valid"
            for name, value in scores.items():
                self.board.add_scalar(f"{group}/{name}", value, event.step)

    def close(self) -> None:
        """Flush TensorBoard's buffer."""
        if self.board is not None:
            self.board.close()


def read(metrics: Path, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The events of a metrics file; anything else, such as a half-written line, is skipped.

    Args:
        most: Bytes that are read, from the end.
    """
    if not metrics.exists():
        return
    with metrics.open("rb") as file:
        if most is not None:
            file.seek(max(0, metrics.stat().st_size - most))
        text = file.read().decode("utf-8", "replace")
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            found = json.loads(line)
            step = found.get("step") if isinstance(found, dict) else None
            if isinstance(step, int) and is_finite(step):
                yield found


def is_finite(value: object) -> bool:
    """Whether a chart can show this number."""
    return isinstance(value, int | float) and abs(value) <= LARGEST


def curves(metrics: Path, most: int | None = None) -> dict[str, list[tuple[float, float]]]:
    """The training loss or objective and every validation score by step, keyed by name."""
    found: dict[str, list[tuple[float, float]]] = {}
    for line in read(metrics, most):
        numbers: dict[str, Any] = {
            f"training {kind}": line.get(kind) for kind in ("loss", "objective")
        }
        if isinstance(scores := line.get("scores"), dict):
            numbers = {f"validation {name}": value for name, value in scores.items()}
        for name, value in numbers.items():
            if is_finite(value):
                found.setdefault(name, []).append((float(line["step"]), float(value)))
    return found


def troubles(metrics: Path, most: int | None = None) -> list[str]:
    """What went wrong during training, and what was done about it."""
    found = (line for line in read(metrics, most) if "what" in line)
    return [f"Step {line['step']:,}: {line['what']}." for line in found]


def open_board(folder: Path, step: int) -> Any:
    """A writer of TensorBoard's files, or None where it is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=step + 1)
