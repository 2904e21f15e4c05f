"""The numbers of an explanation, packed for a page: bytes as base64, so that the file stays small.

    influence   32-bit numbers, so that the page rounds as the other views do
    attention   for each query its strongest weights: the key, and 16 bits on a scale per query
    image       a byte for each channel of each pixel, RGB
    sound       16-bit samples as a WAV file that every browser plays; a byte for each value of the
                spectrogram and of CTC

`page/data.js` unpacks them.
"""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from glassformer.data.audio.clip import as_wav
from glassformer.explaining.parts import AttentionMap, Image, Sound
from glassformer.explaining.views.selection import Group, Selection, grouped, select

MOST_BYTES = 3_000_000  # of all attention together
BYTES = 4  # of a weight and its place
FEWEST = 4  # weights kept for a query, however many queries there are
MOST_SECONDS = 120.0  # of a sound
LIKELY = 0.05  # symbols that CTC finds likelier than this somewhere are drawn
MOST_SYMBOLS = 48


def packed(array: np.ndarray) -> str:
    """An array as base64, in little-endian order."""
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode("ascii")


def packed_influence(influence: Float[Tensor, "targets pieces"]) -> str:
    """One row after the other."""
    return packed(influence.detach().float().cpu().nan_to_num(0.0, 0.0, 0.0).numpy())


def packed_attention(
    maps: Sequence[AttentionMap], sound: Sound | None = None, selection: Selection | None = None
) -> dict[str, Any]:
    """All maps, grouped by what they connect, and which of them are shown first.

    `strongest` weights are kept for each query; None if all are that 16 bits tell from zero.
    """
    selection = selection or select(maps)
    if selection is None:
        return {"groups": [], "strongest": None}
    rows = sum(one.weights.shape[0] * one.weights.shape[1] for one in maps)
    strongest = max(FEWEST, MOST_BYTES // (BYTES * max(rows, 1)))
    groups = grouped(maps)
    layers = selection.group.layers
    return {
        "groups": [_packed_group(group, sound, strongest) for group in groups],
        "strongest": strongest if strongest < max(len(one.keys) for one in maps) else None,
        "group": [group.layers for group in groups].index(layers),
        "layer": None if selection.layer is None else list(layers).index(selection.layer),
        "head": selection.head,
    }


def _packed_group(group: Group, sound: Sound | None, strongest: int) -> dict[str, Any]:
    first = next(iter(group.layers.values()))
    return {
        "title": group.title,
        "queries": list(first.queries),
        "keys": list(first.keys),
        "timed": sound is not None and _is_over_time(len(first.keys), sound),
        "layers": [
            {"number": number, **_packed_map(one, strongest)}
            for number, one in group.layers.items()
        ],
    }


def _packed_map(one: AttentionMap, strongest: int) -> dict[str, Any]:
    weights = one.weights.detach().float().cpu().nan_to_num(0.0)  # (H, T, S)
    top, keys = weights.topk(min(strongest, weights.shape[-1]), dim=-1)
    scales = weights.amax(-1) if weights.numel() else weights.new_zeros(weights.shape[:2])
    levels = (top / scales.clamp(min=1e-9)[..., None] * 65_535).round()
    kept = levels > 0
    return {
        "heads": weights.shape[0],
        "scales": packed((scales.clamp(0, 1) * 65_535).round().numpy().astype(np.uint16)),
        "counts": packed(kept.sum(-1).numpy().astype(np.uint16)),
        "places": packed(keys[kept].numpy().astype(np.uint16)),
        "levels": packed(levels[kept].numpy().astype(np.uint16)),
    }


def packed_image(image: Image) -> dict[str, Any]:
    """The pixels as RGB, and how many patches there are."""
    pixels = image.pixels.expand(-1, -1, 3).cpu().numpy()
    return {
        "height": pixels.shape[0],
        "width": pixels.shape[1],
        "rows": image.rows,
        "columns": image.columns,
        "pixels": packed(pixels),
    }


def packed_sound(sound: Sound) -> dict[str, Any]:
    """The recording, its spectrogram and CTC's posteriors; `seconds` of it at most."""
    seconds = min(sound.seconds, MOST_SECONDS)
    frames = sound.spectrogram[: round(seconds / sound.frame)].float().cpu().numpy()
    samples = sound.samples[: round(seconds * sound.rate)].float().cpu().numpy()
    low, high = np.percentile(frames, (5, 99.7)) if frames.size else (0.0, 1.0)
    shades = np.clip((frames - low) / max(high - low, 1e-9), 0, 1) * 255
    return {
        "seconds": seconds,
        "cut": sound.seconds > MOST_SECONDS,
        "wav": base64.b64encode(as_wav(samples, sound.rate)).decode("ascii"),
        "frame": sound.frame,
        "vector": sound.vector,
        "bins": frames.shape[1],
        "spectrogram": packed(shades.round().astype(np.uint8)),
        "unit": sound.unit,
        "ticks": [list(tick) for tick in sound.ticks],
        "stretches": [list(stretch) for stretch in sound.stretches],
        **_packed_posteriors(sound, seconds),
    }


def _packed_posteriors(sound: Sound, seconds: float) -> dict[str, Any]:
    if sound.posteriors is None or not sound.posteriors.numel():
        return {"symbols": [], "numbers": [], "posteriors": ""}
    found = sound.posteriors[: round(seconds / sound.vector)].float().cpu()
    peaks = found.amax(0)
    peaks[0] = 1.0  # the blank is always drawn
    drawn = peaks.topk(min(MOST_SYMBOLS, len(peaks))).indices.sort().values
    drawn = drawn[peaks[drawn] >= LIKELY]
    return {
        "symbols": [sound.symbols[number] for number in drawn.tolist()],
        "numbers": drawn.tolist(),  # which choose their colours
        "posteriors": packed((found[:, drawn] * 255).round().numpy().astype(np.uint8)),
    }


def _is_over_time(keys: int, sound: Sound) -> bool:
    """Whether keys are vectors of a sound rather than tokens."""
    return abs(keys * sound.vector - sound.seconds) <= max(3 * sound.vector, 0.05 * sound.seconds)
