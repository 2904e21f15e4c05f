"""Chinese in one script."""

import sys

import numpy as np
import pytest

from glassformer.data.text import chinese
from glassformer.data.text.bpe_dropout import BpeDropout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError

pytest.importorskip("opencc")
BOTH = [("頭髮", "头发"), ("他們後來去了圖書館。", "他们后来去了图书馆。"), ("皇后", "皇后")]


@pytest.mark.parametrize(("traditional", "wanted"), BOTH, ids=["phrase", "sentence", "as it is"])
def test_traditional_characters_become_simplified_by_their_words(traditional, wanted):
    assert chinese.simplified(traditional) == chinese.simplified(wanted) == wanted
    assert chinese.simplified(f"1. {traditional} ok") == f"1. {wanted} ok"


@pytest.mark.parametrize("kind", ["characters", "bpe"])
def test_a_tokenizer_that_simplifies_reads_both_alike(kind, tmp_path):
    texts = [text for pair in BOTH for text in pair]
    tokens = Tokenizer.train(kind, texts, vocabulary=400, simplified=True)
    tokens.save(tmp_path / "tokenizer.json")
    for tokenizer in (tokens, Tokenizer.load(tmp_path / "tokenizer.json")):
        for traditional, wanted in BOTH:
            one, other = tokenizer.encode([traditional, wanted])
            assert one.tolist() == other.tolist()
            assert tokenizer.decode(one) == wanted
    if kind == "bpe":
        assert BpeDropout(tokens).encode(BOTH[1][0], 0.0, np.random.default_rng(0)).tolist() == (
            tokens.encode([BOTH[1][1]])[0].tolist()
        )


def test_a_tokenizer_written_before_there_was_a_choice_keeps_both_scripts(tmp_path):
    tokens = Tokenizer.train("characters", ["頭髮 头发"], vocabulary=20)
    text = tokens.to_json().replace('"simplified": false, ', "")
    assert "simplified" not in text
    again = Tokenizer.from_json(text)
    assert again.decode(again.encode(["頭髮 头发"])[0]) == "頭髮 头发"


def test_without_opencc_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opencc", None)
    chinese._converter.cache_clear()
    assert chinese.simplified("plain") == "plain"
    with pytest.raises(GlassformerError, match=r"pip install 'glassformer\[chinese\]'"):
        chinese.simplified("圖")
