"""A run that reads streams, through the command line."""

import json
import os
import select
import signal
import subprocess
import sys

import numpy as np
import pytest
from small_recordings import RATE, WORDS, play, record, write_table, write_wave

from glassformer.cli import main

SETTINGS = [
    *("model.encoder.dim=24", "model.encoder.depth=1", "model.encoder.attention.heads=2"),
    *("model.frontend.bins=20", f"task.rate={RATE}", "machine.device=cpu"),
    *("task.stream.chunk=0.2", "task.normalise=all", "task.ctc_weight=1"),
    *("task.decode.method=greedy", "task.max_piece=30", "train.optimiser.lr=1e-2"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that learned little, and a recording."""
    folder = tmp_path_factory.mktemp("stream")
    rows = record(folder / "clips", [WORDS[number % len(WORDS)] for number in range(12)])
    table = write_table(folder / "rows.csv", rows)
    words = [f"--set={setting}" for setting in SETTINGS]
    command = ["train", "transcribe", str(table), "--steps", "40", "--run", str(folder / "run")]
    assert main([*command, "--quiet", *words]) == 0
    sound = np.concatenate([play(word, np.random.default_rng(1)) for word in WORDS])
    write_wave(folder / "talk.wav", sound)
    (folder / "talk.raw").write_bytes((sound * (2**15 - 1)).astype("<i2").tobytes())
    return folder


def test_a_stream_is_answered_as_the_file_is_from_a_file_or_standard_input(
    run, capsys, monkeypatch
):
    talk = str(run / "talk.wav")

    def answer(*given):
        assert main(["predict", str(run / "run"), "--confidence", *given]) == 0
        printed = capsys.readouterr()
        [line] = printed.out.splitlines()
        return line.split("\t"), printed.err

    whole, _ = answer(talk)
    streamed, notes = answer(talk, "--stream")
    assert streamed[0] == whole[0] != ""
    assert float(streamed[1]) == pytest.approx(float(whole[1]), abs=2e-3)
    assert "was heard with a look-ahead of 0.2" in notes
    for name, options in (("talk.wav", []), ("talk.raw", ["--rate", str(RATE)])):
        with open(run / name) as file:
            monkeypatch.setattr("sys.stdin", file)
            assert answer("--stream", "-", *options)[0][0] == whole[0]


def test_words_of_a_stream_are_lines_of_json(run, capsys):
    assert main(["predict", str(run / "run"), "--stream", str(run / "talk.wav"), "--json"]) == 0
    *words, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert "".join(word["text"] for word in words) == last["prediction"]
    assert last["latency"].keys() == {"look_ahead", "median", "p95", "real_time_factor"}


def test_a_pipe_that_cannot_be_read_is_refused_once(run, capsys, monkeypatch):
    (run / "talk.flac").write_bytes(b"fLaC" + bytes(200_000))
    with open(run / "talk.flac", "rb") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main(["predict", str(run / "run"), "--stream", "-"]) == 1
    assert "neither WAV nor raw 16-bit samples" in capsys.readouterr().err
    (run / "empty").write_bytes(b"")
    with open(run / "empty", "rb") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main(["predict", str(run / "run"), "--stream", "-"]) == 1
    assert "-: no sound, or less than 25 ms" in capsys.readouterr().err


@pytest.mark.full
def test_ctrl_c_keeps_what_was_heard(run):
    command = [sys.executable, "-m", "glassformer", "predict", str(run / "run"), "--stream", "-"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=os.environ)
    process.stdin.write((run / "talk.raw").read_bytes() + bytes(4 * RATE))
    process.stdin.flush()
    select.select([process.stdout], [], [], 20)  # until a word is there
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    text, confidence = out.decode().rstrip("\n").split("\t")
    assert text
    assert 0 < float(confidence) <= 1
    assert b"look-ahead" in err
