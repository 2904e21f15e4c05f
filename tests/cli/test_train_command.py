"""`glassformer train`: every option does what it says, and what is said goes where it belongs."""

import json
import os
import re
import signal
import time
import tomllib

import pytest
import torch
from quick import quickly
from small_files import SHORT, TINY, report_of, reviews, train, trained, write_csv

from glassformer.cli import main
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.training import loop
from glassformer.training.weights import read_tensors


@pytest.fixture(autouse=True)
def _quickly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with quickly():
        yield


@pytest.fixture
def data(tmp_path):
    return write_csv(tmp_path / "reviews.csv", reviews())


@pytest.fixture
def home(tmp_path_factory):
    return trained(tmp_path_factory)


def config_of(run):
    return tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))


def intake_of(run):
    return json.loads((run / "intake.json").read_text(encoding="utf-8"))


def weights(run):
    return read_tensors(run / "model.safetensors")


def same(first, second):
    return first.keys() == second.keys() and all(first[n].equal(second[n]) for n in first)


# Where results go


def test_json_is_one_object_on_standard_output_and_quiet_leaves_standard_error_empty(data, capsys):
    assert train(data, "run") == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)
    assert found["run"] == "run"
    assert found["job"] == "classify"
    assert {"accuracy", "macro_f1"} <= found["scores"].keys()
    for score in found["scores"].values():
        assert 0 <= score["value"] <= 1
        low, high = score["low"], score["high"]
        assert score["reason"] if low is None else 0 <= low <= score["value"] <= high <= 1
    assert found["scores"] == next(iter(report_of("run")["scores"].values()))


def test_results_go_to_standard_output_and_all_else_to_standard_error(data, capsys):
    words = [word for word in SHORT if word not in ("--quiet", "--json")]
    assert main(["train", "classify", str(data), *words, "--steps", "1"]) == 0
    out, err = capsys.readouterr()
    assert "accuracy" in out
    assert " parameters, 1 step on " in err
    assert "this model" in out
    assert "Report: runs/reviews/report.html" in out
    assert 'Use it: glassformer predict runs/reviews "..."' in out
    assert "columns: text = 'text', label = 'label'" in err
    assert "rows: " in err
    assert "run folder: runs/reviews\n" in err
    assert "columns:" not in out
    assert "macro_f1 0" not in out.replace("│", " ")


def test_a_log_file_has_plain_readable_lines(data, capsys):
    words = [word for word in SHORT if word != "--quiet"]
    assert main(["train", "classify", str(data), *words]) == 0
    err = capsys.readouterr().err
    assert all(line.isprintable() and line == line.rstrip() for line in err.splitlines())
    progress = r"classify 3/3  loss \d+\.\d+  lr \S+  [\d,]+ tokens/s"
    assert re.search(progress, err)
    assert re.search(r"step +3  validation  accuracy \d\.\d{4} .*best so far", err)


def test_data_cannot_command_the_terminal(tmp_path, capsys):
    rows = [{name: f"\x1b[2J{value}" for name, value in row.items()} for row in reviews()]
    rows[7]["text"] = ""
    data = write_csv(tmp_path / "bell\x07\x1b[31m.csv", rows)
    words = [word for word in SHORT if word not in ("--quiet", "--json")]
    assert main(["train", "classify", str(data), "--run", "run", *words]) == 0
    out, err = capsys.readouterr()
    assert "\\x1b[31m" in err
    assert all(line.isprintable() for line in (out + err).splitlines())


# Data


def test_without_run_a_folder_under_runs_is_named_after_the_data(data, tmp_path):
    for wanted in ("runs/reviews", "runs/reviews-2"):
        assert main(["train", "classify", str(data), *SHORT]) == 0
        assert (tmp_path / wanted / "report.html").exists()


def test_valid_and_test_are_taken_from_the_files_given(data, tmp_path):
    for name, count, seed in (("valid", 11, 3), ("more", 7, 4), ("test", 13, 5)):
        write_csv(tmp_path / f"{name}.csv", reviews(count, seed))
    options = ("--valid", "valid.csv", "--valid", "more.csv", "--test", "test.csv")
    assert train(data, "run", *options) == 0
    assert intake_of(tmp_path / "run")["counts"] == {"train": 113, "valid": 18, "test": 13}
    assert config_of(tmp_path / "run")["data"]["valid"] == ["valid.csv", "more.csv"]


