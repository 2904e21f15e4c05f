"""The baseline: an interpolated n-gram model of the same tokens."""

import math
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.models.incremental.whole import Score
from glassformer.tasks.generate.answers import Likelihoods
from glassformer.tasks.generate.stream import Numbers, Stream
from glassformer.tasks.generate.task import GenerateTask
from glassformer.tasks.reporter import Baseline
from glassformer.tasks.shared.losses import IGNORED
from glassformer.tasks.shared.ngram_model import NgramModel

ORDERS = (3, 5, 7, 9)
MOST_TOKENS = 10_000_000  # that it learns from
CHUNK = 1 << 20  # places scored together
SECONDS = 5e-7  # per token and order
FILE = "baseline.safetensors"
KEPT = 256 * 2**20  # bytes, at most


def ngram_baseline(
    task: GenerateTask, split: str, seconds: float = math.inf
) -> Baseline[Likelihoods]:
    """The model of the order that is best on the validation texts, and its answers.

    Args:
        seconds: In which no longer orders are tried than fit; the shortest always is.
    """
    began, tried_orders = time.perf_counter(), list[int]()
    texts, all_of_them = training_texts(task)
    chosen_on = "valid" if len(task.lengths("valid")) else split
    best, order, model = math.inf, 0, None
    for longest in ORDERS:
        spent = time.perf_counter() - began
        if tried_orders and spent * (1 + longest / sum(tried_orders)) > seconds:
            break
        tried_orders.append(longest)
        tried = NgramModel.learn(
            texts,
            vocab_size=task.tokenizer.size,
            order=longest,
            ends=(Tokenizer.start, Tokenizer.end),
        )
        bits = likelihoods(tried, task, chosen_on).values()["bits_per_byte"]
        if bits < best:
            best, order, model = bits, longest, tried
    assert model is not None
    notes = [] if all_of_them else [f"The baseline learned from {MOST_TOKENS:,} tokens."]
    if tried_orders[-1] != ORDERS[-1]:
        notes.append(f"The time budget left no time for n-grams longer than {tried_orders[-1]}.")
    save = None
    if model.bytes <= KEPT:
        save = partial(keep, model)
    else:
        notes.append(f"The baseline is not kept: it takes {model.bytes / 2**20:,.0f} MiB.")
    return Baseline("n-gram", f"order {order}", likelihoods(model, task, split), notes, save)


def keep(model: NgramModel, folder: Path) -> None:
    """Write it into a run folder."""
    model.save(folder / FILE)


def kept_ngrams(folder: Path) -> NgramModel | None:
    """The baseline in a run folder; None if there is none."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        return NgramModel.load(path)
    except (OSError, ValueError) as error:
        raise GlassformerError(
            f"{path}: not the baseline of a run ({error}); copy the run again"
        ) from None


def baseline_seconds(task: GenerateTask) -> float:
    """About how long it takes."""
    tokens = min(MOST_TOKENS, task.stream("train").size)
    return SECONDS * tokens * sum(ORDERS)


def training_texts(task: GenerateTask) -> tuple[list[Numbers], bool]:
    """The tokens of the training texts, up to a number, and whether these are all."""
    assert task.samples is not None
    texts: list[Numbers] = []
    count = 0
    for row in task.samples.rows("train").tolist():
        if count >= MOST_TOKENS:
            return texts, False
        texts.append(task.tokens[row][: MOST_TOKENS - count].astype(np.int64))
        count += len(texts[-1])
    return texts, True


def likelihoods(model: NgramModel, task: GenerateTask, split: str) -> Likelihoods:
    """How likely it finds the texts of a split."""
    stream, sliding = task.stream(split), task.sliding(split)
    nll, labels = [], []
    for first in range(0, stream.size, CHUNK):
        places = np.arange(first, min(first + CHUNK, stream.size))
        known, before, sizes = contexts(stream, places, model.order)
        labels.append(known)
        next_token = torch.from_numpy(np.maximum(known, 0))
        found = model.likelihoods(torch.from_numpy(before), torch.from_numpy(sizes), next_token)
        nll.append(-found.numpy().astype(np.float64))
    every, losses = np.concatenate(labels), np.concatenate(nll)
    counts = every != IGNORED
    where = sliding.documents[counts], losses[counts], every[counts], sliding.bytes[counts]
    return task.likelihoods(*where)


def next_by_ngrams(model: NgramModel) -> Score:
    """The log-probabilities of what follows prompts; their start token is known to the model."""

    def score(tokens: Tensor, layout: Layout, rows: Tensor) -> Tensor:
        return model(tokens[:, 1:], layout.lengths - 1)

    return score


def contexts(stream: Stream, places: Numbers, longest: int) -> tuple[Numbers, np.ndarray, Numbers]:
    """What comes next at each place, and up to so many tokens before it, with their number."""
    labels = stream.take(places, np.zeros(len(places), dtype=bool)).labels
    document = np.searchsorted(stream.ends, places, side="right")
    place = places - stream.starts[document]
    sizes = np.minimum(place, longest)
    at = (stream.first[document] + place - sizes)[:, None] + np.arange(longest)
    return labels, stream.tokens.take(at).astype(np.int64), sizes
