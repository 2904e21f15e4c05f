"""CTC: searches agree with exhaustive search, and scores with PyTorch's loss."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from glassformer.decode.ctc import (
    ctc_align,
    ctc_greedy,
    ctc_prefix_beam,
    ctc_scores,
    deterministic_ctc_loss,
    frames_needed,
)

BLANK = 1
LENGTHS = [5, 3, 1]


def log_probs(seed=0, rows=3, frames=5, vocab_size=3, sharpness=2.0):
    torch.manual_seed(seed)
    return (sharpness * torch.randn(rows, frames, vocab_size)).log_softmax(-1)


def text_of(path):
    return tuple(token for token, _ in itertools.groupby(path) if token != BLANK)


def all_paths(scores, length):
    """Every path of a row, with its log-probability."""
    for path in itertools.product(range(scores.shape[-1]), repeat=length):
        yield path, sum(float(scores[frame, token]) for frame, token in enumerate(path))


def all_texts(scores, length):
    """The log-probability of every text of a row, by adding up its paths."""
    found = {}
    for path, score in all_paths(scores, length):
        found.setdefault(text_of(path), []).append(score)
    return {text: float(torch.tensor(some).logsumexp(0)) for text, some in found.items()}


@pytest.mark.parametrize("seed", range(5))
def test_a_wide_prefix_beam_finds_what_exhaustive_search_finds(seed):
    scores = log_probs(seed)
    found = ctc_prefix_beam(scores, LENGTHS, blank=BLANK, width=64)
    for row, length in enumerate(LENGTHS):
        right = all_texts(scores[row], length)
        assert {one.tokens: one.log_probability for one in found[row]} == pytest.approx(
            right, abs=1e-4
        )
        ranked = [one.log_probability for one in found[row]]
        assert ranked == sorted(ranked, reverse=True)


@pytest.mark.parametrize("seed", range(3))
def test_a_narrow_prefix_beam_never_counts_a_path_twice(seed):
    scores = log_probs(seed, frames=6, vocab_size=4, rows=2)
    found = ctc_prefix_beam(scores, [6, 5], blank=BLANK, width=8)
    for row, length in enumerate([6, 5]):
        right = all_texts(scores[row], length)
        assert all(one.log_probability <= right[one.tokens] + 1e-4 for one in found[row])
        assert len({one.tokens for one in found[row]}) == 8


def test_the_likeliest_text_need_not_be_that_of_the_likeliest_path():
    scores = torch.tensor([[[0.4, 0.6], [0.4, 0.6]]]).log()  # blank, blank: 0.36; the token: 0.64
    assert ctc_greedy(scores, [2], blank=BLANK)[0].tokens == ()
    assert ctc_prefix_beam(scores, [2], blank=BLANK, width=2)[0][0].tokens == (0,)


@pytest.mark.parametrize("seed", range(3))
def test_greedy_search_takes_the_likeliest_path_and_tells_where_tokens_begin(seed):
    scores = log_probs(seed)
    for row, (found, length) in enumerate(
        zip(ctc_greedy(scores, LENGTHS, blank=BLANK), LENGTHS, strict=True)
    ):
        path, score = max(all_paths(scores[row], length), key=lambda one: one[1])
        assert found.tokens == text_of(path)
        assert found.log_probability == pytest.approx(score, abs=1e-5)
        assert tuple(path[frame] for frame in found.starts) == found.tokens
        assert all(frame == 0 or path[frame - 1] != path[frame] for frame in found.starts)


@pytest.mark.parametrize("text", [(), (0,), (0, 2), (2, 2), (0, 0, 2)])
def test_an_alignment_is_the_likeliest_path_of_its_text(text):
    scores = log_probs(3)
    found = ctc_align(scores, LENGTHS, [text] * 3, blank=BLANK)
    for row, (spans, length) in enumerate(zip(found, LENGTHS, strict=True)):
        paths = [one for one in all_paths(scores[row], length) if text_of(one[0]) == text]
        assert (spans is None) == (not paths) == (frames_needed(text) > length)
        if spans is not None:
            path = [BLANK] * length
            for token, span in zip(text, spans, strict=True):
                path[span.start : span.end] = [token] * (span.end - span.start)
            assert tuple(path) == max(paths, key=lambda one: one[1])[0]


def test_scores_of_texts_are_sums_over_their_paths_and_minus_infinity_where_none_fits():
    scores = log_probs(4)
    texts = [[(0, 2), ()], [], [(0,), (0, 2)]]
    found = ctc_scores(scores, LENGTHS, texts, blank=BLANK)
    right = [all_texts(scores[row], length) for row, length in enumerate(LENGTHS)]
    assert found[0] == pytest.approx([right[0][text] for text in texts[0]], abs=1e-4)
    assert found[1] == []
    assert found[2] == pytest.approx([right[2][(0,)], -torch.inf], abs=1e-4)
    alone = F.ctc_loss(
        scores[:1].transpose(0, 1), torch.tensor([0, 2]), (5,), (2,), blank=BLANK, reduction="sum"
    )
    assert found[0][0] == pytest.approx(-float(alone), abs=1e-5)
    assert ctc_scores(scores, LENGTHS, [[], [], []], blank=BLANK) == [[], [], []]


def texts_and_scores(found):
    several = found if isinstance(found, list) else [found]
    return [(one.tokens, pytest.approx(one.log_probability, abs=1e-5)) for one in several]


def test_padding_and_other_rows_change_nothing():
    scores = log_probs(5, frames=5)
    padded = F.pad(scores, (0, 0, 0, 3), value=7.0)
    for row, length in enumerate(LENGTHS):
        alone = scores[row : row + 1, :length]
        for search in (ctc_greedy, lambda *given, **more: ctc_prefix_beam(*given, width=3, **more)):
            together, single = (
                search(some, lengths, blank=BLANK)[number]
                for some, lengths, number in ((padded, LENGTHS, row), (alone, [length], 0))
            )
            assert texts_and_scores(together) == texts_and_scores(single)
        texts = [(0,)] * 3
        spans = ctc_align(padded, LENGTHS, texts, blank=BLANK)[row]
        assert spans == ctc_align(alone, [length], texts[:1], blank=BLANK)[0]


@pytest.mark.parametrize("blank", [0, 3])
def test_the_deterministic_loss_and_its_gradient_are_those_of_torch(blank):
    logits = torch.randn(5, 13, 6, dtype=torch.float64, requires_grad=True)
    tokens = torch.tensor([token for token in range(6) if token != blank])
    labels = tokens[torch.randint(5, (5, 4))]
    labels[0] = tokens[torch.tensor([1, 1, 1, 4])]  # equal ones need a blank between them
    lengths, counts = torch.tensor([13, 7, 9, 1, 4]), torch.tensor([4, 2, 0, 1, 3])
    weights = torch.rand(5, dtype=torch.float64)
    given = (labels, lengths, counts)
    log_probs = logits.log_softmax(-1)
    ours = deterministic_ctc_loss(log_probs, *given, blank=blank)
    torchs = F.ctc_loss(log_probs.transpose(0, 1), *given, blank=blank, reduction="none")
    torch.testing.assert_close(ours, torchs)
    found = [
        torch.autograd.grad((loss * weights).sum(), logits, retain_graph=True)[0]
        for loss in (ours, torchs)
    ]
    torch.testing.assert_close(*found)
