"""What is explained of a written text: its words, how likely each was, and what else was likely."""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.data.text.coders import SPECIALS
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.explaining.parts import AttentionMap, Target
from glassformer.explaining.subject import log_odds

OTHERS = 4  # alternatives to a word
LIKELY = 0.001  # the least probability of one
SUREST = 1e-30  # -log p: below, the odds would be infinite
CUT_OFF = "…"


def token_nll(
    logits: Float[Tensor, "*rows V"], chosen: Int[Tensor, "*rows"]
) -> Float[Tensor, "*rows"]:
    """-log p of the chosen tokens; exact where they are almost certain, too."""
    return F.softplus(-log_odds(logits, chosen))


def odds_of_nll(nll: Float[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
    """log p / (1 - p), given -log p.

    >>> odds_of_nll(-torch.tensor([0.5, 0.9]).log()).round(decimals=4).tolist()
    [0.0, 2.197200059890747]
    """
    nll = nll.clamp(min=SUREST)
    return -nll - (-torch.expm1(-nll)).log()


def tokens_of_target(tokenizer: Tokenizer, text: str) -> list[int]:
    """The tokens of a text that is explained as if it was written."""
    ids: list[int] = tokenizer.encode([text])[0].tolist()
    if not ids or Tokenizer.unknown in ids:
        why = "some of it is in no training text" if ids else "it is empty"
        raise GlassformerError(f"the model cannot write {text[:40]!r}: {why}; give another target")
    return ids


def word_target(
    text: str,
    log_probs: Float[Tensor, "T V"],
    ids: Sequence[int],
    places: Sequence[int],
    spell: Callable[[Sequence[int]], str],
    *,
    never: Sequence[int] = (),
    time: tuple[float, float] | None = None,
) -> Target:
    """A written word, with its probability and alternatives.

    An alternative leaves the word at any of its tokens: its probability is that of the tokens up to
    there, and the rest of it is cut off.

    Args:
        log_probs: Of every token of the vocabulary, at each place of the text.
        ids, places: The tokens of the text, and which of them spell the word.
        spell: From tokens to a text.
        never: Tokens that are no alternatives.
    """
    found, before = list[tuple[str, float]](), 0.0
    for turn, place in enumerate(places):
        line = log_probs[place].clone()
        line[[*never, ids[place]]] = -math.inf
        best = line.topk(min(OTHERS, len(line)))
        start = [ids[earlier] for earlier in places[:turn]]
        rest = CUT_OFF if turn + 1 < len(places) else ""
        for score, token in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            found.append((spell([*start, token]) + rest, math.exp(before + score)))
        before += float(log_probs[place, ids[place]])
    found = sorted((one for one in found if one[1] >= LIKELY), key=lambda one: -one[1])
    return Target(
        text=text, probability=math.exp(before), alternatives=tuple(found[:OTHERS]), time=time
    )


def spelt(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The text of tokens without blanks around it; a special last one by its name."""
    text = tokenizer.decode(list(ids))
    name = SPECIALS[ids[-1]] if ids[-1] < len(SPECIALS) else ""
    return (text.strip() or text) + name


def labelled_map(
    name: str, weights: Float[Tensor, "H T S"], queries: Sequence[str], keys: Sequence[str]
) -> AttentionMap:
    """The weights of a layer with their tokens.

    Vectors that are no tokens, such as the summaries of Linformer, are numbered.
    """
    sides = (
        tuple(names) if len(names) == size else tuple(str(number + 1) for number in range(size))
        for names, size in zip((queries, keys), weights.shape[1:], strict=True)
    )
    of_queries, of_keys = sides
    return AttentionMap(name=name, queries=of_queries, keys=of_keys, weights=weights.float().cpu())