def test_several_files_are_read_as_one(tmp_path):
    names = [str(write_csv(tmp_path / f"{n}.csv", reviews(41, seed=n))) for n in (1, 2)]
    assert main(["train", "classify", *names, "--run", "run", *SHORT]) == 0
    assert sum(intake_of(tmp_path / "run")["counts"].values()) == 82


def test_columns_says_which_column_is_which(tmp_path):
    rows = ({"label": r["text"], "text": r["label"], "x": "y"} for r in reviews())
    data = write_csv(tmp_path / "odd.csv", rows)
    assert train(data, "run", "--columns", "text=label,label=text") == 0
    assert intake_of(tmp_path / "run")["columns"] == {"text": "label", "label": "text"}
    labels = json.loads((tmp_path / "run" / "labels.json").read_text(encoding="utf-8"))
    assert labels["names"] == ["bad", "good"]


def test_rows_of_one_group_stay_in_one_part(data, tmp_path):
    from glassformer.data.samples import Samples

    assert train(data, "run", "--group", "film") == 0
    samples = Samples.open(tmp_path / "run" / "data")
    parts = {}
    for sample, part in zip(samples, samples.splits.tolist(), strict=True):
        parts.setdefault(sample["group"], set()).add(part)
    assert len(parts) == 23
    assert all(len(found) == 1 for found in parts.values())
    assert len({part for found in parts.values() for part in found}) == 3


def test_a_folder_of_folders_and_json_lines_are_data_as_well(tmp_path):
    for number, row in enumerate(reviews(61)):
        folder = tmp_path / "texts" / row["label"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_text(row["text"], encoding="utf-8")
    lines = "".join(json.dumps(row) + "\n" for row in reviews(61))
    (tmp_path / "rows.jsonl").write_text(lines, encoding="utf-8")
    for name in ("texts", "rows.jsonl"):
        assert train(tmp_path / name, f"run-{name}") == 0
        assert sum(intake_of(tmp_path / f"run-{name}")["counts"].values()) == 61


def test_rows_left_out_are_counted_in_the_report(tmp_path):
    rows = [row | {"label": "" if n % 10 == 3 else row["label"]} for n, row in enumerate(reviews())]
    data = write_csv(tmp_path / "gaps.csv", rows)
    assert train(data, "run") == 0
    notes = report_of("run")["notes"]
    assert f"Left out: 11 rows with empty label, first {data} row 4 (line 5)." in notes


# Settings


def test_size_is_one_dial_and_set_turns_any_other(data, tmp_path):
    options = ("--size", "tiny", "--steps", "1", "--no-pretrain", "--quiet", "--json")
    extra = ("--set", "model.encoder.depth=1", "--set", "train.save_every=7", "--set", "seed=5")
    assert main(["train", "classify", str(data), "--run", "run", *options, *extra]) == 0
    config = config_of(tmp_path / "run")
    assert config["model"]["encoder"]["dim"] == 64
    assert config["model"]["encoder"]["attention"]["heads"] == 4
    assert config["model"]["encoder"]["depth"] == 1
    assert config["train"]["save_every"] == 7
    assert config["seed"] == 5


def test_save_every_sets_the_steps_between_checkpoints(data, tmp_path, monkeypatch):
    from glassformer.training.state import State

    saved, save = [], State.save
    monkeypatch.setattr(State, "save", lambda s, f: (saved.append(s.progress.step), save(s, f)))
    assert train(data, "run", "--steps", 7, "--set", "train.save_every=3") == 0
    assert saved == [3, 6, 7]


def test_a_file_of_settings_lies_under_the_options(data, tmp_path):
    text = '[train]\nclip = 0.25\nepochs = 3.0\n[train.optimiser]\nlr = 0.5\nkind = "muon"\n'
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    assert train(data, "run", "--config", "mine.toml", "--steps", 2) == 0
    train_config = config_of(tmp_path / "run")["train"]
    assert train_config["clip"] == 0.25
    assert train_config["optimiser"]["kind"] == "muon"
    assert train_config["optimiser"]["lr"] == 0.01  # --set lies over the file
    assert (train_config["steps"], "epochs" in train_config) == (2, False)


def test_a_run_is_repeated_from_its_own_configuration(data, tmp_path):
    assert train(data, "first", "--set", "data.token_dropout=0.3", "--seed", 3) == 0
    words = ["--config", "first/config.toml", "--run", "second", "--quiet", "--json"]
    assert main(["train", "classify", str(data), *words]) == 0
    assert config_of(tmp_path / "first") == config_of(tmp_path / "second")
    assert same(weights(tmp_path / "first"), weights(tmp_path / "second"))


def test_the_seed_decides_all_that_is_random(data, tmp_path):
    for run, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert train(data, run, "--seed", seed) == 0
    assert config_of(tmp_path / "a")["seed"] == 1
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "c"))


