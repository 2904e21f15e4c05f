"""What a model must be able to hear: recordings up to a length, or streams chunk by chunk."""

from dataclasses import replace

import numpy as np

from glassformer.config import ModelConfig, require
from glassformer.core.masks import Mask, chunks, everything
from glassformer.data.audio.features import WINDOW
from glassformer.tasks.shared.sound import FRAMES_A_SECOND, reaching_sounds
from glassformer.tasks.transcribe.settings import StreamConfig, TranscribeConfig

WHOLE = 0.5  # the share of batches that hear whole recordings, where chunks are varied
SIZES = (0.5, 2.0)  # of the others, as a share of the usual chunk


def hearing(model: ModelConfig, task: TranscribeConfig) -> ModelConfig:
    """The model with positions for the longest recordings; refused if it cannot learn the task."""
    model = reaching_sounds(model, task)
    check_stream(model, task)
    reads = model.encoder
    blocks = reads.depth if reads is not None and reads.kind == "attention" else 0
    require(
        not task.intermediate or blocks > 1,
        "task.intermediate needs an encoder of kind attention with 2 blocks or more; leave it out",
    )
    return model if task.ctc_weight < 1 else replace(model, decoder=None)


def chunk_mask(stream: StreamConfig, factor: int) -> Mask:
    """The mask of an encoder that reads a stream; everything if there is none.

    Args:
        factor: Frames that become one vector.

    >>> chunk_mask(StreamConfig(chunk=0.4, left=1.0), factor=4)
    chunks(10, 3)
    """
    if not stream.chunk:
        return everything
    size = max(1, round(stream.chunk * FRAMES_A_SECOND / factor))
    left = -(-round(stream.left * FRAMES_A_SECOND / factor) // size)
    return chunks(size, left)


def whole_mask(stream: StreamConfig, factor: int) -> Mask:
    """The mask of the encoder where it reads whole recordings."""
    return everything if stream.varied else chunk_mask(stream, factor)


def drawn_mask(stream: StreamConfig, factor: int, rng: np.random.Generator) -> Mask:
    """The mask of the encoder for one batch of training."""
    if not stream.varied or rng.random() < WHOLE:
        return whole_mask(stream, factor)
    size = stream.chunk * rng.uniform(*SIZES)
    return chunk_mask(replace(stream, chunk=size), factor)


def check_stream(model: ModelConfig, task: TranscribeConfig) -> None:
    """Refuse to train for streams what cannot read them."""
    reads = model.encoder
    if not task.stream.chunk or reads is None:
        return
    require(
        task.ctc_weight > 0,
        "task.stream writes by CTC, which task.ctc_weight = 0 leaves out; raise that one",
    )
    require(
        task.normalise == "all",
        "a stream has no mean and variance before it ends; with task.stream, set "
        "task.normalise=all",
    )
    require(
        task.features != "tone",
        "the loudest pitch of a stream is not known before it ends; with task.stream, leave out "
        "task.features=tone",
    )
    require(
        task.window == WINDOW,
        f"a stream is heard {WINDOW} ms at a time; with task.stream, leave out task.window",
    )
    require(
        reads.kind == "attention" and reads.attention.kind == "softmax",
        f"an encoder of kind {reads.kind} with {reads.attention.kind} attention cannot read a "
        f"stream by chunks; use model.encoder.kind=attention and "
        f"model.encoder.attention.kind=softmax",
    )
    require(
        reads.position.kind != "learned",
        "learned positions end somewhere, but a stream does not; use model.encoder.position=rotary",
    )
