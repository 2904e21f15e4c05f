"""Rotary positions: rotate queries and keys by an angle that grows with position.

The angle between a query and a key then depends only on how far apart they are. Su et al., 2021.
To extend a model to longer texts than it was trained on, a `Scaling` slows the rotation down:
`Linear`, `Ntk`, `Yarn` or `Llama3`. To add one, write a class and list it in SCALINGS and in
`config.SCALING_NAMES`.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.core.positions.absolute import frequencies
from glassformer.core.positions.base import Position
from glassformer.core.shapes import ByHead, NewKeys, Queries

LOOKED_UP = 4096  # positions whose angles are kept in a table
Turns = tuple[Float[Tensor, "N half"], Float[Tensor, "N half"]]  # cosines and sines of positions


class Scaling(ABC):
    """How fast each pair of channels rotates, for texts `factor` times as long."""

    @abstractmethod
    def exact(self, width: int, base: float, device: torch.device) -> Float[Tensor, " half"]:
        """Radians per step, for each pair of channels, in float64."""

    def frequencies(self, width: int, base: float, device: torch.device) -> Float[Tensor, " half"]:
        """The same, rounded once, to float32."""
        return self.exact(width, base, device).to(device, torch.float32)

    @property
    def sharpness(self) -> float:
        """A factor on queries and keys that compensates for softmax over more keys."""
        return 1.0


@dataclass(frozen=True)
class Linear(Scaling):
    """Every pair rotates `factor` times slower: position interpolation. Chen et al., 2023."""

    factor: float

    def exact(self, width: int, base: float, device: torch.device) -> Float[Tensor, " half"]:
        return frequencies(width, device, base) / self.factor


@dataclass(frozen=True)
class Ntk(Scaling):
    """Slow pairs become slower, the fastest is unchanged: a larger base. bloc97, 2023."""

    factor: float

    def exact(self, width: int, base: float, device: torch.device) -> Float[Tensor, " half"]:
        return frequencies(width, device, base * self.factor ** (width / max(width - 2, 1)))


@dataclass(frozen=True)
class Yarn(Scaling):
    """Fast pairs are unchanged, slow ones interpolated, with a ramp between. Peng et al., 2023.

    Args:
        trained_length: The length the model was trained on.
        fast: A pair that completes this many turns within it is unchanged.
        slow: A pair that completes fewer turns than this is slowed by the full factor.
    """

    factor: float
    trained_length: int
    fast: float = 32.0
    slow: float = 1.0

    @property
    def sharpness(self) -> float:
        return 1.0 if self.factor <= 1 else 0.1 * math.log(self.factor) + 1.0

    def exact(self, width: int, base: float, device: torch.device) -> Float[Tensor, " half"]:
        own = frequencies(width, device, base)
        low = max(math.floor(self._pair_turning(self.fast, width, base)), 0)
        high = min(math.ceil(self._pair_turning(self.slow, width, base)), width - 1)
        pairs = torch.arange(len(own), device=own.device, dtype=own.dtype)
        slowed = ((pairs - low) / max(high - low, 0.001)).clamp(0, 1)
        return own / self.factor * slowed + own * (1 - slowed)

    def _pair_turning(self, times: float, width: int, base: float) -> float:
        """Which pair, as a fraction, completes `times` turns within the trained length."""
        return width * math.log(self.trained_length / (times * 2 * math.pi)) / (2 * math.log(base))


@dataclass(frozen=True)
class Llama3(Scaling):
    """Like `Yarn`, with a ramp over the number of turns, and no sharpness. Llama 3.1, 2024.

    Args:
        trained_length: The length the model was trained on.
        fast: A pair that completes this many turns within it is unchanged.
        slow: A pair that completes fewer turns than this is slowed by the full factor.
    """

    factor: float
    trained_length: int
    fast: float = 4.0
    slow: float = 1.0

    def exact(self, width: int, base: float, device: torch.device) -> Float[Tensor, " half"]:
        own = frequencies(width, device, base)
        turns = self.trained_length * own / (2 * math.pi)
        kept = ((turns - self.slow) / (self.fast - self.slow)).clamp(0, 1)
        return own / self.factor * (1 - kept) + own * kept


SCALINGS: dict[str, type[Linear] | type[Ntk] | type[Yarn] | type[Llama3]] = {
    "linear": Linear,
    "ntk": Ntk,
    "yarn": Yarn,
    "llama3": Llama3,
}


class Rotary(Position):
    """Rotate each pair of channels by position times frequency; angles are always fp32.

    Args:
        base: The slowest pair completes one turn in about 2π * base steps.
        scaling: How to extend to longer texts.
        fraction: Share of each head's channels that are rotated, the first ones; the others know no
            order. GPT-NeoX, 2022.
    """

    speed: Float[Tensor, " half"]
    table: Float[Tensor, "places 2 half"]  # cosine and sine at the first places

    def __init__(
        self,
        dim: int,
        heads: int,
        max_length: int,
        *,
        width: int | None = None,
        base: float = 10_000.0,
        scaling: Scaling | None = None,
        fraction: float = 1.0,
    ) -> None:
        super().__init__(dim, heads, max_length, width=width)
        self.rotated = int(self.width * fraction)
        if self.rotated % 2 or not self.rotated:
            of = "" if fraction == 1 else f", {fraction:g} of {self.width}"
            raise ValueError(
                f"rotary positions rotate pairs of channels, but a head has {self.rotated}{of}; "
                f"choose an even width"
            )
        self.base, self.scaling = base, scaling or Linear(1.0)
        self.register_buffer("speed", self._frequencies(torch.device("cpu")), persistent=False)
        table = torch.stack(self.cos_sin(torch.arange(min(max_length, LOOKED_UP))), dim=1)
        self.register_buffer("table", table, persistent=False)

    def _frequencies(self, device: torch.device) -> Float[Tensor, " half"]:
        return self.scaling.frequencies(self.rotated, self.base, device)

    def cos_sin(
        self, positions: Int[Tensor, "*at"]
    ) -> tuple[Float[Tensor, "*at half"], Float[Tensor, "*at half"]]:
        """Cosine and sine of the angle of each pair of channels, the same for all heads."""
        speed = self.speed
        if speed.dtype != torch.float32 or speed.device != positions.device:  # converted or moved
            speed = self._frequencies(positions.device)
        angle = positions[..., None] * speed  # (b, T, K / 2) or (N, K / 2)
        return angle.cos() * self.scaling.sharpness, angle.sin() * self.scaling.sharpness

    def turn(self, q: Queries, k: NewKeys, layout: Layout) -> tuple[Queries, NewKeys]:
        cos, sin = self._of_layout(layout, q.dtype)
        if self.rotated == self.width:
            return turned(q, cos, sin), turned(k, cos, sin)
        return partly_turned(q, cos, sin), partly_turned(k, cos, sin)

    def _of_layout(self, layout: Layout, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Cosine and sine at the places of a batch; eagerly, computed once for all layers.

        Compiled, they would be computed again for every head: they are looked up in a table.
        """
        if torch.compiler.is_compiling() and self._is_looked_up(layout):
            cos, sin = self.table[layout.positions].to(dtype).unbind(-2)
            return cos.unsqueeze(1), sin.unsqueeze(1)
        if layout.device.type != "cpu" or torch.compiler.is_compiling():
            return self._computed(layout, dtype)
        key = (self, dtype, torch.is_inference_mode_enabled())
        if key not in layout.memo:
            layout.memo[key] = self._computed(layout, dtype)
        return layout.memo[key]

    def _is_looked_up(self, layout: Layout) -> bool:
        """Whether the table has all places of a batch, and still the precision of fp32."""
        kept = self.table.dtype == torch.float32 and self.table.device.type == layout.device.type
        return kept and layout.reach <= len(self.table)

    def _computed(self, layout: Layout, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        cos, sin = self.cos_sin(layout.positions)
        return cos.to(dtype).unsqueeze(1), sin.to(dtype).unsqueeze(1)


def turned(x: ByHead, cos: Float[Tensor, "... half"], sin: Float[Tensor, "... half"]) -> ByHead:
    """Rotate channel j, a, together with channel j + K/2, b: a cos - b sin and b cos + a sin."""
    twice_cos, signed_sin = torch.cat([cos, cos], dim=-1), torch.cat([-sin, sin], dim=-1)
    return torch.addcmul(x * twice_cos, x.roll(cos.shape[-1], dims=-1), signed_sin)


def partly_turned(
    x: ByHead, cos: Float[Tensor, "... half"], sin: Float[Tensor, "... half"]
) -> ByHead:
    """Rotate as many channels as there are angles for; the others stay as they are."""
    first, rest = x.split([2 * cos.shape[-1], x.shape[-1] - 2 * cos.shape[-1]], dim=-1)
    return torch.cat([turned(first, cos, sin), rest], dim=-1)


def rotated(x: Float[Tensor, "N heads K"], turns: Turns | None) -> Float[Tensor, "N heads K"]:
    """Queries or keys at their positions."""
    if turns is None:
        return x
    cos, sin = (table[:, None].to(x.dtype) for table in turns)
    whole = 2 * cos.shape[-1] == x.shape[-1]
    return turned(x, cos, sin) if whole else partly_turned(x, cos, sin)
