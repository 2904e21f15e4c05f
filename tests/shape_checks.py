"""The shape checks of the tests, at a fraction of what jaxtyping's own decorator costs.

jaxtyping wraps every function it sees, binds its arguments and checks them twice, so that an error
can say more. Here beartype checks a call once, and only a function whose annotations hold shapes
opens a scope for the names of their axes. What is checked is the same. Generators are left to
jaxtyping: beartype would check them as they begin, after the scope is closed.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

import jaxtyping
from jaxtyping._storage import pop_shape_memo, push_shape_memo

Checker = Callable[[Callable], Callable]
by_jaxtyping = jaxtyping.jaxtyped


def install() -> None:
    """From now on, what the import hook decorates is checked by this module."""
    jaxtyping.jaxtyped = jaxtyped


def jaxtyped(*, typechecker: Checker) -> Callable:
    """What the import hook puts above every function and class."""
    return functools.partial(checked, typechecker=typechecker)


def checked(thing: Any, *, typechecker: Checker) -> Any:
    if inspect.isclass(thing):
        if is_dataclass(thing) and not hasattr(thing.__init__, "__shapes_are_checked__"):
            thing.__init__ = checked_function(thing.__init__, typechecker)
        return thing
    if inspect.isgeneratorfunction(thing):
        return by_jaxtyping(thing, typechecker=typechecker)
    return checked_function(thing, typechecker)


def checked_function(function: Callable, typechecker: Checker) -> Callable:
    """Checks each call. The checks are made at the first: most functions are never called."""
    made: tuple[Callable, bool] | None = None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        nonlocal made
        if jaxtyping.config.jaxtyping_disable:
            return function(*args, **kwargs)
        made = made or checks_of(function, typechecker)
        by_types, scoped = made
        if not scoped:
            return by_types(*args, **kwargs)
        push_shape_memo({})
        try:
            return by_types(*args, **kwargs)
        finally:
            pop_shape_memo()

    call.__shapes_are_checked__ = True
    return call


def checks_of(function: Callable, typechecker: Checker) -> tuple[Callable, bool]:
    """The function with its types checked, and whether any of them holds a shape."""
    written = function.__annotations__
    known = {name: resolved(hint, function.__globals__) for name, hint in written.items()}
    function.__annotations__ = known
    try:
        return typechecker(function), any(holds_shapes(hint) for hint in known.values())
    finally:
        function.__annotations__ = written


def resolved(hint: Any, names: dict[str, Any]) -> Any:
    """The hint itself; anything goes where it names what is not defined yet."""

    def holder() -> None: ...

    holder.__annotations__ = {"value": hint}
    try:
        return get_type_hints(holder, names, include_extras=True)["value"]
    except (NameError, AttributeError):
        return Any


def holds_shapes(hint: Any) -> bool:
    if inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(holds_shapes(part) for part in (hint if isinstance(hint, list) else get_args(hint)))
