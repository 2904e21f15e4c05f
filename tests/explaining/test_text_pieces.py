"""Texts in pieces: joined they are the text, whatever the tokens are."""

import numpy as np
import pytest

from glassformer.data.jagged import Jagged
from glassformer.data.text.tokenizer import TOKENIZERS, Tokenizer
from glassformer.errors import GlassformerError
from glassformer.explaining.text_pieces import UNITS, rows_with, text_pieces

LEARNED = ["What a great film, it's 好看的电影! 😀 naïve  café"] * 3
TEXT = "  What a great  film, 好看 İt's 😀 naïve xyz\n"


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_the_pieces_of_a_text_join_to_it(kind, unit):
    tokenizer = Tokenizer.train(kind, LEARNED, vocabulary=400, lowercase=True)
    found = text_pieces(tokenizer, TEXT, unit)
    assert "".join(found.pieces) == TEXT
    assert found.ids.tolist() == tokenizer.encode([TEXT])[0].tolist()
    assert (np.diff(found.piece_of) >= 0).all()
    assert {*found.piece_of.tolist()} == {*range(len(found.pieces))}


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_words_are_those_that_are_written_and_chinese_characters(kind):
    tokenizer = Tokenizer.train(kind, LEARNED, vocabulary=400)
    words = [piece.strip() for piece in text_pieces(tokenizer, TEXT.strip(), "word").pieces]
    assert words == ["What", "a", "great", "film", ",", "好", "看", "İt's", "😀", "naïve", "xyz"]


def test_what_was_not_seen_in_training_is_marked_and_named_by_its_text():
    words = Tokenizer.train("words", ["a great film"] * 3, vocabulary=99)
    found = text_pieces(words, "a 好 film", "word")
    assert [found.pieces[place] for place in found.strange] == ["好 "]
    assert found.names == ("a", "好 (unknown)", "film")
    pairs = Tokenizer.train("bpe", ["a great film"] * 3, vocabulary=400)
    found = text_pieces(pairs, "a 好 film", "word")
    assert [found.pieces[place] for place in found.strange] == ["好 "]
    assert not text_pieces(pairs, "", "word").strange


def test_a_name_is_split_into_its_letters():
    tokenizer = Tokenizer.train("characters", ["Anna Maria"], vocabulary=99)
    assert text_pieces(tokenizer, "Anna Mar").pieces == (*"Anna", " ", *"Mar")
    assert text_pieces(tokenizer, "Anna Mar", "word").pieces == ("Anna ", "Mar")
    assert text_pieces(tokenizer, "").pieces == ()


def test_an_unknown_unit_is_refused():
    tokenizer = Tokenizer.train("characters", ["Anna"], vocabulary=99)
    with pytest.raises(GlassformerError, match="unknown unit 'line'"):
        text_pieces(tokenizer, "Anna", "line")


def test_rows_lose_the_tokens_of_pieces_that_are_left_out():
    rows, owner = Jagged(np.array([9, 1, 2, 9, 3]), np.array([3, 2])), np.array([-1, 0, 1, -1, 1])
    kept = np.array([[True, False], [False, True]])
    found = rows_with(rows, owner, kept)
    assert [row.tolist() for row in found.rows] == [[9, 1], [9], [9, 2], [9, 3]]
