"""Runs in training: their curves, what they answer by now, and how they come to be served."""

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import torch
from small_served import Served, refusal, wait_until

from glassformer.runs.in_training import POINTS, RunInTraining, is_in_training, thinned_curves
from glassformer.runs.lock import run_lock
from glassformer.serving import training

LATE = ("model.safetensors", "report.json", "report.html", "checksums.json")


def begun_run(finished, path):
    """The same run before it ended."""
    shutil.copytree(finished, path)
    for name in LATE:
        (path / name).unlink(missing_ok=True)
    return path


def finish(finished, path):
    for name in ("model.safetensors", "checksums.json", "report.json"):
        shutil.copy(finished / name, path / name)


@contextmanager
def trained_meanwhile(path):
    """As if another process trained it."""
    with run_lock(path):
        yield


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(training, "EVERY", 0.02)


def test_a_run_in_training_is_watched_and_then_served(runs, tmp_path):
    path = begun_run(runs["words"], tmp_path / "words")
    with Served([path, runs["reviews"]]) as server:
        with trained_meanwhile(path):
            (listed,) = server.get("/v1/training").json()["data"]
            assert listed == {
                "id": "words", "object": "training", "job": "translate", "state": "training",
            }  # fmt: skip
            assert [one["id"] for one in server.get("/v1/models").json()["data"]] == ["reviews"]
            asked = {"model": "words", "input": "red"}
            assert server.post("/v1/translate", asked).status_code == 404
            found = server.post("/v1/classify", asked)
            assert refusal(found) == (404, "model_not_found")
            says = "words has no trained model yet; /v1/training/words shows how far it is"
            assert found.json()["error"]["message"] == says
            finish(runs["words"], path)
        wait_until(lambda: not server.models.training)
        assert server.get("/v1/training").json()["data"] == []
        wait_until(lambda: server.post("/v1/translate", asked).status_code == 200)
        assert server.get("/openapi.json").json()["paths"].keys() >= {"/v1/translate"}


@pytest.mark.parametrize("name", ["words", "reviews", "bottles", "speech", "gaps", "pictures"])
def test_the_newest_checkpoint_answers_for_validation_rows(runs, tmp_path, name):
    run = RunInTraining(begun_run(runs[name], tmp_path / name), "cpu")
    before = torch.get_rng_state()
    run.answer()
    assert torch.equal(torch.get_rng_state(), before)
    assert run.samples
    for sample in run.samples:
        (answer,) = sample["answers"]
        assert answer["step"] > 0
        assert isinstance(answer["text"], str)
        assert (sample["input"] is None) == (name in ("speech", "pictures"))
        assert (sample["picture"] is None) == (name != "pictures")
    run.answer()  # nothing is new
    assert all(len(sample["answers"]) == 1 for sample in run.samples)


def test_nothing_tells_where_a_run_is(runs, tmp_path):
    path = begun_run(runs["speech"], tmp_path / "speech")
    with Served([path]) as server:
        for place in ("/v1/training", "/v1/training/speech", "/v1/training/speech/samples"):
            found = server.get(place)
            assert found.status_code == 200
            assert str(tmp_path) not in found.text
            assert "/" not in found.text.replace("</s>", "")
        assert refusal(server.get("/v1/training/other")) == (404, "model_not_found")
        (path / "config.toml").unlink()
        found = server.get("/v1/training/speech")
        assert refusal(found) == (503, "unreadable")
        assert found.headers["retry-after"] == "1"
        assert str(tmp_path) not in found.text


def test_a_hostile_run_does_not_keep_another_from_being_served(runs, tmp_path):
    paths = [begun_run(runs[name], tmp_path / name) for name in ("gaps", "words")]
    with Served([*paths, runs["reviews"]]) as server:
        (paths[0] / "config.toml").write_text("a = " + "[" * 5000)
        assert refusal(server.get("/v1/training/gaps")) == (503, "unreadable")
        finish(runs["gaps"], paths[0])
        finish(runs["words"], paths[1])
        asked = {"model": "words", "input": "red"}
        wait_until(lambda: server.post("/v1/translate", asked).status_code == 200)
        assert "gaps" in server.models.training


def test_those_who_ask_at_once_have_a_run_read_once_or_twice(runs, tmp_path, monkeypatch):
    reads, own = [], RunInTraining.as_values
    path = begun_run(runs["words"], tmp_path / "words")

    def slow(run):
        reads.append(run)
        time.sleep(0.2)
        return own(run)

    monkeypatch.setattr(RunInTraining, "as_values", slow)
    with Served([path]) as server, ThreadPoolExecutor(20) as clients:
        found = [clients.submit(server.get, "/v1/training/words") for _ in range(20)]
        assert {one.result().json()["job"] for one in found} == {"translate"}
    assert len(reads) < 5


def test_a_run_that_is_served_shows_how_it_learned(served):
    found = served.get("/v1/training/reviews").json()
    assert found["state"] == "finished"
    assert 0 < found["step"] <= found["steps"] == 30
    (stage,) = found["stages"]
    assert {"training loss", "validation loss"} <= stage["curves"].keys()
    assert served.get("/v1/training/reviews/samples").json()["data"] == []


def test_long_curves_are_thinned_and_only_the_end_of_a_huge_file_is_read(tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"step": n, "loss": 1 / n}) for n in range(1, 5001)]
    metrics.write_text("\n".join([*lines, '{"step": 5001, "lo']))
    (points,) = thinned_curves(metrics).values()
    assert len(points) == POINTS
    assert points[-1] == (5000, 1 / 5000)
    metrics.write_text("x" * (9 << 20) + "\n" + lines[-1])
    assert thinned_curves(metrics) == {"training loss": [(5000, 1 / 5000)]}


def test_only_a_run_that_has_begun_and_not_ended_is_in_training(runs, tmp_path):
    assert not is_in_training(runs["reviews"])
    assert not is_in_training(tmp_path / "nothing")
    path = begun_run(runs["reviews"], tmp_path / "reviews")
    assert is_in_training(path)
    assert RunInTraining(path).state == "interrupted"
