"""Required words in beam search: branches with few and with many of them both survive.

Branches that need equally many tokens to complete their words compete with each other; the best of
each such bank come first, then the second best, and so on (Post and Vilar, 2018; Hu et al., 2019).
Every token that brings a branch closer to its words is among the candidates.

A token is ruled out if it leaves too few positions for the missing words, and no branch may
end while one is missing: every answer has all of its words, and no answer that could have them is
lost. If the other rules leave a branch no way to its words (an n-gram that must not repeat), the
words override them, except for forbidden words. A stop text counts only after the last word. What
counts as a word is in `automaton.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.automaton import NEVER, Automaton, RequiredWords, build_automaton
from glassformer.decode.request import Request, Tokens, too_long_error
from glassformer.errors import GlassformerError

MOST_WORDS = 10  # of a row: the number of states doubles with every word
States = Int[Tensor, "B W"]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Required:
    """The required words of every row, as tables over the states of their automata.

    Attributes:
        transitions: The state after a token of each class, in each of n automata.
        remaining: The minimum number of tokens until all words are complete, for each state.
        class_of: The class of every token.
        token_of: The token of every class; -1 if it has several or none.
        automata: The automaton of each row.
        limits: The maximum number of tokens of each row.
        longest: The largest of these limits.
        words: The words of each row.
    """

    transitions: Int[Tensor, "n S A"]
    remaining: Int[Tensor, "n S"]
    class_of: Int[Tensor, "n V"]
    token_of: Int[Tensor, "n A"]
    automata: Int[Tensor, " B"]
    limits: Int[Tensor, "B 1"]
    longest: int
    words: Sequence[RequiredWords]

    def select_rows(self, rows: Int[Tensor, " selected"]) -> "Required":
        """The words of these rows only."""
        return replace(
            self,
            automata=self.automata[rows],
            limits=self.limits[rows],
            words=[self.words[row] for row in rows.tolist()],
        )

    def constrain(
        self,
        scores: Float[Tensor, "B W V"],
        fallback: Float[Tensor, "B W V"],
        states: States,
        step: int,
    ) -> Float[Tensor, "B W V"]:
        """Scores without tokens that leave too few positions, or end while a word is missing.

        Args:
            fallback: Scores under fewer rules, for the tokens that lead to the words of a branch
                if `scores` leave it none.
        """
        now, after = self._remaining(states)  # (B, W), (B, W, A)
        classes = self.class_of[self.automata][:, None].expand(scores.shape)
        affordable = after < (self.limits - step)[..., None]
        constrained = scores.masked_fill(~affordable.gather(-1, classes), -torch.inf)
        closer = (after < now[..., None]).gather(-1, classes)
        stuck = (constrained.amax(-1) == -torch.inf)[..., None]
        return torch.where(stuck, fallback.masked_fill(~closer, -torch.inf), constrained)

    def add_candidates(
        self,
        values: Float[Tensor, "B W k"],
        tokens: Int[Tensor, "B W k"],
        scores: Float[Tensor, "B W V"],
        states: States,
    ) -> tuple[Float[Tensor, "B W more"], Int[Tensor, "B W more"]]:
        """These candidates, and every other token that brings a branch closer to its words."""
        now, after = self._remaining(states)  # (B, W), (B, W, A)
        closer = after < now[..., None]
        new = self.token_of[self.automata][:, None].expand(closer.shape)
        known = (new[..., None] == tokens[:, :, None]).any(-1)
        new_values = scores.gather(-1, new.clamp(min=0))
        new_values = new_values.masked_fill((new < 0) | known | ~closer, -torch.inf)
        return torch.cat([values, new_values], -1), torch.cat([tokens, new.clamp(min=0)], -1)

    def order(
        self,
        totals: Float[Tensor, "B n"],
        parents: Int[Tensor, "B n"],
        tokens: Int[Tensor, "B n"],
        states: States,
    ) -> Int[Tensor, "B n"]:
        """Candidates in turns: the best of every bank, fullest bank first, then the second best."""
        never = self.longest + 1
        bank, _ = self._remaining(self.advance(states, parents, tokens))
        bank = bank.clamp(max=never)
        rank = ranks(totals, bank).masked_fill(totals == -torch.inf, totals.shape[1])
        return (rank * (never + 1) + bank).argsort(dim=1, stable=True)

    def advance(
        self, states: States, parents: Int[Tensor, "B n"], tokens: Int[Tensor, "B n"]
    ) -> Int[Tensor, "B n"]:
        """The states of branches that continue these parents with these tokens."""
        classes = self.class_of[self.automata].gather(1, tokens)
        return self.transitions[self.automata[:, None], states.gather(1, parents), classes]

    def _remaining(self, states: States) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B W A"]]:
        """The tokens that states need, now and after a token of each class."""
        automata = self.automata[:, None]
        after = self.remaining[automata[..., None], self.transitions[automata, states]]
        return self.remaining[automata, states], after


def build_required(
    request: Request, config: DecodeConfig, limits: Int[Tensor, "B 1"], vocab_size: int
) -> Required | None:
    """The required words of all rows, if any row has some; refused if they do not fit."""
    if not any(request.required):
        return None
    maxima: list[int] = limits[:, 0].tolist()
    words = [row_words(request, row) for row in range(len(maxima))]
    _check_counts(words)
    kinds = list(dict.fromkeys(words))
    automata = [build_automaton(kind, vocab_size, request.end) for kind in kinds]
    own = [kinds.index(kind) for kind in words]
    for row, limit in enumerate(maxima):
        prefix = request.prefix[row] if request.prefix else ()
        _check_length(row, automata[own[row]], prefix, limit, config)
    device = limits.device
    return Required(
        transitions=_stack([one.transitions for one in automata], -1, device),
        remaining=_stack([one.remaining for one in automata], NEVER, device),
        class_of=_stack([one.class_of for one in automata], -1, device),
        token_of=_stack([one.token_of for one in automata], -1, device),
        automata=torch.tensor(own, device=device),
        limits=limits,
        longest=max(maxima),
        words=words,
    )


def row_words(request: Request, row: int) -> RequiredWords:
    """The required words of one row, without duplicates."""
    words = [tuple(word) for word in request.required[row]]
    openings = request.openings[row] if request.openings else [()] * len(words)
    pairs = list(dict.fromkeys(zip(words, map(tuple, openings), strict=True)))
    prompt = request.prompts[row] if request.prompts else ()
    return RequiredWords(
        tuple(word for word, _ in pairs),
        tuple(opening for _, opening in pairs),
        tuple(request.continuing),
        tuple(request.separating),
        not prompt or prompt[-1] in request.separating,
    )


def _check_counts(words: Sequence[RequiredWords]) -> None:
    for row, required in enumerate(words):
        if len(required.words) > MOST_WORDS:
            raise GlassformerError(
                f"row {row + 1}: {len(required.words)} required words are too many to search for; "
                f"require at most {MOST_WORDS}"
            )


def _check_length(
    row: int, automaton: Automaton, prefix: Tokens, limit: int, config: DecodeConfig
) -> None:
    state = 0
    for token in prefix:
        state = automaton.transitions[state, automaton.class_of[token]]
    needed = len(prefix) + int(automaton.remaining[state])
    if needed > limit:
        raise too_long_error(row, needed, limit, config)


def _stack(arrays: Sequence[np.ndarray], fill: int, device: torch.device) -> Tensor:
    """Arrays of different sizes as one padded tensor."""
    shape = np.max([array.shape for array in arrays], axis=0)
    stacked = np.full((len(arrays), *shape), fill)
    for line, array in zip(stacked, arrays, strict=True):
        line[tuple(map(slice, array.shape))] = array
    return torch.from_numpy(stacked).to(device)


def ranks(totals: Float[Tensor, "B n"], bank: Int[Tensor, "B n"]) -> Int[Tensor, "B n"]:
    """The rank of each within its bank, best first; ties keep their order.

    >>> ranks(torch.tensor([[3.0, 7.0, 5.0, 7.0]]), torch.tensor([[1, 0, 1, 0]])).tolist()
    [[1, 0, 0, 1]]
    """
    order = totals.argsort(dim=1, descending=True, stable=True)
    order = order.gather(1, bank.gather(1, order).argsort(dim=1, stable=True))
    banks = bank.gather(1, order)
    rank = torch.arange(totals.shape[1], device=totals.device) - torch.searchsorted(banks, banks)
    return torch.empty_like(order).scatter(1, order, rank)
