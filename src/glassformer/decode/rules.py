"""Rules: constraints on the next token, given the tokens so far. Scores in and out.

    Repetition   a token that occurred already becomes less likely             Keskar et al., 2019
    NoRepeat     no n-gram of a given size occurs twice                        Paulus et al., 2017
    Forbidden    words that are never completed
    Length       no end before a minimum length
    Fused        the scores of a language model are added                      Gulcehre et al., 2015
    Prefix       the tokens that a row begins with; overrides all other rules

A token that is ruled out gets minus infinity. The rest is not normalised again, so that a score
stays the model's own. Scores are log-probabilities; where there is a penalty for repetition, greedy
decoding and sampling pass the model's scores as they are, which Keskar et al. divide. To add a
rule, write a class like these and create it in `build_rules`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.fusion import Fusion
from glassformer.decode.request import Request, pad_tokens

Scores = Float[Tensor, "B W V"]
BranchTokens = Int[Tensor, "B W t"]


class Rule(ABC):
    """Changes the scores of the next token."""

    @property
    def steady(self) -> bool:
        """Whether it does the same at every step, whatever the tokens so far."""
        return False

    @abstractmethod
    def __call__(self, scores: Scores, tokens: BranchTokens) -> Scores:
        """Scores of the next token under this rule."""

    def select_rows(self, rows: Int[Tensor, " selected"]) -> "Rule":
        """The rule for these rows only."""
        return self


@dataclass(frozen=True, eq=False, slots=True)
class Repetition(Rule):
    """Divides positive scores of tokens that occurred already by `factor`, multiplies others by it.

    As in Hugging Face: on a model's scores that is the penalty of the paper, which holds back even
    a token the model is sure of; on log-probabilities, in beam search, it multiplies.
    """

    factor: float
    prompts: Int[Tensor, "B P"]

    def __call__(self, scores: Scores, tokens: BranchTokens) -> Scores:
        repeated = token_mask(with_prompts(self.prompts, tokens), scores)
        penalised = torch.where(scores > 0, scores / self.factor, scores * self.factor)
        return torch.where(repeated, penalised, scores)

    def select_rows(self, rows: Int[Tensor, " selected"]) -> "Repetition":
        return replace(self, prompts=self.prompts[rows])


@dataclass(frozen=True, eq=False, slots=True)
class NoRepeat(Rule):
    """Rules out a token that would complete an n-gram of `size` tokens a second time."""

    size: int
    prompts: Int[Tensor, "B P"]

    def __call__(self, scores: Scores, tokens: BranchTokens) -> Scores:
        past = with_prompts(self.prompts, tokens)
        if past.shape[-1] < self.size:
            return scores
        ngrams = past.unfold(-1, self.size, 1)  # (B, W, n-grams, size)
        tail = past[..., past.shape[-1] - self.size + 1 :]  # (B, W, size - 1)
        same = ((ngrams[..., :-1] == tail[:, :, None]) & (tail >= 0)[:, :, None]).all(-1)
        repeated = token_mask(ngrams[..., -1].masked_fill(~same, -1), scores)
        return scores.masked_fill(repeated, -torch.inf)

    def select_rows(self, rows: Int[Tensor, " selected"]) -> "NoRepeat":
        return replace(self, prompts=self.prompts[rows])


@dataclass(frozen=True, eq=False, slots=True)
class Forbidden(Rule):
    """Rules out the last token of a word directly after the other tokens of the word.

    Attributes:
        words: (n, L), words of one length.
    """

    words: Int[Tensor, "n L"]

    @property
    def steady(self) -> bool:
        return self.words.shape[-1] == 1

    def __call__(self, scores: Scores, tokens: BranchTokens) -> Scores:
        if self.steady:
            return scores.index_fill(-1, self.words[:, 0], -torch.inf)
        beginning = self.words[:, :-1]  # (n, L - 1)
        length = beginning.shape[-1]
        if tokens.shape[-1] < length:
            return scores
        tail = tokens[..., tokens.shape[-1] - length :]  # (B, W, L - 1)
        begun = (tail[:, :, None] == beginning).all(-1)  # (B, W, n)
        last = self.words[:, -1].expand(begun.shape).masked_fill(~begun, -1)
        return scores.masked_fill(token_mask(last, scores), -torch.inf)


@dataclass(frozen=True, eq=False, slots=True)
class Length(Rule):
    """Rules out the end before `shortest` tokens."""

    shortest: int
    end: int

    def __call__(self, scores: Scores, tokens: BranchTokens) -> Scores:
        if tokens.shape[-1] >= self.shortest:
            return scores
        return scores.index_fill(-1, torch.tensor(self.end, device=scores.device), -torch.inf)


@dataclass(frozen=True, eq=False, slots=True)
class Fused(Rule):
    """Adds the weighted scores of a language model."""

    fusion: Fusion

    def __call__(self, scores: Scores, tokens: BranchTokens) -> Scores:
        prefixes = tokens.flatten(0, 1).clamp(min=0)
        sizes = torch.full((len(prefixes),), tokens.shape[-1], device=tokens.device)
        return scores + self.fusion.next(prefixes, sizes).view_as(scores)


@dataclass(frozen=True, eq=False, slots=True)
class Prefix:
    """The tokens that each row begins with, -1 after the prefix."""

    tokens: Int[Tensor, "B P"]

    def __call__(self, scores: Scores, log_probs: Scores, tokens: BranchTokens) -> Scores:
        """Scores under the other rules; inside the prefix, the model's own for the one token."""
        step = tokens.shape[-1]
        if step >= self.tokens.shape[-1]:
            return scores
        forced = self.tokens[:, step, None, None]  # (B, 1, 1)
        every = torch.arange(scores.shape[-1], device=scores.device)
        return torch.where(forced < 0, scores, log_probs.masked_fill(every != forced, -torch.inf))


