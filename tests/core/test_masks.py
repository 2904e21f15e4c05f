"""Masks: pictures of every rule, and laws that any combination of them keeps."""

from dataclasses import FrozenInstanceError
from textwrap import dedent
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import given, settings, strategies as st

from glassformer.core import masks
from glassformer.core.layout import Layout
from glassformer.core.masks import causal, documents, everything, prefix, valid_lengths, window

ROWS, T, S = 3, 5, 7  # all different and prime, so a swapped axis cannot hide
QUERIES, KEYS = Layout.full(ROWS, T), Layout.full(ROWS, S)

PICTURES = {
    everything: """
        ###
        ###
        ###
    """,
    causal: """
        #...
        ##..
        ###.
        ####
    """,
    window(1): """
        #..
        .#.
        ..#
    """,
    window(3): """
        ###..
        ####.
        #####
        .####
        ..###
    """,
    causal & window(2): """
        #...
        ##..
        .##.
        ..##
    """,
    prefix(2): """
        ##..
        ##..
        ##..
        ##..
    """,
    causal | prefix(3): """
        ###..
        ###..
        ###..
        ####.
        #####
    """,
    masks.chunks(2, 1): """
        ##.....
        ##.....
        ####...
        ####...
        ..####.
        ..####.
        ....###
    """,
    documents([2, 1, 2]): """
        ##....
        ##....
        ..#...
        ...###
        ...###
        ...###
    """,
    causal & documents([2, 3]): """
        #....
        ##...
        ..#..
        ..##.
        ..###
    """,
    valid_lengths([[3, 0, 1, 4, 2]]): """
        ###..
        .....
        #....
        ####.
        ##...
    """,
    (causal & window(2)) | (prefix(1) & documents([3, 2])): """
        #....
        ##...
        ###..
        ..##.
        ...##
    """,
    (causal | prefix(3)) & (window(2) | documents([1, 4])): """
        ##...
        ###..
        .##..
        .###.
        .####
    """,
    causal & (window(2) & prefix(3)): """
        #....
        ##...
        .##..
        ..#..
        .....
    """,
}

PICTURES_BY_ROW = {
    documents([[1, 3], [2, 2], [3, 1]]): """
        #...  ##..  ###.
        .###  ##..  ###.
        .###  ..##  ###.
        .###  ..##  ...#
    """,
    valid_lengths([[1, 2, 3, 1], [4, 0, 1, 1], [0, 3, 2, 0]]): """
        #...  ####  ....
        ##..  ....  ###.
        ###.  #...  ##..
        #...  #...  ....
    """,
    valid_lengths([1, 3, 0]): """
        #...  ###.  ....
        #...  ###.  ....
        #...  ###.  ....
        #...  ###.  ....
    """,
    causal & documents([[1, 3], [2, 2], [3, 1]]): """
        #...  #...  #...
        .#..  ##..  ##..
        .##.  ..#.  ###.
        .###  ..##  ...#
    """,
    window(2) | valid_lengths([2, 0, 3]) & causal: """
        ##..  ##..  ##..
        ###.  ###.  ###.
        ####  .###  ####
        ####  ..##  ####
    """,
}

each_mask = pytest.mark.parametrize("mask", [*PICTURES, *PICTURES_BY_ROW], ids=str)


def lines(table):
    """What one row may see, drawn."""
    return ["".join("#" if seen else "." for seen in line) for line in table.tolist()]


def cells(mask):
    """The rule asked one cell at a time, with plain integers."""
    rows, queries, keys = range(ROWS), range(T), range(S)
    return torch.tensor([[[mask.sees(b, q, k) for k in keys] for q in queries] for b in rows])


# Pictures


@pytest.mark.parametrize(("mask", "picture"), PICTURES.items(), ids=map(str, PICTURES))
def test_every_rule_looks_as_drawn(mask, picture):
    picture = dedent(picture).strip()
    assert mask.picture(len(picture.splitlines())) == picture


@pytest.mark.parametrize(
    ("mask", "picture"), PICTURES_BY_ROW.items(), ids=map(str, PICTURES_BY_ROW)
)
def test_rules_by_row_look_as_drawn(mask, picture):
    columns = zip(*(line.split() for line in dedent(picture).strip().splitlines()), strict=True)
    for row, column in enumerate(columns):
        assert mask.picture(4, row=row) == "\n".join(column)


def test_more_keys_than_queries_are_drawn_as_a_wide_picture():
    assert (causal | prefix(3)).picture(2, 5) == "###..\n###.."
    assert valid_lengths([[4, 1]]).picture(2, 5) == "####.\n#...."


