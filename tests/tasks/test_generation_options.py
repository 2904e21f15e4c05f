"""Generation options: words become tokens, and settings are laid over a run's own."""

import pytest
from small_pairs import shapes_unchecked

from glassformer.config.decoding import BeamConfig, DecodeConfig
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.tasks.shared.generation import GenerationOptions, Spelt, spell

TEXTS = ["the old cat", "an old dog", "the cat is old", "old cat and old dog", "早上好 早安"] * 9


@pytest.fixture(scope="module")
def pieces():
    return Tokenizer.train("bpe", TEXTS, vocabulary=320)


def shown(tokens, words):
    return [tokens.decode(word) for word in words]


def test_a_required_word_takes_along_the_blank_it_has_in_a_sentence(pieces):
    spelt = spell(GenerationOptions(required=("cat", " old")), pieces)
    assert shown(pieces, spelt.required) == [" cat", " old"]
    inside = pieces.encode(["the old cat"])[0].tolist()
    assert spelt.required[0] == inside[-len(spelt.required[0]) :]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_required_word_is_never_glued_to_the_word_before_it(kind):
    """Even where it has fewer tokens without a blank; an answer that begins with it has none."""
    texts = ["catnap", "bobcat", "tomcat", "cat", "an old dog is old"] * 9
    tokens = Tokenizer.train(kind, texts, vocabulary=290)
    bare, inside = (tokens.encode([text])[0].tolist() for text in ("cat", " cat"))
    assert len(bare) < len(inside)
    spelt = spell(GenerationOptions(required="cat"), tokens)
    assert (spelt.required, spelt.openings) == ((inside,), (bare,))


def test_what_begins_with_a_letter_would_go_on_with_a_required_word(pieces):
    follow = set(spell(GenerationOptions(required="cat"), pieces).continuing)
    for text, goes_on in {"old": True, " old": False, "'": False, "7": True, ".": False}.items():
        assert (pieces.encode([text])[0].tolist()[0] in follow) == goes_on
    assert not follow & {Tokenizer.end, Tokenizer.start}


@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_a_required_word_of_single_letters_has_blanks_and_signs_around_it(kind):
    letters = Tokenizer.train(kind, ["j'ai faim", "bois (de) l'eau."], vocabulary=300)
    spelt = spell(GenerationOptions(required="faim"), letters)
    assert shown(letters, spelt.required) == [" faim"]
    assert shown(letters, spelt.openings) == ["faim"]
    for text, is_there in {
        "j'ai faim": True,
        "faim.": True,
        "(faim)": True,
        "d'faim": True,
        "je faimes": False,
        "afaim": False,
        "faimes, faim": True,
    }.items():
        complete = spelt.words.complete_at(letters.encode([text])[0].tolist())
        assert (complete is not None) == is_there, text


def test_signs_and_scripts_without_blanks_are_spelt_without(pieces):
    spelt = spell(GenerationOptions(required=("好", "!")), pieces)
    assert shown(pieces, spelt.required) == ["好", "!"]
    assert spelt.openings == ((), ())
    signs = Tokenizer.train("characters", ["2024-02-29 10:31"], vocabulary=30)
    dash = spell(GenerationOptions(required="-"), signs).words
    assert dash.complete_at(signs.encode(["4-0"])[0].tolist()) == 2
    chinese = Tokenizer.train("bpe", ["我爱NBA早上好", "NBA早安我爱你"] * 9, vocabulary=290)
    assert shown(chinese, spell(GenerationOptions(required=("NBA",)), chinese).required) == ["NBA"]


def test_a_forbidden_word_is_out_at_the_beginning_and_inside(pieces):
    spelt = spell(GenerationOptions(forbidden=("cat", "dog")), pieces)
    assert shown(pieces, spelt.forbidden) == ["cat", " cat", "dog", " dog"]


def test_where_no_blanks_are_written_a_word_is_spelt_without():
    digits = Tokenizer.train("characters", ["2024-02-29", "1999"], vocabulary=30)
    spelt = spell(GenerationOptions(required=("19",), forbidden=("20",)), digits)
    assert shown(digits, spelt.required) == ["19"]
    assert shown(digits, spelt.forbidden) == ["20"]


def test_a_prefix_stays_as_it_is(pieces):
    assert pieces.decode(spell(GenerationOptions(prefix="the  old"), pieces).prefix) == "the  old"
    assert spell(GenerationOptions(), pieces) == Spelt()


