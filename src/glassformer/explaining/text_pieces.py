"""The pieces of a text: words or tokens as they are written, and the tokens of each.

Joined, the pieces are the text; white space belongs to the word before it. In scripts without
blanks, a word is a character. A text of few words, such as a name, is split into its tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Int

from glassformer.data.jagged import Jagged
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError, unknown

UNITS = ("word", "token")
FEW = 4  # words


@dataclass(frozen=True, eq=False, slots=True)
class TextPieces:
    """A text in pieces.

    Attributes:
        ids: The tokens of the text, without specials.
        piece_of: The piece of each token.
        names: The tokens as they are shown; an unknown one as the text that it stands for.
        strange: The pieces in which something was not seen in training.
    """

    pieces: tuple[str, ...]
    ids: Int[np.ndarray, " tokens"]
    piece_of: Int[np.ndarray, " tokens"]
    names: tuple[str, ...]
    strange: frozenset[int]


def text_pieces(tokenizer: Tokenizer, text: str, unit: str | None = None) -> TextPieces:
    """The pieces of a text.

    Args:
        unit: One of UNITS; None for words, or tokens if there are few words.
    """
    if unit not in (None, *UNITS):
        raise GlassformerError(unknown("unit", str(unit), UNITS))
    read = tokenizer.clean(text)
    [ids], spans = tokenizer.encode([text]), tokenizer.spans(read)
    groups = tokenizer.word_of(ids)
    by_token = unit == "token" or (unit is None and groups.max(initial=0) + 1 < FEW)
    if by_token:  # parts of one character stay together
        groups = np.cumsum(np.diff(spans[:, 0], prepend=0) > 0)
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    last = np.append(first, len(ids))[1:] - 1
    begins: list[int] = []
    piece_of = np.zeros(len(ids), dtype=np.int64)
    for token, until in zip(first.tolist(), last.tolist(), strict=True):
        start, end = int(spans[token, 0]), int(spans[until, 1])
        visible = read[start:end].lstrip()
        if by_token:
            begins.append(start)
        elif visible or not begins:  # white space joins the word before it
            begins.append(end - len(visible))
        piece_of[token : until + 1] = len(begins) - 1
    return TextPieces(
        _cut(tokenizer, text, read, begins),
        ids.astype(np.int64),
        piece_of,
        tuple(_names(tokenizer, read, ids, spans)),
        frozenset(piece_of[tokenizer.strange(read, ids)].tolist()),
    )


def _names(
    tokenizer: Tokenizer,
    read: str,
    ids: Int[np.ndarray, " tokens"],
    spans: Int[np.ndarray, "tokens 2"],
) -> Iterator[str]:
    """Tokens as they are shown, an unknown one by its text: a name for all says nothing."""
    for token, piece, span in zip(ids.tolist(), tokenizer.pieces(ids), spans, strict=True):
        yield f"{read[slice(*span)]} (unknown)" if token == tokenizer.unknown else piece


def _cut(tokenizer: Tokenizer, text: str, read: str, begins: list[int]) -> tuple[str, ...]:
    """A text cut where its cleaned form is."""
    sizes = [1] * len(text)
    if len(read) != len(text):
        sizes = [len(tokenizer.clean(character)) for character in text]
    if sum(sizes) != len(read):
        text, sizes = read, [1] * len(read)
    origin = [*np.repeat(np.arange(len(text)), sizes).tolist(), len(text)]
    edges = [0, *(origin[begin] for begin in begins[1:]), len(text)]
    return tuple(text[a:b] for a, b in pairwise(edges)) if begins else ()


def rows_with(
    rows: Jagged,
    owner: Int[np.ndarray, " tokens"],
    kept: Bool[np.ndarray, "variants pieces"],
) -> Jagged:
    """Rows of tokens, once for each variant, with the tokens of some pieces only.

    Args:
        owner: The piece of each token; -1 for one that always stays.
    """
    stays = np.concatenate([kept, np.ones((len(kept), 1), dtype=bool)], axis=1)[:, owner]
    values = np.broadcast_to(rows.values, stays.shape)[stays]
    counts = np.concatenate([np.zeros((len(kept), 1), dtype=np.int64), stays.cumsum(1)], axis=1)
    edges = np.append(rows.starts, len(rows.values))
    return Jagged(values, np.diff(counts[:, edges], axis=1).flatten())
