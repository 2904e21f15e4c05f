"""`glassformer doctor`: what a person reads, what a program reads, and the exit code."""

import json

import pytest
from quick import unchecked
from small_files import everything_in, reviews, write_csv

import glassformer
from glassformer.cli import main


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with unchecked():  # the doctor has no tensors
        yield


@pytest.fixture
def said(capsys):
    """Runs the command, which must find no error if not told so, and returns what it prints."""

    def run(*words, code=0):
        assert main(["doctor", *map(str, words)]) == code
        return capsys.readouterr().out

    return run


def faulty():
    rows = list(reviews(60))
    rows[7]["text"] = ""
    rows[30] = rows[4] | {"label": "bad"}
    rows[40] = dict(rows[9])
    rows[41] = dict(rows[9])
    return rows


def test_clean_data_get_an_all_clear_and_their_numbers(tmp_path, said):
    write_csv(tmp_path / "x.csv", reviews(61))
    words = said("x.csv")
    assert words.startswith(
        "x.csv: text = 'text', label = 'label'; header: yes; not read: 'film'; utf-8\n"
        "for classify, 61 train rows\n"
        "All clear: nothing to fix.\n"
    )
    assert [line.split()[:2] for line in words.splitlines() if "█" in line][-2:] == [
        ["good", "31"],
        ["bad", "30"],
    ]
    assert "words in a text" in words
    assert "characters in a text" in words


def test_notes_are_not_called_an_all_clear(tmp_path, said):
    rows = list(reviews(300))
    write_csv(tmp_path / "x.csv", [*rows, rows[0]])
    words = said("x.csv")
    assert "note: 1 row (0.3%) that only repeats an earlier row" in words
    assert "All clear" not in words
    assert "\nNo errors or warnings; check whether the notes matter to you.\n" in words


def test_findings_come_in_order_with_rows_and_advice(tmp_path, said):
    rows = faulty()
    rows[50]["label"] = "odd"
    write_csv(tmp_path / "x.csv", rows)
    lines = said("x.csv", code=1).splitlines()
    heads = [line.split(":")[0] for line in lines if line.startswith(("error", "warning", "note"))]
    assert heads == ["error", "warning", "warning", "warning"]
    at = lines.index("warning: 1 input in 2 rows with different labels")
    assert lines[at + 1].strip().startswith("decide which label is right")
    assert lines[at + 2].strip() == "x.csv row 5 (line 6), row 31 (line 32)"
    assert "All clear" not in "\n".join(lines)


def test_a_cleaned_copy_is_told_and_the_original_stays(tmp_path, said):
    write_csv(tmp_path / "x.csv", faulty())
    before = (tmp_path / "x.csv").read_bytes()
    lines = said("x.csv", "--fix", "clean.csv").splitlines()
    changes = [line for line in lines if ": left out: " in line]
    assert len(changes) == 5
    assert changes[1] == "    x.csv row 8 (line 9): left out: empty text"
    assert lines[-3] == changes[-1]
    assert [line for line in lines[-11:] if line not in changes] == [
        "wrote clean.csv in UTF-8, from x.csv",
        "left out: 2 rows, conflicting label",
        "left out: 2 rows, duplicate",
        "left out: 1 row, empty text",
        "kept: 55 rows",
        "All clear: nothing to fix.",
    ]
    assert (tmp_path / "x.csv").read_bytes() == before
    assert "All clear" in said("clean.csv")


