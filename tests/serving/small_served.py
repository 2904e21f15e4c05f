"""Small runs of every kind, and a server around them."""

import fcntl
import io
import json
import os
import shutil
import socket
import threading
import time
from contextlib import contextmanager
from itertools import pairwise

import httpx
import numpy as np
import openai
import pytest
import soundfile
import torch
from quick import quickly
from small_images import write_images
from small_ratings import ratings
from small_recordings import RATE, WORDS, play, record, write_table
from small_translator import SETTINGS as TRANSLATOR, unchecked, write_pairs

import glassformer
from glassformer.config.values import build
from glassformer.serving.app import Application
from glassformer.serving.keys import Keys
from glassformer.serving.lifecycle import Server, bound
from glassformer.serving.metrics import Metrics
from glassformer.serving.models import Models
from glassformer.serving.settings import ServeConfig
from glassformer.serving.worker import Worker

TEXT = "".join(f"{n} green bottles hanging on the wall,\nand if one fell:\n" for n in range(120))
REVIEWS = ("great", "lovely", "superb"), ("dull", "awful", "weak")
STACK = ("dim=16", "depth=1", "attention.heads=2", "dropout=0")
KEPT = {}


def stack(side):
    return [f"model.{side}.{one}" for one in STACK]


def write_bottles(folder):
    (folder / "bottles.txt").write_text(TEXT)
    settings = (*stack("decoder"), "data.batch_tokens=1024", "task.max_length=64")
    return "generate", folder / "bottles.txt", settings, 60


def write_reviews(folder):
    lines = [
        f"the film was {word} and {other} {number},{('good', 'bad')[kind]}"
        for number in range(20)
        for kind, words in enumerate(REVIEWS)
        for word, other in pairwise(words)
    ]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *lines]))
    return "classify", folder / "reviews.csv", (*stack("encoder"), "train.optimiser.lr=1e-2"), 30


def write_gaps(folder):
    path = write_reviews(folder)[1].with_suffix(".txt")
    path.write_text("\n".join(f"the film was {w} and {w} {n}" for n in range(99) for w in "abc"))
    return "pretrain", path, (*stack("encoder"), "task.max_length=32"), 4


def write_speech(folder):
    texts = [WORDS[number % len(WORDS)] for number in range(30)]
    table = write_table(folder / "rows.csv", record(folder / "clips", texts))
    settings = (*stack("encoder"), *stack("decoder"), "model.frontend.bins=20", f"task.rate={RATE}")
    return "transcribe", table, settings, 4


def write_sounds(folder):
    rows = record(folder / "clips", [("ace", "bead")[n % 2] for n in range(24)])
    lines = [f"{row['path']},{row['text']}" for row in rows]
    (folder / "sounds.csv").write_text("\n".join(["path,label", *lines]))
    settings = (*stack("encoder"), "model.frontend.kind=subsampling", "model.frontend.bins=20")
    return "classify", folder / "sounds.csv", (*settings, f"task.rate={RATE}"), 4


def write_words(folder):
    return "translate", write_pairs(folder / "pairs.tsv", count=90), TRANSLATOR, 20


def write_pictures(folder):
    settings = (*stack("encoder"), "train.optimiser.lr=0.02", "task.augment.crop=0")
    return "recognise", write_images(folder / "images"), settings, 20


def write_ratings(folder):
    lines = [",".join(map(str, row.values())) for row in ratings(times=False)]
    (folder / "ratings.csv").write_text("\n".join(["user,item,rating,split", *lines]))
    return "recommend", folder / "ratings.csv", ("task.features=3",), 20


WRITERS = {
    "bottles": write_bottles,
    "reviews": write_reviews,
    "gaps": write_gaps,
    "speech": write_speech,
    "sounds": write_sounds,
    "words": write_words,
    "pictures": write_pictures,
    "ratings": write_ratings,
}
OTHERS = {  # copies of these with another search
    "greedy": ("words", {"method": "greedy"}),
    "drawn": ("words", {"method": "sample", "min_length": 2}),
    "dictation": (
        "speech",
        {"method": "greedy", "search": "attention", "min_length": 3, "max_length": 4},
    ),
}


