"""Our features are Kaldi's, and padding does not change them."""

import time

import numpy as np
import pytest
import torch
from sounds import hiss

from glassformer.data.audio.features import Cepstra, FilterBank, ToneBank, frame_count

# The largest difference of a logarithm; both sides compute in 32 bits, and where a bin has far less
# energy than its neighbours, either is as far from the truth.
TOLERANCE = 3e-3


def by_kaldi(kind, options, sound, rate):
    """The features of another implementation, for samples in the range of 16-bit integers."""
    options.frame_opts.dither = 0.0
    options.frame_opts.samp_freq = rate
    features = kind(options)
    features.accept_waveform(rate, sound * 2**15)
    features.input_finished()
    return np.stack([features.get_frame(n) for n in range(features.num_frames_ready)])


def kaldi_fbank(sound, rate=16000, bins=80, window=25):
    kaldi = pytest.importorskip("kaldi_native_fbank")
    options = kaldi.FbankOptions()
    options.frame_opts.frame_length_ms = window
    options.mel_opts.num_bins = bins
    return by_kaldi(kaldi.OnlineFbank, options, sound, rate)


def padded(sounds):
    """A batch whose padding is anything but silence."""
    lengths = [len(sound) for sound in sounds]
    batch = torch.full((len(sounds), max(lengths)), 0.7)
    for row, sound in enumerate(sounds):
        batch[row, : len(sound)] = torch.from_numpy(sound)
    return batch, lengths


def test_a_batch_has_the_features_that_kaldi_computes():
    sounds = [hiss(samples, seed=samples) for samples in (7919, 401, 31013)]
    features, counts = FilterBank()(*padded(sounds))
    for row, sound in enumerate(sounds):
        reference = kaldi_fbank(sound)
        assert counts[row] == len(reference)
        found = features[row, : counts[row]].numpy()
        assert np.abs(found - reference).max() < TOLERANCE
        assert np.median(np.abs(found - reference)) < 1e-5
        assert not features[row, counts[row] :].any()


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100])
def test_frames_of_any_rate_are_kaldis(rate):
    sound = hiss(rate + 13)
    features, [count] = FilterBank(rate, 41)(*padded([sound]))
    reference = kaldi_fbank(sound, rate, 41)
    assert count == len(reference) == frame_count(len(sound), rate)
    assert np.abs(features[0].numpy() - reference).max() < TOLERANCE


