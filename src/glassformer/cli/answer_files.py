"""Predictions as a file, each beside the row that it answers: CSV, TSV, JSON Lines or Parquet.

JSON Lines have all that `predict --json` prints. The others are flat: a column for every plain
value, one for each of a few probabilities, and for a list of names with scores these names.

CSV and TSV are for people, who open them in a spreadsheet. What it would take for a formula gets an
apostrophe before it; a number such as -0.5 stays one. A program that wants every cell as it was
takes JSON Lines or Parquet.
"""

import csv
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from glassformer.cli.answers import Show
from glassformer.cli.inputs import Placed, ReadAhead, answer_to
from glassformer.data.rows import CONTINUED
from glassformer.errors import GlassformerError, install, refuse_unwritable
from glassformer.files import replacing, to_json
from glassformer.runs.run import Run
from glassformer.tasks.predictor import Partial, Prediction, scored_names
from glassformer.tasks.shared.text import TextPredictor
from glassformer.terminal import print_json, print_line
from glassformer.wording import counted

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?%?")
PLAIN_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d+)?([eE][-+]?\d+)?")  # no code such as 007
VECTORS = 256  # texts at a time
FEW = 30  # probabilities that get a column each
BETWEEN = "; "  # names of a list
NOTE = "note"  # what is to be known of an input, such as that it is empty
OURS = "predicted_"  # before the name of an answer that is also a column of the table


