"""Shards of tokens: the same as in one file, and an interrupted preparation goes on."""

import numpy as np
import pytest

from glassformer.data import shards
from glassformer.data.shards import Shards
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError

TEXTS = ["one two", "", "three", "four five six", "seven", "", "eight nine", "ten"]


@pytest.fixture
def tokenizer(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(shards, "BLOCK", 12)
    return Tokenizer.train("characters", TEXTS, vocabulary=100)


def in_cache(folder):
    return sorted(path.suffix for path in (folder / "cache").rglob("*.*"))


def test_shards_hold_the_tokens_of_all_texts_as_one_file_would(tmp_path, tokenizer):
    Shards.write(tmp_path, TEXTS, tokenizer)
    found = Shards.open(tmp_path, below=tokenizer.size, rows=len(TEXTS))
    rows = tokenizer.encode(TEXTS)
    assert [len(part) for part in found.parts] == [3, 1, 3, 1]
    assert [row.tolist() for row in (found[n] for n in range(len(found)))] == [
        row.tolist() for row in rows
    ]
    line = np.concatenate(rows)
    assert found.size == len(line)
    assert found.starts.tolist() == np.cumsum([0, *map(len, rows)])[:-1].tolist()
    places = np.random.default_rng(0).integers(-3, len(line) + 3, (7, 11))
    assert np.array_equal(found.take(places), line[np.clip(places, 0, len(line) - 1)])
    assert in_cache(tmp_path) == [], "nothing is left in the cache"


def test_a_token_is_counted_in_each_row(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr(shards, "CHUNK", 5)
    Shards.write(tmp_path, TEXTS, tokenizer)
    found = Shards.open(tmp_path, below=tokenizer.size, rows=len(TEXTS))
    [[token]] = tokenizer.encode(["e"])
    assert found.count(int(token)).tolist() == [text.count("e") for text in TEXTS]


def test_an_interrupted_preparation_goes_on_and_a_damaged_shard_is_made_again(
    tmp_path, tokenizer, monkeypatch
):
    def until(last):
        yield from TEXTS[:last]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Shards.write(tmp_path, until(7), tokenizer)
    assert in_cache(tmp_path) == [".json"] * 3 + [".npy"] * 6
    damaged = max((tmp_path / "cache").rglob("*.values.npy"))
    damaged.write_bytes(damaged.read_bytes()[:-4] + b"\1\0\0\0")
    tokenised = []
    monkeypatch.setattr(
        Tokenizer,
        "encode",
        lambda self, texts: tokenised.extend(texts) or self.coder.encode(texts),
    )
    (tmp_path / "again").mkdir()
    Shards.write(tmp_path / "again", TEXTS, tokenizer)
    blocks = [TEXTS[:3], TEXTS[3:4], TEXTS[4:7]]
    assert tokenised[-1] == "ten"
    assert tokenised[:-1] in blocks, "only the damaged shard and the last are tokenised"
    found = Shards.open(tmp_path / "again", below=tokenizer.size, rows=len(TEXTS))
    assert "".join(tokenizer.decode(found[n]) for n in range(len(found))) == "".join(TEXTS)
    assert in_cache(tmp_path) == []


def test_a_shard_that_is_lost_is_missed(tmp_path, tokenizer):
    Shards.write(tmp_path, TEXTS, tokenizer)
    (tmp_path / "tokens-00001.values.npy").unlink()
    with pytest.raises(GlassformerError, match="the tokens of 7 texts instead of 8, so a file of"):
        Shards.open(tmp_path, below=tokenizer.size, rows=len(TEXTS))


def test_no_texts_are_no_tokens(tmp_path, tokenizer):
    Shards.write(tmp_path, [], tokenizer)
    found = Shards.open(tmp_path, below=5, rows=0)
    assert (len(found), found.size) == (0, 0)
    Shards.write(tmp_path, [""], tokenizer)
    found = Shards.open(tmp_path, below=5, rows=1)
    assert found.take(np.array([0, 3])).tolist() == [0, 0]
