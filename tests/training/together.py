"""Trains small jobs in several processes, for test_processes.py; started by torchrun.

Usage: together.py FOLDER; the first process leaves there, for each way of training, what was told
and the weights it came to.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch
from jobs import CPU, fresh, make, setup_for, train_on

from glassformer import processes
from glassformer.config import RegulariserConfig, VirtualAdversaryConfig
from glassformer.models.stacks import recompute_activations
from glassformer.training.fsdp import gathered, shard
from glassformer.training.weights import weights_of, write_tensors

STEPS = 4
WAYS = {
    "ddp": ("copy", {}),
    "ddp-ctc": ("ctc", {}),
    "ddp-accumulate": ("first", {"accumulate": 3}),
    "ddp-r-drop": ("first", {"regularise": RegulariserConfig(r_drop=1.0)}),
    "ddp-vat": ("first", {"regularise": RegulariserConfig(vat=VirtualAdversaryConfig(weight=1.0))}),
    "ddp-recompute": ("first", {"recompute": True}),
    "shard": ("copy", {"shard": True}),
    "shard-ema": ("first", {"shard": True, "ema": 0.5, "clip": 0.01}),
    "shard-tied": ("tied", {"shard": True, "accumulate": 2}),
    "shard-r-drop": ("first", {"shard": True, "regularise": RegulariserConfig(r_drop=1.0)}),
}


def job(way: str, scratch: Path, checkpoints: Path | None):
    """The task and the setup of a way to train."""
    name, asked = WAYS[way]
    shares = {"share": True} if name == "tied" else {}
    task = make("copy" if shares else name, scratch, **shares)
    often = {"log_every": 1, "validate_every": 2, "save_every": 2}
    return task, setup_for(task, checkpoints, steps=STEPS, **often, **asked)


def begun(task, setup):
    """A state as a run begins it."""
    state = fresh(task, setup)
    model = state.model
    if setup.train.recompute:
        recompute_activations(model)
    if setup.train.shard and processes.is_launched():
        shard(model, CPU)
        state = type(state)(model, setup.train)
    return state


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    with processes.joined():
        for way in WAYS:
            home = folder / way
            if processes.is_first():
                home.mkdir()
            processes.wait()
            task, setup = job(way, home / f"task-{processes.rank()}", home / "checkpoints")
            state, events = train_on(task, setup, begun(task, setup))
            weights = {name: gathered(tensor) for name, tensor in weights_of(state.model).items()}
            if processes.is_first():
                told = [{"kind": type(e).__name__, **asdict(e)} for e in events]
                (home / "told.json").write_text(json.dumps(told), encoding="utf-8")
                write_tensors(weights, home / "weights.safetensors")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