class AnswerFile:
    """Collects answers while it is open, and writes them when all are there.

    Args:
        out: Its name ends in a format of FORMATS.
        inputs: Files that are read meanwhile, which it must not replace.
        vectors: Whether the answers are vectors, which may also be an array of numpy.
    """

    def __init__(self, out: Path, inputs: Iterable[Path] = (), *, vectors: bool = False) -> None:
        self.out, self.suffix = out, out.suffix.lower()
        fitting = [suffix for suffix in FORMATS if vectors or suffix != ".npy"]
        if self.suffix not in fitting:
            raise GlassformerError(
                f"--out {out}: unknown format {out.suffix!r}; end the name in {', '.join(fitting)}"
            )
        if self.suffix == ".parquet" and find_spec("pyarrow") is None:
            raise GlassformerError(
                f"--out {out}: Parquet needs pyarrow, which is not installed; {install('tables')}, "
                f"or write .csv"
            )
        refuse_unwritable(out)
        if any(out.resolve() == path.resolve() for path in inputs):
            raise GlassformerError(f"--out {out}: is also read; name another file")
        self.count = 0
        self.spool: IO[str] = StringIO()

    def __enter__(self) -> "AnswerFile":
        self.spool = tempfile.TemporaryFile("w+", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        self.spool.close()

    @property
    def is_flat(self) -> bool:
        """Whether it has one plain value in each cell."""
        return self.suffix not in WHOLE

    def add(self, row: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Add the answer to a row."""
        row = {name: value for name, value in row.items() if name != CONTINUED}
        self.spool.write(to_json([row, answer]) + "\n")
        self.count += 1

    def save(self) -> None:
        """Write all rows with their answers."""
        taken = dict.fromkeys(name for row, _ in self._pairs() for name in row)
        typed = self._number_columns() if self.suffix in TYPED else frozenset[str]()
        names = dict(taken)  # first, whatever file they are of
        for row in self._joined(taken, typed):
            names |= dict.fromkeys(row)
        with replacing(self.out) as half:
            columns = sorted(names, key=NOTE.__eq__)  # notes are last
            FORMATS[self.suffix](half, columns, self._joined(taken, typed))

    def _form(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """An answer as the format can hold it."""
        return flat(answer, lists=self.suffix in TYPED) if self.is_flat else answer

    def _pairs(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        self.spool.seek(0)
        for line in self.spool:
            row, answer = json.loads(line)
            yield row, answer

    def _joined(self, taken: Collection[str], typed: Collection[str]) -> Iterator[dict[str, Any]]:
        """Each row with its answer, whose names never hide a column.

        Args:
            taken: The columns of all rows.
            typed: Those that hold numbers.
        """
        repeated = self._repeated() if self.is_flat else frozenset[str]()
        for row, answer in self._pairs():
            values = {name: as_number(v) if name in typed else v for name, v in row.items()}
            for name, value in self._form(answer).items():
                if name in repeated:
                    continue
                while name in taken:
                    name = OURS + name
                values[name] = value
            yield values

    def _repeated(self) -> frozenset[str]:
        """Values of answers that say no more than the predictions, such as the label."""
        same, others = set[str](), {"prediction"}
        for _, answer in self._pairs():
            values = self._form(answer)
            for name, value in values.items():
                known = value in ("", None) or value == values.get("prediction")
                (same if known else others).add(name)
        return frozenset(same - others - {"confidence"})

    def _number_columns(self) -> frozenset[str]:
        """Columns of the rows that hold numbers only."""
        numbers, others = set[str](), set[str]()
        for row, _ in self._pairs():
            for name, value in row.items():
                is_number = isinstance(value, str) and PLAIN_NUMBER.fullmatch(value)
                if value != "":
                    (numbers if is_number else others).add(name)
        return frozenset(numbers - others)


def as_number(cell: str) -> int | float | None:
    """The number in a cell; None for an empty one.

    >>> as_number("17"), as_number("-0.5"), as_number("")
    (17, -0.5, None)
    """
    if not cell:
        return None
    return int(cell) if re.fullmatch(r"-?\d+", cell) else float(cell)


def flat(answer: Mapping[str, Any], *, lists: bool = False) -> dict[str, Any]:
    """The plain values of an answer, one for each cell.

    Args:
        lists: Whether a cell may hold the numbers of a vector.

    >>> flat({"prediction": "a", "probabilities": {"a": 0.8, "b": 0.2}})
    {'prediction': 'a', 'probabilities.a': 0.8, 'probabilities.b': 0.2}
    >>> flat({"items": [{"item": "a", "rating": 4.0}, {"item": "b", "rating": 3.0}]})
    {'items': 'a; b'}
    >>> flat({"prediction": None, "confidence": None, "empty": True})
    {'prediction': None, 'confidence': None, 'note': 'empty'}
    """
    found: dict[str, Any] = {}
    for name, value in answer.items():
        if name in ("empty", "unknown", "reason", NOTE):
            continue
        if isinstance(value, str | int | float | None):
            found[name] = value
        elif isinstance(value, Mapping):
            if len(value) <= FEW and all(isinstance(one, int | float) for one in value.values()):
                found |= {f"{name}.{key}": one for key, one in value.items()}
        elif value and all(isinstance(one, str) for one in value):
            found[name] = BETWEEN.join(value)
        elif names := scored_names(value):
            found[name] = BETWEEN.join(one for one, _ in names)
        elif all(isinstance(one, float | None) for one in value):  # a vector
            numbered = {f"{name}.{number}": one for number, one in enumerate(value)}
            found |= {name: value} if lists else numbered
    note = answer.get("reason") or answer.get(NOTE) or ("empty" if answer.get("empty") else None)
    return found | ({NOTE: note} if note else {})


def for_people(value: Any) -> str:
    """A cell as a spreadsheet shows it, and never runs it.

    >>> [for_people(value) for value in ("=1+1", "@name", "- yes", "-0.5", -0.5, None, True)]
    ["'=1+1", "'@name", "'- yes", '-0.5', '-0.5', '', 'true']
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return to_json(value)
    text = "" if value is None else str(value)
    if text.startswith(FORMULA) and not NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def _write_delimited(path: Path, names: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    _write_cells(path, names, rows, ",")


def _write_tabs(path: Path, names: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    _write_cells(path, names, rows, "\t")


def _write_cells(
    path: Path, names: Sequence[str], rows: Iterable[dict[str, Any]], delimiter: str
) -> None:
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(map(for_people, names))
        for row in rows:
            writer.writerow(for_people(row.get(name)) for name in names)


def _write_json_lines(path: Path, names: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{to_json(row)}\n" for row in rows)


def _write_parquet(path: Path, names: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    import pyarrow  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]

    columns: dict[str, list[Any]] = {name: [] for name in names}
    for row in rows:
        for name in names:
            columns[name].append(row.get(name))
    arrays = {name: pyarrow.array(_alike(values)) for name, values in columns.items()}
    pyarrow.parquet.write_table(pyarrow.table(arrays), path)


def _alike(values: list[Any]) -> list[Any]:
    """Values of one type: as text, if there are several."""
    kinds = {float if type(value) is int else type(value) for value in values if value is not None}
    if len(kinds) < 2:
        return values
    return [None if value is None else for_program(value) for value in values]


def for_program(value: Any) -> str:
    """A value as text."""
    return value if isinstance(value, str) else to_json(value)


def write_answers(
    run: Run,
    options: Mapping[str, Any],
    shown: Show,
    inputs: Iterator[Placed],
    file: AnswerFile,
) -> None:
    """Write predictions beside the rows of the inputs; one that fails leaves the others alone."""
    faults, first = 0, None
    with file:
        for placed, found in _each_answered(run, options, inputs):
            if isinstance(found, GlassformerError):
                faults, first = faults + 1, first or found
                shown.shown += 1
                none = {"prediction": None, "confidence": None, NOTE: str(found)}
                file.add(_row_of(placed), none)
            else:
                shown.count(found)
                file.add(_row_of(placed), _values_of(placed, found, shown, file))
        if first is not None and faults == file.count:
            raise first
        file.save()
    say_written(file)
    if faults:
        print_line(
            f"glassformer: {counted(faults, 'row')} without an answer because of an error, which "
            f"is in the column {NOTE}; the first: {first}",
            stderr=True,
        )
    shown.sum_up()


def _row_of(placed: Placed) -> Mapping[str, Any]:
    """The row of a table, or a row made of the input."""
    return {"input": str(placed.given)} if placed.row is None else placed.row


def _values_of(placed: Placed, found: Prediction, shown: Show, file: AnswerFile) -> dict[str, Any]:
    """A prediction as plain values; nothing that takes long where it would be left out."""
    if found.empty:
        return {"prediction": None, "confidence": None, "empty": True}
    if file.is_flat:
        costly = getattr(found.details, "costly", ())
        cheap = {name: found.details[name] for name in found.details if name not in costly}
        guess = found.guess and replace(found.guess, details={})
        found = replace(found, details=cheap, guess=guess)
    values = shown.values(placed.given, found) | ({NOTE: found.note} if found.note else {})
    del values["input"]
    return values


def _each_answered(
    run: Run, options: Mapping[str, Any], inputs: Iterator[Placed]
) -> Iterator[tuple[Placed, Prediction | GlassformerError]]:
    """Inputs with their predictions; an input that cannot be answered, with the error."""
    ahead = ReadAhead(inputs)
    while True:
        try:
            for found in run.predict_partly(ahead, **options):
                if not isinstance(found, Partial):
                    yield ahead.waiting.popleft(), found
            return
        except GlassformerError:
            if ahead.failed or not ahead.waiting:
                raise
        while ahead.waiting:
            placed = ahead.waiting.popleft()
            try:
                yield placed, answer_to(run, options, placed)
            except GlassformerError as error:
                yield placed, error


def write_vectors(run: Run, inputs: Iterator[Placed], file: AnswerFile | None) -> None:
    """Write the vectors of texts beside their rows, or print a line of JSON for each."""
    run.refuse_without_vectors()
    assert isinstance(run.predictor, TextPredictor)
    marks = Counter[str]()
    with file or nullcontext():
        while some := list(islice(inputs, VECTORS)):
            texts = ["" if placed.given is None else str(placed.given) for placed in some]
            vectors, strange = run.embed(texts), run.predictor.are_unknown(texts)
            for placed, text, vector, is_strange in zip(some, texts, vectors, strange, strict=True):
                mark = "empty" if not text.strip() else "unknown" if is_strange else ""
                values = {"embedding": None if mark == "empty" else vector.tolist()}
                values |= {mark: True} if mark else {}
                marks[mark] += 1
                if file is None:
                    print_json({"input": text, **values}, indent=None, flush=False)
                else:
                    file.add(_row_of(placed), values)
            sys.stdout.flush()
        if file is not None:
            file.save()
            say_written(file)
    of = f"of {counted(marks.total(), 'text')}"
    if empty := marks["empty"]:
        print_line(f"glassformer: empty, and so without a vector: {empty:,} {of}", stderr=True)
    if unknown := marks["unknown"]:
        told = f"nothing in {unknown:,} {of} was seen in training: the vectors mean little"
        print_line(f"glassformer: {told}", stderr=True)


def say_written(file: AnswerFile) -> None:
    """Say what was written."""
    print_line(f"glassformer: wrote {file.out}: {counted(file.count, 'row')}", stderr=True)


def _write_numpy(path: Path, names: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    vectors = [row["embedding"] for row in rows]
    width = next((len(vector) for vector in vectors if vector), 0)
    empty = [np.nan] * width
    array = np.array([vector or empty for vector in vectors], dtype=np.float32)
    with path.open("wb") as file:
        np.save(file, array.reshape(len(vectors), width), allow_pickle=False)


Writer = Callable[[Path, Sequence[str], Iterable[dict[str, Any]]], None]
FORMATS: dict[str, Writer] = {
    ".csv": _write_delimited,
    ".tsv": _write_tabs,
    ".jsonl": _write_json_lines,
    ".parquet": _write_parquet,
    ".npy": _write_numpy,
}
WHOLE = (".jsonl", ".npy")  # formats for nested values
TYPED = (".jsonl", ".parquet")  # formats that tell numbers from text
