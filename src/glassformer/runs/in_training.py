"""A run that is still in training: how far it is, how it learns, and what it answers by now.

Nothing is written: the metrics are read as they grow, and each new checkpoint, at a reader's
request, answers for a few validation rows.
"""

import base64
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8

from glassformer.config import MachineConfig
from glassformer.data.images.reading import Picture, read_image
from glassformer.data.samples import Sample, Samples
from glassformer.models.packing import for_inference
from glassformer.runs.folder import RunFolder, read_json
from glassformer.runs.lock import is_locked
from glassformer.runs.log import curves, troubles
from glassformer.runs.trained import predictions
from glassformer.runs.warm_start import fresh_model
from glassformer.tasks import JOBS
from glassformer.tasks.job import AnyTask
from glassformer.tasks.served import TokenWriter
from glassformer.training.checkpoints import checkpoint_weights
from glassformer.training.machine import choose_machine
from glassformer.training.weights import load_weights

MOST_BYTES = 8 << 20  # of a metrics file, its end
POINTS = 240  # of a curve
ROWS = 4
HISTORY = 12  # checkpoints whose answers are kept
LONGEST = 300  # characters of a text
WRITTEN = 48  # tokens of a continuation
TROUBLES = 5
WIDEST = 128  # pixels of either side of a picture

Point = tuple[float, float]


def is_in_training(path: Path) -> bool:
    """Whether a run has begun, but has no model yet."""
    folder = RunFolder(path)
    begun = folder.config_file.exists() and folder.data.is_dir()
    return begun and not folder.model.exists()


@dataclass
class RunInTraining:
    """One run, in training or after it.

    Attributes:
        samples: A few validation rows, with the answers of the checkpoints seen so far.
    """

    path: Path
    device: str = "auto"
    samples: list[dict[str, Any]] = field(default_factory=list)
    _newest: int = 0

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.path)

    @cached_property
    def job(self) -> str:
        """The name of its job."""
        return self.folder.config().job

    @property
    def state(self) -> str:
        """`training`, `finished`, or `interrupted`."""
        if is_locked(self.path):
            return "training"
        return "finished" if self.folder.is_finished else "interrupted"

    def as_values(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        folder, config = self.folder, self.folder.config()
        stages = [(folder.pretrain, True), (folder, False)]
        found: list[dict[str, Any]] = [
            {"pretraining": first, "curves": thinned_curves(stage.metrics)}
            for stage, first in stages
            if stage.metrics.exists()
        ]
        steps = [
            point[0] for one in found[-1:] for line in one["curves"].values() for point in line
        ]
        pretraining = bool(found) and found[-1]["pretraining"]
        stage = folder.pretrain.config() if pretraining else config
        return {
            "job": config.job,
            "state": self.state,
            "step": int(max(steps, default=0)),
            "steps": stage.train.steps,
            "stages": found,
            "troubles": troubles(folder.metrics, MOST_BYTES)[-TROUBLES:],
            "scores": read_json(folder.report).get("scores", {}),
        }

    def answer(self) -> None:
        """Let the newest checkpoint answer, if it is a new one."""
        folder = self.folder
        step = newest_step(folder.checkpoints)
        if step <= self._newest or not (folder.data / "parts.npy").exists():
            return
        config = folder.config()
        task = folder.open_task(config, folder.data)
        machine = choose_machine(MachineConfig(device=self.device))
        with torch.random.fork_rng(devices=[]):  # a reader's own random numbers stay as they are
            model = fresh_model(task, config.seed)
        load_weights(model, checkpoint_weights(folder.checkpoints, step), "the checkpoint")
        rows = validation_samples(folder)
        predictor: Any = JOBS[config.job].predictor(task)
        inputs = questions(task, rows)
        if isinstance(predictor, TokenWriter):
            predictor = predictor.with_decoding({"max_length": WRITTEN, "min_length": 0})
        ready = for_inference(model.to(machine.device).eval())
        answers = list(predictions(predictor, ready, machine, inputs))
        if not self.samples:
            pairs = zip(rows, inputs, strict=True)
            self.samples = [shown(task, row, given) for row, given in pairs]
        for sample, found in zip(self.samples, answers, strict=True):
            text = "?" if found.text is None else found.details.get("continuation", found.text)
            sample["answers"] = [
                *sample["answers"][1 - HISTORY :],
                {"step": step, "text": str(text)[:LONGEST]},
            ]
        self._newest = step


def newest_step(checkpoints: Path) -> int:
    """The step of the newest checkpoint; 0 if there is none yet."""
    latest = checkpoints / "latest"
    name = latest.read_text(encoding="utf-8", errors="replace") if latest.is_file() else ""
    found = re.fullmatch(r"step-(\d{1,12})\s*", name)
    return int(found[1]) if found else 0


def validation_samples(folder: RunFolder) -> list[Sample]:
    """A few validation rows, always the same."""
    samples = Samples.open(folder.data)
    numbers = samples.rows("valid")
    places = np.linspace(0, len(numbers) - 1, min(ROWS, len(numbers))).round().astype(int)
    return [samples[int(numbers[place])] for place in places]


def questions(task: AnyTask, rows: list[Sample]) -> list[Any]:
    """The inputs of these rows, as the job is asked for them."""
    job = JOBS[task.name]
    predictor = job.predictor(task)
    inputs = [predictor.from_sample(row) for row in rows]
    return inputs if job.explainer is None else [*map(job.explainer(task).example, inputs)]


def shown(task: AnyTask, row: Sample, given: Any) -> dict[str, Any]:
    """A row as a reader sees it: its input if it is a text, and the right answer."""
    roles = JOBS[task.name].schema.roles
    answers = [row[role.name] for role in roles if role.answer and role.name in row]
    target = answers[0] if answers else ""
    return {
        "input": given[:LONGEST] if isinstance(given, str) else None,
        "picture": thumbnail(read_image(given)) if isinstance(given, Picture) else None,
        "target": (", ".join(target) if isinstance(target, list) else str(target))[:LONGEST],
        "answers": [],
    }


def thumbnail(pixels: UInt8[np.ndarray, "height width channels"]) -> dict[str, Any]:
    """A small copy of an image, for a page to draw: RGB, a byte each, as base64.

    >>> thumbnail(np.full((300, 2, 1), 7, dtype=np.uint8))["height"]
    100
    """
    step = -(-max(pixels.shape[:2]) // WIDEST)
    small = pixels[::step, ::step]
    small = np.broadcast_to(small, (*small.shape[:2], 3))
    data = base64.b64encode(small.tobytes()).decode("ascii")
    return {"height": small.shape[0], "width": small.shape[1], "pixels": data}


def thinned_curves(metrics: Path) -> dict[str, list[Point]]:
    """The curves of a metrics file, in at most so many points each."""
    return {name: thinned(points) for name, points in curves(metrics, MOST_BYTES).items()}


def thinned(points: list[Point], most: int = POINTS) -> list[Point]:
    """A curve in fewer points: each is the mean of its neighbours, and the last one stays.

    >>> thinned([(1.0, 4.0), (2.0, 2.0), (3.0, 1.0), (4.0, 1.0), (5.0, 0.5)], most=3)
    [(2.0, 3.0), (4.0, 1.0), (5.0, 0.5)]
    """
    if len(points) <= most:
        return points
    groups = np.array_split(np.array(points[:-1]), most - 1)
    return [(float(group[-1, 0]), float(group[:, 1].mean())) for group in groups] + [points[-1]]