def test_blanks_around_a_prefix_are_left_to_the_next_word(pieces):
    assert pieces.decode(spell(GenerationOptions(prefix=" the old "), pieces).prefix) == "the old"
    letters = Tokenizer.train("characters", TEXTS, vocabulary=100)  # where they are tokens
    assert (
        letters.decode(spell(GenerationOptions(prefix=" the old "), letters).prefix) == "the old "
    )
    with pytest.raises(GlassformerError, match="the model cannot write '': it is empty; leave it"):
        spell(GenerationOptions(prefix=" "), pieces)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            GenerationOptions(prefix="the old cat", forbidden="cat"),
            "the prefix 'the old cat' contains the forb",
        ),
        (
            GenerationOptions(prefix="cat", forbidden=("dog", "cat")),
            "the prefix 'cat' contains the forbidden wo",
        ),
        (
            GenerationOptions(required=("dog", "cat"), forbidden="cat"),
            "the required word 'cat' contains the f",
        ),
    ],
)
def test_a_forbidden_word_that_must_be_said_is_refused(pieces, options, complaint):
    with pytest.raises(GlassformerError, match=f"^{complaint}.*; leave out one of them$"):
        spell(options, pieces)
    assert spell(GenerationOptions(prefix="the old", forbidden="cat"), pieces).forbidden


def test_one_word_means_the_same_as_a_list_of_one():
    assert GenerationOptions(required="cat", forbidden="old dog") == GenerationOptions(
        required=("cat",), forbidden=("old dog",)
    )
    assert GenerationOptions(required=["cat"]) == GenerationOptions(required=("cat",))


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"alternatives": "3"}, "alternatives must be int, got '3'"),
        ({"alternatives": 2.5}, "alternatives must be int, got 2.5"),
        ({"alternatives": 1000}, "alternatives must be at most 999, got 1000"),
        ({"required": None}, "required must be a list of str, got None"),
        ({"required": (3,)}, "required must be str, got 3"),
        ({"forbidden": 3}, "forbidden must be a list of str, got 3"),
        ({"prefix": None}, "prefix must be str, got None"),
        ({"decode": [1]}, r"decode must be a table, got \[1\]"),
        ({"decode": None}, "decode must be a table, got None"),
        ({"decode": {3: 4}}, "decode must be str, got 3"),
    ],
)
def test_what_is_no_wish_is_refused_by_its_name(asked, complaint):
    with shapes_unchecked(), pytest.raises(GlassformerError, match=f"^{complaint}"):
        GenerationOptions(**asked)


def test_what_has_no_token_is_refused():
    words = Tokenizer.train("words", TEXTS, vocabulary=100)
    with pytest.raises(GlassformerError, match="the model cannot write 'cow': some of it is in"):
        spell(GenerationOptions(forbidden=("cow",)), words)


def test_settings_are_laid_over_those_of_the_run():
    usual = DecodeConfig(method="beam", max_length=17, beam=BeamConfig(width=3, strength=0.5))
    found = GenerationOptions(decode={"beam": {"width": 5}}).decoding(usual)
    assert found == DecodeConfig(
        method="beam", max_length=17, beam=BeamConfig(width=5, strength=0.5)
    )
    assert GenerationOptions().decoding(usual) == usual


@pytest.mark.parametrize(
    ("wanted", "groups", "width"), [(0, 1, 3), (2, 1, 3), (4, 1, 5), (4, 3, 6), (5, 3, 6)]
)
def test_a_beam_is_as_wide_as_the_answers_need_in_even_groups(wanted, groups, width):
    usual = DecodeConfig(method="beam", beam=BeamConfig(width=3, groups=groups))
    found = GenerationOptions(alternatives=wanted).decoding(usual)
    assert (found.best, found.beam.width) == (wanted + 1, width)


def test_a_setting_that_does_not_fit_is_refused_by_its_name():
    with pytest.raises(GlassformerError, match=r"decode\.beam must be a table \(width, "):
        GenerationOptions(decode={"beam": 3}, alternatives=2).decoding(DecodeConfig(method="beam"))


@pytest.mark.parametrize(
    ("method", "asked", "told"),
    [
        (
            "beam",
            {"sample": {"top_p": 0.9}},
            "decode.sample.top_p has no effect with decode.method",
        ),
        (
            "greedy",
            {"beam": {"width": 8}},
            "decode.beam.width has no effect with decode.method = g",
        ),
        ("beam", {"method": "sample", "beam": {"groups": 2}}, "decode.beam.groups has no effect"),
    ],
)
def test_a_setting_that_would_do_nothing_is_refused(method, asked, told):
    with pytest.raises(GlassformerError, match=f"^{told}.*; add decode.method="):
        GenerationOptions(decode=asked).decoding(DecodeConfig(method=method))


def test_settings_of_the_run_may_be_for_another_method():
    usual = DecodeConfig(method="beam", beam=BeamConfig(width=7))
    assert GenerationOptions(decode={"method": "sample", "sample": {"top_p": 0.9}}).decoding(usual)
