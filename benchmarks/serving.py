"""Requests a second and latency at rising load: `glassformer serve` beside a plain FastAPI app.

    python benchmarks/serving.py                          both, on this machine; about four minutes
    python benchmarks/serving.py --width 256 --depth 4    with larger models than the default's

The plain app has two endpoints, each around a `pipeline` of Hugging Face with a model of the same
shape: a BERT for labels, a Llama for continuations. Weights are random for both: only time is
compared. Clients are in a process of their own, on connections that are kept open, and send a
request as soon as they have the answer to the last one.

The last table compares the two at equal latency: for every load of the plain app, the most
requests a second that `glassformer serve` answers with a median and a 95th percentile that are no
higher.
"""

import argparse
import json
import os
import random
import re
import selectors
import socket
import statistics
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HEADS = 4
WORDS, LENGTH, NEW = 2000, 24, 32  # of the vocabulary; in a text; tokens to write
LOADS = (1, 2, 3, 4, 8, 16, 32)  # clients
KINDS = ("labels", "continuations")
LENGTH_HEADER = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Shape(NamedTuple):
    """The shape of a model."""

    width: int
    depth: int


class Row(NamedTuple):
    """What was measured with some clients; latencies are in milliseconds."""

    clients: int
    rate: float
    p50: float
    p95: float
    p99: float


def word(number: int) -> str:
    """A word of three letters, which is one token for both."""
    return "".join(string.ascii_lowercase[number // 26**place % 26] for place in range(3))


def texts(count: int) -> list[str]:
    rng = random.Random(0)
    return [" ".join(word(rng.randrange(WORDS)) for _ in range(LENGTH)) for _ in range(count)]


def make_runs(folder: Path, model: Shape) -> list[Path]:
    """A classifier and a language model, trained for a step."""
    import glassformer

    lines = texts(500)
    table = "\n".join(f"{text},{number % 2}" for number, text in enumerate(lines))
    (folder / "labels.csv").write_text("text,label\n" + table)
    (folder / "texts.txt").write_text("\n".join(lines))
    made = []
    for job, data, side in (
        ("classify", "labels.csv", "encoder"),
        ("generate", "texts.txt", "decoder"),
    ):
        shape = (f"dim={model.width}", f"depth={model.depth}", f"attention.heads={HEADS}")
        kind = "words" if job == "classify" else "bpe"
        settings = [*(f"model.{side}.{one}" for one in shape), f"data.tokenizer.kind={kind}"]
        run = folder / job
        more = {}
        if job == "classify":
            settings.append("model.ngrams=no")  # a BERT has none
            more["pretrain"] = False
        glassformer.train(
            job, folder / data, run=run, steps=1, set=settings, quiet=True, device="cpu", **more
        )
        made.append(run)
    return made


def plain_app(port: int, model: Shape) -> None:
    """The other side: FastAPI and two pipelines."""
    import uvicorn
    from fastapi import FastAPI
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        LlamaConfig,
        LlamaForCausalLM,
        PreTrainedTokenizerFast,
        pipeline,
    )

    vocabulary = {word: number for number, word in enumerate(["<pad>", "<unk>", "<s>"])}
    vocabulary |= {word(number): len(vocabulary) + number for number in range(WORDS)}
    own = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    own.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=own, pad_token="<pad>", unk_token="<unk>", bos_token="<s>"
    )
    shape = {
        "vocab_size": len(vocabulary),
        "hidden_size": model.width,
        "num_hidden_layers": model.depth,
        "num_attention_heads": HEADS,
        "intermediate_size": 4 * model.width,
    }
    bert = BertForSequenceClassification(BertConfig(**shape)).eval()
    llama = LlamaForCausalLM(LlamaConfig(**shape, pad_token_id=0, eos_token_id=None)).eval()
    classify = pipeline("text-classification", model=bert, tokenizer=tokenizer)
    generate = pipeline("text-generation", model=llama, tokenizer=tokenizer)
    app = FastAPI()

    @app.post("/v1/classify")
    def label(body: dict) -> list:
        return classify(body["input"])

    @app.post("/v1/completions")
    def complete(body: dict) -> list:
        return generate(body["prompt"], max_new_tokens=body["max_tokens"], do_sample=False)

    uvicorn.run(app, port=port, log_level="warning", access_log=False)


