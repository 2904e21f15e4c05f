"""Small batches are computed by one thread, large ones by all."""

import pytest
import torch
from torch import nn

from glassformer.serving.threads import BRIEF, WORTHWHILE, Threads, vectors_of


@pytest.fixture(autouse=True)
def restored():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_a_large_batch_has_all_threads_and_a_small_one_a_single():
    torch.set_num_threads(2)
    model = nn.Sequential(nn.Embedding(10_000, 100), nn.Linear(100, 100))
    threads = Threads(model)
    assert threads.weights == 100 * 100  # a table is not multiplied with
    enough = int(WORTHWHILE / 2 / threads.weights)
    for vectors, expected in ((enough, 2), (enough - 1, 1), (2 * enough, 2), (0, 1)):
        threads.choose(vectors)
        assert torch.get_num_threads() == expected


def test_only_a_very_small_batch_is_brief():
    threads = Threads(nn.Linear(100, 100))
    few = int(BRIEF / 2 / threads.weights)
    assert threads.is_brief(few - 1)
    assert not threads.is_brief(few)


def test_texts_and_recordings_are_measured_by_what_a_model_makes_of_them():
    assert vectors_of(["a word or two"] * 8) == 8 * 3
    assert vectors_of([torch.zeros(16_000)]) == 40
