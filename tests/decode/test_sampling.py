"""Sampling: by the probabilities there are, and by a row's own seed alone."""

from collections import Counter

import pytest
import torch
from small_scorers import END, HashScorer

from glassformer.config import BeamConfig, DecodeConfig, SampleConfig
from glassformer.decode import Request, decode, noise, stepwise, token_by_token
from glassformer.errors import GlassformerError

V = 7


def sampled(scorer, seeds, best=1, length=6, **settings):
    config = DecodeConfig(
        method="sample", best=best, max_length=length, sample=SampleConfig(**settings)
    )
    return decode(scorer, Request(end=END, seeds=seeds), config)


def distance(counts, expected, draws):
    """Pearson's chi-square."""
    return sum((counts[t] - draws * p) ** 2 / (draws * p) for t, p in enumerate(expected) if p)


class Same(HashScorer):
    """Every row begins alike."""

    def __init__(self, rows):
        super().__init__(rows, V, spread=1.0)
        self.first = torch.full((rows,), 1000)


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 1.8}, {"top_k": 4}, {"top_p": 0.7}], ids=str
)
def test_samples_follow_the_probabilities(settings):
    """Over seeds and over the branches of a seed; 22.5 is passed once in a thousand times."""
    draws, scorer = 4000, Same(1)
    line = torch.tensor(scorer.scores([1000])) / settings.get("temperature", 1.0)
    if "top_k" in settings:
        line[line < line.topk(4).values[-1]] = -torch.inf
    share = line.softmax(-1)
    if "top_p" in settings:
        order = share.argsort(descending=True)
        before = share[order].cumsum(0) - share[order]
        share[order[before >= 0.7]] = 0
        share /= share.sum()
    for rows, best in ((draws, 1), (4, draws // 4)):
        found = sampled(Same(rows), list(range(rows)), best, 1, **settings)
        said = [END if h.reason == "end" else h.tokens[0] for row in found for h in row]
        assert len(said) == draws
        assert distance(Counter(said), share.tolist(), draws) < 22.5


class Confident(HashScorer):
    """Its logits are always the same."""

    def scores(self, said):
        return [10.0, 9.0, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("method", ["greedy", "sample"])
def test_a_repetition_penalty_divides_logits_so_that_it_holds_back_what_a_model_is_sure_of(method):
    """10 / 1.3 is below 9; log p(0) = -0.31 times 1.3 would still be the largest."""
    config = DecodeConfig(
        method=method, max_length=1, repetition=1.3, sample=SampleConfig(top_p=0.7)
    )
    found = decode(Confident(20, 6), Request(end=-1, prompts=[[0]] * 20), config)
    assert [row[0].tokens for row in found] == [(1,)] * 20
    assert found[0][0].token_scores == pytest.approx(
        [
            -1.31,
        ],
        abs=0.01,
    )  # the model's own


def test_neighbours_do_not_change_what_a_row_says():
    seeds = [5, 2**40 + 5, 5, 77]
    scorer = HashScorer(4, V)
    together = sampled(scorer, seeds, best=2)
    for row, seed in enumerate(seeds):
        alone = HashScorer(4, V)
        alone.first = alone.first[row : row + 1]
        assert sampled(alone, [seed], best=2) == [together[row]]


def test_seeds_branches_and_steps_draw_apart():
    same = sampled(Same(3), [1, 1, 2], best=2, length=9)
    assert same[0] == same[1] != same[2]
    assert same[0][0].tokens != same[0][1].tokens
    keys = [
        tuple(noise.keys(torch.tensor([s]), 1, t).flatten().tolist())
        for s in (1, 2)
        for t in (1, 2)
    ]
    assert len(set(keys)) == 4


def test_rows_without_seeds_count_from_the_setting():
    config = DecodeConfig(method="sample", max_length=6, sample=SampleConfig(seed=40))
    found = decode(Same(3), Request(end=END), config)
    assert found == sampled(Same(3), [40, 41, 42])


def test_noise_is_gumbels():
    """Its mean is Euler's constant, its variance π²/6, its tails those of the formula."""
    x = noise.gumbel(noise.keys(torch.arange(11), 3, 8), torch.arange(20_000)).flatten().double()
    assert abs(x.mean() - 0.57722) < 0.01
    assert abs(x.var() - torch.pi**2 / 6) < 0.02
    for at in (-1.5, 0.0, 1.0, 4.0):
        assert abs((x < at).double().mean() - torch.exp(-torch.exp(torch.tensor(-at)))) < 0.002


def test_noise_does_not_depend_on_which_tokens_are_asked_for():
    key = noise.keys(torch.tensor([3, 4]), 2, 5)
    every = noise.gumbel(key, torch.arange(100))
    some = torch.randint(100, (2, 2, 9))
    assert torch.equal(noise.gumbel(key, some), every.gather(-1, some))


def test_greedy_says_the_likeliest_and_scores_it():
    scorer = HashScorer(5, V)
    for row, (found,) in enumerate(decode(scorer, Request(end=END), DecodeConfig(max_length=8))):
        said = [1000 + row]
        for token, score in zip([*found.tokens, END], found.token_scores, strict=False):
            line = torch.tensor(scorer.scores(said)).log_softmax(-1)
            assert token == line.argmax()
            assert abs(score - line.max()) < 1e-5
            said.append(token)
        assert found.log_probability == sum(found.token_scores)
        assert found.score == pytest.approx(found.log_probability / len(found.token_scores))


@pytest.mark.parametrize("method", ["greedy", "sample"])
def test_tokens_that_are_read_late_change_no_answer(method, monkeypatch):
    """As on a GPU: rows end, leave the batch and reach their limits in the middle of a burst."""
    config = DecodeConfig(method=method, best=1 if method == "greedy" else 2, max_length=13)
    ask = Request(end=END, limits=[13, 2, 9, 13, 5])
    answers, texts = [], []
    for burst in (1, 4):
        monkeypatch.setattr(stepwise, "BURST", {"cpu": burst})
        answers.append(decode(HashScorer(5, 7, end=0.5, compact_below=0.7), ask, config))
        one = token_by_token(HashScorer(1, 7, end=0.5), Request(end=END), config)
        with torch.no_grad():
            texts.append([tokens.tolist() for tokens in one])
    assert answers[0] == answers[1]
    assert texts[0] == texts[1]


def test_samples_come_best_first_by_the_average_of_their_tokens():
    for row in sampled(HashScorer(3, V), [3, 1, 2], best=9):
        averages = [sum(h.token_scores) / len(h.token_scores) for h in row]
        assert averages == sorted(averages, reverse=True)
        assert [h.score for h in row] == pytest.approx(averages)
        assert len({len(h.tokens) for h in row}) > 1


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (
            lambda: SampleConfig(temperature=0.0),
            r"temperature must be at least 0.001, got 0.0; .*method=greedy",
        ),
        (lambda: SampleConfig(temperature=1e-300), r"must be at least 0.001, got 1e-300"),
        (lambda: SampleConfig(top_k=-1), r"top_k must be 0 or more, got -1"),
        (lambda: SampleConfig(top_p=0.0), r"top_p must lie in \(0, 1\], got 0"),
        (lambda: SampleConfig(typical=2.0), r"typical must lie in \(0, 1\], got 2"),
        (lambda: SampleConfig(min_p=-1.0), r"min_p must lie in \[0, 1\], got -1"),
        (lambda: DecodeConfig(method="gredy"), r"unknown decode.method 'gredy'; did you mean"),
        (lambda: DecodeConfig(best=2), r"decode.best = 2, but greedy gives one answer"),
        (lambda: DecodeConfig(method="beam", best=9), r"9 is more than decode.beam.width = 4"),
        (lambda: DecodeConfig(min_length=300), r"min_length must lie in 0 ... max_length \(256\)"),
        (lambda: DecodeConfig(repetition=0.0), r"repetition must be above 0, got 0"),
        (lambda: DecodeConfig(no_repeat=-1), r"no_repeat must be 0 or more, got -1"),
        (lambda: DecodeConfig(stop=("",)), r"decode.stop holds an empty text"),
        (lambda: DecodeConfig(max_length=0), r"decode.max_length must be at least 1, got 0"),
        (lambda: BeamConfig(width=4, groups=3), r"width 4 cannot be split into 3 equal groups"),
        (lambda: BeamConfig(width=0), r"decode.beam.width must be at least 1, got 0"),
        (lambda: BeamConfig(width=1001), r"decode.beam.width must be at most 1,000, got 1001"),
        (lambda: BeamConfig(strength=-1e30), r"strength must lie in \[-5, 5\], got -1e\+30; 1 is"),
        (lambda: BeamConfig(diversity=-0.5), r"diversity must be 0 or more, got -0.5"),
        (lambda: BeamConfig(diversity=1e300), r"diversity must be at most 1,000, got 1e\+300"),
        (lambda: DecodeConfig(repetition=1e300), r"repetition must be at most 1,000, got"),
        (lambda: DecodeConfig(alternatives=1001), r"alternatives must be at most 1,000, got 1001"),
        (
            lambda: DecodeConfig(method="sample", best=1001),
            r"decode.best must be at most 1,000, got 1001",
        ),
        (lambda: BeamConfig(penalty="gmnt"), r"unknown decode.beam.penalty 'gmnt'; did you mean"),
        (lambda: BeamConfig(stopping="late"), r"unknown decode.beam.stopping 'late'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, complaint):
    with pytest.raises(GlassformerError, match=complaint):
        make()
