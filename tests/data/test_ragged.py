"""Rows of different lengths in a memory-mapped file."""

import copy

import numpy as np
import pytest
from hypothesis import given, strategies as st

from glassformer.data.ragged import Ragged, Texts
from glassformer.errors import GlassformerError

ROWS = [np.array(row, dtype=np.int32) for row in ([3, 1, 4], [], [1, 5, 9, 2, 6], [5])]
BROKEN = ["", "Straße", "文字", "a\x00b\r\n", "👩‍💻", "lone \udc80 byte \ud800", "é"]


def same(rows, others):
    return len(rows) == len(others) and all(
        np.array_equal(row, other) for row, other in zip(rows, others, strict=True)
    )


def test_what_is_written_is_read(tmp_path):
    written = Ragged.write(tmp_path / "new" / "tokens", iter(ROWS), np.uint16)
    opened = Ragged.open(tmp_path / "new" / "tokens")
    for ragged in (written, opened):
        assert same(list(ragged), ROWS)
        assert ragged[0].dtype == np.uint16
        assert ragged.lengths.tolist() == [3, 0, 5, 1]
        assert ragged.ends.tolist() == [3, 3, 8, 9]
        assert same([ragged[-1], ragged[-4]], [ROWS[-1], ROWS[0]])


@pytest.mark.parametrize("rows", [[], [np.zeros(0)], [np.zeros(0), np.zeros(0)]])
def test_nothing_is_a_ragged_too(tmp_path, rows):
    ragged = Ragged.write(tmp_path / "tokens", rows)
    assert same(list(ragged), rows)
    assert ragged.lengths.tolist() == [0] * len(rows)


def test_a_row_is_a_view_of_the_file_that_cannot_be_written_to(tmp_path):
    ragged = Ragged.write(tmp_path / "tokens", ROWS)
    assert np.shares_memory(ragged[2], ragged.values)
    with pytest.raises(ValueError, match="read-only"):
        ragged[2][0] = 7


@pytest.mark.parametrize("row", [4, -5])
def test_a_row_beyond_the_last_is_refused(tmp_path, row):
    ragged = Ragged.write(tmp_path / "tokens", ROWS)
    with pytest.raises(IndexError, match=f"row {row} of 4"):
        ragged[row]


def test_rows_are_written_as_they_come(tmp_path):
    def rows():
        for row in ROWS:
            yield row
            assert list(tmp_path.glob("*.part"))

    assert same(list(Ragged.write(tmp_path / "tokens", rows())), ROWS)


def test_a_failure_leaves_what_was_there_and_nothing_half_written(tmp_path):
    def failing():
        yield ROWS[0]
        raise KeyError("in the middle")

    Ragged.write(tmp_path / "tokens", ROWS)
    for stem in ("tokens", "others"):
        with pytest.raises(KeyError):
            Ragged.write(tmp_path / stem, failing())
    assert same(list(Ragged.open(tmp_path / "tokens")), ROWS)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "tokens.ends.npy",
        "tokens.values.npy",
    ]


def test_a_store_is_replaced_while_its_old_rows_stay_readable(tmp_path):
    old = Ragged.write(tmp_path / "tokens", ROWS)
    new = Ragged.write(tmp_path / "tokens", ROWS[2:])
    assert same(list(old), ROWS)
    assert same(list(new), ROWS[2:])


def test_a_number_too_large_for_the_dtype_is_refused(tmp_path):
    with pytest.raises(ValueError, match="row 1 has values that do not fit uint16"):
        Ragged.write(tmp_path / "tokens", [np.array([1]), np.array([65536])], np.uint16)


def test_a_row_with_two_axes_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"row 0 has shape \(2, 3\)"):
        Ragged.write(tmp_path / "tokens", [np.zeros((2, 3))])


@pytest.mark.parametrize("part", ["values", "ends"])
@pytest.mark.parametrize("kept", [0, 5, 100, -3])
def test_a_file_cut_short_is_named(tmp_path, part, kept):
    Ragged.write(tmp_path / "tokens", ROWS)
    path = tmp_path / f"tokens.{part}.npy"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(GlassformerError, match=rf"tokens\.{part}\.npy: not a valid numpy file"):
        Ragged.open(tmp_path / "tokens")


def test_files_of_two_stores_are_told_apart(tmp_path):
    Ragged.write(tmp_path / "tokens", ROWS)
    Ragged.write(tmp_path / "others", ROWS[1:])
    (tmp_path / "others.ends.npy").replace(tmp_path / "tokens.ends.npy")
    with pytest.raises(GlassformerError, match="two files do not match"):
        Ragged.open(tmp_path / "tokens")


