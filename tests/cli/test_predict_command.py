"""`glassformer predict`: texts, files and standard input; an answer a line, in order."""

import gzip
import inspect
import json
import os
import select
import shutil
import sys
from threading import Thread

import numpy as np
import pytest
from small_files import reviews, shared, train, trained, write_csv

from glassformer.cli import job_options, main
from glassformer.data.sources import decoding
from glassformer.runs.run import Run
from glassformer.tasks.about import Option
from glassformer.tasks.classify.ngram_baseline import NgramBaseline
from glassformer.tasks.classify.stored_baseline import StoredBaseline


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory) / "run"


@pytest.fixture
def texts():
    return [row["text"] for row in reviews(7, seed=6)]


def lines_of(out):
    """Answers and confidences as the command prints them with --confidence."""
    return [(label, float(sure)) for label, sure in (line.split("\t") for line in out.splitlines())]


def answers_to(run, texts):
    """The same from Python, one by one, so that nothing can change places."""
    loaded = Run(run)
    found = [loaded.predict(text) for text in texts]
    return [(one.text, pytest.approx(one.confidence, abs=0.0006)) for one in found]


def predict(run, *words):
    return main(["predict", str(run), "--confidence", *map(str, words)])


def test_a_text_gets_an_answer_and_how_sure_it_is(run, capsys):
    assert predict(run, "a great and lovely film with a superb dog") == 0
    out, err = capsys.readouterr()
    assert err == ""
    [(label, sure)] = lines_of(out)
    assert label == "good"
    assert 0.5 <= sure <= 1


def test_a_line_has_the_answer_and_nothing_else_unless_asked(run, texts, capsys):
    assert main(["predict", str(run), *texts, ""]) == 0
    assert capsys.readouterr().out.splitlines() == [
        *(label for label, _ in answers_to(run, texts)),
        "",
    ]


def test_an_empty_text_has_an_empty_answer_marked_so(run, capsys):
    assert predict(run, "--json", "", "a great film", " ") == 0
    first, second, third = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["prediction"], first["empty"], first["probabilities"]) == ("", True, {})
    assert "empty" not in second
    assert (third["prediction"], third["empty"]) == ("", True)


def test_a_text_of_which_nothing_is_known_gets_no_confident_label(run, tmp_path, capsys):
    assert predict(run, "--json", "a great film", "猫 ☃ 犬") == 0
    out, err = capsys.readouterr()
    known, unknown = map(json.loads, out.splitlines())
    assert "unknown" not in known
    assert unknown["unknown"] is True
    assert unknown["prediction"] is None
    assert unknown["guess"]["label"] in unknown["guess"]["probabilities"]
    told = f"no answer (?) to 1 of 2 inputs: {unknown['reason']}"
    assert told in err
    assert main(["predict", str(run), "猫 ☃ 犬"]) == 0
    out, err = capsys.readouterr()
    assert out == "?\n"
    assert predict(run, "猫 ☃ 犬") == 0
    assert capsys.readouterr().out == "?\t0.000\n"
    assert f"no answer (?): {unknown['reason']}" in err


def test_a_file_in_place_of_a_text_is_read_and_said(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "few.csv", ["text", "a great film"])
    assert predict(run, "@few.csv") == 0
    answers = capsys.readouterr().out
    assert predict(run, "few.csv") == 0
    out, err = capsys.readouterr()
    assert out == answers
    assert "glassformer: reading the file few.csv, as @few.csv does" in err


def test_a_word_that_is_also_the_name_of_a_file_is_refused(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "film", ["a great film"])
    assert predict(run, "film") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "film is a file, but the inputs are texts; write @film for its lines" in err


def test_several_texts_get_an_answer_each_in_order(run, texts, capsys):
    assert predict(run, *texts) == 0
    found = lines_of(capsys.readouterr().out)
    assert found == answers_to(run, texts)
    assert {label for label, _ in found} == {"good", "bad"}


def test_json_has_the_probability_of_every_label(run, texts, capsys):
    assert predict(run, "--json", *texts) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [values["input"] for values in found] == texts
    for values in found:
        assert values["probabilities"].keys() == {"good", "bad"}
        assert sum(values["probabilities"].values()) == pytest.approx(1)
        assert values["confidence"] == max(values["probabilities"].values())
        assert values["probabilities"][values["prediction"]] == values["confidence"]


