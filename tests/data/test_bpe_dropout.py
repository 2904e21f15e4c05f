"""BPE-dropout: the same text in other tokens, by rng that can be thrown again."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st
from tokenizers import Tokenizer as Library

from glassformer.data.text import Tokenizer
from glassformer.data.text.bpe_dropout import BpeDropout
from glassformer.errors import GlassformerError

CORPUS = [
    "the lowest and newest film of the widest screen, the newer the better",
    "lower, slower, wider; it's the film's lowest point!! 我们喜欢电影 Straße Straßen",
    "aaaaaaaa aaaa bababababa  tabs\tand\r\nlines   ",
] * 5


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train("bpe", CORPUS, vocabulary=401)


@pytest.fixture(scope="module")
def dropout(tokenizer):
    return BpeDropout(tokenizer)


def rng(seed=0):
    return np.random.default_rng(seed)


@given(st.one_of(st.text(), st.text("abelnorstw '", max_size=40), st.sampled_from(CORPUS)))
def test_nothing_left_out_is_what_the_tokenizer_says(tokenizer, dropout, text):
    assert np.array_equal(dropout.encode(text, 0.0, rng()), tokenizer.encode([text])[0])


@given(st.text(st.sampled_from("abelnorstw我\ud800 \n")), st.floats(0, 1), st.integers(0, 99))
def test_any_share_and_any_dice_stand_for_the_same_text(tokenizer, dropout, text, share, seed):
    ids = dropout.encode(text, share, rng(seed))
    assert tokenizer.decode(ids) == text.replace("\ud800", "\ufffd")


def test_everything_left_out_leaves_single_bytes(dropout):
    for text in CORPUS:
        pieces = dropout.encode(text, 1.0, rng())
        assert len(pieces) == len(text.encode())


def test_the_same_dice_give_the_same_tokens_and_others_give_others(dropout):
    first, again, other = (dropout.encode(CORPUS[0], 0.3, rng(seed)) for seed in (7, 7, 8))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_what_was_read_before_changes_nothing(tokenizer, dropout):
    for text in CORPUS:
        dropout.encode(text, 0.5, rng())
    fresh = BpeDropout(tokenizer).encode(CORPUS[1], 0.5, rng(3))
    assert np.array_equal(dropout.encode(CORPUS[1], 0.5, rng(3)), fresh)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_texts_get_as_long_as_under_the_dropout_of_the_library(tokenizer, dropout, share):
    plain = json.loads(tokenizer.to_json())["coder"]
    plain["model"]["dropout"] = share
    library = Library.from_str(json.dumps(plain))
    times = 400
    theirs = np.array([len(library.encode(CORPUS[0]).ids) for _ in range(times)])
    ours = np.array([len(dropout.encode(CORPUS[0], share, rng(seed))) for seed in range(times)])
    error = np.sqrt((theirs.var() + ours.var()) / times)
    assert abs(theirs.mean() - ours.mean()) < 4 * error
    assert 0.8 < theirs.std() / ours.std() < 1.25


def test_a_very_long_word_is_no_trouble(tokenizer, dropout):
    text = "ab" * 20_000
    assert np.array_equal(dropout.encode(text, 0.0, rng()), tokenizer.encode([text])[0])
    assert tokenizer.decode(dropout.encode(text, 0.2, rng())) == text


def test_lower_case_is_kept():
    tokenizer = Tokenizer.train("bpe", CORPUS, vocabulary=300, lowercase=True)
    ids = BpeDropout(tokenizer).encode("THE Straße ΟΔΟΣ", 0.0, rng())
    assert np.array_equal(ids, tokenizer.encode(["THE Straße ΟΔΟΣ"])[0])


def test_it_travels_to_another_process(dropout):
    sent = pickle.loads(pickle.dumps(dropout))
    ids = sent.encode(CORPUS[1], 0.4, rng(5))
    assert np.array_equal(ids, dropout.encode(CORPUS[1], 0.4, rng(5)))


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_outside_its_range_is_refused(dropout, share):
    with pytest.raises(ValueError, match=r"share must lie in \[0, 1\]"):
        dropout.encode("text", share, rng())


def test_only_bpe_can_drop_merges():
    words = Tokenizer.train("words", CORPUS, vocabulary=100)
    with pytest.raises(GlassformerError, match="needs a tokenizer of kind bpe, got words"):
        BpeDropout(words)
