"""Rows joined end to end."""

import numpy as np
from hypothesis import given, strategies as st

from glassformer.data.jagged import Jagged

ROWS = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=6)


@given(ROWS)
def test_values_are_put_around_every_row(rows):
    joined = Jagged.of([np.array(row, dtype=np.int32) for row in rows])
    own = np.arange(len(rows)) + 10
    assert [row.tolist() for row in joined.rows] == rows
    assert [row.tolist() for row in joined.after(7).rows] == [[*row, 7] for row in rows]
    found = joined.before(own).after(8)
    assert [row.tolist() for row in found.rows] == [
        [first, *row, 8] for first, row in zip(own.tolist(), rows, strict=True)
    ]
    assert joined.values.dtype == np.int32


@given(ROWS)
def test_every_value_knows_its_row_and_its_place(rows):
    joined = Jagged.of([np.array(row, dtype=np.int32) for row in rows])
    assert joined.row_of.tolist() == [n for n, row in enumerate(rows) for _ in row]
    assert joined.places.tolist() == [place for row in rows for place in range(len(row))]
    assert joined.starts.tolist() == [sum(map(len, rows[:row])) for row in range(len(rows))]
