"""From raw files to samples: each row in the part it belongs to, and what is left out is told."""

import csv
import json
import tracemalloc
from dataclasses import replace

import pytest

from glassformer.config import DataConfig, TokenizerConfig
from glassformer.data.catalog import Entry
from glassformer.data.ingest import LOOKED_AT, ingest
from glassformer.data.rows import Row
from glassformer.data.samples import SPLITS
from glassformer.errors import GlassformerError
from glassformer.tasks.classify.data import ClassifySchema, LabelledTexts
from glassformer.tasks.shared.text_data import LABEL, TEXT, TextSchema
from glassformer.tasks.translate.data import TranslateSchema

HEADER = ("text", "label")
LABELLED, TEXTS, PAIRS = ClassifySchema(), TextSchema(), TranslateSchema()


def table(path, *rows, header=HEADER):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def numbered(count, what="text"):
    return [(f"{what} {n}", "odd" if n % 2 else "even") for n in range(count)]


def take(folder, *files, schema=LABELLED, seed=0, **settings):
    config = DataConfig(files=files, **settings)
    return ingest(config, schema, folder / "out", seed=seed)


def parts_of(samples, role="text"):
    return {part: samples.texts(part, role) for part in SPLITS}


def refusal(folder, *files, **settings):
    with pytest.raises(GlassformerError) as error:
        take(folder, *files, **settings)
    assert "\n" not in str(error.value)
    return str(error.value).replace(f"{folder}/", "")


def test_files_given_for_parts_are_the_parts_and_nothing_is_held_out(tmp_path):
    files = {part: table(tmp_path / f"{part}.csv", *numbered(53, part)) for part in SPLITS}
    samples, taken = take(tmp_path, files["train"], valid=(files["valid"],), test=(files["test"],))
    assert parts_of(samples) == {part: [f"{part} {n}" for n in range(53)] for part in SPLITS}
    assert taken.counts == dict.fromkeys(SPLITS, 53)


def test_a_part_that_is_not_given_is_held_out(tmp_path):
    train = table(tmp_path / "train.csv", *numbered(400, "train"))
    valid = table(tmp_path / "valid.csv", *numbered(7, "valid"))
    samples, _ = take(tmp_path, train, valid=(valid,))
    parts = parts_of(samples)
    assert parts["valid"] == [f"valid {n}" for n in range(7)]
    assert 20 < len(parts["test"]) < 70
    assert len(parts["train"]) == 400 - len(parts["test"])


def test_a_split_column_with_all_parts_is_followed_to_the_letter(tmp_path):
    said = [(f"t {n}", "yes", ["train", "Dev", " test ", "train"][n % 4]) for n in range(200)]
    path = table(tmp_path / "x.csv", *said, header=("text", "label", "split"))
    parts = parts_of(take(tmp_path, path)[0])
    assert parts["train"] == [f"t {n}" for n in range(200) if n % 4 in (0, 3)]
    assert parts["valid"] == [f"t {n}" for n in range(200) if n % 4 == 1]
    assert parts["test"] == [f"t {n}" for n in range(200) if n % 4 == 2]


def test_what_a_split_column_does_not_name_is_held_out_of_train(tmp_path):
    said = [(f"t {n}", "yes", "test" if n % 3 == 0 else "train") for n in range(300)]
    path = table(tmp_path / "x.csv", *said, header=("text", "label", "split"))
    parts = parts_of(take(tmp_path, path)[0])
    assert parts["test"] == [f"t {n}" for n in range(0, 300, 3)]
    assert 8 < len(parts["valid"]) < 40
    assert not {*parts["valid"]} & {*parts["test"]}


def test_rows_whose_split_is_empty_are_held_out_by_their_hash(tmp_path):
    rows = [(f"t {n}", "yes", "") for n in range(300)]
    path = table(tmp_path / "x.csv", *rows, header=("text", "label", "split"))
    plain = table(tmp_path / "y.csv", *(row[:2] for row in rows))
    assert parts_of(take(tmp_path, path)[0]) == parts_of(take(tmp_path, plain)[0])