def test_json_is_one_object_with_everything(tmp_path, said):
    write_csv(tmp_path / "x.csv", faulty())
    write_csv(tmp_path / "t.csv", reviews(20, seed=2))
    found = json.loads(said("x.csv", "--test", "t.csv", "--json", "--fix", "clean"))
    assert {key: found[key] for key in ("job", "rows", "seen", "total", "encodings")} == {
        "job": "classify",
        "rows": {"train": 59, "test": 20},
        "seen": 80,
        "total": 80,
        "encodings": {"x.csv": "utf-8", "t.csv": "utf-8"},
    }
    assert found["columns"]["x.csv"] == {"text": "text", "label": "label"}
    keys = {"kind", "severity", "what", "advice", "count", "rows"}
    assert all(finding.keys() == keys for finding in found["findings"])
    assert [finding["kind"] for finding in found["findings"]] == [
        "conflicting labels",
        "duplicate rows",
        "empty rows",
    ]
    assert found["findings"][0]["rows"] == ["x.csv row 5 (line 6)", "x.csv row 31 (line 32)"]
    assert found["figures"]["labels"] == {"bad": 41, "good": 38}
    assert found["figures"]["words in a text"]["median"] == 20
    assert found["cleaned"] == {
        "errors": [],
        "files": {"clean/x.csv": "x.csv", "clean/t.csv": "t.csv"},
        "kept": 75,
        "dropped": {"conflicting label": 2, "duplicate": 2, "empty text": 1},
        "changes": found["cleaned"]["changes"],
    }
    assert len(found["cleaned"]["changes"]) == 5
    assert json.loads(said("t.csv", "--json"))["cleaned"] is None


def test_texts_without_labels_are_for_pretraining(tmp_path, said):
    (tmp_path / "x.txt").write_text("one line\nanother line\n", encoding="utf-8")
    assert "for pretrain, 2 train rows" in said("x.txt", code=1)


@pytest.mark.parametrize("more", [(), ("--json",), ("--fix", "clean.csv")])
def test_an_error_is_told_by_the_exit_code_after_all_is_printed(more, tmp_path, said):
    write_csv(tmp_path / "x.csv", [row | {"label": "good"} for row in reviews(60)])
    words = said("x.csv", *more, code=1)
    if "--json" in more:
        assert json.loads(words)["findings"][0]["severity"] == "error"
    else:
        assert "error: only one label, 'good'" in words
    assert ("kept: 60 rows" in words) == ("--fix" in more)


def test_an_error_that_is_repaired_is_none_any_more(tmp_path, said):
    rows = [row | {"text": f"{row['text']} café"} for row in reviews(60)]
    rows[7]["label"] = "Good "
    write_csv(tmp_path / "x.csv", rows)
    (tmp_path / "x.csv").write_bytes((tmp_path / "x.csv").read_text("utf-8").encode("cp1252"))
    words = said("x.csv", "--fix", "guessed.csv")
    assert "error: x.csv is not UTF-8; it looks like cp1252" in words
    assert "x.csv row 1 (line 2): converted to UTF-8" in words
    words = said("x.csv", "--fix", "clean.csv", "--set", "data.encoding=cp1252")
    assert words.endswith("kept: 60 rows\nAll clear: nothing to fix.\n")
    assert "x.csv row 8 (line 9): label: 'Good ' becomes 'good'" in words


def test_errors_that_are_left_in_a_copy_are_told(tmp_path, said):
    rows = [{"text": row["text"], "label": "good"} for row in reviews(60)]
    write_csv(tmp_path / "x.csv", [*rows, *rows[:30]])
    words = said("x.csv", "--fix", "clean.csv", code=1)
    assert words.count("error: only one label, 'good'") == 2
    assert words.endswith("These errors are left in the copy: correct them by hand.\n")
    write_csv(tmp_path / "y.csv", [row | {"label": f"{n % 2}"} for n, row in enumerate(rows)])
    write_csv(tmp_path / "test.csv", [row | {"label": "0"} for row in rows[:20]])
    words = said("y.csv", "--test", "test.csv", "--fix", "clean", "--set", "task.max_length=12")
    assert words.endswith("No errors are left in the copy, only warnings.\n")


def test_a_copy_names_its_columns_where_the_original_has_numbers(tmp_path, said):
    rows = "".join(f"{row['label']}\t{row['text']}\n" for row in reviews(60))
    (tmp_path / "x.tsv").write_text(rows)
    for copy in ("clean.tsv", "clean.jsonl"):
        words = said("x.tsv", "--columns", "label=1,text=2", "--fix", copy)
        assert words.endswith("All clear: nothing to fix.\n")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_warnings_alone_are_no_error(more, tmp_path, said):
    write_csv(tmp_path / "x.csv", faulty())
    assert "warning" in said("x.csv", *more)


