"""Training on a GPU: a memory that is too small, and one process under torchrun."""

import json
import subprocess
import sys

import pytest
import torch

from glassformer.cli.app import main
from glassformer.training.weights import read_tensors

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]

SETTINGS = (
    *("data.tokenizer.kind=characters", "model.encoder.dropout=0.0", "data.token_dropout=0.0"),
    *("machine.precision=fp32", "data.batch_tokens=60000", "train.log_every=5"),
)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [f"{'abc'[n % 3] * (150 + n % 70)}{n},{'xy'[n % 2]}" for n in range(600)]
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def asked(data, run, *settings):
    words = ["train", "classify", str(data), "--run", str(run), "--no-pretrain", "--quiet"]
    words += ["--steps", "10", "--size", "small", "--json"]
    return words + [word for setting in (*SETTINGS, *settings) for word in ("--set", setting)]


def alike(first, second):
    one, other = (read_tensors(run / "model.safetensors") for run in (first, second))
    for name, tensor in one.items():
        if not name.endswith("to_k.bias"):  # softmax does not see it: its gradient is rounding
            torch.testing.assert_close(other[name], tensor, rtol=1e-2, atol=2e-3)


def test_a_memory_that_is_too_small_cuts_batches_and_learns_the_same(data, tmp_path):
    torch.cuda.reset_peak_memory_stats()
    assert main(asked(data, tmp_path / "roomy", "machine.compile=false")) == 0
    needed, whole = torch.cuda.max_memory_allocated(), torch.cuda.mem_get_info()[1]
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.6 * needed / whole)
    try:
        assert main(asked(data, tmp_path / "tight", "machine.compile=false")) == 0
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    lines = (tmp_path / "tight" / "metrics.jsonl").read_text().splitlines()
    told = [line["what"] for line in map(json.loads, lines) if "what" in line]
    assert told
    assert "split into 2 micro-batches" in told[0]
    alike(tmp_path / "roomy", tmp_path / "tight")


@pytest.mark.parametrize("settings", [(), ("train.shard=true",), ("train.recompute=true",)])
def test_one_process_under_torchrun_learns_what_it_learns_alone(data, tmp_path, settings):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"]
    words = asked(data, tmp_path / "launched", *settings)
    command = [sys.executable, *launcher, "-m", "glassformer", "--", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run"] == str(tmp_path / "launched")
    assert main(asked(data, tmp_path / "alone")) == 0
    alike(tmp_path / "alone", tmp_path / "launched")
