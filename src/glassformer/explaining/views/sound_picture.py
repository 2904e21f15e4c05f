"""What the picture of a recording draws: words, spectrogram, influence, CTC and attention."""

from collections.abc import Sequence

import numpy as np

from glassformer.explaining.parts import Sound
from glassformer.explaining.record import ExplanationRecord
from glassformer.explaining.views.hearing_picture import HearingPicture
from glassformer.explaining.views.neighbour_picture import NEAREST, short_place
from glassformer.explaining.views.selection import Selection
from glassformer.explaining.views.wording import note_of, percent, rounded, visible

MOST_LABELS = 6


def heard(explanation: ExplanationRecord, sound: Sound, chosen: Selection | None) -> HearingPicture:
    """What the picture of a recording draws."""
    tokens: Sequence[str] = ()
    attention = None
    if chosen is not None and chosen.group.crosses:
        tokens, attention = chosen.attention.queries, chosen.attention.weights[0].numpy()
    influence, targets = None, []
    if len(sound.stretches) == explanation.influence.shape[1]:
        influence = explanation.influence.float().numpy()
        targets = [visible(target.text) for target in explanation.targets]
    return HearingPicture(
        features=sound.spectrogram.float().numpy(),
        seconds=sound.seconds,
        vector=sound.vector,
        unit=sound.unit,
        ticks=sound.ticks,
        words=[(one.text, *one.time) for one in explanation.targets if one.time is not None],
        tokens=tokens,
        names=sound.symbols,
        posteriors=None if sound.posteriors is None else np.asarray(sound.posteriors.float()),
        attention=attention,
        influence=influence,
        targets=targets,
        signed=explanation.signed,
        stretches=sound.stretches,
        frame=sound.frame,
        notes=[
            *_labels(explanation),
            note_of(explanation.method, explanation.verdict),
            *explanation.notes,
            *_nearest(explanation),
        ],
    )


def _labels(explanation: ExplanationRecord) -> list[str]:
    """The likeliest labels of a recording, in a line."""
    likeliest = () if explanation.written else explanation.targets[:MOST_LABELS]
    said = [f"{visible(one.text)} {percent(one.probability)}" for one in likeliest]
    return [", ".join(said)] if said else []


def _nearest(explanation: ExplanationRecord) -> list[str]:
    """The nearest training rows, a line each."""
    lines = [
        f"{rounded(max(one.similarity, 0.0), 2)}  {one.target}  ({short_place(one)})"
        for one in explanation.neighbours
    ]
    return [f"{NEAREST}:", *lines] if lines else []
