"""The contest of language models: ours against nanoGPT's."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from glassformer.benchmarks.training.language_model import ContextTask, context_work
from glassformer.benchmarks.training.nanogpt import FILE, NanoGPT, context_batches
from glassformer.benchmarks.training.product import Work, contest
from glassformer.benchmarks.training.race import Bench, Contest, Peer, Side
from glassformer.benchmarks.training.torch_loop import TorchLoop, TorchSide
from glassformer.errors import GlassformerError


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
