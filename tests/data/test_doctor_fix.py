"""A cleaned copy has none of the faults that rows can be dropped for; the original is untouched."""

import json
from collections import Counter

import pytest
from ailing import examined, reviews, table
from hypothesis import given, settings, strategies as st

from glassformer.data.sources import read_rows
from glassformer.errors import GlassformerError
from glassformer.runs.doctor import doctor


@pytest.fixture
def rows():
    return list(reviews(40))


def content(path):
    return [dict(row.values) for row in read_rows(path)]


def faulty(rows):
    """Rows with an empty text, an empty label, a duplicate, a tie and a clear majority."""
    tie, most = rows[2]["text"], rows[5]["text"]
    extra = [("", "good"), ("no label", ""), (rows[0]["text"].upper(), rows[0]["label"])]
    extra += [(tie, "bad"), (most, "bad"), (most, "good")]
    return [*rows, *({"text": text, "label": label} for text, label in extra)]


DROPPED = {"conflicting label": 3, "duplicate": 2, "empty text": 1, "empty label": 1}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_a_copy_is_clean_and_says_what_it_left_out(tmp_path, rows, suffix):
    path = table(tmp_path / "x.csv", faulty(rows))
    before = path.read_bytes()
    out = tmp_path / f"clean{suffix}"
    cleaned = examined(path).fix(out)
    assert cleaned.files == {str(out): str(path)}
    assert (cleaned.kept, cleaned.dropped) == (39, DROPPED)
    assert content(out) == [row for n, row in enumerate(rows) if n != 2]
    assert not examined(out).findings
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [out.name, "x.csv"]


def test_what_is_held_out_stays_and_train_loses_it(tmp_path, rows):
    held_out = [*reviews(20, seed=2), rows[3], rows[3]]
    also_valid = [*reviews(20, seed=3), rows[3], held_out[0]]
    paths = {
        part: table(tmp_path / part / "x.csv", some)
        for part, some in (("train", rows), ("valid", also_valid), ("test", held_out))
        if not (tmp_path / part).mkdir()
    }
    asked = {"valid": paths["valid"], "test": paths["test"]}
    cleaned = examined(paths["train"], **asked).fix(tmp_path / "clean")
    assert cleaned.dropped == {"also in test": 3, "duplicate": 1}
    names = ["x.csv", "valid-x.csv", "test-x.csv"]
    assert list(cleaned.files) == [str(tmp_path / "clean" / name) for name in names]
    train, valid, test = (content(tmp_path / "clean" / name) for name in names)
    assert train == [row for n, row in enumerate(rows) if n != 3]
    assert valid == also_valid[:-2]
    assert test == held_out[:-1]


def test_an_old_encoding_becomes_utf_8(tmp_path, rows):
    rows = [row | {"text": row["text"] + " déjà vu"} for row in rows]
    path = table(tmp_path / "x.csv", rows, encoding="cp1252")
    examined(path).fix(tmp_path / "y.csv")
    assert content(tmp_path / "y.csv") == rows
    assert not examined(tmp_path / "y.csv").findings


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
def test_single_rows_in_another_encoding_are_decoded_one_by_one(tmp_path, rows, mark):
    rows = [row | {"text": f"naïve café {row['text']} 漢字"} for row in rows]
    path = tmp_path / "tickets.csv"
    written = table(path, rows).read_bytes().split(b"\r\n")
    for number, text in ((3, "über £50"), (7, "тёплый фильм"), (9, "文本分类很好")):
        codec = {3: "cp1252", 7: "cp1251", 9: "gb18030"}[number]
        rows[number - 1]["text"] = text
        written[number] = f"{text},{rows[number - 1]['label']}".encode(codec)
    path.write_bytes(mark + b"\r\n".join(written))
    before = path.read_bytes()
    found = examined(path)
    (finding,) = (one for one in found.findings if one.kind == "encoding")
    assert finding.what == f"3 lines of {path} not in UTF-8, unlike the others"
    assert finding.rows == tuple(f"{path} line {number + 1}" for number in (3, 7, 9))
    cleaned = found.fix(tmp_path / "clean.csv")
    assert content(tmp_path / "clean.csv") == rows
    assert [(change.where, change.what) for change in cleaned.changes] == [
        (f"{path} row {number} (line {number + 1})", "converted to UTF-8") for number in (3, 7, 9)
    ]
    assert not [one for one in examined(tmp_path / "clean.csv").findings if one.kind == "encoding"]
    assert path.read_bytes() == before


def test_one_row_that_is_not_ascii_decides_the_encoding_of_its_file(tmp_path, rows):
    rows[3]["text"] = "über £50"
    path = table(tmp_path / "x.csv", rows, encoding="cp1252")
    assert examined(path).encodings == {str(path): "cp1252"}
    examined(path).fix(tmp_path / "y.csv")
    assert content(tmp_path / "y.csv") == rows


