"""CTC prefix beam search: the likeliest texts, each the sum of its paths. Hannun et al., 2014.

A beam is a prefix with two log-probabilities: of its paths that end in the blank, and of those that
end in its last token. A frame may leave the prefix as it is, or extend it by a token. After a
blank, the last token may follow again as a new one; without, it only continues:

    blank'          = logsumexp(blank, token) + score(-)
    token'          = token + score(last)
    token'(+ c)     = (blank if c is last else logsumexp(blank, token)) + score(c)

An extended prefix may be a beam already: then both are one, and their probabilities are added. With
as many beams as there are texts, the search is exact. A language model changes only which prefixes
are kept: the weighted log-probability of a prefix is added to the sum over its paths.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.decode.cancelling import raise_if_cancelled
from glassformer.decode.fusion import Fusion
from glassformer.decode.topk import topk

FACTOR = 6364136223846793005  # of the hashes by which prefixes are compared
EMPTY = 0  # the hash of the empty prefix
NOWHERE = -1  # the last token of the empty prefix, and the hash of its parent


@dataclass(frozen=True, kw_only=True, slots=True)
class CtcHypothesis:
    """A text.

    Attributes:
        score: What it is ranked by: the log-probability, with that of a language model if given.
        log_probability: Of the paths that the search kept of it.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Beams:
    """The prefixes of all rows.

    Attributes:
        blank, token: The log-probabilities of paths that end in the blank, and in a token.
        last: The last token.
        hash, parent: Of the prefix, and of the prefix without its last token.
        tokens, sizes: The prefix itself, with room for one token per frame, and its length.
        fused, next: What a language model adds for the prefix, and for every token after it.
    """

    blank: Float[Tensor, "B W"]
    token: Float[Tensor, "B W"]
    last: Int[Tensor, "B W"]
    hash: Int[Tensor, "B W"]
    parent: Int[Tensor, "B W"]
    tokens: Int[Tensor, "B W L"]
    sizes: Int[Tensor, "B W"]
    fused: Float[Tensor, "B W"]
    next: Float[Tensor, "B W #V"]

    @property
    def total(self) -> Float[Tensor, "B W"]:
        """The log-probability of each prefix."""
        return torch.logaddexp(self.blank, self.token)

    def only_where(self, running: Tensor, before: "Beams") -> "Beams":
        """These in rows that are running, and those before in the others."""
        pairs = {name: (getattr(self, name), getattr(before, name)) for name in self.__slots__}
        chosen = {
            name: torch.where(running.view(-1, *[1] * (new.ndim - 1)), new, old)
            for name, (new, old) in pairs.items()
        }
        return Beams(**chosen)


@torch.no_grad()
def ctc_prefix_beam(
    log_probs: Float[Tensor, "B T V"],
    lengths: Sequence[int],
    *,
    blank: int,
    width: int,
    fusion: Fusion | None = None,
) -> list[list[CtcHypothesis]]:
    """The best texts of each row, best first; at most `width`."""
    rows, frames, _ = log_probs.shape
    ends = torch.tensor(list(lengths), device=log_probs.device)
    beams = empty_beams(rows, width, frames, log_probs.device)
    beams = foreseen(beams, torch.ones_like(beams.sizes, dtype=torch.bool), fusion)
    for frame in range(max(lengths, default=0)):
        raise_if_cancelled()
        advanced = advance(beams, log_probs[:, frame].float(), blank, fusion)
        beams = advanced.only_where(ends > frame, beams)
    ended = beams.fused if fusion is None else beams.fused + beams.next[..., fusion.end]
    scores, order = (beams.total + ended).sort(dim=1, descending=True)
    row = torch.arange(rows, device=order.device)[:, None]
    chosen = (x[row, order].tolist() for x in (beams.tokens, beams.sizes, beams.total))
    return [
        [
            CtcHypothesis(tokens=tuple(tokens[:size]), score=score, log_probability=total)
            for tokens, size, total, score in zip(*beam, strict=True)
            if score > -torch.inf
        ]
        for beam in zip(*chosen, scores.tolist(), strict=True)
    ]


def empty_beams(rows: int, width: int, frames: int, device: torch.device) -> Beams:
    """The empty prefix in every row; other beams are impossible yet."""
    nothing = torch.full((rows, width), -torch.inf, device=device)
    start = nothing.clone()
    start[:, 0] = 0.0
    numbers = torch.zeros(rows, width, dtype=torch.long, device=device)
    return Beams(
        blank=start,
        token=nothing,
        last=numbers + NOWHERE,
        hash=numbers + EMPTY,
        parent=numbers + NOWHERE,
        tokens=numbers[:, :, None].expand(-1, -1, max(1, frames)).clone(),
        sizes=numbers,
        fused=torch.zeros_like(start),
        next=torch.zeros_like(start)[:, :, None],
    )