def test_a_guessed_column_is_shown_with_what_fits_as_well(tmp_path, said):
    rows = [
        {"body": row["text"], "priority": "high" if n % 3 else "low", "queue": row["label"]}
        for n, row in enumerate(reviews(60))
    ]
    write_csv(tmp_path / "x.csv", rows)
    told = "label = 'priority'; 'queue' fits as well: choose with --columns label=..."
    assert told in said("x.csv").splitlines()
    assert json.loads(said("x.csv", "--json"))["guesses"] == [told]
    assert told not in said("x.csv", "--columns", "label=queue")
    write_csv(
        tmp_path / "y.csv",
        [{"text": r["body"], "label": r["queue"], "z": r["priority"]} for r in rows],
    )
    assert "fits as well" not in said("y.csv")  # nothing was guessed


def test_a_guessed_job_is_shown_with_what_fits_as_well(tmp_path, said):
    write_csv(tmp_path / "x.csv", [{"text": r["text"], "target": r["label"]} for r in reviews(60)])
    told = "the job was guessed; translate fits as well: choose with --job"
    assert told in said("x.csv").splitlines()
    assert told not in said("x.csv", "--job", "classify")
    write_csv(tmp_path / "y.csv", reviews(60))
    assert "the job was guessed" not in said("y.csv")
    (tmp_path / "poems").mkdir()
    for number in range(12):
        (tmp_path / "poems" / f"{number}.txt").write_text(f"the moon\nis rising {number} times\n")
    assert "the job was guessed; generate fits as well: choose with --job" in said("poems")


def test_short_pairs_that_look_like_a_text_and_a_number_are_for_translate_as_well(tmp_path, said):
    rows = [f"{n}\t{' '.join(str(n))}\n" for n in range(60)]
    (tmp_path / "x.tsv").write_text("".join(rows))
    told = "the job was guessed; generate and translate fit as well: choose with --job"
    assert told in said("x.tsv").splitlines()


def test_texts_of_the_catalog_are_for_generate(said):
    assert "for generate, " in said("python-reference")


def test_the_help_tells_the_exit_code(capsys):
    assert main(["doctor", "--help"]) == 0
    assert "Exits with 1 if it finds an error, with --fix if one is left" in capsys.readouterr().out


GERMAN, ENGLISH = ([f"{word} {n}" for n in range(60)] for word in ("ein Hund", "a dog"))
PAIRED = list(zip(GERMAN, ENGLISH, strict=True))
ROWS = 23  # of a table


def lines(some):
    return "".join(f"{line}\n" for line in some)


def pairs_named(source, target, **others):
    return [{source: one, target: two, **others} for one, two in PAIRED[:ROWS]]


def translation_memory(*languages):
    units = lines(
        "<tu>"
        + "".join(f'<tuv xml:lang="{lang}"><seg>{lang} {n}</seg></tuv>' for lang in languages)
        + "</tu>"
        for n in range(60)
    )
    return f'<tmx version="1.4"><header srclang="de"/><body>{units}</body></tmx>'


TABLES = {
    "pairs": (pairs_named("source", "target"), "translate"),
    "pairs without a name": (pairs_named("english", "german"), "translate"),
    "very short pairs": (
        [{"a": f"{n}x", "b": f"{n}"[::-1] + "y"} for n in range(ROWS)],
        "translate",
    ),
    "two languages and a number": (
        [{"de": f"Hund {n}", "en": f"dog {n % 5}", "id": n} for n in range(ROWS)],
        "translate",
    ),
    "pairs to a language": (pairs_named("source", "target", to="en", split="train"), "translate"),
    "pairs with the name of a label beside": (pairs_named("src", "tgt", lang="en"), "translate"),
    "two texts and a label": (
        [row | {"label": row["sentence1"][-1]} for row in pairs_named("sentence1", "sentence2")],
        "classify",
    ),
    "a text, its source and its label": (
        [{"text": f"{n}", "source": "web", "target": f"{n % 2}"} for n in range(ROWS)],
        "classify",
    ),
    "a text and a few words": (
        [{"a": f"a dog {n}", "b": ("small", "large")[n % 2]} for n in range(ROWS)],
        "classify",
    ),
    "a text and a label": (list(reviews(ROWS)), "classify"),
    "a number and a text": (pairs_named("id", "text"), "pretrain"),
}