def small_run(name, factory):
    """The folder of a small run, made once for all processes that run tests."""
    if name in KEPT:
        return KEPT[name]
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    base = factory.getbasetemp() if alone else factory.getbasetemp().parent
    folder = base / "served" / name
    if name in OTHERS:
        kind, settings = OTHERS[name]
        original = small_run(kind, factory)
        with made_once(folder) as missing:
            if missing:
                searching_otherwise(original, folder / name, settings)
    else:
        with made_once(folder) as missing:
            if missing:
                train_small(name, folder)
    return KEPT.setdefault(name, folder / name)


@contextmanager
def made_once(folder):
    """Whether the folder has yet to be filled, while no other process fills it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield not (folder / "done").exists()
        (folder / "done").touch()


def train_small(name, folder):
    job, data, settings, steps = WRITERS[name](folder)
    options = {"run": folder / name, "steps": steps, "quiet": True, "device": "cpu"}
    pretrain = {"pretrain": False} if job == "classify" else {}
    with quickly(), unchecked(), pytest.MonkeyPatch.context() as patch:
        # or speech would be silence after a few steps
        patch.setattr("glassformer.tasks.transcribe.task.expect_blanks", lambda layer: None)
        glassformer.train(job, data, set=settings, **options, **pretrain)


def searching_otherwise(run, folder, settings):
    """A copy of a run with another search: values of its config, by name."""
    shutil.copytree(run, folder)
    path = folder / "config.toml"
    lines = path.read_text().splitlines()
    for name, value in settings.items():
        number = next(n for n, line in enumerate(lines) if line.startswith(f"{name} = "))
        lines[number] = f"{name} = {json.dumps(value)}"
    path.write_text("\n".join(lines))
    (folder / "checksums.json").unlink()  # or the change would be refused
    return folder


def recording(text, seed=7):
    """The bytes of a WAV file."""
    return wave_bytes(play(text, np.random.default_rng(seed)))


def wave_bytes(sound):
    file = io.BytesIO()
    soundfile.write(file, sound, RATE, format="WAV", subtype="PCM_16")
    return file.getvalue()


class Served:
    """A server in a thread of its own.

    Attributes:
        url: Where it is.
        models: What it serves.
    """

    def __init__(self, runs, keys=(), origins=(), hosts=(), **settings):
        config = build(ServeConfig, settings)
        self.worker = Worker()
        self.models = Models([*runs], self.worker, config, Metrics(), device="cpu")
        application = Application(self.models, Keys(keys), origins, hosts)
        self.server = Unsignalled(application)
        self.gate = self.server.application.gate
        self.thread = threading.Thread(target=self._run)
        self.ready = threading.Event()

    def _run(self):
        torch.set_num_threads(1)
        with bound("127.0.0.1", 0) as listener:
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            self.port = listener.getsockname()[1]
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)  # is soon full
            self.ready.set()
            self.server.run(sockets=[listener])

    def __enter__(self):
        self.thread.start()
        assert self.ready.wait(30)
        wait_until(lambda: self.server.started)
        return self

    def __exit__(self, *error):
        self.server.should_exit = True
        self.thread.join(60)
        self.worker.stop(10.0)
        assert not self.thread.is_alive()

    def client(self, **options):
        """OpenAI's own client."""
        options = {"api_key": "none", "max_retries": 0} | options
        return openai.OpenAI(base_url=f"{self.url}/v1", **options)

    def post(self, path, values=None, **options):
        given = {} if values is None else {"json": values}
        return httpx.post(self.url + path, timeout=30, **given, **options)

    def get(self, path, **options):
        return httpx.get(self.url + path, timeout=30, **options)

    def idle(self):
        """Wait until nothing is open."""
        wait_until(lambda: not self.gate.open)


class Unsignalled(Server):
    """Only the main thread may handle signals."""

    @contextmanager
    def capture_signals(self):
        yield


def wait_until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.005)


def refusal(response):
    """The error of an answer, in the form that every error has."""
    error = response.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return response.status_code, error["code"]