@dataclass(frozen=True, eq=False, slots=True)
class Rules:
    """All rules of a request, in order."""

    rules: tuple[Rule, ...]
    prefix: Prefix

    def __call__(self, log_probs: Scores, tokens: BranchTokens) -> Scores:
        scores = log_probs
        for rule in self.rules:
            scores = rule(scores, tokens)
        return self.prefix(scores, log_probs, tokens)

    @property
    def steady(self) -> bool:
        """Whether they do the same at every step, whatever the tokens so far."""
        return not self.prefix.tokens.shape[-1] and all(rule.steady for rule in self.rules)

    def forbidden_only(self) -> "Rules":
        """The rules that required words do not override: forbidden words and the prefix."""
        rules = tuple(rule for rule in self.rules if isinstance(rule, Forbidden))
        return replace(self, rules=rules)

    def select_rows(self, rows: Int[Tensor, " selected"]) -> "Rules":
        """The rules for these rows only."""
        rules = tuple(rule.select_rows(rows) for rule in self.rules)
        return Rules(rules, Prefix(self.prefix.tokens[rows]))


def build_rules(request: Request, config: DecodeConfig, rows: int, device: torch.device) -> Rules:
    """The rules that the request and the settings call for."""
    prompts = pad_tokens(request.prompts or [()] * rows, device, left=True)
    rules: list[Rule] = []
    if config.repetition != 1:
        rules.append(Repetition(config.repetition, prompts))
    if config.no_repeat:
        rules.append(NoRepeat(config.no_repeat, prompts))
    rules += [Forbidden(pad_tokens(words, device)) for words in _by_length(request.forbidden)]
    if config.min_length and request.end >= 0:
        rules.append(Length(config.min_length, request.end))
    if request.fusion is not None:
        rules.append(Fused(request.fusion))
    return Rules(tuple(rules), Prefix(pad_tokens(request.prefix or [()] * rows, device)))


def scores_for_rules(scores: Scores, log_probs: Scores, config: DecodeConfig) -> Scores:
    """What the rules change in greedy decoding and sampling.

    A repetition penalty depends on the signs of scores, so it takes those of the model. The other
    rules do the same to both.
    """
    return log_probs if config.repetition == 1 else scores.to(torch.float32)


def with_prompts(prompts: Int[Tensor, "B P"], tokens: BranchTokens) -> Int[Tensor, "B W past"]:
    """The prompt, padded with -1 on the left, and the tokens after it."""
    if not prompts.shape[-1]:
        return tokens
    return torch.cat([prompts[:, None].expand(-1, tokens.shape[1], -1), tokens], -1)


def token_mask(tokens: Int[Tensor, "B W n"], scores: Scores) -> Bool[Tensor, "B W V"]:
    """True at these tokens; -1 stands for none."""
    size = scores.shape[-1]
    mask = torch.zeros(*scores.shape[:2], size + 1, dtype=torch.bool, device=scores.device)
    return mask.scatter(-1, tokens.where(tokens >= 0, size), True)[..., :size]


def _by_length(words: Sequence[Sequence[int]]) -> list[list[Sequence[int]]]:
    lengths = sorted({len(word) for word in words})
    return [[word for word in words if len(word) == length] for length in lengths]
