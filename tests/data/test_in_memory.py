"""Rows given in Python: lists of dicts or tuples, DataFrames and Arrow tables."""

from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from glassformer.data.in_memory import read_held, sources_of
from glassformer.data.rows import InMemory
from glassformer.errors import GlassformerError
from glassformer.tasks.classify.data import LabelledTexts

ROWS = [{"text": "a film", "label": 1, "stars": 2.5}, {"text": None, "label": 0, "stars": 3.0}]
AS_TEXT = [
    {"text": "a film", "label": "1", "stars": "2.5"},
    {"text": "", "label": "0", "stars": "3"},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
TABLES = {
    "list": ROWS,
    "DataFrame": pandas.DataFrame(ROWS),
    "DataFrame of polars": polars.DataFrame(COLUMNS),
    "table": pyarrow.table(COLUMNS),
}


def read(source):
    return list(read_held(source, LabelledTexts.roles))


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_gives_the_same_rows(kind):
    (source,) = sources_of([TABLES[kind]])
    assert source == f"the {kind.partition(' ')[0]}"
    for _ in range(2):  # it can be read again
        assert [row.values for row in read(source)] == AS_TEXT
    assert [row.where for row in read(source)] == [f"row 1 of {source}", f"row 2 of {source}"]


def test_tuples_have_their_values_in_the_order_of_the_roles():
    (source,) = sources_of([[("a film", "good"), ("a dog", ["bad", "dull"])]])
    first, second = read(source)
    assert first.values == {"text": "a film", "label": "good"}
    assert second.values == {"text": "a dog", "label": ["bad", "dull"]}
    (longer,) = sources_of([[("a", "b", "c")]])
    with pytest.raises(GlassformerError, match=r"row 1 of the list: 3 values, .* \(text, label\)"):
        read(longer)


def test_values_of_other_libraries_become_those_of_python():
    values = {"text": Path("a/b.txt"), "label": np.bool_(True), "x": np.float32(2), "y": pandas.NA}
    values |= {"many": np.array([1, 2]), "z": np.float64(0.5), "n": np.int64(7)}
    (row,) = read(InMemory("the list", [values]))
    texts = {"text": "a/b.txt", "label": "true", "x": "2", "y": "", "z": "0.5", "n": "7"}
    assert row.values == texts | {"many": ["1", "2"]}


def test_paths_stay_paths_however_they_are_given():
    assert sources_of(["a.csv", Path("b.csv")]) == ("a.csv", "b.csv")
    assert sources_of([["a.en", Path("a.de")]]) == ("a.en", "a.de")
    assert not any(isinstance(name, InMemory) for name in sources_of(["a.csv"]))


def test_names_say_what_rows_are_for_and_count_them_if_there_are_several():
    assert sources_of([ROWS], "validation") == ("the validation list",)
    assert sources_of([ROWS, "a.csv", TABLES["table"]]) == ("list 1", "a.csv", "table 2")
    assert sources_of([[ROWS, ROWS]]) == ("list 1", "list 2")
    (source,) = sources_of([iter(ROWS)])
    assert len(read(source)) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "a list without rows was given"),
        ([1, 2], "row 1 of the list: neither a dict nor a tuple, but 1"),
        ([{"text": "a"}, "b"], "row 2 of the list: neither a dict nor a tuple, but 'b'"),
        ({"text": ["a"]}, "a list of dicts or tuples, a DataFrame or an Arrow table, got dict"),
        (3, "data must be a path, .* got int"),
    ],
)
def test_anything_else_is_refused_in_words(given, message):
    with pytest.raises(GlassformerError, match=message):
        sources_of([given])