def test_spellings_and_stray_characters_are_repaired_and_every_change_is_listed(tmp_path, rows):
    faulty = [dict(row) for row in rows]
    faulty[1]["label"] = "BAD "
    faulty[2]["text"] = f"\u200b {rows[2]['text']}\x07"
    faulty[4]["label"] = "Good"
    faulty.append(dict(rows[4]))  # a duplicate, once its label is spelt alike
    path = table(tmp_path / "x.csv", faulty)
    cleaned = examined(path).fix(tmp_path / "y.csv")
    assert content(tmp_path / "y.csv") == rows
    told = {change.where.removeprefix(f"{path} "): change.what for change in cleaned.changes}
    assert list(told) == ["row 2 (line 3)", "row 3 (line 4)", "row 5 (line 6)", "row 41 (line 42)"]
    assert told["row 2 (line 3)"] == "label: 'BAD ' becomes 'bad'"
    assert told["row 3 (line 4)"].startswith("text: '\\u200b ")
    assert told["row 5 (line 6)"] == "label: 'Good' becomes 'good'"
    assert told["row 41 (line 42)"] == "left out: duplicate"
    assert cleaned.as_values()["changes"][0] == {
        "where": f"{path} row 2 (line 3)",
        "what": "label: 'BAD ' becomes 'bad'",
    }
    assert not examined(tmp_path / "y.csv").findings


def test_each_of_several_labels_is_spelt_as_most_are(tmp_path, rows):
    for number, row in enumerate(rows):
        row["label"] = f"{row['label']}; {'X' if number == 3 else 'x'}"
    path = table(tmp_path / "x.csv", rows)
    examined(path, set="task.separator=;").fix(tmp_path / "y.csv")
    assert content(tmp_path / "y.csv")[3]["label"] == f"{rows[3]['label'][:-1]}x"


def test_a_folder_and_a_set_of_objects_become_json_lines(tmp_path, rows):
    for number, row in enumerate(rows):
        (tmp_path / "x" / row["label"]).mkdir(parents=True, exist_ok=True)
        (tmp_path / "x" / row["label"] / f"{number:02}.txt").write_text(row["text"])
    cleaned = examined(tmp_path / "x").fix(tmp_path / "clean")
    assert cleaned.files == {str(tmp_path / "clean" / "x.jsonl"): str(tmp_path / "x")}
    found = content(tmp_path / "clean" / "x.jsonl")
    assert sorted(map(str, found)) == sorted(map(str, rows))
    several = tmp_path / "y.jsonl"
    several.write_text("\n".join(json.dumps(row | {"label": ["a", "b"]}) for row in rows))
    examined(several).fix(tmp_path / "z.jsonl")
    assert content(tmp_path / "z.jsonl")[0]["label"] == ["a", "b"]


