"""Vectors of words from the words around them."""

import pytest
import torch

from glassformer.errors import GlassformerError
from glassformer.runs.request import TrainRequest
from glassformer.tasks.classify.word_vectors import (
    WINDOW,
    cooccurrences,
    positive_information,
    word_vectors,
)


def joined(*texts):
    words = torch.tensor([word for text in texts for word in text])
    return words, torch.repeat_interleave(torch.tensor([len(text) for text in texts]))


def test_words_of_one_text_occur_together_the_less_the_farther_apart():
    texts = [[0, 1, 2, 1], [3] * 2, [4], [1, *[5] * (WINDOW - 1), 2]]
    expected = torch.zeros(7, 7)
    for text in texts:
        for i, first in enumerate(text):
            for j, second in enumerate(text):
                if 0 < abs(i - j) <= WINDOW:
                    expected[first, second] += abs(i - j) ** -0.5
    torch.testing.assert_close(cooccurrences(*joined(*texts), 7).to_dense(), expected)


def test_information_is_the_logarithm_of_more_than_chance():
    counts = torch.tensor([[4.0, 1.0, 0.0], [1.0, 0.0, 3.0], [0.0, 3.0, 2.0]])
    often = counts.sum(1)
    contexts = often**0.75 / (often**0.75).sum()
    expected = torch.log(counts / often[:, None] / contexts).clamp(min=0)
    found = positive_information(counts.to_sparse().coalesce()).to_dense()
    torch.testing.assert_close(found, expected)


def test_words_that_are_used_alike_are_near_each_other():
    rng = torch.Generator().manual_seed(0)
    texts = []
    for _ in range(400):  # 0 and 1 stand among 4 to 9, 2 and 3 among 10 to 15
        half = int(torch.randint(2, (), generator=rng))
        around = torch.randint(4 + 6 * half, 10 + 6 * half, (6,), generator=rng).tolist()
        word = 2 * half + int(torch.randint(2, (), generator=rng))
        texts.append([*around[:3], word, *around[3:]])
    given = {"vocabulary": 17, "dim": 3, "seed": 5}
    vectors, known = word_vectors(*joined(*texts), **given)
    assert known.tolist() == list(range(16))  # 16 never occurs
    assert not vectors[16].any()
    torch.testing.assert_close(vectors[known].norm(dim=1), torch.ones(16), atol=1e-4, rtol=0)
    near = vectors @ vectors.T
    assert min(near[0, 1], near[2, 3]) > 0.9 > 0.5 > near[:2, 2:4].max()
    assert torch.equal(word_vectors(*joined(*texts), **given)[0], vectors)


def test_they_are_singular_vectors_of_the_information_but_the_first():
    rng = torch.Generator().manual_seed(3)
    texts = [torch.randint(9, (13,), generator=rng).tolist() for _ in range(7)]
    information = positive_information(cooccurrences(*joined(*texts), 9)).to_dense()
    left, sizes, _ = torch.linalg.svd(information)
    expected = (left * sizes.sqrt())[:, 1:]
    expected = torch.nn.functional.normalize(expected - expected.mean(0))
    found, _ = word_vectors(*joined(*texts), vocabulary=9, dim=8, seed=0)
    near = found @ found.T  # whatever the signs of the directions
    torch.testing.assert_close(near, expected @ expected.T, atol=1e-3, rtol=0)


@pytest.mark.parametrize("texts", [[[3]], [[], [2, 2]]], ids=["one word", "one word twice"])
def test_words_without_others_around_them_have_no_vector(texts):
    vectors, known = word_vectors(*joined(*texts), vocabulary=5, dim=4, seed=0)
    assert not len(known)
    assert not vectors.any()


def test_there_may_be_fewer_words_than_dimensions():
    vectors, known = word_vectors(*joined([0, 1, 2, 1, 0]), vocabulary=4, dim=9, seed=0)
    assert vectors.isfinite().all()
    assert set(known.tolist()) <= {0, 1, 2}


def test_other_names_are_refused():
    request = TrainRequest(job="classify", data=("x.csv",), settings=("task.vectors=ppm",))
    with pytest.raises(GlassformerError, match="ppmi"):
        request.resolve()
