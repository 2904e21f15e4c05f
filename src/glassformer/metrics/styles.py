"""How scores are written and read: their names, their scale, and which way is better.

Every score that the built-in jobs report is listed here, so that its direction does not depend on
what was imported before. A score that is not listed is a share of 1 of which more is better, and is
called what its key says; a job of another package lists its own, as in
`STYLES["pitch_error"] = ScoreStyle(...)`, where its settings are defined.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScoreStyle:
    """One score.

    Attributes:
        name: As people write it.
        most: The upper end of its scale: 1 for shares, 100 for BLEU, None for a loss.
        higher_is_better: Whether more of it is better.
    """

    name: str
    most: int | None = 1
    higher_is_better: bool = True

    @property
    def decimals(self) -> int:
        """How many are worth writing."""
        return 1 if self.most == 100 else 3


STYLES: dict[str, ScoreStyle] = {
    "macro_f1": ScoreStyle("macro-F1"),
    "micro_f1": ScoreStyle("micro-F1"),
    "calibration_error": ScoreStyle("calibration error", higher_is_better=False),
    "bleu": ScoreStyle("BLEU", most=100),
    "chrf": ScoreStyle("chrF", most=100),
    "ter": ScoreStyle("TER", most=100, higher_is_better=False),
    "exact": ScoreStyle("exact answers"),
    "wer": ScoreStyle("word error rate", higher_is_better=False),
    "ser": ScoreStyle("symbol error rate", higher_is_better=False),
    "cer": ScoreStyle("character error rate", higher_is_better=False),
    "bits_per_byte": ScoreStyle("bits per byte", most=None, higher_is_better=False),
    "loss": ScoreStyle("loss", most=None, higher_is_better=False),
    "perplexity": ScoreStyle("perplexity", most=None, higher_is_better=False),
    "rmse": ScoreStyle("RMSE", most=None, higher_is_better=False),
    "ndcg": ScoreStyle("NDCG@10"),
    "hit_rate": ScoreStyle("hit rate@10"),
    "coverage": ScoreStyle("coverage@10"),
}


def style_of(score: str) -> ScoreStyle:
    """How a score is written.

    >>> style_of("ter").name, style_of("top_5_accuracy").name
    ('TER', 'top 5 accuracy')
    """
    return STYLES.get(score) or ScoreStyle(score.replace("_", " "))
