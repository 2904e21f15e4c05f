"""`glassformer plan`: the options of `train`, and what they would take, in words and as JSON."""

import inspect
import json
import re
import subprocess
import sys

import pytest
from quick import quickly
from small_files import TINY, everything_in, reviews, write_csv

from glassformer.cli import main
from glassformer.cli.options import train_options, with_train_options
from glassformer.cli.plan import plan
from glassformer.cli.train import train
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.training import memory

WORDS = (*TINY, "--steps", "3", "--no-pretrain")


@pytest.fixture(autouse=True)
def _quickly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ClassifyReporter, "timed_baseline_seconds", lambda self: 7.0)
    with quickly():
        yield


@pytest.fixture
def data(tmp_path):
    return str(write_csv(tmp_path / "reviews.csv", reviews()))


PAIRS = {
    "sentences": [("english", "german"), *((f"a dog {n}", f"ein Hund {n}") for n in range(60))],
    "very short texts": [("a", "b"), *((f"{n}x", f"{n}") for n in range(60))],
    "numbers": [("0", "zero"), *((f"{n}", " ".join(f"{n}")) for n in range(1, 60))],
}


@pytest.mark.parametrize("command", ["plan", "train"])
@pytest.mark.parametrize("case", PAIRS)
def test_pairs_are_recognised_where_a_label_is_missing(case, command, tmp_path, capsys):
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"{one}\t{other}\n" for one, other in PAIRS[case]))
    assert main([command, "classify", str(data), *WORDS]) == 1
    err = capsys.readouterr().err
    assert "no column for label" in err
    assert err.endswith("they look like data for translate\n")


def test_pairs_are_recognised_where_one_side_looks_like_labels(tmp_path, capsys):
    rows = [{"de": f"ein Hund {n}", "en": f"dog {n % 5}", "id": n} for n in range(60)]
    data = str(write_csv(tmp_path / "pairs.csv", rows))
    told = "these look like data for translate rather than classify\n"
    assert main(["plan", "classify", data, *WORDS]) == 0
    assert told in capsys.readouterr().err
    assert main(["plan", "classify", data, *WORDS, "--columns", "label=en"]) == 0
    assert told not in capsys.readouterr().err


def test_data_that_are_refused_may_be_for_another_job(tmp_path, capsys):
    rows = [{"de": f"ein Hund {n}", "en": "dog"} for n in range(2)]
    assert main(["plan", "classify", str(write_csv(tmp_path / "pairs.csv", rows)), *WORDS]) == 1
    err = capsys.readouterr().err
    assert "too few to hold some out for validation" in err
    assert err.endswith("they look like data for translate\n")


def test_json_is_one_object_on_standard_output_and_nothing_is_left(data, tmp_path, capsys):
    before = everything_in(tmp_path)
    assert main(["plan", "classify", data, *WORDS, "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    assert (found["job"], found["work"]["steps"], found["fits"]) == ("classify", 3, True)
    assert found["parameters"] == sum(sum(part.values()) for part in found["parts"].values())
    assert found["seconds"]["in all"] > found["seconds"]["reporting"] > 7
    assert everything_in(tmp_path) == before


def test_a_table_tells_people(data, capsys):
    assert main(["plan", "classify", data, *WORDS, "--set", 'train.freeze=["frontend"]']) == 0
    out, err = capsys.readouterr()
    assert "rows: " in err
    for words in (
        "parameters",
        "per step",
        "GFLOP/s",
        "activations",
        "enough: yes",
        "reporting 7s",
    ):
        assert words in out
    assert re.search(r"frontend [\d,]+ \(all frozen\), encoder [\d,]+,", out)
    assert out.endswith("Memory is for training; the baseline at the end needs its own.\n")


def test_what_does_not_fit_is_said_with_what_to_change(data, capsys, monkeypatch):
    monkeypatch.setattr(memory, "in_use", lambda device: 0)
    monkeypatch.setattr(memory, "capacity", lambda device: 300_000)
    assert main(["plan", "classify", data, *WORDS, "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "enough: no" in out
    assert "not measured" in out
    assert re.search(r"^Out of memory: .* --set data\.batch_tokens=\d+ --set train", out, re.M)


def test_a_model_too_large_to_be_built_has_a_plan_all_the_same(data, capsys):
    words = [*WORDS, "--set", "model.encoder.dim=2000000", "--quiet"]
    assert main(["plan", "classify", data, *words]) == 0
    out, _ = capsys.readouterr()
    assert "enough: no" in out
    assert "this model does not fit: its weights, gradients and optimiser take" in out
    assert main(["plan", "classify", data, *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fits"] is False


def test_a_folder_that_is_taken_is_refused_as_train_refuses_it(data, tmp_path, capsys):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    assert main(["plan", "classify", data, *WORDS, "--run", "taken"]) == 1
    assert "taken: already exists" in capsys.readouterr().err


def test_plan_and_train_take_the_same_options():
    ours, theirs = (inspect.signature(command).parameters for command in (plan, train))
    assert list(ours) == list(theirs)
    assert list(inspect.signature(train_options).parameters) == list(ours)[:-2]


def test_every_option_reaches_what_is_asked_for():
    heard = []
    command = with_train_options(lambda asked, began, loud=False: heard.append((asked, loud)))
    given = {
        name: value.default for name, value in inspect.signature(train_options).parameters.items()
    }
    command(
        **given | {"job": "classify", "data": ["a", "b"], "steps": 7, "curve": True, "loud": True}
    )
    [(asked, loud)] = heard
    assert (asked.job, asked.data, asked.steps, asked.curve, loud) == (
        "classify",
        ("a", "b"),
        7,
        True,
        True,
    )


def test_help_answers_without_torch():
    code = (
        "import sys; from glassformer.cli import main; main(['plan', '--help']); "
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "--no-pretrain" in done.stdout


@pytest.mark.parametrize("command", ["train", "plan"])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--steps", "3", "--epochs", "1"),
            "--steps and --epochs both set the length of training; give one",
        ),
        (
            ("--epochs", "3", "--time", "1m"),
            "--epochs and --time both set the length of training; give one",
        ),
        (("--module", "encoder"), "--module encoder needs a run to copy it from; add --from RUN"),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_one_line(
    command, words, told, data, capsys
):
    assert main([command, "classify", str(data), *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"glassformer: {told}")
    assert err.count("\n") == 1
