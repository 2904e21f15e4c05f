"""Contests over texts: our encoders against torch.nn.TransformerEncoder, padded, as is and sorted.

All sides learn from about as many texts in a step.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from glassformer.benchmarks.training.corpus import write_reviews
from glassformer.benchmarks.training.padding import (
    Chosen,
    PaddedBatch,
    bucketed_rows,
    gap_batches,
    shuffled_rows,
    sorted_rows,
    text_batches,
)
from glassformer.benchmarks.training.product import Work, contest, followed, job_with, prepared
from glassformer.benchmarks.training.race import Bench, Contest, Peer, Side
from glassformer.benchmarks.training.rows import TextRows, text_rows
from glassformer.benchmarks.training.torch_loop import TorchLoop, TorchSide
from glassformer.benchmarks.training.torch_models import EncoderPeer, GapPeer, TextPeer

PADDED = "nn.TransformerEncoder, padded"
SORTED = "nn.TransformerEncoder, sorted"


def reviews(bench: Bench) -> Iterator[Contest]:
    """Classification of texts as long as film reviews."""
    work = text_work(bench, "classifier", bench.sizes.text_budget)
    yield text_contest(work, bench, text_rows(work.task))


def gaps(bench: Bench) -> Iterator[Contest]:
    """Filling gaps in the same texts, before classification."""
    work = text_work(bench, "masked language model", bench.sizes.gap_budget)
    yield text_contest(work, bench, text_rows(work.task))


def languages(bench: Bench) -> Iterator[Contest]:
    """The languages of the demo; the peer has our frontend and pool, and trains in its own."""
    small = bench.sizes.recipe
    instead = None if small is None else (text_corpus(bench), small)
    work = followed("languages", bench.folder, bench.device, instead)
    rows = text_rows(work.task)
    budget = work.setup.data.batch_tokens
    chosen = sorted_rows([rows.counts], budget)
    make = partial(peer, work, rows, chosen, EncoderPeer)
    peers = {SORTED: Peer(make, bar=1.1, aim=1.3)}
    yield contest(f"{budget:,} tokens", work, rows.counts, peers)


def text_work(bench: Bench, model: str, budget: int) -> Work:
    """A run on random texts."""
    sizes, path = bench.sizes, text_corpus(bench)
    values = {
        "model": {"encoder": dict(sizes.text_stack)},
        "data": {
            "tokenizer": {"kind": "words", "vocabulary": sizes.words + 8},
            "batch_tokens": budget,
            "valid_share": 0.02,
            "test_share": 0.0,
        },
        "task": {"max_length": sizes.cut},
    }
    run = Path(f"{path}-{model.replace(' ', '-')}")
    return prepared(job_with(model, "text"), path, run, values, bench.device)


def text_corpus(bench: Bench) -> Path:
    """Random texts, written once."""
    path = bench.folder / "reviews.csv"
    if not path.exists():
        write_reviews(path, bench.sizes)
    return path


def text_contest(work: Work, bench: Bench, rows: TextRows) -> Contest:
    """Ours against the peer with texts as they come, and sorted by length."""
    budget = work.setup.data.batch_tokens
    per_batch = max(1, round(budget / float(rows.counts.mean())))
    shuffled = shuffled_rows(len(rows.counts), per_batch, bench.sizes.cut)
    by_length = bucketed_rows([rows.counts], budget)
    peers = {
        PADDED: Peer(partial(peer, work, rows, shuffled), bar=1.5, aim=2.5),
        SORTED: Peer(partial(peer, work, rows, by_length), bar=1.15, aim=2.5),
    }
    return contest(f"{budget:,} tokens", work, rows.counts, peers)


def peer(
    work: Work,
    rows: TextRows,
    chosen: Chosen,
    kind: type[TextPeer | EncoderPeer] = TextPeer,
) -> Side:
    """The peer with these batches."""
    job: Any = work.task
    settings, encoder = job.settings, job.config.model.encoder
    device = work.setup.machine.device
    model: nn.Module
    batches: list[PaddedBatch]
    if rows.labels is not None:
        model = kind(job.model(), encoder, settings.label_smoothing)
        batches = text_batches(rows, chosen, device)
    else:
        model = GapPeer(job.model(), encoder)
        batches = gap_batches(rows, chosen, settings.masked, device)
    return TorchSide(TorchLoop(model, work.setup), batches)