def test_a_column_that_only_sounds_like_a_split_is_none(tmp_path):
    rows = [(f"t {n}", "yes", "north" if n % 2 else "train") for n in range(100)]
    path = table(tmp_path / "x.csv", *rows, header=("text", "label", "subset"))
    samples, taken = take(tmp_path, path)
    assert "split" not in taken.columns
    assert len(samples) == 100
    words = "x.csv row 2 (line 3): unknown split 'north'; the choices are train"
    assert refusal(tmp_path, path, columns={"split": "subset"}).startswith(words)


def test_a_split_that_names_some_parts_must_name_them_all(tmp_path):
    rows = [(f"t {n}", "yes", "test" if n % 3 else "holdout") for n in range(100)]
    path = table(tmp_path / "x.csv", *rows, header=("text", "label", "split"))
    assert refusal(tmp_path, path).startswith("x.csv row 1 (line 2): unknown split 'holdout'")


def test_texts_of_a_given_part_that_are_also_in_train_are_counted(tmp_path):
    rows = [(f"text number {n}", "yes") for n in range(100)]
    train = table(tmp_path / "x.csv", *rows, header=("text", "label"))
    test = table(tmp_path / "y.csv", *rows[:7], ("another", "yes"), header=("text", "label"))
    _, taken = take(tmp_path, train, test=(str(test),), valid_share=0.0)
    assert taken.shared["test"].count == 7
    assert taken.shared["test"].first.endswith("y.csv row 1 (line 2)")


def test_a_wrong_split_far_below_is_refused_with_its_row(tmp_path):
    rows = [(f"t {n}", "yes", "train") for n in range(LOOKED_AT)]
    path = table(tmp_path / "x.csv", *rows, ("t", "yes", "tset"), header=("text", "y", "split"))
    words = f"x.csv row {LOOKED_AT + 1} (line {LOOKED_AT + 2}): unknown split 'tset'; did you"
    assert refusal(tmp_path, path).startswith(words)


def test_what_was_given_for_test_leaves_other_splits_out(tmp_path):
    rows = [(f"t {n}", "yes", "test" if n % 4 == 3 else "train") for n in range(40)]
    path = table(tmp_path / "x.csv", *rows, header=("text", "label", "split"))
    samples, taken = take(tmp_path, test=(path,))
    assert parts_of(samples)["test"] == [f"t {n}" for n in range(3, 40, 4)]
    (reason,) = taken.skipped
    assert reason == "split 'train' in a file for test"
    assert taken.skipped[reason].count == 30


def test_the_hash_meets_its_shares_and_follows_from_content_and_seed_alone(tmp_path):
    rows = numbered(1000)
    once = parts_of(take(tmp_path, table(tmp_path / "a.csv", *rows), valid_share=0.2)[0])
    assert 150 < len(once["valid"]) < 250
    assert 70 < len(once["test"]) < 130
    turned = table(tmp_path / "b.csv", *reversed(rows))
    again = parts_of(take(tmp_path, turned, valid_share=0.2)[0])
    assert {part: sorted(texts) for part, texts in again.items()} == {
        part: sorted(texts) for part, texts in once.items()
    }
    other = parts_of(take(tmp_path, turned, valid_share=0.2, seed=1)[0])
    assert sorted(other["valid"]) != sorted(once["valid"])


def test_duplicates_never_straddle(tmp_path):
    rows = [
        (f"{' ' * (n % 3)}Film {n % 97}".swapcase() if n % 2 else f"Film {n % 97}", str(n % 5))
        for n in range(970)
    ]
    samples, _ = take(tmp_path, table(tmp_path / "x.csv", *rows), valid_share=0.3)
    said = [{text.strip().casefold() for text in texts} for texts in parts_of(samples).values()]
    assert all(len(part) > 3 for part in said)
    assert len(said[0] | said[1] | said[2]) == sum(map(len, said)) == 97
    assert len(samples) == 970


