"""All pairs of choices in few cases: where two choices clash, some case has both of them."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any


def every_pair(choices: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Cases, a value for each name, in which every pair of values of two names stands together."""
    names = list(choices)
    missing = {
        (a, x, b, y) for a, b in combinations(names, 2) for x in choices[a] for y in choices[b]
    }
    cases = []
    while missing:
        a, x, b, y = min(missing, key=str)
        case = {a: x, b: y}
        for name in names:
            if name not in case:
                case[name] = max(
                    choices[name], key=lambda value, name=name: _newly(case, name, value, missing)
                )
        missing -= set(_pairs(case, names))
        cases.append(case)
    return cases


def every_case(choices: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The full matrix."""
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def _pairs(case, names):
    return ((a, case[a], b, case[b]) for a, b in combinations(names, 2) if a in case and b in case)


def _newly(case, name, value, missing):
    """How many missing pairs this value would add."""
    return sum(
        (a, case[a], name, value) in missing or (name, value, a, case[a]) in missing for a in case
    )
