"""An n-gram language model of tokens: interpolated Kneser-Ney. Chen and Goodman, 1998.

    p(w | h) = max(c(hw) - D, 0) / c(h) + D |{w : c(hw) > 0}| / c(h) p(w | h without its first)

c counts the longest n-grams; of a shorter one it counts the different tokens before it, except at
the start of a text, where there are none. D is n1 / (n1 + 2 n2), from how many n-grams occur once
and twice. Unseen tokens share a uniform rest.

An n-gram of order k is numbered by its place among the sorted keys (number of its first k - 1
tokens) V + last token, so those that share a context are neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from glassformer.files import replacing

TABLES = ("keys", "chances", "starts", "rests")


class NgramModel(nn.Module):
    """Log-probabilities of the next token; the `NextTokens` of a fusion.

    Args:
        tables: By name: `unigrams`, `start` (the token that stands before a text), and for each
            order k of 2 and more, `keys_k` and `chances_k` of its n-grams, `starts_k` where those
            of each context begin, and `rests_k`, what each context leaves to shorter ones.
    """

    unigrams: Float[Tensor, " V"]
    start: Int[Tensor, " 1"]

    def __init__(self, tables: dict[str, Tensor]) -> None:
        super().__init__()
        self.order = 1 + sum(name.startswith("keys_") for name in tables)
        for name, table in tables.items():
            self.register_buffer(name, table)

    @classmethod
    def learn(
        cls,
        texts: Sequence[Int[np.ndarray, " _"]],
        *,
        vocab_size: int,
        order: int,
        ends: tuple[int, int],
    ) -> "NgramModel":
        """Count the n-grams of texts.

        Args:
            ends: The tokens that stand before and after each text.
        """
        start, end = ends
        levels = counted([np.array([start, *text, end]) for text in texts], vocab_size, order)
        seen, rest = discounted(levels[0].counts, np.zeros(vocab_size, dtype=np.int64), 1)
        tables = {"unigrams": seen + rest / vocab_size, "start": np.array([start])}
        for k, level in enumerate(levels[1:], start=2):
            context = level.keys // vocab_size
            chances, rests = discounted(level.counts, context, len(levels[k - 2].counts))
            starts = np.searchsorted(context, np.arange(len(rests) + 1))
            values = (level.keys, chances, starts, rests)
            tables |= {f"{name}_{k}": table for name, table in zip(TABLES, values, strict=True)}
        return cls({name: as_tensor(table) for name, table in tables.items()})

    @torch.no_grad()
    def forward(self, tokens: Int[Tensor, "N L"], sizes: Int[Tensor, " N"]) -> Float[Tensor, "N V"]:
        """The log-probability of every next token after each prefix, on the device of these."""
        if self.start.device != tokens.device:
            self.to(tokens.device)
        rows, vocab_size = len(tokens), len(self.unigrams)
        window = self._window(tokens, sizes)  # (N, order - 1)
        chances, numbers = self.unigrams.repeat(rows, 1), window
        for k in range(2, self.order + 1):
            keys, found, starts, rests = (getattr(self, f"{name}_{k}") for name in TABLES)
            context = numbers[:, -1]
            known = context.clamp(min=0)
            chances *= torch.where(context < 0, 1.0, rests[known])[:, None]
            counts = torch.where(context < 0, 0, starts[known + 1] - starts[known])
            row = torch.repeat_interleave(torch.arange(rows, device=counts.device), counts)
            inside = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
            at = starts[known][row] + inside
            chances.view(-1).index_add_(0, row * vocab_size + keys[at] % vocab_size, found[at])
            if k < self.order:
                numbers = looked_up(keys, numbers[:, :-1], window[:, k - 1 :], vocab_size)
        return chances.log()

    @torch.no_grad()
    def likelihoods(
        self, tokens: Int[Tensor, "N L"], sizes: Int[Tensor, " N"], labels: Int[Tensor, " N"]
    ) -> Float[Tensor, " N"]:
        """The log-probability of one next token after each prefix."""
        vocab_size = len(self.unigrams)
        window = self._window(tokens, sizes)  # (N, order - 1)
        chances, numbers = self.unigrams[labels], window
        for k in range(2, self.order + 1):
            keys, found, _, rests = (getattr(self, f"{name}_{k}") for name in TABLES)
            context = numbers[:, -1]
            chances = chances * torch.where(context < 0, 1.0, rests[context.clamp(min=0)])
            at = looked_up(keys, context[:, None], labels[:, None], vocab_size)[:, 0]
            chances = chances + torch.where(at < 0, 0.0, found[at.clamp(min=0)])
            if k < self.order:
                numbers = looked_up(keys, numbers[:, :-1], window[:, k - 1 :], vocab_size)
        return chances.log()

    def _window(self, tokens: Int[Tensor, "N L"], sizes: Int[Tensor, " N"]) -> Int[Tensor, "N n"]:
        """The last tokens of each prefix, with the start before them, and -1 before that."""
        whole = torch.cat([self.start.expand(len(tokens), 1), tokens], 1)
        back = torch.arange(self.order - 2, -1, -1, device=tokens.device)
        at = sizes[:, None] - back
        return torch.where(at < 0, -1, whole.gather(1, at.clamp(min=0)))

    @property
    def bytes(self) -> int:
        """The size of its tables."""
        return sum(table.nbytes for table in self.buffers())

    def save(self, path: Path) -> None:
        """Write it to one file, atomically."""
        with replacing(path) as half:
            save_file(dict(self.state_dict()), half)

    @staticmethod
    def load(path: Path) -> "NgramModel":
        """Read what `save` wrote."""
        try:
            return NgramModel(load_file(path))
        except SafetensorError as error:
            raise ValueError(f"{path.name}: {error}") from None


@dataclass(frozen=True, eq=False, slots=True)
class Level:
    """The n-grams of one order: sorted keys, and counts as Kneser-Ney uses them."""

    keys: Int[np.ndarray, " grams"]
    counts: Int[np.ndarray, " grams"]


def counted(texts: Sequence[Int[np.ndarray, " _"]], vocab_size: int, order: int) -> list[Level]:
    """The n-grams of every order up to the longest that occurs; all texts start with one token."""
    tokens, sizes = np.concatenate(texts), np.array([len(text) for text in texts])
    left = np.repeat(sizes.cumsum(), sizes) - np.arange(len(tokens))  # to the end of the text
    first = left == np.repeat(sizes, sizes)  # where texts start
    counts = np.bincount(tokens[~first], minlength=vocab_size)
    levels, numbers = [Level(np.arange(vocab_size), counts)], tokens
    for k in range(2, min(order, sizes.max()) + 1):
        at = np.flatnonzero(left >= k)
        keys, example, inverse, counts = np.unique(
            numbers[at] * vocab_size + tokens[at + k - 1],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        # From here on, what is one token shorter is counted by the tokens before it.
        before = np.bincount(numbers[at[example] + 1], minlength=len(levels[-1].keys))
        levels[-1] = Level(levels[-1].keys, np.where(before, before, levels[-1].counts))
        levels.append(Level(keys, counts))
        numbers = np.zeros_like(tokens)
        numbers[at] = inverse
    return levels


def discounted(
    counts: Int[np.ndarray, " grams"], contexts: Int[np.ndarray, " grams"], size: int
) -> tuple[Float[np.ndarray, " grams"], Float[np.ndarray, " contexts"]]:
    """The discounted share of each n-gram in its context, and what each context leaves over."""
    once, twice = ((counts == n).sum() for n in (1, 2))
    discount = once / (once + 2 * twice) if once else 0.5
    total = np.bincount(contexts, counts, size)
    different = np.bincount(contexts, counts > 0, size)
    rests = np.where(total, discount * different / np.maximum(total, 1), 1.0)
    return np.maximum(counts - discount, 0) / np.maximum(total, 1)[contexts], rests


def looked_up(
    keys: Int[Tensor, " grams"],
    contexts: Int[Tensor, "N n"],
    tokens: Int[Tensor, "N n"],
    vocab_size: int,
) -> Int[Tensor, "N n"]:
    """The numbers of n-grams, by their contexts and last tokens; -1 for those never seen."""
    wanted = torch.where((contexts < 0) | (tokens < 0), -1, contexts * vocab_size + tokens)
    at = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    return torch.where(keys[at] == wanted, at, -1)


def as_tensor(table: np.ndarray) -> Tensor:
    """Shares as 32-bit floats, numbers as they are."""
    found = torch.from_numpy(np.ascontiguousarray(table))
    return found.float() if found.is_floating_point() else found.long()
