"""Decoding: from scores of the next token to whole sequences; greedy, sampling or beam search.

    decode         the answers of all rows, by the method of a DecodeConfig
    token_by_token the same with every token as soon as it is chosen; not for beam search
    Scorer         its input: a function from tokens and state to scores
    Request        what each row must and must not contain, as tokens
    RequiredWords  what counts as having all required words
    Hypothesis     an answer, with the model's log-probability of every token
    cancelling     ends a search that nobody waits for
    Fusion         a language model whose scores are added
    ctc            searches without a decoder, over the scores of every frame

Nothing here knows models or tokenizers; `glassformer.models.incremental` turns models into scorers.
Read `stepwise.py` first, then `beam.py`. In reading order:

scorer, request      what is needed of a model, and of each row
rules, filters       constraints on the next token; which ones sampling may choose from
noise                random noise that belongs to a sequence, whatever else is decoded
stepwise             one token after another: the likeliest, or a random one
greedy_kernel        the likeliest token in two kernels in Triton
active_rows          which rows are still being decoded
stopping             texts at which decoding ends
paths                the tokens along every branch, and the answers they become
no_answer            the error for a row without any
penalties            how hypotheses of different lengths are compared
topk                 exact top-k over a large vocabulary, without sorting it
beam, beam_steps     beam search; which branch continues which, step by step
automaton, required  required words, and beam search for answers that have them all
fusion               the scores of a language model, added while searching
searches             searches that are advanced from outside, a step at a time
"""

from collections.abc import Callable

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.automaton import RequiredWords
from glassformer.decode.beam import beam_search
from glassformer.decode.fusion import Fusion
from glassformer.decode.paths import Hypothesis
from glassformer.decode.request import Request
from glassformer.decode.scorer import Scorer, ScorerState
from glassformer.decode.stepwise import decode_stepwise, token_by_token
from glassformer.decode.stopping import cut_at_stop

__all__ = [
    "METHODS",
    "Fusion",
    "Hypothesis",
    "Request",
    "RequiredWords",
    "Scorer",
    "ScorerState",
    "cut_at_stop",
    "decode",
    "token_by_token",
]

METHODS: dict[str, Callable[[Scorer, Request, DecodeConfig], list[list[Hypothesis]]]] = {
    "greedy": decode_stepwise,
    "sample": decode_stepwise,
    "beam": beam_search,
}


def decode(
    scorer: Scorer, request: Request, config: DecodeConfig | None = None
) -> list[list[Hypothesis]]:
    """The answers of each row, best first."""
    config = DecodeConfig() if config is None else config
    return METHODS[config.method](scorer, request, config)