def test_lines_stay_lines(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("one line\n\nanother line\nONE  line\n", encoding="utf-8")
    assert examined(path).fix(tmp_path / "y.txt").dropped == {"duplicate": 1}
    assert (tmp_path / "y.txt").read_text(encoding="utf-8") == "one line\nanother line\n"


def test_a_table_without_a_header_gets_one(tmp_path):
    path = tmp_path / "x.csv"
    lines = [f'{n % 2},"a text, number {n}",{n}' for n in range(30)]
    path.write_text("\n".join([*lines, '1,"A text, number 3",3', ""]), encoding="utf-8")
    examined(path).fix(tmp_path / "y.csv")
    (first, *_) = found = content(tmp_path / "y.csv")
    assert first == {"label": "0", "text": "a text, number 0", "column_3": "0"}
    assert len(found) == 30


REFUSED = {
    "there": ("taken.csv", "taken.csv: already exists; name a new path for the copy"),
    "no folder": (
        "none/y.csv",
        "none/y.csv: its folder does not exist; create it, or name another",
    ),
    "lines": ("y.txt", "y.txt: a copy of x.csv cannot have this format; use the ending .csv, "),
    "packed": ("y.csv.gz", "y.csv.gz: a copy of x.csv cannot have this format; use the ending"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_place_that_cannot_be_is_refused_before_anything_is_written(
    case, tmp_path, rows, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "x.csv", rows)
    (tmp_path / "taken.csv").write_text("mine")
    out, told = REFUSED[case]
    with pytest.raises(GlassformerError) as error:
        examined("x.csv").fix(out)
    assert str(error.value).startswith(told)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["taken.csv", "x.csv"]
    assert (tmp_path / "taken.csv").read_text() == "mine"


def test_two_files_and_a_place_inside_the_data_are_refused(tmp_path, rows):
    (tmp_path / "x").mkdir()
    one = table(tmp_path / "x" / "one.csv", rows)
    other = table(tmp_path / "other.csv", reviews(40, seed=2))
    with pytest.raises(GlassformerError, match="2 files cannot be written to one; name a folder"):
        examined(one, test=other).fix(tmp_path / "y.csv")
    with pytest.raises(GlassformerError, match=r"lies inside .*, which is being copied"):
        examined(tmp_path / "x").fix(tmp_path / "x" / "y.jsonl")
    assert [entry.name for entry in (tmp_path / "x").iterdir()] == ["one.csv"]


@pytest.mark.parametrize("out", ["y.csv", "folder"])
def test_a_copy_that_fails_leaves_nothing(tmp_path, rows, monkeypatch, out):
    path = table(tmp_path / "x.csv", rows)

    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("glassformer.data.doctor.cleaning.sync", full)
    with pytest.raises(GlassformerError, match=r"cannot be written \(No space left on device\)"):
        examined(path).fix(tmp_path / out)
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.csv"]


def test_nothing_left_is_refused(tmp_path):
    rows = [{"text": "the same", "label": "ab"[n % 2]} for n in range(8)]
    path = table(tmp_path / "x.csv", rows)
    with pytest.raises(GlassformerError, match="no rows would be left; fix it by hand"):
        examined(path, job="classify").fix(tmp_path / "y.csv")


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdef"), st.sampled_from("xy"), st.sampled_from(["train", "test"])
        ),
        min_size=12,
        max_size=40,
    )
)
def test_a_copy_has_every_text_at_most_once_and_only_rows_of_the_original(tmp_path_factory, drawn):
    folder = tmp_path_factory.mktemp("drawn")
    rows = [{"text": f"text {t}", "label": label, "split": part} for t, label, part in drawn]
    rows += [{"text": "one more", "label": "x", "split": "train"}]
    found = examined(table(folder / "x.csv", rows), job="classify", columns="text=text,label=label")
    found.fix(folder / "y.csv")
    copied = content(folder / "y.csv")
    assert max(Counter(row["text"] for row in copied).values()) == 1
    left = iter(rows)
    assert all(row in left for row in copied), "in order"
    for text in {row["text"] for row in rows}:
        same = [row for row in rows if row["text"] == text]
        label, most = Counter(row["label"] for row in same).most_common(1)[0]
        kept = [row for row in copied if row["text"] == text]
        if most * 3 >= 2 * len(same):
            agreeing = [row for row in same if row["label"] == label]
            in_test = any(row["split"] == "test" for row in agreeing)
            assert kept == [{"text": text, "label": label, "split": "test" if in_test else "train"}]
        else:
            assert not kept


def test_two_files_side_by_side_become_two_in_a_folder(tmp_path):
    said = [f"ein Satz {n}" for n in range(300)]
    lines = {"t.de": [*said, ""], "t.en": [*(f"a sentence {n}" for n in range(300)), "alone"]}
    for name, some in lines.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in some), encoding="utf-8")
    found = doctor(*(tmp_path / name for name in lines), quiet=True)
    for place in ("fx.de", "fx.en", "fx.txt", "fx.en.gz"):
        with pytest.raises(
            GlassformerError, match="2 files cannot be written to one; name a folder"
        ):
            found.fix(tmp_path / place)
    cleaned = found.fix(tmp_path / "clean")
    assert cleaned.files == {str(tmp_path / "clean" / n): str(tmp_path / n) for n in lines}
    assert cleaned.dropped == {"empty source": 1}
    for name, some in lines.items():
        copy = (tmp_path / "clean" / name).read_text(encoding="utf-8")
        assert copy.splitlines() == some[:-1]
    found.fix(tmp_path / "y.jsonl")
    assert content(tmp_path / "y.jsonl")[3] == {"source": "ein Satz 3", "target": "a sentence 3"}


def test_a_copy_of_lines_may_end_as_they_do(tmp_path):
    (tmp_path / "x.de").write_text("eins\nzwei\neins\n", encoding="utf-8")
    examined(tmp_path / "x.de").fix(tmp_path / "y.de")
    assert (tmp_path / "y.de").read_text(encoding="utf-8") == "eins\nzwei\n"


def test_a_copy_that_is_a_folder_can_be_entered_as_any_other(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / "texts").mkdir(exist_ok=True)
        (tmp_path / "texts" / name).write_text("one line\nanother line\n")
    (tmp_path / "other").mkdir()
    doctor(tmp_path / "texts", job="generate", quiet=True).fix(tmp_path / "copy")
    assert (tmp_path / "copy").stat().st_mode == (tmp_path / "other").stat().st_mode
