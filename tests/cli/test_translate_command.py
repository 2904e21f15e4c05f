"""`glassformer train translate` and what follows: results, and mistakes in one line."""

import json

import pytest
from quick import quickly
from small_files import report_of, shared

from glassformer.cli import main

STACKS = [
    word
    for stack in ("encoder", "decoder")
    for setting in ("dim=16", "depth=1")
    for word in ("--set", f"model.{stack}.{setting}")
]
SHORT = [
    *STACKS,
    *("--set", "task.decode.method=greedy", "--set", "task.decode.max_length=6"),
    *("--set", "machine.threads=1", "--steps", "3", "--quiet"),
]
WORDS = ("cat", "dog", "tree", "house", "river", "stone", "cloud", "bread", "chair", "glass")


# What is tested here is how runs hang together; shapes are checked in tests/tasks.
pytestmark = pytest.mark.usefixtures("without_shape_hook")


@pytest.fixture(autouse=True)
def _quickly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with quickly():
        yield


def write_rows(path, rows):
    """A table with a column a name."""
    lines = ["\t".join(rows[0]), *("\t".join(row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def pairs(count=97):
    words = [a + b for a in WORDS for b in WORDS][:count]
    return [{"source": word, "target": word[::-1]} for word in words]


def tagged(count=97):
    return [
        {"source": row["source"], "to": "back" if n % 2 else "same", "target": row["target"]}
        for n, row in enumerate(pairs(count))
    ]


def train(data, *words):
    return main(
        ["train", "translate", *([data] if isinstance(data, str) else data), *SHORT, *words]
    )


@pytest.fixture
def home(tmp_path_factory):
    """A folder with tagged.tsv and a run that writes in two ways."""

    def make(folder):
        data = write_rows(folder / "tagged.tsv", tagged())
        assert train(data, "--run", str(folder / "run"), "--json") == 0

    return shared("tagged", tmp_path_factory, make)


def refused(capsys, *words):
    """The one line that a mistake gives."""
    assert main(list(words)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    [line] = err.splitlines()
    return line.removeprefix("glassformer: ")


@pytest.mark.parametrize("kind", ["transformer", "gru", "lstm", "tcn"])
def test_one_command_trains_scores_and_says_how_to_go_on(kind, tmp_path, capsys):
    data = write_rows(tmp_path / "pairs.tsv", pairs())
    assert train(data, "--run", "run", "--set", f"model.kind={kind}") == 0
    out = capsys.readouterr().out
    for words in ("exact", "cer", "Some rows", "Use it: glassformer predict run"):
        assert words in out
    assert main(["predict", "run", "catdog", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["input"] == "catdog"
    assert isinstance(found["prediction"], str)
    assert main(["evaluate", "run", data, "--against", "run", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["scores"].keys() == {"exact", "wer", "cer", "loss"}
    assert values["against"]["cer"]["difference"]["value"] == 0


def test_a_run_of_several_target_languages_says_to_begin_with_a_tag(tmp_path, capsys):
    data = write_rows(tmp_path / "tagged.tsv", tagged())
    assert train(data, "--run", "run") == 0
    assert 'Use it: glassformer predict run "<back> ..."' in capsys.readouterr().out
    assert main(["predict", "run", "<back> ..."]) == 0


def test_two_parallel_files_are_pairs(tmp_path):
    rows = pairs()
    for side, name in (("source", "train.de"), ("target", "train.en")):
        (tmp_path / name).write_text("\n".join(row[side] for row in rows) + "\n")
    assert train(["train.de", "train.en"], "--run", "run") == 0
    intake = json.loads((tmp_path / "run" / "intake.json").read_text())
    assert sum(intake["counts"].values()) == len(rows)


def test_texts_that_are_cut_are_told_before_training_and_in_the_report(tmp_path, capsys):
    data = write_rows(tmp_path / "pairs.tsv", pairs())
    words = [word for word in SHORT if word != "--quiet"]
    cut = ["--run", "run", "--set", "task.max_length=7"]
    assert main(["train", "translate", data, *words, *cut]) == 0
    err = capsys.readouterr().err
    assert "source texts have more than task.max_length = 7 tokens and are truncated" in err
    assert any("target texts have more" in note for note in report_of("run")["notes"])
    assert main(["evaluate", "run", data]) == 0
    assert "source texts have more" in capsys.readouterr().out


def test_a_table_says_in_which_language_to_write_each_row(home, tmp_path, capsys):
    assert main(["predict", str(home / "run"), "<same> catdog", "<back> catdog"]) == 0
    typed = capsys.readouterr().out
    table = [{"source": "catdog", "to": to, "more": "x"} for to in ("same", "back")]
    asked = write_rows(tmp_path / "ask.tsv", table)
    assert main(["predict", str(home / "run"), f"@{asked}"]) == 0
    assert capsys.readouterr().out == typed


def test_a_plan_is_made_for_pairs(tmp_path, capsys):
    data = write_rows(tmp_path / "pairs.tsv", pairs())
    words = [word for word in SHORT if word != "--quiet"]
    assert main(["plan", "translate", data, *words, "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parts"].keys() >= {"encoder", "decoder"}
    assert found["work"]["flops"] > 0
    assert found["fits"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--set", "model.decoder=mamba"], "unknown model.decoder 'mamba'; did you mean 'llama'?"),
        (["--set", "model.kind=gruu"], "unknown model.kind of the encoder 'gruu'; did you mean"),
        (["--set", "task.measure=blue"], "unknown task.measure 'blue'; the choices are auto"),
        (["--set", "task.monolingual=x.txt"], "task.monolingual has no sources; name the run that"),
        (["--columns", "source=source,target=goal"], "pairs.tsv: unknown column 'goal'; the ch"),
        (
            ["--set", "model.encoder.dim=24"],
            "share = true needs a frontend of tokens, and",
        ),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(words, complaint, tmp_path, capsys):
    write_rows(tmp_path / "pairs.tsv", pairs())
    said = refused(capsys, "train", "translate", "pairs.tsv", *SHORT, *words)
    assert said.startswith(complaint)
    assert not (tmp_path / "runs").exists()


def test_a_row_that_says_no_language_is_named(tmp_path, capsys):
    rows = tagged()
    rows[4] = rows[4] | {"to": ""}
    write_rows(tmp_path / "pairs.tsv", rows)
    said = refused(capsys, "train", "translate", "pairs.tsv", "--run", "run", *SHORT)
    assert said.startswith("pairs.tsv row 5 (line 6): has no target language; fill in the")
    assert not (tmp_path / "run").exists()


def test_what_is_asked_of_a_run_with_several_languages_must_name_one(home, tmp_path, capsys):
    run = str(home / "run")
    asked = refused(capsys, "predict", run, "catdog")
    assert asked.startswith("'catdog' has no target language; start it with one")
    other = write_rows(tmp_path / "pairs.tsv", pairs(5))
    said = refused(capsys, "evaluate", run, other)
    assert said.startswith(f"{other} row 1 (line 2): has no target language")


@pytest.mark.parametrize(
    ("name", "lines", "place"),
    [
        ("m.txt", ["<same> catdog", "no tag"], "line 2"),
        ("m.tsv", ["source\tto", "catdog\tsame", "no tag\t"], "row 2 (line 3)"),
    ],
)
def test_what_names_no_language_is_found_in_its_file(name, lines, place, home, tmp_path, capsys):
    (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    assert main(["predict", str(home / "run"), f"@{name}"]) == 1
    out, err = capsys.readouterr()
    last = err.splitlines()[-1].removeprefix("glassformer: ")
    assert last.startswith(f"{name} {place}: 'no tag' has no target language")
    assert len(out.splitlines()) == 1


def test_what_names_no_language_is_found_on_standard_input(home, tmp_path, capsys, monkeypatch):
    (tmp_path / "stdin").write_text("<same> catdog\nno tag\n<same> dog\n", encoding="utf-8")
    with (tmp_path / "stdin").open("rb") as typed:
        monkeypatch.setattr("sys.stdin", typed)
        assert main(["predict", str(home / "run")]) == 1
    out, err = capsys.readouterr()
    assert err.startswith("glassformer: standard input line 2: 'no tag' has no target language")
    assert len(out.splitlines()) == 1


def test_rows_with_an_empty_side_are_left_out_and_counted(tmp_path, capsys):
    rows = pairs()
    rows[2], rows[6] = rows[2] | {"target": ""}, rows[6] | {"source": " "}
    data = write_rows(tmp_path / "pairs.tsv", rows)
    words = [word for word in SHORT if word != "--quiet"]
    assert main(["train", "translate", data, *words, "--run", "run"]) == 0
    err = capsys.readouterr().err
    assert f"left out: 1 row with empty target, first {data} row 3 (line 4)" in err
    assert f"left out: 1 row with empty source, first {data} row 7 (line 8)" in err
