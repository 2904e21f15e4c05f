"""Writing: what a search found, as texts and tokens that can be shown."""

import math

import pytest
import torch

from glassformer.config.decoding import BeamConfig, DecodeConfig
from glassformer.core.layout import Layout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Hypothesis
from glassformer.errors import GlassformerError
from glassformer.tasks.shared.generation import GenerationOptions
from glassformer.tasks.shared.reliability import Bin, Reliability
from glassformer.tasks.shared.written import Token
from glassformer.tasks.translate.tokens import PairTokens
from glassformer.tasks.translate.writing import Writer, Written, as_prediction

TOKENS = Tokenizer.train("words", ["good morning", "good evening"] * 3, vocabulary=20)
GOOD, MORNING = TOKENS.encode(["good morning"])[0].tolist()


def writer(longest=9, **decode):
    pair = PairTokens(TOKENS, TOKENS, tags=("de", "en"))
    return Writer(pair, DecodeConfig(**decode), longest)


def found(*tokens, scores, others=None, reason="end"):
    return Hypothesis(
        tokens=tokens,
        score=-0.5,
        log_probability=sum(scores),
        token_scores=scores,
        alternatives=others or ((),) * len(scores),
        reason=reason,
    )


def test_the_end_is_a_token_of_an_answer_that_ended():
    ended = writer().written(found(GOOD, MORNING, scores=(-0.1, -0.2, -0.3)))
    assert ended.text == "good morning"
    assert [token.piece for token in ended.tokens] == ["good", "morning", "<end>"]
    cut = writer().written(found(GOOD, MORNING, scores=(-0.1, -0.2), reason="length"))
    assert [token.id for token in cut.tokens] == [GOOD, MORNING]


def test_a_stop_cuts_behind_all_required_words():
    said = found(GOOD, MORNING, GOOD, MORNING, scores=(-0.1,) * 4, reason="stop")
    assert writer(stop=("morning",)).written(said).text == "good"
    asked = GenerationOptions(decode={"method": "beam"}, required=("morning",))
    assert writer(stop=("good",)).with_options(asked).written(said).text == "good morning"
    assert writer(stop=("morning",)).with_options(asked).written(said).text == "good morning good"


def test_an_answer_has_room_for_what_it_must_say_and_for_its_end():
    ask = GenerationOptions(
        decode={"method": "beam"}, prefix="good " * 35, required=("morning", "evening")
    )
    ids, reads = torch.tensor([[GOOD, Tokenizer.end]]), Layout.full(1, 2)
    roomy = writer(longest=90)
    assert roomy._request(ids, reads, None).limits == [36]
    assert roomy.with_options(ask)._request(ids, reads, None).limits == [36 + 37]
    full = writer(longest=37).with_options(ask)
    assert full._request(ids, reads, None).limits == [38]
    with pytest.raises(GlassformerError, match=r"need 37 tokens, but answers have at most 36; req"):
        writer(longest=36).with_options(ask)


def test_a_tag_that_was_likely_is_shown_by_its_name():
    others = (((GOOD, -0.1), (TOKENS.size + 1, -2.0)), ((Tokenizer.end, -0.2),))
    said = as_prediction([writer().written(found(GOOD, scores=(-0.1, -0.2), others=others))])
    first, last = said.details["tokens"]
    assert [other["piece"] for other in first["instead"]] == ["good", "en"]
    assert last["instead"] == [{"id": Tokenizer.end, "piece": "<end>", "log_probability": -0.2}]


def test_the_seed_of_a_row_is_the_same_packed_and_padded():
    rows = [[5, 6, 7], [5], [6, 5]]
    lengths = list(map(len, rows))
    packed = torch.tensor([token for row in rows for token in row])
    padded = torch.tensor([[*row, *[0] * (3 - len(row))] for row in rows])
    seeds = writer(method="sample")._seeds(packed, Layout.packed(lengths))
    assert seeds == writer(method="sample")._seeds(padded, Layout.padded(lengths))
    assert len(set(seeds)) == len(rows)


@pytest.mark.parametrize("budget", [1, 7, 1000])
def test_answers_stand_in_the_order_of_their_sources(budget, monkeypatch):
    def told(self, model, ids, reads):
        return [[Written(str(int(row[0])), (), 0.0)] for row in ids]

    monkeypatch.setattr(Writer, "write", told)
    sources = [torch.full((length,), length).numpy() for length in (5, 2, 7, 3, 2)]
    found = writer().write_all(torch.nn.Linear(1, 1), sources, budget)
    assert [one.text for [one] in found] == ["5", "2", "7", "3", "2"]


def test_few_rows_are_written_together_where_many_ways_are_followed(monkeypatch):
    together = []

    def told(self, model, ids, reads):
        together.append(len(ids))
        return [[Written("", (), 0.0)]] * len(ids)

    monkeypatch.setattr(Writer, "write", told)
    sources = [torch.full((5,), 5).numpy()] * 8
    for decode in ({}, {"method": "beam", "beam": BeamConfig(width=32)}):
        writer(**decode).write_all(torch.nn.Linear(1, 1), sources, 40)
    writer(method="sample", best=1000).write_all(torch.nn.Linear(1, 1), sources, 40)
    assert together == [8, 4, 4, *[1] * 8]


def test_alternatives_say_something_else_and_each_only_once():
    texts = ["good morning", "good evening", "good morning", "good evening", "evening"]
    written = [Written(text, (), -float(n)) for n, text in enumerate(texts)]
    others = as_prediction(written).details["alternatives"]
    assert [one["text"] for one in others] == ["good evening", "evening"]
    assert [one["score"] for one in others] == [-1.0, -4.0]
    assert all(one["probability"] == 1.0 for one in others)


def test_an_answer_is_as_sure_as_validation_rows_say_and_others_by_their_joint_probability():
    tokens = tuple(Token(n, "x", math.log(0.5)) for n in range(3))
    written = [Written("yes", tokens[:2], 0.0), Written("no", tokens, -1.0)]
    known = as_prediction(written, Reliability((Bin(-9.0, 50, 10), Bin(-2.0, 60, 57))))
    assert (known.confidence, known.details["token_mean"]) == (0.95, pytest.approx(0.5))
    assert known.details["probability"] == pytest.approx(0.25)
    assert known.details["validation"] == {"right": 57, "rows": 60}
    assert known.evidence == "answers like this were right in 57 of 60 validation rows"
    assert known.details["alternatives"][0]["probability"] == pytest.approx(0.125)
    unknown = as_prediction(written)
    assert unknown.confidence == pytest.approx(0.5)
    assert "validation" not in unknown.details
    assert not unknown.evidence
