"""Target-language texts for back-translation, and whether a run can translate them."""

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

TEXTS = TextSchema()
LOOKED_AT, TOGETHER = 100, 16  # pairs that show the direction of a run, and pairs per batch
CLEARLY = 0.9  # a loss below this share of the other direction's is clearly lower


def refuse_same_direction(backward: Companion, samples: Samples) -> None:
    """Refuse a run that predicts the targets from the sources clearly better than the reverse."""
    some = list(islice(samples.of("train"), LOOKED_AT))
    if not some or backward.task.pair.tags:  # several languages need a tag
        return
    sources, targets = ([str(sample[side]) for sample in some] for side in ("source", "target"))
    if nll(backward, sources, targets) < CLEARLY * nll(backward, targets, sources):
        raise GlassformerError(
            f"{backward.path}: translates from the source language; set task.backward to a "
            f"run that translates from the target language to the source language"
        )


@torch.no_grad()
def nll(companion: Companion, sources: Sequence[str], targets: Sequence[str]) -> float:
    """The loss of a translator, in nats per target token.

    An unknown token, as most are in another language, costs as much as a uniform guess.
    """
    task, found = companion.task, list[Tensor]()
    device = next(companion.model.parameters()).device
    for start in range(0, len(sources), TOGETHER):
        reads, writes = (
            Jagged.of(
                [ids[: task.settings.max_length] for ids in tokens.encode(texts[start:][:TOGETHER])]
            )
            for tokens, texts in ((task.pair.source, sources), (task.pair.target, targets))
        )
        rows = np.arange(len(reads.lengths))
        batch = pair_batch(task.pair.read(reads, None), writes, rows, packed=True)
        batch = batch.to(device)
        logits = task.forward(companion.model, batch).float()
        losses = F.cross_entropy(logits, batch.labels, reduction="none")
        unknown = batch.labels == task.pair.target.unknown
        found.append(losses.masked_fill(unknown, math.log(logits.shape[-1])))
    return float(torch.cat(found).mean())


def lines_to_write(
    config: Config, samples: Samples, skip: Callable[[str, str], None]
) -> Iterator[tuple[str, str]]:
    """The location of each line, and the line; targets of valid and test are left out."""
    held_out = {
        content_key(target)
        for split in ("valid", "test")
        for sample in samples.of(split)
        for target in right_answers(sample)
    }
    opened = [open_texts(name, config) for name in config.task.monolingual]
    for row, text in chain.from_iterable(opened):
        if not text:
            skip("no text", row.where)
        elif content_key(text) in held_out:
            skip("a target of valid or test", row.where)
        else:
            yield row.where, text


def open_texts(name: str, config: Config) -> Iterator[tuple[Row, str]]:
    """The rows of a file and their texts."""
    rows, columns = open_rows(name, DataConfig(encoding=config.data.encoding), TEXTS, "train")
    return ((row, str(row[columns["text"]]).strip()) for row in rows)
