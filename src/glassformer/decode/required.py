"""Words that must be said: a beam in which ways with few and with many of them both survive.

A way is as far as the tokens it has of its words: those of words said in full, and the beginning it
has just said of another. Ways that are equally far compete with each other; the best of each such
bank come first, then the second best, and so on (Post and Vilar, 2018; Hu et al., 2019). The next
token of every missing word is always among the candidates.

No way may end while a word is missing, and when the tokens left are just enough for what is
missing, nothing else may be said: so every answer has all of its words.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.decode.request import Request, table
from glassformer.decode.rules import marked

Said = Int[Tensor, "B W t"]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Required:
    """The words of every row.

    Attributes:
        words: (B, C, L) tokens, filled up with -1; a row with fewer words has empty ones.
        limits: (B, 1) the most tokens of each row.
    """

    words: Int[Tensor, "B C L"]
    limits: Int[Tensor, "B 1"]

    def kept(self, rows: Int[Tensor, " kept"]) -> "Required":
        """The words of these rows alone."""
        return replace(self, words=self.words[rows], limits=self.limits[rows])

    def ruled(self, scores: Float[Tensor, "B W V"], said: Said, end: int) -> Float[Tensor, "B W V"]:
        """No end while a word is missing; only missing words when there is room for no more."""
        missing = (self._lengths[:, None] * ~self._met(said)).sum(-1)  # (B, W) tokens
        is_end = torch.arange(scores.shape[-1], device=scores.device) == end
        scores = scores.masked_fill((missing > 0)[..., None] & is_end, -torch.inf)
        # Another token would break off a word that is begun, and all of it would be missing again.
        must = (missing > 0) & (missing >= self.limits - said.shape[-1])
        begun = self._begun(said)
        next_of_furthest = self._next(said).masked_fill(begun < begun.amax(-1, keepdim=True), -1)
        allowed = marked(next_of_furthest, scores)
        return scores.masked_fill(must[..., None] & ~allowed, -torch.inf)

    def joined(
        self,
        values: Float[Tensor, "B W k"],
        tokens: Int[Tensor, "B W k"],
        scores: Float[Tensor, "B W V"],
        said: Said,
    ) -> tuple[Float[Tensor, "B W more"], Int[Tensor, "B W more"]]:
        """These candidates, and the next token of every missing word that is not among them."""
        new = self._next(said)  # (B, W, C)
        known = (new[..., None] == tokens[:, :, None]).any(-1)
        same = new[..., None] == new[:, :, None]  # (B, W, C, C)
        twice = same.tril(-1).any(-1)
        worth = scores.gather(-1, new.clamp(min=0))
        worth = worth.masked_fill((new < 0) | known | twice, -torch.inf)
        return torch.cat([values, worth], -1), torch.cat([tokens, new.clamp(min=0)], -1)

    def order(
        self,
        worth: Float[Tensor, "B n"],
        parents: Int[Tensor, "B n"],
        tokens: Int[Tensor, "B n"],
        said: Said,
    ) -> Int[Tensor, "B n"]:
        """Candidates in turns: the best of every bank, the fullest bank first, then the second."""
        row = torch.arange(len(worth), device=worth.device)[:, None]
        said = torch.cat([said[row, parents], tokens[..., None]], -1)  # (B, n, t + 1)
        bank = (self._lengths[:, None] * self._met(said)).sum(-1) + self._begun(said).amax(-1)
        better = worth[:, None] > worth[..., None]  # (B, n, n): the second over the first
        place = torch.arange(worth.shape[1], device=worth.device)
        better |= (worth[:, None] == worth[..., None]) & (place < place[:, None])
        rank = (better & (bank[:, None] == bank[..., None])).sum(-1)
        rank = rank.masked_fill(worth == -torch.inf, worth.shape[1])
        fullest = int(self.words.shape[1] * self.words.shape[2])
        return (rank * (fullest + 1) + fullest - bank).argsort(dim=1, stable=True)

    @property
    def _lengths(self) -> Int[Tensor, "B C"]:
        return (self.words >= 0).sum(-1)

    def _met(self, said: Said) -> Bool[Tensor, "B W C"]:
        """Which words stand somewhere in what was said; empty ones always do."""
        size = self.words.shape[-1]
        words = self.words[:, None, :, None]  # (B, 1, C, 1, L)
        runs = F.pad(said, (0, size), value=-2).unfold(-1, size, 1)[
            :, :, None
        ]  # (B, W, 1, t + 1, L)
        return ((runs == words) | (words < 0)).all(-1).any(-1)

    def _begun(self, said: Said) -> Int[Tensor, "B W C"]:
        """How many tokens of each missing word were said last, from its first on."""
        length, words = said.shape[-1], self.words[:, None]  # (B, 1, C, L)
        begun = torch.zeros(*said.shape[:2], words.shape[2], dtype=torch.long, device=said.device)
        for count in range(1, min(length, words.shape[-1]) + 1):
            tail = said[:, :, None, length - count :]  # (B, W, 1, count)
            begun = begun.masked_fill((tail == words[..., :count]).all(-1), count)
        return begun.masked_fill(self._met(said), 0)

    def _next(self, said: Said) -> Int[Tensor, "B W C"]:
        """The token that goes on with each missing word; -1 where none is missing."""
        at = self._begun(said).clamp(max=self.words.shape[-1] - 1)
        words = self.words[:, None].expand(-1, said.shape[1], -1, -1)  # (B, W, C, L)
        return words.gather(-1, at[..., None])[..., 0].masked_fill(self._met(said), -1)


def required_of(
    request: Request, limits: Int[Tensor, "B 1"], device: torch.device
) -> Required | None:
    """The words of all rows, if any row has some."""
    if not any(request.required):
        return None
    most = max(map(len, request.required))
    lines = [word for row in request.required for word in [*row, *[()] * (most - len(row))]]
    words = table(lines, device).unflatten(0, (len(request.required), most))
    return Required(words=words, limits=limits)
