"""Forced alignment: the likeliest path of a given text, by Viterbi's algorithm.

The states of a row are its tokens with a blank before, between and behind them: - a - b -. A path
stays in a state, goes to the next one, or skips a blank between two different tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Span:
    """The frames of a token, from `start` up to but not including `end`."""

    start: int
    end: int


@torch.no_grad()
def ctc_align(
    log_probs: Float[Tensor, "B T V"],
    lengths: Sequence[int],
    texts: Sequence[Sequence[int]],
    *,
    blank: int,
) -> list[list[Span] | None]:
    """Where each token of each row lies; None where the frames are too few for the text.

    >>> scores = torch.full((1, 4, 3), -9.0)
    >>> scores[0, torch.arange(4), [0, 1, 1, 2]] = 0.0
    >>> ctc_align(scores, [4], [[1, 2]], blank=0)
    [[Span(start=1, end=3), Span(start=3, end=4)]]
    """
    states = states_of(texts, blank, log_probs.device)  # (B, S)
    sizes = torch.tensor([2 * len(text) + 1 for text in texts], device=log_probs.device)
    ends = torch.tensor(list(lengths), device=log_probs.device)
    best, steps = best_paths(log_probs.float(), states, ends)
    last = (sizes - 1)[:, None]
    finals = torch.cat([best.gather(1, last), best.gather(1, (last - 1).clamp(min=0))], 1)
    state = sizes - 1 - (finals.argmax(1) * (sizes > 1)).to(sizes.dtype)
    path = back(steps, state, ends).tolist()
    possible = (finals.amax(1) > -torch.inf).tolist()
    return [
        spans(row, length, len(text)) if fits else None
        for row, length, text, fits in zip(path, lengths, texts, possible, strict=True)
    ]


def states_of(
    texts: Sequence[Sequence[int]], blank: int, device: torch.device
) -> Int[Tensor, "B S"]:
    """The tokens of each row with blanks around them, padded with blanks."""
    size = 2 * max(map(len, texts), default=0) + 1
    states = torch.full((len(texts), size), blank)
    for row, text in enumerate(texts):
        states[row, 1 : 2 * len(text) : 2] = torch.tensor(list(text), dtype=torch.long)
    return states.to(device)


def best_paths(
    log_probs: Float[Tensor, "B T V"], states: Int[Tensor, "B S"], ends: Int[Tensor, " B"]
) -> tuple[Float[Tensor, "B S"], Int[Tensor, "T B S"]]:
    """The best path into each state at the end of each row, and how many states each step moves."""
    scores = log_probs.gather(2, states[:, None].expand(-1, log_probs.shape[1], -1))  # (B, T, S)
    skips = torch.zeros_like(states, dtype=torch.bool)
    skips[:, 3::2] = states[:, 3::2] != states[:, 1:-2:2]
    best = torch.full_like(scores[:, 0], -torch.inf)
    best[:, :1] = 0.0  # before the first frame, in front of the first blank
    steps = []
    for frame in range(log_probs.shape[1]):
        one, two = moved(best, 1), moved(best, 2).masked_fill(~skips, -torch.inf)
        if frame == 0:  # the first frame may be the first token at once
            two = torch.full_like(two, -torch.inf)
        entered, step = torch.stack([best, one, two]).max(0)
        entered = entered + scores[:, frame]
        best = torch.where((ends > frame)[:, None], entered, best)
        steps.append(step)
    return best, torch.stack(steps)


def moved(best: Float[Tensor, "B S"], by: int) -> Float[Tensor, "B S"]:
    """The scores so many states further."""
    return torch.nn.functional.pad(best, (by, 0), value=-torch.inf)[:, : best.shape[1]]


def back(
    steps: Int[Tensor, "T B S"], state: Int[Tensor, " B"], ends: Int[Tensor, " B"]
) -> Int[Tensor, "B T"]:
    """The state of every frame, from the last one back."""
    path = []
    for frame in range(len(steps) - 1, -1, -1):
        path.append(state)
        step = steps[frame].gather(1, state[:, None])[:, 0]
        state = torch.where(ends > frame, state - step, state)
    return torch.stack(path[::-1], 1)


def spans(path: Sequence[int], length: int, tokens: int) -> list[Span]:
    """Where each token lies on a path of states."""
    frames: list[list[int]] = [[] for _ in range(tokens)]
    for frame, state in enumerate(path[:length]):
        if state % 2:
            frames[state // 2].append(frame)
    return [Span(some[0], some[-1] + 1) for some in frames]
