"""`torchrun -m glassformer train ...`: one model from two processes, one of which is killed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from glassformer.cli.app import main
from glassformer.training.weights import read_tensors

SETTINGS = (
    *("model.encoder.dim=16", "model.encoder.depth=1", "model.encoder.attention.heads=2"),
    *("model.encoder.dropout=0.0", "data.batch_tokens=64", "data.tokenizer.kind=characters"),
    *("train.validate_every=15", "train.log_every=5", "data.token_dropout=0.0"),
)
STEPS = 60


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    lines = [f"{'abc'[n % 3] * (2 + n % 7)}{n},{'xy'[n % 2]}" for n in range(97)]
    path.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def asked(data, run, *settings):
    words = ["train", "classify", str(data), "--run", str(run), "--no-pretrain", "--json"]
    words += ["--steps", str(STEPS)]
    return words + [word for setting in (*SETTINGS, *settings) for word in ("--set", setting)]


def torchrun(*words):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.Popen(
        [sys.executable, *launcher, "-m", "glassformer", "--", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def workers(launcher):
    """The processes that a launcher started."""
    children = f"/proc/{launcher.pid}/task/{launcher.pid}/children"
    with open(children) as file:
        return [int(word) for word in file.read().split()]


def wait_for_a_checkpoint(launcher, run):
    until = time.monotonic() + 100
    while not (run / "checkpoints" / "latest").exists():
        assert time.monotonic() < until
        assert launcher.poll() is None, launcher.communicate()[1]
        time.sleep(0.01)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="finds workers through /proc")
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param((), id="ddp"),
        pytest.param(("train.shard=true",), id="shard", marks=pytest.mark.full),
    ],
)
def test_a_killed_worker_ends_the_job_and_resume_comes_to_what_one_process_learns(
    data, tmp_path, settings
):
    run = tmp_path / "two"
    launcher = torchrun(*asked(data, run, *settings))
    wait_for_a_checkpoint(launcher, run)
    os.kill(max(workers(launcher)), signal.SIGKILL)
    _, err = launcher.communicate(timeout=100)
    assert launcher.returncode != 0
    assert not (run / "model.safetensors").exists()

    again = torchrun("resume", str(run), "--json")
    out, err = again.communicate(timeout=150)
    assert again.returncode == 0, err
    assert json.loads(out)["run"] == str(run)  # said once, by the first process
    assert "resuming from step " in err

    assert main(asked(data, tmp_path / "one")) == 0
    alone, together = (read_tensors(path / "model.safetensors") for path in (tmp_path / "one", run))
    for name, tensor in alone.items():
        if not name.endswith("to_k.bias"):  # softmax does not see it: its gradient is rounding
            torch.testing.assert_close(together[name], tensor, rtol=1e-2, atol=1e-3)
    losses = [
        [
            line["loss"]
            for line in map(json.loads, (path / "metrics.jsonl").open())
            if "loss" in line
        ]
        for path in (tmp_path / "one", run)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_a_model_is_dealt_out_only_to_processes_that_were_started(data, tmp_path, capsys):
    assert main(asked(data, tmp_path / "run", "train.shard=true")) == 1
    assert "train.shard spreads a model over several processes" in capsys.readouterr().err


def test_a_mistake_is_told_once(tmp_path):
    launcher = torchrun("train", "classify", str(tmp_path / "nowhere.csv"))
    out, err = launcher.communicate(timeout=100)
    assert launcher.returncode != 0
    assert out == ""
    assert err.count("glassformer: ") == 1
    assert "nowhere.csv: not found" in err
