"""What every position scheme promises, and what each of them is.

The promises run over POSITIONS, so a new scheme is held to them the moment it is listed.
"""

import math

import pytest
import torch
from torch import nn

from glassformer.core.attention import Heads, MultiHeadAttention
from glassformer.core.layout import Layout, pack
from glassformer.core.masks import causal, everything
from glassformer.core.positions import (
    POSITIONS,
    T5,
    Alibi,
    Learned,
    Position,
    Rotary,
    Shaw,
    Sinusoidal,
    TransformerXL,
    Yarn,
    make_position,
)
from glassformer.core.positions.relative import alibi_slopes

B, H, T, S, D = 2, 3, 7, 13, 37  # all different and prime, so a swapped axis cannot hide
K = 2 * 5  # rotary turns pairs of channels, so a head cannot have a prime width
LONGEST = 31
ORDER = torch.tensor([3, 0, 6, 4, 1, 2, 5])

each_scheme = pytest.mark.parametrize("name", POSITIONS)


def scheme(name, max_length=LONGEST, **options):
    """The scheme with no weight left at zero, where a mistake could hide."""
    position = make_position(name, D, H, max_length, width=K, **options)
    for weight in position.parameters():
        nn.init.normal_(weight)
    return position


def standing(start, length, rows=B):
    """Full rows whose first tokens stand at `start`: one place for all, or one for each row."""
    starts = torch.tensor(start if isinstance(start, list) else [start])
    return Layout.full(rows, length).shifted(starts, int(starts.max()) + length)


def scores(position, q, k, queries, keys):
    """What attention takes the softmax of, after all three doors but the first: (B, H, T, S)."""
    turned_q, turned_k = position.turn(q, q, queries)[0], position.turn(k, k, keys)[1]
    bias = position.bias(turned_q, queries, keys)
    plain = turned_q @ turned_k.mT / math.sqrt(q.shape[-1])
    return plain if bias is None else plain + bias.scores(queries, keys)


def attention(seed=5):
    """The same attention every time."""
    torch.manual_seed(seed)
    return MultiHeadAttention(D, Heads(H, key_width=K))


def answers(position, x, layout, mask=everything):
    """The whole way: the first door, then attention with the other two."""
    return attention()(position.embed(x, layout), position=position, layout=layout, mask=mask)


# Every scheme


@each_scheme
def test_where_enters_by_one_door_or_none(name):
    # The same vector everywhere: what then differs along the sequence, differs by position.
    position, layout = scheme(name), Layout.full(B, T)
    x, q = torch.randn(B, 1, D).expand(B, T, D), torch.randn(B, H, 1, K).expand(B, H, T, K)
    bias = position.bias(q, layout, layout)
    doors = {
        "embed": position.embed(x, layout),
        "turn": torch.cat(position.turn(q, q, layout), dim=1).transpose(1, 2),
        "bias": torch.zeros(B, T, 1) if bias is None else bias.scores(layout, layout).mT.flip(-1),
    }
    uneven = [door for door, out in doors.items() if not out[:, 1:].equal(out[:, :-1])]
    assert len(uneven) == (0 if name == "none" else 1), uneven


@each_scheme
def test_where_depends_only_on_where(name):
    position, start = scheme(name), 4
    x, q, k = torch.randn(B, S, D), torch.randn(B, H, S, K), torch.randn(B, H, S, K)
    whole, part, cut = Layout.full(B, S), standing(start, T), slice(start, start + T)
    torch.testing.assert_close(
        position.embed(x[:, cut], part), position.embed(x, whole)[:, cut], rtol=0, atol=0
    )
    expected = scores(position, q, k, whole, whole)
    for queries in (slice(0, S), cut):
        for keys in (slice(0, S), cut):
            some = scores(
                position,
                q[:, :, queries],
                k[:, :, keys],
                part if queries is cut else whole,
                part if keys is cut else whole,
            )
            torch.testing.assert_close(some, expected[:, :, queries, keys])
