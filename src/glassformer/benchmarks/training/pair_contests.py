"""Contests over pairs of sequences: our encoder-decoder against torch.nn.Transformer."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from glassformer.benchmarks.training.corpus import write_pairs
from glassformer.benchmarks.training.padding import (
    Chosen,
    bucketed_rows,
    pair_batches,
    sorted_rows,
)
from glassformer.benchmarks.training.product import Work, contest, followed, job_with, prepared
from glassformer.benchmarks.training.race import Bench, Contest, Peer, Side, fastest
from glassformer.benchmarks.training.rows import PairRows, lengths_of, pair_rows
from glassformer.benchmarks.training.torch_loop import TorchLoop, TorchSide
from glassformer.benchmarks.training.torch_models import PairPeer

SORTED = "nn.Transformer, sorted"


def fixed_pairs(bench: Bench) -> Iterator[Contest]:
    """Both sides with batches of one size."""
    budget = bench.sizes.pair_budgets[0]
    work = pair_work(bench, budget)
    rows = pair_rows(work.task)
    peers = {SORTED: Peer(partial(compiled_peer, work, rows, budget), bar=1.45, aim=2.0)}
    yield contest(f"{budget:,} tokens", work, rows.counts, peers)


def chosen_pairs(bench: Bench) -> Iterator[Contest]:
    """Ours with its default batch size, the peer with that which suits it best."""
    work = pair_work(bench, bench.sizes.pair_default)
    rows = pair_rows(work.task)
    budgets = bench.sizes.pair_budgets
    trials = {budget: partial(compiled_peer, work, rows, budget) for budget in budgets}
    best = fastest(trials, bench.seconds, bench.warm_ups)
    peers = {f"{SORTED}, {best:,} tokens": Peer(trials[best], bar=1.7, aim=2.5)}
    yield contest(f"{bench.sizes.pair_default:,} tokens", work, rows.counts, peers)


def dates(bench: Bench) -> Iterator[Contest]:
    """The dates of the demo."""
    small = bench.sizes.recipe
    instead = None if small is None else (pair_corpus(bench), small)
    work = followed("dates", bench.folder, bench.device, instead)
    rows = pair_rows(work.task)
    budget = work.setup.data.batch_tokens
    chosen = sorted_rows(sides_of(rows), budget)
    peers = {SORTED: Peer(partial(peer, work, rows, chosen), bar=1.1, aim=1.3)}
    yield contest(f"{budget:,} tokens", work, rows.counts, peers)


def pair_work(bench: Bench, budget: int) -> Work:
    """A run on random pairs."""
    sizes, path = bench.sizes, pair_corpus(bench)
    data = {
        "batch_tokens": budget,
        "tokenizer": {"kind": "words", "vocabulary": sizes.words + 8},
        "valid_share": 0.02,
        "test_share": 0.0,
    }
    stack = dict(sizes.pair_stack)
    values = {
        "model": {"encoder": stack, "decoder": stack},
        "data": data,
        "task": {"max_length": sizes.sentence.longest, "joint": True, "measure": "symbols"},
    }
    run = Path(f"{path}-{budget}")
    return prepared(job_with("encoder-decoder", "source"), path, run, values, bench.device)


def pair_corpus(bench: Bench) -> Path:
    """Random pairs, written once."""
    path = bench.folder / "pairs.tsv"
    if not path.exists():
        write_pairs(path, bench.sizes)
    return path


def compiled_peer(work: Work, rows: PairRows, budget: int) -> Side:
    """The peer with batches of so many positions, compiled for each of their few shapes."""
    return peer(work, rows, bucketed_rows(sides_of(rows), budget))


def sides_of(rows: PairRows) -> tuple[Int[np.ndarray, " rows"], ...]:
    """Lengths of the sources and of the decoder inputs."""
    return lengths_of(rows.sources), lengths_of(rows.inputs)


def peer(work: Work, rows: PairRows, chosen: Chosen) -> Side:
    """The peer with these batches."""
    job: Any = work.task
    model = PairPeer(job.model(), job.config.model, job.settings.label_smoothing)
    batches = pair_batches(rows, chosen, work.setup.machine.device)
    return TorchSide(TorchLoop(model, work.setup), batches)
