"""The attentions that came before: small, complete, and written to be read.

All of them answer a query with a weighted average of the values; only the weights differ:

    f(q) = Σᵢ αᵢ vᵢ        α = softmax of a score, over the keys that the query may see

    function or module       score of query q and key k                  what is learned
    KernelRegression         -((q - k) / width)² / 2                     one width, or nothing
    AdditiveAttention        wᵀ tanh(W_q q + W_k k)                      a small network
    dot_product_attention    qᵀ k / √K                                   nothing
    basic_self_attention     xᵢᵀ xⱼ                                      nothing
    wide_attention           the dot product, once per head              all projections, full width

Nadaraya and Watson, 1964; Bahdanau et al., 2014; Vaswani et al., 2017. To add one, write its score
and pass it to `masked_softmax`, which handles padding. What runs in the models is
`glassformer.core.attention`.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.core.attention import MultiHeadAttention
from glassformer.core.heads import Heads


def basic_self_attention(x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
    """Every vector becomes the average of all vectors, the similar ones counting most.

        softmax(x xᵀ) x

    Nothing is learned and nothing is scaled: the result depends only on how `x` was made. The input
    is a set, not a sequence. Peter Bloem, "Transformers from scratch", 2019.
    """
    return (x @ x.mT).softmax(dim=-1) @ x


def masked_softmax(
    scores: Float[Tensor, "B T S"],
    valid_lengths: Int[Tensor, " B"] | Int[Tensor, "B T"] | None = None,
) -> Float[Tensor, "B T S"]:
    """Softmax over the first keys only; the rest is padding and gets a weight of exactly zero.

        αᵢ = exp(scoreᵢ) / Σⱼ exp(scoreⱼ)        i, j < valid length

    Zhang et al., "Dive into deep learning", section 11.3.

    Args:
        valid_lengths: Number of real keys, one for each row or one for each query. A query
            with none gets a weight of zero everywhere.

    >>> masked_softmax(torch.zeros(1, 2, 4), torch.tensor([[1, 2]]))
    tensor([[[1.0000, 0.0000, 0.0000, 0.0000],
             [0.5000, 0.5000, 0.0000, 0.0000]]])
    """
    if valid_lengths is None:
        return scores.softmax(dim=-1)
    _check_lengths(valid_lengths, scores)
    lengths = valid_lengths[:, None] if valid_lengths.ndim == 1 else valid_lengths  # (B, 1 or T)
    keys = torch.arange(scores.shape[-1], device=scores.device)
    return _softmax_over(scores, may_see=keys < lengths[..., None])


def dot_product_attention(
    q: Float[Tensor, "B T K"],
    k: Float[Tensor, "B S K"],
    v: Float[Tensor, "B S W"],
    valid_lengths: Int[Tensor, " B"] | Int[Tensor, "B T"] | None = None,
) -> Float[Tensor, "B T W"]:
    """A query and a key match if they point the same way. Vaswani et al., 2017.

        softmax(q kᵀ / √K) v

    The dot product of two random vectors has variance K; dividing by √K brings it back to 1, where
    the gradient of softmax does not vanish.
    """
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"a dot product needs one width: queries have {q.shape[-1]}, keys {k.shape[-1]}; "
            f"project one of them, or use AdditiveAttention"
        )
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (B, T, S)
    return masked_softmax(scores, valid_lengths) @ v


class AdditiveAttention(nn.Module):
    """A small network scores how well a query and a key match. Bahdanau et al., 2014.

        softmax(wᵀ tanh(W_q q + W_k k)) v

    Queries and keys may differ in width. The cost is a hidden vector for every pair of them, where
    the dot product needs one number.

    Args:
        hidden: Width of the network's hidden layer.
    """

    def __init__(self, query_dim: int, key_dim: int, hidden: int) -> None:
        super().__init__()
        self.to_q = nn.Linear(query_dim, hidden, bias=False)
        self.to_k = nn.Linear(key_dim, hidden, bias=False)
        self.to_score = nn.Linear(hidden, 1, bias=False)

    def weights(
        self,
        q: Float[Tensor, "B T query_dim"],
        k: Float[Tensor, "B S key_dim"],
        valid_lengths: Int[Tensor, " B"] | Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T S"]:
        """How much each query takes from each key."""
        pairs = self.to_q(q)[:, :, None] + self.to_k(k)[:, None]  # (B, T, S, hidden)
        scores = self.to_score(pairs.tanh()).squeeze(-1)  # (B, T, S)
        return masked_softmax(scores, valid_lengths)

    def forward(
        self,
        q: Float[Tensor, "B T query_dim"],
        k: Float[Tensor, "B S key_dim"],
        v: Float[Tensor, "B S W"],
        valid_lengths: Int[Tensor, " B"] | Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T W"]:
        """What each query takes from the values, by the weights of its keys."""
        return self.weights(q, k, valid_lengths) @ v


class KernelRegression(nn.Module):
    """Estimate a curve from samples: the nearer a sample, the larger its weight.

        f(x) = Σᵢ αᵢ yᵢ        α = softmax(-((x - xᵢ) / width)² / 2)

    Queries are the points to estimate; keys and values are the samples. Nadaraya and Watson, 1964.

    Args:
        width: Standard deviation of the Gaussian kernel.
        learn: Whether the width is trained. A sample that sees itself is predicted perfectly at
            width zero, so train with `may_see=all_but_self(x)`.

    >>> curve = KernelRegression(width=0.1)
    >>> curve(torch.tensor([0.5, 9.0]), torch.tensor([0.0, 1.0]), torch.tensor([10.0, 20.0]))
    tensor([15., 20.])
    """

    log_width: Float[Tensor, ""]

    def __init__(self, width: float = 1.0, learn: bool = False) -> None:
        super().__init__()
        if not 0 < width < math.inf:
            raise ValueError(f"width must be a number above 0, got {width}; try 1.0")
        # Training the logarithm keeps the width positive.
        log_width = torch.tensor(math.log(width))
        if learn:
            self.log_width = nn.Parameter(log_width)
        else:
            self.register_buffer("log_width", log_width)

    @property
    def width(self) -> Float[Tensor, ""]:
        """Standard deviation of the Gaussian kernel."""
        return self.log_width.exp()

    def weights(
        self,
        queries: Float[Tensor, " T"],
        keys: Float[Tensor, " S"],
        may_see: Bool[Tensor, "T S"] | None = None,
    ) -> Float[Tensor, "T S"]:
        """How much each query takes from each key."""
        scores = -(((queries[:, None] - keys) / self.width) ** 2) / 2  # (T, S)
        return scores.softmax(dim=-1) if may_see is None else _softmax_over(scores, may_see)

    def forward(
        self,
        queries: Float[Tensor, " T"],
        keys: Float[Tensor, " S"],
        values: Float[Tensor, " S"],
        may_see: Bool[Tensor, "T S"] | None = None,
    ) -> Float[Tensor, " T"]:
        """The estimate at each query: the average of the values, by the weights of their keys."""
        return self.weights(queries, keys, may_see) @ values


def all_but_self(x: Float[Tensor, " T"]) -> Bool[Tensor, "T T"]:
    """Every point may see all the others but not itself: leave-one-out.

    >>> all_but_self(torch.zeros(3)).int()
    tensor([[0, 1, 1],
            [1, 0, 1],
            [1, 1, 0]], dtype=torch.int32)
    """
    return ~torch.eye(len(x), dtype=torch.bool, device=x.device)


def wide_attention(dim: int, heads: int) -> MultiHeadAttention:
    """Multi-head attention in which every head sees the full width. Peter Bloem, 2019.

        concat(head₁, ..., head_H) W_out        each head with its own D x D projections

    The usual narrow heads split the width between them and together cost as much as one wide head.
    Parameters, without biases:

                            narrow         wide
        one head's width    D / H          D
        to q, k and v       3 D²           3 H D²
        to out              D²             H D²
        total               4 D²           4 H D²
    """
    return MultiHeadAttention(dim, Heads(heads, key_width=dim, value_width=dim))


def _softmax_over(
    scores: Float[Tensor, "*batch T S"], may_see: Bool[Tensor, "*#batch #T S"]
) -> Float[Tensor, "*batch T S"]:
    """Softmax over the keys each query may see; all zeros for a query that may see none."""
    # The lowest number rather than -inf: a row of -inf gives NaN, forward and backward.
    scores = scores.masked_fill(~may_see, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1).masked_fill(~may_see, 0.0)


def _check_lengths(valid_lengths: Int[Tensor, "..."], scores: Float[Tensor, "B T S"]) -> None:
    rows, queries, keys = scores.shape
    if valid_lengths.shape not in [(rows,), (rows, queries)]:
        raise ValueError(
            f"valid_lengths of shape {tuple(valid_lengths.shape)} do not fit scores of shape "
            f"{tuple(scores.shape)}; give one length per row, shape {(rows,)}, or one per query, "
            f"shape {(rows, queries)}"
        )
    # Values are checked on the CPU only: reading them from a GPU would force a synchronisation.
    if valid_lengths.device.type != "cpu" or not valid_lengths.numel():
        return
    low, high = int(valid_lengths.min()), int(valid_lengths.max())
    if low < 0:
        raise ValueError(
            f"a valid length is {low}, but must be from 0 to {keys}, the number of keys; "
            f"use 0 for a query that may see nothing"
        )
    if high > keys:
        raise ValueError(
            f"a valid length is {high}, but there are only {keys} keys; "
            f"shorten it to {keys} or pad the keys to {high}"
        )
