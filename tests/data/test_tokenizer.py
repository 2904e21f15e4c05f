"""Every kind of tokens keeps its promises about texts in many scripts, whole and broken."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st

from glassformer.data.jagged import Jagged
from glassformer.data.text import TOKENIZERS, Tokenizer
from glassformer.errors import GlassformerError

TEXTS = {
    "English": "The film wasn't bad, it was (almost) good: 7/10!",
    "German": "Größe, Straße und Übermut: „schön“ — daß ſ",
    "Chinese": "我们喜欢这部电影，真的。",
    "Japanese": "この映画はとても面白かったです。カタカナ",
    "Arabic": "هذا الفيلمُ جَيِّدٌ جدًّا، ٣ نجوم",
    "Hindi": "यह फ़िल्म बहुत अच्छी है। क्षत्रिय",
    "Thai": "หนังเรื่องนี้ดีมากที่สุด น้ำ",
    "emoji": "👩‍💻👨‍👩‍👧‍👦 ❤️ 🏳️‍🌈 👍🏽 🇩🇪",
    "combining": "e\u0301 o\u0308\u0323 Z͑ͫ̓a̴l̷g̸o \u0301",
    "line ends": "one\r\ntwo\rthree\n\nfour\u2028five\x85six",
    "tabs": "\ta\t\tb \t c\u00a0d\u3000e",
    "spaces": "   three before,  two between, four after    ",
    "only spaces": "     ",
    "NUL": "\x00a\x00\x00b\x7f\x1b",
    "empty": "",
    "byte order mark": "\ufefftext",
    "the ends of Unicode": "\ufffd\uffff\U0010ffff\ue000",
    "one long word": "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz" * 3,
}
BROKEN = ["caf\udce9 au lait", "\ud83d alone", "\ude00\ud83d turned round", "\udcff" * 3]
SPELLED = ["<mask>", " <mask> ", "a<unknown>b", "<start>x<end>", "<MASK>", "<mask><mask>"]
LOSSLESS = ["bytes", "characters", "bpe", "unigram"]
CORPUS = [*TEXTS.values(), *SPELLED] * 3


@pytest.fixture(scope="module")
def tokenizers():
    return {kind: Tokenizer.train(kind, CORPUS, vocabulary=613) for kind in TOKENIZERS}


def through(tokenizer, text):
    [ids] = tokenizer.encode([text])
    return tokenizer.decode(ids)


@pytest.mark.parametrize("script", TEXTS)
@pytest.mark.parametrize("kind", LOSSLESS)
def test_a_text_comes_back_as_it_was(tokenizers, kind, script):
    assert through(tokenizers[kind], TEXTS[script]) == TEXTS[script]


@pytest.mark.parametrize("kind", ["bytes", "bpe", "unigram"])
def test_a_text_in_a_script_never_seen_comes_back_too(kind):
    tokenizer = Tokenizer.train(kind, ["only this"], vocabulary=300)
    assert all(through(tokenizer, text) == text for text in TEXTS.values())


@pytest.mark.parametrize("text", BROKEN)
def test_broken_text_comes_back_from_bytes_and_is_mended_by_the_others(tokenizers, text):
    mended = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    assert through(tokenizers["bytes"], text) == text
    for kind in ("characters", "bpe", "unigram"):
        assert through(tokenizers[kind], text) == mended
    assert len(tokenizers["words"].encode([text])[0])


@given(st.text(st.characters(categories=None)))
def test_any_text_at_all_comes_back_from_bytes(tokenizers, text):
    assert through(tokenizers["bytes"], text) == text


@given(st.text())
def test_any_text_comes_back_from_byte_level_pieces(tokenizers, text):
    assert through(tokenizers["bpe"], text) == text
    assert through(tokenizers["unigram"], text) == text


@given(st.text(st.sampled_from(sorted(set("".join(CORPUS))))))
def test_any_text_of_known_characters_comes_back_from_characters(tokenizers, text):
    assert through(tokenizers["characters"], text) == text


def test_an_unknown_character_is_unknown_and_shows(tokenizers):
    tokenizer = tokenizers["characters"]
    [ids] = tokenizer.encode(["aԶb"])
    assert ids.tolist()[1] == tokenizer.unknown
    assert tokenizer.decode(ids) == "a\ufffdb"
    assert tokenizer.pieces(ids) == ["a", "<unknown>", "b"]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_specials_have_the_first_numbers(tokenizers, kind):
    tokenizer = tokenizers[kind]
    specials = [tokenizer.unknown, tokenizer.mask, tokenizer.start, tokenizer.end]
    assert specials == [0, 1, 2, 3]
    assert tokenizer.pieces(specials) == ["<unknown>", "<mask>", "<start>", "<end>"]
    assert tokenizer.decode(specials[1:]) == ""


@pytest.mark.parametrize("text", SPELLED)
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_no_text_can_spell_a_special(tokenizers, kind, text):
    tokenizer = tokenizers[kind]
    reloaded = Tokenizer.from_json(tokenizer.to_json())
    for one in (tokenizer, reloaded):
        [ids] = one.encode([text])
        assert len(ids) >= 3
        assert not set(ids.tolist()) & {one.mask, one.start, one.end}
        if kind in LOSSLESS:
            assert ids.min() > 3


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_vocabulary_is_never_larger_than_asked_for(kind):
    for vocabulary in (260, 263, 307, 5003):
        tokenizer = Tokenizer.train(kind, ["aaaa aaaa bbbb"] * 5, vocabulary=vocabulary)
        assert 4 < tokenizer.size <= vocabulary
        assert all(ids.max() < tokenizer.size for ids in tokenizer.encode(["aaaa", "ab 我"]))


@pytest.mark.parametrize(
    ("kind", "least"), [("bytes", 260), ("characters", 5), ("words", 5), ("bpe", 260)]
)
def test_a_vocabulary_too_small_is_refused(kind, least):
    assert Tokenizer.train(kind, ["a a"], vocabulary=least).size <= least
    with pytest.raises(GlassformerError, match=f"{least - 1} is too small for {kind}.* {least};"):
        Tokenizer.train(kind, ["a a"], vocabulary=least - 1)


@pytest.mark.parametrize("texts", [[], [""], ["  ", "\n"]])
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_nothing_can_be_learned_from_nothing(kind, texts):
    with pytest.raises(
        GlassformerError, match=f"no text to train a tokenizer on: found {len(texts)} texts"
    ):
        Tokenizer.train(kind, texts, vocabulary=1000)


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("text", ["a", "!", " a", "我", "\ud800"])
def test_one_character_is_enough_to_learn_from(kind, text):
    tokenizer = Tokenizer.train(kind, [text], vocabulary=300)
    assert len(tokenizer.encode([text])[0]) >= 1


def test_an_unknown_kind_is_answered_with_a_near_one():
    with pytest.raises(GlassformerError, match="unknown tokenizer 'byte'; did you mean 'bytes'"):
        Tokenizer.train("byte", ["a"], vocabulary=300)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_texts_are_read_once_and_an_error_among_them_is_passed_on(kind):
    def failing():
        yield "fine"
        raise GlassformerError("reviews.csv row 2: broken")

    from_list = Tokenizer.train(kind, CORPUS, vocabulary=400)
    assert Tokenizer.train(kind, iter(CORPUS), vocabulary=400).to_json() == from_list.to_json()
    if kind != "bytes":
        with pytest.raises(GlassformerError, match="row 2"):
            Tokenizer.train(kind, failing(), vocabulary=400)


TRAIN = """
import hashlib, itertools, sys
from glassformer.data.text import TOKENIZERS, Tokenizer
words = ["".join(w) for w in itertools.product("abc", "xyz", "aeiou", "nt")]
texts = [" ".join(words[i % 7 :: 3 + i % 11]) + "." for i in range(100)]
for kind in TOKENIZERS:
    made = Tokenizer.train(kind, texts, vocabulary=331).to_json()
    print(kind, hashlib.sha256(made.encode()).hexdigest())
