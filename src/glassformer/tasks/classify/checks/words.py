"""Words that give the label away.

A word leaks if it is in nearly every row of a label and in almost no other row. Two kinds of clean
data look like that. If labels are languages, or topics with a vocabulary of their own, a label has
many such words, so a word leaks only if it stands out; one that always comes first or last leaks in
any case. And if one label among many has such a word, as "weather" might, that is worth a note; it
is a warning if words predict nearly every row.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from glassformer.data.doctor.check import Finding
from glassformer.tasks.shared.text_checks import words_of
from glassformer.wording import counted

COVERAGE = 0.9  # of a label's rows have the word
STRAY = 0.02  # of the other rows may have it, too
PURITY = 0.9  # of the rows with the word have the label
OWN_VOCABULARY = 5  # more words that are half as good mean a vocabulary, not a leak
ENOUGH = 10  # rows with the label, and rows without it
EDGE = 5  # words at either end of a text that may name the label
NEAR = 200  # characters searched for them
NAMED = 0.5  # of the rows name their label there
ANSWERED = 0.1  # of the errors of always guessing the most frequent label remain

Feature = tuple[str, str]  # where in the text ("in", "first in", "last in"), and the word


@dataclass(frozen=True, slots=True)
class Sampled:
    """What is kept of a row to search it for leaks.

    Attributes:
        others: Columns without a role.
    """

    number: int
    text: str
    labels: frozenset[str]
    others: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Leak:
    """A word and the label it gives away."""

    place: str
    word: str
    label: str
    coverage: float
    stray: float

    def __str__(self) -> str:
        return (
            f"{self.word[:40]!r} is {self.place} {self.coverage:.0%} of the texts of "
            f"{self.label[:40]!r} and {self.stray:.0%} of the others"
        )


def leaking_words(rows: Sequence[Sampled]) -> Iterator[Finding]:
    """At most one finding: the words that give a label away, the best of each."""
    features = [features_of(row.text) for row in rows]
    found = find_leaks(rows, features)
    if not found:
        return
    label_of = {(leak.place, leak.word): leak.label for leak in found}
    texts = zip(rows, features, strict=True)
    with_it = [row.number for row, some in texts if some & label_of.keys()]
    more = f"; the same holds for {counted(len(found) - 1, 'more label')}" if found[1:] else ""
    what = f"{found[0]}{more}"
    advice = (
        "if new texts will not have the word, remove it, or choose the text with --columns text=..."
    )
    severity = "warning" if answers_most(rows, features, label_of) else "note"
    yield Finding("leaking word", severity, what, advice, with_it)


def features_of(text: str) -> set[Feature]:
    """Each word, and the first and last words of the text."""
    words = words_of(text)
    found = {("in", word) for word in words}
    if len(words) > 1:
        found |= {("first in", words[0]), ("last in", words[-1])}
    return found


def find_leaks(rows: Sequence[Sampled], features: Sequence[set[Feature]]) -> list[Leak]:
    """The best word of every label that has one, the best first."""
    having: Counter[str] = Counter(label for row in rows for label in row.labels)
    overall: Counter[Feature] = Counter()
    of_label: defaultdict[str, Counter[Feature]] = defaultdict(Counter)
    for row, some in zip(rows, features, strict=True):
        overall.update(some)
        for label in row.labels:
            of_label[label].update(some)
    found = []
    for label, count in having.items():
        without = len(rows) - count
        if min(count, without) >= ENOUGH:
            found += _best(label, of_label[label], overall, count, without)
    return sorted(found, key=lambda leak: (leak.stray - leak.coverage, leak.label))


def _best(
    label: str, of_label: Counter[Feature], overall: Counter[Feature], count: int, without: int
) -> list[Leak]:
    """The word that gives this label away best, if one leaks."""
    pure = []
    for (place, word), times in of_label.items():
        stray = overall[place, word] - times
        common, clean = times >= COVERAGE / 2 * count, stray <= STRAY * without
        if common and clean and times >= PURITY * (times + stray):
            pure.append(Leak(place, word, label, times / count, stray / without))
    vocabulary = {leak.word for leak in pure if leak.place == "in"}
    leaks = [
        leak
        for leak in pure
        if leak.coverage >= COVERAGE and (leak.place != "in" or len(vocabulary) <= OWN_VOCABULARY)
    ]
    ranked = sorted(leaks, key=lambda leak: (leak.stray - leak.coverage, leak.word, leak.place))
    return ranked[:1]


def answers_most(
    rows: Sequence[Sampled], features: Sequence[set[Feature]], label_of: dict[Feature, str]
) -> bool:
    """Whether these words alone predict nearly every row."""
    answers = [next((label_of[f] for f in some & label_of.keys()), None) for some in features]
    usual = _usual(row for row in rows)
    rest = _usual(row for row, answer in zip(rows, answers, strict=True) if answer is None)
    wrong = sum(
        (answer or rest) not in row.labels for row, answer in zip(rows, answers, strict=True)
    )
    return wrong <= ANSWERED * sum(usual not in row.labels for row in rows)


def _usual(rows: Iterator[Sampled]) -> str:
    """The most frequent label; empty without rows."""
    counts = Counter(label for row in rows for label in row.labels)
    return counts.most_common(1)[0][0] if counts else ""


def named_labels(rows: Sequence[Sampled]) -> Iterator[Finding]:
    """At most one finding: texts that begin or end with the name of their label."""
    by_word: defaultdict[str, list[tuple[str, set[str]]]] = defaultdict(list)
    for label in sorted({label for row in rows for label in row.labels}):
        words = words_of(label)
        if words:
            by_word[words[0]].append((label, set(words)))
    right, wrong = [], 0
    for row in rows:
        edge = {*words_of(row.text[:NEAR])[:EDGE], *words_of(row.text[-NEAR:])[-EDGE:]}
        names = {
            label for word in edge for label, all_of in by_word.get(word, ()) if all_of <= edge
        }
        if names and names <= row.labels:
            right.append(row.number)
        wrong += not names <= row.labels
    if len(right) >= max(ENOUGH, NAMED * len(rows)) and wrong <= STRAY * len(rows):
        what = (
            f"{counted(len(right), 'text')} of {len(rows):,} begin or end with the name of "
            f"their label"
        )
        advice = "the input gives the answer away; remove it from the text"
        yield Finding("label in the text", "warning", what, advice, right)