def test_below_the_confidence_asked_for_there_is_no_answer(run, capsys):
    texts = [f"a {'great ' * n}film and {'dull ' * (6 - n)}people" for n in range(7)]
    sure = [found.confidence for found in Run(run).predict(texts)]
    limit = sorted(sure)[3]
    assert predict(run, "--abstain", limit, *texts) == 0
    unsure = [label == "?" for label, _ in lines_of(capsys.readouterr().out)]
    assert unsure == [confidence < limit for confidence in sure]
    assert 0 < sum(unsure) < len(unsure)
    assert predict(run, "--abstain", limit, "--json", *texts) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [values["abstained"] for values in found] == unsure
    assert [values["prediction"] is None for values in found] == unsure


def write_lines(path, texts):
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")


def write_packed_lines(path, texts):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\r\n".join(texts) + "\r\n")


def write_table(path, texts):
    write_csv(path, ({"film": "a much longer column than the text" * 9, "text": t} for t in texts))


def write_json_lines(path, texts):
    path.write_text("".join(json.dumps({"text": t.split()}) + "\n" for t in texts))


FILES = {
    "x.txt": write_lines,
    "x.txt.gz": write_packed_lines,
    "x.csv": write_table,
    "x.jsonl": write_json_lines,
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_after_an_at_sign_and_empty_texts_keep_their_place(
    name, run, texts, tmp_path, capsys
):
    texts = [*texts[:2], "", *texts[2:], ""]
    FILES[name](tmp_path / name, texts)
    assert predict(run, f"@{tmp_path / name}") == 0
    assert lines_of(capsys.readouterr().out) == answers_to(run, texts)


def test_texts_and_files_may_be_mixed(run, texts, tmp_path, capsys):
    write_lines(tmp_path / "x.txt", texts[2:])
    assert predict(run, texts[0], f"@{tmp_path / 'x.txt'}", texts[1], "@") == 0
    *found, at = lines_of(capsys.readouterr().out)
    assert found == answers_to(run, [texts[0], *texts[2:], texts[1]])
    assert at[0] == "?"  # a text like any other, if an unknown one


def test_more_texts_than_fit_one_batch_keep_their_order(run, tmp_path, capsys):
    texts = [row["text"] for row in reviews(600, seed=8)]
    write_lines(tmp_path / "many.txt", texts)
    assert predict(run, "--json", f"@{tmp_path / 'many.txt'}") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [values["input"] for values in found] == texts
    right = sum(v["prediction"] == r["label"] for v, r in zip(found, reviews(600, 8), strict=True))
    assert right > 540


def test_a_text_longer_than_the_model_reads_is_answered(run, capsys):
    assert predict(run, "great " * 100_000) == 0
    assert len(lines_of(capsys.readouterr().out)) == 1


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("none.txt", None, "none.txt: not found; check the path after @"),
        ("empty.txt", b"", "empty.txt: the file is empty"),
        ("broken.txt", b"fine\nd\xe9j\xe0 vu\n", "broken.txt line 2: not valid UTF-8 (byte 0xe9"),
        ("broken.csv", b"text\nfine\nd\xe9j\xe0 vu\n", "broken.csv line 3: not valid UTF-8"),
        ("zip.txt", b"PK\x03\x04....", "zip.txt: not text but a ZIP archive"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_line(
    name, content, told, run, tmp_path, capsys
):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert predict(run, f"@{tmp_path / name}") == 1
    err = capsys.readouterr().err
    assert err.startswith(f"glassformer: {tmp_path}")
    assert told in err
    assert err.count("\n") == 1


def test_what_stands_before_a_line_that_cannot_be_answered_is_answered(
    run, texts, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(decoding, "LONGEST_LINE", 1000)
    write_lines(tmp_path / "long.txt", [*texts, "word " * 300, "never answered"])
    assert predict(run, f"@{tmp_path / 'long.txt'}") == 1
    out, err = capsys.readouterr()
    assert "long.txt line 8: longer than 1,000 characters" in err
    assert lines_of(out) == answers_to(run, texts)


def test_a_text_that_is_no_unicode_is_refused(run, capsys):
    assert predict(run, "fine", "bad \udcff byte") == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert err == "glassformer: input 2 is not UTF-8; send it as UTF-8, or as a file\n"


# Standard input


def test_standard_input_is_a_text_a_line(run, texts, typed, capsys):
    texts = ["", *texts[:3], "", "", *texts[3:]]
    with typed(b"\xef\xbb\xbf" + "\r\n".join(texts).encode()):  # as some editors save it
        assert predict(run) == 0
    assert lines_of(capsys.readouterr().out) == answers_to(run, texts)


def test_broken_utf_8_on_standard_input_names_the_line(run, typed, capsys):
    with typed(b"a dog\na great film\nd\xe9j\xe0\nnever answered\n"):
        assert predict(run) == 1
    told = "standard input line 3: not UTF-8 (byte 0xe9); save it as UTF-8"
    out, err = capsys.readouterr()
    assert err == f"glassformer: {told}\n"
    assert lines_of(out) == answers_to(run, ["a dog", "a great film"])


def test_no_input_gets_no_answer(run, typed, capsys):
    with typed(b""):
        assert predict(run) == 0
    assert capsys.readouterr() == ("", "")


def test_a_line_without_end_is_refused(run, typed, capsys, monkeypatch):
    from glassformer.cli import inputs

    monkeypatch.setattr(inputs, "MOST_BYTES", 100_000)
    with typed(b"film\n" + b"word " * 50_000):
        assert predict(run) == 1
    told = "standard input line 2: longer than 100,000 bytes; split it into several lines"
    out, err = capsys.readouterr()
    assert err == f"glassformer: {told}\n"
    assert lines_of(out) == answers_to(run, ["film"])


def test_a_line_through_a_pipe_is_answered_before_the_pipe_is_closed(run, monkeypatch, capfd):
    (given, giving), (reading, writing) = os.pipe(), os.pipe()
    texts, found = ("a great film", "a dull film"), []

    def talk():
        """Gives a line only once the one before it is answered."""
        with os.fdopen(giving, "w", buffering=1) as there, os.fdopen(reading) as back:
            for text in texts:
                there.write(f"{text}\n")
                ready, _, _ = select.select([back], [], [], 10)
                found.extend(lines_of(back.readline()) if ready else [])
            there.close()
            found.extend(back)

    with os.fdopen(given) as stdin, os.fdopen(writing, "w") as stdout:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", stdout)  # which holds back what is not flushed
        talking = Thread(target=talk)
        talking.start()
        assert predict(run) == 0
    talking.join(timeout=30)
    assert found == answers_to(run, texts)
    assert capfd.readouterr() == ("", "")


# Other runs


def test_several_labels_a_text_are_answered_together(tmp_path_factory, capsys):
    def make(folder):
        rows = [
            row | {"label": f"{row['label']}; {'xy'[n % 3 > 0]}"} for n, row in enumerate(reviews())
        ]
        write_csv(folder / "many.csv", rows)
        options = ("--set", "task.separator=;", "--steps", 20)
        assert train(folder / "many.csv", folder / "run", *options) == 0

    folder = shared("several labels", tmp_path_factory, make)
    capsys.readouterr()
    assert predict(folder / "run", "--json", "a great and lovely film") == 0
    values = json.loads(capsys.readouterr().out)
    assert values["probabilities"].keys() == {"bad", "good", "x", "y"}
    wanted = [name for name, chance in values["probabilities"].items() if chance >= 0.5]
    assert values["labels"] == wanted
    assert values["prediction"] == ", ".join(wanted)


def test_options_of_a_job_leave_those_of_the_command_alone(monkeypatch):
    theirs = {name: (Option(name=name, help="of a job"), ["any"]) for name in ("run", "beam")}
    monkeypatch.setattr(job_options, "declared", lambda: theirs)

    def command(run: str = "", **options: object) -> None: ...

    found = inspect.signature(job_options.with_job_options(command)).parameters
    assert list(found) == ["run", "beam"]
    assert found["run"].annotation is str


def test_the_baseline_answers_in_place_of_the_model(run, texts, tmp_path, capsys):
    copied = tmp_path / "run"
    shutil.copytree(run, copied)
    assert predict(copied, "--baseline", "fine") == 1
    assert "the run keeps no baseline; leave out" in capsys.readouterr().err
    learned, labels = ["great lovely", "dull slow"] * 5, np.array([1, 0] * 5)
    StoredBaseline.of(NgramBaseline.fit(learned, labels, [], labels[:0], 2)).save(copied)
    expected = StoredBaseline.load(copied).probabilities(texts)
    assert predict(copied, "--baseline", "--json", *texts) == 0
    found = [json.loads(line)["probabilities"] for line in capsys.readouterr().out.splitlines()]
    assert [[one["bad"], one["good"]] for one in found] == pytest.approx(expected)
    same = [list(one.details["probabilities"].values()) for one in Run(run).predict(texts)]
    assert same != pytest.approx(expected)


def test_an_option_of_many_jobs_has_a_title_that_fits(capsys):
    assert main(["predict", "--help"]) == 0
    said = capsys.readouterr().out
    assert "Options of several jobs" in said
    assert "--alternatives" in said.split("Options of several jobs")[1].split("╰")[0]
    assert "Options of transcribe, translate, recommend" in said
