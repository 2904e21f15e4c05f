"""Streams: trained for by chunks, heard as they arrive, and written while they do."""

import pytest
import torch
from small_jobs import everything, job_of
from small_recordings import SETTINGS, record

from glassformer.config.values import merge_values
from glassformer.core.masks import chunks
from glassformer.errors import GlassformerError

STREAM = {"stream": {"chunk": 0.2, "left": 0.5}, "normalise": "all", "ctc_weight": 1.0}


def task_of(folder, texts=("ad", "bead"), **settings):
    rows = record(folder / "clips", texts)
    values = merge_values(merge_values(SETTINGS, {"task": STREAM}), settings)
    return job_of("transcribe", folder / "run", rows, **values)


@torch.no_grad()
def test_a_model_that_is_trained_for_streams_does_not_hear_beyond_a_chunk(tmp_path):
    task = task_of(tmp_path, ["decade decade"])
    model, batch = task.model().eval(), everything(task)
    assert model.mask == chunks(5, 3)
    before = task.forward(model, batch).frames
    batch.features[:, 60:] = 0.0  # from the sixteenth vector on
    same = (task.forward(model, batch).frames == before).all(-1)[0]
    assert same[:15].all()
    assert not same[15:].any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": {"ctc_weight": 0.0}}, "task.stream writes by CTC"),
        ({"task": {"normalise": "recording"}}, r"with task.stream, set task.normalise=all"),
        ({"task": {"stream": {"chunk": 61.0}}}, r"chunk must lie in 0 ... 60 seconds, got 61"),
        ({"task": {"stream": {"left": -1.0}}}, r"left must lie in 0 ... 60 seconds, got -1"),
        ({"model": {"encoder": {"kind": "lstm"}}}, "encoder of kind lstm with softmax attention"),
        ({"model": {"encoder": {"position": "learned"}}}, "learned positions end somewhere"),
        (
            {
                "model": {
                    "encoder": {"block": "transformer", "position": "none"}
                    | {"attention": {"kind": "linear"}}
                }
            },
            "of kind attention with linear attention cannot read a stream",
        ),
    ],
)
def test_what_cannot_read_streams_is_not_trained_for_them(tmp_path, settings, message):
    with pytest.raises(GlassformerError, match=message):
        task_of(tmp_path, **settings)
