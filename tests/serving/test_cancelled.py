"""A client that goes takes its work with it, within one step."""

import json
import socket
import threading

import pytest
from small_served import Served, wait_until

from glassformer.serving import cancelling

LONG = {"model": "bottles", "prompt": "3", "max_tokens": 4000, "temperature": 1.0}


@pytest.fixture(scope="module")
def server(runs):
    some = [runs[name] for name in ("bottles", "words", "reviews")]
    with Served(some, batching={"wait": 0.0}) as found:
        yield found


def send(server, path, values):
    """A request on a connection of its own, which can be closed at any time."""
    body = json.dumps(values).encode()
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    return connection


@pytest.mark.parametrize("stream", [False, True])
def test_a_text_is_written_no_further_and_its_pages_are_free(server, stream):
    generator = server.models.served["bottles"].generator
    engine = generator.engine
    connection = send(server, "/v1/completions", LONG | {"stream": stream, "n": 3})
    wait_until(lambda: len(engine.scheduler.running) == 3)
    if stream:
        assert b"data: " in connection.recv(10_000)
    connection.close()
    wait_until(lambda: not engine.busy)
    assert not generator.open
    server.idle()
    chosen = {one.chosen for one in engine.scheduler.running.values()}
    assert not chosen
    engine.forget()
    assert engine.decoder.pool.free_pages == engine.decoder.pool.pages


@pytest.mark.parametrize(
    ("path", "many", "few"),
    [
        (
            "/v1/completions",
            LONG | {"prompt": ["3"] * 256, "n": 16},
            LONG | {"max_tokens": 3},
        ),
        (
            "/v1/translate",
            {"model": "words", "input": ["red old new"] * 256, "alternatives": 16},
            {"model": "words", "input": "red"},
        ),
    ],
)
def test_a_request_for_many_texts_does_not_hold_up_another(server, path, many, few):
    engine = server.models.served[few["model"]].generator.engine
    connection = send(server, path, many)
    wait_until(lambda: len(engine.scheduler.running) > 1)
    assert server.post(path, few).status_code == 200
    assert engine.scheduler.waiting  # those of the first are far from done
    connection.close()
    wait_until(lambda: not engine.busy)
    server.idle()


def test_a_request_that_waits_is_never_begun(server):
    batcher = server.models.served["reviews"].predictions
    go_on, begun, answered = threading.Event(), threading.Event(), []
    own, batcher.answer = batcher.answer, lambda inputs, options: answered.append(inputs)
    try:
        server.worker.post(batcher, lambda: begun.set() or go_on.wait(20))
        assert begun.wait(30)
        connection = send(server, "/v1/classify", {"model": "reviews", "input": "red"})
        wait_until(lambda: server.gate.open.total() == 1)
        connection.close()
        server.idle()
        go_on.set()
        wait_until(lambda: not server.worker._active)
        assert not answered
    finally:
        go_on.set()
        batcher.answer = own


def steps_after_leaving(server, monkeypatch, path, values):
    """How many steps are begun of what a client asks for that leaves during the third."""
    own, steps = cancelling.raise_if_cancelled, []
    hold, begun = threading.Event(), threading.Event()

    def step():
        steps.append(len(steps))
        if len(steps) == 3:
            begun.set()
            hold.wait(20)
        own()

    monkeypatch.setattr(cancelling, "raise_if_cancelled", step)
    connection = send(server, path, values)
    assert begun.wait(30)
    connection.close()
    server.idle()
    hold.set()
    wait_until(lambda: not server.worker._active)
    return len(steps)


@pytest.mark.parametrize("name", ["reviews", "words"])
@pytest.mark.parametrize("method", ["occlusion", "integrated_gradients"])
def test_an_explanation_that_nobody_waits_for_ends_at_the_next_layer(
    server, monkeypatch, name, method
):
    values = {"model": name, "input": "red old new", "method": method}
    assert steps_after_leaving(server, monkeypatch, "/v1/explain", values) == 3


@pytest.mark.parametrize("path", ["/v1/classify", "/v1/embeddings"])
def test_a_batch_that_nobody_waits_for_ends_at_the_next_layer(server, monkeypatch, path):
    values = {"model": "reviews", "input": ["dull film " * 300] * 200}  # more than one batch
    assert steps_after_leaving(server, monkeypatch, path, values) == 3


def test_a_step_that_fails_is_told_to_those_it_was_for_and_to_nobody_else(server, monkeypatch):
    generator = server.models.served["bottles"].generator
    own = generator.engine.step

    def fails():
        raise RuntimeError("at /secret/path")

    monkeypatch.setattr(generator.engine, "step", fails)
    for stream in (False, True):
        found = server.post("/v1/completions", LONG | {"stream": stream})
        assert found.status_code == 500
        assert "secret" not in found.text
    monkeypatch.setattr(generator.engine, "step", own)
    assert server.post("/v1/completions", LONG | {"max_tokens": 3}).status_code == 200
