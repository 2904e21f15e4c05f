"""Decoding: from scores of the next token to whole sequences, by choice, by chance or by search.

    decode      answers for all rows, as a DecodeConfig asks for them
    Scorer      what it is given: a function from tokens and state to scores (`scorer.py`)
    Request     what each row must and must not say, in tokens
    Hypothesis  an answer, with the model's log-probability of every token

Nothing here knows a model or a tokenizer; `glassformer.models.stepping` makes scorers of models.
"""

from collections.abc import Callable

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.automaton import Words
from glassformer.decode.beam import search_beam
from glassformer.decode.paths import Hypothesis
from glassformer.decode.request import Request
from glassformer.decode.rows import NoNumbersError
from glassformer.decode.scorer import Scorer, State
from glassformer.decode.stepwise import write_stepwise
from glassformer.decode.stopping import before_stop

__all__ = [
    "METHODS",
    "Hypothesis",
    "NoNumbersError",
    "Request",
    "Scorer",
    "State",
    "Words",
    "before_stop",
    "decode",
]

METHODS: dict[str, Callable[[Scorer, Request, DecodeConfig], list[list[Hypothesis]]]] = {
    "greedy": write_stepwise,
    "sample": write_stepwise,
    "beam": search_beam,
}


def decode(
    scorer: Scorer, request: Request, config: DecodeConfig | None = None
) -> list[list[Hypothesis]]:
    """The answers of each row, from the best down."""
    config = DecodeConfig() if config is None else config
    return METHODS[config.method](scorer, request, config)