@pytest.mark.parametrize("case", TABLES)
def test_the_names_of_columns_tell_the_job(case, tmp_path):
    rows, job = TABLES[case]
    write_csv(tmp_path / "x.csv", rows)
    (tmp_path / "x.jsonl").write_text(lines(map(json.dumps, rows)), encoding="utf-8")
    for name in ("x.csv", "x.jsonl"):
        found = glassformer.doctor(name, quiet=True)
        assert (found.job, found.rows) == (job, {"train": ROWS})


TEXTS = {
    "a language each": (("x.de", "x.en"), "for translate, 60 "),
    "as many lines": (("de.txt", "en.txt"), "for translate, 60 "),
    "other lines": (("de.txt", "short.txt"), "for pretrain, 110 "),
    "numbered parts": (("de.1", "de.2"), "for pretrain, 110 "),
    "one file": (("de.txt",), "for pretrain, 60 "),
    "three files": (("de.txt", "en.txt", "short.txt"), "for pretrain, 170 "),
    "a memory": (("x.tmx",), "for translate, 60 "),
    "one side of a memory": (("x.tmx", "--columns", "text=de"), "for pretrain, 60 "),
}


@pytest.fixture
def _texts(tmp_path):
    files = {"x.de": GERMAN, "x.en": ENGLISH, "de.txt": GERMAN, "en.txt": ENGLISH}
    files |= {"short.txt": ENGLISH[:50], "de.1": GERMAN, "de.2": ENGLISH[:50]}
    files |= {"cut.de": GERMAN, "cut.en": ENGLISH[:50], "late.en": ENGLISH[1:]}
    for name, some in files.items():
        (tmp_path / name).write_text(lines(some), encoding="utf-8")
    (tmp_path / "x.tmx").write_text(translation_memory("de", "en"), encoding="utf-8")
    (tmp_path / "three.tmx").write_text(translation_memory("de", "en", "fr"), encoding="utf-8")


@pytest.mark.usefixtures("_texts")
@pytest.mark.parametrize("case", TEXTS)
def test_text_files_and_memories_tell_the_job(case, said):
    words, told = TEXTS[case]
    assert told in said(*words)


@pytest.mark.usefixtures("_texts")
@pytest.mark.parametrize(
    ("files", "told"),
    [
        (("cut.de", "cut.en"), "cut.de: 60 lines, but cut.en has 50, and each line needs"),
        (("x.de", "late.en"), "x.de: 60 lines, but late.en has 59, and each line needs"),
        (("de.txt", "late.en"), "de.txt: 60 lines, but late.en has 59, and each line needs"),
        (("three.tmx",), "three.tmx: no column for source and target"),
    ],
)
def test_pairs_that_do_not_fit_are_not_taken_for_other_texts(files, told, capsys):
    assert main(["doctor", *files]) == 1
    assert capsys.readouterr().err.startswith(f"glassformer: {told}")


def test_columns_and_settings_are_those_of_train(tmp_path, said):
    write_csv(tmp_path / "x.csv", reviews(60))
    words = said("x.csv", "--columns", "text=text,label=film", "--set", "task.max_length=12")
    assert "label = 'film'" in words
    assert "warning: about 60 texts (100.0%) longer than the 10 words that are read" in words


