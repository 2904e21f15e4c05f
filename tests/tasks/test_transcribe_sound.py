"""transcribe: how sound becomes features, stored or computed on the fly, and how it is changed."""

import os
import struct
import tracemalloc

import numpy as np
import pytest
import soundfile
from small_jobs import everything, job_of
from small_recordings import RATE, SETTINGS, play, record, write_wave

from glassformer.config.values import merge_values
from glassformer.data.audio.normalise import Moments
from glassformer.errors import GlassformerError
from glassformer.runs.doctor import doctor
from glassformer.tasks.shared import sound as sound_module
from glassformer.tasks.shared.sound import vectors_of

TEXTS = ("ad", "bead", "ace bad", "abba")


def task_of(folder, rows=None, **settings):
    folder.mkdir(exist_ok=True)
    rows = rows or record(folder / "clips", TEXTS)
    return job_of("transcribe", folder / "run", rows, **merge_values(SETTINGS, settings))


@pytest.mark.parametrize("speeds", [[], [0.8, 1, 1.25]])
def test_features_computed_on_the_fly_are_those_that_are_stored(tmp_path, speeds):
    augment = {"augment": {"speeds": speeds}}
    stored = task_of(tmp_path / "a", task=augment)
    computed = task_of(tmp_path / "b", task={"store": "waveforms", **augment})
    assert (stored.settings.store, computed.settings.store) == ("features", "waveforms")
    assert computed.sounds.rows.values.dtype == np.int16
    for epoch in (None, 0, 1):
        first, second = everything(stored, epoch=epoch), everything(computed, epoch=epoch)
        assert first.features.equal(second.features)
    assert stored.lengths("train").tolist() == computed.lengths("train").tolist()


@pytest.mark.parametrize(
    "augment",
    [
        {"augment": {"speeds": [0.8, 1.25]}},
        {"augment": {"noise": [10, 30]}},
        {"augment": {"volume": 6.0}},
    ],
)
def test_each_epoch_hears_another_version_and_held_out_rows_are_as_recorded(tmp_path, augment):
    rows = record(tmp_path / "clips", TEXTS)
    rows += [row | {"split": "test"} for row in rows]
    bare, settings = task_of(tmp_path / "a", rows), merge_values(SETTINGS, {"task": augment})
    task = job_of("transcribe", tmp_path / "b", rows, origin=bare.folder, **settings)
    first, again, second = (everything(task, epoch=n).features for n in (0, 0, 1))
    assert first.equal(again)
    assert first.shape != second.shape or not first.equal(second)
    assert everything(task, "test").features.equal(everything(bare, "test").features)


def test_a_batch_has_room_for_the_slowest_version_and_ctc_for_the_fastest(tmp_path):
    task = task_of(tmp_path / "a", task={"augment": {"speeds": [0.8, 1.25]}})
    needed = {n: [] for n in range(len(TEXTS))}
    for epoch in range(9):
        for row, sound in enumerate(everything(task, epoch=epoch).vectors):
            needed[row].append(sound + len(task.texts[row]) + 1)
    assert [max(found) for found in needed.values()] == task.lengths("train").tolist()
    rows = record(tmp_path / "clips", ["decade", "ad"])
    frames = task_of(tmp_path / "b", rows).sounds.frames(0)
    rows[0]["text"] = ("ab" * frames)[: vectors_of(frames, 4)]
    assert len(task_of(tmp_path / "c", rows).lengths("train")) == 2
    faster = task_of(tmp_path / "d", rows, task={"augment": {"speeds": [1.25]}})
    assert len(faster.lengths("train")) == 1


def test_moments_of_all_training_recordings_are_stored_in_the_run(tmp_path, monkeypatch):
    rows = record(tmp_path / "clips", TEXTS)
    rows.append(rows[0] | {"split": "test"})
    task = task_of(tmp_path, rows)
    frames = np.concatenate([task.sounds[row] for row in range(len(TEXTS))]).astype(np.float32)
    assert np.abs(frames.mean(0)).max() < 1e-2
    assert np.abs(frames.std(0) - 1).max() < 1e-2
    sound = play("ad", np.random.default_rng(5))
    louder = task.features(2 * sound).astype(np.float32) - task.features(sound)
    assert louder.min() > 0
    moments = Moments.load(task.folder / "moments.json")
    assert moments.mean.shape == (20,)
    monkeypatch.setattr(sound_module, "MEASURED", 2)
    fewer = task_of(tmp_path / "b", rows)
    assert not fewer.extract.moments.mean.equal(moments.mean)
    later = job_of("transcribe", tmp_path / "later", rows, origin=task.folder, **SETTINGS)
    assert later.extract.moments.mean.equal(moments.mean)


