"""Checks of the values of a record; each refuses in one line."""

from glassformer.errors import GlassformerError, unknown


def choose(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a name that is not on the list."""
    if value not in choices:
        raise GlassformerError(unknown(name, value, choices))  # looking for near ones takes a while


def share(name: str, value: float) -> None:
    """Refuse a share outside [0, 1)."""
    require(0 <= value < 1, f"{name} must lie in [0, 1), got {value}")


def positive(name: str, value: int | None) -> None:
    """Refuse a number below 1; None is allowed."""
    require(value is None or value > 0, f"{name} must be at least 1, got {value}")


def above_zero(name: str, value: int | float | None) -> None:
    """Refuse zero and below; None is allowed."""
    require(value is None or value > 0, f"{name} must be above 0, got {value}")


def not_negative(name: str, value: int | float) -> None:
    """Refuse a number below zero."""
    require(value >= 0, f"{name} must be 0 or more, got {value}")


def at_most(name: str, value: int | float | None, most: int | float) -> None:
    """Refuse a number above the limit; None is allowed."""
    require(value is None or value <= most, f"{name} must be at most {most:,}, got {value}")


def require(condition: bool, message: str) -> None:
    """Raise an error unless the condition holds."""
    if not condition:
        raise GlassformerError(message)