def test_epochs_become_a_number_of_steps_that_is_written_down(data, tmp_path):
    options = (
        *TINY,
        "--epochs",
        "1.5",
        "--no-pretrain",
        "--quiet",
        "--set",
        "data.batch_tokens=99",
    )
    assert main(["train", "classify", str(data), "--run", "run", *options]) == 0
    config = config_of(tmp_path / "run")["train"]
    assert config["epochs"] == 1.5
    lines = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert config["steps"] == json.loads(lines[-1])["step"] > 20


def test_time_covers_all_and_becomes_a_number_of_steps_that_is_written_down(
    data, tmp_path, monkeypatch
):
    monkeypatch.setattr(ClassifyReporter, "baseline_seconds", lambda self: 0.5)
    options = (*TINY, "--time", "4s", "--no-pretrain", "--quiet", "--json")
    started = time.monotonic()
    assert main(["train", "classify", str(data), "--run", "run", *options]) == 0
    assert time.monotonic() - started < 7
    config = config_of(tmp_path / "run")["train"]
    assert config["time"] == 4.0
    lines = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert config["steps"] == json.loads(lines[-1])["step"] > 5


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--steps", "0"), "Invalid value for '--steps'"),
        (("--stesp", "3"), "No such option: --stesp"),
    ],
)
def test_wrong_usage_ends_with_2_and_trains_nothing(words, told, data, tmp_path, capsys):
    before = sorted(tmp_path.rglob("*"))
    assert main(["train", "classify", str(data), *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in re.sub(r"[\s│]+", " ", err)
    assert sorted(tmp_path.rglob("*")) == before


# Other runs


def test_a_run_begins_with_what_another_learned(data, home, tmp_path):
    old = weights(home / "run")
    assert train(data, "all", "--from", home / "run", "--set", "train.optimiser.lr=1e-9") == 0
    config = config_of(tmp_path / "all")
    assert config["origin"] == str(home / "run")
    assert all(t.allclose(old[name], atol=1e-6) for name, t in weights(tmp_path / "all").items())
    tokens = [(run / "tokenizer.json").read_bytes() for run in (home / "run", tmp_path / "all")]
    assert tokens[0] == tokens[1]


def test_a_part_of_it_alone_may_be_taken(data, home, tmp_path):
    old = weights(home / "run")
    options = ("--module", "encoder", "--set", "train.optimiser.lr=1e-9")
    assert train(data, "part", "--from", home / "run", *options) == 0
    for name, tensor in weights(tmp_path / "part").items():
        if tensor.std() > 1e-3:  # norms and biases begin alike
            assert tensor.allclose(old[name], atol=1e-6) == name.startswith("encoder.")


def test_other_labels_leave_the_last_layer_to_be_learned(home, tmp_path, capsys):
    rows = (row | {"label": "abc"[n % 3]} for n, row in enumerate(reviews()))
    data = write_csv(tmp_path / "three.csv", rows)
    words = ["--from", str(home / "run"), *(word for word in SHORT if word != "--quiet")]
    assert main(["train", "classify", str(data), "--run", "run", *words]) == 0
    assert f"starting from encoder, frontend of {home / 'run'}" in capsys.readouterr().err


def test_what_is_frozen_does_not_learn(data, home, tmp_path):
    frozen = ("--from", home / "run", "--set", 'train.freeze=["encoder"]')
    assert train(data, "run", *frozen) == 0
    old, new = weights(home / "run"), weights(tmp_path / "run")
    assert config_of(tmp_path / "run")["train"]["freeze"] == ["encoder"]
    for name in old:
        assert new[name].equal(old[name]) == name.startswith("encoder.")


def test_a_classifier_begins_with_a_run_of_the_job_pretrain(data, tmp_path, capsys):
    words = [*SHORT, "--run", "texts"]
    assert main(["train", "pretrain", str(data), *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"loss", "perplexity", "accuracy"} == found["scores"].keys()
    assert found["baseline"] is None
    assert train(data, "run", "--from", "texts", "--set", "train.optimiser.lr=1e-9") == 0
    old = weights(tmp_path / "texts")
    new = weights(tmp_path / "run")
    shared = [name for name in old if name in new]
    assert any(name.startswith("encoder.") for name in shared)
    assert all(new[name].allclose(old[name], atol=1e-6) for name in shared)


# The machine


def test_device_and_deterministic_are_written_down(data, tmp_path):
    try:
        assert train(data, "run", "--device", "cpu", "--deterministic") == 0
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
        os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
    machine = config_of(tmp_path / "run")["machine"]
    assert (machine["device"], machine["deterministic"]) == ("cpu", True)


def test_curve_says_whether_more_data_would_help(data, tmp_path, capsys):
    assert train(data, "run", "--curve") == 0
    found = json.loads(capsys.readouterr().out)
    [said] = [note for note in found["notes"] if note.startswith("With ")]
    counts = [int(n) for n in re.match(r"With ([\d, ]+) rows", said)[1].split(", ")]
    assert counts == sorted(counts)
    assert counts[-1] == intake_of(tmp_path / "run")["counts"]["train"]
    assert len(counts) == 4
    assert "Learning curve" in [table["title"] for table in report_of("run")["tables"]]


def test_the_report_names_the_command(data):
    assert train(data, "run", "--valid", "reviews.csv", "--set", "data.test_share=0.2") == 0
    command = report_of("run")["facts"]["command"]
    assert command.startswith(f"glassformer train classify {data} --valid reviews.csv --set model.")
    assert "--set data.test_share=0.2" in command
    assert command.endswith("--run run --steps 3 --no-pretrain")


# How it ends


def test_an_interrupted_training_says_how_to_go_on_and_does(
    data, home, tmp_path, monkeypatch, capsys
):
    """Ctrl-C at the fourth step; then it goes on to the same end."""
    accumulate_gradients, steps = loop.accumulate_gradients, iter(range(1, 8))

    def interrupted(*args, **options):
        if next(steps) == 4:
            signal.raise_signal(signal.SIGINT)
        return accumulate_gradients(*args, **options)

    words = [*TINY, "--steps", "7", "--no-pretrain", "--set", "train.save_every=3"]
    with monkeypatch.context() as patch:
        patch.setattr(loop, "accumulate_gradients", interrupted)
        assert main(["train", "classify", str(data), *words]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-2:] == [
        "resume with: glassformer resume runs/reviews",
        "glassformer: interrupted",
    ]
    run = tmp_path / "runs" / "reviews"
    assert (run / "checkpoints" / "latest").read_text() == "step-4\n"
    assert main(["resume", "runs/reviews", "--quiet", "--json"]) == 0
    assert report_of(run)["facts"]["steps"].startswith("7 of 7, kept")
    assert report_of(run)["facts"]["command"].startswith("glassformer train classify ")


def test_a_finished_run_is_not_resumed(home, capsys):
    assert main(["resume", str(home / "run")]) == 1
    told = f"{home / 'run'}: already finished; use it with `glassformer predict {home / 'run'}`"
    assert capsys.readouterr() == ("", f"glassformer: {told}, or train another run\n")
