"""Mask expressions on the command line: `causal & window(3)`.

The text is never executed. It is parsed into Python's syntax tree, of which only rule names,
integers, lists of integers, `&`, `|` and parentheses are allowed. To add a rule, list it below.
"""

import ast
import warnings
from collections.abc import Callable

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
WITH_NUMBER: dict[str, Callable[[int], Mask]] = {"window": window, "prefix": prefix}
WITH_LIST: dict[str, Callable[[list[int]], Mask]] = {"documents": documents}
WITH_ROW: dict[str, Callable[[list[list[int]]], Mask]] = {"valid_lengths": valid_lengths}
RULES = [*ALONE, *WITH_NUMBER, *WITH_LIST, *WITH_ROW]

LONGEST = 500  # characters
DEEPEST = 32  # levels of nesting
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
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise GlassformerError(refusal(expression)) from None
    try:
        return build(tree.body, depth=1)
    except RecursionError:  # Python cannot even write down what is refused
        raise GlassformerError(refusal(expression)) from None


def build(node: ast.expr, depth: int) -> Mask:
    """Build the mask of one node of the tree."""
    if depth > DEEPEST:
        raise GlassformerError(f"the mask nests rules more than {DEEPEST} deep; use fewer")
    match node:
        case ast.BinOp(left, ast.BitAnd(), right):
            return build(left, depth + 1) & build(right, depth + 1)
        case ast.BinOp(left, ast.BitOr(), right):
            return build(left, depth + 1) | build(right, depth + 1)
        case ast.Name(name):
            return named(name)
        case ast.Call(ast.Name(name), [argument], []):
            return called(name, argument, node)
    raise GlassformerError(refusal(ast.unparse(node)))


def named(name: str) -> Mask:
    """A rule without arguments."""
    if name in ALONE:
        return ALONE[name]
    if name in WITH_NUMBER:
        raise GlassformerError(f"{name} needs a number: {name}(3)")
    if name in WITH_LIST:
        raise GlassformerError(f"{name} needs a list of numbers: {name}([3, 2])")
    if name in WITH_ROW:
        raise GlassformerError(f"{name} needs a number for each query: {name}([[1, 3, 2]])")
    raise GlassformerError(unknown("rule", name, RULES))


def called(name: str, argument: ast.expr, node: ast.Call) -> Mask:
    """A rule with its argument."""
    if name in ALONE:
        raise GlassformerError(f"{name} takes no argument: write {name}, not {ast.unparse(node)}")
    if name not in RULES:
        raise GlassformerError(unknown("rule", name, RULES))
    try:
        if name in WITH_NUMBER and isinstance(argument, ast.Constant):
            return WITH_NUMBER[name](number(argument))
        if name in WITH_LIST and isinstance(argument, ast.List):
            return WITH_LIST[name]([number(item) for item in argument.elts])
        if name in WITH_ROW and isinstance(argument, ast.List):
            match argument.elts:
                case [ast.List(items)]:
                    return WITH_ROW[name]([[number(item) for item in items]])
    except ValueError as error:
        raise GlassformerError(f"{ast.unparse(node)}: {error}") from None
    raise GlassformerError(refusal(ast.unparse(node)))


def number(node: ast.expr) -> int:
    """An integer small enough for a picture."""
    if not isinstance(node, ast.Constant) or type(node.value) is not int:
        raise GlassformerError(refusal(ast.unparse(node)))
    if node.value > LARGEST:
        raise GlassformerError(f"{node.value} is too large to draw; use {LARGEST} or less")
    return node.value


def refusal(text: str) -> str:
    """The error for an expression that is not a mask."""
    allowed = [
        *ALONE,
        *(f"{name}(n)" for name in WITH_NUMBER),
        *(f"{name}([n, ...])" for name in WITH_LIST),
        *(f"{name}([[n, ...]])" for name in WITH_ROW),
    ]
    return (
        f"cannot parse {text!r} as a mask; allowed are {', '.join(allowed)}, &, | and parentheses"
    )
