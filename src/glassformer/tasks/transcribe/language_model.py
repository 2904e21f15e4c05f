"""The language model of a run: n-grams of its training transcripts, and the weights of scores.

Beam searches add weight log p(text) to the score of a text. This weight, and the share of CTC in a
joint search, are those with the fewest errors on the validation rows, or on some of them: they are
searched with each weight.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Fusion
from glassformer.files import read_json, write_json
from glassformer.tasks.shared.ngram_model import NgramModel
from glassformer.tasks.transcribe.answers import Transcripts
from glassformer.tasks.transcribe.searching import Searcher
from glassformer.tasks.transcribe.settings import TranscribeConfig

NGRAMS, CHOSEN = "ngrams.safetensors", "search.json"
WEIGHTS = (0.0, 0.15, 0.3, 0.5, 0.7)  # that are tried
USUAL = 0.3  # the weight until one is chosen
SHARES = (0.3, 0.5, 0.7, 0.9)  # of CTC
TRIED = 300  # validation rows, about
ORDERS = {"characters": 6, "bytes": 6}
ORDER = 4  # of subwords
MOST_TOKENS = 2_000_000


def learn_language_model(tokenizer: Tokenizer, texts: Iterable[str], folder: Path) -> None:
    """Count the n-grams of transcripts, as many of them as are quickly counted."""
    learned, tokens = [], 0
    for ids in tokenizer.encode(list(texts)):
        learned.append(ids.astype(np.int64))
        tokens += len(ids)
        if tokens > MOST_TOKENS:
            break
    model = NgramModel.learn(
        learned,
        vocab_size=tokenizer.size,
        order=ORDERS.get(tokenizer.kind, ORDER),
        ends=(Tokenizer.start, Tokenizer.end),
    )
    model.save(folder / NGRAMS)


def open_fusion(folder: Path, settings: TranscribeConfig) -> Fusion | None:
    """The language model of a run, with its weight; None without one."""
    weight = chosen(folder).get("weight", USUAL) if settings.lm is None else settings.lm
    path = folder / NGRAMS
    if not weight or settings.decode.method != "beam" or not path.exists():
        return None
    return Fusion(NgramModel.load(path), weight, Tokenizer.end)


def share_of(folder: Path, settings: TranscribeConfig) -> float:
    """The share of CTC in a joint search."""
    found = chosen(folder) if settings.lm is None else {}
    return found.get("share", settings.ctc_weight)


def chosen(folder: Path) -> dict[str, float]:
    """What was found on the validation rows: weights, and the errors with them and before."""
    path = folder / CHOSEN
    return dict(read_json(path)) if path.exists() else {}


def trials(searcher: Searcher, folder: Path, settings: TranscribeConfig) -> list[Searcher]:
    """The searches by whose answers weights are chosen; only the search itself once they are."""
    fusion = searcher.fusion
    if fusion is None or settings.lm is not None or chosen(folder):
        return [searcher]
    return [replace(searcher, fusion=replace(fusion, weight=weight)) for weight in WEIGHTS]


def choose_weights(answers: Transcripts, folder: Path, share: float, *, joint: bool) -> None:
    """Store the weights with the fewest errors on these rows; of equal ones, the first.

    Args:
        share: Of CTC, as in the settings.
        joint: Whether another share may be chosen.
    """
    shares = dict.fromkeys((share, *SHARES) if joint else (share,))
    errors = dict.fromkeys(product(shares, WEIGHTS), 0)
    for row, right in zip(answers.choices, answers.right, strict=True):
        for weight, tried in zip(WEIGHTS, row, strict=True):
            for part in shares:
                text, _ = max(tried, key=lambda one: one[1].total(part, weight))
                errors[part, weight] += len(answers.errors(text, right))
    best = min(errors, key=errors.__getitem__)
    before = errors[share, 0.0]
    found = {"share": best[0], "weight": best[1], "errors": errors[best], "errors_before": before}
    write_json(found, folder / CHOSEN)
