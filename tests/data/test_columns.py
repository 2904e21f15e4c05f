"""Which column is the text and which the label."""

import pytest

from glassformer.data.columns import (
    COLUMN_NAMES,
    GROUP,
    SPLIT,
    Role,
    find_columns,
    is_known_name,
    parse_columns,
)
from glassformer.data.rows import Row, row_of
from glassformer.errors import GlassformerError
from glassformer.tasks.classify.data import ClassifySchema
from glassformer.tasks.shared.text_data import TextSchema
from glassformer.tasks.translate.data import TranslateSchema

LABELLED, TEXTS, PAIRS = ClassifySchema(), TextSchema(), TranslateSchema()


def rows(**columns):
    """Rows of a file from its columns."""
    table = zip(*columns.values(), strict=True)
    return [
        Row(dict(zip(columns, cells, strict=True)), "reviews.csv", number)
        for number, cells in enumerate(table, start=1)
    ]


def named(*names):
    """One row under these names, with nothing in it to guess by."""
    return [Row(dict.fromkeys(names, "same"), "reviews.csv", 1)]


@pytest.mark.parametrize(
    ("names", "text", "label"),
    [
        (("id", "sentiment", "review"), "review", "sentiment"),
        (("Class Index", "Title", "Description"), "Description", "Class Index"),
        (("text", "label", "label_text"), "text", "label"),
        (("tweet_id", "airline_sentiment", "tweet_text"), "tweet_text", "airline_sentiment"),
        (("starRating", "reviewBody"), "reviewBody", "starRating"),
        (("标签", "文本"), "文本", "标签"),
        (("STARS", "TEXT", "TITLE"), "TEXT", "STARS"),
        (("name", "language"), "name", "language"),
    ],
)
def test_columns_are_known_by_name(names, text, label):
    assert LABELLED.find_columns(named(*names), {}) == {"text": text, "label": label}


@pytest.mark.parametrize("role", COLUMN_NAMES)
def test_every_synonym_is_found(role):
    wanted = [Role(name=role, names=COLUMN_NAMES[role])]
    for name in COLUMN_NAMES[role]:
        head = named("zzz", name)
        assert find_columns(head, wanted, {}, lambda found, *_: found) == {role: name}
        assert is_known_name(name.title())


def test_what_a_person_says_wins():
    given = {"text": "label", "label": "text"}
    assert LABELLED.find_columns(named("text", "label"), given) == given


def test_what_is_not_said_is_still_found():
    found = LABELLED.find_columns(named("review", "text", "label"), {"text": "review"})
    assert found == {"text": "review", "label": "label"}


def test_without_names_the_longest_is_the_text_and_what_repeats_is_the_label():
    sample = rows(
        a=[f"item-{n}" for n in range(40)],
        b=["good", "bad"] * 20,
        c=[f"a rather long sentence, number {n}" for n in range(40)],
        d=["2024"] * 40,
    )
    assert LABELLED.find_columns(sample, {}) == {"text": "c", "label": "b"}


def test_sorted_data_that_begins_with_one_label_is_still_understood():
    sample = rows(a=["pos"] * 13, b=[f"a sentence, number {n}" for n in range(13)])
    assert LABELLED.find_columns(sample, {}) == {"text": "b", "label": "a"}


def test_a_column_of_ever_new_values_is_no_label():
    sample = rows(text=["fine"] * 13, number=[f"{n}" for n in range(13)])
    with pytest.raises(GlassformerError, match="no column for label"):
        LABELLED.find_columns(sample, {})


def test_a_list_is_the_labels_and_never_the_text():
    sample = rows(a=["short", "text"], b=[["news", "sport", "politics", "weather"], []])
    assert LABELLED.find_columns(sample, {}) == {"text": "a", "label": "b"}


def test_two_columns_without_names_are_source_and_target_in_order():
    sample = rows(**{"1": ["guten Tag"], "2": ["good day"]})
    assert PAIRS.find_columns(sample, {}) == {"source": "1", "target": "2"}


def test_three_columns_without_names_are_not_source_and_target():
    with pytest.raises(GlassformerError, match="no column for source and target"):
        PAIRS.find_columns(named("1", "2", "3"), {})


def test_a_role_that_may_be_missing_is_found_by_its_name_or_left_out():
    assert TEXTS.find_columns(named("text", "data_split"), {}, SPLIT) == {"text": "text"}
    found = TEXTS.find_columns(named("text", "Split", "film"), {"group": "film"}, SPLIT, GROUP)
    assert found == {"text": "text", "split": "Split", "group": "film"}


def test_a_column_that_only_later_rows_have_is_seen():
    sample = [Row({"text": "a"}, "x.jsonl", 1), Row({"text": "b", "label": "c"}, "x.jsonl", 2)]
    assert LABELLED.find_columns(sample, {})["label"] == "label"


@pytest.mark.parametrize("name", ["text", "blurb"])
def test_one_column_where_two_are_wanted_says_what_to_pass(name):
    with pytest.raises(GlassformerError) as error:
        LABELLED.find_columns(named(name), {})
    assert str(error.value) == (
        f"reviews.csv: no column for label; the only column is {name}; "
        'rename them, or name them with columns="text=...,label=..."'
    )


