"""A frontend of one's own, by its import path; no code runs unless a person allows it."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from glassformer.cli import main
from glassformer.config import DataConfig
from glassformer.config.own_code import allow_code, load_code
from glassformer.errors import GlassformerError
from glassformer.tasks import JOBS
from glassformer.tasks.shared.sequences import read_sequence

EXAMPLE = Path(__file__).parents[2] / "examples" / "senses"
SMALL = (
    *("model.encoder.dim=16", "model.encoder.depth=1", "model.encoder.attention.heads=2"),
    *("train.validate_every=100", "train.optimiser.lr=0.01", "machine.device=cpu"),
)
DECODER = ("model.decoder.dim=16", "model.decoder.depth=1", "model.decoder.attention.heads=2")
REFUSED = "is code, which runs only if you allow it"


def command(*words, settings=(), allow=True):
    typed = [*map(str, words), *(f"--set={one}" for one in settings)]
    return main([*typed, "--allow-code"] if allow else typed)


@pytest.fixture(autouse=True)
def _no_code_is_allowed_afterwards():
    yield
    allow_code(False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The example with runs of both jobs."""
    folder = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("senses") / "example")
    path = folder / "skeletons.py"
    spec = importlib.util.spec_from_file_location("skeletons_to_make", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.make(folder / "gestures", count=120)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for job, table, steps, more in (
            ("classify", "labels", 40, ()),
            ("translate", "words", 3, (*DECODER, "task.max_length=8")),
        ):
            typed = ("train", job, f"gestures/{table}.csv", "--config", f"{job}.toml", "--quiet")
            where = ("--run", job, "--steps", steps)
            assert command(*typed, *where, settings=(*SMALL, *more)) == 0
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def test_the_example_is_less_than_sixty_lines():
    assert len((EXAMPLE / "skeletons.py").read_text().splitlines()) < 60


def test_skeletons_are_classified_by_a_frontend_of_ones_own(here, capsys):
    report = json.loads((here / "classify" / "report.json").read_text())
    ours = report["scores"]["this model"]["accuracy"]
    assert ours["value"] > 0.4
    assert any(name.startswith("nearest sequences") for name in report["scores"])
    assert command("predict", "classify", "gestures/1.npz", "--json") == 0
    assert json.loads(capsys.readouterr().out)["label"] in ("wave", "nod", "circle")
    assert command("evaluate", "classify", "gestures/labels.csv", "--json") == 0


def test_the_same_numbers_are_the_same_sample_wherever_their_file_lies(here):
    copy = shutil.copy("gestures/1.npz", "elsewhere.npz")
    schema, config = JOBS["classify"].schema, DataConfig()
    first, same, other = (
        schema.content({"text": str(name)}, config)
        for name in (here / "gestures/1.npz", here / copy, here / "gestures/3.npz")
    )
    assert first == same != other
    assert schema.content({"text": "gone.npz"}, config) == "gone.npz"


def test_skeletons_go_into_the_decoder_of_a_translator(here, capsys):
    assert command("predict", "translate", "gestures/0.npz", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {*found["prediction"].split()} <= {"wave", "nod", "circle"}
    assert command("predict", "translate", "gestures/0.npz", "--align") == 1
    assert "has no words to align" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "classify", "gestures/1.npz"),
        ("predict", "translate", "gestures/0.npz"),
        ("evaluate", "classify", "gestures/labels.csv"),
        ("explain", "classify", "gestures/1.npz"),
        ("serve", "classify"),
        ("resume", "classify"),
        ("train", "classify", "gestures/labels.csv", "--config", "classify.toml", "--run", "new"),
    ],
    ids=lambda words: f"{words[0]} {words[1]}",
)
def test_no_command_runs_code_that_a_person_did_not_allow(here, words, monkeypatch, capsys):
    monkeypatch.setattr("glassformer.config.own_code.import_module", None)  # nothing is imported
    assert command(*words, allow=False) == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert REFUSED in said[-1]
    assert not (here / "new").exists()


def test_what_only_its_frontend_understands_is_not_explained(here, capsys):
    assert command("explain", "classify", "gestures/1.npz") == 1
    assert "which is your own; use predict" in capsys.readouterr().err


def test_code_that_cannot_be_used_is_refused_in_one_line(here, capsys):
    code = "def Narrow(channels, dim):\n    pass\n\nclass Few:\n    pass\n"
    (here / "bad.py").write_text(code)
    for name, said in {
        "nowhere:Frontend": "cannot be imported (ModuleNotFoundError",
        "bad:Missing": "cannot be imported (AttributeError",
        "bad:Narrow": "must be a module whose attribute `dim` is 16",
        "bad:Few": "cannot be made as Class(channels, dim)",
    }.items():
        typed = ("train", "classify", "gestures/labels.csv", "--run", "new", "--steps", 1)
        assert command(*typed, settings=(*SMALL, f"model.frontend.kind={name}")) == 1
        assert said in capsys.readouterr().err
        assert not (here / "new").exists()


def test_code_is_loaded_only_after_it_was_allowed():
    with pytest.raises(GlassformerError, match=REFUSED):
        load_code("json:dumps")
    allow_code()
    assert load_code("json:dumps") is json.dumps


def test_sequences_are_read_from_files_lists_and_arrays(tmp_path):
    frames = np.arange(12.0).reshape(2, 3, 2)
    np.save(tmp_path / "a.npy", frames)
    np.savez(tmp_path / "a.npz", frames)
    flat = frames.reshape(2, 6)
    for given in (str(tmp_path / "a.npy"), tmp_path / "a.npz", frames, json.dumps(flat.tolist())):
        assert np.array_equal(read_sequence(given), flat)


def test_what_is_no_sequence_is_refused(tmp_path):
    np.savez(tmp_path / "two.npz", np.zeros(2), np.zeros(3))
    np.save(tmp_path / "words.npy", np.array(["a", "b"]))
    np.save(tmp_path / "gaps.npy", np.array([[1.0, np.nan]]))
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04")
    (tmp_path / "objects.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': '|O'")
    for name, said in {
        "two.npz": "2 arrays instead of one",
        "words.npy": "holds <U1",
        "gaps.npy": "not finite",
        "cut.npz": "not a file with one array",
        "objects.npy": "not a file with one array",
        "nowhere.npz": "not found",
        "notes.txt": "not a sequence; give a file that ends in .npz",
    }.items():
        with pytest.raises(GlassformerError, match=said):
            read_sequence(str(tmp_path / name))
    with pytest.raises(GlassformerError, match="different lengths"):
        read_sequence("[[1, 2], [3]]")
    with pytest.raises(GlassformerError, match="has 2 channels, the others have 3"):
        read_sequence(np.zeros((4, 2)), channels=3)


def test_lists_of_numbers_in_a_parquet_file_are_sequences(here, capsys):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    rows = [rng.normal(loc=n % 2, size=(4 + n % 3, 10)).tolist() for n in range(40)]
    table = pyarrow.table({"frames": rows, "label": [("up", "down")[n % 2] for n in range(40)]})
    parquet.write_table(table, here / "lists.parquet")
    typed = ("train", "classify", "lists.parquet", "--config", "classify.toml", "--quiet")
    assert command(*typed, "--run", "lists", "--steps", 2, settings=SMALL) == 0
    capsys.readouterr()
    assert command("predict", "lists", "@lists.parquet") == 0
    assert len(capsys.readouterr().out.splitlines()) == 40
