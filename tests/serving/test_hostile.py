"""Hostile inputs get a 4xx or a closed connection, and the next request is answered."""

import io
import socket
import struct
import zipfile

import numpy as np
import pytest
import soundfile
from small_recordings import RATE
from small_served import Served, recording, refusal, wait_until

JSON = {"content-type": "application/json"}
GOOD = {"model": "reviews", "input": "the film was great"}


@pytest.fixture(scope="module")
def server(runs):
    limits = {"patience": 1.0, "audio": 20.0}
    names = ("reviews", "bottles", "speech")
    with Served([runs[name] for name in names], limits=limits) as found:
        yield found


@pytest.fixture(autouse=True)
def _answers_the_next(server):
    yield
    assert server.post("/v1/classify", GOOD).json()["data"][0]["prediction"] == "good"


BODIES = {
    "nothing": b"",
    "no JSON": b"hello",
    "deep lists": b"[" * 100_000,
    "deep lists that end": b"[" * 50_000 + b"]" * 50_000,
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "a deep input": b'{"model": "reviews", "input": ' + b"[" * 9000 + b"]" * 9000 + b"}",
    "a huge number": b'{"model": "reviews", "input": ' + b"9" * 100_000 + b"}",
    "a list": b"[1, 2]",
    "broken UTF-8": b'{"model": "reviews", "input": "\xff\xfe"}',
    "half of a character": b'{"model": "reviews", "input": "\xe9\xb3"}',
    "half of a surrogate pair": b'{"model": "reviews", "input": "\\ud800"}',
    "a key of half a pair": b'{"model": "reviews", "input": "a", "\\udfff": 1}',
    "a model of half a pair": b'{"model": "\\udfff", "input": "a"}',
    "the same key twice": b'{"model": "reviews", "model": null, "input": "a"}',
    "null": b'{"model": null, "input": null}',
    "NaN": b'{"model": "reviews", "input": NaN}',
    "a path for a model": b'{"model": "../../../etc/passwd", "input": "a"}',
    "a long name": b'{"model": "' + b"a" * 10_000 + b'", "input": "a"}',
    "UTF-16": '{"model": "x", "input": 1}'.encode("utf-16"),
    "compressed": b"\x1f\x8b\x08" + b"\x00" * 100,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_hostile_body_is_refused(server, body):
    found = server.post("/v1/classify", content=body, headers=JSON)
    assert 400 <= refusal(found)[0] < 500
    assert len(found.content) < 1000


@pytest.mark.parametrize(
    "field",
    [
        b'"temperature": NaN',
        b'"temperature": Infinity',
        b'"temperature": -1',
        b'"temperature": 1e999',
        b'"top_p": 0',
        b'"top_k": 99999999999999999999',
        b'"n": 0',
        b'"n": 1e9',
        b'"max_tokens": 0',
        b'"max_tokens": 99999999999999999999999',
        b'"logprobs": 1000',
        b'"stop": [""]',
        b'"stop": ["a", "b", "c", "d", "e"]',
        b'"seed": 1.5',
        b'"stream": "yes please"',
        b'"stream_options": {"include_usage": 3, "more": 1}',
        b'"prompt": [1, 2, 3]',
        b'"prompt": ["a", null]',
        b'"logit_bias": {"1": 100}',
    ],
)
def test_a_hostile_setting_is_refused(server, field):
    body = b'{"model": "bottles", "max_tokens": 2, ' + field + b"}"
    found = server.post("/v1/completions", content=body, headers=JSON)
    assert refusal(found)[0] == 422


FIELDS = {  # what a refusal says, by field
    b'"stop": ["a", "b", "c", "d", "e"]': "stop: must have at most 4 items",
    b'"prompt": "\\ud800"': "prompt: half of a surrogate pair is no character",
    b'"prompt": ["a", "\\ud800"]': "prompt.1: half of a surrogate pair is no character",
    b'"seed": 1.5': "seed: must be a whole number",
    b'"top_p": 0': "top_p: must be above 0",
    b'"temperature": -1': "temperature: must be at least 0",
    b'"temperature": NaN': "temperature: must be a finite number",
    b'"stream": "maybe"': "stream: must be true or false",
    b'"stream_options": 3': "stream_options: must be an object",
    b'"logit_bias": {}': "logit_bias: unknown field; /docs lists those of this path",
}


@pytest.mark.parametrize(("field", "says"), FIELDS.items(), ids=FIELDS.values())
def test_a_wrong_field_is_refused_in_plain_words(server, field, says):
    body = b'{"model": "bottles", "max_tokens": 2, ' + field + b"}"
    found = server.post("/v1/completions", content=body, headers=JSON)
    assert refusal(found) == (422, "invalid_value")
    assert found.json()["error"]["message"] == says


UNREADABLE = {
    b"": "the body is empty; send a JSON object",
    b"null": 'the body is not a JSON object, such as {"model": ...}',
    b"[1, 2]": 'the body is not a JSON object, such as {"model": ...}',
    b'{"model": "\xff"}': "the body is not valid UTF-8: error at byte 11",
    b"[" * 200_000: "the body is not valid JSON: it is nested too deeply",
    b'{"seed": ' + b"9" * 5000 + b"}": "the body is not valid JSON: a number in it has too many "
    "digits",
}


@pytest.mark.parametrize(("body", "says"), UNREADABLE.items(), ids=range(len(UNREADABLE)))
def test_a_body_that_cannot_be_read_is_told_why(server, body, says):
    found = server.post("/v1/completions", content=body, headers=JSON)
    assert refusal(found) == (422, "invalid_json")
    assert found.json()["error"]["message"] == says


@pytest.mark.parametrize("headers", [{}, {"content-type": "application/x-www-form-urlencoded"}])
def test_json_without_its_header_is_told_so(server, headers):
    found = server.post("/v1/classify", content=b'{"model": "reviews"}', headers=headers)
    assert refusal(found) == (422, "no_json_header")
    says = "the header Content-Type: application/json is missing"
    assert found.json()["error"]["message"] == says


def test_an_upload_without_a_body_is_told_its_fields(server):
    found = server.post("/v1/audio/transcriptions")
    assert refusal(found) == (422, "invalid_value")
    assert found.json()["error"]["message"] == "model: this field is missing"


@pytest.mark.parametrize("seed", [0, -1, 2**31, 2**63, -(2**63), 10**40])
def test_any_whole_number_is_a_seed(server, seed):
    values = {"model": "bottles", "max_tokens": 3, "temperature": 1.0, "seed": seed}
    first, second = (server.post("/v1/completions", values).json() for _ in range(2))
    assert first["choices"] == second["choices"]


def flac_bomb():
    """An hour of silence in some kilobytes."""
    file = io.BytesIO()
    silence = np.zeros(RATE * 3600, dtype=np.int16)
    soundfile.write(file, silence, RATE, format="FLAC")
    return file.getvalue()


def many_channels():
    file = io.BytesIO()
    soundfile.write(file, np.zeros((RATE, 60), dtype=np.int16), 48_000, format="WAV")
    return file.getvalue()


def zip_bomb():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("sound.wav", b"\0" * 10_000_000)
    return file.getvalue()


def with_header(**values):
    """A recording whose header says something else."""
    sound = bytearray(recording("ace"))
    places = {"channels": (22, "<H"), "rate": (24, "<I"), "bits": (34, "<H"), "bytes": (40, "<I")}
    for name, value in values.items():
        place, form = places[name]
        struct.pack_into(form, sound, place, value)
    return bytes(sound)


def with_samples(value):
    """A recording of floats, some of which are no sound."""
    file, sound = io.BytesIO(), np.zeros(RATE, dtype=np.float32)
    sound[3000:3100] = value
    soundfile.write(file, sound, RATE, format="WAV", subtype="FLOAT")
    return file.getvalue()


SOUNDS = {
    "nothing": b"",
    "no sound": b"hello",
    "half a header": recording("ace")[:20],
    "a header alone": recording("ace")[:44],
    "a compressed hour": flac_bomb(),
    "an archive": zip_bomb(),
    "sixty channels": many_channels(),
    "no channel": with_header(channels=0),
    "a channel too many": with_header(channels=0xFFFF),
    "no rate": with_header(rate=0),
    "a rate of gigahertz": with_header(rate=0xFFFFFFFF),
    "no bits": with_header(bits=0),
    "gigabytes that are not there": with_header(bytes=0x10000000),
    "a playlist": b"#EXTM3U\n#EXTINF:10,\nfile:///etc/passwd\n",
    "a page": b"<html><script>alert(1)</script></html>",
    "NaN": with_samples(np.nan),
    "infinity": with_samples(-np.inf),
    "a huge number": with_samples(1e30),
    "floats without a header": struct.pack("<f", float("nan")) * 4000,
}


@pytest.mark.parametrize("sound", SOUNDS.values(), ids=SOUNDS.keys())
def test_a_hostile_recording_is_refused(server, sound):
    files, data = {"file": ("a.wav", sound)}, {"model": "speech"}
    found = server.post("/v1/audio/transcriptions", files=files, data=data)
    assert refusal(found)[0] == 422
    assert "/tmp" not in found.text


def test_hostile_forms_are_refused(server):
    path, head = "/v1/audio/transcriptions", "multipart/form-data; boundary="
    many = b"".join(
        b'--x\r\ncontent-disposition: form-data; name="a%d"\r\n\r\n1\r\n' % n for n in range(3000)
    )
    for kind, body in [
        (head, b"--x--"),
        (head + "x", b"--y\r\n\r\n--y--"),
        (head + "x", b"--x\r\ncontent-disposition: form-data; name=model\r\n\r\nspeech\r\n"),
        (head + "x", many + b"--x--\r\n"),
        (head + "x", b"--x\r\n" + b"a: b\r\n" * 10_000 + b"\r\n--x--"),
        ("application/x-www-form-urlencoded", b"model=speech&file=%00%ff"),
        ("application/json", b'{"model": "speech", "file": "/etc/passwd"}'),
    ]:
        found = server.post(path, content=body, headers={"content-type": kind})
        assert 400 <= refusal(found)[0] < 500


RAW = {
    "no HTTP": b"hello\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200,
    "a negative length": b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\n"
    b"content-length: -1\r\n\r\n",
    "two lengths": b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n"
    b"content-length: 6\r\n\r\nhello",
    "a length and chunks": b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n"
    b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk that is no number": b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\n"
    b"transfer-encoding: chunked\r\n\r\nZZ\r\nhello\r\n0\r\n\r\n",
    "thousands of headers": b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n"
    + b"".join(b"x-%d: y\r\n" % n for n in range(9000))
    + b"\r\n",
    "a header without an end": b"GET /v1/models HTTP/1.1\r\nx: " + b"y" * 200_000,
    "a path without an end": b"GET /" + b"y" * 200_000,
    "a path upwards": b"GET /../../etc/passwd HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "an encoded path upwards": b"GET /docs/%2e%2e%2f%2e%2e%2fetc/passwd HTTP/1.1\r\n"
    b"host: localhost\r\n\r\n",
    "a broken path": b"GET /%ff%fe%00 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a web socket": b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n"
    b"upgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"sec-websocket-version: 13\r\n\r\n",
    "a connection through us": b"CONNECT example.org:443 HTTP/1.1\r\nhost: localhost\r\n\r\n",
}


CHUNKED = b"host: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
ENDLESS = {
    "trailers": (b"POST /v1/classify HTTP/1.1\r\n" + CHUNKED + b"0\r\n", b"a: b\r\n"),
    "trailers of an unknown path": (b"POST /no HTTP/1.1\r\n" + CHUNKED + b"0\r\n", b"a: b\r\n"),
    "one trailer": (b"POST /v1/classify HTTP/1.1\r\n" + CHUNKED + b"0\r\na: ", b"b"),
    "what is said of a chunk": (b"POST /v1/classify HTTP/1.1\r\n" + CHUNKED + b"1;a=", b"b"),
    "headers": (b"GET /v1/models HTTP/1.1\r\n", b"a: b\r\n"),
    "lines": (b"", b"\r\n"),
}


@pytest.mark.parametrize(("head", "more"), ENDLESS.values(), ids=ENDLESS.keys())
def test_what_never_ends_beside_a_body_closes_the_connection(server, head, more):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(head)
        many = more * (10_000 // len(more))
        with pytest.raises(ConnectionError):
            all(connection.sendall(many) is None for _ in range(1000))


@pytest.mark.parametrize("sent", RAW.values(), ids=RAW.keys())
def test_what_is_hardly_http_gets_an_error_or_nothing(server, sent):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        try:
            connection.sendall(sent)
            answer = connection.recv(10_000)
        except ConnectionError:
            return
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4") or b'"object":"list"' in answer
    assert b"root:" not in answer


def test_a_client_that_reads_nothing_is_let_go(server):
    values = b'{"model": "bottles", "n": 16, "max_tokens": 4000, "logprobs": 20, "stream": true}'
    head = b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.connect(("127.0.0.1", server.port))
    with connection:
        connection.sendall(head + b"content-length: %d\r\n\r\n" % len(values) + values)
        wait_until(lambda: server.gate.open)
        server.idle()
