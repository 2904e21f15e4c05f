"""Each limit has its own status, and a request beyond it costs nobody else an answer."""

import socket
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial

import httpx
import numpy as np
import pytest
from small_recordings import RATE
from small_served import Served, refusal, wait_until, wave_bytes

from glassformer.serving.waiting import too_late

LONG = {"model": "bottles", "prompt": "3", "max_tokens": 400, "temperature": 0}
SHORT = LONG | {"max_tokens": 2}


@contextmanager
def blocked(server):
    """While this lasts, the worker has its hands full."""
    go_on, begun = threading.Event(), threading.Event()
    source = next(iter(server.models)).predictions
    server.worker.post(source, lambda: begun.set() or go_on.wait(20))
    assert begun.wait(30)
    try:
        yield
    finally:
        go_on.set()


@pytest.fixture(scope="module")
def small(runs):
    """A server that accepts little."""
    limits = {"body": 2000, "upload": 60_000, "tokens": 40, "audio": 2.0, "concurrency": 2}
    limits |= {"queue": 3, "inputs": 3, "headers": 4000}
    with Served([runs["bottles"], runs["reviews"], runs["speech"]], limits=limits) as server:
        yield server
        server.idle()
        assert server.post("/v1/completions", SHORT).status_code == 200  # still


@pytest.fixture(scope="module")
def hasty(runs):
    """A server that waits for nobody; on a busy machine, it may refuse anything."""
    with Served([runs["bottles"]], limits={"seconds": 0.5, "patience": 0.5}) as server:
        yield server
        wait_until(lambda: answers(server))


def answers(server):
    with suppress(httpx.HTTPError):
        return server.post("/v1/completions", SHORT).status_code == 200
    return False


def test_a_body_that_is_too_large_is_413(small):
    found = small.post("/v1/classify", {"model": "reviews", "input": "a" * 3000})
    assert refusal(found) == (413, "body_too_large")
    assert found.headers["connection"] == "close"


def test_a_body_without_a_length_is_counted_as_it_comes(small):
    pieces = (b"[" * 1000 for _ in range(50))
    found = small.post("/v1/classify", content=pieces)
    assert refusal(found) == (413, "body_too_large")


def test_an_upload_has_a_limit_of_its_own(small):
    data = {"model": "speech"}
    for size, status in ((30_000, 422), (70_000, 413)):
        files = {"file": ("a.wav", b"x" * size)}
        found = small.post("/v1/audio/transcriptions", files=files, data=data)
        assert found.status_code == status


def test_a_body_that_comes_too_slowly_is_408(hasty):
    with socket.create_connection(("127.0.0.1", hasty.port), timeout=30) as slow:
        slow.sendall(
            b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"
        )
        assert b"408 Request Timeout" in slow.recv(1000)


