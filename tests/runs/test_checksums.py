"""Checksums of a run: taken of what is final, kept in step with what is written, at every kill."""

import json
import shutil

import pytest
from quick import quickly
from small_runs import learn, same, weights, write_reviews

import glassformer
from glassformer.files import checksum
from glassformer.runs import api, fit as fitting

SETTLED = {"intake.json", "labels.json", "tokenizer.json"}
INDEX = {"labels", "parts", "samples.ends", "samples.values", "tokens.ends", "tokens.values"}


@pytest.fixture(autouse=True)
def _quickly():
    with quickly():
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checksums")
    with quickly():
        learn(write_reviews(folder / "x.csv"), folder / "run")
    return folder


def checksums(run):
    return json.loads((run / "checksums.json").read_text())


class KilledError(Exception):
    """As if a process ended here."""


def kill(*_, **__):
    raise KilledError


def test_a_finished_run_knows_all_that_it_is_used_with(home):
    known = checksums(home / "run")
    made = {"config.toml", "model.safetensors", "report.json"}
    assert known.keys() >= SETTLED | made | {f"data/{name}.npy" for name in INDEX}
    assert "metrics.jsonl" not in known
    assert all(checksum(home / "run" / name) == found for name, found in known.items())


def test_before_its_end_it_knows_what_training_reads(home, tmp_path, monkeypatch):
    """Not its settings, which training settles, nor what it will write."""
    monkeypatch.setattr(api, "fit", kill)
    with pytest.raises(KilledError):
        learn(home / "x.csv", tmp_path / "run")
    expected = SETTLED | {"reading.json"} | {f"data/{name}.npy" for name in INDEX}
    assert checksums(tmp_path / "run").keys() == expected


KILLS = [
    (fitting, "keep_weights"),
    (fitting, "answers_on"),
    (api, "final_answers"),
    (api, "report_on"),
    (api, "note_checksums"),
]


@pytest.mark.parametrize("moment", KILLS, ids=[name for _, name in KILLS])
def test_a_kill_at_its_end_leaves_checksums_that_hold(moment, home, tmp_path, monkeypatch):
    """First at the end of a new run, then when a finished one makes its report again."""
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(*moment, kill)
        with pytest.raises(KilledError):
            learn(home / "x.csv", run)
    (run / "report.json").unlink(missing_ok=True)
    api.resume(run, quiet=True)
    (run / "report.json").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(*moment, kill)
        with pytest.raises(KilledError):
            api.resume(run, quiet=True)
    (run / "report.json").unlink(missing_ok=True)
    assert api.resume(run, quiet=True).predict("a great film")
    assert same(weights(run), weights(home / "run"))
    known = checksums(run)
    assert known.keys() == checksums(home / "run").keys()
    assert all(checksum(run / name) == found for name, found in known.items())


def test_resuming_only_the_report_changes_nothing_that_was_learned(home, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(home / "run", run)
    (run / "report.json").unlink()
    api.resume(run, quiet=True)
    for name in ("labels.json", "model.safetensors", "tokenizer.json", "config.toml"):
        assert (run / name).read_bytes() == (home / "run" / name).read_bytes(), name
    assert json.loads((run / "labels.json").read_text())["temperature"] != 1


def test_what_a_run_begins_with_after_learning_its_texts_is_known_at_once(
    home, tmp_path, monkeypatch
):
    monkeypatch.setattr(api, "fit", kill)
    with pytest.raises(KilledError):
        learn(home / "x.csv", tmp_path / "run", "pretrain=yes", pretrain=True)
    known = checksums(tmp_path / "run")
    assert known["initial.safetensors"] == checksum(tmp_path / "run" / "initial.safetensors")
    assert "config.toml" not in known


def test_a_run_without_checksums_is_used_and_resumed_as_before(home, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(home / "run", run)
    (run / "checksums.json").unlink()
    found = glassformer.load(run).predict("a great film")
    assert found == glassformer.load(home / "run").predict("a great film")
    (run / "report.json").unlink()
    api.resume(run, quiet=True)
    assert checksums(run).keys() == checksums(home / "run").keys()


def test_a_finished_run_whose_model_changed_makes_it_again(home, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(home / "run", run)
    content = bytearray((run / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (run / "model.safetensors").write_bytes(content)
    api.resume(run, quiet=True)
    assert same(weights(run), weights(home / "run"))
