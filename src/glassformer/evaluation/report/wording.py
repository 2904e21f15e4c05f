"""Scores as people write them, in pages and in terminals: names, decimals, and what chance does."""

import math

NAMES = {
    "macro_f1": "macro-F1",
    "micro_f1": "micro-F1",
    "bleu": "BLEU",
    "chrf": "chrF",
    "ter": "TER",
    "exact": "exact answers",
    "wer": "word error rate",
    "ser": "symbol error rate",
    "cer": "character error rate",
}
OUT_OF_100 = ("bleu", "chrf", "ter")  # the others are shares of 1, or have no upper end
SMALLEST_P = 0.001  # nobody needs to know how far below it is


def named(score: str) -> str:
    """A score's name as people write it, also among other words.

    >>> named("validation macro_f1"), named("calibration_error")
    ('validation macro-F1', 'calibration error')
    """
    return " ".join(NAMES.get(word, word.replace("_", " ")) for word in score.split())


def out_of_100(score: str) -> bool:
    """Whether it counts to 100, also among other words.

    >>> out_of_100("bleu on the validation part"), out_of_100("accuracy")
    (True, False)
    """
    return any(word in OUT_OF_100 for word in score.split())


def written(score: str, value: float | None, sign: str = "") -> str:
    """A score's value: the same decimals whatever it is, so that a column can be read down.

    >>> written("ter", 0.746), written("ter", 32.41), written("loss", 32.41)
    ('0.7', '32.4', '32.410')
    >>> written("bleu", -0.04), written("accuracy", -1e-17, "+")
    ('0.0', '+0.000')

    Args:
        sign: `+` for differences.
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:{sign}z.{1 if out_of_100(score) else 3}f}"  # z: no minus before a zero


def p_value(value: float) -> str:
    """How often chance alone would make such a difference.

    >>> p_value(0.0347), p_value(6.37e-58)
    ('0.035', '< 0.001')
    """
    return f"{value:.2g}" if value >= SMALLEST_P else f"< {SMALLEST_P}"


def chance(value: float) -> str:
    """The same in a sentence.

    >>> chance(0.0347), chance(6.37e-58)
    ('p = 0.035', 'p < 0.001')
    """
    return f"p {'= ' if value >= SMALLEST_P else ''}{p_value(value)}"
