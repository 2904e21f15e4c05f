"""BLEU, chrF and TER as sacreBLEU computes them, with its signatures. Post, 2018.

They are scores of detokenized text, never of subwords. Statistics and formula are sacreBLEU's own,
so a score equals the one its command prints. BLEU and TER count words; for languages without blanks
between words, sacreBLEU's tokenization `zh` is used for Chinese, and characters for others, whose
dictionaries it would have to download. The signature says which.
"""

import re
from collections.abc import Callable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from glassformer.errors import GlassformerError, install
from glassformer.metrics.measurement import Measurement, References, Texts, check_rows

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

CHINESE = re.compile("[\u3400-\u9fff]")
# Thai, Lao, Burmese, Khmer and Japanese kana: no blanks between words.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff]")
LETTER = re.compile(r"[^\W\d_]")


def bleu(answers: Texts, references: References, *, tokenize: str | None = None) -> Measurement:
    """BLEU, from 0 to 100. Papineni et al., 2002.

    Args:
        tokenize: SacreBLEU's tokenization; by default the one that suits the references.
    """
    metrics = _sacrebleu()
    tokenize = tokenize or tokenization_for(references)
    # A sentence of three words has no 4-grams, and may be right all the same.
    by_row = metrics.BLEU(tokenize=tokenize, effective_order=True)
    metric = metrics.BLEU(tokenize=tokenize, force=True)
    return _measurement(answers, references, metric, by_row, higher_is_better=True)


def chrf(answers: Texts, references: References) -> Measurement:
    """chrF2, the F-score of character n-grams, from 0 to 100. Popović, 2015."""
    metric = _sacrebleu().CHRF()
    return _measurement(answers, references, metric, metric, higher_is_better=True)


def ter(answers: Texts, references: References) -> Measurement:
    """Edits, shifts of phrases included, per 100 words of the references. Snover et al., 2006."""
    unspaced = tokenization_for(references) != "13a"
    metric = _sacrebleu().TER(normalized=unspaced, asian_support=unspaced)
    return _measurement(answers, references, metric, metric, higher_is_better=False)


def tokenization_for(references: References) -> str:
    """The sacreBLEU tokenization that suits most letters of the references.

    >>> tokenization_for([["Good morning!"]]), tokenization_for([["早上好！"]])
    ('13a', 'zh')
    >>> tokenization_for([["おはようございます"]])
    'char'
    """
    text = "".join(one for right in references for one in right)
    letters = len(LETTER.findall(text))
    unspaced, chinese = len(UNSPACED.findall(text)), len(CHINESE.findall(text))
    if 2 * (unspaced + chinese) <= letters:
        return "13a"
    return "char" if 10 * unspaced > chinese else "zh"


def _measurement(
    answers: Texts,
    references: References,
    metric: "Metric",
    by_row: "Metric",
    *,
    higher_is_better: bool,
) -> Measurement:
    """The statistics of each row, by the methods that sacreBLEU's significance test calls."""
    check_rows(answers, references)
    streams = [list(stream) for stream in zip_longest(*references)]  # None where a row has fewer
    rows = np.array(metric._extract_corpus_statistics(answers, streams), dtype=np.float64)
    score, score_of_row = _scorer(metric), _scorer(by_row)
    signature = str(metric.get_signature())
    return Measurement(rows, score, score_of_row, higher_is_better, "corpus", signature)


def _scorer(metric: "Metric") -> Callable[[np.ndarray], np.ndarray]:
    def scores(sums: np.ndarray) -> np.ndarray:
        return np.array([metric._compute_score_from_stats(one.tolist()).score for one in sums])

    return scores


def _sacrebleu() -> Any:
    try:
        from sacrebleu import metrics
    except ImportError:
        raise GlassformerError(
            f"BLEU, chrF and TER need sacrebleu, which is not installed; {install('translate')}"
        ) from None
    return metrics
