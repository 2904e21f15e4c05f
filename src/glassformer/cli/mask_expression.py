"""Mask expressions on the command line: `causal & window(3)`.

The text is never executed. It is parsed into Python's syntax tree, of which only rule names,
integers, lists of integers, `&`, `|` and parentheses are allowed. To add a rule, list it below.
"""

import ast
import warnings
from collections.abc import Callable
from typing import Any

from glassformer.core.masks import (
    Mask,
    causal,
    documents,
    everything,
    prefix,
    valid_lengths,
    window,
)
from glassformer.errors import GlassformerError, unknown

ALONE: dict[str, Mask] = {"causal": causal, "everything": everything}
CALLED: dict[str, tuple[Callable[[Any], Mask], int]] = {
    "window": (window, 0),
    "prefix": (prefix, 0),
    "documents": (documents, 1),
    "valid_lengths": (valid_lengths, 2),
}  # each with how deep its argument is nested: 0 is a number, 1 a list of numbers
RULES = [*ALONE, *CALLED]
ALLOWED = (
    "allowed are causal, everything, window(3), prefix(3), documents([3, 2]), "
    "valid_lengths([[1, 3, 2]]), &, | and parentheses"
)

LONGEST = 500  # characters
LARGEST = 128  # number in a rule; no picture is larger


def parse(expression: str) -> Mask:
    """Parse a mask expression.

    >>> parse("causal & (window(3) | prefix(1))")
    causal & (window(3) | prefix(1))
    """
    if len(expression) > LONGEST:
        raise GlassformerError(
            f"the mask has {len(expression)} characters; shorten it to {LONGEST} or fewer"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SyntaxWarnings about text that is refused anyway
            tree = ast.parse(expression.strip(), mode="eval")
        return build(tree.body)
    except (SyntaxError, MemoryError, RecursionError):
        reason = ""
    except ValueError as error:
        reason = f" ({error})" if str(error) else ""
    raise GlassformerError(f"cannot parse {expression!r} as a mask{reason}; {ALLOWED}")


def build(node: ast.expr) -> Mask:
    """Build the mask of one node of the tree."""
    match node:
        case ast.BinOp(left, ast.BitAnd(), right):
            return build(left) & build(right)
        case ast.BinOp(left, ast.BitOr(), right):
            return build(left) | build(right)
        case ast.Name(name) | ast.Call(ast.Name(name)) if name not in RULES:
            raise GlassformerError(unknown("rule", name, RULES))
        case ast.Name(name) if name in ALONE:
            return ALONE[name]
        case ast.Call(ast.Name(name), [argument], []) if name in CALLED:
            rule, depth = CALLED[name]
            return rule(numbers(argument, depth))
    raise ValueError


def numbers(node: ast.expr, depth: int) -> Any:
    """An integer small enough for a picture, or lists of them."""
    match node:
        case ast.List(items) if depth:
            return [numbers(item, depth - 1) for item in items]
        case ast.Constant(value) if type(value) is int and not depth:
            if value > LARGEST:
                raise ValueError(f"{value} is too large to draw")
            return value
    raise ValueError
