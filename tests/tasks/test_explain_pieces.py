"""Pieces of texts: joined they are the text, whatever its tokens are."""

import numpy as np
import pytest

from glassformer.data.text.tokenizer import TOKENIZERS, Tokenizer
from glassformer.tasks.shared.pieces import text_pieces

TEXTS = (
    "What a film it was, 9 May 1999!  ok ",
    "早上好，世界 ok",
    "naïve café\n\nx",
    "film",
    "早",
    "أهلا بك",
    "",
)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_pieces_joined_are_the_text_and_every_token_belongs_to_one(kind):
    tokens = Tokenizer.train(kind, [*TEXTS, *TEXTS], vocabulary=300, lowercase=kind == "words")
    for text in (*TEXTS, "Zwölf unknown Q words"):
        pieces, numbers = text_pieces(tokens, text)
        assert "".join(pieces) == text
        assert len(numbers) == len(tokens.encode([text])[0])
        assert np.unique(numbers).tolist() == list(range(len(pieces)))


def test_a_text_that_is_too_long_has_pieces_for_what_is_read():
    tokens = Tokenizer.train("characters", ["What a film"], vocabulary=100)
    pieces, numbers = text_pieces(tokens, "What a film", longest=8)
    assert pieces == ("What", " a", " f")
    assert len(numbers) == 8


def test_the_bytes_of_one_character_stay_together():
    tokens = Tokenizer.train("bytes", ["x"], vocabulary=260)
    assert text_pieces(tokens, "早")[0] == ("早",)
