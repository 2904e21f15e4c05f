"""Log-mel filterbank energies and cepstra, as Kaldi computes them, for padded batches; and tones.

    frame     25 ms of sound every 10 ms, or more around them
              minus its mean; x[t] - 0.97 x[t-1]; times a window
    power     |FFT|², padded to a power of two
    mel       triangles, evenly spaced on the scale 1127 ln(1 + f / 700)
    log       of at least 1.2e-7, for sound in the range of 16-bit integers
    cepstra   a cosine transform of the logarithms, low orders only (MFCC)
    tone      instead of mel: the frequencies around the loudest one

Davis and Mermelstein, 1980; Povey et al., "The Kaldi Speech Recognition Toolkit", 2011. Frames are
computed a slab at a time, so that a long recording needs little more memory than its features.
Numbers of frames are integers known in advance, so that a GPU is never waited for.
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.layout import Layout, zero_padding

WINDOW, SHIFT = 25, 10  # milliseconds
PREEMPHASIS = 0.97
ROUNDER = 0.85  # the power of a Hann window that makes it Kaldi's own
LOWEST = 20.0  # Hz, where the first triangle begins; the last ends at half the rate
FULL_SCALE = 2.0**15  # Kaldi's samples are 16-bit integers
FEWEST_BINS = 23  # of cepstra
FLOOR = torch.finfo(torch.float32).eps
SLAB = 1 << 10  # frames that stay in a CPU's cache
GPU_SLAB = 1 << 15  # frames that keep a GPU busy, in a few hundred MB

Waveforms = Float[Tensor, "B T"]
Frames = Float[Tensor, "B F M"]
Power = Float[Tensor, "B F frequencies"]


def frame_count(samples: int, rate: int) -> int:
    """How many frames a recording has: those that fit.

    >>> frame_count(16000, 16000)
    98
    """
    window, shift = rate * WINDOW // 1000, rate * SHIFT // 1000
    return max(0, 1 + (samples - window) // shift)


class Spectrum(nn.Module):
    """The power of every frequency in every frame.

    Args:
        rate: Samples a second.
        window: How long a frame is, in milliseconds. One of more than 25 has the same middle.
    """

    weights: Tensor

    def __init__(self, rate: int, *, window: int) -> None:
        super().__init__()
        self.rate = rate
        self.width, self.shift = rate * window // 1000, rate * SHIFT // 1000
        self.more = self.width - rate * WINDOW // 1000  # samples, half of them on either side
        self.padded = 1 << (self.width - 1).bit_length()  # for the FFT
        self.frequencies = self.padded // 2 + 1
        hann = torch.hann_window(self.width, periodic=False, dtype=torch.float64)
        weights = hann**ROUNDER * FULL_SCALE
        self.register_buffer("weights", weights.float(), persistent=False)

    def forward(
        self, waveforms: Waveforms, lengths: Sequence[int], summed: Callable[[Power], Frames]
    ) -> tuple[Frames, list[int]]:
        """What `summed` makes of the power, 0 in padding, and each recording's number of frames."""
        counts = [frame_count(length, self.rate) for length in lengths]
        longest = max(counts, default=0)
        if not longest:
            return summed(waveforms.new_zeros(len(waveforms), 0, self.frequencies)), counts
        if self.more:
            waveforms = self._with_silence(waveforms, lengths)
        frames = waveforms.unfold(1, self.width, self.shift)[:, :longest]  # (B, F, W), a view
        slab = max(1, (GPU_SLAB if waveforms.is_cuda else SLAB) // len(waveforms))
        with torch.autocast(waveforms.device.type, enabled=False):
            parts = [summed(self._power(part)) for part in frames.split(slab, 1)]
        energies = torch.cat(parts, 1)
        return zero_padding(energies, Layout.padded(counts, device=energies.device)), counts

    def _with_silence(self, waveforms: Waveforms, lengths: Sequence[int]) -> Float[Tensor, "B W"]:
        """Rows with silence on both sides, as much as longer frames reach beyond them."""
        real = Layout.padded(list(lengths), device=waveforms.device)
        silenced = zero_padding(waveforms[..., None], real)[..., 0]
        return F.pad(silenced, (self.more // 2, self.more - self.more // 2))

    def _power(self, frames: Float[Tensor, "B F W"]) -> Power:
        frames = frames - frames.mean(-1, keepdim=True)
        before = torch.cat([frames[..., :1], frames[..., :-1]], -1)
        frames = torch.sub(frames, before, alpha=PREEMPHASIS) * self.weights
        spectrum = torch.view_as_real(torch.fft.rfft(frames, n=self.padded))
        return spectrum.square().sum(-1)


class FilterBank(nn.Module):
    """Sound between -1 and 1 to log-mel energies; 0 where a row is padding.

    Args:
        rate: Samples a second.
        bins: Number of mel bins (M).
        window: How long a frame is, in milliseconds.
    """

    triangles: Tensor

    def __init__(self, rate: int = 16000, bins: int = 80, *, window: int = WINDOW) -> None:
        super().__init__()
        self.spectrum = Spectrum(rate, window=window)
        triangles = _triangles(rate, bins, self.spectrum.padded)
        self.register_buffer("triangles", triangles, persistent=False)

    def forward(self, waveforms: Waveforms, lengths: Sequence[int]) -> tuple[Frames, list[int]]:
        """The log energies of every frame, and the number of frames of each recording."""
        return self.spectrum(waveforms, lengths, self._log_energies)

    def _log_energies(self, power: Power) -> Frames:
        return (power @ self.triangles).clamp_min(FLOOR).log()


class ToneBank(nn.Module):
    """Sound to log energies around its loudest pitch, so that a tone of any pitch looks alike.

    The loudest frequency has the highest mean power, relative to that of white noise.

    Args:
        bins: Number of neighbouring frequencies (M), odd: the loudest is in the middle.
    """

    noise: Tensor

    def __init__(self, rate: int = 16000, bins: int = 7, *, window: int = WINDOW) -> None:
        super().__init__()
        self.spectrum, self.bins = Spectrum(rate, window=window), bins
        frequencies = self.spectrum.frequencies
        if bins % 2 == 0 or bins > frequencies:
            raise ValueError(f"a tone has an odd number of bins, at most {frequencies}; take 7")
        angles = torch.linspace(0, math.pi, frequencies, dtype=torch.float64)
        noise = 1 + PREEMPHASIS**2 - 2 * PREEMPHASIS * angles.cos()  # |1 - 0.97 exp(-i angle)|²
        self.register_buffer("noise", noise.float(), persistent=False)

    def forward(self, waveforms: Waveforms, lengths: Sequence[int]) -> tuple[Frames, list[int]]:
        """The log energies of every frame, and the number of frames of each recording."""
        power, counts = self.spectrum(waveforms, lengths, lambda power: power / self.noise)
        side = self.bins // 2
        inner = power[..., side : power.shape[-1] - side]  # frequencies with enough neighbours
        lowest = inner.sum(1).argmax(-1, keepdim=True)  # (B, 1), of those that are kept
        kept = lowest + torch.arange(self.bins, device=power.device)  # (B, M)
        tone = power.gather(-1, kept[:, None].expand(-1, power.shape[1], -1))
        layout = Layout.padded(counts, device=power.device)
        return zero_padding(tone.clamp_min(FLOOR).log(), layout), counts


class Cepstra(nn.Module):
    """Sound to mel-frequency cepstral coefficients (MFCC), the zeroth among them.

    Args:
        orders: How many coefficients, of as many mel bins, but at least 23.
        lifter: Coefficient n is scaled by 1 + lifter/2 sin(pi n / lifter).
    """

    transform: Tensor

    def __init__(
        self, rate: int = 16000, orders: int = 13, *, window: int = WINDOW, lifter: float = 22.0
    ) -> None:
        super().__init__()
        bins = max(orders, FEWEST_BINS)
        self.filterbank = FilterBank(rate, bins, window=window)
        n = torch.arange(orders, dtype=torch.float64)
        angles = math.pi / bins * (torch.arange(bins, dtype=torch.float64)[:, None] + 0.5) * n
        transform = angles.cos() * math.sqrt(2 / bins)  # (M, orders)
        transform[:, 0] = math.sqrt(1 / bins)
        transform *= 1 + lifter / 2 * (math.pi * n / lifter).sin()
        self.register_buffer("transform", transform.float(), persistent=False)

    def forward(self, waveforms: Waveforms, lengths: Sequence[int]) -> tuple[Frames, list[int]]:
        """The coefficients of every frame, and the number of frames of each recording."""
        energies, counts = self.filterbank(waveforms, lengths)
        with torch.autocast(energies.device.type, enabled=False):
            return energies @ self.transform, counts


def _triangles(rate: int, bins: int, padded: int) -> Float[Tensor, "frequencies M"]:
    """The share of each frequency in each bin: triangles on the mel scale, of height 1."""
    lowest, highest = _mel(torch.tensor([LOWEST, rate / 2], dtype=torch.float64)).tolist()
    edges = torch.linspace(lowest, highest, bins + 2, dtype=torch.float64)
    frequencies = _mel(torch.arange(padded // 2 + 1, dtype=torch.float64) * rate / padded)[:, None]
    step = edges[1] - edges[0]
    shares = (1 - (frequencies - edges[1:-1]).abs() / step).clamp_min(0)
    if not shares.sum(0).all():
        raise ValueError(f"{bins} mel bins are too many for a rate of {rate} Hz; take fewer")
    return shares.float()


def bin_of(frequency: int | float, rate: int, bins: int) -> float:
    """Where a frequency lies among mel bins: 0 in the middle of the first.

    >>> round(bin_of(4000, rate=8000, bins=40))
    40
    """
    low, at, high = _mel(torch.tensor([LOWEST, frequency, rate / 2])).tolist()
    return (at - low) / (high - low) * (bins + 1) - 1


def _mel(frequencies: Tensor) -> Tensor:
    return 1127 * (1 + frequencies / 700).log()