def test_a_row_that_ends_before_it_begins_is_refused(tmp_path):
    ragged = Ragged.write(tmp_path / "tokens", ROWS)
    ends = ragged.ends.copy()
    ends[1] += 1000
    np.save(tmp_path / "tokens.ends.npy", ends)
    with pytest.raises(GlassformerError, match=r"tokens\.ends\.npy: a row ends before it begins"):
        Ragged.open(tmp_path / "tokens")


@pytest.mark.parametrize("value", [-1, 7, 2**31 - 1])
def test_a_token_that_there_is_not_is_refused(tmp_path, value):
    Ragged.write(tmp_path / "tokens", [np.array([6, 0]), np.array([value])])
    Ragged.open(tmp_path / "tokens")
    with pytest.raises(GlassformerError, match=r"values\.npy: holds numbers outside 0 to"):
        Ragged.open(tmp_path / "tokens", below=7)
    Ragged.write(tmp_path / "tokens", [np.array([6, 0])])
    Ragged.open(tmp_path / "tokens", below=7)


@given(st.sampled_from(["values", "ends"]), st.integers(0, 200), st.integers(1, 255))
def test_a_byte_that_changed_gives_rows_or_one_line(tmp_path_factory, part, at, change):
    stem = tmp_path_factory.mktemp("changed") / "tokens"
    Ragged.write(stem, ROWS)
    path = stem.with_name(f"tokens.{part}.npy")
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= change
    path.write_bytes(content)
    rows, told = [], ""
    try:
        rows = list(Ragged.open(stem, below=2**15))
    except GlassformerError as error:
        told = str(error)
    assert "\n" not in told
    assert all(0 <= row.min() <= row.max() < 2**15 for row in rows if len(row))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(GlassformerError, match=r"none\.values\.npy: cannot be read"):
        Ragged.open(tmp_path / "none")


def test_a_file_that_could_run_code_is_refused(tmp_path):
    np.save(tmp_path / "tokens.values.npy", np.array([print], dtype=object), allow_pickle=True)
    np.save(tmp_path / "tokens.ends.npy", np.array([1]))
    with pytest.raises(GlassformerError, match="not a valid numpy file"):
        Ragged.open(tmp_path / "tokens")


@pytest.mark.parametrize("values", [np.zeros((2, 2)), np.float32(1)])
def test_an_array_of_another_shape_is_refused(tmp_path, values):
    np.save(tmp_path / "tokens.values.npy", values)
    np.save(tmp_path / "tokens.ends.npy", np.array([1]))
    with pytest.raises(GlassformerError, match=r"tokens\.values\.npy: not a one-dimensional array"):
        Ragged.open(tmp_path / "tokens")


def test_a_copy_maps_the_same_files(tmp_path):
    ragged = Ragged.write(tmp_path / "tokens", ROWS)
    copied = copy.deepcopy(ragged)
    assert same(list(copied), ROWS)
    assert copied.values.base is not None


def test_texts_come_back_as_they_were_even_broken_ones(tmp_path):
    texts = Texts.write(tmp_path / "texts", iter(BROKEN))
    assert list(texts) == BROKEN
    assert list(Texts.open(tmp_path / "texts")) == BROKEN
    assert len(texts) == len(BROKEN)
    assert texts[-2] == BROKEN[-2]


@given(st.lists(st.text(st.characters(), max_size=7), max_size=5))
def test_any_texts_come_back(tmp_path_factory, texts):
    assert list(Texts.write(tmp_path_factory.getbasetemp() / "any", texts)) == texts


def test_numbers_are_not_taken_for_text(tmp_path):
    Ragged.write(tmp_path / "tokens", ROWS)
    with pytest.raises(GlassformerError, match="holds int32 numbers instead of bytes of text"):
        Texts.open(tmp_path / "tokens")


@given(st.lists(st.integers(0, len(ROWS) - 1), min_size=1), st.integers(1, 6))
def test_rows_are_taken_in_any_order_and_cut(tmp_path_factory, chosen, longest):
    ragged = Ragged.write(tmp_path_factory.mktemp("taken") / "tokens", ROWS)
    taken = ragged.take(np.array(chosen), longest)
    assert same(taken.rows, [ROWS[row][:longest] for row in chosen])


def test_slices_of_rows_are_taken_from_where_each_starts(tmp_path):
    ragged = Ragged.write(tmp_path / "tokens", ROWS)
    longest = int(ragged.lengths.argmax())
    rows, starts, lengths = (
        np.array([longest, 0, longest]),
        np.array([1, 0, 0]),
        np.array([2, 1, 0]),
    )
    taken = ragged.slices(rows, starts, lengths)
    assert same(taken.rows, [ROWS[longest][1:3], ROWS[0][:1], ROWS[longest][:0]])
    assert ragged.starts.tolist() == [sum(map(len, ROWS[:row])) for row in range(len(ROWS))]
