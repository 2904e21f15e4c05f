"""Small jobs over rows that a test writes down, without a run around them."""

import itertools
import json

import numpy as np
import pytest
import torch

from glassformer.config.run import config_of
from glassformer.config.values import merge_values
from glassformer.data.batches import epoch_batches
from glassformer.data.ingest import ingest
from glassformer.tasks import JOBS

SMALL = {
    "model": {"encoder": {"dim": 12, "depth": 1, "dropout": 0.0, "attention": {"heads": 3}}},
    "data": {"valid_share": 0.0, "test_share": 0.0},
}


def job_of(name, folder, rows, origin=None, **settings):
    """A job over these rows, which are for training unless they say otherwise."""
    folder.mkdir(exist_ok=True)
    source = folder / "rows.jsonl"
    rows = [with_file(row, folder / f"{number}.png") for number, row in enumerate(rows)]
    source.write_text("\n".join(json.dumps({"split": "train"} | row) for row in rows))
    job, kind = JOBS[name], JOBS[name].task
    values = merge_values(job.defaults(False), merge_values(SMALL, settings))
    values = merge_values(values, {"job": name, "data": {"files": [str(source)]}})
    config = config_of(values, job.settings)
    samples, _ = ingest(config.data, job.schema, folder / "data", seed=config.seed)
    config = kind.prepare(config, samples, folder, origin)
    kind(config, folder, None).index(samples, folder / "data")
    return kind(config, folder, folder / "data")


def with_file(row, path):
    """The row, with its pixels in a file."""
    if "pixels" not in row:
        return row
    pytest.importorskip("PIL.Image").fromarray(row["pixels"]).save(path)
    return {"path": path.name, **{key: row[key] for key in row if key != "pixels"}}


def labelled(*pairs, split="train"):
    return [{"text": text, "label": label, "split": split} for text, label in pairs]


def everything(job, part="train", epoch=None):
    """One batch with all rows of a part."""
    return job.batch(part, np.arange(len(job.lengths(part))), epoch)


def read_by(job, batch):
    """What each row of a padded batch says, token by token, without padding."""
    lengths = batch.layout.lengths.tolist()
    rows = [row[:length] for row, length in zip(batch.ids.numpy(), lengths, strict=True)]
    return [job.inputs.tokenizer.pieces(row) for row in rows]


def taught(job, steps, rate=1e-2):
    """A model after so many plain steps."""
    torch.manual_seed(1)
    model = job.model().train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    for step, (epoch, rows) in zip(range(steps), _endless(job), strict=False):
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 10)
        batch = job.batch("train", rows, epoch)
        loss = job.loss(job.forward(model, batch), batch)
        (loss.total / loss.count).backward()
        optimiser.step()
        optimiser.zero_grad()
    return model.eval()


def _endless(job):
    lengths, budget = job.lengths("train"), job.config.data.batch_tokens
    for epoch in itertools.count():
        for rows in epoch_batches(lengths, budget, padded=job.padded, seed=0, epoch=epoch):
            yield epoch, rows
