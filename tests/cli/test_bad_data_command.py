"""Whatever is wrong with data, settings or a run: one clear line, and nothing is left behind."""

import os
import shutil

import pytest
import torch
from quick import quickly
from small_files import SHORT, reviews, trained, write_csv

from glassformer.cli import main
from glassformer.data.sources import files


@pytest.fixture(autouse=True)
def _here(tmp_path, tmp_path_factory, monkeypatch):
    """Temporary folders are made here as well, so that none can hide."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    elsewhere = tmp_path_factory.getbasetemp() / "inductor"  # what PyTorch keeps is its own affair
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(elsewhere))
    monkeypatch.chdir(tmp_path)
    with quickly():
        yield


@pytest.fixture
def home(tmp_path_factory):
    return trained(tmp_path_factory)


def table(*rows, header="text,label"):
    return "\n".join([header, *rows, ""]).encode()


FINE = [f'"{row["text"]}",{row["label"]}' for row in reviews(61)]
BYTES = bytes(range(256)) * 20

DATA = {
    "empty": (b"", "the file is empty; give a file with at least one row"),
    "blank": (b"\n \n\n", "bad.csv"),
    "header only": (table(), "a header (text, label) but no rows below it"),
    "binary": (BYTES, "a zero byte, so this is a binary file and not text"),
    "an image": (b"\x89PNG\r\n\x1a\n" + BYTES, "not text but a PNG image"),
    "one column": (table("fine", "odd", header="text"), "no column for label"),
    "ragged quotes": (table(*FINE, '"never closed,good', *FINE), "close every opening quote"),
    "ragged rows": (table(*FINE, "a,b,c"), "3 cells where the table has 2 columns (text, label)"),
    "mixed encodings": (
        table(*FINE) + "naïve,good\n".encode() + "déjà vu,bad\n".encode("cp1252"),
        "line 64: not valid UTF-8 (byte 0xe9",
    ),
    "one label": (table(*(f"text {n},good" for n in range(61))), "two or more labels, found only"),
    "a label seen once": (table(*FINE, "odd,purple"), "label 'purple' occurs only once"),
    "10 MB in one field": (
        table(*FINE, '"' + "word " * 2_000_000 + '",good'),
        "row 62 (line 63): more than 1,000,000 characters in one field",
    ),
    "too few rows": (table("fine,good", "odd,bad", "so,good"), "give more rows"),
    "no labels": (table(*(f"text {n}," for n in range(61))), "no usable row (61 with empty label"),
    "labels that are texts": (table(*(f"text {n},all {n}" for n in range(1100))), "bad.csv"),
}


@pytest.mark.parametrize("case", DATA)
def test_bad_data_are_refused_in_one_line_and_leave_nothing_behind(case, tmp_path, refused):
    content, told = DATA[case]
    (tmp_path / "bad.csv").write_bytes(content)
    assert told in refused("train", "classify", "bad.csv", *SHORT)


@pytest.mark.parametrize("case", ["empty", "binary", "one column", "mixed encodings"])
@pytest.mark.parametrize("option", ["--valid", "--test"])
def test_bad_data_beside_good_ones_are_refused_as_well(option, case, tmp_path, refused):
    content, told = DATA[case]
    (tmp_path / "bad.csv").write_bytes(content)
    write_csv(tmp_path / "fine.csv", reviews())
    said = refused("train", "classify", "fine.csv", option, "bad.csv", *SHORT)
    assert said.startswith("bad.csv")
    assert told in said


def test_a_folder_without_permission_is_refused(tmp_path, refused, monkeypatch):
    for label in ("good", "bad"):
        (tmp_path / "texts" / label).mkdir(parents=True)
    listed = os.listdir

    def forbidden(path):  # a superuser may read everything, so it is played
        if str(path).endswith("texts"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(files.os, "listdir", forbidden)
    told = "texts: the folder cannot be opened (Permission denied); check its permissions"
    assert refused("train", "classify", "texts", *SHORT) == told


OPTIONS = {
    "a missing file": (("none.csv",), "none.csv: not found"),
    "nearly a file": (("fin.csv",), "fin.csv: not found; did you mean 'fine.csv'?"),
    "a missing file to choose by": (("fine.csv", "--valid", "none.csv"), "none.csv: not found"),
    "an unknown column": (
        ("fine.csv", "--columns", "text=txt"),
        "fine.csv: unknown column 'txt'; did you mean 'text'?",
    ),
    "an unknown role": (("fine.csv", "--columns", "texts=text"), "unknown role 'texts'"),
    "columns without roles": (
        ("fine.csv", "--columns", "text"),
        "--columns: 'text' is not of the form",
    ),
    "an unknown group": (("fine.csv", "--group", "flim"), "unknown column 'flim'; did you mean"),
    "an unknown setting": (
        ("fine.csv", "--set", "model.encoder.dpeth=2"),
        "unknown setting 'model.encoder.dpeth'; did you mean 'model.encoder.depth'?",
    ),
    "an unknown table": (("fine.csv", "--set", "trian.steps=2"), "unknown setting 'trian'"),
    "a frontend for images": (
        ("fine.csv", "--set", "model.frontend.kind=patches"),
        "model.frontend.kind = patches does not read text; choose from tokens, ngrams",
    ),
    "a number beyond all need": (
        ("fine.csv", "--set", "task.max_length=99999999999999999999"),
        "task.max_length must be below 1,099,511,627,776",
    ),
    "a wrong type": (
        ("fine.csv", "--set", "train.clip=high"),
        "train.clip must be float, got 'high'",
    ),
    "a number for a table": (
        ("fine.csv", "--set", "train=3"),
        "train must be a table of settings, got 3",
    ),
    "a number for the machine": (("fine.csv", "--set", "machine=3"), "machine must be a table"),
    "a number for the model": (
        ("fine.csv", "--set", "model=3"),
        "model must be a table of settings",
    ),
    "no value": (("fine.csv", "--set", "train.clip"), "--set 'train.clip' is not key=value"),
    "a fact": (("fine.csv", "--set", "job=pretrain"), "job is not a setting"),
    "another origin": (
        ("fine.csv", "--set", "origin=x"),
        "origin is not a setting; use --from RUN",
    ),
    "a model that cannot be": (
        ("fine.csv", "--set", "model.encoder.dim=17"),
        "17 is not a multiple of 2; change either",
    ),
    "a part that is not there": (
        ("fine.csv", "--set", 'train.freeze=["encodr"]'),
        "train.freeze: no parameter name starts with 'encodr'; the model's modules are ",
    ),
    "an unknown size": (("fine.csv", "--size", "huge"), "unknown size 'huge'; the choices are"),
    "no such settings": (("fine.csv", "--config", "none.toml"), "none.toml: cannot be read"),
    "broken settings": (("fine.csv", "--config", "broken.toml"), "broken.toml: not valid TOML"),
    "an unknown device": (("fine.csv", "--device", "gpu"), "unknown machine.device 'gpu'"),
    "no time": (("fine.csv", "--time", "soon"), "--time 'soon' is not a time; write 90s, 10m"),
    "no run": (("fine.csv", "--from", "tmp"), "tmp: not a run folder, it has no config.toml"),
    "no such run": (("fine.csv", "--from", "none"), "none: not found; check the path"),
    "a place inside a file": (
        ("fine.csv", "--run", "fine.csv/run"),
        "fine.csv/run: cannot be created",
    ),
    "a file": (("fine.csv", "--run", "broken.toml"), "broken.toml: already exists"),
    "a folder in use": (("fine.csv", "--run", "used"), "used: already exists; name another"),
    "here": (("fine.csv", "--run", "."), ".: is the current directory; name a folder inside it"),
    "a name too long": (("fine.csv", "--run", "x" * 300), "cannot be created (File name too long)"),
    "gaps in texts and a frontend": (
        ("fine.csv", "--set", "pretrain=yes", "--set", "model.frontend.kind=ngrams"),
        "pretrain=yes: the default CPU model reads n-grams, which cannot be masked",
    ),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_cannot_be_are_refused_and_leave_nothing_behind(case, tmp_path, refused):
    words, told = OPTIONS[case]
    write_csv(tmp_path / "fine.csv", reviews())
    (tmp_path / "broken.toml").write_text("[train\nclip = 1", encoding="utf-8")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.txt").write_text("years of work", encoding="utf-8")
    short = [word for word in SHORT if word != "--no-pretrain" or case != list(OPTIONS)[-1]]
    if "--time" in words:
        short = [word for word in short if word not in ("--steps", "3")]
    assert told in refused("train", "classify", *words[:1], *short, *words[1:])


@pytest.mark.parametrize("words", [("--epochs", "0"), ("--epochs", "-1"), ("--time", "0")])
def test_no_time_at_all_is_refused(words, tmp_path, refused):
    write_csv(tmp_path / "fine.csv", reviews())
    assert "must be above 0" in refused("train", "classify", "fine.csv", "--quiet", *words)


def test_too_little_time_is_refused_and_keeps_only_what_was_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "fine.csv", reviews())
    words = [word for word in SHORT if word not in ("--steps", "3")]
    assert main(["train", "classify", "fine.csv", "--time", "0.1s", *words]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("glassformer: --time 0s is too short: ")
    assert (tmp_path / "runs" / "fine" / "data").is_dir()
    assert not (tmp_path / "runs" / "fine" / "model.safetensors").exists()


def test_an_unknown_job_is_refused_with_the_choices(tmp_path, refused):
    write_csv(tmp_path / "fine.csv", reviews())
    told = "unknown job 'clasify'; did you mean 'classify'? The choices are classify, "
    others = "recognise, pretrain, generate, transcribe, translate, recommend"
    assert refused("train", "clasify", "fine.csv") == told + others


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_refused(device, home, tmp_path, refused, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    write_csv(tmp_path / "fine.csv", reviews())
    told = f"--device {device}: not available on this machine, only cpu; use --device auto"
    assert refused("train", "classify", "fine.csv", "--device", device, *SHORT) == told
    assert refused("predict", home / "run", "fine", "--device", device) == told


def test_a_training_that_diverges_at_once_leaves_nothing_behind(tmp_path, refused):
    write_csv(tmp_path / "fine.csv", reviews())
    wild = ("--set", "train.optimiser.lr=1e30", "--set", "train.clip=0")
    told = refused("train", "classify", "fine.csv", *SHORT, *wild)
    assert told.startswith("training diverged at step 2 in batch 1 of epoch 2 (fine.csv row ")


def test_a_run_is_never_written_over(home, tmp_path, refused):
    shutil.copytree(home / "run", tmp_path / "my run")
    words = ("train", "classify", home / "reviews.csv", *SHORT, "--run", "my run")
    assert refused(*words) == "my run: already exists; name another with --run"  # it is finished
    (tmp_path / "my run" / "report.json").unlink()
    assert refused(*words) == (
        "my run: already exists; resume it with `glassformer resume 'my run'`, or name another "
        "with --run"
    )


def test_an_origin_that_does_not_fit_is_refused(home, tmp_path, refused):
    data, run = home / "reviews.csv", home / "run"
    words = ("train", "classify", data, *SHORT, "--from", run)
    assert "it belongs to another model" in refused(*words, "--set", "model.encoder.dim=32")
    assert refused(*words, "--module", "ears") == (
        f"{run}: has nothing that fits ears; its modules are encoder, frontend, to_class"
    )
    words = [word for word in words if word != "--no-pretrain"]
    told = f"pretrain=yes and --from {run} both set the initial weights; drop one"
    assert refused(*words, "--set", "pretrain=yes") == told
    half = tmp_path / "half"
    shutil.copytree(run, half)
    (half / "model.safetensors").unlink()
    told = "half: has no trained model; finish it with `glassformer resume half`"
    assert refused("train", "classify", data, *SHORT, "--from", "half") == told
