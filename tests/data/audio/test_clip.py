"""Clips: recordings as small files that a page can play."""

import io

import numpy as np
import pytest
import soundfile

from glassformer.data.audio.clip import LONGEST, RATE, read_clip


def tone(path, seconds, rate, pitch=440.0):
    samples = 0.5 * np.sin(2 * np.pi * pitch * np.arange(int(seconds * rate)) / rate)
    soundfile.write(path, np.stack([samples, samples], 1), rate)
    return path


def decoded(clip):
    sound, rate = soundfile.read(io.BytesIO(clip))
    assert rate == RATE
    return sound


def test_a_clip_is_the_recording_in_one_channel_and_few_bytes(tmp_path):
    clip = read_clip(tone(tmp_path / "a.wav", 2.0, 44100))
    sound = decoded(clip)
    assert sound.ndim == 1
    assert len(sound) / RATE == pytest.approx(2.0, abs=0.15)
    loudest = np.abs(np.fft.rfft(sound)).argmax() / (len(sound) / RATE)
    assert loudest == pytest.approx(440, abs=2)
    assert len(clip) < 0.3 * 2 * 2 * RATE  # of 16-bit samples


def test_a_long_recording_is_cut_and_a_part_begins_where_it_should(tmp_path):
    path = tone(tmp_path / "a.wav", LONGEST + 5, 8000)
    assert len(decoded(read_clip(path))) / RATE == pytest.approx(LONGEST, abs=0.15)
    assert len(decoded(read_clip(path, start=3.0, end=4.0))) / RATE == pytest.approx(1, abs=0.15)


def test_what_cannot_be_read_has_no_clip(tmp_path):
    (tmp_path / "broken.wav").write_bytes(b"no sound")
    assert read_clip(tmp_path / "broken.wav") is None
    assert read_clip(tmp_path / "gone.wav") is None