def test_moments_are_those_of_recordings_with_the_noise_that_is_added(tmp_path):
    task = task_of(tmp_path, task={"augment": {"noise": [-10, -10]}})
    rows, rng = range(len(TEXTS)), np.random.default_rng(5)
    heard = np.concatenate([task.sounds.augmented(row, rng) for row in rows])
    assert np.abs(heard.mean(0)).max() < 0.3
    assert np.concatenate([task.sounds[row] for row in rows]).astype(np.float32).mean() < -1


def test_a_recording_normalised_by_itself_may_have_any_volume(tmp_path):
    task = task_of(tmp_path, task={"normalise": "recording"})
    assert not (task.folder / "moments.json").exists()
    frames, sound = task.sounds[0].astype(np.float32), play("ad", np.random.default_rng(5))
    assert np.abs(frames.mean(0)).max() < 1e-2
    assert np.abs(frames.std(0) - 1).max() < 1e-2
    assert np.abs(task.features(sound / 2) - task.features(sound)).max() < 1e-2


@pytest.mark.parametrize("features", ["mel", "mfcc"])
def test_longer_frames_are_as_many_and_other_ones(tmp_path, features):
    short, long = (
        task_of(tmp_path / f"{window}", task={"window": window, "features": features})
        for window in (25, 60)
    )
    assert short.sounds[0].shape == long.sounds[0].shape
    assert np.abs(short.sounds[0] - long.sounds[0]).max() > 0.1
    moments = [(one.folder / "moments.json").read_text() for one in (short, long)]
    assert moments[0] != moments[1]


def test_cepstra_are_another_view_of_the_same_sound(tmp_path):
    mel, cepstra = task_of(tmp_path / "a"), task_of(tmp_path / "b", task={"features": "mfcc"})
    assert mel.sounds[0].shape == cepstra.sounds[0].shape
    assert np.abs(mel.sounds[0] - cepstra.sounds[0]).max() > 0.1
    assert cepstra.model()


def test_a_tone_is_heard_alike_at_every_pitch(tmp_path):
    only = {"task": {"features": "tone"}, "model": {"frontend": {"bins": 5}}}
    task = task_of(tmp_path, **only)
    at = np.arange(2000) / RATE
    low, high = (
        task.features(np.sin(2 * np.pi * pitch * at).astype(np.float32)) for pitch in (625, 1875)
    )
    assert low.shape[1] == 5
    assert np.abs(low[3:-3] - high[3:-3]).max() < 0.05
    with pytest.raises(GlassformerError, match=r"^model.frontend.bins = 4: a tone has an odd numb"):
        task_of(tmp_path / "even", **only | {"model": {"frontend": {"bins": 4}}})


def test_characters_that_training_did_not_see_are_told_and_count_as_errors(tmp_path):
    rows = record(tmp_path, ["ad", "bad", "cab"])
    rows[2] |= {"split": "test", "text": "c\u00e9b"}
    task = task_of(tmp_path, rows)
    [remark] = task.remarks
    where = f"{task.folder}/rows.jsonl row 3"
    assert remark.startswith("1 transcript with characters or words that training did not learn")
    assert f"first {where}; they count as errors" in remark
    batch = everything(task, "test")
    assert batch.references == ("c\u00e9b",)
    assert task.score(task.model(), [batch])["wer"] >= 1.0