def test_both_scripts_of_a_chinese_text_stay_together_where_they_are_read_alike(tmp_path):
    pytest.importorskip("opencc")
    rows = [(f"{text}{n}", "a") for n in range(60) for text in ("這是書", "这是书")]
    file = table(tmp_path / "x.csv", *rows)
    alike = {"tokenizer": TokenizerConfig(simplified=True)}
    for settings, straddling in (({}, True), (alike, False)):
        samples, _ = take(tmp_path, file, valid_share=0.3, **settings)
        numbers = [{text[3:] for text in texts} for texts in parts_of(samples).values()]
        assert bool(numbers[0] & numbers[1]) == straddling


def test_groups_never_straddle(tmp_path):
    rows = [(f"text {n}", "yes", f"film {n % 61}") for n in range(610)]
    path = table(tmp_path / "x.csv", *rows, header=("text", "label", "film"))
    samples, taken = take(tmp_path, path, group="film", valid_share=0.3, test_share=0.2)
    films = [{*texts} for texts in parts_of(samples, "group").values()]
    assert taken.columns["group"] == "film"
    assert all(len(part) > 3 for part in films)
    assert len(films[0] | films[1] | films[2]) == sum(map(len, films)) == 61


def test_a_text_shared_by_two_groups_stays_in_one_part_and_the_rest_is_told(tmp_path):
    rows = [(f"text {n % 150}", "yes", f"film {n % 61}") for n in range(610)]
    path = table(tmp_path / "x.csv", *rows, header=("text", "label", "film"))
    samples, taken = take(tmp_path, path, group="film", valid_share=0.3, test_share=0.2)
    texts = [{*some} for some in parts_of(samples).values()]
    films = [{*some} for some in parts_of(samples, "group").values()]
    for sets in (texts, films):
        assert len(sets[0] | sets[1] | sets[2]) == sum(map(len, sets))
    (reason,) = taken.skipped
    assert reason == "a text that is also in another split, with another group"
    assert taken.skipped[reason].count + sum(taken.counts.values()) == 610
    assert min(taken.counts.values()) > 0


def test_a_missing_group_column_is_refused_but_only_where_rows_are_held_out(tmp_path):
    train = table(
        tmp_path / "x.csv",
        *[(*row, "a film") for row in numbered(9)],
        header=("text", "label", "film"),
    )
    valid = table(tmp_path / "v.csv", *numbered(9))
    assert refusal(tmp_path, valid, group="film").startswith("v.csv: unknown column 'film'; the")
    samples, _ = take(tmp_path, train, valid=(valid,), group="film", test_share=0.0)
    assert [len(samples.rows(part)) for part in SPLITS] == [9, 9, 0]


def test_the_group_may_be_named_among_the_columns(tmp_path):
    rows = [(f"text {n}", "yes", f"film {n % 31}") for n in range(310)]
    path = table(tmp_path / "x.csv", *rows, header=("text", "label", "film"))
    one = take(tmp_path, path, group="film")[0]
    assert parts_of(take(tmp_path, path, columns={"group": "film"})[0]) == parts_of(one)


def test_rows_that_lack_something_are_left_out_counted_and_the_first_is_named(tmp_path):
    rows = [*numbered(50), ("  ", "odd"), ("x", ""), ("", ""), ("y", "\t")]
    samples, taken = take(tmp_path, table(tmp_path / "x.csv", *rows))
    assert len(samples) == sum(taken.counts.values()) == 50
    told = {
        reason: (left.count, left.first.split("/")[-1]) for reason, left in taken.skipped.items()
    }
    assert told == {
        "empty text": (2, "x.csv row 51 (line 52)"),
        "empty label": (2, "x.csv row 52 (line 53)"),
    }