def test_rows_without_any_column_are_refused_in_words():
    with pytest.raises(GlassformerError, match="the only column is none; rename them"):
        LABELLED.find_columns([Row({}, "x.jsonl", 1)], {})


def test_an_unknown_column_is_refused_with_the_nearest():
    with pytest.raises(GlassformerError) as error:
        LABELLED.find_columns(named("review", "stars"), {"text": "reviews"})
    assert str(error.value) == (
        "reviews.csv: unknown column 'reviews'; did you mean 'review'? "
        "The choices are review, stars"
    )


def test_a_role_that_the_job_does_not_have_is_refused():
    with pytest.raises(
        GlassformerError, match="unknown role 'source'; the choices are text, label, group"
    ):
        LABELLED.find_columns(named("text", "label"), {"source": "label"})


def test_one_column_cannot_be_two_things():
    with pytest.raises(GlassformerError, match="'a' cannot play two roles"):
        LABELLED.find_columns(named("a", "b"), {"text": "a", "label": "a"})


def test_a_column_that_is_the_group_is_named_where_one_lacks():
    with pytest.raises(GlassformerError) as error:
        LABELLED.find_columns(named("text", "label"), {"group": "label"}, GROUP)
    assert str(error.value).startswith(
        "reviews.csv: no column for label; the columns are text, label, and label is the group; "
    )


def test_a_group_may_be_a_text_of_the_same_name_and_no_other():
    found = LABELLED.find_columns(named("text", "label", "id"), {"group": "text"}, GROUP)
    assert found == {"text": "text", "label": "label", "group": "text"}
    found = LABELLED.find_columns(named("title", "label", "blurb"), {"group": "title"}, GROUP)
    assert found["text"] == "blurb"


def test_a_column_of_objects_is_never_taken_for_the_text():
    sample = [
        row_of({"meta": {"a": "long " * 9}, "says": f"w {n}", "label": "x"}, "x.jsonl", n)
        for n in range(1, 4)
    ]
    assert LABELLED.find_columns(sample, {})["text"] == "says"


def test_looking_at_no_rows_is_a_wrong_call():
    with pytest.raises(ValueError, match="at least one row"):
        LABELLED.find_columns([], {})


def test_columns_are_read_from_the_command_line():
    assert parse_columns("text = Review Text , label=a=b") == {
        "text": "Review Text",
        "label": "a=b",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is not of the form ROLE=COLUMN"),
        ("text", "'text' is not of the form ROLE=COLUMN"),
        ("text=", "'text=' is not of the form ROLE=COLUMN"),
        ("text=a,,label=b", "'' is not of the form ROLE=COLUMN"),
        ("=review", "'=review' is not of the form ROLE=COLUMN"),
        ("text=a,text=b", "text is given twice, as 'a' and 'b'; keep one"),
    ],
)
def test_columns_that_cannot_be_read_are_refused(text, words):
    with pytest.raises(GlassformerError) as error:
        parse_columns(text)
    assert str(error.value).startswith("columns: ")
    assert words in str(error.value)


@pytest.mark.parametrize("given", [{}, {"target": "refs"}, {"references": "refs"}])
def test_one_column_may_hold_the_target_and_its_references(given):
    rows = [Row({"src": "read", "refs": ["R EH D", "R IY D"]}, "x.jsonl", 1)]
    found = PAIRS.find_columns(rows, given)
    assert found == {"source": "src", "target": "refs", "references": "refs"}


def test_of_two_columns_of_texts_the_fuller_and_longer_one_is_read():
    titles = ["", "Great dress"] * 17
    reviews = [f"It fits well and I wore it {n} times" for n in range(34)]
    head = rows(**{"Title": titles, "Review Text": reviews, "Rating": ["4", "5"] * 17})
    assert LABELLED.find_columns(head, {}) == {"text": "Review Text", "label": "Rating"}
    assert LABELLED.find_columns(head, {"text": "Title"})["text"] == "Title"
    full = rows(**{"title": reviews, "summary text": titles, "stars": ["4", "5"] * 17})
    assert LABELLED.find_columns(full, {})["text"] == "title"


def test_numbers_and_names_of_species_are_no_texts():
    sizes = [f"{n % 7}.{n % 3}" for n in range(60)]
    species = ["setosa", "versicolor", "virginica"] * 20
    iris = rows(**{"sepal length (cm)": sizes, "sepal width (cm)": sizes, "species": species})
    with pytest.raises(GlassformerError, match="no job learns from tables without texts"):
        LABELLED.find_columns(iris, {})


def test_numbers_where_labels_are_missing_are_named():
    ages = [str(18 + n % 40) for n in range(60)]
    table = rows(text=[f"person number {n}" for n in range(60)], Age=ages)
    with pytest.raises(GlassformerError, match="'Age' holds numbers, and no job predicts amounts"):
        LABELLED.find_columns(table, {})
