"""Words that must be written: a beam in which branches with few and with many of them both survive.

Branches that miss equally many tokens of their words compete with each other; the best of each such
bank come first, then the second best, and so on (Post and Vilar, 2018; Hu et al., 2019). Every
token that brings a branch nearer to its words is among the candidates.

A token is out where too few places would be left behind it for the words that are missing, and no
branch may end while one is: so every answer has all of its words, and no answer that could have
them is lost. Only forbidden words are above them: where the other rules leave a branch no way to
its words (a run of tokens that must not come twice), those rules give way. A text to stop at counts
only behind the last word. What counts as having a word is in `automaton.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.automaton import NEVER, Automaton, Words, automaton_of
from glassformer.decode.request import Request, Tokens, no_room
from glassformer.errors import GlassformerError

MOST_WORDS = 10  # of a row: states double with every word
States = Int[Tensor, "B W"]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Required:
    """The words of every row, as tables over the states of their automata.

    Attributes:
        following: The state after a token of each class, in each of n automata.
        missing: The least number of tokens that a state needs to have all words.
        class_of: The class of every token.
        token_of: The token of every class; -1 where it has several or none.
        automata: The automaton of each row.
        limits: The most tokens of each row.
        longest: The largest of these limits.
        words: The words of each row.
    """

    following: Int[Tensor, "n S A"]
    missing: Int[Tensor, "n S"]
    class_of: Int[Tensor, "n V"]
    token_of: Int[Tensor, "n A"]
    automata: Int[Tensor, " B"]
    limits: Int[Tensor, "B 1"]
    longest: int
    words: Sequence[Words]

    def kept(self, rows: Int[Tensor, " kept"]) -> "Required":
        """The words of these rows alone."""
        return replace(
            self,
            automata=self.automata[rows],
            limits=self.limits[rows],
            words=[self.words[row] for row in rows.tolist()],
        )

    def ruled(
        self,
        scores: Float[Tensor, "B W V"],
        unruled: Float[Tensor, "B W V"],
        states: States,
        step: int,
    ) -> Float[Tensor, "B W V"]:
        """No token behind which too few places are left, and no end while a word is missing.

        Args:
            unruled: Scores under fewer rules, for branches that the others leave no way to the
                words: there, the tokens that lead to them may be written all the same.
        """
        now, after = self._missing(states)  # (B, W), (B, W, A)
        classes = self.class_of[self.automata][:, None].expand(scores.shape)
        affordable = after < (self.limits - step)[..., None]
        ruled = scores.masked_fill(~affordable.gather(-1, classes), -torch.inf)
        nearer = (after < now[..., None]).gather(-1, classes)
        stuck = (ruled.amax(-1) == -torch.inf)[..., None]
        return torch.where(stuck, unruled.masked_fill(~nearer, -torch.inf), ruled)

    def joined(
        self,
        values: Float[Tensor, "B W k"],
        tokens: Int[Tensor, "B W k"],
        scores: Float[Tensor, "B W V"],
        states: States,
    ) -> tuple[Float[Tensor, "B W more"], Int[Tensor, "B W more"]]:
        """These candidates, and every token that brings a word nearer and is not among them."""
        now, after = self._missing(states)  # (B, W), (B, W, A)
        nearer = after < now[..., None]
        new = self.token_of[self.automata][:, None].expand(nearer.shape)
        known = (new[..., None] == tokens[:, :, None]).any(-1)
        worth = scores.gather(-1, new.clamp(min=0))
        worth = worth.masked_fill((new < 0) | known | ~nearer, -torch.inf)
        return torch.cat([values, worth], -1), torch.cat([tokens, new.clamp(min=0)], -1)

    def order(
        self,
        worth: Float[Tensor, "B n"],
        parents: Int[Tensor, "B n"],
        tokens: Int[Tensor, "B n"],
        states: States,
    ) -> Int[Tensor, "B n"]:
        """Candidates in turns: the best of every bank, the fullest bank first, then the second."""
        never = self.longest + 1
        bank, _ = self._missing(self.stepped(states, parents, tokens))
        bank = bank.clamp(max=never)
        rank = ranks(worth, bank).masked_fill(worth == -torch.inf, worth.shape[1])
        return (rank * (never + 1) + bank).argsort(dim=1, stable=True)

    def stepped(
        self, states: States, parents: Int[Tensor, "B n"], tokens: Int[Tensor, "B n"]
    ) -> Int[Tensor, "B n"]:
        """The states of the branches that go on from these parents with these tokens."""
        classes = self.class_of[self.automata].gather(1, tokens)
        return self.following[self.automata[:, None], states.gather(1, parents), classes]

    def _missing(self, states: States) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B W A"]]:
        """What states miss, and what those behind a token of each class do."""
        mine = self.automata[:, None]
        after = self.missing[mine[..., None], self.following[mine, states]]
        return self.missing[mine, states], after


def required_of(
    request: Request, config: DecodeConfig, limits: Int[Tensor, "B 1"], vocab_size: int
) -> Required | None:
    """The words of all rows, if any row has some; refused where they do not fit."""
    if not any(request.required):
        return None
    longest: list[int] = limits[:, 0].tolist()
    words = [words_of(request, row) for row in range(len(longest))]
    kinds = list(dict.fromkeys(words))
    _refuse_too_many(words)
    automata = [automaton_of(kind, vocab_size, request.end) for kind in kinds]
    own = [kinds.index(its_words) for its_words in words]
    for row, limit in enumerate(longest):
        prefix = request.prefix[row] if request.prefix else ()
        _refuse_too_long(row, automata[own[row]], prefix, limit, config)
    device = limits.device
    return Required(
        following=_stacked([one.following for one in automata], -1, device),
        missing=_stacked([one.missing for one in automata], NEVER, device),
        class_of=_stacked([one.class_of for one in automata], -1, device),
        token_of=_stacked([one.token_of for one in automata], -1, device),
        automata=torch.tensor(own, device=device),
        limits=limits,
        longest=max(longest),
        words=words,
    )


def words_of(request: Request, row: int) -> Words:
    """The words of one row, each once."""
    words = [tuple(word) for word in request.required[row]]
    openings = request.openings[row] if request.openings else [()] * len(words)
    pairs = list(dict.fromkeys(zip(words, map(tuple, openings), strict=True)))
    before = request.before[row] if request.before else ()
    return Words(
        tuple(word for word, _ in pairs),
        tuple(opening for _, opening in pairs),
        tuple(request.continuing),
        tuple(request.separating),
        not before or before[-1] in request.separating,
    )


def _refuse_too_many(words: Sequence[Words]) -> None:
    for row, its_words in enumerate(words):
        if len(its_words.words) > MOST_WORDS:
            raise GlassformerError(
                f"row {row + 1}: {len(its_words.words)} required words are too many to search for; "
                f"ask for at most {MOST_WORDS}"
            )


def _refuse_too_long(
    row: int, automaton: Automaton, prefix: Tokens, limit: int, config: DecodeConfig
) -> None:
    state = 0
    for token in prefix:
        state = automaton.following[state, automaton.class_of[token]]
    needed = len(prefix) + int(automaton.missing[state])
    if needed > limit:
        raise no_room(row, needed, limit, config)


def _stacked(arrays: Sequence[np.ndarray], fill: int, device: torch.device) -> Tensor:
    """Arrays of different sizes as one tensor, filled up."""
    shape = np.max([array.shape for array in arrays], axis=0)
    out = np.full((len(arrays), *shape), fill)
    for line, array in zip(out, arrays, strict=True):
        line[tuple(map(slice, array.shape))] = array
    return torch.from_numpy(out).to(device)


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
