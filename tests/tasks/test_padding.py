"""Padding, packing and neighbours change nothing: a text is read as if it were alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_jobs import everything, job_of, labelled

from glassformer.config import POOL_NAMES, STACK_NAMES

TEXTS = ["one", "two words", "a text of seven words in all", "", "the longest of them " * 3]
ROWS = labelled(*((text or "x", "ab"[n % 2]) for n, text in enumerate(TEXTS)))


def classifier(folder, kind, pool, form="padded"):
    encoder = {"kind": kind, "convolution": {"width": 3}}
    model = {"encoder": encoder, "pool": pool}
    data = {"form": form, "tokenizer": {"kind": "characters"}}
    return job_of("classify", folder, ROWS, model=model, data=data)


@pytest.mark.parametrize("pool", POOL_NAMES)
@pytest.mark.parametrize("kind", STACK_NAMES)
def test_a_text_alone_is_the_same_text_beside_longer_ones_padded_or_packed(tmp_path, kind, pool):
    job = classifier(tmp_path / "padded", kind, pool)
    packing = classifier(tmp_path / "packed", kind, pool, "packed")
    model = job.model().eval()
    with torch.no_grad():
        batch = everything(job)
        together = job.forward(model, batch)
        alone = [job.batch("train", np.array([row]), None) for row in range(len(ROWS))]
        one_by_one = torch.cat([job.forward(model, single) for single in alone])
        noise = torch.randint(4, job.inputs.tokenizer.size, batch.ids.shape)
        ids = torch.where(batch.layout.real, batch.ids, noise)
        filled = job.forward(model, replace(batch, ids=ids))
        packed_batch = everything(packing)
        packed = packing.forward(model, packed_batch)
    assert not torch.equal(ids, batch.ids)
    assert packed_batch.ids.ndim == 1
    assert packed_batch.tokens == batch.tokens == job.lengths("train").sum()
    assert together.std(0).min() > 1e-4, "the texts are told apart"
    for other in (one_by_one, filled, packed):
        assert torch.allclose(together, other, atol=1e-5)
