"""Words that must be said: a beam in which ways with few and with many of them both survive.

A way is as far as the tokens it has of its words: those of words said in full, and the beginning it
has just said of another. Ways that are equally far compete with each other; the best of each such
bank come first, then the second best, and so on (Post and Vilar, 2018; Hu et al., 2019). The next
token of every missing word is always among the candidates.

No way may end while a word is missing, and when the tokens left are just enough for what is
missing, nothing else may be said: so every answer has all of its words. A text to stop at counts
only behind the last of them. A word may be spelt otherwise where a row begins with it, and some
tokens may not follow it when it is first said.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.decode.request import Request, Tokens, table
from glassformer.decode.rules import marked

Said = Int[Tensor, "B W t"]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Required:
    """The words of every row.

    Attributes:
        words: (B, C, L) tokens, filled up with -1; a row with fewer words has empty ones.
        openings: (B, C, O) how each is spelt where a row begins with it; empty where it is not.
        limits: (B, 1) the most tokens of each row.
        continuing: (n,) tokens that would make another word of one that was just said.
    """

    words: Int[Tensor, "B C L"]
    openings: Int[Tensor, "B C O"]
    limits: Int[Tensor, "B 1"]
    continuing: Int[Tensor, " n"]

    def kept(self, rows: Int[Tensor, " kept"]) -> "Required":
        """The words of these rows alone."""
        return replace(
            self,
            words=self.words[rows],
            openings=self.openings[rows],
            limits=self.limits[rows],
        )

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
        scores = scores.masked_fill(must[..., None] & ~allowed, -torch.inf)
        return self._apart(scores, said) if len(self.continuing) else scores

    def _apart(self, scores: Float[Tensor, "B W V"], said: Said) -> Float[Tensor, "B W V"]:
        """No token that makes another word of one just said, unless nothing else may be said."""
        just = (self._met(said) & ~self._met(said[..., :-1])).any(-1)  # (B, W)
        without = scores.index_fill(-1, self.continuing, -torch.inf)
        possible = without.amax(-1) > -torch.inf
        return torch.where((just & possible)[..., None], without, scores)

    def joined(
        self,
        values: Float[Tensor, "B W k"],
        tokens: Int[Tensor, "B W k"],
        scores: Float[Tensor, "B W V"],
        said: Said,
    ) -> tuple[Float[Tensor, "B W more"], Int[Tensor, "B W more"]]:
        """These candidates, and the next token of every missing word that is not among them."""
        new = torch.cat([self._next(said), self._next_of_opening(said)], -1)  # (B, W, 2 C)
        known = (new[..., None] == tokens[:, :, None]).any(-1)
        same = new[..., None] == new[:, :, None]  # (B, W, 2 C, 2 C)
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
        length = min(said.shape[-1], self.words.shape[-1])  # of an opening that is begun
        opened = length * (self._next_of_opening(said) >= 0).any(-1)
        begun = torch.maximum(self._begun(said).amax(-1), opened)
        bank = (self._lengths[:, None] * self._met(said)).sum(-1) + begun
        rank = ranks(worth, bank).masked_fill(worth == -torch.inf, worth.shape[1])
        fullest = int(self.words.shape[1] * self.words.shape[2])
        return (rank * (fullest + 1) + fullest - bank).argsort(dim=1, stable=True)

    def listed(self) -> list[tuple[list[list[int]], list[list[int]]]]:
        """The words of every row and their openings, as lists."""
        words, openings = (
            [[[token for token in word if token >= 0] for word in row] for row in table.tolist()]
            for table in (self.words, self.openings)
        )
        return list(zip(words, openings, strict=True))

    @property
    def _lengths(self) -> Int[Tensor, "B C"]:
        return (self.words >= 0).sum(-1)

    def _met(self, said: Said) -> Bool[Tensor, "B W C"]:
        """Which words stand somewhere in what was said, or open it; empty ones always do."""
        size = self.words.shape[-1]
        words = self.words[:, None, :, None]  # (B, 1, C, 1, L)
        runs = F.pad(said, (0, size), value=-2).unfold(-1, size, 1)[
            :, :, None
        ]  # (B, W, 1, t + 1, L)
        return ((runs == words) | (words < 0)).all(-1).any(-1) | self._opened(said)

    def _opened(self, said: Said) -> Bool[Tensor, "B W C"]:
        """Which words what was said begins with, in the spelling that is for there."""
        size, openings = self.openings.shape[-1], self.openings[:, None]  # (B, 1, C, O)
        head = F.pad(said, (0, size), value=-2)[:, :, None, :size]  # (B, W, 1, O)
        same = (head == openings) | (openings < 0)
        return same.all(-1) & (openings >= 0).any(-1)

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

    def _next_of_opening(self, said: Said) -> Int[Tensor, "B W C"]:
        """The token that goes on with each missing word that opens the row; -1 for the others."""
        length, openings = said.shape[-1], self.openings[:, None]  # (B, 1, C, O)
        if length >= openings.shape[-1]:
            return torch.full_like(self._begun(said), -1)
        opened = (said[:, :, None] == openings[..., :length]).all(-1)  # (B, W, C)
        new = openings[..., length].expand(opened.shape)
        return new.masked_fill(~opened | self._met(said), -1)


def required_of(
    request: Request, limits: Int[Tensor, "B 1"], device: torch.device
) -> Required | None:
    """The words of all rows, if any row has some."""
    if not any(request.required):
        return None
    openings = request.openings or [()] * len(request.required)
    return Required(
        words=_tables(request.required, request.required, device),
        openings=_tables(openings, request.required, device),
        limits=limits,
        continuing=torch.tensor(request.continuing, dtype=torch.long, device=device),
    )


def _tables(
    rows: Sequence[Sequence[Tokens]], words: Sequence[Sequence[Tokens]], device: torch.device
) -> Int[Tensor, "B C L"]:
    """Lines of each row, as many as the row with the most words has, filled up with empty ones."""
    most = max(map(len, words))
    lines = [line for row in rows for line in [*row, *[()] * (most - len(row))]]
    return table(lines, device).unflatten(0, (len(rows), most))


def ranks(worth: Float[Tensor, "B n"], bank: Int[Tensor, "B n"]) -> Int[Tensor, "B n"]:
    """The place of each among those of its bank, from the best down; of equals, the first first.

    >>> ranks(torch.tensor([[3.0, 7.0, 5.0, 7.0]]), torch.tensor([[1, 0, 1, 0]])).tolist()
    [[1, 0, 0, 1]]
    """
    order = worth.argsort(dim=1, descending=True, stable=True)
    order = order.gather(1, bank.gather(1, order).argsort(dim=1, stable=True))
    banks = bank.gather(1, order)
    place = torch.arange(worth.shape[1], device=worth.device) - torch.searchsorted(banks, banks)
    return torch.empty_like(order).scatter(1, order, place)


def all_said(
    tokens: Tokens, words: Sequence[Tokens], openings: Sequence[Tokens] = ()
) -> int | None:
    """After how many tokens all words are said; None while one is missing.

    >>> all_said([4, 7, 1, 7], [[7], [1]]), all_said([4, 7], [[7], [1]])
    (3, None)
    >>> all_said([4, 7], [[9]], [[4]])
    1
    """
    said, ends = list(tokens), [0]
    for its_tokens, its_opening in zip_longest(words, openings, fillvalue=()):
        word, opening = list(its_tokens), list(its_opening)
        stops = range(len(word), len(said) + 1)
        end = next((stop for stop in stops if said[stop - len(word) : stop] == word), None)
        if opening and said[: len(opening)] == opening:
            end = len(opening)
        if end is None:
            return None
        ends.append(end)
    return max(ends)
