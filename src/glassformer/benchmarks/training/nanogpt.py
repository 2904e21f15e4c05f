"""Our language model against nanoGPT's, compiled, with its own optimiser; it comes as a file."""

from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from glassformer.benchmarks.peers import load_file
from glassformer.benchmarks.training.language_model import (
    BETAS,
    WEIGHT_DECAY,
    ContextTask,
    context_work,
)
from glassformer.benchmarks.training.padding import PaddedBatch
from glassformer.benchmarks.training.product import Work, contest
from glassformer.benchmarks.training.race import Bench, Contest, Peer, Side
from glassformer.benchmarks.training.sizes import Sizes
from glassformer.benchmarks.training.torch_loop import TorchLoop, TorchSide
from glassformer.errors import GlassformerError

FILE = "nanogpt.py"
LR = 6e-4


class NanoGPT(nn.Module):
    """The model, returning its loss alone."""

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        super().__init__()
        library: Any = load_file(folder / FILE)
        depth, heads, dim = sizes.gpt
        config = library.GPTConfig(
            block_size=sizes.context,
            vocab_size=sizes.vocabulary,
            n_layer=depth,
            n_head=heads,
            n_embd=dim,
            dropout=0.0,
            bias=False,
        )
        with redirect_stdout(StringIO()):  # it prints its size
            self.model = library.GPT(config)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """The mean cross-entropy of the next tokens."""
        loss: Tensor = self.model(ids, labels)[1]
        return loss

    def optimiser(self, device: torch.device) -> Optimizer:
        """AdamW as it sets it up."""
        with redirect_stdout(StringIO()):
            found: Optimizer = self.model.configure_optimizers(WEIGHT_DECAY, LR, BETAS, device.type)
        return found


def context_batches(task: ContextTask, device: torch.device) -> list[PaddedBatch]:
    """The same rows on the device."""
    sizes, found = task.sizes, []
    for at in range(0, len(task.rows), sizes.contexts):
        drawn = torch.from_numpy(task.rows[at : at + sizes.contexts]).to(device)
        inputs = drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()
        found.append(PaddedBatch(inputs, inputs[0].numel()))
    return found


def language_models(bench: Bench) -> Iterator[Contest]:
    """GPT-2's smallest model on full rows."""
    if bench.peers is None:
        raise GlassformerError(f"needs nanoGPT; give --peers the folder that holds {FILE}")
    sizes, work = bench.sizes, context_work(bench.sizes, bench.device)
    assert isinstance(work.task, ContextTask)
    counts = np.full(len(work.task.rows), sizes.context)
    make = partial(peer, work, work.task, bench.peers)
    peers = {"nanoGPT": Peer(make, bar=1.03, aim=1.15)}
    yield contest(f"{sizes.contexts} rows of {sizes.context:,} tokens", work, counts, peers)


def peer(work: Work, task: ContextTask, folder: Path) -> Side:
    """nanoGPT's model on the same rows."""
    device = work.setup.machine.device
    model = NanoGPT(folder, task.sizes)
    loop = TorchLoop(model, work.setup, optimiser=lambda _: model.optimiser(device))
    return TorchSide(loop, context_batches(task, device))
