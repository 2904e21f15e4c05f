"""Keys, origins, and who is let in."""

import socket

import httpx
import pytest
from small_served import Served, refusal

from glassformer.cli import main
from glassformer.errors import GlassformerError
from glassformer.serving import keys as module
from glassformer.serving.keys import Keys, known_hosts, read_keys

KEY, OTHER = "sk-0123456789abcdef", "sk-fedcba9876543210"
GOOD = {"model": "reviews", "input": "great"}
PAGE = "https://page.example"


def bearing(key):
    return {"authorization": f"Bearer {key}"}


@pytest.fixture(scope="module")
def guarded(runs):
    with Served([runs["reviews"]], keys=[KEY, OTHER], origins=[PAGE]) as server:
        yield server


def test_only_those_with_a_key_are_answered(guarded):
    for key in (KEY, OTHER):
        assert guarded.post("/v1/classify", GOOD, headers=bearing(key)).status_code == 200
    for headers in (
        {},
        bearing(KEY[:-1]),
        bearing(KEY + "0"),
        {"authorization": KEY},
        {"authorization": f"Basic {KEY}"},
        {"x-api-key": KEY},
    ):
        found = guarded.post("/v1/classify", GOOD, headers=headers)
        assert refusal(found) == (401, "invalid_api_key")
        assert found.headers["www-authenticate"] == "Bearer"
        assert KEY not in found.text


@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/v1/models/reviews", "/else"])
def test_other_paths_need_a_key_too(guarded, path):
    assert guarded.get(path).status_code == 401


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/openapi.json"])
def test_health_and_the_reference_need_none(guarded, path):
    assert guarded.get(path).status_code == 200


def test_all_keys_are_compared_in_constant_time(monkeypatch):
    compared = []
    own = module.hmac.compare_digest
    monkeypatch.setattr(
        module.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or own(a, b)
    )
    keys = Keys([KEY, OTHER])
    for key in (KEY, OTHER, "x"):
        compared.clear()
        assert keys.accept(key.encode()) == (key != "x")
        assert [len(a) for a, _ in compared] == [32, 32]  # all of them, and digests of one length


def test_pages_of_other_origins_are_let_in_only_if_asked_for(guarded, served):
    preflight = {"access-control-request-method": "POST"}
    for origin, allowed in ((PAGE, PAGE), ("https://else.example", None)):
        found = guarded.post("/v1/classify", GOOD, headers={**bearing(KEY), "origin": origin})
        assert found.headers.get("access-control-allow-origin") == allowed
    found = served.post("/v1/classify", GOOD, headers={"origin": PAGE, **preflight})
    assert "access-control-allow-origin" not in found.headers


def test_a_trailer_is_no_header(guarded):
    body = b'{"model": "reviews", "input": "great"}'
    head = b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    chunks = b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n" % (len(body), body)
    trailer = b"authorization: Bearer " + KEY.encode() + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=30) as client:
        client.sendall(head + chunks + trailer)
        assert client.recv(100).startswith(b"HTTP/1.1 401")


REBOUND = {"host": "page.example:8000", "origin": "http://page.example:8000"}
UPLOAD = {"files": {"file": ("a.png", b"")}, "data": {"model": "pictures"}}


def test_a_server_for_this_machine_answers_to_no_other_name(served):
    for path in ("/v1/models", "/v1/training", "/", "/healthz"):
        assert refusal(served.get(path, headers=REBOUND)) == (403, "host_not_allowed")
    found = served.post("/v1/classify", GOOD, headers=REBOUND)
    assert refusal(found) == (403, "host_not_allowed")
    assert found.json()["error"]["message"] == (
        "Host 'page.example' is not allowed; if it is one of this server's names, start it with "
        "--allow-host page.example"
    )
    for host in ("localhost", "LOCALHOST:80", "127.0.0.1", "[::1]:8000", "app.localhost:8000"):
        assert served.post("/v1/classify", GOOD, headers={"host": host}).status_code == 200
    for host in ("localhost.page.example", "0.0.0.0", "", "[", "127.0.0.1@page.example"):
        found = served.get("/healthz", headers={"host": host})
        assert refusal(found) == (403, "host_not_allowed")


def test_pages_of_other_origins_cannot_have_uploads_computed(served):
    own = {"origin": served.url}
    found = served.post("/v1/images/recognise", **UPLOAD, headers=own)
    assert refusal(found)[0] == 422  # it was looked at
    for origin in (PAGE, "null", "http://127.0.0.1:1", f"{served.url}.example"):
        found = served.post("/v1/images/recognise", **UPLOAD, headers={"origin": origin})
        assert refusal(found) == (403, "origin_not_allowed")
        assert found.json()["error"]["message"].endswith(f"start the server with --cors {origin}")
        assert refusal(served.get("/v1/models", headers={"origin": origin}))[0] == 403


