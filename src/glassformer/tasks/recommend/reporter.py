"""The report of `recommend`: ratings and lists, beside popularity, item means and least squares."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.data.samples import Sample
from glassformer.files import write_json
from glassformer.reports import Sections, Table
from glassformer.reports.record import SOME_ROWS
from glassformer.reports.tables import evenly
from glassformer.tasks.recommend.answers import Recommended
from glassformer.tasks.recommend.baselines import SHRINKS, Biases, Scorer, TrainingRows, recommended
from glassformer.tasks.recommend.factors import Factors
from glassformer.tasks.recommend.least_squares import RANKS, RIDGES, ROUNDS, LeastSquares
from glassformer.tasks.recommend.task import SCALE, RecommendTask
from glassformer.tasks.reporter import Baseline, Reporter, Rival

SECONDS = 4e-5  # of a least-squares solution, and of a question
SHOWN = 20  # rows


class RecommendReporter(Reporter[RecommendTask, Recommended]):
    """For users and items."""

    score_names = ("rmse", "ndcg", "hit_rate", "coverage")
    compared_unit = "user"
    calibrates = True

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(self.task.names.items.names)

    def remarks(self) -> list[str]:
        return self.task.remarks

    def calibrate(self, answers: Recommended) -> None:
        """Note how far ratings are from what is predicted, for confidences and new users."""
        task = self.task
        if not isinstance(task.method, Factors) or not task.explicit:
            return
        errors = answers.predicted - answers.ratings
        task.scale["deviation"] = float(np.sqrt(np.mean(errors**2)))
        task.method.deviation = task.scale["deviation"]
        write_json(task.scale, task.folder / SCALE)

    def notes(self, answers: Recommended) -> list[str]:
        asked, liked = int(answers.recommendable.sum()), answers.liked
        which = "rows" if liked is None else f"rows rated {liked:g} or better"
        return [
            f"Lists are scored on {asked:,} {which}: of all {answers.items:,} items, those that "
            f"the user had not taken before are ranked. Intervals and comparisons go by user."
        ]

    def sections(self, answers: Recommended, samples: Sequence[Sample]) -> Sections:
        held_out, names = self.task.samples, self.task.names.shown
        assert held_out is not None
        numbers, rows = self.task.held_out(self._split).numbers, []
        for row in evenly(len(answers.rows))[:SHOWN]:
            sample = held_out[int(numbers[answers.rows[row]])]
            first = [names[item] for item in answers.lists[row][:3] if item >= 0]
            rated = [f"{answers.ratings[row]:g}", f"{answers.predicted[row]:.2f}"]
            rows.append(
                (
                    *(sample["user"], self._called(sample), *(rated if self.task.explicit else ())),
                    *(f"{answers.ranks[row]:g}", "; ".join(first)),
                )
            )
        rated_header = ("rating", "predicted") if self.task.explicit else ()
        header = ("user", "item", *rated_header, "rank", "first three")
        return Sections(tables=[Table(title=SOME_ROWS, header=header, rows=rows)])

    def _called(self, sample: Sample) -> str:
        """What the item of a sample is called."""
        number = self.task.names.items.numbers.get(sample["item"])
        if number is None:  # training does not have it
            return str(sample.get("caption") or sample["item"])
        return self.task.names.shown[number]

    @property
    def _split(self) -> str:
        """The split that a report is about."""
        assert self.task.samples is not None
        return "test" if len(self.task.samples.rows("test")) else "valid"

    def baseline(self, split: str) -> Baseline[Recommended]:
        """Least squares with the rank and ridge that are best on the validation rows."""
        simple = SimpleRecommenders(self.task)
        rank, ridge, scorer = simple.best_least_squares(self.seconds)
        chosen, answers = f"rank {rank}, ridge {ridge:g}", simple.answers(scorer, split)
        return Baseline("matrix factorisation", chosen, answers, save=scorer.save)

    def rivals(self, answers: Recommended, split: str) -> list[Rival[Recommended]]:
        """Popularity and means, which have no vectors."""
        simple = SimpleRecommenders(self.task)
        return [
            Rival(name, name, simple.answers(one, split)) for name, one in simple.simplest().items()
        ]

    def baseline_seconds(self) -> float:
        if self.task.samples is None:
            return 0.0
        sides = len(self.task.names.users) + len(self.task.names.items)
        return 1.0 + SECONDS * sides * ROUNDS * len(RANKS) * len(RIDGES)


@dataclass(frozen=True, slots=True)
class SimpleRecommenders:
    """The baselines of a task."""

    task: RecommendTask

    def rows(self) -> TrainingRows:
        """What they learn from."""
        task = self.task
        assert task.samples is not None
        train = task.samples.rows("train")
        users, items = task.found.users[train], task.found.items[train]
        ratings = task.found.ratings[train].astype(np.float64)
        if not task.explicit:
            ratings = np.ones(len(train))
        sizes = len(task.names.users), len(task.names.items)
        return TrainingRows(users, items, ratings, sizes, task.explicit)

    def simplest(self) -> dict[str, Scorer]:
        """Those without vectors."""
        rows = self.rows()
        popular, means = rows.popularity(), rows.item_means()
        if not self.task.explicit:
            return {"popularity": lambda asked: popular}
        # Ratings are predicted by the mean; the order is by popularity.
        order = rows.mean + 1e-9 * popular
        return {
            "popularity": lambda asked: order,
            "item mean": lambda asked: means,
            "user and item biases": self.best_biases(),
        }

    def best_biases(self) -> Biases:
        """Biases with the best shrinkage."""
        rows = self.rows()
        found = [Biases.fit(rows, shrink) for shrink in SHRINKS]
        values = [self.answers(one, "valid").values().get("rmse", 0.0) for one in found]
        return found[int(np.argmin(values))]

    def best_least_squares(self, seconds: float = math.inf) -> tuple[int, float, LeastSquares]:
        """Least squares with the best rank and ridge of those that fit into the time."""
        rows, found = self.rows(), list[tuple[float, int, float, LeastSquares]]()
        began = time.perf_counter()
        for rank in RANKS:
            for ridge in RIDGES:
                spent = time.perf_counter() - began
                if found and spent * (1 + 1 / len(found)) > seconds:
                    continue
                scorer = LeastSquares.fit(rows, rank, ridge)
                value = self.answers(scorer, "valid").values().get(self.task.goal, 0.0)
                found.append((value if self.task.explicit else -value, rank, ridge, scorer))
        return min(found, key=lambda one: one[0])[1:]

    def answers(self, scorer: Scorer, split: str) -> Recommended:
        """The answers of one of them to the rows of a split."""
        held_out, settings = self.task.held_out(split), self.task.settings
        scale = None
        if self.task.explicit:
            assert settings.lowest is not None
            assert settings.highest is not None
            scale = (settings.lowest, settings.highest)
        return recommended(
            scorer,
            held_out.questions(np.arange(len(held_out.numbers))),
            items=len(self.task.names.items),
            scale=scale,
            liked=settings.liked if self.task.explicit else None,
        )
