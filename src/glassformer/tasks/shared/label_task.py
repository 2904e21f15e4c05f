"""A task with labels: one label, or several, for each input, whatever is read.

An encoder reads it, a pool over its real vectors makes one of them, and a layer scores the labels.
Any encoder of the configuration will do: attention, GRU, LSTM or TCN.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.config.run import Config
from glassformer.data.rows import listed
from glassformer.data.samples import NO_SPLIT, Samples
from glassformer.errors import GlassformerError
from glassformer.files import read_json, write_json
from glassformer.metrics.calibration import log_loss
from glassformer.metrics.classification import THRESHOLD
from glassformer.models.build import build_classifier
from glassformer.models.transformer import Classifier, ClassScores, Noise
from glassformer.tasks.job import JobTask
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.label_inputs import Inputs
from glassformer.tasks.shared.labels import Labels, separated_line
from glassformer.tasks.shared.losses import IGNORED
from glassformer.tasks.task import Loss
from glassformer.wording import counted

REMARKS = "remarks.json"  # on the rows, beside them


class LabelTask(JobTask[Any, Tensor, ClassAnswers]):
    """Inputs of any kind, and their labels.

    Attributes:
        inputs: What is read.

    Args:
        inputs: The kind of what is read.
    """

    goal = "accuracy"

    def __init__(
        self, config: Config, folder: Path, data: Path | None, inputs: type[Inputs]
    ) -> None:
        self.config, self.folder, self.settings = config, folder, config.task
        self.labels = Labels.load(folder / "labels.json")
        self.inputs = inputs(config, folder, data)
        self.samples = None
        self.remarks: list[str] = []  # on the rows
        if data is not None:
            self.samples = Samples.open(data)
            self.remarks = read_json(data / REMARKS) if (data / REMARKS).exists() else []
            self.label_ids = self.labels.open_numbers(data / "labels.npy", len(self.samples))
        self._weights = cache(self._weights_on)

    @staticmethod
    def settle_labels(config: Config, samples: Samples, folder: Path) -> Config:
        """Find the labels, put them into the folder, and settle whether a row has several."""
        labels = Labels.learn(samples, config.task)
        if (fixed := config.task.threshold) is not None:
            labels = replace(labels, threshold=fixed, baseline_threshold=fixed)
        labels.save(folder / "labels.json")
        if labels.separator and not config.task.separator:
            fields = Counter(str(value).strip() for value in samples.values("label"))
            write_json([separated_line(labels.separator, fields)], samples.folder / REMARKS)
        several = {"multi_label": labels.multi, "separator": labels.separator}
        return replace(config, task=replace(config.task, **several))

    def index(self, samples: Samples, data: Path) -> None:
        self.inputs.refuse_others(samples)
        self.inputs.index(samples, data)
        unknown = {} if samples.rows("train").size else self.labels.unknown(samples)
        if unknown and len(unknown) == len(samples):
            raise nothing_known(samples, unknown, self.labels.names)
        if unknown:
            splits = samples.splits.copy()
            splits[list(unknown)] = NO_SPLIT
            Samples.assign(data, splits)
            write_json([never_seen(samples, unknown)], data / REMARKS)
        numbers = self.labels.numbers(samples, left_out=unknown)
        np.save(data / "labels.npy", numbers, allow_pickle=False)

    def model(self) -> Classifier:
        inputs = self.inputs
        return build_classifier(
            self.config.model, classes=self.classes, source=inputs.source, spelling=inputs.spelling
        )

    @property
    def classes(self) -> int:
        """The number of labels."""
        return len(self.labels.names)

    def lengths(self, split: str) -> Int[np.ndarray, " rows"]:
        assert self.samples is not None
        return self.inputs.lengths(self.samples.rows(split), training=split == "train")

    def batch(self, split: str, rows: Int[np.ndarray, " chosen"], epoch: int | None) -> Any:
        assert self.samples is not None
        numbers = self.samples.rows(split)[rows]
        read, layout, row_of = self.inputs.read(numbers, epoch)
        labels = self.labels_of(numbers[row_of], epoch)
        return self.inputs.batch(read, layout, labels, torch.from_numpy(rows[row_of]))

    def labels_of(self, numbers: Int[np.ndarray, " pieces"], epoch: int | None) -> Tensor:
        """The label of each sample, or a share of every label where it has several."""
        label_ids = self.label_ids[numbers]
        return torch.from_numpy(label_ids.astype(np.float32 if self.labels.multi else np.int64))

    @property
    def default_epochs(self) -> float:  # type: ignore[override]
        """How long to train when nobody says."""
        return self.inputs.epochs

    @property
    def padded(self) -> bool:
        return self.inputs.padded

    @property
    def mixes_lengths(self) -> bool:
        return self.inputs.mixes_lengths

    def forward(self, model: nn.Module, batch: Any, *, noise: Noise | None = None) -> ClassScores:
        """Scores of the labels, in fp32."""
        return self.inputs.forward(model, batch, noise).float()

    def loss(self, output: ClassScores, batch: Any) -> Loss:
        scores = output.flatten(0, -2)  # (B * members, C)
        labels = batch.labels.repeat_interleave(len(scores) // len(output), 0)
        smoothing = self.settings.label_smoothing
        if self.labels.multi:
            target = labels * (1 - smoothing) + smoothing / 2
            rare = self._weights(output.device) if self.settings.class_weights else None
            losses = F.binary_cross_entropy_with_logits(
                scores, target, pos_weight=rare, reduction="none"
            ).sum(1)
        else:
            losses = F.cross_entropy(scores, labels, reduction="none", label_smoothing=smoothing)
        known = batch.labels.reshape(len(output), -1)[:, 0] != IGNORED
        loss = self._counted(of_rows(losses, output), batch, known)
        if not (self.labels.multi or smoothing or self.settings.class_weights):
            return loss
        if self.labels.multi:
            plain = F.binary_cross_entropy_with_logits(scores.detach(), labels, reduction="none")
            losses = plain.mean(1)
        else:
            losses = F.cross_entropy(scores.detach(), labels, reduction="none")
        fillers = batch.layout.fillers
        real = known if fillers is None else known & ~fillers
        measured = (of_rows(losses, output) * real).sum(), real.sum().float()
        return replace(loss, measured=Loss(*measured))  # as `score` has it: plain, all count one

    def divergence(self, a: ClassScores, b: ClassScores, batch: Any) -> Loss:
        if self.labels.multi:
            yes, no = F.logsigmoid(a), F.logsigmoid(-a)
            apart = yes.exp() * (yes - F.logsigmoid(b)) + no.exp() * (no - F.logsigmoid(-b))
        else:
            log_a, log_b = a.log_softmax(-1), b.log_softmax(-1)
            apart = log_a.exp() * (log_a - log_b)
        return self._counted(of_rows(apart.sum(-1), a), batch)

    def _counted(
        self, losses: Float[Tensor, " B"], batch: Any, known: Bool[Tensor, " B"] | None = None
    ) -> Loss:
        """The sum of the rows' losses; each counts one, or what its label weighs.

        Args:
            known: The rows that count, if not all do.
        """
        weights = torch.ones_like(losses)
        if self.settings.class_weights and not self.labels.multi:
            weights = self._weights(losses.device)
            shared = batch.labels.is_floating_point()  # among several labels
            each = batch.labels @ weights if shared else weights[batch.labels.clamp(min=0)]
            weights = torch.where(batch.labels == IGNORED, 1.0, each) if not shared else each
        if known is not None:
            weights = weights * known
        if batch.layout.fillers is not None:
            weights = weights.masked_fill(batch.layout.fillers, 0.0)
        return Loss((losses * weights).sum(), weights.sum())

    def _weights_on(self, device: torch.device) -> Float[Tensor, " C"]:
        return torch.from_numpy(self.labels.weights).to(device)

    def answers(self, model: nn.Module, batches: Iterable[Any]) -> ClassAnswers:
        """What the model says about the rows of these batches, in the order of the rows."""
        pieces = ((self.forward(model, batch), batch.labels, batch.row_ids) for batch in batches)
        labels = self.labels
        return ClassAnswers.gather(
            pieces,
            multi=labels.multi,
            temperature=labels.temperature,
            threshold=labels.threshold,
        )

    def score(self, model: nn.Module, batches: Iterable[Any]) -> dict[str, float]:
        found = self.answers(model, batches)
        chosen = self.settings.threshold or self.labels.threshold
        if chosen == THRESHOLD:  # nothing is chosen yet, and 0.5 may name no label at all
            found = found.at_best_threshold()
        return {
            "accuracy": found.accuracy(),
            "macro_f1": found.macro_f1(),
            "loss": log_loss(found.logits, found.labels),
        }


def of_rows(losses: Float[Tensor, "..."], output: ClassScores) -> Float[Tensor, " B"]:
    """The loss of each row: the mean over the members of an ensemble."""
    return losses.reshape(len(output), -1).mean(1)


def nothing_known(
    samples: Samples, unknown: Mapping[int, Sequence[str]], known: Sequence[str]
) -> GlassformerError:
    """The error for rows of which none can be scored."""
    found = listed(list(dict.fromkeys(name for names in unknown.values() for name in names)))
    return GlassformerError(
        f"{samples[0]['where']}: no row has a label that the model knows; found {found}; its "
        f"labels are {listed(known)}; train on rows with these labels, or name the column with "
        f"--columns label=..."
    )


def never_seen(samples: Samples, unknown: Mapping[int, Sequence[str]]) -> str:
    """What to say about rows with labels that the model does not know."""
    counts = Counter(name for names in unknown.values() for name in names)
    names = listed([f"{name!r} ({count:,})" for name, count in counts.most_common()])
    return (
        f"left out: {counted(len(unknown), 'row')} with labels that the model never saw: {names}; "
        f"first {samples[min(unknown)]['where']}"
    )
