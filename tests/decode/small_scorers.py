"""Small scorers for the tests: what is likely next follows from all that was said, by a hash."""

from dataclasses import dataclass
from functools import cache

import torch

END = 0


@dataclass
class Said:
    """A state that remembers every token, as tensors do: (B, W, t)."""

    tokens: torch.Tensor

    def reorder(self, parents):
        row = torch.arange(len(parents))[:, None]
        return Said(self.tokens[row, parents])

    def select_rows(self, rows):
        return Said(self.tokens[rows])


@cache
def drawn(said, vocabulary, spread, end):
    """Scores of all tokens after these."""
    generator = torch.Generator().manual_seed(hash(said) % 2**31)
    scores = spread * torch.randn(vocabulary, generator=generator)
    scores[END] += end
    return scores.tolist()


class HashScorer:
    """Scores drawn at random, but always the same after the same tokens of the same row."""

    room = None

    def __init__(self, rows, vocabulary, *, spread=2.0, end=0.0, compact_below=1.0):
        self.first = torch.arange(rows) + 1000  # each row's source, so to speak
        self.vocabulary, self.spread, self.end = vocabulary, spread, end
        self.compact_below, self.asked = compact_below, []

    def begin(self, branches, length):
        return Said(torch.zeros(len(self.first), branches, 0, dtype=torch.long))

    def step(self, tokens, state):
        said = torch.cat([state.tokens, tokens[..., None]], -1)
        self.asked.append(tuple(tokens.shape))
        lines = [[self.scores(branch) for branch in row] for row in said.tolist()]
        return torch.tensor(lines), Said(said)

    def scores(self, said):
        return drawn(tuple(said), self.vocabulary, self.spread, self.end)

    def log_probabilities(self, row, tokens):
        """Of each token of a row, by the definition."""
        said, found = [int(self.first[row])], []
        for token in tokens:
            found.append(torch.tensor(self.scores(said)).log_softmax(-1)[token].item())
            said.append(token)
        return found
