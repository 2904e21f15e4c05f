"""Which part a row belongs to."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from glassformer.data.splits import (
    SPLIT_NAMES,
    content_key,
    named_split,
    split_of,
    stratified,
)
from glassformer.errors import GlassformerError

SHARES = {"valid": 0.1, "test": 0.2}
TEXTS = [f"review {n}" for n in range(5003)]


def part_of_text(text, seed=0):
    return split_of(content_key(text), SHARES, seed)


@given(st.text(), st.integers())
def test_near_duplicates_fall_together(text, seed):
    for twin in (text, f"  {text}\n", text.replace(" ", "\u00a0\t ")):
        assert part_of_text(twin, seed) == part_of_text(text, seed)


@pytest.mark.parametrize(
    "twin",
    [
        "a fine film, the best",
        "A FINE FILM, THE BEST",
        " A  fine\tfilm,\r\nthe best ",
        "Ａ ｆｉｎｅ ｆｉｌｍ, the best",
        "A \ufb01ne \ufb01lm, the best",
    ],
)
def test_case_spaces_and_unicode_form_do_not_make_another_text(twin):
    assert content_key(twin) == content_key("A fine film, the best")


def test_a_composed_and_a_decomposed_letter_are_the_same_text():
    assert content_key("caf\u00e9") == content_key("CAFE\u0301")


def test_different_texts_are_different():
    assert content_key("a fine film") != content_key("afine film")


def test_a_group_falls_together_and_groups_fall_apart():
    parts = {}
    for n in range(len(TEXTS)):
        parts.setdefault(f"film {n % 97}", set()).add(split_of(f"film {n % 97}", SHARES, 3))
    assert all(len(found) == 1 for found in parts.values())
    assert set.union(*parts.values()) == {"train", "valid", "test"}


@pytest.mark.parametrize("seed", [0, 1, -7, 10**100])
def test_shares_are_met_within_sampling_error(seed):
    counts = Counter(part_of_text(text, seed) for text in TEXTS)
    for part, share in {**SHARES, "train": 0.7}.items():
        sigma = math.sqrt(len(TEXTS) * share * (1 - share))
        assert abs(counts[part] - share * len(TEXTS)) < 4 * sigma


def test_adding_rows_never_moves_the_others():
    before = {text: part_of_text(text) for text in TEXTS[::2]}
    after = {text: part_of_text(text) for text in reversed(TEXTS)}
    assert before.items() <= after.items()


def test_holding_more_out_for_test_keeps_what_was_held_out_for_validation():
    for text in TEXTS[:997]:
        if part_of_text(text) == "valid":
            assert split_of(content_key(text), {"valid": 0.1, "test": 0.5}, 0) == "valid"


def test_another_seed_is_another_split():
    assert [part_of_text(text, 0) for text in TEXTS] != [part_of_text(text, 1) for text in TEXTS]


def test_a_split_is_the_same_tomorrow_and_on_every_machine():
    held_out = {part: [n for n in range(31) if part_of_text(TEXTS[n]) == part] for part in SHARES}
    assert held_out == {"valid": [6, 14, 15, 21], "test": [5, 11, 12, 13, 18, 26, 29]}


def test_without_shares_all_is_training_and_a_whole_share_takes_all():
    assert {split_of(text, {}, 0) for text in TEXTS} == {"train"}
    assert {split_of(text, {"test": 1.0}, 0) for text in TEXTS} == {"test"}
    assert {split_of(text, {"valid": 0.0}, 0) for text in TEXTS} == {"train"}


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 5)), min_size=1, max_size=60),
    st.sampled_from([[0.1, 0.1], [0.25, 0.5], [0.0, 0.3]]),
)
def test_stratified_every_label_is_divided_by_its_share_and_duplicates_stay_together(rows, shares):
    contents, strata = (np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True))
    found = stratified(contents, strata, shares)
    parts = dict(zip(contents.tolist(), found.tolist(), strict=True))
    assert [parts[content] for content in contents.tolist()] == found.tolist()
    label = {}
    for content, stratum in rows:
        label[content] = min(stratum, label.get(content, stratum))
    for one in {*label.values()}:
        mine = [parts[content] for content in sorted(label) if label[content] == one]
        assert mine == sorted(mine)  # the lowest hashes are held out first
        assert abs(mine.count(0) - shares[0] * len(mine)) <= 1
    total = [0, 0, 0]
    for part in parts.values():
        total[part] += 1
    assert abs(total[0] - shares[0] * len(parts)) <= 0.5


def test_a_label_that_fills_one_share_by_rounding_does_not_lose_it_to_the_next():
    strata = np.repeat(np.arange(2, dtype=np.uint64), 3)
    assert stratified(np.arange(6, dtype=np.uint64), strata, [0.1, 0.1]).tolist() == [
        1,
        2,
        2,
        0,
        2,
        2,
    ]


@pytest.mark.parametrize("shares", [{"valid": 0.6, "test": 0.6}, {"valid": -0.1, "test": 0.5}])
def test_shares_that_cannot_be_are_refused(shares):
    with pytest.raises(ValueError, match=r"add up to at most 1; got \{'valid'"):
        split_of("text", shares, 0)


@pytest.mark.parametrize(
    ("value", "part"),
    [("train", "train"), (" Training ", "train"), ("DEV", "valid"), ("eval", "test")],
)
def test_a_split_column_speaks_in_many_words(value, part):
    assert named_split(value) == part


def test_every_split_name_leads_to_one_of_three_parts():
    assert set(SPLIT_NAMES.values()) == {"train", "valid", "test"}
    assert all(named_split(name) == part for name, part in SPLIT_NAMES.items())


def test_an_unknown_split_names_its_row_and_the_nearest():
    with pytest.raises(GlassformerError) as error:
        named_split("tset", "reviews.csv row 17")
    assert str(error.value).startswith("reviews.csv row 17: unknown split 'tset'; did you mean")
    assert "'test'? The choices begin with train, training" in str(error.value)


def test_a_list_names_no_split():
    with pytest.raises(GlassformerError, match="row 2: unknown split \"\\['test'\\]\""):
        named_split(["test"], "row 2")
