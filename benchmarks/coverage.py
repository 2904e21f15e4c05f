"""How often 95 % intervals hold the truth, by score, by unit and by the number of units.

    python benchmarks/coverage.py            # the table of docs/reference/intervals.md
    python benchmarks/coverage.py --write    # puts it there

Populations whose scores are known are drawn from, with the product's own functions, without their
minimum of units. Rows are independent; groups have several rows that are alike, and are of very
different sizes. Differences are those of two systems that are equally good, so a p-value below 0.05
is a false alarm.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from glassformer.metrics.calibration_error import calibration_error
from glassformer.metrics.classification import classification_scores
from glassformer.metrics.intervals import Score, jackknife, ratio
from glassformer.metrics.measurement import Measurement
from glassformer.metrics.paired import (
    Comparison,
    classification_comparison,
    paired_test,
    randomisation_test,
)
from glassformer.metrics.ranking import mean_by_user, root_mean_square
from glassformer.metrics.ratios import rate_score, share_score
from glassformer.metrics.sacre import bleu, chrf, ter
from glassformer.metrics.translation import translation_comparison
from glassformer.metrics.units import LEAST, ROWS, Least, Units

DOCS = Path(__file__).parents[1] / "docs" / "reference" / "intervals.md"
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"
COUNTS = (5, 8, 10, 15, 20, 30, 50, 100, 300)
TRIALS = 1000
RESAMPLES = 200  # of a p-value
LOW, HIGH = 0.92, 0.98  # coverage that is good enough for an interval to be shown
WIDE = ("calibration",)  # chance can only raise it: wider than need be, at any number of rows
CLASSES = np.array([0.4, 0.3, 0.2, 0.1])

Rng = np.random.Generator
Trial = Callable[[Rng, int], tuple[Score, float]]
Pair = Callable[[Rng, int], Comparison]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        score: Its name in the table.
        kind: In `units.LEAST`.
        unit: What is sampled.
        grouped: Whether a unit has several rows.
        trial: Draws so many units, and gives their score and the truth; or a comparison.
    """

    score: str
    kind: str
    unit: str
    grouped: bool
    trial: Trial | None = None
    pair: Pair | None = None


@contextmanager
def without_minimum() -> Iterator[None]:
    """Intervals whatever the number of units."""
    before = dict(LEAST)
    LEAST.update(dict.fromkeys(LEAST, Least(2, 2)))
    try:
        yield
    finally:
        LEAST.update(before)


# Populations


def sizes(rng: Rng, groups: int, mean: float = 10) -> np.ndarray:
    """Rows of each group: most have few, some very many."""
    return rng.geometric(1 / mean, groups)


def owners(rng: Rng, groups: int, mean: float = 10) -> np.ndarray:
    """The group of each row."""
    return np.repeat(np.arange(groups), sizes(rng, groups, mean))


def beta(rng: Rng, mean: float, correlation: float, count: int) -> np.ndarray:
    """Shares of groups, whose rows are so alike."""
    weight = (1 - correlation) / correlation
    return rng.beta(mean * weight, (1 - mean) * weight, count)


def share(rng: Rng, count: int, *, grouped: bool) -> tuple[Score, float]:
    truth = rng.uniform(0.5, 0.95)
    owner, units = some_rows(rng, count, grouped=grouped)
    chance = beta(rng, truth, rng.choice([0.05, 0.2]), count)[owner] if grouped else truth
    return share_score(rng.random(len(owner)) < chance, np.ones(len(owner)), units=units), truth


def share_of_users(rng: Rng, users: int) -> tuple[Score, float]:
    truth, user = rng.uniform(0.05, 0.6), owners(rng, users, 3)
    hit = rng.random(len(user)) < beta(rng, truth, 0.2, users)[user]
    return mean_by_user(hit, user).score(), truth


