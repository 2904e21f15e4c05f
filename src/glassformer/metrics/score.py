"""A number and how far to trust it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Score:
    """A measured value and the ends of its interval.

    >>> print(Score(0.9124, 0.9051, 0.9193))
    0.912 [0.905, 0.919]
    >>> print(Score(34.21, 33.05, 35.4))
    34.2 [33.0, 35.4]
    """

    value: float
    low: float
    high: float

    def as_values(self) -> dict[str, float]:
        """As plain numbers, for JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        digits = 1 if abs(self.value) >= 10 else 3
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"
