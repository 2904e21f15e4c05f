"""Wishes: words become the tokens that sentences have, and settings are laid over a run's own."""

import pytest

from glassformer.config.decoding import BeamConfig, DecodeConfig
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.tasks.wish import Spelt, Wish, spell

TEXTS = ["the old cat", "an old dog", "the cat is old", "old cat and old dog", "早上好 早安"] * 9


@pytest.fixture(scope="module")
def pieces():
    return Tokenizer.train("bpe", TEXTS, vocabulary=320)


def shown(tokens, words):
    return [tokens.decode(word) for word in words]


def test_a_required_word_takes_along_the_blank_it_has_in_a_sentence(pieces):
    spelt = spell(Wish(required=("cat", " old")), pieces)
    assert shown(pieces, spelt.required) == [" cat", " old"]
    inside = pieces.encode(["the old cat"])[0].tolist()
    assert spelt.required[0] == inside[-len(spelt.required[0]) :]


def test_a_required_word_is_bare_where_a_blank_would_be_a_token_more(pieces):
    spelt = spell(Wish(required=("好",)), pieces)
    assert shown(pieces, spelt.required) == ["好"]
    letters = Tokenizer.train("characters", TEXTS, vocabulary=100)
    assert shown(letters, spell(Wish(required=("cat",)), letters).required) == ["cat"]


def test_a_forbidden_word_is_out_at_the_beginning_and_inside(pieces):
    spelt = spell(Wish(forbidden=("cat", "dog")), pieces)
    assert shown(pieces, spelt.forbidden) == ["cat", " cat", "dog", " dog"]


def test_where_no_blanks_are_written_a_word_is_spelt_without():
    digits = Tokenizer.train("characters", ["2024-02-29", "1999"], vocabulary=30)
    spelt = spell(Wish(required=("19",), forbidden=("20",)), digits)
    assert shown(digits, spelt.required) == ["19"]
    assert shown(digits, spelt.forbidden) == ["20"]


def test_a_prefix_stays_as_it_is(pieces):
    assert pieces.decode(spell(Wish(prefix="the  old"), pieces).prefix) == "the  old"
    assert spell(Wish(), pieces) == Spelt()


def test_what_has_no_token_is_refused():
    words = Tokenizer.train("words", TEXTS, vocabulary=100)
    with pytest.raises(GlassformerError, match="the model cannot write 'cow': some of it is in no"):
        spell(Wish(forbidden=("cow",)), words)


def test_settings_are_laid_over_those_of_the_run():
    usual = DecodeConfig(method="beam", max_length=17, beam=BeamConfig(width=3, strength=0.5))
    found = Wish(decode={"beam": {"width": 5}}).decoding(usual)
    assert found == DecodeConfig(
        method="beam", max_length=17, beam=BeamConfig(width=5, strength=0.5)
    )
    assert Wish().decoding(usual) == usual


@pytest.mark.parametrize(
    ("wanted", "groups", "width"), [(0, 1, 3), (2, 1, 3), (4, 1, 5), (4, 3, 6), (5, 3, 6)]
)
def test_a_beam_is_as_wide_as_the_answers_need_in_even_groups(wanted, groups, width):
    usual = DecodeConfig(method="beam", beam=BeamConfig(width=3, groups=groups))
    found = Wish(alternatives=wanted).decoding(usual)
    assert (found.best, found.beam.width) == (wanted + 1, width)


def test_a_setting_that_does_not_fit_is_refused_by_its_name():
    with pytest.raises(GlassformerError, match=r"decode\.beam must be BeamConfig, got 3"):
        Wish(decode={"beam": 3}, alternatives=2).decoding(DecodeConfig(method="beam"))
