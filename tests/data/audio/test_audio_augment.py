"""Augmentation follows from its generator alone, and does what it says."""

import numpy as np
import pytest
from sounds import hiss, tone

from glassformer.data.audio.augment import add_noise, at_speed, perturb_volume, spec_augment
from glassformer.data.batches import row_rng


def decibels(signal, noise):
    return 10 * np.log10(np.square(signal).mean() / np.square(noise).mean())


def hide(features, rng, *, bands=1, bins=27, stretches=1, share=0.2):
    return spec_augment(
        features,
        rng,
        frequency_masks=bands,
        frequency_width=bins,
        time_masks=stretches,
        time_share=share,
    )


@pytest.mark.parametrize(
    "augment",
    [
        lambda rng: hide(hiss(4000).reshape(100, 40), rng),
        lambda rng: perturb_volume(hiss(997), rng, 6.0),
        lambda rng: add_noise(hiss(997), rng, (10.0, 30.0)),
    ],
)
def test_the_same_seed_epoch_and_row_give_the_same_and_another_epoch_does_not(augment):
    once, again, later = (augment(row_rng(3, epoch, 5)) for epoch in (0, 0, 1))
    np.testing.assert_array_equal(once, again)
    assert once.shape != later.shape or np.abs(once - later).max() > 1e-3
    assert once.dtype == np.float32


def masked(features, found):
    """The frames and the bins in which every value was replaced by the mean of its bin."""
    hidden = (found == features.mean(0)) & (found != features)
    return hidden.all(1), hidden.all(0)


def test_masks_are_as_wide_as_allowed_and_hold_the_mean():
    features = hiss(211 * 41).reshape(211, 41)
    before = features.copy()
    frames, bins = [], []
    for row in range(99):
        found = hide(features, row_rng(0, 0, row), bins=5, share=13.5 / 211)
        hidden, silent = masked(features, found)
        np.testing.assert_array_equal(found[~hidden][:, ~silent], features[~hidden][:, ~silent])
        frames.append(int(hidden.sum()))
        bins.append(int(silent.sum()))
        for mask in (hidden, silent):  # in one piece
            assert np.diff(mask).sum() <= 2
    assert (min(frames), max(frames)) == (0, 13)
    assert (min(bins), max(bins)) == (0, 5)
    np.testing.assert_array_equal(features, before)


def test_a_short_recording_loses_a_share_of_its_frames_only():
    features = hiss(20 * 41).reshape(20, 41)
    frames = [
        int(masked(features, hide(features, row_rng(0, 0, row)))[0].sum()) for row in range(99)
    ]
    assert max(frames) == 4


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_speed_changes_length_and_pitch(factor):
    found = at_speed(tone(1.0), factor)
    assert len(found) == pytest.approx(16000 / factor, abs=1)
    pitch = np.abs(np.fft.rfft(found)).argmax() * 16000 / len(found)
    assert pitch == pytest.approx(440 * factor, abs=1)


def test_volume_changes_by_up_to_so_many_decibels():
    sound = tone()
    changes = [decibels(perturb_volume(sound, row_rng(0, 0, row), 4.0), sound) for row in range(99)]
    assert -4.0 <= min(changes) < -3.5
    assert 3.5 < max(changes) <= 4.01


def test_noise_is_so_many_decibels_below_the_sound():
    sound = tone()
    ratios = []
    for row in range(31):
        found = add_noise(sound, row_rng(0, 0, row), (3.0, 9.0))
        ratios.append(decibels(sound, found - sound))
    assert 2.99 < min(ratios) < 4.0
    assert 8.0 < max(ratios) < 9.01


def test_silence_stays_silent():
    assert not add_noise(np.zeros(100, np.float32), row_rng(0, 0, 0), (10.0, 30.0)).any()