def requests_of(kind: str) -> list[bytes]:
    """Requests as they are sent."""
    path = {"labels": "/v1/classify", "continuations": "/v1/completions"}[kind]
    sent = []
    for text in texts(64):
        values = {"model": "classify", "input": text}
        if kind == "continuations":
            values = {"model": "generate", "prompt": text, "max_tokens": NEW, "temperature": 0}
        body = json.dumps(values).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        sent.append(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    return sent


class Client:
    """A connection that is kept open, with one request under way."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.answer, self.began = b"", 0.0

    def send(self, request: bytes) -> None:
        self.answer, self.began = b"", time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> bool:
        """Whether the answer is complete with what has arrived."""
        self.answer += self.socket.recv(1 << 20)
        head, blank, body = self.answer.partition(b"\r\n\r\n")
        if not blank:
            return False
        assert head.startswith(b"HTTP/1.1 200"), head
        return len(body) == int(LENGTH_HEADER.search(head)[1])


def exchange(port: int, sent: list[bytes], clients: int, duration: float) -> list[float]:
    """The seconds of every request that some clients send, each as soon as it has an answer."""
    seconds: list[float] = []
    with selectors.DefaultSelector() as selector:
        for _ in range(clients):
            client = Client(port)
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.send(random.choice(sent))
        end = time.perf_counter() + duration
        while selector.get_map():
            for key, _ in selector.select():
                if not key.data.receive():
                    continue
                now = time.perf_counter()
                seconds.append(now - key.data.began)
                if now < end:
                    key.data.send(random.choice(sent))
                else:
                    selector.unregister(key.fileobj)
                    key.data.socket.close()
    return seconds


def measure(port: int, kind: str, clients: int, duration: float) -> Row:
    """Requests a second, and the percentiles of latency."""
    sent = requests_of(kind)
    exchange(port, sent, clients, duration / 4)  # until all is warm
    began = time.perf_counter()
    seconds = exchange(port, sent, clients, duration)
    rate = len(seconds) / (time.perf_counter() - began)
    cuts = statistics.quantiles([1000 * one for one in seconds], n=100, method="inclusive")
    return Row(clients, rate, cuts[49], cuts[94], cuts[98])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nothing answers at port {port}")


def contest(
    name: str, command: list[str], port: int, duration: float, pause: float
) -> dict[str, list[Row]]:
    """Measure one server, and print its rows."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    found: dict[str, list[Row]] = {kind: [] for kind in KINDS}
    try:
        wait_for(port)
        for kind in KINDS:
            for clients in LOADS:
                time.sleep(pause)
                row = measure(port, kind, clients, duration)
                found[kind].append(row)
                latency = " | ".join(f"{one:.2f}" for one in row[2:])
                print(f"| {kind} | {name} | {clients} | {row.rate:.0f} | {latency} |", flush=True)
    finally:
        process.terminate()
        process.wait()
    return found


def at_equal_latency(plain: Row, ours: list[Row]) -> float:
    """The most requests a second of ours that are answered as soon as those of the plain app."""
    soon = (row.rate for row in ours if row.p50 <= plain.p50 and row.p95 <= plain.p95)
    return max(soon, default=0.0)


def compare(ours: dict[str, list[Row]], plain: dict[str, list[Row]]) -> None:
    """Print the requests a second of both at the latencies of the plain app."""
    print("\n| | plain app | latency p50, p95 ms | its requests/s | ours | times |")
    print("|---|---|---|---|---|---|")
    for kind in KINDS:
        for row in plain[kind]:
            most = at_equal_latency(row, ours[kind])
            print(
                f"| {kind} | {row.clients} clients | {row.p50:.2f}, {row.p95:.2f} | {row.rate:.0f} "
                f"| {most:.0f} | {most / row.rate:.1f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each row of the table")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds before each row")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--plain", type=int, metavar="PORT", help=argparse.SUPPRESS)
    given = parser.parse_args()
    model = Shape(given.width, given.depth)
    if given.plain:
        plain_app(given.plain, model)
        return
    print("| | server | clients | requests/s | p50 ms | p95 ms | p99 ms |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        runs = map(str, make_runs(Path(folder), model))
        port = free_port()
        command = [sys.executable, "-m", "glassformer", "serve", *runs, "--port", str(port)]
        ours = contest("glassformer serve", command, port, given.seconds, given.pause)
    port = free_port()
    sizes = ["--width", str(model.width), "--depth", str(model.depth)]
    command = [sys.executable, __file__, "--plain", str(port), *sizes]
    plain = contest("FastAPI and pipeline", command, port, given.seconds, given.pause)
    compare(ours, plain)
    print(f"\n{os.cpu_count()} cores; {given.seconds:g} s a row; {model}")


if __name__ == "__main__":
    main()