def test_columns_are_guessed_or_given_and_shown(tmp_path):
    rows = [(str(n), f"a longer text {n}", "yes", "no") for n in range(100)]
    path = table(tmp_path / "x.csv", *rows, header=("id", "review", "stars", "mood"))
    samples, taken = take(tmp_path, path)
    assert taken.columns == {"text": "review", "label": "stars"}
    assert samples[0] == {
        "where": f"{path} row 1 (line 2)",
        "text": "a longer text 0",
        "label": "yes",
    }
    samples, taken = take(tmp_path, path, columns={"label": "mood"})
    assert taken.columns == {"text": "review", "label": "mood"}
    assert samples[0]["label"] == "no"


def test_several_files_may_call_their_columns_differently(tmp_path):
    a = table(tmp_path / "a.csv", *numbered(60, "one"), header=("review", "stars"))
    b = table(
        tmp_path / "b.csv", *(row[::-1] for row in numbered(60, "two")), header=("category", "body")
    )
    samples, taken = take(tmp_path, a, b)
    assert {sample["label"] for sample in samples} == {"odd", "even"}
    assert [sample["text"] for sample in samples] == [
        f"{name} {n}" for name in ("one", "two") for n in range(60)
    ]
    assert taken.columns == {"text": "review", "label": "stars"}
    assert taken.others == {b: {"text": "body", "label": "category"}}


def catalog_of(monkeypatch, rows, group=None):
    entry = Entry("shelf", "books", "ours", "here", rows, group)
    monkeypatch.setattr("glassformer.data.ingest.CATALOG", {"shelf": entry})


