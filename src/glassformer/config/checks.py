"""Checks that a record makes of its own values, each refusing in one line."""

from glassformer.errors import GlassformerError, unknown


def choose(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a name that is not on the list."""
    require(value in choices, unknown(name, value, choices))


def share(name: str, value: float) -> None:
    """Refuse a share that leaves nothing over."""
    require(0 <= value < 1, f"{name} must lie in [0, 1), got {value}")


def positive(name: str, value: int | None) -> None:
    """Refuse a number under 1; None is a default and fine."""
    require(value is None or value > 0, f"{name} must be at least 1, got {value}")


def at_most(name: str, value: int | float | None, most: int | float) -> None:
    """Refuse a number that no machine could follow; None is a default and fine."""
    require(value is None or value <= most, f"{name} must be at most {most:,}, got {value}")


def require(condition: bool, complaint: str) -> None:
    """Refuse in words."""
    if not condition:
        raise GlassformerError(complaint)
