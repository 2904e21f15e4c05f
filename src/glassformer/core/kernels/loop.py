"""loop: the definition of attention, one query and one key at a time.

Slow on purpose and independent of the other kernels: masks, lengths, positions and shared heads
are applied one number at a time. The tests compare every other kernel with it.
"""

import torch

from glassformer.core.kernels.call import Call, Kernel, Supports, everywhere
from glassformer.core.layout import Layout
from glassformer.core.shapes import Answers, Keys, Queries, Values


def attend(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Each query averages the values it may see, weighted by exp(q·k * scale + bias)."""
    rows, heads, steps, _ = q.shape
    shared = heads // k.shape[1]
    answers = []
    for row in range(rows):
        for head in range(heads):
            group = head // shared
            for t in range(steps):
                query, at = q[row, head, t], query_position(call, row, t)
                scores, values = [], []
                for s in range(int(call.keys.lengths[row])):
                    key_at = key_position(call, row, s)
                    if is_ancestor(call, row, t, s) and call.mask.sees(row, at, key_at):
                        score = torch.dot(query, k[row, group, s]) * call.scale
                        if call.softcap is not None:
                            score = torch.tanh(score / call.softcap) * call.softcap
                        scores.append(score + bias(call, row, head, t, key_at - at))
                        values.append(v[row, group, s])
                answers.append(average(scores, values, v))
    return torch.stack(answers).unflatten(0, (rows, heads, steps))


def query_position(call: Call, row: int, step: int) -> int:
    """The position of a query; all branches of a row share one."""
    if call.branches is not None:
        return int(call.branches.lengths[row]) - 1
    return position(call.queries, row, step)


def key_position(call: Call, row: int, step: int) -> int:
    """The position of a key."""
    if call.branches is not None:
        return int(call.branches.positions[row, step])
    return position(call.keys, row, step)


def is_ancestor(call: Call, row: int, query: int, key: int) -> bool:
    """Whether a key lies on the query's own branch; without branches, always."""
    return call.branches is None or bool(call.branches.seen[row, query, key])


def position(layout: Layout, row: int, step: int) -> int:
    """The position of token `step` of a row."""
    if layout.starts is None:
        return step
    return step + int(layout.starts[row if len(layout.starts) > 1 else 0])


def bias(call: Call, row: int, head: int, step: int, distance: int) -> torch.Tensor | float:
    """What the position scheme adds for this distance."""
    if call.bias is None:
        return 0.0
    entry = min(max(distance - call.bias.low, 0), call.bias.table.shape[-1] - 1)
    line = call.bias.table[row, head, step] if call.bias.by_query else call.bias.table[head]
    return line[entry]


def average(
    scores: list[torch.Tensor], values: list[torch.Tensor], v: torch.Tensor
) -> torch.Tensor:
    """The softmax-weighted mean; zero if there is nothing to average."""
    if not scores:
        return v.new_zeros(v.shape[-1])
    weights = torch.stack(scores).softmax(dim=0)
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


LOOP = Kernel(
    run=attend,
    form="padded",
    supports=everywhere(Supports(softcap=True, dropout=False, branches=True)),
    suits=lambda q, call: False,
)