@each_mask
def test_notebooks_get_valid_xml_with_a_square_for_each_visible_cell(mask):
    step, svg = 14, ElementTree.fromstring(mask._repr_svg_())
    squares = [(int(r.get("x")), int(r.get("y"))) for r in svg.findall("{*}g/{*}rect")]
    visible = [(k * step, q * step) for q in range(12) for k in range(12) if mask.sees(0, q, k)]
    assert sorted(squares) == sorted(visible)
    assert svg.find("{*}title").text == f"{mask}: one line per query, one column per key"


# Tables


def test_keys_that_are_padding_are_hidden_from_everyone():
    seen = (causal | prefix(3)).table(Layout.full(ROWS, 4), Layout.padded([2, 4, 0], longest=4))
    assert [lines(row[0]) for row in seen] == [
        ["##..", "##..", "##..", "##.."],
        ["###.", "###.", "###.", "####"],
        ["....", "....", "....", "...."],
    ]


def test_a_table_is_laid_out_once_when_all_rows_agree():
    assert causal.table(QUERIES, KEYS).shape == (1, 1, T, S)
    assert (causal & documents([[1]] * ROWS)).table(QUERIES, KEYS).shape == (ROWS, 1, T, S)


@pytest.mark.parametrize(
    ("mask", "line"),
    [
        (causal, "#####.."),
        (causal & window(3), "..###.."),
        (documents([3, 4]), "...####"),
        (valid_lengths([[1, 2, 3, 4, 6]]), "######."),
    ],
    ids=str,
)
def test_a_new_token_against_a_cache_sees_its_past(mask, line):
    token = Layout.full(ROWS, 1).shifted(torch.tensor([4]), reach=5)
    assert lines(mask.table(token, KEYS)[0, 0]) == [line]


def test_each_row_of_new_tokens_sees_from_where_it_stands():
    new = Layout.full(ROWS, 2).shifted(torch.tensor([4, 0, 2]), reach=6)
    seen = (causal & window(3)).table(new, Layout.padded([6, 2, 4]))
    assert [lines(row[0]) for row in seen] == [
        ["..###.", "...###"],
        ["#.....", "##...."],
        ["###...", ".###.."],
    ]


def test_a_rule_by_row_follows_its_row_to_where_it_stands():
    new = Layout.full(ROWS, 2).shifted(torch.tensor([1, 0, 2]), reach=4)
    seen = documents([[1, 3], [2, 2], [3, 1]]).table(new, Layout.full(ROWS, 4))
    assert [lines(row[0]) for row in seen] == [
        [".###", ".###"],
        ["##..", "##.."],
        ["###.", "...#"],
    ]


# Values


def read(text):
    """The mask that a text describes."""
    return eval(text, vars(masks))


@each_mask
def test_a_mask_prints_as_what_makes_it_again(mask):
    assert read(repr(mask)) == mask
    assert hash(read(repr(mask))) == hash(mask)


def test_masks_print_as_a_person_would_write_them():
    assert repr(causal & window(64)) == "causal & window(64)"
    assert repr(everything & (causal | prefix(3))) == "everything & (causal | prefix(3))"
    assert repr(documents([2, 3])) == "documents([2, 3])"
    assert repr(valid_lengths(torch.tensor([[1, 2], [0, 3]]))) == "valid_lengths([[1, 2], [0, 3]])"
    assert repr(valid_lengths([[1, 2]])) == "valid_lengths([[1, 2]])"
    assert repr(valid_lengths([[1], [2]])) == "valid_lengths([1, 2])"


def test_masks_that_say_the_same_are_one_key_and_others_are_not():
    assert len({causal & window(3), causal & window(3), window(3) & causal}) == 2
    assert len({causal | window(3), causal & window(3), window(3), prefix(3), window(2)}) == 5
    assert documents((2, 3)) == documents([2, 3]) != valid_lengths([2, 3])
    assert valid_lengths(torch.tensor([2, 3])) == valid_lengths([2, 3])


@each_mask
def test_a_mask_cannot_be_changed(mask):
    for name in [*vars(mask), "rows", "anything"]:
        with pytest.raises(FrozenInstanceError):
            setattr(mask, name, 1)


# Laws, of masks drawn as text and made in the test: the shape hook uses `random`, which may not run
# while hypothesis draws.

lengths = st.lists(st.integers(1, 4), min_size=1, max_size=4)
count = st.integers(0, S)
counts = st.lists(count, min_size=T, max_size=T)
a_row_each = st.lists(count, min_size=ROWS, max_size=ROWS)
bands = st.sampled_from(["everything", "causal"]) | st.integers(1, S).map("window({})".format)
rules = st.one_of(
    bands,
    st.integers(1, S).map("prefix({})".format),
    (lengths | st.lists(lengths, min_size=ROWS, max_size=ROWS)).map("documents({})".format),
    (a_row_each | st.lists(counts, min_size=ROWS, max_size=ROWS)).map("valid_lengths({})".format),
)


