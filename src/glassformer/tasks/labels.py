"""The labels of a classifier: their names, how often each occurs, and how sure it may sound."""

import json
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

from glassformer.data.samples import Sample, Samples
from glassformer.errors import GlassformerError, unknown
from glassformer.metrics.classification import THRESHOLD
from glassformer.tasks.job import Prediction

MANY = 1000  # labels; more are usually free text in the wrong column


class LabelSettings(Protocol):
    """What is asked of the labels."""

    separator: str | None
    multi_label: bool | None
    rarest: int


@dataclass(frozen=True)
class Labels:
    """Names in alphabetical order; their numbers are what the model answers in.

    Attributes:
        counts: Rows of each in the training part.
        multi: Whether a text has any number of labels.
        separator: What stands between several labels in one field.
        temperature: What logits are divided by, so that confidence is deserved.
    """

    names: tuple[str, ...]
    counts: tuple[int, ...]
    multi: bool
    separator: str | None = None
    temperature: float = 1.0

    @classmethod
    def learn(cls, samples: Samples, settings: LabelSettings) -> "Labels":
        """The labels that occur, refused where they cannot be learned."""
        separator = settings.separator
        first: dict[str, str] = {}
        seen: Counter[str] = Counter()
        learned: Counter[str] = Counter()
        multi = bool(settings.multi_label or separator)
        for row in range(len(samples)):
            sample = samples[row]
            multi = multi or isinstance(sample["label"], list)
            for name in names_in(sample, separator):
                first.setdefault(name, sample["where"])
                seen[name] += 1
                learned[name] += int(samples.parts[row] == 0)
            refuse_too_many(seen, sample)
        refuse_too_few(seen, first, settings.rarest)
        names = tuple(sorted(seen))
        return cls(names, tuple(learned[name] for name in names), multi, separator)

    def number(self, sample: Sample) -> int | list[int]:
        """The number of a sample's label; for several, a 0 or 1 for each there is."""
        found = names_in(sample, self.separator)
        for name in found:
            if name not in self._numbers:
                raise GlassformerError(
                    f"{sample['where']}: " + unknown("label", name, self.names[:20])
                )
        if self.multi:
            return [int(name in found) for name in self.names]
        if len(found) != 1:
            raise GlassformerError(
                f"{sample['where']}: {len(found)} labels where the model knows one a text; "
                f"train it with --set task.multi_label=true"
            )
        return self._numbers[found[0]]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def weights(self) -> Float[np.ndarray, " C"]:
        """How much a row of each label counts, so that all labels count alike."""
        counts = np.maximum(np.array(self.counts, dtype=np.float32), 1)
        return counts.sum() / (len(counts) * counts)

    def prediction(self, probabilities: Float[np.ndarray, " C"]) -> Prediction:
        """What probabilities say, in words."""
        chances = {
            name: float(p) for name, p in zip(self.names, probabilities.tolist(), strict=True)
        }
        if not self.multi:
            best = max(chances, key=lambda name: chances[name])
            return Prediction(best, chances[best], {"label": best, "probabilities": chances})
        chosen = [name for name, chance in chances.items() if chance >= THRESHOLD]
        sure = float(np.where(probabilities >= THRESHOLD, probabilities, 1 - probabilities).min())
        return Prediction(", ".join(chosen), sure, {"labels": chosen, "probabilities": chances})

    def save(self, path: Path) -> None:
        """One JSON file, which appears when it is whole."""
        half = path.with_name(path.name + ".part")
        half.write_text(json.dumps(asdict(self), ensure_ascii=False, indent=1), encoding="utf-8")
        half.replace(path)

    @classmethod
    def load(cls, path: Path) -> "Labels":
        """What `save` wrote."""
        try:
            values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return cls(**values | {k: tuple(values[k]) for k in ("names", "counts")})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise GlassformerError(
                f"{path}: not the labels of a run ({error}); copy the run folder again"
            ) from None


def names_in(sample: Sample, separator: str | None) -> list[str]:
    """The labels of a sample."""
    value = sample["label"]
    if isinstance(value, str):
        value = value.split(separator) if separator else [value]
    return [name.strip() for name in value if name.strip()]


def refuse_too_many(seen: Counter[str], sample: Sample) -> None:
    """So many labels are texts."""
    if len(seen) > MANY:
        raise GlassformerError(
            f"{sample['where']}: more than {MANY:,} different labels, such as "
            f"{next(reversed(seen))[:40]!r}; is it the right column? Name it with --columns"
        )


def refuse_too_few(seen: Counter[str], first: dict[str, str], rarest: int) -> None:
    """One label leaves nothing to learn, and a label seen once cannot be checked."""
    if len(seen) < 2:
        only = f"only {next(iter(seen))!r}" if seen else "none"
        raise GlassformerError(
            f"a classifier needs two labels or more, found {only}; "
            f"name the column with --columns text=...,label=..."
        )
    name, count = min(seen.items(), key=lambda item: item[1])
    if count < rarest:
        times = "once" if count == 1 else f"{count} times"
        raise GlassformerError(
            f"{first[name]}: label {name!r} occurs only {times}, which cannot be both learned and "
            f"checked; add rows, merge it with another, or allow it with --set task.rarest={count}"
        )
