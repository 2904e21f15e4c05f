"""Recordings of every format, rate and channel count, and every way in which a file is broken."""

import builtins
import os
import struct
import tracemalloc

import numpy as np
import pytest
from sounds import hiss, tone, write, write_by_pyav, write_film

from glassformer.data.audio.reading import read_audio, read_blocks, sound_info
from glassformer.errors import GlassformerError


def louder_part(sound):
    """Its ends left out, where resampling and codecs ring."""
    return sound[len(sound) // 8 : -len(sound) // 8]


@pytest.mark.parametrize(
    ("name", "subtype", "tolerance"),
    [
        ("a.wav", "PCM_16", 1e-4),
        ("a.wav", "PCM_24", 1e-6),
        ("a.wav", "PCM_U8", 1e-2),
        ("a.wav", "FLOAT", 0.0),
        ("a.wav", "DOUBLE", 0.0),
        ("a.wav", "ULAW", 1e-2),
        ("a.flac", "PCM_24", 1e-6),
        ("a.ogg", "VORBIS", 0.05),
        ("a.mp3", "MPEG_LAYER_III", 0.05),
    ],
)
def test_every_format_gives_the_same_samples(tmp_path, name, subtype, tolerance):
    sound = tone()
    path = write(tmp_path / name, sound, subtype=subtype)
    found = read_audio(path, 16000)
    assert found.dtype == np.float32
    assert found.shape == sound.shape
    assert np.abs(louder_part(found) - louder_part(sound)).max() <= tolerance


@pytest.mark.parametrize(
    ("codec", "kind", "rate"), [("aac", "ipod", 44100), ("libopus", "webm", 48000)]
)
def test_recordings_of_phones_and_browsers_are_read(tmp_path, codec, kind, rate):
    path = write_by_pyav(tmp_path / "memo.bin", tone(1.0, rate), rate, codec, kind)
    assert sound_info(path).seconds == pytest.approx(1.0, abs=0.1)
    assert sound_info(path).rate == rate
    found = read_audio(path, 16000)
    assert len(found) == pytest.approx(16000, abs=1600)
    assert np.abs(np.fft.rfft(found)).argmax() == pytest.approx(440 * len(found) / 16000, abs=2)
    part = read_audio(path, rate, start=0.25, end=0.5)
    whole = read_audio(path, rate)
    np.testing.assert_array_equal(part, whole[rate // 4 : rate // 2])


def test_the_sound_of_a_film_is_read_whatever_its_suffix(tmp_path):
    path = write_film(tmp_path / "film.wav", tone(1.0, 44100))
    found = read_audio(path, 16000)
    assert len(found) == pytest.approx(16000, abs=1600)
    assert np.abs(np.fft.rfft(found)).argmax() == pytest.approx(440 * len(found) / 16000, abs=2)


def test_tags_in_another_encoding_do_no_harm(tmp_path):
    path = write_by_pyav(tmp_path / "a.m4a", tone(0.5, 44100), 44100, "aac", "ipod", title="XYZ")
    path.write_bytes(path.read_bytes().replace(b"XYZ", b"\xe9t\xe9"))
    assert len(read_audio(path, 16000)) == pytest.approx(8000, abs=800)


@pytest.mark.parametrize(("codec", "kind"), [("aac", "adts"), ("libopus", "webm")])
def test_a_stream_that_does_not_say_how_long_it_is_is_counted(tmp_path, codec, kind):
    sound = np.concatenate([tone(1.0, 48000), np.zeros(96000, np.float32)])  # uneven bit rate
    path = write_by_pyav(tmp_path / "a", sound, 48000, codec, kind, live=kind == "webm")
    assert sound_info(path).frames == len(read_audio(path, 48000))
    assert sound_info(path).seconds == pytest.approx(3.0, abs=0.1)


def test_facts_come_from_the_header(tmp_path):
    stereo = np.stack([tone(0.75, 8000)] * 2, axis=1)
    info = sound_info(write(tmp_path / "a.wav", stereo, 8000))
    assert (info.seconds, info.rate, info.channels, info.frames) == (0.75, 8000, 2, 6000)


def test_channels_are_averaged(tmp_path):
    left, right = hiss(997, 1), hiss(997, 2)
    path = write(tmp_path / "a.wav", np.stack([left, right], 1), subtype="FLOAT")
    np.testing.assert_allclose(read_audio(path, 16000), (left + right) / 2, atol=1e-7)


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000])
def test_another_rate_is_resampled(tmp_path, rate):
    found = read_audio(write(tmp_path / "a.wav", tone(0.5, rate), rate, subtype="FLOAT"), 16000)
    assert found.shape == (8000,)
    assert np.abs(louder_part(found) - louder_part(tone(0.5))).max() < 1e-4


def test_a_part_is_what_lies_between_two_times(tmp_path):
    sound = hiss(4001)
    path = write(tmp_path / "a.flac", sound)
    whole = read_audio(path, 16000)
    np.testing.assert_array_equal(read_audio(path, 16000, start=0.05, end=0.1), whole[800:1600])
    np.testing.assert_array_equal(read_audio(path, 16000, start=0.2), whole[3200:])


def test_a_long_recording_is_streamed(tmp_path):
    path, soundfile = tmp_path / "long.wav", pytest.importorskip("soundfile")
    with soundfile.SoundFile(path, "w", 8000, 1) as file:
        for seed in range(20):
            file.write(hiss(100_000, seed))
    tracemalloc.start()
    count = sum(len(block) for block in read_blocks(path, 16000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 4_000_000
    assert peak < 4_000_000  # bytes; all of it would take four times as many
    pieces = np.concatenate(list(read_blocks(path, 8000)))
    np.testing.assert_array_equal(pieces, read_audio(path, 8000))


@pytest.mark.full
def test_a_recording_of_two_hours_needs_little_memory(tmp_path):
    path, samples = write(tmp_path / "long.wav", tone()), 2 * 3600 * 16000
    content = path.read_bytes()
    sizes = struct.pack("<I", 2 * samples + 36), struct.pack("<I", 2 * samples)
    path.write_bytes(content[:4] + sizes[0] + content[8:40] + sizes[1] + content[44:])
    os.truncate(path, 44 + 2 * samples)  # silence, which takes no room on the disk
    tracemalloc.start()
    count = sum(len(block) for block in read_blocks(path, 8000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sound_info(path).seconds == 7200.0
    assert count == samples / 2
    assert peak < 4_000_000


def test_a_wav_that_was_written_to_a_pipe_is_whole(tmp_path):
    path = write(tmp_path / "a.wav", tone())
    bytes_ = path.read_bytes()
    path.write_bytes(bytes_[:40] + b"\xff" * 4 + bytes_[44:])
    assert read_audio(path, 16000).shape == (8000,)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def bad_file(tmp_path, name):
    """A broken file."""
    path = tmp_path / "a.wav"
    match name:
        case "no bytes":
            path.touch()
        case "no samples":
            write(path, tone(0.0))
        case "one sample":
            write(path, tone()[:1])
        case "text":
            path.write_text("no sound\n" * 99)
        case "playlist":
            write(tmp_path / "b.wav", tone())
            path.write_text("#EXTM3U\n#EXTINF:1,\nb.wav\n")
        case "film":
            write_film(path)
        case "NaN":
            write(path, np.where(np.arange(8000) == 4000, np.nan, tone()), subtype="FLOAT")
        case "rate":
            write(path, tone())
            content = path.read_bytes()
            path.write_bytes(content[:24] + struct.pack("<II", 3, 6) + content[32:])
        case "raw":
            path = tmp_path / "a.raw"
            path.write_bytes(tone().tobytes())
        case "webm":
            path = write_by_pyav(tmp_path / "a.webm", tone(3.0, 48000), 48000, "libopus", "webm")
            cut(path)
        case suffix:
            path = write(tmp_path / f"a.{suffix}", hiss(100_000))
            cut(path)
    return path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no bytes", "the file is empty; record or fetch it again"),
        ("no samples", "too short (0 samples at 16000 Hz, less than 25 ms); remove it"),
        ("one sample", "too short (1 sample at 16000 Hz, less than 25 ms); remove it"),
        ("text", "not sound, or damaged (Format not recognised); fetch"),
        ("playlist", "not sound, or damaged (Format not recognised); fetch"),
        ("raw", "not sound, or damaged (no header); fetch"),
        ("film", "has no sound; give a recording, or remove it"),
        ("NaN", "NaN, infinity or a huge number (at 0.250 s); export it again, or remove it"),
        ("rate", "its header is damaged (3 Hz, channels: 1); export or fetch it again"),
        ("wav", "truncated, its header promises more sound than there is; fetch it again"),
        ("ogg", "truncated, its header promises more sound than there is; fetch it again"),
        ("flac", "not sound, or damaged (Error : flac decoder lost sync); fetch it again"),
        ("webm", "it ends too early (after 1.5 of 3.0 s); fetch it again, or remove it"),
        ("mp3", "it ends too early (after 3.0 of 6.2 s); fetch it again, or remove it"),
    ],
)
def test_a_broken_file_is_one_line_that_says_what_to_do(tmp_path, name, words):
    path = bad_file(tmp_path, name)
    with pytest.raises(GlassformerError) as error:
        read_audio(path, 16000)
    assert str(error.value).startswith(f"{path}: {words}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        (0.4, 0.9, r"from 0.4 to 0.9 s: it ends too early \(after 0.1 of 0.5 s\); fetch it again"),
        (0.7, None, r"from 0.7 s: too short \(0 samples at 16000 Hz, less than 25 ms\)"),
        (0.3, 0.2, r"from 0.3 to 0.2 s: too short \(0 samples at 16000 Hz, less than 25 ms\)"),
    ],
)
def test_a_part_outside_the_recording_is_refused(tmp_path, start, end, words):
    path = write(tmp_path / "a.wav", tone())
    with pytest.raises(GlassformerError, match=words):
        read_audio(path, 16000, start=start, end=end)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(GlassformerError, match="a folder, not a recording; name a file in it"):
        sound_info(tmp_path)
    with pytest.raises(GlassformerError, match=r"a.wav: not found; check the path"):
        sound_info(tmp_path / "a.wav")


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("soundfile", r"soundfile, which is not installed; pip install 'glassformer\[audio\]'"),
        ("soxr", r"soxr, which is not installed; pip install 'glassformer\[audio\]'"),
        ("av", r"to read m4a and webm, pip install 'glassformer\[media\]'"),
    ],
)
def test_a_missing_package_is_named(tmp_path, monkeypatch, package, words):
    path = bad_file(tmp_path, "text") if package == "av" else write(tmp_path / "a.wav", tone())
    found = builtins.__import__

    def without(name, *others):
        if name == package:
            raise ImportError
        return found(name, *others)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(GlassformerError, match=words):
        read_audio(path, 8000)