def foreseen(beams: Beams, changed: Bool[Tensor, "B W"], fusion: Fusion | None) -> Beams:
    """The beams with what a language model adds for the tokens after prefixes that changed."""
    if fusion is None:
        return beams
    found = fusion.next(beams.tokens[changed], beams.sizes[changed])  # (changed, V)
    after = beams.next.expand(-1, -1, found.shape[1]).clone()
    after[changed] = found
    return replace(beams, next=after)


def advance(beams: Beams, scores: Float[Tensor, "B V"], blank: int, fusion: Fusion | None) -> Beams:
    """The best prefixes after one more frame."""
    width, vocab_size = beams.last.shape[1], scores.shape[1]
    extended = extensions(beams, scores, blank)  # (B, W, V)
    kept, extended = merged(beams, scores, extended, blank)
    candidates = torch.cat([kept.total, extended.flatten(1)], 1)  # (B, W + W V)
    grown = (kept.fused[:, :, None] + kept.next).expand_as(extended)
    fused = torch.cat([kept.fused, grown.flatten(1)], 1)
    _, chosen = topk(candidates + fused, width)
    stays, at = chosen < width, (chosen - width).clamp(min=0)
    source = torch.where(stays, chosen, at // vocab_size)
    new = extend(kept, source, stays, at % vocab_size, candidates.gather(1, chosen))
    return foreseen(replace(new, fused=fused.gather(1, chosen)), ~stays, fusion)


def extensions(beams: Beams, scores: Float[Tensor, "B V"], blank: int) -> Float[Tensor, "B W V"]:
    """The log-probability of every prefix with every token after it."""
    total = beams.total[:, :, None].expand(-1, -1, scores.shape[1]).clone()
    again = beams.last.clamp(min=0)[:, :, None]
    after_blank = torch.where(beams.last == NOWHERE, beams.total, beams.blank)
    total = total.scatter(2, again, after_blank[:, :, None])
    found = total + scores[:, None]
    found[:, :, blank] = -torch.inf
    return found


def merged(
    beams: Beams, scores: Float[Tensor, "B V"], extended: Float[Tensor, "B W V"], blank: int
) -> tuple[Beams, Float[Tensor, "B W V"]]:
    """The prefixes as they are, with the extensions that lead to them; and the other extensions."""
    again = scores.gather(1, beams.last.clamp(min=0))  # (B, W)
    leads = beams.hash[:, :, None] == beams.parent[:, None]  # (B, from, to)
    leads = leads & (beams.total > -torch.inf)[:, None]
    to = beams.last.clamp(min=0)[:, None].expand_as(leads)
    arriving = extended.gather(2, to).masked_fill(~leads, -torch.inf)  # (B, from, to)
    token = torch.where(beams.last == NOWHERE, -torch.inf, beams.token + again)
    kept = replace(
        beams,
        blank=beams.total + scores[:, blank, None],
        token=torch.logaddexp(token, arriving.logsumexp(1)),
    )
    merged = torch.zeros_like(extended).scatter_add(2, to, leads.to(extended.dtype)) > 0
    return kept, extended.masked_fill(merged, -torch.inf)


def extend(
    kept: Beams,
    source: Int[Tensor, "B W"],
    stays: Bool[Tensor, "B W"],
    added: Int[Tensor, "B W"],
    total: Float[Tensor, "B W"],
) -> Beams:
    """The chosen prefixes: those that stay, and those with a token added to their source."""
    row = torch.arange(len(source), device=source.device)[:, None]
    old = Beams(**{name: getattr(kept, name)[row, source] for name in Beams.__slots__})
    room = old.sizes.clamp(max=old.tokens.shape[2] - 1)[:, :, None]
    written = torch.where(stays, old.tokens.gather(2, room)[:, :, 0], added)
    return Beams(
        blank=torch.where(stays, old.blank, -torch.inf),
        token=torch.where(stays, old.token, total),
        last=torch.where(stays, old.last, added),
        hash=torch.where(stays, old.hash, old.hash * FACTOR + added + 1),
        parent=torch.where(stays, old.parent, old.hash),
        tokens=old.tokens.scatter(2, room, written[:, :, None]),
        sizes=torch.where(stays, old.sizes, old.sizes + 1),
        fused=old.fused,
        next=old.next,
    )
