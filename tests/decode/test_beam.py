"""Beam search: exhaustive where the beam is wide, greedy where it is one, and never too early."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from small_scorers import END, HashScorer

from glassformer.config.decoding import BeamConfig, DecodeConfig
from glassformer.decode import Request, decode
from glassformer.decode.beam import Search
from glassformer.decode.penalties import PENALTIES
from glassformer.errors import GlassformerError, NonFiniteScoresError

ASK = Request(end=END)
PENALISED = [("none", 1.0), ("average", 1.0), ("average", 0.6), ("average", -0.7), ("gnmt", 0.9)]


def beam_of(width, *, best=None, length=8, **settings):
    beam = BeamConfig(width=width, **{"penalty": "none", **settings})
    return DecodeConfig(method="beam", best=best or width, max_length=length, beam=beam)


def everything_sayable(scorer, row, limit, vocabulary):
    """Every sequence that ends within the limit or is cut off by it, with its log-probability."""
    for length in range(1, limit + 1):
        for said in product(range(vocabulary), repeat=length):
            if END in said[:-1] or (length < limit and said[-1] != END):
                continue
            yield said, sum(scorer.log_probabilities(row, said))


def divisor(length, penalty, strength):
    return {
        "none": 1.0,
        "average": length**strength,
        "gnmt": ((5 + length) / 6) ** strength,
    }[penalty]


def said_by(hypothesis):
    return (*hypothesis.tokens, END) if hypothesis.reason == "end" else hypothesis.tokens


@pytest.mark.parametrize(("penalty", "strength"), PENALISED)
@pytest.mark.parametrize("stopping", ["exact", "soon"])
def test_a_beam_as_wide_as_the_space_is_exhaustive_search(penalty, strength, stopping):
    vocabulary, limit, rows = 4, 4, 3
    scorer = HashScorer(rows, vocabulary)
    config = beam_of(
        vocabulary**limit, best=7, length=limit, penalty=penalty, strength=strength,
        stopping=stopping,
    )  # fmt: skip
    for row, found in enumerate(decode(scorer, ASK, config)):
        every = [
            (total / divisor(len(said), penalty, strength), said)
            for said, total in everything_sayable(scorer, row, limit, vocabulary)
        ]
        expected = sorted(every, reverse=True)[:7]
        assert [said_by(hypothesis) for hypothesis in found] == [said for _, said in expected]
        torch.testing.assert_close(
            [hypothesis.score for hypothesis in found], [score for score, _ in expected]
        )


@pytest.mark.parametrize("end", [-1.0, 1.0, 3.0])
def test_a_beam_of_one_is_greedy(end):
    scorer = HashScorer(11, 17, end=end)
    for more in ({}, {"no_repeat": 2, "min_length": 3}):
        beam = replace(beam_of(1, length=9), **more)
        greedy = decode(scorer, ASK, DecodeConfig(max_length=9, **more))
        found = decode(scorer, ASK, beam)
        assert [row[0].tokens for row in found] == [row[0].tokens for row in greedy]
        assert [row[0].reason for row in found] == [row[0].reason for row in greedy]


@pytest.mark.parametrize(("penalty", "strength"), PENALISED)
def test_a_row_stops_only_when_nothing_can_end_better(penalty, strength, monkeypatch):
    """Against a search that never stops before its limit."""
    config = beam_of(3, length=12, penalty=penalty, strength=strength)
    scorers = [HashScorer(23, 9, end=1.5) for _ in range(2)]
    early = decode(scorers[0], ASK, config)
    monkeypatch.setattr(Search, "_is_done", lambda self, group, length: self.limits[:, 0] <= length)
    late = decode(scorers[1], ASK, config)
    assert early == late
    rows = [sum(rows for rows, _ in scorer.asked) for scorer in scorers]
    rewarded = penalty != "none" and strength > 0  # for length, and so the limit is what ends it
    assert rows[0] < rows[1] or rewarded


def test_soon_stops_sooner():
    steps = []
    for stopping in ("exact", "soon"):
        scorer = HashScorer(13, 9, end=1.5)
        decode(scorer, ASK, beam_of(3, length=30, penalty="average", stopping=stopping))
        steps.append(len(scorer.asked))
    assert steps[1] < steps[0]


def test_scores_are_the_models_own():
    scorer = HashScorer(5, 11, end=1.0)
    config = replace(beam_of(4, penalty="average"), alternatives=3, repetition=1.3)
    for row, found in enumerate(decode(scorer, ASK, config)):
        assert len(found) == 4
        for hypothesis in found:
            said = said_by(hypothesis)
            own = scorer.log_probabilities(row, said)
            torch.testing.assert_close(list(hypothesis.token_scores), own)
            torch.testing.assert_close(hypothesis.log_probability, sum(own))
            assert len(hypothesis.alternatives) == len(said)
            for step, best in enumerate(hypothesis.alternatives):
                before = [int(scorer.first[row]), *said[:step]]
                line = torch.tensor(scorer.scores(before)).log_softmax(-1)
                assert [token for token, _ in best] == line.topk(3).indices.tolist()
                torch.testing.assert_close([score for _, score in best], line.topk(3)[0].tolist())


@pytest.mark.parametrize("stopping", ["exact", "soon"])
def test_rows_are_searched_as_if_alone(stopping):
    """Whenever others leave the batch, and whatever the limits of others are."""
    rows, limits = 7, [3, 9, 5, 9, 1, 7, 4]
    config = beam_of(3, length=9, penalty="average", stopping=stopping)
    alone = []
    for row in range(rows):
        scorer = HashScorer(rows, 9, end=1.0)
        scorer.first = scorer.first[row : row + 1]
        alone += decode(scorer, Request(end=END, limits=[limits[row]]), config)
    for share in (1.0, 0.5, 0.0):
        scorer = HashScorer(rows, 9, end=1.0, compact_below=share)
        together = decode(scorer, Request(end=END, limits=limits), config)
        assert together == alone
        assert (scorer.asked[-1][0] == rows) == (share == 0)
    assert all(len(h.token_scores) <= limits[row] for row, found in enumerate(alone) for h in found)


def test_finished_rows_leave_the_batch():
    scorer = HashScorer(19, 9, end=2.0)
    decode(scorer, ASK, DecodeConfig(max_length=12))
    sizes = [rows for rows, _ in scorer.asked]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]


def test_groups_say_different_things():
    def firsts(diversity):
        config = beam_of(6, length=5, groups=3, diversity=diversity)
        found = decode(HashScorer(9, 17), ASK, config)
        return sum(len({h.tokens[:1] for h in row}) for row in found) / len(found)

    assert firsts(50.0) > firsts(0.0) + 1


def test_without_diversity_each_group_is_a_beam_of_its_own_width():
    """Equal groups say the same, which is said once."""
    alone = decode(HashScorer(9, 17), ASK, beam_of(2, length=5))
    groups = decode(HashScorer(9, 17), ASK, beam_of(6, length=5, groups=3, diversity=0.0))
    assert groups == alone


def test_diversity_does_not_enter_the_scores():
    scorer = HashScorer(5, 11)
    for row, found in enumerate(decode(scorer, ASK, beam_of(4, groups=2, diversity=2.0))):
        for hypothesis in found:
            own = sum(scorer.log_probabilities(row, said_by(hypothesis)))
            torch.testing.assert_close(hypothesis.score, own)


def test_every_penalty_only_grows_or_only_falls():
    """What `Ranking.reachable` relies on."""
    lengths = torch.arange(1, 99)
    for penalty in PENALTIES.values():
        for strength in (-1.5, -0.3, 0.0, 0.3, 1.5):
            steps = penalty(lengths, strength).diff()
            assert (steps >= 0).all() or (steps <= 0).all()


def test_a_row_without_any_allowed_token_is_named():
    nothing = [[token] for token in range(5)]
    for method in ("greedy", "beam"):
        with pytest.raises(GlassformerError, match=r"row 1: the given rules allow no token"):
            decode(
                HashScorer(2, 5), Request(end=END, forbidden=nothing), DecodeConfig(method=method)
            )


class Broken(HashScorer):
    """Every score is NaN, from some token on."""

    def __init__(self, rows, vocabulary, good):
        super().__init__(rows, vocabulary, end=-9.0)
        self.good = good

    def scores(self, said):
        return super().scores(said) if len(said) <= self.good else [torch.nan] * self.vocabulary


@pytest.mark.parametrize("good", [0, 2])
@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_scores_that_are_not_finite_are_refused_as_such(method, good):
    for required in ((), [[(3,)]] * 2) if method == "beam" else ((),):
        with pytest.raises(NonFiniteScoresError, match="row 1: the model's scores are not finite"):
            decode(
                Broken(2, 5, good),
                Request(end=END, required=required),
                DecodeConfig(method=method, max_length=6),
            )
