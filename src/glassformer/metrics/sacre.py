"""BLEU, chrF and TER as sacreBLEU computes them, with its signatures. Post, 2018.

They are scores of text as people write it, never of subwords. What each sentence adds to the sums
and what the sums make is asked of sacreBLEU itself, so that a score equals the one that its own
command prints. BLEU and TER count words; where a language writes none, sacreBLEU's own cutting is
used: `zh` for Chinese, and characters for others, whose dictionaries it would have to download.
The signature says so.
"""

import re
from collections.abc import Callable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from glassformer.errors import GlassformerError
from glassformer.metrics.measured import Measured, References, Texts, check_rows

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

MARKS = re.compile("▁|@@(?= |$)")  # of subwords, as tokenizers write them
CHINESE = re.compile("[\u3400-\u9fff]")
# Thai, Lao, Burmese and Khmer, which write no blanks between words, and Japanese kana.
UNCUT = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff]")
LETTER = re.compile(r"[^\W\d_]")


def bleu(answers: Texts, references: References, *, tokenize: str | None = None) -> Measured:
    """BLEU, from 0 to 100. Papineni et al., 2002.

    Args:
        tokenize: How sacreBLEU cuts words; by default what suits the references.
    """
    metrics = _sacrebleu()
    cut = tokenize or tokenization_for(references)
    # A sentence of three words has no four in a row, which is no reason to call it wrong.
    by_row = metrics.BLEU(tokenize=cut, effective_order=True)
    metric = metrics.BLEU(tokenize=cut, force=True)
    return _measured(answers, references, metric, by_row, higher_is_better=True)


def chrf(answers: Texts, references: References) -> Measured:
    """chrF2, the F-score of characters in a row, from 0 to 100. Popović, 2015."""
    metric = _sacrebleu().CHRF()
    return _measured(answers, references, metric, metric, higher_is_better=True)


def ter(answers: Texts, references: References) -> Measured:
    """Edits, moved phrases among them, for 100 words of the references. Snover et al., 2006."""
    uncut = tokenization_for(references) != "13a"
    metric = _sacrebleu().TER(normalized=uncut, asian_support=uncut)
    return _measured(answers, references, metric, metric, higher_is_better=False)


def tokenization_for(references: References) -> str:
    """How sacreBLEU should cut texts into words, by what most letters of the references are.

    >>> tokenization_for([["Good morning!"]]), tokenization_for([["早上好！"]])
    ('13a', 'zh')
    >>> tokenization_for([["おはようございます"]])
    'char'
    """
    text = "".join(one for right in references for one in right)
    letters = len(LETTER.findall(text))
    uncut, chinese = len(UNCUT.findall(text)), len(CHINESE.findall(text))
    if 2 * (uncut + chinese) <= letters:
        return "13a"
    return "char" if 10 * uncut > chinese else "zh"


def _measured(
    answers: Texts,
    references: References,
    metric: "Metric",
    by_row: "Metric",
    *,
    higher_is_better: bool,
) -> Measured:
    """The sums by sentence, through the methods that sacreBLEU's significance test calls."""
    check_rows(answers, references)
    _refuse_subwords(answers)
    streams = [list(stream) for stream in zip_longest(*references)]  # None where a row has fewer
    rows = np.array(metric._extract_corpus_statistics(answers, streams), dtype=np.float64)
    return Measured(
        rows, _scorer(metric), _scorer(by_row), higher_is_better, str(metric.get_signature())
    )


def _scorer(metric: "Metric") -> Callable[[np.ndarray], np.ndarray]:
    def scores(sums: np.ndarray) -> np.ndarray:
        return np.array([metric._compute_score_from_stats(one.tolist()).score for one in sums])

    return scores


def _refuse_subwords(answers: Texts) -> None:
    marked = [answer for answer in answers if MARKS.search(answer)]
    if 2 * len(marked) > len(answers):
        raise ValueError(
            f"BLEU, chrF and TER are for text as people write it; got subwords such as "
            f"{marked[0][:40]!r}; join them first"
        )


def _sacrebleu() -> Any:
    try:
        from sacrebleu import metrics
    except ImportError:
        raise GlassformerError(
            "BLEU, chrF and TER need sacrebleu, which is not installed; pip install "
            "'glassformer[translate]'"
        ) from None
    return metrics
