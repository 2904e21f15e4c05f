"""The set morse: the same at every call, and nothing of it in two splits."""

import os
import wave
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from glassformer.data.audio.morse import CODE
from glassformer.data.catalog import morse, open_entry
from glassformer.data.catalog.checking import RECORDED, count
from glassformer.data.catalog.morse import RATE, clips
from glassformer.data.rows import Row
from glassformer.errors import GlassformerError


@pytest.fixture(scope="module")
def made():
    return list(clips())


@pytest.fixture
def few(monkeypatch, tmp_path):
    """A few recordings, in a cache of their own."""
    monkeypatch.setattr(morse, "CLIPS", {"train": 7, "valid": 3, "test": 2})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return open_entry("morse")


def test_recordings_are_those_on_record(made):
    rows = [Row({"text": clip.text, "split": clip.split}, "morse", 1) for clip in made]
    assert count(rows) == RECORDED["morse"]


def test_no_text_no_speed_and_no_operator_is_in_two_splits(made):
    for key in ("text", "speed", "operator"):
        splits = defaultdict(set)
        for clip in made:
            splits[clip.keying.wpm if key == "speed" else getattr(clip, key)].add(clip.split)
        assert {len(some) for some in splits.values()} == {1}, key


def test_all_letters_speeds_and_pitches_are_learned(made):
    train = [clip for clip in made if clip.split == "train"]
    seen = "".join(clip.text for clip in train)
    assert min(seen.count(letter) for letter in CODE) > 40
    assert {clip.keying.wpm for clip in train} >= {14, 16, 32}
    pitches = [clip.keying.pitch for clip in train]
    assert 500 <= min(pitches) < 505
    assert 695 < max(pitches) <= 700


def test_what_is_held_out_has_one_snr_and_training_has_little_noise(made):
    assert {clip.keying.snr for clip in made if clip.split != "train"} == {0.0}
    assert min(clip.keying.snr for clip in made if clip.split == "train") >= 10


def test_recordings_are_written_once_as_16_bit_wav(few):
    rows = list(few.rows())
    before = {row["audio"]: Path(row["audio"]).stat().st_mtime_ns for row in rows}
    assert list(few.rows()) == rows
    assert {path: os.stat(path).st_mtime_ns for path in before} == before
    assert [row["split"] for row in rows] == ["train"] * 7 + ["valid"] * 3 + ["test"] * 2
    for row, clip in zip(rows, clips(), strict=True):
        with wave.open(row["audio"]) as file:
            assert (file.getframerate(), file.getsampwidth(), file.getnchannels()) == (RATE, 2, 1)
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        assert np.array_equal(samples, clip.samples())
        assert row["text"] == clip.text
        assert (float(row["wpm"]), float(row["snr"])) == (clip.keying.wpm, clip.keying.snr)


def test_recordings_that_cannot_be_written_are_one_line(few, tmp_path):
    (tmp_path / "glassformer").write_text("in the way")
    with pytest.raises(GlassformerError, match=r"morse-5: cannot be written .*XDG_CACHE_HOME"):
        next(few.rows())
