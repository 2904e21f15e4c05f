"""Gaps: whole words, the asked share, and what stands in their place."""

import numpy as np
import pytest

from glassformer.data.jagged import Jagged
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.tasks.pretrain.masking import choose_words, hide, worth_predicting

TEXT = "Wonderful films, 1999's best; unbelievable 日本 stories again and again!"


def rng(seed=0):
    return np.random.default_rng(seed)


def chosen_of(words, lengths, share, seed=0):
    """Which tokens are chosen in rows of these lengths."""
    return choose_words(Jagged(words, np.array(lengths)), share, rng(seed).random(len(words)))


def hidden(ids, chosen, others, seed=0):
    return hide(ids, chosen, 1, others, rng(seed).random(len(ids)))


@pytest.mark.parametrize("kind", ["bytes", "characters", "bpe", "unigram", "words"])
def test_whole_words_are_chosen_never_part_of_one(kind):
    tokenizer = Tokenizer.train(kind, [TEXT] * 3, vocabulary=300)
    [ids] = tokenizer.encode([TEXT])
    words = tokenizer.word_of(ids)
    seen = set()
    for seed in range(30):
        chosen = chosen_of(words, [len(words)], 0.3, seed)
        for word in range(words[-1] + 1):
            assert len({*chosen[words == word].tolist()}) == 1
        seen |= {*words[chosen].tolist()}
    assert seen == {*range(words[-1] + 1)}, "any word can be chosen"


def test_the_share_of_words_is_met():
    words = np.repeat(np.arange(20_011), 3)
    assert chosen_of(words, [len(words)], 0.25).mean() == pytest.approx(0.25, abs=0.01)


def test_a_row_has_one_gap_at_least_and_an_empty_one_none():
    words, lengths = np.array([0, 0, 0, 1, 2, 3, 3]), [3, 0, 2, 2]
    last = []
    for seed in range(400):
        chosen = chosen_of(words, lengths, 0.01, seed)
        assert chosen[:3].all()
        assert chosen[3:5].any()
        assert chosen[5:].all()
        last.append(chosen[4])
    assert np.mean(last) == pytest.approx(0.5, abs=0.1), "either word can be the one"
    assert chosen_of(np.zeros(0, dtype=np.int64), [0, 0], 0.5).tolist() == []


def test_a_row_is_hidden_as_if_it_were_alone():
    words, noise = np.array([0, 1, 1, 2, 3, 4, 4]), rng(3).random(7)
    together = choose_words(Jagged(words, np.array([3, 4])), 0.3, noise)
    apart = [
        choose_words(Jagged(words[some] - words[some][0], np.array([len(words[some])])), 0.3, own)
        for some, own in ((slice(3), noise[:3]), (slice(3, 7), noise[3:]))
    ]
    assert together.tolist() == np.concatenate(apart).tolist()


def test_of_the_chosen_eight_in_ten_are_hidden_one_replaced_and_one_kept():
    ids = np.full(40_009, 5)
    shown = hidden(ids, np.ones(len(ids), dtype=bool), range(4, 10_000))
    assert (shown == 1).mean() == pytest.approx(0.8, abs=0.01)
    assert (shown == 5).mean() == pytest.approx(0.1, abs=0.01)
    assert ((shown != 1) & (shown != 5)).mean() == pytest.approx(0.1, abs=0.01)


def test_a_replacement_is_any_token_but_never_a_special():
    ids = np.full(10_007, 5)
    shown = hidden(ids, np.ones(len(ids), dtype=bool), range(4, 9))
    counts = np.bincount(shown) / len(ids)
    assert counts[[4, 6, 7, 8]] == pytest.approx(0.02, abs=0.005), "all alike"
    assert counts[[0, 2, 3]].tolist() == [0, 0, 0]
    assert len(counts) == 9


def test_what_is_not_chosen_stays():
    ids = rng(1).integers(4, 100, 5003)
    chosen = rng(2).random(5003) < 0.3
    shown = hidden(ids, chosen, range(4, 100))
    assert np.array_equal(shown[~chosen], ids[~chosen])
    assert (shown[chosen] != ids[chosen]).mean() > 0.8


def test_an_unknown_token_is_asked_for_only_in_a_row_without_others():
    rows = Jagged(np.array([0, 5, 6, 0, 0, 0, 7]), np.array([3, 2, 0, 2]))
    chosen = np.array([True, True, False, True, False, True, False])
    asked = worth_predicting(rows, chosen, unknown=0)
    assert asked.tolist() == [False, True, False, True, False, True, False]
