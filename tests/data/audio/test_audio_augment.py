"""Augmentation follows from its generator alone, and does what it says."""

import numpy as np
import pytest
import torch
from sounds import hiss, tone

from glassformer.data.audio.augment import add_noise, perturb_speed, perturb_volume, spec_augment
from glassformer.data.batches import row_rng


def decibels(signal, noise):
    return 10 * np.log10(np.square(signal).mean() / np.square(noise).mean())


@pytest.mark.parametrize(
    "augment",
    [
        lambda rng: spec_augment(
            torch.from_numpy(hiss(4000).reshape(100, 40)), rng, warp=7
        ).numpy(),
        lambda rng: perturb_speed(hiss(997), rng, (0.8, 0.9, 1.1, 1.2)),
        lambda rng: perturb_volume(hiss(997), rng),
        lambda rng: add_noise(hiss(997), rng),
        lambda rng: add_noise(hiss(997), rng, noise=hiss(211, 1)),
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
    features = torch.randn(211, 41)
    before = features.clone()
    frames, bins = [], []
    for row in range(99):
        found = spec_augment(
            features,
            row_rng(0, 0, row),
            frequency_masks=1,
            frequency_width=5,
            time_masks=1,
            time_width=13,
        )
        hidden, silent = masked(features, found)
        assert torch.equal(found[~hidden][:, ~silent], features[~hidden][:, ~silent])
        frames.append(int(hidden.sum()))
        bins.append(int(silent.sum()))
        for mask in (hidden, silent):  # in one piece
            assert mask.diff().sum() <= 2
    assert (min(frames), max(frames)) == (0, 13)
    assert (min(bins), max(bins)) == (0, 5)
    assert torch.equal(features, before)


def test_a_short_recording_loses_a_share_of_its_frames_only():
    features = torch.randn(20, 41)
    frames = [
        int(masked(features, spec_augment(features, row_rng(0, 0, row), time_masks=1))[0].sum())
        for row in range(99)
    ]
    assert max(frames) == 4
    assert spec_augment(torch.zeros(0, 41), row_rng(0, 0, 0), warp=5).shape == (0, 41)


def test_warping_moves_a_point_in_time_and_keeps_the_ends():
    ramp = torch.arange(100.0)[:, None].expand(100, 3)
    moved = []
    for row in range(99):
        found = spec_augment(ramp, row_rng(0, 0, row), frequency_masks=0, time_masks=0, warp=11)
        assert found.shape == ramp.shape
        assert (found[1:] >= found[:-1]).all()
        assert found[0].max() < 6
        assert found[-1].min() > 93
        moved.append(float((found - ramp).abs().max()))
    assert 8 < max(moved) <= 12
    short = ramp[:22]
    found = spec_augment(short, row_rng(0, 0, 0), frequency_masks=0, time_masks=0, warp=11)
    assert torch.equal(found, short)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_speed_changes_length_and_pitch(factor):
    found = perturb_speed(tone(1.0), np.random.default_rng(0), [factor])
    assert len(found) == pytest.approx(16000 / factor, abs=1)
    pitch = np.abs(np.fft.rfft(found)).argmax() * 16000 / len(found)
    assert pitch == pytest.approx(440 * factor, abs=1)


def test_volume_changes_by_up_to_so_many_decibels():
    sound = tone()
    changes = [decibels(perturb_volume(sound, row_rng(0, 0, row), 4.0), sound) for row in range(99)]
    assert -4.0 <= min(changes) < -3.5
    assert 3.5 < max(changes) <= 4.01


@pytest.mark.parametrize("noise", [None, hiss(3001, 1), hiss(20_011, 1)])
def test_noise_is_so_many_decibels_below_the_sound(noise):
    sound = tone()
    ratios = []
    for row in range(31):
        found = add_noise(sound, row_rng(0, 0, row), (3.0, 9.0), noise)
        ratios.append(decibels(sound, found - sound))
    assert 2.99 < min(ratios) < 4.0
    assert 8.0 < max(ratios) < 9.01


def test_silence_stays_silent_and_silent_noise_adds_nothing():
    rng = np.random.default_rng(0)
    assert not add_noise(np.zeros(100, np.float32), rng).any()
    np.testing.assert_array_equal(add_noise(tone(), rng, noise=np.zeros(7, np.float32)), tone())