def test_headers_that_come_too_slowly_close_the_connection(hasty):
    with socket.create_connection(("127.0.0.1", hasty.port), timeout=30) as slow:
        slow.sendall(b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\n")
        assert b"408 Request Timeout" in slow.recv(1000)
        assert slow.recv(1000) == b""


POST = b"POST %s HTTP/1.1\r\nhost: localhost\r\n"
DRIPS = {
    "headers": (b"", b"x"),
    "a body": (POST % b"/v1/completions" + b"content-length: 99999\r\n\r\n", b" "),
    "a body that nobody reads": (POST % b"/nowhere" + b"content-length: 99999\r\n\r\n", b" "),
    "trailers": (POST % b"/nowhere" + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
    "lines between requests": (b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", b"\r\n"),
}


@pytest.mark.parametrize(("head", "drop"), DRIPS.values(), ids=DRIPS.keys())
def test_what_comes_drop_by_drop_ends_after_the_time_of_a_request(hasty, head, drop):
    with socket.create_connection(("127.0.0.1", hasty.port), timeout=0.1) as slow:
        slow.sendall(head)
        assert any(is_closed_after(slow, drop) for _ in range(50))  # five seconds at most


def is_closed_after(connection, sent):
    try:
        connection.sendall(sent)
        return not connection.recv(10_000)
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_a_client_that_writes_to_the_end_can_read_that_its_body_is_too_large(small):
    with socket.create_connection(("127.0.0.1", small.port), timeout=30) as client:
        client.sendall(POST % b"/v1/classify" + b"content-length: 3000000\r\n\r\n")
        for _ in range(30):
            client.sendall(b"a" * 100_000)
            time.sleep(0.005)
        assert client.recv(100).startswith(b"HTTP/1.1 413")


def test_another_key_in_each_request_does_not_make_several_clients_where_there_are_no_keys(small):
    with blocked(small):
        threads = [
            threading.Thread(
                target=small.post,
                args=("/v1/completions", SHORT),
                kwargs={"headers": {"authorization": f"Bearer {number}"}},
            )
            for number in range(2)
        ]
        for one in threads:
            one.start()
        wait_until(lambda: small.gate.open.total() == 2)
        headers = {"authorization": "Bearer 2"}
        found = small.post("/v1/completions", SHORT, headers=headers)
        assert refusal(found) == (429, "too_many_requests")
        assert refusal(small.get("/v1/models")) == (429, "too_many_requests")
    for one in threads:
        one.join()


def test_connections_beyond_the_limit_are_503_until_others_end(runs):
    with Served([runs["reviews"]], limits={"connections": 3}) as server:
        address = "127.0.0.1", server.port
        held = [socket.create_connection(address, timeout=30) for _ in range(3)]
        wait_until(lambda: len(server.server.server_state.connections) == 3)
        found = server.get("/healthz")
        assert refusal(found) == (503, "too_many_connections")
        for one in held:
            one.close()
        wait_until(lambda: not server.server.server_state.connections)
        assert server.get("/healthz").status_code == 200


def test_headers_that_are_too_large_are_431(small):
    found = small.get("/v1/models", headers={f"x-{n}": "a" * 50 for n in range(100)})
    assert found.status_code == 431


def test_too_many_tokens_are_422(small):
    found = small.post("/v1/classify", {"model": "reviews", "input": "film " * 60})
    assert refusal(found) == (422, "too_many_tokens")
    for wrong in (SHORT | {"prompt": "3" * 40}, SHORT | {"max_tokens": 40}):
        assert refusal(small.post("/v1/completions", wrong)) == (422, "too_many_tokens")
    rest = {key: value for key, value in SHORT.items() if key != "max_tokens"}
    usage = small.post("/v1/completions", rest).json()["usage"]
    assert usage["total_tokens"] <= 40


def test_more_tokens_than_the_memory_holds_are_422(runs):
    with Served([runs["bottles"]], limits={"tokens": 900}, engine={"tokens": 48}) as server:
        found = server.post("/v1/completions", SHORT | {"max_tokens": 48})
        assert refusal(found) == (422, "too_many_tokens")
        message = found.json()["error"]["message"]
        assert message.endswith(
            "with max_tokens more than 48 (engine.tokens of the server); shorten it, or lower "
            "max_tokens"
        )
        found = server.post("/v1/completions", SHORT | {"max_tokens": 900})
        assert refusal(found) == (422, "too_many_tokens")
        rest = {key: value for key, value in SHORT.items() if key != "max_tokens"}
        assert server.post("/v1/completions", rest).json()["usage"]["total_tokens"] <= 48


def test_a_recording_that_is_too_long_is_422(small):
    sound = wave_bytes(np.zeros(3 * RATE, dtype=np.float32))
    files, data = {"file": ("a.wav", sound)}, {"model": "speech"}
    found = small.post("/v1/audio/transcriptions", files=files, data=data)
    assert refusal(found) == (422, "audio_too_long")


def test_a_client_with_too_many_open_requests_gets_429(small):
    with blocked(small), httpx.Client(timeout=30) as client:
        ask = partial(threading.Thread, target=small.post, args=("/v1/completions", SHORT))
        threads = [ask(), ask()]
        for one in threads:
            one.start()
        wait_until(lambda: small.gate.open.total() == 2)
        found = client.post(f"{small.url}/v1/completions", json=SHORT)
        assert refusal(found) == (429, "too_many_requests")
        assert int(found.headers["retry-after"]) > 0
        assert small.get("/healthz").status_code == 200  # still
    for one in threads:
        one.join()


def test_a_full_queue_is_503(small):
    with blocked(small):
        small.gate.open["someone else"] = 3
        try:
            found = small.post("/v1/completions", SHORT)
        finally:
            del small.gate.open["someone else"]
        assert refusal(found) == (503, "queue_full")
        assert int(found.headers["retry-after"]) > 0


def test_an_answer_that_takes_too_long_is_504(hasty):
    with blocked(hasty):
        found = hasty.post("/v1/completions", SHORT)
    assert refusal(found) == (504, "timeout")


def test_a_stream_that_takes_too_long_ends_with_an_error(hasty):
    with blocked(hasty):
        found = hasty.post("/v1/completions", SHORT | {"stream": True})
    assert refusal(found) == (504, "timeout")


@pytest.mark.parametrize(("seconds", "said"), [(1.0, "1 second"), (2.5, "2.5 seconds")])
def test_a_time_limit_is_worded_in_the_right_number(seconds, said):
    assert too_late(seconds).message == f"there was no answer within {said}"


def test_a_server_that_is_about_to_stop_refuses_new_requests(small):
    small.gate.draining = True
    try:
        assert refusal(small.post("/v1/completions", SHORT)) == (503, "shutting_down")
        assert refusal(small.get("/readyz")) == (503, "shutting_down")
        assert small.get("/healthz").status_code == 200
    finally:
        small.gate.draining = False
    assert small.get("/readyz").status_code == 200
