"""Features of mean 0 and variance 1."""

import torch

from glassformer.data.audio.normalise import Moments, normalise, normalise_rows


def features(*lengths):
    """Rows of frames of 3 bins, each of another mean and spread, and padding of ones."""
    batch = torch.ones(len(lengths), max(lengths), 3)
    for row, length in enumerate(lengths):
        batch[row, :length] = torch.randn(length, 3) * torch.tensor([0.5, 3.0, 7.0]) + row + 5
    return batch


def test_each_row_gets_mean_0_and_variance_1_from_its_own_frames():
    lengths = (97, 53)
    batch = features(*lengths)
    found = normalise_rows(batch, lengths)
    for row, length in enumerate(lengths):
        real = found[row, :length]
        torch.testing.assert_close(real.mean(0), torch.zeros(3), atol=1e-5, rtol=0.0)
        torch.testing.assert_close(real.var(0, correction=0), torch.ones(3))
        assert not found[row, length:].any()
        alone = normalise_rows(batch[row : row + 1, :length], [length])
        torch.testing.assert_close(alone[0], real)


def test_a_bin_that_never_changes_becomes_0_and_so_does_an_empty_row():
    found = normalise_rows(torch.full((2, 7, 3), 4.0), [7, 0])
    assert torch.equal(found, torch.zeros(2, 7, 3))


def test_statistics_of_all_recordings_are_those_of_their_frames_together():
    lengths = (97, 53)
    batch, moments = features(*lengths), Moments(3)
    for row, length in zip(batch, lengths, strict=True):
        moments.add(row[:length])
    frames = torch.cat([row[:length] for row, length in zip(batch, lengths, strict=True)])
    torch.testing.assert_close(moments.mean, frames.mean(0))
    torch.testing.assert_close(moments.deviation, frames.std(0, correction=0))
    found = normalise(batch, lengths, moments.mean, moments.deviation)
    assert not found[1, 53:].any()
    real = torch.cat([found[0], found[1, :53]])
    torch.testing.assert_close(real.mean(0), torch.zeros(3), atol=1e-5, rtol=0.0)
    torch.testing.assert_close(real.var(0, correction=0), torch.ones(3))


def test_statistics_of_nothing_change_nothing_to_nan():
    moments = Moments(3)
    moments.add(torch.ones(5, 3))
    assert moments.deviation.gt(0).all()
    assert normalise(torch.ones(1, 2, 3), [2], moments.mean, moments.deviation).eq(0).all()
