"""Sound from a pipe: WAV of several kinds or raw samples, in whatever pieces it arrives."""

import io
import os
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
import soundfile

from glassformer.errors import GlassformerError
from glassformer.tasks.transcribe.pipe import piped_sound, standard_input, until_interrupted

RATE = 8000
SOUND = (0.5 * np.sin(np.arange(4001) / 7)).astype(np.float32)
KINDS = {"PCM_U8": 1e-2, "PCM_16": 1e-4, "PCM_24": 1e-6, "PCM_32": 1e-6, "FLOAT": 0, "DOUBLE": 0}


def heard(data, rate=None, target=RATE, size=777):
    """What is heard of these bytes, written to a pipe in pieces."""
    read, write = os.pipe()

    def send():
        with suppress(BrokenPipeError), open(write, "wb", buffering=0) as file:
            for start in range(0, len(data), size):
                file.write(data[start : start + size])

    thread = threading.Thread(target=send)
    thread.start()
    try:
        return np.concatenate([*piped_sound(read, target, rate, lambda: False), SOUND[:0]])
    finally:
        os.close(read)
        thread.join()


def wav(sound=SOUND, kind="PCM_16", rate=RATE, form="WAV"):
    file = io.BytesIO()
    soundfile.write(file, sound, rate, kind, format=form)
    return file.getvalue()


def raw(sound=SOUND):
    return (sound * (2**15 - 1)).astype("<i2").tobytes()


@pytest.mark.parametrize("form", ["WAV", "WAVEX"])
@pytest.mark.parametrize("kind", KINDS)
def test_wav_of_every_kind_is_read(kind, form):
    found = heard(wav(kind=kind, form=form))
    np.testing.assert_allclose(found, SOUND, atol=KINDS[kind] + 1e-7)
    assert found.dtype == np.float32


def test_raw_samples_have_the_rate_that_is_given_or_that_of_the_run():
    np.testing.assert_allclose(heard(raw()), SOUND, atol=1e-4)
    twice = heard(raw(), rate=2 * RATE)
    assert len(twice) == pytest.approx(len(SOUND) / 2, abs=5)


def test_channels_are_averaged_and_another_rate_is_resampled():
    two = np.stack([SOUND, np.zeros_like(SOUND)], 1)
    np.testing.assert_allclose(heard(wav(two)), SOUND / 2, atol=1e-4)
    assert len(heard(wav(rate=2 * RATE))) == pytest.approx(len(SOUND) / 2, abs=5)


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xf0\xff\xff\x7f"])
def test_a_header_that_was_written_before_the_end_was_known_promises_nothing(size):
    data = wav()
    at = data.index(b"data") + 4
    np.testing.assert_allclose(heard(data[:at] + size + data[at + 4 :]), SOUND, atol=1e-4)


def test_what_follows_the_samples_in_a_file_is_not_heard():
    assert len(heard(wav() + b"LIST\x04\0\0\0abcd")) == len(SOUND)


def test_a_pipe_that_breaks_off_gives_what_arrived():
    assert len(heard(wav()[:-2001])) == len(SOUND) - 1001
    assert len(heard(raw()[:1001])) == 500
    assert len(heard(b"")) == 0


@pytest.mark.parametrize(
    ("data", "rate", "message"),
    [
        (b"fLaC" + bytes(99), None, "neither WAV nor raw 16-bit samples; convert it with `ffmpeg"),
        (bytes(4) + b"ftypM4A " + bytes(99), None, "neither WAV nor raw"),
        (wav(kind="ULAW"), None, "WAV of format 7 with 8 bits; convert it"),
        (wav()[:30], None, "a WAV header without samples"),
        (wav(), 16000, "its header says 8000 Hz, but rate 16000; leave out rate"),
        (wav(np.full(99, np.nan, np.float32), "FLOAT"), None, "NaN or infinity"),
        (wav()[:24] + bytes(4) + wav()[28:], None, r"header is damaged \(0 Hz, channels: 1\)"),
    ],
)
def test_what_cannot_be_read_is_refused(data, rate, message):
    with pytest.raises(GlassformerError, match=f"^standard input: .*{message}"):
        heard(data, rate)


def test_a_terminal_and_a_closed_standard_input_are_refused(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(GlassformerError, match="standard input is closed"):
        standard_input()
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    with pytest.raises(GlassformerError, match="standard input is a terminal; pipe sound in"):
        standard_input()


def test_an_interrupted_stream_ends_and_a_second_interrupt_is_not_caught():
    read, write = os.pipe()
    os.write(write, raw())
    before = signal.getsignal(signal.SIGINT)
    threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
    start = time.monotonic()
    with until_interrupted() as stopped:
        assert signal.getsignal(signal.SIGINT) is not before
        found = np.concatenate([*piped_sound(read, RATE, None, stopped)])
        assert signal.getsignal(signal.SIGINT) is before
    assert len(found) == len(SOUND)
    assert time.monotonic() - start < 5
    os.close(read), os.close(write)
