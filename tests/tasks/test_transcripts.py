"""Transcripts: their words, and errors that are counted as jiwer counts them."""

import jiwer
import pytest

from glassformer.data.text.tokenizer import Tokenizer
from glassformer.tasks.transcribe.answers import NOTHING, Transcripts
from glassformer.tasks.transcribe.transcripts import Normaliser, words_of

RIGHT = ["the cat sat on the mat", "a b c", "one two", "so be it", "yes"]
WRITTEN = ["the cat sit on mat", "", "one two three", "so be it", "no yes no"]


def test_error_rates_and_kinds_of_errors_are_those_of_jiwer():
    found, theirs = Transcripts(WRITTEN, RIGHT, "words"), jiwer.process_words(RIGHT, WRITTEN)
    values = found.values()
    assert values["wer"] == pytest.approx(theirs.wer)
    assert values["cer"] == pytest.approx(jiwer.cer(RIGHT, WRITTEN))
    assert values["exact"] == pytest.approx(1 / 5)
    deleted = sum(n for (_, written), n in found.edits.items() if written == NOTHING)
    inserted = sum(n for (right, _), n in found.edits.items() if right == NOTHING)
    assert (deleted, inserted) == (theirs.deletions, theirs.insertions)
    assert found.edits.total() - deleted - inserted == theirs.substitutions
    assert found.edits[NOTHING, "no"] == 2


def test_where_a_script_has_no_spaces_characters_are_counted():
    found = Transcripts(["早上坏"], ["早上好"], "characters")
    assert found.values() == pytest.approx({"cer": 1 / 3, "exact": 0.0})
    assert dict(found.edits) == {("好", "坏"): 1}


@pytest.mark.parametrize("kind", ["characters", "words", "bpe"])
def test_the_words_of_tokens_leave_out_the_blanks_between_them(kind):
    tokenizer = Tokenizer.train(kind, ["one two", "three one"] * 9, vocabulary=300)
    [tokens] = tokenizer.encode(["two  one three"])
    words = words_of(tokenizer, tokens.tolist())
    assert [word.text for word in words] == ["two", "one", "three"]
    for word in words:
        spelt = tokenizer.decode([tokens[place] for place in word.tokens])
        assert spelt.strip() == word.text
    assert words_of(tokenizer, []) == []


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Hello, World!", "hello world"),
        ("rock 'n' roll", "rock n roll"),
        ("well-known", "well known"),
        ("ＡＢＣ  １２", "abc 12"),
        ("...", ""),
    ],
)
def test_normal_texts_have_no_capitals_and_no_punctuation(text, normal):
    assert Normaliser(lowercase=True, punctuation=False)(text) == normal
    assert Normaliser(lowercase=False, punctuation=True)("Hello,  World!") == "Hello, World!"
