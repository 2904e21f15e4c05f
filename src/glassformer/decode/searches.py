"""Searches that are advanced from outside, a step at a time: `decode` for whoever has the model.

    Search   beam search (`beam`)
    Draws    one token after another, for several answers of a row or with a prefix

Given the scores of every branch, a search returns the next token of each, and the branch that it
continues.
"""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.beam import Search
from glassformer.decode.paths import Paths
from glassformer.decode.request import Request
from glassformer.decode.rules import build_rules
from glassformer.decode.stepwise import Choice, Ends, row_seeds

BranchNumbers = Int[Tensor, "B W"]


@runtime_checkable
class SteppedSearch(Protocol):
    """The state of a search, apart from the model's.

    Attributes:
        done: Which rows need no further steps.
    """

    done: Bool[Tensor, " B"]

    def advance(
        self, step: int, log_probs: Float[Tensor, "B W V"]
    ) -> tuple[BranchNumbers, BranchNumbers]:
        """Take one step; returns the newest token of every branch, and the branch it continues."""
        ...

    def answers(self) -> Paths:
        """The answers of each row so far, best first."""
        ...

    def select_rows(self, rows: Int[Tensor, " selected"]) -> None:
        """Continue with these rows only."""
        ...


class Draws:
    """Greedy decoding and sampling, with `config.best` branches in each row."""

    def __init__(
        self, request: Request, config: DecodeConfig, limits: list[int], device: torch.device
    ) -> None:
        rows = len(limits)
        self.choice = Choice(
            Paths.empty(rows, config.best, max(limits), config.alternatives, device),
            build_rules(request, config, rows, device),
            row_seeds(request, config, rows).to(device),
            config,
            captured=False,
        )
        self.ends = Ends(limits, config.best, request, config)
        self.done = torch.zeros(rows, dtype=torch.bool)

    def advance(
        self, step: int, log_probs: Float[Tensor, "B W V"]
    ) -> tuple[BranchNumbers, BranchNumbers]:
        tokens = self.choice(log_probs)
        self.ends.update(self.choice.paths.tokens[:, :, step].cpu())
        self.done = ~torch.tensor(self.ends.unfinished())
        return tokens.clone(), self.choice.each.expand_as(tokens)

    def answers(self) -> Paths:
        return self.ends.rank(self.choice.paths)

    def select_rows(self, rows: Int[Tensor, " selected"]) -> None:
        self.choice = self.choice.select_rows(rows)
        self.ends.select_rows(rows.cpu())
        self.done = self.done[rows.cpu()]


def stepped_search(
    request: Request, config: DecodeConfig, limits: list[int], device: torch.device
) -> SteppedSearch:
    """The search of these settings."""
    kind = Search if config.method == "beam" else Draws
    return kind(request, config, limits, device)


def branches_of(config: DecodeConfig) -> int:
    """How many branches a search follows in each row."""
    return config.beam.width if config.method == "beam" else config.best
