"""Features of sound, measured: our log-mel filterbank against that of kaldi-native-fbank.

Both compute the same 80 bins, 100 frames a second, of noise at 16 kHz; Kaldi's one recording after
another, on one CPU core, as its library does.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float32

from glassformer.benchmarks.pairs import Pair, Result, forward
from glassformer.benchmarks.peers import installed
from glassformer.benchmarks.timing import Work
from glassformer.data.audio.features import FULL_SCALE, FilterBank
from glassformer.errors import GlassformerError, install

RATE, BINS = 16000, 80
LIBRARY = "kaldi_native_fbank"
CASES = ((1, 1), (1, 10), (16, 10), (1, 300))  # recordings, seconds of each


def feature_pairs(device: torch.device) -> list[Pair]:
    """Few and many recordings, short and long."""
    if installed(LIBRARY) is None:
        raise GlassformerError(
            "features are compared with kaldi-native-fbank, which is not installed; "
            f"{install('bench')}"
        )
    return [
        Pair(
            case=f"recordings: {rows}",
            length=seconds,
            ours="filterbank",
            theirs="kaldi-native-fbank",
            make=partial(work_of, rows, seconds, device),
        )
        for rows, seconds in CASES
    ]


def work_of(rows: int, seconds: int, device: torch.device) -> tuple[Work, Work]:
    """Our features and Kaldi's, of recordings of so many seconds."""
    rng = np.random.default_rng(0)
    sounds = rng.standard_normal((rows, seconds * RATE), dtype=np.float32) / 8
    bank, waveforms = FilterBank(RATE, BINS).to(device), torch.from_numpy(sounds).to(device)
    ours = forward(lambda: bank(waveforms, [sounds.shape[1]] * rows)[0])
    return ours, partial(kaldi_features, sounds * FULL_SCALE)


def kaldi_features(sounds: Float32[np.ndarray, "rows samples"]) -> list[np.ndarray]:
    """The features of the other library."""
    kaldi = installed(LIBRARY)
    assert kaldi is not None
    options = kaldi.FbankOptions()
    options.frame_opts.dither = 0.0
    options.frame_opts.samp_freq = RATE
    options.mel_opts.num_bins = BINS
    found = []
    for sound in sounds:
        features = kaldi.OnlineFbank(options)
        features.accept_waveform(RATE, sound)
        features.input_finished()
        frames = [features.get_frame(number) for number in range(features.num_frames_ready)]
        found.append(np.stack(frames))
    return found


def real_time(results: Sequence[Result]) -> list[str]:
    """How much faster than the sound itself our features are."""
    return [
        f"{rows} x {result.length} s of sound: {rows * result.length / result.time.ours:,.0f} "
        f"times real time"
        for (rows, _), result in zip(CASES, results, strict=False)
    ]
