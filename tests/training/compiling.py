"""Train in compiled and in plain steps, and compare; test_compiled_steps runs it.

In a process of its own: the hook that checks shapes in tests cannot be compiled.
"""

import sys
from dataclasses import replace
from pathlib import Path

import torch
from jobs import make, setup_for, train_on

from glassformer.config import OptimiserConfig
from glassformer.training.setup import Step
from glassformer.training.weights import weights_of


def main(folder: Path) -> None:
    task = make("first", folder)
    setup = setup_for(task, steps=4, log_every=1, optimiser=OptimiserConfig(lr=1e-2))
    compiled = replace(setup, machine=replace(setup.machine, compile=True))
    (one, first), (other, second) = (train_on(task, some) for some in (setup, compiled))
    assert all(block._compiled_call_impl is not None for block in other.model.encoder.blocks)
    for plain, fast in zip(first, second, strict=True):
        if isinstance(plain, Step):
            torch.testing.assert_close(fast.loss, plain.loss, rtol=1e-4, atol=1e-5)
    for name, weight in weights_of(one.model).items():
        torch.testing.assert_close(weights_of(other.model)[name], weight, rtol=1e-3, atol=1e-5)
    print("the same")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
