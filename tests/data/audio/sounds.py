"""Recordings for the tests, made and written here."""

from pathlib import Path

import numpy as np
import pytest


def tone(seconds: float = 0.5, rate: int = 16000, pitch: float = 440.0) -> np.ndarray:
    """A tone that is far from full scale."""
    time = np.arange(round(seconds * rate)) / rate
    return (0.3 * np.sin(2 * np.pi * pitch * time)).astype(np.float32)


def hiss(samples: int, seed: int = 0) -> np.ndarray:
    """Noise that swells and fades, as speech does."""
    swell = np.abs(np.sin(np.arange(samples) / 3001))
    return (np.random.default_rng(seed).normal(0, 0.1, samples) * swell).astype(np.float32)


def write(path: Path, sound: np.ndarray, rate: int = 16000, **options: str) -> Path:
    pytest.importorskip("soundfile").write(path, sound, rate, **options)
    return path


def write_by_pyav(
    path: Path,
    sound: np.ndarray,
    rate: int,
    codec: str,
    kind: str,
    *,
    live: bool = False,
    title: str = "",
) -> Path:
    """A recording as a phone (AAC in MP4) or a browser (Opus in WebM, live) makes it."""
    av = pytest.importorskip("av")
    options = {"live": "1"} if live else {}  # without a length, as it is sent while it is made
    with av.open(str(path), "w", format=kind, options=options) as container:
        container.metadata["title"] = title
        stream = container.add_stream(codec, rate=rate, layout="mono")
        size = stream.codec_context.frame_size or 960
        for start in range(0, len(sound), size):
            part = av.AudioFrame.from_ndarray(sound[None, start : start + size], "fltp", "mono")
            part.sample_rate, part.pts = rate, start
            container.mux(stream.encode(part))
        container.mux(stream.encode(None))
    return path


def write_film(path: Path, sound: np.ndarray | None = None) -> Path:
    """A video, without sound or with one of 44.1 kHz."""
    av = pytest.importorskip("av")
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=5)
        stream.width = stream.height = 32
        heard = [] if sound is None else [container.add_stream("aac", rate=44100, layout="mono")]
        for _ in range(5):
            picture = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), "rgb24")
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
        for voice in heard:
            part = av.AudioFrame.from_ndarray(sound[None], "fltp", "mono")
            part.sample_rate = 44100
            container.mux([*voice.encode(part), *voice.encode(None)])
    return path