REFUSED = {
    "no file": (("none.csv",), "none.csv: not found"),
    "binary": (("b.csv",), "b.csv: not text but a PNG image"),
    "an unknown job": (("x.csv", "--job", "clasify"), "unknown job 'clasify'; did you mean"),
    "an unknown column": (("x.csv", "--columns", "text=txt"), "x.csv: unknown column 'txt'"),
    "no label": (("x.txt", "--job", "classify"), "x.txt: no column for label"),
    "a copy over a file": (("x.csv", "--json", "--fix", "b.csv"), "b.csv: already exists; name"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_or_written_is_one_line_and_exit_1(case, tmp_path, capsys):
    write_csv(tmp_path / "x.csv", reviews(20))
    (tmp_path / "b.csv").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    (tmp_path / "x.txt").write_text("one line\nanother line\n", encoding="utf-8")
    before = everything_in(tmp_path)
    words, told = REFUSED[case]
    assert main(["doctor", *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"glassformer: {told}")
    assert err.count("\n") == 1
    assert everything_in(tmp_path) == before


def test_findings_are_told_even_if_the_copy_cannot_be_written(tmp_path, capsys):
    write_csv(tmp_path / "x.csv", reviews(20))
    assert main(["doctor", "x.csv", "--fix", "x.csv"]) == 1
    out, err = capsys.readouterr()
    assert "All clear" in out
    assert err == "glassformer: x.csv: already exists; name a new path for the copy\n"


def test_the_control_characters_of_a_label_do_not_reach_the_terminal(tmp_path, said):
    rows = [row | {"label": f"\x1b[31m{row['label']} [b]"} for row in reviews(40)]
    write_csv(tmp_path / "x.csv", rows)
    words = said("x.csv")
    assert "\x1b" not in words
    assert "\\x1b[31mgood [b]" in words


def test_a_header_of_which_a_cell_is_also_a_label_is_read_as_one_and_said(tmp_path, said):
    texts = [row["text"] for row in reviews()]
    rows = [{"message": text, "spam": ("ham", "spam")[n % 2]} for n, text in enumerate(texts)]
    write_csv(tmp_path / "x.csv", rows)
    words = said("x.csv", "--columns", "text=message,label=spam")
    assert words.startswith("x.csv: text = 'message', label = 'spam'; header: yes; utf-8\n")
    assert f"for classify, {len(rows)} train rows" in words
    words = said("x.csv", "--header", "no")
    assert words.startswith("x.csv: text = '1', label = '2'; header: no; utf-8\n")
    assert f"for classify, {len(rows) + 1} train rows" in words


def test_a_header_is_yes_or_no(tmp_path, capsys):
    write_csv(tmp_path / "x.csv", reviews())
    assert main(["doctor", "x.csv", "--header", "maybe"]) == 1
    assert "--header must be yes or no, got 'maybe'" in capsys.readouterr().err


def test_a_table_without_an_ending_is_one_by_what_it_looks_like(tmp_path, said):
    lines = [f"{row['label']}\t{row['text']}\n" for row in reviews()]
    (tmp_path / "SMSSpamCollection").write_text("".join(lines))
    words = said("SMSSpamCollection", "--fix", "clean.tsv")
    assert words.startswith("SMSSpamCollection: text = '2', label = '1'; header: no; utf-8\n")
    assert (tmp_path / "clean.tsv").read_text().startswith('"label"\t"text"\n')


def test_several_labels_in_a_field_are_found_and_said(tmp_path, said):
    labels = ("joy", "anger", "joy,anger")
    rows = [{"text": row["text"], "label": labels[n % 3]} for n, row in enumerate(reviews(60))]
    write_csv(tmp_path / "x.csv", rows)
    words = said("x.csv")
    assert "note: 20 rows have several labels, separated by ',', as in 'joy,anger'" in words
    assert [line.split()[:2] for line in words.splitlines() if "█" in line][-2:] == [
        ["joy", "40"],
        ["anger", "40"],
    ]
    assert "several labels" not in said("x.csv", "--set", "task.multi_label=false")


def test_longer_texts_than_those_that_are_read_are_a_warning(tmp_path, said):
    rows = [
        {"question": f"who {n}", "context": f"it was {row['text']}", "answer": f"she {n}"}
        for n, row in enumerate(reviews())
    ]
    write_csv(tmp_path / "x.csv", rows)
    words = said("x.csv", "--job", "translate")
    assert "; not read: 'context'; utf-8" in words
    assert "warning: longer texts than those that are read stand in the column context" in words
