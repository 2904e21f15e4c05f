"""Runs that came to harm, or from a stranger: one clear line, and nothing is changed."""

import json
import math
import os
import shutil

import pytest
from quick import quickly
from safetensors.torch import load_file, save_file
from small_files import SHORT, trained

from glassformer.cli import main
from glassformer.config.run import FORMAT
from glassformer.errors import GlassformerError
from glassformer.runs import api

BYTES = bytes(range(256)) * 20


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with quickly():
        yield


@pytest.fixture
def home(tmp_path_factory):
    return trained(tmp_path_factory)


@pytest.fixture
def run(home, tmp_path):
    """A copy of a finished run."""
    shutil.copytree(home / "run", tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def old_run(run):
    """A run of a version that kept no checksums."""
    (run / "checksums.json").unlink()
    return run


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def replaced(old, new):
    def edit(path):
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    return edit


def with_job_of_a_list(path):
    path.write_text(path.read_text().replace('job = "classify"', 'job = ["classify"]'))


def nested(path):
    path.write_text('{"names": ' + "[" * 100_000)


def labels(**values):
    """An edit of labels.json."""
    return lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | values))


def weights(value):
    """An edit of the model's weights: one of them becomes this value."""

    def edit(path):
        tensors = load_file(path)
        tensors["to_class.bias"][:] = value
        save_file(tensors, path)

    return edit


def turn_a_bit(at):
    def edit(path):
        content = bytearray(path.read_bytes())
        content[at] ^= 4
        path.write_bytes(content)

    return edit


def pipe(path):
    path.unlink()
    os.mkfifo(path)


LISTS = json.loads("[" * 200 + "]" * 200)