def labelled(
    rng: Rng, owner: np.ndarray, wrong: float, correlation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and two systems that are equally often right in a group, not in the same way."""
    groups = int(owner.max()) + 1
    priors = rng.dirichlet(5 * CLASSES, groups) if correlation else np.tile(CLASSES, (groups, 1))
    labels = (rng.random(len(owner))[:, None] > priors.cumsum(1)[owner]).sum(1).clip(max=3)
    answers = []
    for _ in range(2):
        chance = beta(rng, 1 - wrong, correlation, groups) if correlation else 1 - wrong
        right = rng.random(len(owner)) < np.broadcast_to(chance, groups)[owner]
        other = (labels + rng.integers(1, len(CLASSES), len(owner))) % len(CLASSES)
        answers.append(np.where(right, labels, other))
    return labels, np.array(answers)


def true_f1(wrong: float) -> float:
    joint = np.outer(CLASSES, np.full(4, wrong / 3))
    np.fill_diagonal(joint, CLASSES * (1 - wrong))
    return float(np.mean(2 * np.diag(joint) / (joint.sum(0) + joint.sum(1))))


def some_rows(rng: Rng, count: int, *, grouped: bool) -> tuple[np.ndarray, Units]:
    """The group of each row, and the units."""
    owner = owners(rng, count) if grouped else np.arange(count)
    return owner, Units("group", owner) if grouped else ROWS


def f1(rng: Rng, count: int, *, grouped: bool) -> tuple[Score, float]:
    wrong = rng.uniform(0.05, 0.4)
    owner, units = some_rows(rng, count, grouped=grouped)
    labels, (answers, _) = labelled(rng, owner, wrong, 0.1 if grouped else 0.0)
    scores = classification_scores(labels, np.eye(4)[answers], units=units)
    return scores["macro_f1"], true_f1(wrong)


def f1_pair(rng: Rng, count: int, *, grouped: bool) -> Comparison:
    wrong = rng.uniform(0.05, 0.4)
    owner, units = some_rows(rng, count, grouped=grouped)
    labels, answers = labelled(rng, owner, wrong, 0.1 if grouped else 0.0)
    first, second = np.eye(4)[answers]
    return classification_comparison(labels, first, second, units=units)["macro_f1"]


def share_pair(rng: Rng, count: int, *, grouped: bool) -> Comparison:
    owner, units = some_rows(rng, count, grouped=grouped)
    labels, answers = labelled(rng, owner, rng.uniform(0.05, 0.4), 0.1 if grouped else 0.0)
    return paired_test(*(answers == labels), units)


def edits(rng: Rng, owner: np.ndarray, rate: float, spread: float) -> np.ndarray:
    """Words of each row, and the edits of two systems; four rows in ten have none."""
    words = rng.integers(3, 20, len(owner))
    groups = int(owner.max()) + 1
    columns = [words]
    for _ in range(2):
        factor = rng.gamma(1 / spread, spread, groups) if spread else np.ones(groups)
        hard = rng.random(len(owner)) < 0.6
        columns.append(rng.poisson(words * rate / 0.6 * factor[owner]) * hard)
    return np.array(columns, dtype=np.float64)


def rate(rng: Rng, count: int, *, grouped: bool) -> tuple[Score, float]:
    truth = rng.uniform(0.02, 0.4)
    owner, units = some_rows(rng, count, grouped=grouped)
    words, found, _ = edits(rng, owner, truth, 0.25 if grouped else 0.0)
    return rate_score(found, words, units=units), truth


def rate_pair(rng: Rng, count: int, *, grouped: bool) -> Comparison:
    owner, units = some_rows(rng, count, grouped=grouped)
    words, first, second = edits(rng, owner, rng.uniform(0.02, 0.4), 0.25 if grouped else 0.0)
    return randomisation_test(
        ratio,
        (first, words),
        (second, words),
        better=second - first,
        kind="rate",
        units=units,
        resamples=RESAMPLES,
    )


@cache
def sentences(name: str) -> tuple[Measurement, float]:
    """Many scored sentences, in the order of their quality, and the score of all."""
    rng, words = (
        np.random.default_rng(0),
        ["the", "cat", "sat", "on", "a", "mat", "dog", "runs", "over", "lazy", "fox", "it", "is"],
    )
    references = [" ".join(rng.choice(words, rng.integers(4, 16))) for _ in range(3000)]
    broken = np.sort(rng.beta(0.6, 1.2, len(references)))
    answers = [
        " ".join(w if rng.random() > p else str(rng.choice(words)) for w in text.split())
        for text, p in zip(references, broken, strict=True)
    ]
    measured = {"bleu": bleu, "chrf": chrf, "ter": ter}[name](answers, [[r] for r in references])
    return measured, float(measured.statistic(measured.rows.sum(0, keepdims=True))[0])


def sentence_rows(rng: Rng, owner: np.ndarray, *, grouped: bool) -> np.ndarray:
    """Sentences of groups, some of which are harder than others; over all groups, as good."""
    groups = int(owner.max()) + 1
    if not grouped:
        return rng.integers(0, 3000, len(owner))
    offset = rng.random(groups)[owner] + 0.2 * rng.normal(size=len(owner))
    return (3000 * (offset % 1)).astype(np.int64)


def corpus(rng: Rng, count: int, *, name: str, grouped: bool) -> tuple[Score, float]:
    measured, truth = sentences(name)
    owner, units = some_rows(rng, count, grouped=grouped)
    rows = measured.rows[sentence_rows(rng, owner, grouped=grouped)]
    one = Measurement(rows, measured.statistic, measured.row_statistic, True, "corpus", units=units)
    return one.score(), truth


def corpus_pair(rng: Rng, count: int, *, name: str, grouped: bool) -> Comparison:
    measured, _ = sentences(name)
    owner, units = some_rows(rng, count, grouped=grouped)
    first, second = (measured.rows[sentence_rows(rng, owner, grouped=grouped)] for _ in range(2))
    return randomisation_test(
        measured.statistic,
        (first,),
        (second,),
        better=np.zeros(len(owner)),
        kind="corpus",
        units=units,
        resamples=RESAMPLES,
    )


def documents(rng: Rng, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Bytes of documents, of which the longest is as long as many others, and bits per byte."""
    return np.ceil(np.exp(rng.normal(7, 1, count))), rng.normal(1.5, 0.25, count).clip(0.3)


def authored(rng: Rng, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of authors with several documents."""
    author = owners(rng, count, 5)
    size, _ = documents(rng, len(author))
    bits = rng.normal(1.5, 0.2, count)[author] + rng.normal(0, 0.15, len(author))
    return author, size, bits


def of_documents(rng: Rng, count: int) -> tuple[Score, float]:
    size, bits = documents(rng, count)
    return jackknife(ratio, size * bits, size, weights=size).score(), 1.5


def of_authors(rng: Rng, count: int) -> tuple[Score, float]:
    author, size, bits = authored(rng, count)
    parts = [Units("author", author).sums(x) for x in (size * bits, size)]
    return jackknife(ratio, *parts, weights=parts[1]).score(), 1.5


@cache
def topics() -> np.ndarray:
    """Bits and bytes of each topic of the Python reference, half of which a model has learned."""
    from glassformer.data.catalog.python_reference import different_paragraphs

    texts = [text.encode() for _, text in sorted(different_paragraphs().items())]
    known = np.frombuffer(b"\n".join(texts[::2]), np.uint8).astype(np.int64)
    return np.array([[bits(known, text), len(text)] for text in texts[1::2] if text])


def bits(known: np.ndarray, text: bytes) -> float:
    """Of a text, by the counts of bytes after up to three others in another."""
    new = np.frombuffer(text, np.uint8).astype(np.int64)
    chance = np.full(len(new), 1 / 256)
    for order in range(4):
        before = [_before(some, order) for some in (known, new)]
        times = _times(before[0], before[1])
        together = _times(before[0] * 256 + known, before[1] * 256 + new)
        chance = (together + 5 * chance) / (times + 5)
    return float(-np.log2(chance).sum())


def _before(some: np.ndarray, order: int) -> np.ndarray:
    found = np.zeros(len(some), np.int64)
    for back in range(1, order + 1):
        found[back:] = found[back:] * 256 + some[:-back]
    return found


def _times(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    known, counts = np.unique(keys, return_counts=True)
    place = np.searchsorted(known, wanted).clip(max=len(known) - 1)
    return np.where(known[place] == wanted, counts[place], 0)


def of_topics(rng: Rng, count: int) -> tuple[Score, float]:
    every = topics()
    some = every[rng.integers(0, len(every), count)]
    score = jackknife(ratio, some[:, 0], some[:, 1], weights=some[:, 1]).score()
    return score, float(every[:, 0].sum() / every[:, 1].sum())


def mean_pair(rng: Rng, count: int, *, grouped: bool) -> Comparison:
    if grouped:
        author, size, bits_of = authored(rng, count)
        units, effect = Units("author", author), rng.normal(0, 0.1, (2, count))[:, author]
    else:
        (size, bits_of), units, effect = documents(rng, count), ROWS, rng.normal(0, 0.1, (2, count))
    first, second = size * (bits_of + effect)
    return randomisation_test(
        ratio,
        (first, size),
        (second, size),
        better=second - first,
        units=units,
        weights=size,
        resamples=RESAMPLES,
    )


def gain(rng: Rng, count: int) -> tuple[Score, float]:
    """Gains of explanations: most are small, some are large."""
    found = rng.exponential(0.2, count) - 0.05
    return jackknife(ratio, found, np.ones(count)).score(), 0.15


def rating_errors(rng: Rng, users: int, *, equal: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Errors of ratings from 1 to 5 by two systems, of users of whom some are erratic.

    Args:
        equal: Whether each user has ten ratings.
    """
    user = np.repeat(np.arange(users), 10) if equal else owners(rng, users)
    scale = 0.6 * np.exp(rng.normal(0, 0.4, users))[user]
    return user, (scale * rng.standard_t(5, (2, len(user)))).clip(-4, 4)


@cache
def true_rmse() -> float:
    _, (errors, _) = rating_errors(np.random.default_rng(1), 300_000)
    return float(np.sqrt((errors**2).mean()))


def rms(rng: Rng, users: int, *, equal: bool = False) -> tuple[Score, float]:
    user, (errors, _) = rating_errors(rng, users, equal=equal)
    return root_mean_square(errors, user).score(), true_rmse()


def rms_pair(rng: Rng, users: int) -> Comparison:
    user, both = rating_errors(rng, users)
    first, second = (root_mean_square(errors, user) for errors in both)
    return translation_comparison({"rmse": first}, {"rmse": second})["rmse"]


def calibration(rng: Rng, count: int, *, grouped: bool) -> tuple[Score, float]:
    """Answers that are surer than right by the truth."""
    truth = rng.choice([0.0, 0.1])
    owner, units = some_rows(rng, count, grouped=grouped)
    sure = rng.uniform(0.6, 1, len(owner))
    shift = rng.normal(0, 0.05, count)[owner] if grouped else 0.0
    right = rng.random(len(owner)) < sure - truth + shift
    return calibration_error(sure[:, None], right[:, None], units), truth


def _rows(
    score: str, kind: str, trial: Callable[..., object], pair: Callable[..., object] | None
) -> Iterator[Row]:
    for grouped in (False, True):
        unit = "groups" if grouped else "rows"

        def drawn(rng: Rng, n: int, grouped: bool = grouped) -> tuple[Score, float]:
            return trial(rng, n, grouped=grouped)  # type: ignore[return-value]

        yield Row(score, kind, unit, grouped, trial=drawn)
    for grouped in (False, True) if pair is not None else ():
        unit = "groups" if grouped else "rows"

        def compared(rng: Rng, n: int, grouped: bool = grouped) -> Comparison:
            return pair(rng, n, grouped=grouped)  # type: ignore[misc, return-value]

        yield Row(f"difference of {score}", f"difference of {kind}", unit, grouped, pair=compared)


def corpus_of(name: str) -> tuple[Callable[..., object], Callable[..., object]]:
    """The simulations of one score of texts."""
    return (
        lambda rng, n, grouped: corpus(rng, n, name=name, grouped=grouped),
        lambda rng, n, grouped: corpus_pair(rng, n, name=name, grouped=grouped),
    )


def mean(rng: Rng, count: int, *, grouped: bool) -> tuple[Score, float]:
    return of_authors(rng, count) if grouped else of_documents(rng, count)


ROWS_OF_TABLE = (
    *_rows("accuracy, exact match", "share", share, share_pair),
    Row("hit rate, NDCG", "share", "groups", True, trial=share_of_users),
    *_rows("F1", "f1", f1, f1_pair),
    *_rows("error rates by word, character, symbol", "rate", rate, rate_pair),
    *_rows("BLEU", "corpus", *corpus_of("bleu")),
    *_rows("chrF", "corpus", *corpus_of("chrf")),
    *_rows("TER", "corpus", *corpus_of("ter")),
    *_rows("bits per byte, loss, perplexity", "mean", mean, mean_pair),
    Row("bits per byte of the Python reference", "mean", "rows", False, trial=of_topics),
    Row("faithfulness of explanations", "gain", "rows", False, trial=gain),
    Row("RMSE", "rms", "groups", True, trial=rms),
    Row("RMSE, ten ratings each", "rms", "groups", True, trial=partial(rms, equal=True)),
    Row("difference of RMSE", "difference of rms", "groups", True, pair=rms_pair),
    *_rows("calibration error", "calibration", calibration, None),
)


def measured(row: Row, count: int, trials: int = TRIALS) -> tuple[float, float | None]:
    """The share of intervals that hold the truth, and of p-values below 0.05 if there are any."""
    rng, held, alarms = np.random.default_rng([count, len(row.score)]), 0, 0
    with without_minimum():
        for _ in range(trials):
            if row.trial is not None:
                score, truth = row.trial(rng, count)
            else:
                assert row.pair is not None
                found, truth = row.pair(rng, count), 0.0
                score = found.difference
                alarms += found.p_value is not None and found.p_value < 0.05
            held += score.low - 1e-12 <= truth <= score.high + 1e-12
    return held / trials, None if row.pair is None else alarms / trials


def least(kind: str, coverages: Mapping[int, float]) -> int | None:
    """The number of units from which coverage is good enough; None if it never is."""
    most = 1.0 if kind in WIDE else HIGH
    good = [n for n, share in coverages.items() if LOW <= share <= most]
    bad = [n for n in coverages if n not in good]
    return min((n for n in good if n > max(bad, default=0)), default=None)


def line(row: Row, trials: int = TRIALS) -> str:
    """A line of the table."""
    found = {n: measured(row, n, trials) for n in COUNTS}
    cells = [f"{100 * share:.1f}" for share, _ in found.values()]
    alarms = [share for _, share in found.values() if share is not None]
    false = f"{100 * max(alarms):.1f}" if alarms else ""
    from_ = least(row.kind, {n: round(share, 3) for n, (share, _) in found.items()})
    return "| " + " | ".join([row.score, row.unit, *cells, false, str(from_)]) + " |"


def table(trials: int = TRIALS) -> str:
    """The table in Markdown."""
    header = ["score", "unit", *map(str, COUNTS), "p < 0.05", "holds from"]
    lines = ["| " + " | ".join(header) + " |", "|---|---|" + "---|" * (len(header) - 2)]
    for row in ROWS_OF_TABLE:
        lines.append(line(row, trials))
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the documentation")
    parser.add_argument("--trials", type=int, default=TRIALS, help="simulations of each cell")
    given = parser.parse_args()
    found = table(given.trials)
    if not given.write:
        print(found)
        return
    text = DOCS.read_text(encoding="utf-8")
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    DOCS.write_text(f"{text[:start]}\n{found}\n{text[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main()
