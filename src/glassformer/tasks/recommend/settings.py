"""Settings of `recommend`, and its defaults."""

from collections.abc import Mapping
from dataclasses import dataclass

from glassformer.config import choose, positive, require, stack_of_size
from glassformer.config.checks import not_negative
from glassformer.config.values import Values, plain

METHOD_NAMES = ("factors", "sasrec")
FEEDBACK_NAMES = ("auto", "explicit", "implicit")
LOSS_NAMES = ("softmax", "bpr")
OF_FEEDBACK = {"explicit": ("lowest", "highest", "liked"), "implicit": ("loss", "negatives")}
OF_FACTORS = ("features", "penalty", *OF_FEEDBACK["explicit"], *OF_FEEDBACK["implicit"])


@dataclass(frozen=True, kw_only=True, slots=True)
class RecommendConfig:
    """Settings of the job.

    Args:
        method: `factors` (a vector and a bias for each user and item; Koren et al., 2009) or
            `sasrec` (a decoder over a user's items in order; Kang and McAuley, 2018).
        feedback: `explicit` (ratings are predicted) or `implicit` (only which items a user
            chooses); `auto` decides by the data.
        features: Width of the vectors (factors).
        penalty: Weight of the squared norms of the vectors and biases of each row (factors).
        loss: Loss of implicit feedback: `softmax` over the item and the drawn others, or `bpr`,
            which compares the item with each of them (Rendle et al., 2009) (factors).
        negatives: Number of other items drawn for each item of implicit feedback (factors).
        lowest: Lowest possible rating; none for the lowest in the training rows.
        highest: Highest possible rating; none for the highest in the training rows.
        liked: Rating from which an item counts as liked; none for the mean rating.
        max_length: Number of a user's most recent items that are used (sasrec).
    """

    method: str = "factors"
    feedback: str = "auto"
    features: int = 8
    penalty: float = 0.025
    loss: str = "softmax"
    negatives: int = 50
    lowest: float | None = None
    highest: float | None = None
    liked: float | None = None
    max_length: int = 100

    def __post_init__(self) -> None:
        choose("task.method", self.method, METHOD_NAMES)
        choose("task.feedback", self.feedback, FEEDBACK_NAMES)
        choose("task.loss", self.loss, LOSS_NAMES)
        for name in ("features", "negatives", "max_length"):
            positive(f"task.{name}", getattr(self, name))
        not_negative("task.penalty", self.penalty)
        require(
            self.lowest is None or self.highest is None or self.lowest < self.highest,
            f"task.lowest must be below task.highest, got {self.lowest} and {self.highest}",
        )
        require(
            (self.method, self.feedback) != ("sasrec", "explicit"),
            "task.method = sasrec predicts items, not ratings; use factors, or drop task.feedback",
        )


def unused_settings(settings: RecommendConfig) -> Mapping[str, str]:
    """Settings without effect, and why."""
    why = f"with task.method = {settings.method}"
    if settings.method == "sasrec":
        return {f"task.{name}": why for name in OF_FACTORS}
    other = {"explicit": "implicit", "implicit": "explicit"}.get(settings.feedback, "")
    beside = f"with task.feedback = {settings.feedback}"
    return {
        **{"model": why, "task.max_length": why},
        **{f"task.{name}": beside for name in OF_FEEDBACK.get(other, ())},
    }


def recommend_defaults(accelerated: bool) -> Values:
    """Defaults of the job, on top of the general ones."""
    stack = stack_of_size("small" if accelerated else "tiny", position="learned", dropout=0.2)
    return {
        "model": {"decoder": plain(stack)},
        "data": {"batch_tokens": 4096 if accelerated else 1024},
        "train": {"patience": 5, "optimiser": {"lr": 3e-3}},
    }
