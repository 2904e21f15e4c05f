"""Words that no language has: a tokenizer learns from them in pieces, and quickly."""

import time

import pytest

from glassformer.data.text import Tokenizer
from glassformer.data.text.subwords import LONGEST_WORD, in_short_words

USUAL = ["a warm film", "x" * LONGEST_WORD, "早上好，" * 997, "\n" * LONGEST_WORD, "'t" * 499]
ENDLESS = {
    "letters": "a" * 4999,
    "letters inside a text": f"before {'ab' * 1499} and behind it",
    "digits": "7" * 3001,
    "blanks": "a" + " " * 2503 + "b",
    "Chinese without signs": "早上好" * 701,
    "signs that Python takes for white space": "!\x1c" * 1009,
    "two of them": "a" * 1511 + " " + "!" * 1511,
}


def test_usual_texts_are_learned_from_as_they_are():
    assert list(in_short_words(USUAL)) == USUAL


@pytest.mark.parametrize("name", ENDLESS)
def test_a_word_without_end_is_learned_from_in_pieces(name):
    pieces = list(in_short_words([ENDLESS[name]]))
    assert "".join(pieces) == ENDLESS[name]
    assert len(pieces) > 1
    assert list(in_short_words(pieces)) == pieces


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_word_without_end_does_not_keep_a_tokenizer_from_learning(kind):
    began = time.process_time()
    tokenizer = Tokenizer.train(kind, ["a warm film", "a" * 200_003, "warm"], vocabulary=307)
    assert time.process_time() - began < 5  # in one piece it takes bpe about 15
    [ids] = tokenizer.encode(["a" * 1999])
    assert tokenizer.decode(ids) == "a" * 1999
