"""Why a row has no answer."""

from glassformer.errors import GlassformerError, NonFiniteScoresError


def no_answer(*, is_nan: bool, row: str = "") -> GlassformerError:
    """The error for a row without one.

    Args:
        is_nan: Whether the model's scores were not numbers.
        row: How the message begins, to tell which row it is.
    """
    if is_nan:
        return NonFiniteScoresError(
            f"{row}the model's scores are not finite: its training diverged or its "
            f"weights are damaged; train with a lower learning rate, or copy the run again"
        )
    return GlassformerError(
        f"{row}the given rules allow no token; "
        f"forbid less, or lower decode.min_length and decode.no_repeat"
    )
