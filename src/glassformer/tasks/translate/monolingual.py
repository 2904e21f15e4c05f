"""Texts of the target language alone, to be translated back; and whether a run can do that."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.ingest import open_rows
from glassformer.data.jagged import Jagged
from glassformer.data.rows import Row
from glassformer.data.samples import Samples
from glassformer.data.splits import content_key
from glassformer.errors import GlassformerError
from glassformer.tasks.extension import Companion
from glassformer.tasks.shared.text_data import TextSchema
from glassformer.tasks.translate.batch import pair_batch, right_answers
from glassformer.tasks.translate.checks.languages import LEARNED, like_the_sources

TEXTS = TextSchema()
LOOKED_AT, TOGETHER = 100, 16  # pairs that tell the direction of a run, and at a time
COMPARED = 200  # lines of a file whose language is looked at
CLEARLY = 0.9  # times the loss of one direction is less than that of the other


def refuse_same_direction(backward: Companion, samples: Samples) -> None:
    """Refuse a run that predicts the targets from the sources clearly better than the reverse."""
    some = list(islice(samples.of("train"), LOOKED_AT))
    if not some or backward.task.pair.tags:  # one of several languages needs a tag
        return
    sources, targets = ([str(sample[side]) for sample in some] for side in ("source", "target"))
    if nll(backward, sources, targets) < CLEARLY * nll(backward, targets, sources):
        raise GlassformerError(
            f"{backward.path}: translates from the source's language; name in task.backward a "
            f"run that translates from the target language to the source's"
        )


@torch.no_grad()
def nll(companion: Companion, sources: Sequence[str], targets: Sequence[str]) -> float:
    """The loss of a translator, in nats a token of the targets.

    A token that it does not know, as most of another language, costs as much as a guess.
    """
    job, found = companion.task, list[Tensor]()
    device = next(companion.model.parameters()).device
    for start in range(0, len(sources), TOGETHER):
        reads, writes = (
            Jagged.of(
                [ids[: job.settings.max_length] for ids in tokens.encode(texts[start:][:TOGETHER])]
            )
            for tokens, texts in ((job.pair.source, sources), (job.pair.target, targets))
        )
        rows = np.arange(len(reads.lengths))
        batch = pair_batch(job.pair.read(reads, None), writes, rows, packed=True)
        batch = batch.to(device)
        logits = job.forward(companion.model, batch).float()
        losses = F.cross_entropy(logits, batch.labels, reduction="none")
        unknown = batch.labels == job.pair.target.unknown
        found.append(losses.masked_fill(unknown, math.log(logits.shape[-1])))
    return float(torch.cat(found).mean())


def lines_to_write(
    config: Config, samples: Samples, skip: Callable[[str, str], None]
) -> Iterator[tuple[str, str]]:
    """Where each line stands, and the line; what is held out to be scored on is left out."""
    held_out = {
        content_key(target)
        for split in ("valid", "test")
        for sample in samples.of(split)
        for target in right_answers(sample)
    }
    step = 1 + len(samples.rows("train")) // LEARNED
    pairs = [(one["source"], one["target"]) for one in islice(samples.of("train"), 0, None, step)]
    opened = [open_texts(name, config, pairs) for name in config.task.monolingual]
    for row, text in chain.from_iterable(opened):
        if not text:
            skip("no text", row.where)
        elif content_key(text) in held_out:
            skip("a target that is held out", row.where)
        else:
            yield row.where, text


def open_texts(
    name: str, config: Config, pairs: Sequence[tuple[str, str]]
) -> Iterator[tuple[Row, str]]:
    """The rows of a file and their texts; refused where they are like the sources of some pairs."""
    settings = DataConfig(encoding=config.data.encoding)
    rows, columns = open_rows(name, settings, TEXTS, "train")
    texts = ((row, str(row[columns["text"]]).strip()) for row in rows)
    head = list(islice(texts, COMPARED))
    if like_the_sources([text for _, text in head], pairs):
        raise GlassformerError(
            f"{name}: its lines are more like the sources than the targets; name texts of the "
            f"target language in task.monolingual"
        )
    return chain(head, texts)
