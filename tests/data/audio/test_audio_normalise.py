"""Features of mean 0 and variance 1."""

import pytest
import torch

from glassformer.data.audio.normalise import Moments
from glassformer.errors import GlassformerError


def features(length, mean=5.0):
    """Frames of 3 bins, each of another spread."""
    return torch.randn(length, 3) * torch.tensor([0.5, 3.0, 7.0]) + mean


def test_moments_of_several_recordings_are_those_of_their_frames_together(tmp_path):
    recordings = [features(97), features(53, 7.0)]
    frames, moments = torch.cat(recordings), Moments.of(recordings)
    torch.testing.assert_close(moments.mean, frames.mean(0))
    torch.testing.assert_close(moments.deviation, frames.std(0, correction=0))
    found = moments.normalise(frames)
    torch.testing.assert_close(found.mean(0), torch.zeros(3), atol=1e-5, rtol=0.0)
    torch.testing.assert_close(found.var(0, correction=0), torch.ones(3))
    moments.save(tmp_path / "moments.json")
    assert torch.equal(Moments.load(tmp_path / "moments.json").normalise(frames), found)


def test_a_bin_that_never_changes_becomes_0_and_an_empty_recording_stays_empty():
    for frames in (torch.full((7, 3), 4.0), torch.zeros(0, 3)):
        assert torch.equal(Moments.of([frames]).normalise(frames), torch.zeros_like(frames))


@pytest.mark.parametrize("content", [None, "{", "[]", "{}", '{"mean": "a", "deviation": 1}'])
def test_a_run_without_its_moments_is_refused(tmp_path, content):
    path = tmp_path / "moments.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(GlassformerError, match=r"moments.json: missing or damaged"):
        Moments.load(path)
