"""CTC: from the scores of every frame to tokens, without a decoder. Graves et al., 2006.

A path names a token or the blank for every frame. Its text is what remains when runs of equal
tokens become one and blanks are dropped, so many paths have the same text:

    the text  "aab"   is written by the paths   a-ab   aa-ab   -a-ab ...      (- is the blank)

    ctc_greedy               the text of the likeliest path
    ctc_prefix_beam          the likeliest texts: the paths of a text are added up
    ctc_align                the likeliest path of a given text: where each token begins and ends
    ctc_scores               the log-probability of given texts
    deterministic_ctc_loss   the loss of given texts, with the same bits every time
    frames_needed            how many frames a text needs at least

All work on a padded batch of log-probabilities (B, T, V), and read the device at the end only.
"""

from glassformer.decode.ctc.alignment import Span, ctc_align
from glassformer.decode.ctc.greedy import CtcPath, ctc_greedy
from glassformer.decode.ctc.loss import deterministic_ctc_loss
from glassformer.decode.ctc.prefix_beam import CtcHypothesis, ctc_prefix_beam
from glassformer.decode.ctc.scores import ctc_scores, frames_needed

__all__ = [
    "CtcHypothesis",
    "CtcPath",
    "Span",
    "ctc_align",
    "ctc_greedy",
    "ctc_prefix_beam",
    "ctc_scores",
    "deterministic_ctc_loss",
    "frames_needed",
]
