"""A job of another modality, from another package, is served whole, without an edit in `src`.

`installed/` is what pip would put beside glassformer: the package `tones`, which reads recordings
and writes words, and its entry point.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from recordings import WORDS, play, write_folder, write_recording

import glassformer
from glassformer import tasks
from glassformer.errors import GlassformerError
from glassformer.training.weights import read_tensors

HERE = Path(__file__).parent
INSTALLED = HERE / "installed"
SOURCE = Path(glassformer.__file__).parents[1]
SETTINGS = (
    *("model.encoder.dim=32", "model.encoder.attention.heads=2", "model.encoder.dropout=0.1"),
    *("train.optimiser.lr=1e-2", "train.save_every=7", "train.validate_every=20"),
    "machine.device=cpu",  # where a resumed run has the same bits
)
TWICE = ("train.regularise.r_drop=0.5", "train.regularise.vat.weight=0.5")  # and with noise
STEPS = 60


@pytest.fixture(scope="module")
def environment():
    """That of a process which has the package installed."""
    path = os.pathsep.join([str(INSTALLED), str(SOURCE), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, "COLUMNS": "200"}


@pytest.fixture
def glass(environment, tmp_path):
    """Runs a command in a process of its own, in a folder of recordings."""
    program = [sys.executable, str(HERE / "session.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}

    def run(*command, fails=False, killed_at=None):
        words = [str(word) for word in command]
        asked = {"command": words, "killed_at": killed_at}
        print(json.dumps(asked), file=session.stdin, flush=True)
        code, out, err = json.loads(session.stdout.readline())
        assert code == (-9 if killed_at else int(fails)), err
        return err if fails else out

    with subprocess.Popen(program, cwd=tmp_path, env=environment, **pipes) as session:
        yield run
        session.kill()


@pytest.fixture
def installed(monkeypatch):
    """The package, installed for this process."""
    monkeypatch.syspath_prepend(INSTALLED)
    monkeypatch.setattr(tasks.JOBS, "loaded", {})
    tasks._entry_points.cache_clear()
    yield
    tasks._entry_points.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "tones"]:
        del sys.modules[name]


@pytest.fixture
def clips(tmp_path):
    """A folder of recordings and a table of others."""
    write_folder(tmp_path / "clips", 151)
    others = write_folder(tmp_path / "others", 23, seed=1)
    lines = [f"others/{path.name},{word}\n" for path, word in others]
    (tmp_path / "table.csv").write_text("file,word\n" + "".join(lines), encoding="utf-8")
    return others


def test_the_job_of_another_package_goes_through_every_command(glass, clips, tmp_path, installed):
    examine(glass, tmp_path)
    train(glass, tmp_path)
    evaluate(glass)
    compare(glass, tmp_path)
    predict_from_the_command_line(glass, clips)
    predict_from_python(tmp_path, clips)


def set_to(settings):
    return [f"--set={setting}" for setting in settings]


def examine(glass, folder):
    """The doctor knows whose data these are, and finds what only this job looks for."""
    assert "for listen, 151 train rows\nAll clear" in glass("doctor", "clips")
    lines = ["path,text", "others/none.wav,ad", "silence.wav,ad", ",ad"]
    lines += [f"clips/{path.name},ad" for path in sorted((folder / "clips").glob("a*-*.wav"))]
    (folder / "faulty.csv").write_text("\n".join(lines), encoding="utf-8")
    write_recording(folder / "silence.wav", np.zeros(131))
    said = glass("doctor", "faulty.csv", "--job", "listen", "--fix", "clean.csv")
    assert "for listen" in said
    assert "1 recording without a sound\n    record them again, or drop them with --fix" in said
    assert "1 row with a missing recording\n" in said
    assert "1 row with empty path\n" in said
    assert "left out: 1 row, silent" in said
    kept = (folder / "clean.csv").read_text().split()
    assert kept == [lines[0], *lines[4:]]


def train(glass, folder):
    """Planned, trained in peace, killed and resumed to the same bits, and reported."""
    asked = ("listen", "clips", "--steps", STEPS, *set_to(SETTINGS))
    planned = json.loads(glass("plan", *asked, "--json"))
    assert planned["parts"].keys() == {"frontend", "encoder", "to_letter"}
    refused = glass("plan", *asked, "--set", "data.tokenizer.kind=bpe", fails=True)
    assert "data.tokenizer.kind has no effect on listen; leave it out" in refused
    assert "Use it: glassformer predict peace" in glass("train", *asked, "--run", "peace")
    glass("train", *asked, "--run", "run", killed_at="run/checkpoints/step-14")
    assert not (folder / "run" / "model.safetensors").exists()
    found = json.loads(glass("resume", "run", "--json"))
    models = [read_tensors(folder / run / "model.safetensors") for run in ("peace", "run")]
    assert all(models[0][name].equal(models[1][name]) for name in models[0] | models[1])
    assert found["baseline"]["name"].startswith("most frequent word (")
    assert found["scores"]["cer"]["high"] < found["baseline"]["scores"]["cer"]["low"]
    report = json.loads((folder / "run" / "report.json").read_text())
    assert report["notes"][0] == report["verdict"][0]
    assert report["notes"][0].startswith("Better than the baseline (most frequent word): over ")
    assert "character error rate is" in report["notes"][0]
    assert "most frequent word" in (folder / "run" / "report.html").read_text()


def evaluate(glass):
    """On a table beside a run that learned little."""
    asked = ("listen", "clips", "--steps", 1, *set_to(TWICE), "--quiet")
    said = glass("train", *asked, "--test", "table.csv", "--test", "clips", "--run", "poor")
    assert "recordings of the test split are also in the training split" in said
    found = json.loads(glass("evaluate", "run", "table.csv", "--against", "poor", "--json"))
    assert found["rows"] == 23
    assert found["trained_on"] == 0
    assert found["cer"]["value"] < found["against_scores"]["cer"]["value"]
    assert found["against"]["cer"]["p_value"] < 0.05


def compare(glass, folder):
    """Variants side by side; killed in the second of four runs, and continued."""
    asked = ("listen", "clips", "--steps", 4, *set_to(SETTINGS), "--vary", "model.norm=layer,rms")
    asked = ("compare", *asked, "--seeds", 2, "--at-once", 1, "--run", "norms", "--json")
    glass(*asked, killed_at="norms/rms-seed-0/checkpoints/latest")
    first = folder / "norms" / "layer-seed-0" / "model.safetensors"
    written = first.stat().st_mtime_ns
    assert not (folder / "norms" / "rms-seed-1" / "model.safetensors").exists()
    found = json.loads(glass(*asked))
    assert first.stat().st_mtime_ns == written
    assert found["goal"] == "cer"
    assert [one["name"] for one in found["variants"]] == ["layer", "rms"]
    refused = glass(*asked, "--vary", "data.form=packed,padded", fails=True)
    assert "data.form has no effect on listen; leave it out" in refused


def predict_from_the_command_line(glass, clips):
    """Paths, tables, folders and lists of paths, with an option of its own."""
    (path, word), (second, _) = clips[:2]
    shown = glass("predict", "run", path, "--times").splitlines()
    assert shown[0].split("\t")[0] == word
    assert [line.split("\t")[1] for line in shown[1:]] == [*word]
    [line] = glass("predict", "run", path, "--times", "--json").splitlines()
    found = json.loads(line)
    assert found["input"] == str(path)
    assert found["times"] == sorted(found["times"])
    table = glass("predict", "run", "@table.csv", "--columns", "path=file")
    assert table.splitlines()[0] == shown[0]
    assert len(table.splitlines()) == len(clips)
    assert sorted(glass("predict", "run", "@others").splitlines()) == sorted(table.splitlines())
    path.with_name("list.txt").write_text(f"{path}\n{second}\n", encoding="utf-8")
    assert glass("predict", "run", "@others/list.txt").splitlines() == table.splitlines()[:2]
    refused = glass("predict", "run", path, "--alternatives", 3, fails=True)
    assert "--alternatives is an option of classify, " in refused
    assert "none.wav: not a recording" in glass("predict", "run", "none.wav", fails=True)


def predict_from_python(folder, clips):
    """Paths and arrays, one or several."""
    run = glassformer.load(folder / "run")
    assert repr(run).startswith(f"Run({str(folder / 'run')!r}, listen: cer 0.")
    word = WORDS[3]
    sound = play(word, np.random.default_rng(2))
    assert run.predict(sound).text == word
    path, right = clips[0]
    assert [found.text for found in run.predict([path, str(path), sound])] == [right, right, word]
    assert len(run.predict(sound, times=True).details["times"]) == len(word)
    with pytest.raises(
        GlassformerError, match="listen has no option fast, only times; leave it out"
    ):
        run.predict(sound, fast=True)
    with pytest.raises(GlassformerError, match=r"predict takes a recording or a list .* got 7;"):
        run.predict(7)
    evaluated = run.evaluate(folder / "table.csv", against=folder / "peace")
    assert evaluated.comparison["cer"].ties == len(clips)


def test_help_lists_the_job_and_its_options_without_importing_it(environment):
    program = """if True:
        import sys
        from glassformer.cli import main
        for command in ("train", "doctor", "predict"):
            main([command, "--help"])
        print("imported:", *{"torch", "tones.job"} & {*sys.modules})
    """
    said = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout
    train, doctor, predict = said.split("Usage: ")[1:]
    assert "listen: Write the word that a recording of tones plays." in train
    assert "transcribe, translate, recommend, listen" in doctor
    assert "Options of listen" in predict
    assert "--times" in predict.split("Options of listen")[1]
    assert "imported:\n" in predict
