"""A picture of one recording: what was heard, and when."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from glassformer.data.audio.extractor import Features
from glassformer.data.audio.features import bin_of
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.explaining.hearing import hear
from glassformer.explaining.views.hearing_picture import HearingPicture, draw_hearing
from glassformer.tasks.shared.sound import FRAMES_A_SECOND
from glassformer.tasks.transcribe.choices import Written
from glassformer.tasks.transcribe.sounds import BLANK
from glassformer.tasks.transcribe.task import TranscribeTask
from glassformer.tasks.transcribe.transcripts import words_of

UNITS = {"mel": "Hz", "mfcc": "cepstra", "tone": "around the pitch"}
ROUND = (250, 500, 1000, 2000, 4000, 8000, 16_000)  # Hz, labelled in a spectrogram


def draw_picture(
    task: TranscribeTask, model: Any, sound: Features, written: Written, path: Path
) -> None:
    """Draw what a model heard in a recording, or in the first piece of it."""
    features = torch.from_numpy(sound.astype(np.float32))
    heard = hear(model, features, written.tokens, first=Tokenizer.start)
    vector = task.factor / FRAMES_A_SECOND  # seconds
    attention = None if heard.attention is None else heard.attention.numpy()
    spans = [(word.text, word.start, word.end) for word in written.words]
    if not spans and attention is not None:
        spans = attended(task.tokenizer, written.tokens, attention)
    tokens, by_ctc = sorted({*written.tokens}), task.settings.ctc_weight > 0
    seconds = len(sound) / FRAMES_A_SECOND
    picture = HearingPicture(
        features=sound.astype(np.float32),
        seconds=seconds,
        vector=vector,
        unit=UNITS[task.settings.features],
        ticks=ticks(task),
        words=[(text, start * vector, min(end * vector, seconds)) for text, start, end in spans],
        tokens=task.tokenizer.pieces(list(written.tokens)),
        names=["", *task.tokenizer.pieces(tokens)] if by_ctc else (),
        posteriors=heard.posteriors[:, [BLANK, *tokens]].numpy() if by_ctc else None,
        attention=attention,
    )
    draw_hearing(picture, path)


def attended(
    tokenizer: Tokenizer, tokens: Sequence[int], attention: Float[np.ndarray, "T S"]
) -> list[tuple[str, int, int]]:
    """Each word, from the earliest to the latest vector that a token of it attends to most."""
    most = attention.argmax(1)
    return [
        (word.text, int(most[list(word.tokens)].min()), int(most[list(word.tokens)].max()) + 1)
        for word in words_of(tokenizer, tokens)
    ]


def ticks(task: TranscribeTask) -> list[tuple[float, str]]:
    """Round frequencies, and where they lie among the mel bins; none for other features."""
    rate, bins = task.settings.rate, task.bins
    if task.settings.features != "mel":
        return []
    return [(bin_of(hertz, rate, bins) + 0.5, f"{hertz:,}") for hertz in ROUND if hertz <= rate / 2]