def test_a_proxy_may_keep_the_name_that_it_is_called_by_or_not(runs):
    with Served([runs["reviews"]], hosts=["page.example"]) as server:
        for host in ("page.example", "Page.Example:8000", f"127.0.0.1:{server.port}"):
            headers = {"host": host, "origin": "https://page.example"}
            assert server.post("/v1/classify", GOOD, headers=headers).status_code == 200
        assert server.get("/", headers={"host": "else.example"}).status_code == 403
    with Served([runs["reviews"]], hosts=None) as server:  # other machines call it what they like
        assert server.get("/", headers={"host": "else.example"}).status_code == 200
        headers = {"host": "else.example", "origin": "https://page.example"}
        assert server.post("/v1/classify", GOOD, headers=headers).status_code == 403


@pytest.mark.parametrize("hosts", [b"", b"host: localhost\r\nhost: localhost\r\n"])
def test_a_request_needs_one_host(served, hosts):
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n" + hosts + b"\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400")
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")  # which knows no hosts
        assert client.recv(100).startswith(b"HTTP/1.1 200")


def test_a_request_for_something_has_no_body(served):
    found = httpx.request("GET", f"{served.url}/v1/models", content=b"x")
    assert refusal(found) == (400, "unexpected_body")
    found = httpx.request("GET", f"{served.url}/v1/models", headers={"content-length": "0"})
    assert found.status_code == 200


def test_names_are_checked_only_where_they_are_known():
    assert known_hosts("127.0.0.1", []) == {"127.0.0.1"}
    assert known_hosts("0.0.0.0", []) is None  # others call the machine what they like
    assert known_hosts("0.0.0.0", ["Page.example"]) == {"0.0.0.0", "page.example"}


def test_keys_come_from_arguments_a_file_and_the_environment(tmp_path):
    (tmp_path / "keys").write_text(f"{KEY}\n\n{OTHER}\n")
    third = "sk-0000111122223333"
    keys = read_keys([third], tmp_path / "keys", {})
    assert all(keys.accept(key.encode()) for key in (KEY, OTHER, third))
    assert read_keys([], None, {"GLASSFORMER_KEYS": f"{KEY} {OTHER}"}).accept(OTHER.encode())
    assert not read_keys([], None, {})


def test_a_file_without_keys_and_a_key_that_is_too_short_are_refused(tmp_path):
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(GlassformerError, match="holds no key; write one per line"):
        read_keys([], tmp_path / "empty", {})
    with pytest.raises(GlassformerError, match=r"none: cannot be read .*; give a file"):
        read_keys([], tmp_path / "none", {})
    (tmp_path / "broken").write_bytes(b"\xff" * 20)
    with pytest.raises(GlassformerError, match="not UTF-8 text"):
        read_keys([], tmp_path / "broken", {})
    for key in ("short", "sk-0123456789 abcdef", "sk-0123456789abcdéf"):
        with pytest.raises(GlassformerError, match="a key has 16 or more letters") as error:
            Keys([key])
        assert key not in str(error.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_other_machines_are_let_in_without_a_key_only_if_told_twice(host, tmp_path, capsys):
    assert main(["serve", str(tmp_path / "run"), "--host", host]) == 1
    assert "lets other machines in, and there is no key; add --key" in capsys.readouterr().err
    for more in (["--key", KEY], ["--without-key"]):
        assert main(["serve", str(tmp_path / "run"), "--host", "0.0.0.0", "--port", "0", *more])
        assert "lets other machines in" not in capsys.readouterr().err


def test_reloading_needs_a_key(guarded, served, runs):
    assert refusal(served.post("/v1/models/reviews/reload")) == (403, "no_keys")
    assert guarded.post("/v1/models/reviews/reload").status_code == 401
    before = guarded.models.served["reviews"]
    assert guarded.post("/v1/models/reviews/reload", headers=bearing(KEY)).status_code == 200
    assert guarded.models.served["reviews"] is not before
    found = guarded.post("/v1/models/../reload", headers=bearing(KEY))
    assert found.status_code in (404, 405)
    found = guarded.post("/v1/models/none/reload", headers=bearing(KEY))
    assert refusal(found) == (404, "model_not_found")