def test_longer_frames_are_kaldis_with_silence_around_the_sound():
    sounds = [hiss(3001), hiss(7919, 1)]
    features, counts = FilterBank(bins=37, window=46)(*padded(sounds))
    for row, sound in enumerate(sounds):
        reference = kaldi_fbank(np.pad(sound, (336 // 2, 336 // 2)), bins=37, window=46)
        assert counts[row] == len(reference) == frame_count(len(sound), 16000)
        np.testing.assert_allclose(features[row, : counts[row]], reference, atol=TOLERANCE)


@pytest.mark.parametrize(("orders", "bins"), [(13, 23), (41, 41)])
def test_cepstra_are_kaldis(orders, bins):
    kaldi = pytest.importorskip("kaldi_native_fbank")
    options = kaldi.MfccOptions()
    options.use_energy = False
    options.num_ceps = orders
    options.mel_opts.num_bins = bins
    sounds = [hiss(7919), hiss(1201)]
    features, counts = Cepstra(orders=orders)(*padded(sounds))
    for row, sound in enumerate(sounds):
        reference = by_kaldi(kaldi.OnlineMfcc, options, sound, 16000)
        np.testing.assert_allclose(features[row, : counts[row]], reference, atol=10 * TOLERANCE)
        assert not features[row, counts[row] :].any()


def test_a_recording_has_the_same_features_alone_and_beside_a_longer_one():
    short, long, bank = hiss(1709), hiss(200_003, 1), FilterBank()
    [alone], [count] = bank(*padded([short]))
    beside, counts = bank(*padded([short, long]))
    assert counts[0] == count
    torch.testing.assert_close(beside[0, :count], alone, atol=1e-5, rtol=0.0)
    [long_alone], _ = bank(*padded([long]))  # more than a slab of frames
    torch.testing.assert_close(beside[1], long_alone, atol=1e-5, rtol=0.0)


def test_silence_is_the_floor_and_never_infinite():
    features, _ = FilterBank()(torch.zeros(1, 4000), [4000])
    assert features.unique().tolist() == pytest.approx([np.log(np.finfo(np.float32).eps)])


def test_too_short_a_recording_has_no_frames():
    features, counts = FilterBank(bins=23)(torch.zeros(2, 399), [399, 1])
    assert features.shape == (2, 0, 23)
    assert counts == [0, 0]
    features, counts = FilterBank(bins=23)(torch.zeros(2, 400), [400, 1])
    assert features.shape == (2, 1, 23)
    assert counts == [1, 0]


def test_autocast_does_not_coarsen_features():
    bank, batch = FilterBank(), padded([hiss(1709)])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features, _ = bank(*batch)
    assert torch.equal(features, bank(*batch)[0])


def test_too_many_bins_are_refused():
    with pytest.raises(ValueError, match="200 mel bins are too many for a rate of 16000 Hz"):
        FilterBank(bins=200)


def test_features_cost_less_than_a_hundredth_of_the_sound_and_no_more_than_twice_kaldis():
    sounds = [hiss(160_000, seed) for seed in range(4)]  # 40 seconds
    bank, batch = FilterBank(), padded(sounds)
    ours, others = [], []
    for _ in range(3):
        start = time.process_time()
        bank(*batch)
        middle = time.process_time()
        for sound in sounds:
            kaldi_fbank(sound)
        ours.append(middle - start)
        others.append(time.process_time() - middle)
    assert min(ours) < 40 / 100
    assert min(ours) < 2 * min(others)


@pytest.mark.cuda
def test_a_gpu_computes_the_same_features_and_is_not_waited_for():
    batch, lengths = padded([hiss(7919), hiss(401)])
    bank = FilterBank()
    expected, counts = bank(batch, lengths)
    batch, bank = batch.cuda(), bank.cuda()
    bank(batch, lengths)  # plans are made
    torch.cuda.set_sync_debug_mode("error")
    try:
        found, same = bank(batch, lengths)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert same == counts
    torch.testing.assert_close(found.cpu(), expected, atol=TOLERANCE, rtol=0.0)


def tone(pitch, seconds=0.53, rate=2000, loud=0.1):
    return (loud * np.sin(2 * np.pi * pitch * np.arange(int(seconds * rate)) / rate)).astype("f4")


def test_a_tone_has_the_power_of_its_pitch_in_the_middle_whatever_the_pitch():
    spacing = 2000 / 128  # Hz: frames of 60 ms have 120 samples, padded to 128
    bank = ToneBank(2000, 5, window=60)
    power = (0.1 / 2 * bank.spectrum.weights.sum()) ** 2  # of a sine of amplitude 0.1
    for pitch in (17 * spacing, 40 * spacing, 53 * spacing):
        [energies], [count] = bank(*padded([tone(pitch)]))
        inner = energies[3 : count - 3]  # frames without the silence around the recording
        assert inner[:, 2].exp().numpy() == pytest.approx(power.item(), rel=0.02)
        assert (inner.argmax(-1) == 2).all()


def test_the_frequencies_of_a_tone_are_those_of_a_fourier_transform():
    sound = tone(611, seconds=0.06) + hiss(120, seed=3).astype("f4") / 50
    [[energies]], _ = ToneBank(2000, 3, window=60)(*padded([sound[35:85]]))
    frame = np.zeros(120)
    frame[35:85] = sound[35:85]
    frame -= frame.mean()
    frame -= 0.97 * np.concatenate([frame[:1], frame[:-1]])
    power = np.abs(np.fft.rfft(frame * np.hanning(120) ** 0.85 * 2**15, 128)) ** 2
    power /= np.abs(1 - 0.97 * np.exp(-2j * np.pi * np.arange(65) / 128)) ** 2
    middle = 1 + power[1:-1].argmax()
    assert np.allclose(energies, np.log(power[middle - 1 : middle + 2]), atol=1e-3)


def test_a_tone_is_found_in_each_row_of_a_batch_and_padding_does_not_matter():
    sounds = [tone(703), tone(431, seconds=1.01), tone(550, seconds=0.02)]
    sounds = [sound + hiss(len(sound), seed=1).astype("f4") / 20 for sound in sounds]
    bank = ToneBank(2000, 7, window=60)
    features, counts = bank(*padded(sounds))
    assert counts == [51, 99, 0]
    for row, sound in enumerate(sounds[:2]):
        [alone], _ = bank(*padded([sound]))
        assert torch.allclose(features[row, : counts[row]], alone, atol=1e-4)
        assert not features[row, counts[row] :].any()


@pytest.mark.parametrize("bins", [6, 67])
def test_a_tone_has_as_many_frequencies_below_as_above(bins):
    with pytest.raises(ValueError, match="a tone has an odd number of bins, at most 65; take 7"):
        ToneBank(2000, bins, window=60)
