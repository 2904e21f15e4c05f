"""A server starts, reloads, drains and stops without losing a request that it has accepted."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextlib import contextmanager, suppress

import httpx
import pytest
from quick import quickly
from small_served import TEXT, Served, refusal, stack, wait_until

import glassformer
from glassformer.cli import main
from glassformer.engine.engine import Engine
from glassformer.serving import models
from glassformer.serving.app import Application
from glassformer.serving.keys import Keys
from glassformer.serving.lifecycle import Server
from glassformer.serving.metrics import Metrics
from glassformer.serving.models import Models
from glassformer.serving.settings import ServeConfig
from glassformer.serving.worker import Worker

GOOD = {"model": "reviews", "input": ["the film was great", "dull"]}
LONG = {"model": "bottles", "prompt": "3", "max_tokens": 900, "temperature": 1.0, "seed": 1}


@contextmanager
def started(*words, **environment):
    """A server in a process of its own, and where it listens."""
    command = [sys.executable, "-m", "glassformer", "serve", *map(str, words), "--port", "0"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    try:
        line = process.stdout.readline()
        assert " at http://127.0.0.1:" in line, process.stderr.read()
        yield process, line.split(" at ")[1].split(";")[0]
    finally:
        process.kill()
        process.wait()


def stream(url, found, begun, **more):
    """Read a stream to its end, as it comes."""
    values = {**LONG, **more, "stream": True}
    with httpx.stream("POST", f"{url}/v1/completions", json=values, timeout=60) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                found.append(line.removeprefix("data: "))
                begun.set()


def test_a_server_reloads_drains_and_ends(runs, tmp_path):
    shutil.copytree(runs["bottles"], tmp_path / "bottles")
    with started(tmp_path / "bottles") as (process, url):
        found, begun = [], threading.Event()
        reader = threading.Thread(target=stream, args=(url, found, begun))
        reader.start()
        assert begun.wait(30)
        process.send_signal(signal.SIGHUP)
        assert process.stderr.readline() == "reloaded bottles\n"
        whole = LONG | {"max_tokens": 5}
        assert httpx.post(f"{url}/v1/completions", json=whole).status_code == 200
        process.send_signal(signal.SIGTERM)
        reader.join(60)
        assert found[-1] == "[DONE]"
        reasons = [json.loads(one)["choices"][0]["finish_reason"] for one in found[:-1]]
        assert reasons[-1] in ("stop", "length")
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz")


def test_a_second_signal_stops_at_once(runs, monkeypatch):
    step = Engine.step

    def slow(engine):
        time.sleep(0.05)  # nothing comes to its end before the second signal
        return step(engine)

    monkeypatch.setattr(Engine, "step", slow)
    with Served([runs["bottles"]]) as served:
        found, begun = [], threading.Event()
        reader = threading.Thread(target=drop, args=(served.url, found, begun))
        reader.start()
        assert begun.wait(30)
        served.server.stop()
        assert not served.server.force_exit
        time.sleep(0.3)
        assert served.thread.is_alive()  # it drains
        served.server.stop()
        served.thread.join(30)
        assert not served.thread.is_alive()
        reader.join(30)
        assert "[DONE]" not in found


def drop(url, found, begun, **more):
    with suppress(httpx.HTTPError):
        stream(url, found, begun, **{"n": 16, "max_tokens": 4000, **more})


def drop_whole(url, values):
    with suppress(httpx.HTTPError):
        httpx.post(f"{url}/v1/completions", json=values, timeout=60)


def test_a_second_signal_stops_quietly(runs):
    words = (runs["bottles"], "--set", "limits.tokens=32000")
    with started(*words) as (process, url):
        found, begun = [], threading.Event()
        values = {"n": 1, "temperature": 0, "max_tokens": 30_000}
        reader = threading.Thread(target=drop, args=(url, found, begun), kwargs=values)
        whole = threading.Thread(target=drop_whole, args=(url, LONG | values))
        reader.start()
        whole.start()
        assert begun.wait(30)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None  # it drains
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
        reader.join(30)
        whole.join(30)
        assert "[DONE]" not in found


def test_a_newer_run_takes_over_without_losing_a_request(runs, tmp_path):
    key = "sk-0123456789abcdef"
    headers = {"authorization": f"Bearer {key}"}
    shutil.copytree(runs["reviews"], tmp_path / "reviews")
    with Served([tmp_path / "reviews"], keys=[key]) as server:
        statuses, over = [], threading.Event()

        def ask():
            while not over.is_set():
                found = server.post("/v1/classify", GOOD, headers=headers)
                statuses.append((found.status_code, found.json()["data"][0]["prediction"]))

        askers = [threading.Thread(target=ask) for _ in range(3)]
        for one in askers:
            one.start()
        for _ in range(3):
            (tmp_path / "reviews").rename(tmp_path / "old")
            shutil.copytree(runs["reviews"], tmp_path / "reviews")
            shutil.rmtree(tmp_path / "old")
            found = server.post("/v1/models/reviews/reload", headers=headers)
            assert found.status_code == 200
        over.set()
        for one in askers:
            one.join()
        assert len(statuses) > 3
        assert {*statuses} == {(200, "good")}


def test_a_run_that_cannot_be_loaded_leaves_the_old_one(runs, tmp_path):
    key = "sk-0123456789abcdef"
    headers = {"authorization": f"Bearer {key}"}
    shutil.copytree(runs["reviews"], tmp_path / "reviews")
    with Served([tmp_path / "reviews"], keys=[key]) as server:
        (tmp_path / "reviews" / "model.safetensors").write_bytes(b"broken")
        found = server.post("/v1/models/reviews/reload", headers=headers)
        assert refusal(found) == (409, "reload_failed")
        assert str(tmp_path) not in found.text
        shutil.rmtree(tmp_path / "reviews")
        shutil.copytree(runs["bottles"], tmp_path / "reviews")
        found = server.post("/v1/models/reviews/reload", headers=headers)
        assert refusal(found) == (409, "reload_failed")
        assert server.post("/v1/classify", GOOD, headers=headers).status_code == 200


def test_whatever_is_wrong_with_one_run_the_others_are_reloaded(runs, monkeypatch, capsys):
    served = Models([runs["reviews"], runs["gaps"]], Worker(), ServeConfig(), Metrics())
    before, own = dict(served.served), models.Run

    def load(path, **options):
        served.paths["late"] = path  # as when the training of another one ends meanwhile
        if path == runs["reviews"]:
            raise RuntimeError("unheard of")
        return own(path, **options)

    monkeypatch.setattr(models, "Run", load)
    asyncio.run(Server(Application(served, Keys([])))._reload())
    assert served.served["reviews"] is before["reviews"]
    assert served.served["gaps"] is not before["gaps"]
    said = capsys.readouterr().err
    assert "reviews stays as it was: " in said
    assert "cannot be loaded (unheard of); copy the run again, or train it again" in said
    assert "reloaded gaps" in said


def test_the_memory_of_a_model_that_was_replaced_is_free(runs):
    served = Models([runs["reviews"]], Worker(), ServeConfig(), Metrics())
    old = weakref.ref(served.served["reviews"])
    asyncio.run(served.reload("reviews"))
    assert old() is None


def linear_run(folder):
    """A language model whose decoder keeps no keys and values."""
    data = folder / "bottles.txt"
    data.write_text(TEXT)
    settings = (*stack("decoder"), "task.max_length=32", "model.decoder.attention.kind=linear")
    settings += ("model.decoder.position.kind=none",)
    options = {"run": folder / "linear", "steps": 1, "quiet": True, "device": "cpu"}
    with quickly():
        glassformer.train("generate", data, set=settings, **options)
    return folder / "linear"


def test_what_cannot_be_served_is_one_line(runs, tmp_path, capsys):
    def refused(*words):
        assert main([*map(str, words)]) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        return said.removeprefix("glassformer: ").strip()

    shutil.copytree(runs["reviews"], tmp_path / "a" / "reviews")
    says = refused("serve", runs["reviews"], tmp_path / "a" / "reviews", "--port", "0")
    assert says.endswith("another run is called reviews, too; rename one of the folders")
    with Served([runs["reviews"]]) as server:
        says = refused("serve", runs["reviews"], "--port", server.port)
        assert "choose another with --host or --port" in says
    says = refused("serve", runs["reviews"], "--set", "limits.qeue=3")
    assert says.startswith("unknown setting 'limits.qeue'; did you mean 'limits.queue'?")
    says = refused("serve", runs["reviews"], "--set", "limits.queue=0")
    assert says == "limits.queue must be above 0, got 0"
    run = linear_run(tmp_path)
    says = refused("serve", run, "--port", "0")
    assert "train a run with --set model.decoder.attention.kind=softmax" in says
    assert says.endswith(f"or use `glassformer predict {run}`")
    assert main(["serve", "--help"]) == 0


def test_the_reference_needs_neither_network_nor_script(served):
    found = served.get("/docs")
    assert "POST /v1/completions" in found.text
    assert "max_tokens" in found.text
    assert "<script" not in found.text
    assert "http" not in found.text.replace("http://127.0.0.1:8000", "")
    assert "default-src 'none'" in found.headers["content-security-policy"]
    document = served.get("/openapi.json").json()
    assert {"/v1/classify", "/v1/translate", "/v1/embeddings"} <= document["paths"].keys()
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["responses"].keys() == {"200", "4XX", "5XX"}


def test_metrics_count_requests_by_path_and_status(served):
    def count(status):
        name = f'glassformer_requests_total{{path="/v1/classify",status="{status}"}} '
        lines = served.get("/metrics").text.splitlines()
        return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))

    before = count(200), count(422)
    served.post("/v1/classify", GOOD)
    served.post("/v1/classify", {})
    served.post("/v1/made-up-path", {})
    wait_until(lambda: (count(200), count(422)) == (before[0] + 1, before[1] + 1))
    text = served.get("/metrics").text
    assert "made-up-path" not in text
    assert 'glassformer_batch_inputs_count{model="reviews"}' in text
