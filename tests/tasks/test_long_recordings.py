"""Long recordings: cut at pauses, and put together without losing or doubling a word."""

import resource
import wave
from itertools import groupby

import numpy as np
import pytest
import torch
from small_jobs import job_of
from small_recordings import PITCHES, RATE, SETTINGS, WORDS as ALL_WORDS, play, record, write_wave

from glassformer.config.values import merge_values
from glassformer.data.audio.features import FilterBank
from glassformer.tasks import JOBS
from glassformer.tasks.predictor import Partial
from glassformer.tasks.transcribe.choices import Timed, Written
from glassformer.tasks.transcribe.pieces import cut_at_pauses
from glassformer.tasks.transcribe.searching import Searcher

WORDS = [word for word in ALL_WORDS if word != "abba"]  # two equal letters sound like a long one
BANK = FilterBank(RATE, 20)
NOISE, LOUD, GAP = 0.01, 22.5, 12  # of silence; of tones, as a logarithm; frames between words


def features(sound):
    return BANK(torch.from_numpy(sound)[None], [len(sound)])[0][0].numpy()


def bin_of(pitch):
    tone = np.sin(2 * np.pi * pitch * np.arange(RATE) / RATE).astype(np.float32)
    return int(features(tone)[9].argmax())


LETTERS = {bin_of(pitch): letter for letter, pitch in PITCHES.items()}


def letter_of(frame):
    return LETTERS.get(int(frame.argmax()), "") if frame.max() > LOUD else ""


class Reader(Searcher):
    """Reads tones by their pitch; a word that is cut in two becomes two words."""

    def __init__(self):
        object.__setattr__(self, "pieces", [])  # a Searcher is frozen

    def write(self, model, sounds, *, times):
        self.pieces.extend(len(sound) for sound in sounds)
        return [self.read(sound) for sound in sounds]

    def read(self, sound):
        at, words = 0, []
        for heard, frames in groupby(map(letter_of, sound)):
            start, at = at, at + len([*frames])
            if not heard or at - start < 3:
                continue
            if words and start - words[-1].end < GAP:
                start, heard = words[-1].start, words.pop().text + heard
            words.append(Timed(text=heard, start=start, end=at))
        words = [Timed(text=word.text, start=word.start // 4, end=word.end // 4) for word in words]
        text = " ".join(word.text for word in words)
        return Written(text=text, tokens=(7,) * len(text), score=-1.0, words=tuple(words))


def predictor_of(folder, **settings):
    rows = record(folder / "clips", WORDS[:3])
    values = merge_values(SETTINGS, {"task": settings})
    task = job_of("transcribe", folder / "run", rows, **values)
    task.searcher, task.features = Reader(), features
    return JOBS["transcribe"].predictor(task)


def spoken(words, rng):
    """The words with pauses between them, and when each begins."""
    pieces, starts, at = [], [], 0
    for word in words:
        pause, sound = rng.normal(0, NOISE, rng.integers(2000, 4000)), play(word, rng)
        starts.append((at + len(pause)) / RATE)
        pieces += [pause, sound]
        at += len(pause) + len(sound)
    return np.concatenate(pieces).astype(np.float32), starts


def test_a_long_recording_gives_the_words_of_its_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("glassformer.tasks.transcribe.pieces.AHEAD", 30.0)
    rng = np.random.default_rng(3)
    words = [WORDS[n] for n in rng.integers(0, len(WORDS), 110)]
    sound, starts = spoken(words, rng)
    predictor = predictor_of(tmp_path, max_piece=4.0).configured(
        align=True, srt=tmp_path / "long.srt"
    )
    path = write_wave(tmp_path / "long.wav", sound)
    *partial, found = predictor.predict(torch.nn.Identity(), [predictor.accept(str(path))])
    assert found.text.split() == words
    assert [word["start"] for word in found.details["words"]] == pytest.approx(starts, abs=0.09)
    pieces = predictor.task.searcher.pieces
    assert len(pieces) > 17
    assert all(190 < piece <= 400 for piece in pieces[:-1])
    shown = (tmp_path / "long.srt").read_text().split("\n\n")
    assert " ".join(" ".join(cue.split("\n")[2:]) for cue in shown).split() == words
    done = [one.done for one in partial]
    assert done == sorted(done)
    assert 0 < done[0] < done[-1] < 1


def test_short_recordings_are_not_cut_and_stay_in_order(tmp_path):
    rng = np.random.default_rng(4)
    predictor = predictor_of(tmp_path)
    assert predictor.task.settings.max_piece == 1.0  # all are shorter
    words = ["ad", "bead", "ace", "cab"] * 5
    sounds = [play(word, rng) for word in words]
    found = [*predictor.predict(torch.nn.Identity(), map(predictor.accept, sounds))]
    assert [one.text for one in found] == words
    assert not any(isinstance(one, Partial) for one in found)


def test_pieces_are_a_quarter_longer_than_the_longest_that_was_trained_on(tmp_path):
    rows = record(tmp_path / "clips", ["ad", "decade " * 3, "decade " * 9])
    task = job_of(
        "transcribe", tmp_path, rows, **merge_values(SETTINGS, {"task": {"max_seconds": 5.0}})
    )
    longest = task.sounds.frames(1, 1.0) / 100  # the third is too long
    assert task.settings.max_piece == pytest.approx(1.25 * longest, abs=0.05)


def test_a_cut_is_made_in_a_pause_and_not_in_a_short_gap_however_quiet():
    sound = np.random.default_rng(5).normal(0, 0.3, 2 * RATE).astype(np.float32)
    sound[9000:9240] = 0  # 30 ms, as before a plosive
    sound[12000:14000] *= 1e-3
    [(first, ends), (second, ended)] = cut_at_pauses([sound, sound[:800]], RATE, 2.0)
    assert (ends, ended) == (False, True)
    assert len(first) == pytest.approx(13000, abs=400)
    assert np.array_equal(np.concatenate([first, second]), np.concatenate([sound, sound[:800]]))


@pytest.mark.full
def test_a_recording_of_two_hours_takes_no_more_memory_than_one_of_minutes(tmp_path):
    rng = np.random.default_rng(6)
    minute, _ = spoken([WORDS[n] for n in rng.integers(0, len(WORDS), 70)], rng)
    frames = (minute * (2**15 - 1)).astype("<i2").tobytes()
    predictor = predictor_of(tmp_path, max_piece=20.0)

    def most_memory(repeats):
        with wave.open(str(tmp_path / "long.wav"), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            for _ in range(repeats):
                file.writeframesraw(frames)
        *_, found = predictor.predict(
            torch.nn.Identity(), [predictor.accept(str(tmp_path / "long.wav"))]
        )
        assert len(found.text.split()) == repeats * 70
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10  # MB

    few, hours = most_memory(4), int(7200 * RATE / len(minute))
    assert most_memory(hours) < few + 50
