"""What the doctor finds in ratings, and what rows become samples."""

import pytest

from glassformer.config import DataConfig
from glassformer.config.run import config_of
from glassformer.data.doctor.check import Specimen
from glassformer.data.rows import Row
from glassformer.data.splits import hashed
from glassformer.tasks import JOBS
from glassformer.tasks.recommend.checks import ColdNames, RatingScale, RepeatedPairs
from glassformer.tasks.recommend.data import RecommendSchema

SCHEMA = RecommendSchema()


def specimens(rows, split="train"):
    for number, row in enumerate(rows):
        user, item = row[0], row[1]
        sample = {"user": user, "item": item}
        sample |= dict(zip(("rating", "time"), row[2:], strict=False))
        yield Specimen(number, split, sample, hashed(f"{user}\n{item}"))


def found(check, *groups):
    for rows in groups:
        for one in rows:
            check.see(one)
    return {finding.kind: finding for finding in check.findings()}


def test_repeated_pairs_are_found_and_the_last_one_is_kept():
    rows = [("a", "x", 3.0, 5), ("a", "x", 4.0, 9), ("a", "x", 4.0, 7), ("b", "x", 1.0, 1)]
    check = RepeatedPairs()
    finding = found(check, specimens(rows))["repeated pairs"]
    assert finding.what == "2 rows with an earlier pair of user and item, 2 with another rating"
    assert check.to_drop() == dict.fromkeys((0, 2), "replaced by a later row")
    assert not found(RepeatedPairs(), specimens(rows[2:]))


def test_a_rating_outside_the_scale_replaces_no_earlier_one():
    rows = [("a", "x", 3.0, 5), ("a", "x", 50.0, 9)]
    assert not found(RepeatedPairs(1.0, 5.0), specimens(rows))
    assert "repeated pairs" in found(RepeatedPairs(), specimens(rows))


def test_rare_and_unknown_users_and_items_are_found():
    train = [("a", "x"), *(("b", f"i{n}") for n in range(5)), *(("c", f"i{n}") for n in range(5))]
    check = ColdNames()
    findings = found(check, specimens(train), specimens([("d", "x"), ("a", "z")], "test"))
    assert findings["rare users"].what == "2 users (50.0%) with fewer than 5 rows"
    assert findings["rare items"].severity == "warning"
    assert findings["cold users"].what == "1 held-out row of users that training does not have"
    assert findings["cold items"].numbers == [1]
    assert "cannot be recommended" in findings["cold items"].advice
    assert check.figures()["Interactions"] == {
        "users": 4,
        "items": 7,
        "share of all pairs": 0.4643,
    }


def test_ratings_outside_the_scale_are_found_and_dropped():
    rows = [("a", str(n), float(n % 5 + 1)) for n in range(9)] + [("a", "y", 7.0), ("a", "z", -1.0)]
    check = RatingScale(1.0, 5.0)
    finding = found(check, specimens(rows))["ratings out of range"]
    assert finding.what == "2 ratings outside the scale from 1 to 5"
    assert [*check.to_drop()] == [9, 10]
    below = found(RatingScale(1.0, None), specimens(rows))["ratings out of range"]
    assert (below.what, below.numbers) == ("1 rating below 1", [10])
    above = found(RatingScale(None, 5.0), specimens(rows))["ratings out of range"]
    assert (above.what, above.numbers) == ("1 rating above 5", [9])


def test_ratings_far_from_all_others_are_found_without_a_scale():
    usual = [("a", str(n), float(n % 5 + 1)) for n in range(500)]
    findings = found(RatingScale(None, None), specimens([*usual, ("b", "x", 99.0)]))
    assert findings["stray ratings"].what == "1 rating far from all others: 99"
    assert not found(RatingScale(None, None), specimens([*usual, ("b", "x", 0.0)]))
    assert RatingScale(None, None).figures() == {}


def test_ratings_that_hardly_anybody_gave_at_the_end_of_a_scale_are_a_note():
    usual = [("a", str(n), float(n % 5 + 1)) for n in range(4000)]
    findings = found(RatingScale(None, None), specimens([*usual, ("b", "x", 0.0), ("c", "x", 0.0)]))
    odd = findings["odd ratings"]
    assert (odd.severity, odd.what) == (
        "note",
        "2 ratings of 0, next to the scale of the others",
    )
    assert "0 often stands for: not rated" in odd.advice
    assert not found(RatingScale(0.0, 5.0), specimens(usual))


def test_the_schema_lists_all_its_checks():
    values = {"job": "recommend", **JOBS["recommend"].defaults(False)}
    checks = SCHEMA.checks(config_of(values, JOBS["recommend"].settings))
    assert {RepeatedPairs, ColdNames, RatingScale} <= {type(check) for check in checks}
    values["task"] = {"feedback": "implicit"}
    checks = SCHEMA.checks(config_of(values, JOBS["recommend"].settings))
    assert RatingScale not in {type(check) for check in checks}


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"rating": "4.5", "date": "2024-05-31 18:30"}, ""),
        ({"rating": "good", "date": "1"}, "a rating that is not a number"),
        ({"rating": "", "date": "1"}, "a rating that is not a number"),
        ({"rating": "4", "date": "soon"}, "a time that is neither a number nor a date such as"),
        ({"rating": "4", "date": "1", "movieId": " "}, "empty item"),
    ],
)
def test_rows_that_say_nothing_are_left_out_with_a_reason(values, fault):
    row = Row({"userId": "7", "movieId": "12", **values}, "ratings.csv", 1)
    columns = SCHEMA.find_columns([row], {})
    assert columns == {"user": "userId", "item": "movieId", "rating": "rating", "time": "date"}
    sample, why = SCHEMA.sample(row, columns)
    assert why.startswith(fault)
    assert bool(why) == bool(fault)
    if not fault:
        assert (sample["rating"], sample["time"]) == (4.5, 1717180200.0)


def test_whole_users_can_be_held_out_by_naming_their_column_as_the_group():
    row = Row({"userId": "7", "movieId": "12", "timestamp": "5"}, "ratings.csv", 1)
    columns = SCHEMA.find_columns([row], {"group": "userId"})
    assert columns == {"user": "userId", "item": "movieId", "time": "timestamp", "group": "userId"}
    given = SCHEMA.find_columns([row], {"group": "movieId", "user": "movieId", "item": "userId"})
    assert given["user"] == given["group"] == "movieId"


def test_a_table_of_users_and_items_is_recognised():
    def says(**values):
        return SCHEMA.recognises("x.csv", DataConfig(), iter([Row(values, "x.csv", 1)]))

    assert says(user_id="1", movie_id="2", rating="3")
    assert says(user="1", item="2", timestamp="3")
    assert not says(user="1", text="fine", label="good")
    assert not says(user="1", title="fine")
    assert not says(user="1", title="fine", rating="3", review="a fine film")
