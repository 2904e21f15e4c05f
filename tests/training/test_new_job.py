"""A job the engine has never seen is served whole: trained, resumed, reported, loaded, used."""

import json

import pytest
from copy_job import COPY
from jobs import Copy, CopyConfig, some_rows

from glassformer.errors import GlassformerError
from glassformer.runs import api
from glassformer.runs.folder import RunFolder
from glassformer.tasks import JOBS
from glassformer.training.weights import read_tensors

SETTINGS = (
    *("model.encoder.dim=32", "model.decoder.dim=32", "data.batch_tokens=60"),
    *("train.optimiser.lr=1e-2", "train.validate_every=40", "train.save_every=25"),
)


@pytest.fixture(autouse=True)
def _a_new_job(monkeypatch):
    monkeypatch.setitem(JOBS.loaded, "copy", COPY)


@pytest.fixture
def lines(tmp_path):
    rows = ["".join(map(str, row)) for row in some_rows(23, 10)]
    path = tmp_path / "digits.txt"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path, rows


def learn_to_copy(path, run, **asked):
    """What is learned is what it is tried on: it learns by heart."""
    held_out = {"valid": path, "test": path, "quiet": True, "settings": SETTINGS}
    return api.train("copy", path, run=run, **{"steps": 120} | held_out | asked)


def test_a_new_job_is_trained_reported_loaded_and_used(lines, tmp_path):
    path, rows = lines
    learn_to_copy(path, tmp_path / "run")
    report = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    [ours] = report["scores"].values()
    assert ours["exact"]["value"] == 1.0
    run = api.load(tmp_path / "run")
    assert run.config.task == CopyConfig()
    found = run.predict(rows)
    assert [prediction.text for prediction in found] == rows
    assert all(0 < prediction.confidence <= 1 for prediction in found)
    assert run.predict(rows[3]).text == rows[3]
    evaluated = run.evaluate(path, against=run)
    assert evaluated.as_values()["scores"]["exact"]["value"] == 1.0
    assert evaluated.comparison["exact"].ties == len(rows)
    with pytest.raises(GlassformerError, match="has 12 characters; shorten it"):
        run.predict("123456789012")


def test_a_new_job_goes_on_where_it_was_interrupted(lines, tmp_path, monkeypatch):
    path, _ = lines
    learn_to_copy(path, tmp_path / "peace", steps=30)
    write = Copy.score

    def interrupted(self, model, batches):
        raise KeyboardInterrupt

    monkeypatch.setattr(Copy, "score", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learn_to_copy(path, tmp_path / "run", steps=30)
    folder = RunFolder(tmp_path / "run")
    assert (folder.checkpoints / "latest").read_text() == "step-30\n"
    assert not folder.model.exists()
    with pytest.raises(GlassformerError, match="not fully trained"):
        api.load(folder.path)
    monkeypatch.setattr(Copy, "score", write)
    api.resume(folder.path, quiet=True)
    first, second = (
        read_tensors(tmp_path / name / "model.safetensors") for name in ("peace", "run")
    )
    assert first.keys() == second.keys()
    assert all(first[name].equal(second[name]) for name in first)
    with pytest.raises(GlassformerError, match="is finished"):
        api.resume(folder.path, quiet=True)
