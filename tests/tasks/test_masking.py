"""Gaps: whole words, the asked share, and what stands in their place."""

import numpy as np
import pytest

from glassformer.data.text.tokenizer import Tokenizer
from glassformer.tasks.pretrain.masking import choose_words, hide

TEXT = "Wonderful films, 1999's best; unbelievable 日本 stories again and again!"


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("kind", ["bytes", "characters", "bpe", "unigram", "words"])
def test_whole_words_are_chosen_never_part_of_one(kind):
    tokenizer = Tokenizer.train(kind, [TEXT] * 3, vocabulary=300)
    [ids] = tokenizer.encode([TEXT])
    words = tokenizer.word_of(ids)
    seen = set()
    for seed in range(30):
        chosen = choose_words(words, 0.3, rng(seed))
        for word in range(words[-1] + 1):
            assert len({*chosen[words == word].tolist()}) == 1
        seen |= {*words[chosen].tolist()}
    assert seen == {*range(words[-1] + 1)}, "any word can be chosen"


def test_the_share_of_words_is_met():
    words = np.repeat(np.arange(20_011), 3)
    assert choose_words(words, 0.25, rng()).mean() == pytest.approx(0.25, abs=0.01)


def test_a_row_has_one_gap_at_least_and_an_empty_one_none():
    for seed in range(20):
        assert choose_words(np.zeros(3, dtype=np.int64), 0.01, rng(seed)).tolist() == [True] * 3
        assert choose_words(np.arange(2), 0.01, rng(seed)).sum() >= 1
    assert choose_words(np.zeros(0, dtype=np.int64), 0.5, rng()).tolist() == []


def test_of_the_chosen_eight_in_ten_are_hidden_one_replaced_and_one_kept():
    ids = np.full(40_009, 5)
    shown = hide(ids, np.ones(len(ids), dtype=bool), 1, range(4, 10_000), rng())
    assert (shown == 1).mean() == pytest.approx(0.8, abs=0.01)
    assert (shown == 5).mean() == pytest.approx(0.1, abs=0.01)
    assert ((shown != 1) & (shown != 5)).mean() == pytest.approx(0.1, abs=0.01)


def test_a_replacement_is_any_token_but_never_a_special():
    ids = np.full(10_007, 5)
    shown = hide(ids, np.ones(len(ids), dtype=bool), 1, range(4, 9), rng())
    assert {*shown.tolist()} == {1, 4, 5, 6, 7, 8}


def test_what_is_not_chosen_stays():
    ids = rng(1).integers(4, 100, 5003)
    chosen = rng(2).random(5003) < 0.3
    shown = hide(ids, chosen, 1, range(4, 100), rng())
    assert np.array_equal(shown[~chosen], ids[~chosen])
    assert (shown[chosen] != ids[chosen]).mean() > 0.8
