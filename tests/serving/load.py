"""Load: mixed requests at once, by clients of every kind, each answer compared with the one alone.

patient     reads the whole answer
slow        sends its body in pieces, and reads the answer in pieces
leaving     closes its connection while it waits or reads
broken      sends half of a request
"""

import asyncio
import gc
import json
import math
import random
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx
from small_served import recording
from small_translator import sentences

AT_ONCE = 48  # clients
REFUSED = (429, 503)
CLIENTS = {"patient": 80, "slow": 6, "leaving": 8, "broken": 6}


@dataclass(frozen=True)
class Asked:
    """A request, as its path, the type of its body, and its body."""

    path: str
    media: str
    body: bytes

    @property
    def bytes(self):
        head = f"POST {self.path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
        length = f"content-type: {self.media}\r\ncontent-length: {len(self.body)}\r\n\r\n"
        return (head + length).encode() + self.body


@dataclass
class Outcome:
    """What became of the requests.

    Attributes:
        sent: How many there were, each counted once.
        statuses: How many of each.
        wrong: Requests whose answers are missing, or not those of the same requests alone.
    """

    sent: int = 0
    statuses: Counter = field(default_factory=Counter)
    wrong: list = field(default_factory=list)


def as_json(path, **values):
    return Asked(path, "application/json", json.dumps(values).encode())


def upload(path, sound, **values):
    sent = httpx.Request("POST", "http://a", data=values, files={"file": ("a.wav", sound)})
    return Asked(path, sent.headers["content-type"], sent.read())


def different_requests():
    """Some of every kind."""
    texts = sentences(6, seed=3)
    for number, text in enumerate(texts):
        yield as_json("/v1/translate", model="words", input=text, alternatives=number % 3)
        yield as_json("/v1/translate", model=("greedy", "drawn")[number % 2], input=[text, "red"])
        yield as_json("/v1/classify", model="reviews", input=[f"the film {text}", "dull"])
        yield as_json("/v1/embeddings", model="gaps", input=text * (1 + number))
        base = {"model": "bottles", "prompt": text[: 3 * number], "max_tokens": 7 + 9 * number}
        yield as_json("/v1/completions", **base, temperature=0)
        yield as_json("/v1/completions", **base, temperature=1.0, seed=number, n=1 + number % 3)
        yield as_json("/v1/completions", **base, temperature=0, stream=True)
    for word in ("ace", "bead", "cab"):
        path = "/v1/audio/transcriptions"
        for model in ("speech", "dictation"):
            yield upload(path, recording(word), model=model, response_format="verbose_json")
        yield upload("/v1/audio/classify", recording(word), model="sounds")


def settled(content):
    """An answer without what differs every time: its number and date; numbers are rounded."""
    if content.startswith(b"data: "):
        lines = [line.removeprefix("data: ") for line in content.decode().split("\n\n")]
        values = [json.loads(line) for line in lines if line and line != "[DONE]"]
        assert lines[-2:] == ["[DONE]", ""]
        return "".join(value["choices"][0]["text"] for value in values)
    return rounded(json.loads(content))


def rounded(value):
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items() if k not in ("id", "created")}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.2g}") if isinstance(value, float) else value


def near(found, expected):
    """Whether two answers are the same, up to the rounding of another batch."""
    if isinstance(expected, dict):
        same = isinstance(found, dict) and found.keys() == expected.keys()
        return same and all(near(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(near, found, expected))
    if isinstance(expected, float):
        return abs(found - expected) <= 1e-2 + 0.1 * abs(expected)
    return found == expected


async def put_under_load(server, count, *, seconds=math.inf, seed=0):
    """Send so many requests, many at once, for at most so long; those refused are sent again.

    Returns what became of them.
    """
    end = time.monotonic() + seconds
    rng, asked = random.Random(seed), list(different_requests())
    alone = {one: await patient(server, one, rng) for one in asked}
    assert all(status == 200 for status, _ in alone.values())
    expected = {one: settled(content) for one, (_, content) in alone.items()}
    outcome, rest = Outcome(), iter(range(count))

    async def client():
        for _ in rest:
            if time.monotonic() > end:
                return
            outcome.sent += 1
            kind = rng.choices([patient, slow, leaving, broken], CLIENTS.values())[0]
            request = rng.choice(asked)
            while (found := await kind(server, request, rng))[0] in REFUSED:
                outcome.statuses[found[0]] += 1
                await asyncio.sleep(rng.uniform(0, 0.3))
            status, content = found
            outcome.statuses[status] += 1
            unanswered = kind in (patient, slow) and status != 200
            if unanswered or (status == 200 and not near(settled(content), expected[request])):
                outcome.wrong.append((status, request, content))

    await asyncio.gather(*(client() for _ in range(AT_ONCE)))
    return outcome


async def patient(server, request, rng):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request.bytes)
    return await answer(reader, writer)


async def slow(server, request, rng):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    size = len(request.bytes) // 5 + 1
    for start in range(0, len(request.bytes), size):
        writer.write(request.bytes[start : start + size])
        await asyncio.sleep(rng.uniform(0, 0.02))
    return await answer(reader, writer, pause=0.01)


async def leaving(server, request, rng):
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request.bytes)
    await asyncio.sleep(rng.uniform(0, 0.05))
    writer.transport.abort()
    return "left", b""


async def broken(server, request, rng):
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request.bytes[: rng.randrange(len(request.bytes))])
    await asyncio.sleep(0)
    writer.close()
    return "broken", b""


async def answer(reader, writer, pause=0.0):
    """The status and the body of an answer that ends with its connection."""
    content, began = b"", time.monotonic()
    while piece := await reader.read(1000 if pause else 1 << 16):
        content += piece
        if pause:
            await asyncio.sleep(pause)
    writer.close()
    if not content:
        return f"closed without an answer after {time.monotonic() - began:.0f} s", content
    head, _, body = content.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head:
        body = unchunked(body)
    return int(head.split()[1]), body


def unchunked(body):
    found = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        found, body = found + body[:length], body[length + 2 :]
    return found


def memory():
    """Bytes that this process holds."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