def combined(parts, signs="&|"):
    return st.tuples(parts, st.sampled_from(signs), parts).map(lambda p: "({} {} {})".format(*p))


any_mask = st.recursive(rules, combined, max_leaves=4)
any_band = st.recursive(bands, lambda parts: combined(parts, "&"), max_leaves=4)


@settings(max_examples=53)
@given(any_mask)
def test_a_table_and_a_picture_say_what_the_rule_says_cell_by_cell(text):
    mask, told = read(text), cells(read(text))
    assert mask.table(QUERIES, KEYS)[:, 0].expand(ROWS, T, S).equal(told)
    assert [mask.picture(T, S, row).splitlines() for row in range(ROWS)] == [*map(lines, told)]


@settings(max_examples=53)
@given(any_mask, any_mask)
def test_and_is_what_both_allow_and_or_is_what_either_allows(text, other):
    a, b = read(text), read(other)
    assert cells(a & b).equal(cells(a) & cells(b))
    assert cells(a | b).equal(cells(a) | cells(b))


@given(any_band | any_mask)
def test_a_band_tells_exactly_which_cells_are_visible(text):
    mask, distance = read(text), torch.arange(S) - torch.arange(T)[:, None]
    if mask.band is not None:
        before, after = (S if limit is None else limit for limit in mask.band)
        assert cells(mask).equal(((-before <= distance) & (distance <= after)).expand(ROWS, T, S))


@given(any_band)
def test_whatever_both_of_two_bands_allow_is_a_band(text):
    assert read(text).band is not None


@pytest.mark.parametrize(
    ("mask", "band"),
    [
        (everything, (None, None)),
        (causal, (None, 0)),
        (window(3), (2, 2)),
        (causal & window(3), (2, 0)),
        (window(5) & window(2) & everything, (1, 1)),
        (prefix(2), None),
        (documents([2, 3]), None),
        (valid_lengths([1, 2]), None),
        (causal & prefix(2), None),
        (prefix(2) & causal, None),
        (causal | window(3), None),
    ],
    ids=str,
)
def test_a_rule_knows_how_far_it_reaches(mask, band):
    assert mask.band == band


# Refusals

TWO, THREE = documents([[1], [2]]), valid_lengths([[1], [2], [3]])
TWO_OF_THREE = "documents([[1], [2]]) describes 2 rows, but the batch has 3; describe 1 row or 3"
NO_WINDOW = "a window must hold at least the position itself: got size 0, use 1 or more"
REFUSALS = {
    "window": (lambda: window(0), NO_WINDOW),
    "prefix": (lambda: prefix(0), "a prefix must have at least 1 position, got 0"),
    "no documents": (lambda: documents([]), "each row needs lengths of 1 or more, got []"),
    "a bare row": (lambda: documents([[2], []]), "each row needs lengths of 1 or more, got []"),
    "empty": (lambda: documents([3, 0]), "each row needs lengths of 1 or more, got [3, 0]"),
    "no lengths": (lambda: valid_lengths([]), "each row needs lengths of 0 or more, got []"),
    "below": (lambda: valid_lengths([2, -1]), "each row needs lengths of 0 or more, got [-1]"),
    "ragged": (
        lambda: valid_lengths([[1, 2], [3]]),
        "each row needs a length for each query, got lists of [2, 1]; pad the shorter ones",
    ),
    "too few rows": (
        lambda: valid_lengths([3, 2]).table(QUERIES, KEYS),
        "valid_lengths([3, 2]) describes 2 rows, but the batch has 3; describe 1 row or 3",
    ),
    "too few queries": (
        lambda: (valid_lengths([[3, 2]]) & causal).table(QUERIES, KEYS),
        f"valid_lengths([[3, 2]]) describes 2 queries, but a row has {T}; "
        "give each row one number, or a list with one for each of its queries",
    ),
    "table": (lambda: TWO.table(QUERIES, KEYS), TWO_OF_THREE),
    "two and three": (lambda: TWO & THREE, TWO_OF_THREE),
    "three and two": (lambda: THREE & TWO, TWO_OF_THREE),
    "two or three": (lambda: TWO | THREE, TWO_OF_THREE),
    "three or two": (lambda: THREE | TWO, TWO_OF_THREE),
}


@pytest.mark.parametrize(("wrong", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_mask_that_makes_no_sense_is_refused_in_words(wrong, words):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011, the words are compared below
        wrong()
    assert str(refusal.value) == words