def shelf():
    for n in range(600):
        columns = {"text": f"book {n}", "label": str(n % 3), "split": "", "writer": str(n // 10)}
        yield Row(columns, "shelf", n + 1)


def test_a_set_of_the_catalog_comes_by_name_with_its_groups(tmp_path, monkeypatch):
    catalog_of(monkeypatch, shelf, "writer")
    samples, taken = take(tmp_path, "shelf")
    writers = [{*some} for some in parts_of(samples, "group").values()]
    assert len(writers[0] | writers[1] | writers[2]) == sum(map(len, writers)) == 60
    assert taken.columns["group"] == "writer"
    assert samples[7]["where"] == "shelf row 8"


def test_a_file_of_the_same_name_wins(tmp_path, monkeypatch):
    catalog_of(monkeypatch, shelf)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shelf").write_text("\n".join(f"line {n}" for n in range(50)))
    samples, _ = take(tmp_path, "shelf", schema=TEXTS)
    assert samples[0]["text"] == "line 0"


def test_a_misspelt_set_is_no_missing_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refusal(tmp_path, "langauges") == (
        "langauges: not found; did you mean the data set 'languages'?"
    )
    assert refusal(tmp_path, "nothing.csv") == "nothing.csv: not found; check the path"


def test_too_few_rows_to_hold_some_out_is_one_line(tmp_path):
    path = table(tmp_path / "x.csv", *numbered(3))
    assert refusal(tmp_path, path, test_share=0.0) == (
        "x.csv: 3 rows are too few to hold some out for validation; give more rows, or give some "
        "with valid=..."
    )
    assert len(take(tmp_path, path, valid_share=0.0, test_share=0.0)[0]) == 3
    path = table(tmp_path / "y.csv", *numbered(1))
    assert refusal(tmp_path, path, test_share=0.0).startswith("y.csv: 1 row is too few to hold")


def test_test_rows_that_cannot_be_used_are_not_passed_over(tmp_path):
    path = table(tmp_path / "x.csv", *numbered(50))
    blank = table(tmp_path / "t.csv", ("", "a"), ("", "b"))
    assert refusal(tmp_path, path, test=(str(blank),)).endswith(
        "no usable row in test (2 with empty text, first t.csv row 1 (line 2)); check those files, "
        "or leave them out"
    )


def test_rows_that_all_say_the_same_are_not_called_too_few(tmp_path):
    rows = [("the same", f"said {n}") for n in range(200)]
    for header, schema in ((HEADER, LABELLED), (("source", "target"), PAIRS)):
        told = refusal(tmp_path, table(tmp_path / "x.csv", *rows, header=header), schema=schema)
        assert told == (
            f"x.csv: 200 rows with only 1 different {header[0]} are too few to hold some out for "
            f"validation; give more rows, or give some with valid=..."
        )


@pytest.mark.parametrize("column", ["source", "target"])
def test_a_side_may_be_what_rows_are_grouped_by(tmp_path, column):
    header = ("source", "target", "notes")
    rows = [[f"{name} {n % 40 if name == column else n}" for name in header] for n in range(200)]
    path = table(tmp_path / "x.csv", *rows, header=header)
    samples, taken = take(tmp_path, path, schema=PAIRS, group=column, valid_share=0.4)
    assert taken.columns == {"source": "source", "target": "target", "group": column}
    said = [{*some} for some in parts_of(samples, column).values()]
    assert len(set.union(*said)) == sum(map(len, said))


def test_one_group_that_is_held_out_whole_is_one_line(tmp_path):
    rows = [(f"t {n}", "yes", "same") for n in range(9)]
    path = table(tmp_path / "x.csv", *rows, header=("text", "label", "film"))
    told = refusal(tmp_path, path, group="film", valid_share=0.99, test_share=0.0)
    assert told == (
        "x.csv: 9 rows, all of them in valid, with none left to train on; give more rows or "
        "smaller groups"
    )


def test_nothing_to_use_is_one_line_that_says_why(tmp_path):
    path = table(tmp_path / "x.csv", ("", "a"), ("b", ""), ("", "c"))
    assert refusal(tmp_path, path) == (
        "x.csv: no usable row (2 with empty text, first x.csv row 1 (line 2); 1 with empty label, "
        "first x.csv row 2 (line 3)); check the columns, or name them with columns=..."
    )
    assert refusal(tmp_path) == "no data given; name a file, a folder or a named data set"


def test_unlabelled_rows_serve_where_no_label_is_asked_for(tmp_path):
    path = table(tmp_path / "x.csv", *[(f"only text {n}",) for n in range(90)], header=("text",))
    assert refusal(tmp_path, path) == (
        "x.csv: no column for label; the only column is text; rename them, or name them with "
        'columns="text=...,label=..."'
    )
    maybe = LabelledTexts()
    maybe.roles = (TEXT, replace(LABEL, required=False))
    for schema in (TEXTS, maybe):
        samples, taken = take(tmp_path, path, schema=schema)
        assert len(samples) == 90
        assert taken.columns == {"text": "text"}


def test_lists_stay_labels_and_words_in_a_list_become_a_text(tmp_path):
    path = tmp_path / "x.jsonl"
    rows = [{"text": ["a", "film", str(n)], "label": ["x", "y"] if n else []} for n in range(60)]
    path.write_text("\n".join(map(json.dumps, rows)))
    samples, taken = take(tmp_path, str(path))
    assert samples[1] | {"where": ""} == {"where": "", "text": "a film 1", "label": ["x", "y"]}
    assert samples[0]["label"] == []
    assert not taken.skipped


def test_rows_are_streamed_and_the_count_is_told_on_the_way(tmp_path, monkeypatch):
    told, size, many = [], 20_000, 2003

    def rows():
        for n in range(many):
            yield Row({"text": f"{n} " + "x" * size}, "shelf", n + 1)

    catalog_of(monkeypatch, rows)
    tracemalloc.start()
    samples, _ = ingest(DataConfig(files=("shelf",)), TEXTS, tmp_path, seen=told.append)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(samples) == many
    assert told == [1000, 2000]
    assert peak < 2 * LOOKED_AT * size, "no more rows are held than are looked at"


def test_a_broken_file_leaves_nothing_half_written(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("text,label\n" + "fine,yes\n" * 300 + "too,many,cells\n")
    assert refusal(tmp_path, str(path)).startswith("x.csv row 301 (line 302): 3 cells")
    assert list((tmp_path / "out").iterdir()) == []