"""


def test_the_same_texts_give_the_same_file_on_any_number_of_threads():
    answers = {
        subprocess.run(
            [sys.executable, "-c", TRAIN],
            env=os.environ | {"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "3")
    }
    assert len(answers) == 1
    assert answers.pop().count("\n") == len(TOKENIZERS)


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_saved_tokenizer_is_the_same_when_loaded(tmp_path, kind, lowercase):
    tokenizer = Tokenizer.train(kind, CORPUS, vocabulary=400, lowercase=lowercase)
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    assert (loaded.kind, loaded.lowercase, loaded.size) == (kind, lowercase, tokenizer.size)
    assert loaded.to_json() == tokenizer.to_json()
    for before, after in zip(tokenizer.encode(CORPUS), loaded.encode(CORPUS), strict=True):
        assert np.array_equal(before, after)
        assert tokenizer.decode(before) == loaded.decode(after)


GOOD = json.loads(Tokenizer.train("bpe", ["a b"], vocabulary=300).to_json())
WORDS = Tokenizer.train("words", ["a b a b"], vocabulary=300).to_json()
FOREIGN = {
    "empty": b"",
    "no text": b"\xff\xfe\x00",
    "no JSON": b"{",
    "a list": b"[]",
    "another program's": json.dumps(GOOD["coder"]).encode(),
    "another format": json.dumps(GOOD | {"format": "glassformer tokenizer 0"}).encode(),
    "an unknown kind": json.dumps(GOOD | {"kind": "magic"}).encode(),
    "no coder": json.dumps({key: GOOD[key] for key in ("format", "kind", "lowercase")}).encode(),
    "a coder of another kind": json.dumps(GOOD | {"kind": "characters"}).encode(),
    "half a coder": json.dumps(GOOD | {"coder": {"model": {}}}).encode(),
    "no specials": json.dumps(GOOD).replace("<mask>", "<musk>").encode(),
    "too deep": b"[" * 100_000,
    "no unknown": WORDS.replace('"unk_token": "<unknown>"', '"unk_token": "?"').encode(),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_foreign_or_broken_file_gives_one_clear_line(tmp_path, what):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(FOREIGN[what])
    with pytest.raises(GlassformerError, match="not a Glassformer tokenizer") as caught:
        Tokenizer.load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(GlassformerError, match=r"none\.json: cannot be read"):
        Tokenizer.load(tmp_path / "none.json")


def test_lower_case_makes_no_difference_when_asked_for():
    for kind in TOKENIZERS:
        tokenizer = Tokenizer.train(kind, ["ÉTÉ Über été über"], vocabulary=300, lowercase=True)
        [small, large] = tokenizer.encode(["été über", "ÉTÉ ÜBER"])
        assert np.array_equal(small, large)
        assert tokenizer.decode(large) == "été über"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop, it's (B2B)!!", ["Don't", "stop", ",", "it's", "(", "B2B", ")", "!", "!"]),
        ("我们like电影", ["我", "们", "like", "电", "影"]),
        ("カタカナです", ["カ", "タ", "カ", "ナ", "で", "す"]),
        ("ที่ดี", ["ที่", "ดี"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("'quoted' and-joined", ["'", "quoted", "'", "and", "-", "joined"]),
        ("  \t\r\n ", []),
    ],
)
def test_words_fall_apart_at_blanks_signs_and_characters_of_scripts_without_blanks(text, words):
    tokenizer = Tokenizer.train("words", [text, text, "x x"], vocabulary=100)
    [ids] = tokenizer.encode([text])
    assert tokenizer.pieces(ids) == words
    assert tokenizer.decode(ids) == " ".join(words)


def test_a_word_seen_once_is_unknown():
    tokenizer = Tokenizer.train("words", ["often often once"], vocabulary=100)
    [ids] = tokenizer.encode(["often once never"])
    assert tokenizer.pieces(ids) == ["often", "<unknown>", "<unknown>"]


@pytest.mark.parametrize("script", ["English", "tabs", "spaces", "line ends"])
@pytest.mark.parametrize("kind", ["characters", "bpe"])
def test_pieces_laid_end_to_end_are_the_text(kind, script):
    tokenizer = Tokenizer.train(kind, [TEXTS[script]] * 9, vocabulary=500)
    [ids] = tokenizer.encode([TEXTS[script]])
    assert "".join(tokenizer.pieces(ids)) == TEXTS[script]


def test_part_of_a_character_is_shown_as_its_byte(tokenizers):
    tokenizer = tokenizers["bytes"]
    [ids] = tokenizer.encode(["aß"])
    assert tokenizer.pieces(ids) == ["a", "\\xc3", "\\x9f"]
    assert tokenizer.decode(ids[:2]) == "a\ufffd"


WORDS = {
    "what a film": ["what", " a", " film"],
    "two  blanks\nand a line": ["two", " ", " blanks", "\n", "and", " a", " line"],
    "don't (stop) 42nd!!": ["don't", " (", "stop", ")", " 42", "nd", "!!"],
    "e\u0301te\u0301 ne": ["e\u0301te\u0301", " ne"],
    "影我ok": ["影", "我", "ok"],
    "": [],
}


@pytest.mark.parametrize("text", WORDS)
@pytest.mark.parametrize("kind", LOSSLESS)
def test_tokens_of_one_word_share_its_number(kind, text):
    tokenizer = Tokenizer.train(kind, [*CORPUS, *WORDS], vocabulary=700)
    [ids] = tokenizer.encode([text])
    word_of = tokenizer.word_of(ids)
    assert word_of.shape == ids.shape
    words = [tokenizer.decode(ids[word_of == word]) for word in range(len(set(word_of.tolist())))]
    assert words == WORDS[text]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_words_of_rows_are_counted_on_and_none_goes_over_an_end(tokenizers, kind):
    tokenizer = tokenizers[kind]
    rows = tokenizer.encode(["", *WORDS, "film", "\u0301s", "film"])
    alone, first = [], 0
    for row in rows:
        alone += (first + tokenizer.word_of(row)).tolist()
        first = alone[-1] + 1 if alone else 0
    assert tokenizer.words_of(Jagged.of(rows)).tolist() == alone


def test_among_words_each_token_is_one(tokenizers):
    assert tokenizers["words"].word_of([5, 0, 1, 6]).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_special_is_a_word_of_its_own(tokenizers, kind):
    tokenizer = tokenizers[kind]
    [ids] = tokenizer.encode(["a"])
    row = [tokenizer.start, *ids, tokenizer.mask, tokenizer.mask, tokenizer.end]
    assert tokenizer.word_of(row).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("ids", [[-1], [613], [[1]]])
def test_numbers_that_are_no_tokens_are_refused(tokenizers, ids):
    for ask in (tokenizers["bpe"].decode, tokenizers["bpe"].pieces, tokenizers["bpe"].word_of):
        with pytest.raises(ValueError, match="expected a list of ids from 0 to"):
            ask(ids)


def test_one_text_instead_of_a_list_is_refused(tokenizers):
    with pytest.raises(ValueError, match="put it into a list"):
        tokenizers["bpe"].encode("text")
