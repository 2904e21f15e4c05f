"""Morse code: sound as promised, and a decoder that reads it."""

import numpy as np
import pytest

from glassformer.data.audio.morse import BAND, CODE, Keying, seconds_of, send, units_of
from glassformer.data.audio.morse_decoder import decode

RATE = 8000


def sent(text, seed=0, **how):
    return send(text, Keying(**how), rate=RATE, rng=np.random.default_rng(seed))


def density(sound):
    """Power of each Hz, and where it lies."""
    pieces = sound[: len(sound) // 1000 * 1000].reshape(-1, 1000) * np.hanning(1000)
    power = np.square(np.abs(np.fft.rfft(pieces))).mean(0) * 2 / (RATE * 375)
    return np.fft.rfftfreq(1000, 1 / RATE), power


def test_letters_have_codes_of_their_own():
    assert len({*CODE.values()}) == len(CODE) == 26 + 10 + 13


def test_paris_is_a_word_of_fifty_units():
    assert sum(units_of("PARIS")) + 7 == 50
    assert seconds_of("PARIS PARIS", wpm=20) == pytest.approx((50 + 43) * 1.2 / 20)


def test_sound_is_the_same_for_a_seed_and_another_for_the_next():
    how = {"wpm": 23, "jitter": 0.1, "fading": 5.0, "snr": 3.0}
    assert np.array_equal(sent("CQ DE X1Y", **how), sent("CQ DE X1Y", **how))
    assert not np.array_equal(sent("CQ DE X1Y", **how), sent("CQ DE X1Y", seed=1, **how))


@pytest.mark.parametrize("snr", [10.0, 0.0, -12.0])
@pytest.mark.parametrize("fading", [0.0, 6.0])
def test_the_noise_in_500_hz_is_as_loud_as_promised(snr, fading):
    """The tone is measured where it would be without noise; the noise away from the tone."""
    how = {"wpm": 7, "pitch": 613.0, "fading": fading}
    clean = sent("TTTTTTTTTTTTTTTTTTTTTTTTTTTTTT", **how)
    noisy = sent("TTTTTTTTTTTTTTTTTTTTTTTTTTTTTT", **how, snr=snr)
    gain = np.dot(noisy, clean) / np.dot(clean, clean)
    power = np.mean((gain * clean)[np.abs(np.convolve(clean, np.ones(40), "same")) > 0.01] ** 2)
    pitches, found = density(noisy)
    noise = found[(pitches > 1500) & (pitches < 3500)].mean() * BAND
    assert 10 * np.log10(power / noise) == pytest.approx(snr, abs=0.7)


def test_the_key_does_not_click():
    pitches, power = density(sent("EEEEEEEEEEEE", wpm=35, pitch=600.0))
    clicks = power[np.abs(pitches - 600) > 400].sum()
    assert clicks < 1e-4 * power.sum()


def test_the_tone_is_as_loud_in_any_noise_and_no_sample_is_clipped():
    quiet, noisy, noisier = (sent("QRZ?", wpm=30, snr=snr) for snr in (np.inf, 0.0, -30.0))
    assert np.dot(noisy, quiet) / np.dot(quiet, quiet) == pytest.approx(1, abs=0.1)
    assert np.abs(noisier).max() < 1


@pytest.mark.parametrize("wpm", range(12, 36))
def test_the_decoder_reads_every_character_at_every_speed(wpm):
    text = " ".join("".join([*CODE][start : start + 7]) for start in range(0, len(CODE), 7))
    assert decode(sent(text, wpm=wpm, pitch=400.0 + 20 * (wpm - 12)), RATE) == text


def test_the_decoder_reads_shaky_keying_that_fades_in_little_noise():
    text = "K9ZQ/P 5NN = THE FOX (AND DOG) +"
    how = {"dash": 3.3, "spacing": 1.2, "jitter": 0.05, "fading": 5.0, "snr": 10.0}
    read = [decode(sent(text, seed=wpm, wpm=wpm, **how), RATE) for wpm in (13, 19, 29)]
    assert read == [text] * 3


@pytest.mark.parametrize("sound", [np.zeros(41), np.zeros(RATE)])
def test_the_decoder_reads_nothing_in_silence(sound):
    assert decode(sound, RATE) == ""
