"""The next best texts of a recording, as its search compared them."""

import math
from dataclasses import replace
from typing import Any

from glassformer.tasks.transcribe.choices import Written
from glassformer.tasks.transcribe.searching import Searcher


def with_choices(searcher: Searcher, count: int) -> Searcher:
    """A search that compares more texts than it is asked for."""
    if not count:
        return searcher
    decode = searcher.decode
    if decode.method == "beam" and decode.beam.width > count:
        return searcher
    beam = replace(decode.beam, width=max(decode.beam.width, count + 1))
    return replace(searcher, decode=replace(decode, method="beam", beam=beam))


def next_best(searcher: Searcher, written: Written, count: int) -> list[dict[str, Any]]:
    """The most likely texts besides the one that was written, each once."""
    weight = 0.0 if searcher.fusion is None else searcher.fusion.weight
    found = dict[str, float]()
    for one in sorted(written.choices, key=lambda choice: -choice.total(searcher.share, weight)):
        text = " ".join(searcher.tokenizer.decode(list(one.tokens)).split())
        if text != written.text:
            found.setdefault(text, math.exp(min(0.0, one.score(searcher.share))))
    likely = list(found.items())[:count]
    return [{"text": text, "probability": probability} for text, probability in likely]
