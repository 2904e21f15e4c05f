"""The heads of a run: where they look, what they are worth, and which of them can go.

    run.heads.look()              where each head looks, and a name for it
    run.heads.ablate("3.5")       the score without a head or a layer
    run.heads.prune()             how many heads can go before the score gets worse

Rows are those of the data given, or the validation rows of the run.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from glassformer.core.kinds import Linformer
from glassformer.errors import GlassformerError
from glassformer.explaining.ablation import Part, ablated, heads_of, layers_of, named_parts
from glassformer.explaining.heads import profile_heads
from glassformer.explaining.parts import AttentionMap
from glassformer.explaining.pruning import by_importance, prune
from glassformer.explaining.watching import watching
from glassformer.metrics.paired import Comparison
from glassformer.runs.arguments import Data
from glassformer.runs.display import Done, done_unseen
from glassformer.runs.folder import reporter_of
from glassformer.runs.head_results import Ablations, HeadsFound, Pruned, WholeModel
from glassformer.runs.rows import OpenedRows
from glassformer.tasks import JOBS
from glassformer.tasks.predictor import Predictor
from glassformer.training.loader import sample_rows

LOOKED_AT = 50  # rows, of which attention is averaged
SCORED = 1000  # rows, on which models are compared
TOLERANCE = 0.01  # of the score, which may be lost when heads are pruned
EACH = {"heads": heads_of, "layers": layers_of}  # names for one after another


@dataclass(frozen=True, kw_only=True, slots=True)
class RunHeads:
    """The heads of a trained model.

    Args:
        opened: The rows of some data; without any, the validation rows of the run.
    """

    model: nn.Module
    predictor: Predictor[Any, Any]
    opened: Callable[..., AbstractContextManager[OpenedRows]]

    def look(self, *data: Data, rows: int = LOOKED_AT, progress: Done = done_unseen) -> HeadsFound:
        """Where each head looks in some rows, and a name for it.

        Args:
            rows: At most this many.
            progress: Told how many rows are done, of how many.
        """
        parts = self._heads()
        layers = [
            path
            for path in dict.fromkeys(part.path for part in parts)
            if not isinstance(self.model.get_submodule(path), Linformer)  # its keys lie nowhere
        ]
        read = 0

        def count(done: int, total: int) -> None:
            nonlocal read
            read = done
            progress(done, total)

        with self.opened(data, labelled=False) as opened:
            seen = self._attention(opened, layers, rows, count)
            found = {(one.layer, one.head): one for one in profile_heads(seen)}
        heads = {
            part.label: found[key] for part in parts if (key := (part.path, part.head)) in found
        }
        return HeadsFound(rows=read, heads=heads)

    def ablate(self, *parts: str, data: Data = None, progress: Done = done_unseen) -> Ablations:
        """The score without heads or layers, each compared with the whole model on the same rows.

        Args:
            parts: Heads such as `3.5` or layers such as `3`; several in one text, separated by
                commas, are left out together. `heads` and `layers` stand for each of them, one
                after another.
            data: What to score on: files, or rows in memory.
        """
        named: dict[str, Sequence[Part]] = {}
        for part in parts:
            if part in EACH:
                named |= {one.label: [one] for one in EACH[part](self.model)}
            else:
                named[part] = named_parts(self.model, part)
        with self.opened(() if data is None else (data,)) as opened:
            scored = Scored.of(opened, self.model)
            without = {}
            for done, (name, chosen) in enumerate(named.items(), start=1):
                without[name] = scored.compared(ablated(self.model, chosen))
                progress(done, len(named))
        return Ablations(whole=scored.whole, without=without)

    def prune(
        self,
        *data: Data,
        tolerance: float = TOLERANCE,
        progress: Done = done_unseen,
    ) -> Pruned:
        """Remove heads together, the least important first, until the score gets worse.

        Args:
            tolerance: The share of the score that may be lost.
        """
        heads, steps = self._heads(), []
        with self.opened(data) as opened:
            scored = Scored.of(opened, self.model)
            allowed = tolerance * abs(scored.whole.score.value)
            for step in prune(
                self.model,
                by_importance(self.model, scored.rows.losses),
                scored.compared,
                higher_is_better=scored.whole.higher_is_better,
                tolerance=allowed,
            ):
                steps.append(step)
                progress(len(steps), len(heads))
        return Pruned(whole=scored.whole, heads=len(heads), tolerance=allowed, steps=tuple(steps))

    def _heads(self) -> list[Part]:
        """All heads; refused if there are none."""
        heads = heads_of(self.model)
        if not heads:
            raise GlassformerError(
                "this model has no heads of attention; use one whose encoder or decoder is of "
                "kind attention"
            )
        return heads

    def _attention(
        self, opened: OpenedRows, layers: Sequence[str], rows: int, progress: Done
    ) -> Iterator[Sequence[AttentionMap]]:
        """The attention of some rows, layer by layer, so that few weights exist at once.

        Rows that cannot be explained, such as a recording in which nothing is heard, are left out.
        """
        task = opened.task
        made = JOBS[task.name].explainer
        if made is None:
            raise GlassformerError(f"{task.name} does not show its attention; use another job")
        explainer, numbers = made(task), opened.samples.rows(opened.split)
        done, failed = 0, None
        places = sample_rows(len(numbers), rows).tolist()
        for place in places:
            sample = opened.samples[int(numbers[place])]
            try:
                given = explainer.example(self.predictor.from_sample(sample))
                subject = explainer.subject(self.model, given)
            except GlassformerError as error:
                failed = error
                continue
            with torch.no_grad(), watching(self.model, layers=layers) as (watched, maps):
                subject.scores(watched)
            for name in layers:
                yield subject.attention_of(maps.only(name))
            done += 1
            progress(done, len(places))
        if failed is not None and not done:
            raise failed


@dataclass(frozen=True, slots=True)
class Scored:
    """A model's answers to some rows, to compare others with."""

    rows: OpenedRows
    answers: Any
    whole: WholeModel

    @staticmethod
    def of(rows: OpenedRows, model: nn.Module) -> "Scored":
        rows, task = replace(rows, max_rows=SCORED), rows.task
        answers = rows.answers(model)
        score = reporter_of(task).scores(answers)[task.goal]
        if task.higher_is_better and score.value == 0:
            raise GlassformerError(
                f"the {task.goal} of this model is 0 on these rows, so nothing can make it worse; "
                f"train it longer, or give other rows"
            )
        whole = WholeModel(goal=task.goal, higher_is_better=task.higher_is_better, score=score)
        return Scored(rows, answers, whole)

    def compared(self, model: nn.Module) -> Comparison:
        """Another model, minus this one, in the task's goal."""
        found = reporter_of(self.rows.task).compare(self.rows.answers(model), self.answers)
        return found[self.whole.goal]
