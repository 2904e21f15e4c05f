"""Batches filled up to a fixed shape, and taken twice: what fills them counts nothing."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_jobs import everything, job_of
from torch.utils import _pytree as pytree

from glassformer.config import RegulariserConfig, TrainConfig
from glassformer.tasks.task import ShapedBatch
from glassformer.training.loader import common_shape, one_epoch
from glassformer.training.machine import Machine
from glassformer.training.objective import objective, reseeding
from glassformer.training.setup import TrainSetup

WORDS = [
    "a",
    "bee",
    "saw",
    "the",
    "old",
    "sea",
    "under",
    "one",
    "red",
    "boat",
    "and",
    "went",
    "home",
    "again",
]
TEXTS = [" ".join(WORDS[n % 5 : n % 5 + 2 + n % 7]) for n in range(12)]
PACKED = {"data": {"form": "packed", "tokenizer": {"kind": "words"}}}

JOBS = {
    "one label": (
        "classify",
        [{"text": text, "label": "xyz"[n % 3]} for n, text in enumerate(TEXTS)],
        PACKED | {"task": {"class_weights": True, "label_smoothing": 0.1}},
    ),
    "several labels": (
        "classify",
        [{"text": text, "label": ["x", "y"][: n % 3]} for n, text in enumerate(TEXTS)],
        PACKED | {"task": {"class_weights": True}},
    ),
    "images": (
        "recognise",
        [
            {"pixels": np.full((8, 6), 20 * n, np.uint8), "label": "xyz"[n % 3]}
            for n in range(len(TEXTS))
        ],
        {"task": {"patch": 2, "augment": {"mixup": 0.2}, "class_weights": True}},
    ),
    "gaps": ("pretrain", [{"text": text} for text in TEXTS], PACKED),
    "pairs": (
        "translate",
        [{"source": text, "target": text[::-1]} for text in TEXTS],
        PACKED
        | {
            "model": {"decoder": {"dim": 12, "depth": 1, "dropout": 0.0, "attention": {"heads": 3}}}
        },
    ),
}
CPU = Machine(torch.device("cpu"), torch.float32, False)
every_job = pytest.mark.parametrize("name", JOBS)


@pytest.fixture
def job(name, tmp_path):
    kind, rows, settings = JOBS[name]
    return job_of(kind, tmp_path / "job", rows, **settings)


def larger(sizes):
    return tuple(size and size + more for size, more in zip(sizes, (3, 2, 7, 5, 4), strict=False))


def learned(job, model, batch):
    """The loss of a batch, how many things it is of, and the gradients."""
    model.zero_grad()
    loss = job.loss(job.forward(model, batch), batch)
    loss.total.backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return loss.total.detach(), loss.count, gradients


@every_job
def test_what_fills_a_batch_teaches_nothing(job):
    model, batch = job.model(), everything(job, epoch=1)
    assert isinstance(batch, ShapedBatch)
    filled = batch.filled(larger(batch.sizes))
    total, count, gradients = learned(job, model, batch)
    as_filled = learned(job, model, filled)
    torch.testing.assert_close(as_filled, (total, count, gradients), rtol=1e-4, atol=1e-5)
    outputs = [job.forward(model, some) for some in (batch, filled)]
    noise = [torch.randn_like(output) for output in outputs]
    noise[1][: len(noise[0])] = noise[0]
    apart, apart_filled = (
        job.divergence(output, output + more, some)
        for output, more, some in zip(outputs, noise, (batch, filled), strict=True)
    )
    torch.testing.assert_close(apart_filled.total, apart.total, rtol=1e-4, atol=1e-5)
    assert apart_filled.count == apart.count


@every_job
def test_batches_of_other_rows_are_filled_to_one_shape(job):
    batches = [job.batch("train", np.array(rows), 0) for rows in ([1, 2, 3], [0, 4, 5, 6, 7])]
    shape = tuple(np.max([batch.sizes for batch in batches], axis=0).tolist())
    first, second = (batch.filled(shape) for batch in batches)
    one, other = pytree.tree_leaves(first), pytree.tree_leaves(second)
    assert [x is None or x.shape for x in one] == [x is None or x.shape for x in other]
    assert any(x is not None and not x.equal(y) for x, y in zip(one, other, strict=True))


@every_job
def test_taken_twice_every_row_is_answered_twice(job):
    model, batch = job.model(), everything(job, epoch=1).filled(larger(everything(job).sizes))
    once, twice = (job.forward(model, some) for some in (batch, batch.twice()))
    torch.testing.assert_close(twice, torch.cat([once, once]), rtol=1e-4, atol=1e-5)
    loss, both = job.loss(once, batch), job.loss(twice, batch.twice())
    torch.testing.assert_close((both.total, both.count), (2 * loss.total, 2 * loss.count))


@every_job
def test_r_drop_is_one_pass_over_two_copies_that_drop_differently(name, tmp_path):
    kind, rows, settings = JOBS[name]
    settings = settings | {"model": settings.get("model", {}) | {"encoder": {"dropout": 0.5}}}
    job = job_of(kind, tmp_path / "job", rows, **settings)
    model, batch, calls = job.model().train(), everything(job, epoch=1), []
    model.register_forward_hook(lambda *_: calls.append(1))
    total, loss = objective(model, job, batch, RegulariserConfig(r_drop=3.0), reseeding(7))
    assert len(calls) == 1
    torch.manual_seed(7)
    first, second = job.forward(model, batch.twice()).chunk(2)
    assert not first.equal(second)
    apart = job.divergence(first, second, batch).total + job.divergence(second, first, batch).total
    mean = (job.loss(first, batch).total + job.loss(second, batch).total) / 2
    torch.testing.assert_close(total, mean + 3.0 * apart / 2)
    torch.testing.assert_close((loss.total, loss.count), (mean, job.loss(first, batch).count))


def test_padded_batches_are_not_filled(tmp_path):
    kind, rows, settings = JOBS["pairs"]
    job = job_of(kind, tmp_path / "job", rows, **settings | {"data": {"form": "padded"}})
    assert everything(job).sizes == ()


@pytest.mark.parametrize(("kind", "mixes"), [("attention", True), ("gru", False)])
def test_rows_of_all_lengths_are_mixed_where_no_stack_pads_them(kind, mixes, tmp_path):
    name, rows, settings = JOBS["gaps"]
    settings = settings | {"model": {"encoder": {"kind": kind}}}
    assert job_of(name, tmp_path / "job", rows, **settings).mixes_lengths is mixes
    padded = settings | {"data": {"form": "padded"}}
    assert not job_of(name, tmp_path / "padded", rows, **padded).mixes_lengths


def spreads(job):
    """How far apart the lengths in each batch are."""
    setup = TrainSetup(TrainConfig(), replace(job.config.data, batch_tokens=40), CPU, seed=3)
    lengths = job.lengths("train")
    return [np.ptp(lengths[rows]) for rows in one_epoch(job, setup, 0)]


def test_batches_have_rows_of_similar_length_unless_told_otherwise(tmp_path):
    kind, rows, settings = JOBS["gaps"]
    similar = job_of(kind, tmp_path / "similar", rows, **settings)
    loose = settings | {"data": settings["data"] | {"by_length": False}}
    assert max(spreads(similar)) < max(spreads(job_of(kind, tmp_path / "loose", rows, **loose)))


def test_only_a_size_that_varies_is_given_slack(tmp_path):
    data = {"batch_tokens": 40, "tokenizer": {"kind": "characters"}}
    rows = [{"text": text * 9} for text in TEXTS]
    job = job_of("generate", tmp_path, rows, data=data, task={"max_length": 20})
    setup = TrainSetup(TrainConfig(steps=1), job.config.data, CPU, seed=0)
    pieces, longest, tokens = common_shape(job, setup)
    assert (longest, tokens) == (20, 40)  # two windows
    assert pieces % 64 == 0  # they hold more or fewer texts