def test_channels_precision_and_format_do_not_change_what_is_heard(tmp_path):
    sound = play("bead", np.random.default_rng(3))
    stereo = np.stack([sound, sound], axis=1)
    forms = {
        "a.wav": (sound, "PCM_16"),
        "b.wav": (stereo, "PCM_16"),
        "c.wav": (sound, "PCM_24"),
        "d.wav": (stereo, "FLOAT"),
        "e.flac": (sound, "PCM_24"),
    }
    rows = []
    for name, (samples, subtype) in forms.items():
        soundfile.write(tmp_path / name, samples, RATE, subtype=subtype)
        rows.append({"path": str(tmp_path / name), "text": "bead"})
    task = task_of(tmp_path, rows)
    first, *others = (task.sounds[row].astype(np.float32) for row in range(len(rows)))
    for other in others:
        assert other.shape == first.shape
        assert np.median(np.abs(other - first)) < 5e-3


def test_a_recording_that_is_too_long_is_left_out_of_any_split_without_being_read(
    tmp_path, monkeypatch
):
    rows = record(tmp_path, ["ad", "bad", "cab", "dad"])
    for row, split in zip(rows[1:], ("train", "test", "test"), strict=True):
        row["split"] = split
    for row in (1, 2):
        write_wave(tmp_path / f"{row}.wav", np.tile(play("ad", np.random.default_rng(row)), 40))
    read = []
    original = sound_module.read_part
    monkeypatch.setattr(
        sound_module, "read_part", lambda part, rate: read.append(part) or original(part, rate)
    )
    task = task_of(tmp_path, rows, task={"max_seconds": 5.0})
    assert {part.path.name for part in read} == {"0.wav", "3.wav"}
    assert [len(task.lengths(split)) for split in ("train", "test")] == [1, 1]
    where = f"{task.folder}/rows.jsonl row 2"
    assert task.remarks == [
        f"left out: 2 recordings with a length over task.max_seconds = 5, first {where}"
    ]


@pytest.mark.full
def test_a_recording_of_two_hours_is_examined_and_left_out_in_little_memory(tmp_path):
    rows = record(tmp_path / "clips", [*TEXTS] * 10)
    path, samples = (
        write_wave(tmp_path / "long.wav", play("ad", np.random.default_rng(0))),
        7200 * RATE,
    )
    content = path.read_bytes()
    sizes = struct.pack("<I", 2 * samples + 36), struct.pack("<I", 2 * samples)
    path.write_bytes(content[:4] + sizes[0] + content[8:40] + sizes[1] + content[44:])
    os.truncate(path, 44 + 2 * samples)  # silence, which takes no room on the disk
    rows.append({"path": str(path), "text": "ad"})
    tracemalloc.start()
    task = task_of(tmp_path, rows)
    found = doctor(str(task.folder / "rows.jsonl"), quiet=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000  # bytes; its samples alone are 230 million
    assert len(task.lengths("train")) == len(rows) - 1
    where = f"{task.folder}/rows.jsonl row {len(rows)}"
    assert f"over task.max_seconds = 30, first {where}" in task.remarks[0]
    assert {one.kind: one.rows for one in found.findings}["long recordings"] == (where,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 24}, "task.window must lie in 25 ... 1,000 milliseconds, got 24"),
        ({"features": "fbank"}, "unknown task.features 'fbank'"),
        ({"augment": {"speeds": [1.0, 9.0]}}, r"speeds must lie in \[0.5, 2.0\], got \[1.0, 9.0\]"),
        ({"augment": {"noise": [30, 10]}}, r"such as \[10, 30\]; got \[30.0, 10.0\]"),
        ({"augment": {"volume": -3.0}}, "volume must be 0 decibels or more, got -3"),
        (
            {"augment": {"volume": 3.0}, "normalise": "recording"},
            "has no effect with task.normalise",
        ),
        ({"augment": {"volume": 3.0}, "store": "features"}, "leave task.store out"),
        ({"augment": {"speeds": [0.8, 0.9, 1.1]}, "store": "features"}, "leave task.store out"),
    ],
)
def test_settings_of_sound_that_make_no_sense_are_refused(tmp_path, settings, message):
    with pytest.raises(GlassformerError, match=message):
        task_of(tmp_path, task=settings)


def test_more_bins_than_the_rate_allows_are_refused(tmp_path):
    with pytest.raises(GlassformerError, match=f"bins = 120: .* too many for a rate of {RATE} Hz"):
        task_of(tmp_path, model={"frontend": {"bins": 120}})
