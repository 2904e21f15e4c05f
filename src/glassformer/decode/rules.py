"""Rules: what may be said next, given what was said. Each takes and gives log-probabilities.

    Repetition   a token that stands there already becomes less likely         Keskar et al., 2019
    NoRepeat     no run of so many tokens comes twice                          Paulus et al., 2017
    Forbidden    words that are never completed
    Length       no end before so many tokens
    Prefix       the tokens that a row begins with; it overrules the others

What a rule excludes gets minus infinity. What remains is not made to sum to one again, so that a
score stays the model's own. To add a rule, write a class like these and make it in `rules_of`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.request import Request, table

Scores = Float[Tensor, "B W V"]
Said = Int[Tensor, "B W t"]


class Rule(ABC):
    """Changes what is likely next."""

    @abstractmethod
    def __call__(self, scores: Scores, said: Said) -> Scores:
        """Log-probabilities of the next token under this rule."""

    def kept(self, rows: Int[Tensor, " kept"]) -> "Rule":
        """The rule for these rows alone."""
        return self


@dataclass(frozen=True, eq=False, slots=True)
class Repetition(Rule):
    """The log-probability of what was said times `factor`."""

    factor: float
    before: Int[Tensor, "B P"]

    def __call__(self, scores: Scores, said: Said) -> Scores:
        again = marked(history(self.before, said), scores)
        return torch.where(again, scores * self.factor, scores)

    def kept(self, rows: Int[Tensor, " kept"]) -> "Repetition":
        return replace(self, before=self.before[rows])


@dataclass(frozen=True, eq=False, slots=True)
class NoRepeat(Rule):
    """A token is out where it would complete a run of `size` tokens that was said."""

    size: int
    before: Int[Tensor, "B P"]

    def __call__(self, scores: Scores, said: Said) -> Scores:
        past = history(self.before, said)
        if past.shape[-1] < self.size:
            return scores
        runs = past.unfold(-1, self.size, 1)  # (B, W, runs, size)
        tail = past[..., past.shape[-1] - self.size + 1 :]  # (B, W, size - 1)
        same = ((runs[..., :-1] == tail[:, :, None]) & (tail >= 0)[:, :, None]).all(-1)
        return scores.masked_fill(marked(runs[..., -1].masked_fill(~same, -1), scores), -torch.inf)

    def kept(self, rows: Int[Tensor, " kept"]) -> "NoRepeat":
        return replace(self, before=self.before[rows])


@dataclass(frozen=True, eq=False, slots=True)
class Forbidden(Rule):
    """The last token of a word is out where the tokens before it were just said.

    Attributes:
        words: (n, L), words of one length.
    """

    words: Int[Tensor, "n L"]

    def __call__(self, scores: Scores, said: Said) -> Scores:
        beginning = self.words[:, :-1]  # (n, L - 1)
        length = beginning.shape[-1]
        if said.shape[-1] < length:
            return scores
        tail = said[..., said.shape[-1] - length :]  # (B, W, L - 1)
        near = (tail[:, :, None] == beginning).all(-1)  # (B, W, n)
        out = self.words[:, -1].expand(near.shape).masked_fill(~near, -1)
        return scores.masked_fill(marked(out, scores), -torch.inf)


@dataclass(frozen=True, eq=False, slots=True)
class Length(Rule):
    """No end before `shortest` tokens."""

    shortest: int
    end: int

    def __call__(self, scores: Scores, said: Said) -> Scores:
        if said.shape[-1] >= self.shortest:
            return scores
        return scores.index_fill(-1, torch.tensor(self.end, device=scores.device), -torch.inf)


@dataclass(frozen=True, eq=False, slots=True)
class Prefix:
    """What each row begins with, -1 where it is free."""

    tokens: Int[Tensor, "B P"]

    def __call__(self, scores: Scores, own: Scores, said: Said) -> Scores:
        """Scores under the other rules; for a row still in its prefix, the model's own of it."""
        step = said.shape[-1]
        if step >= self.tokens.shape[-1]:
            return scores
        now = self.tokens[:, step, None, None]  # (B, 1, 1)
        every = torch.arange(scores.shape[-1], device=scores.device)
        return torch.where(now < 0, scores, own.masked_fill(every != now, -torch.inf))


@dataclass(frozen=True, eq=False, slots=True)
class Rules:
    """All rules of a request, in order."""

    rules: tuple[Rule, ...]
    prefix: Prefix

    def __call__(self, scores: Scores, said: Said) -> Scores:
        ruled = scores
        for rule in self.rules:
            ruled = rule(ruled, said)
        return self.prefix(ruled, scores, said)

    def forbidding(self) -> "Rules":
        """Those that no required word overrules: forbidden words, and the prefix."""
        return replace(
            self, rules=tuple(rule for rule in self.rules if isinstance(rule, Forbidden))
        )

    def kept(self, rows: Int[Tensor, " kept"]) -> "Rules":
        """The rules for these rows alone."""
        rules = tuple(rule.kept(rows) for rule in self.rules)
        return Rules(rules, Prefix(self.prefix.tokens[rows]))


def rules_of(request: Request, config: DecodeConfig, rows: int, device: torch.device) -> Rules:
    """Those rules that the request and the settings ask for."""
    before = table(request.before or [()] * rows, device, left=True)
    rules: list[Rule] = []
    if config.repetition != 1:
        rules.append(Repetition(config.repetition, before))
    if config.no_repeat:
        rules.append(NoRepeat(config.no_repeat, before))
    rules += [Forbidden(table(words, device)) for words in _by_length(request.forbidden)]
    if config.min_length and request.end >= 0:
        rules.append(Length(config.min_length, request.end))
    return Rules(tuple(rules), Prefix(table(request.prefix or [()] * rows, device)))


def history(before: Int[Tensor, "B P"], said: Said) -> Int[Tensor, "B W past"]:
    """What counts as said: the prompt, filled up with -1 on the left, and what was written."""
    if not before.shape[-1]:
        return said
    return torch.cat([before[:, None].expand(-1, said.shape[1], -1), said], -1)


def marked(tokens: Int[Tensor, "B W n"], scores: Scores) -> Bool[Tensor, "B W V"]:
    """True at these tokens; -1 marks none."""
    size = scores.shape[-1]
    marks = torch.zeros(*scores.shape[:2], size + 1, dtype=torch.bool, device=scores.device)
    return marks.scatter(-1, tokens.where(tokens >= 0, size), True)[..., :size]


def _by_length(words: Sequence[Sequence[int]]) -> list[list[Sequence[int]]]:
    lengths = sorted({len(word) for word in words})
    return [[word for word in words if len(word) == length] for length in lengths]
