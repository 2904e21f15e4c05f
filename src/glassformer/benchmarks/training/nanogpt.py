"""nanoGPT's model, compiled, with its own optimiser; it comes as a file, and is no part of ours."""

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from glassformer.benchmarks.peers import load_file
from glassformer.benchmarks.training.language_model import BETAS, WEIGHT_DECAY, ContextTask
from glassformer.benchmarks.training.padding import PaddedBatch
from glassformer.benchmarks.training.sizes import Sizes

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