def cut_in_a_line(path):
    """The first half, which ends inside a line."""
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index(" = ", len(text) // 2) + 2], encoding="utf-8")


HARM = {
    "no config": ("config.toml", os.unlink, "not a run folder, it has no config.toml"),
    "half a config": ("config.toml", cut_in_a_line, "run/config.toml: "),
    "a config of bytes": ("config.toml", lambda p: p.write_bytes(BYTES), "not valid TOML"),
    "an empty config": (
        "config.toml",
        lambda p: p.write_text(""),
        "not the configuration of a run",
    ),
    "a config with a typo": (
        "config.toml",
        replaced("depth = 1", "dpeth = 1"),
        "run/config.toml: unknown setting 'model.encoder.dpeth'; did you mean",
    ),
    "a newer format": (
        "config.toml",
        replaced(f"format = {FORMAT}", "format = 99"),
        f"in format 99, this version reads up to {FORMAT}; upgrade glassformer",
    ),
    "a job of the future": (
        "config.toml",
        replaced('job = "classify"', 'job = "dream"'),
        "run/config.toml: unknown job 'dream'; the jobs are classify, recognise",
    ),
    "a job of another type": ("config.toml", with_job_of_a_list, "unknown job ['classify']"),
    "no model": ("model.safetensors", os.unlink, "has no trained model; finish it with"),
    "half a model": ("model.safetensors", cut, "not a complete weights file"),
    "an empty model": (
        "model.safetensors",
        lambda p: p.write_bytes(b""),
        "not a complete weights file",
    ),
    "a model of another size": (
        "config.toml",
        replaced("heads = 2", "heads = 2\nkv_heads = 1"),
        "it belongs to another model",
    ),
    "a model of another width": (
        "config.toml",
        replaced("dim = 16", "dim = 40000"),
        "run/config.toml: declares a width of 40,000, which no tensor of the model has; copy",
    ),
    "a model that cannot be": (
        "config.toml",
        replaced("heads = 2", "heads = 3"),
        "this model cannot be built: rotary positions rotate pairs of channels, but a head has 5",
    ),
    "no tokens": ("tokenizer.json", os.unlink, "run/tokenizer.json: "),
    "half the tokens": ("tokenizer.json", cut, "run/tokenizer.json: "),
    "no labels": ("labels.json", os.unlink, "run/labels.json: not the labels of a run"),
    "half the labels": ("labels.json", cut, "run/labels.json: not the labels of a run"),
    "labels of another type": ("labels.json", lambda p: p.write_text("[1]"), "run/labels.json: "),
    "labels nested deep": ("labels.json", nested, "(nested too deep); copy the run folder again"),
    "names nested deep": ("labels.json", labels(names=LISTS), "names must be str, got [[[[[["),
    "names that are no text": ("labels.json", labels(names=[1, 2]), "names must be str, got 1"),
    "one name twice": ("labels.json", labels(names=["a", "a"]), "two or more, all distinct"),
    "a label too many": ("labels.json", labels(counts=[1]), "there must be one count per name"),
    "a temperature of 0": ("labels.json", labels(temperature=0), "above 0, got 0.0"),
    "a cold temperature": ("labels.json", labels(temperature=-1.5), "above 0, got -1.5"),
    "a temperature of NaN": ("labels.json", labels(temperature=math.nan), "got nan; give a finite"),
    "NaN in the model": ("model.safetensors", weights(math.nan), "bias holds NaN or infinity; the"),
    "infinity": (
        "model.safetensors",
        weights(-math.inf),
        "bias holds NaN or infinity; the file is",
    ),
    "weights too large": ("model.safetensors", weights(3e38), "the model's scores are not finite"),
    "too many layers": ("config.toml", replaced("depth = 1", "depth = 1000000"), "at most 10,000"),
    "more layers than tensors": (
        "config.toml",
        replaced("depth = 1", "depth = 9999"),
        "run/config.toml: declares 9,999 layers, but the model has ",
    ),
    **{
        f"a pipe for {name}": (name, pipe, f"run/{name}: neither a file nor a folder; remove it")
        for name in ("tokenizer.json", "labels.json", "model.safetensors", "config.toml")
    },
}


@pytest.mark.parametrize("case", HARM)
def test_a_harmed_run_is_refused_by_every_command_that_uses_it(case, home, old_run, refused):
    name, harm, told = HARM[case]
    harm(old_run / name)
    assert told in refused("predict", "run", "a fine film")
    assert told in refused("evaluate", "run", home / "test.csv")
    assert told in refused("evaluate", home / "run", home / "test.csv", "--against", "run")


RESUMED = {
    "no config": ("config.toml", os.unlink, "not a run folder"),
    "half a config": ("config.toml", cut_in_a_line, "run/config.toml: "),
    "a newer format": (
        "config.toml",
        replaced(f"format = {FORMAT}", "format = 99"),
        "upgrade glassformer",
    ),
    "half the tokens": ("tokenizer.json", cut, "run/tokenizer.json: "),
    "no labels": ("labels.json", os.unlink, "run/labels.json: "),
    "no data": ("data", shutil.rmtree, "run/data/"),
    "half the samples": ("data/samples.values.npy", cut, "run/data/samples.values.npy"),
    "half the parts": ("data/parts.npy", cut, "run/data/parts.npy: "),
    "no index": ("data/tokens.ends.npy", os.unlink, "run/data/tokens.ends.npy"),
    "half the index of labels": ("data/labels.npy", cut, "run/data/labels.npy: not a valid numpy"),
    "a label that is not": (
        "data/labels.npy",
        turn_a_bit(-2),
        "holds numbers outside 0 to 1; copy",
    ),
    "a split that is not": ("data/parts.npy", turn_a_bit(-2), "holds unknown splits; copy"),
    "no end of a sample": ("data/samples.ends.npy", turn_a_bit(-12), "ends before it begins; copy"),
    "no end of a text": ("data/tokens.ends.npy", turn_a_bit(-12), "ends before it begins; copy"),
    "a token that is not": ("data/tokens.values.npy", turn_a_bit(-2), "holds numbers outside 0 to"),
    "a header of a token": ("data/tokens.values.npy", turn_a_bit(21), "tokens.values.npy: "),
    "a pipe for the index": ("data/tokens.values.npy", pipe, "neither a file nor a folder"),
}


@pytest.mark.parametrize("case", RESUMED)
def test_a_harmed_run_is_not_resumed(case, old_run, refused):
    name, harm, told = RESUMED[case]
    for done in ("report.json", "model.safetensors"):
        (old_run / done).unlink()
    shutil.rmtree(old_run / "checkpoints")
    harm(old_run / name)
    assert told in refused("resume", "run", "--quiet")


def test_a_checkpoint_that_is_not_whole_is_refused(home, tmp_path, refused):
    for name in ("model.safetensors", "optimiser.safetensors", "state.json"):
        run = tmp_path / f"run-{name}"
        shutil.copytree(home / "run", run)
        (run / "report.json").unlink()
        latest = (run / "checkpoints" / "latest").read_text().strip()
        cut(run / "checkpoints" / latest / name)
        assert f"{latest}/{name}" in refused("resume", run.name, "--quiet")


def test_a_harmed_intake_is_refused(home, old_run, refused):
    (old_run / "intake.json").write_text(json.dumps({"columns": {}})[:-3], encoding="utf-8")
    assert "run/intake.json: incomplete or damaged" in refused("evaluate", "run", home / "test.csv")


STRANGE = [
    ("intake.json", {"columns": [1]}, "columns must be a table, got [1]"),
    ("intake.json", {"counts": {"train": "x"}}, "counts.train must be int, got 'x'"),
    ("intake.json", {"skipped": {"a": 1}}, "skipped.a must be a table (count, first), got 1"),
    ("intake.json", [], "it must be a table, got []"),
    ("prediction.json", {"steps": 3}, "the settings after, seconds, took_seconds, bytes, "),
]


@pytest.mark.parametrize(("name", "values", "told"), STRANGE)
def test_what_no_run_writes_is_not_reported_on(name, values, told, old_run):
    (old_run / name).write_text(json.dumps(values))
    (old_run / "report.json").unlink()
    with pytest.raises(GlassformerError) as error:
        api.resume(old_run, quiet=True)
    assert str(error.value).startswith(f"{old_run / name}: not what a run writes ({told}")


def test_a_report_that_no_run_writes_is_listed_with_the_reason(old_run, capsys):
    (old_run / "report.json").write_text('{"scores": 3}')
    assert main(["runs", "list", "run", "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert found["state"] == (
        "run/report.json: not what a run writes (scores must be a table, got 3); copy the run again"
    )


LINES = [{"scores": 3}, {"scores": {"loss": "x", "accuracy": None}}, {"loss": []}, {"loss": 1e99}]


@pytest.mark.parametrize("line", LINES, ids=str)
def test_a_log_that_no_run_writes_is_passed_over(line, old_run):
    with (old_run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": 1} | line) + "\n" + "[" * 100_000 + "\n")
    (old_run / "report.json").unlink()
    assert api.resume(old_run, quiet=True).report["curves"]


# Runs that know their checksums


def changed(path):
    return (
        f"{path}: changed since the run wrote it; copy the run again, or remove checksums.json if "
        f"you changed it on purpose"
    )


USED = ("config.toml", "intake.json", "labels.json", "model.safetensors", "tokenizer.json")
INDEX = ("labels.npy", "parts.npy", "samples.ends.npy", "samples.values.npy", "tokens.ends.npy")


@pytest.mark.parametrize("name", USED)
def test_one_bit_of_a_file_is_noticed_before_it_is_used(name, home, run, refused):
    turn_a_bit(-2)(run / name)
    told = (changed(f"run/{name}"), f"run/{name}: ")  # what is no TOML at all is told as such
    assert refused("predict", "run", "a fine film").startswith(told)
    assert refused("evaluate", "run", home / "test.csv").startswith(told)
    words = ("train", "classify", home / "reviews.csv", *SHORT, "--run", "new")
    assert refused(*words, "--from", "run").startswith(told)


@pytest.mark.parametrize("name", [*INDEX, "tokens.values.npy"])
def test_one_bit_of_the_index_is_noticed_before_anything_is_learned(name, home, run, refused):
    turn_a_bit(-1)(run / "data" / name)
    (run / "report.json").unlink()
    for words in (("resume", "run", "--quiet"), ("evaluate", "run", home / "test.csv")):
        assert refused(*words) == changed(f"run/data/{name}")


def test_what_was_changed_on_purpose_is_used_once_the_checksums_are_gone(run, refused, capsys):
    labels(temperature=3.5)(run / "labels.json")
    assert refused("predict", "run", "a fine film") == changed("run/labels.json")
    (run / "checksums.json").unlink()
    assert main(["predict", "run", "a fine film"]) == 0


@pytest.mark.parametrize("content", ["{", "[]", "[" * 100_000])
def test_checksums_that_cannot_be_read_are_refused(content, run, refused):
    (run / "checksums.json").write_text(content)
    assert refused("predict", "run", "a fine film").startswith(
        ("run/checksums.json: incomplete or damaged", "run/checksums.json: not what a run writes")
    )
