"""The translation memory that a translator stands beside."""

import numpy as np
import pytest

from glassformer.tasks.translate import translation_memory
from glassformer.tasks.translate.translation_memory import TranslationMemory

pytest.importorskip("sklearn")
PAIRS = [
    ("two dogs play in the snow", "zwei Hunde spielen im Schnee"),
    ("a man rides a bicycle down the street", "ein Mann fährt Fahrrad auf der Straße"),
    ("a woman reads a book", "eine Frau liest ein Buch"),
]


def test_it_answers_with_the_translation_of_the_most_similar_text():
    memory = TranslationMemory.of(*zip(*PAIRS, strict=True))
    asked = ["the dogs are in the snow", "a man on a bicycle", "she reads books"]
    assert memory(asked) == [target for _, target in PAIRS]
    assert memory([source for source, _ in PAIRS]) == [target for _, target in PAIRS]


def test_texts_without_blanks_are_compared_by_characters():
    memory = TranslationMemory.of(
        ["这是一本书", "我去图书馆", "早上好"], ["book", "library", "morning"]
    )
    assert memory.described == "character 1-5-grams"
    assert memory(["我昨天去了图书馆", "你早上好吗"]) == ["library", "morning"]


def test_a_text_that_is_like_none_gets_some_answer_and_no_text_gets_none():
    memory = TranslationMemory.of(["abc", "abd"], ["x", "y"])
    assert memory(["", "zzz"]) == ["x", "x"]
    assert memory([]) == []


def test_of_a_very_long_text_the_beginning_is_compared_and_remembered(monkeypatch):
    monkeypatch.setattr(translation_memory, "LONGEST", 30)
    alike = "two dogs play in the snow, and "
    memory = TranslationMemory.of([alike + "a cat", alike + "a tree " * 9], ["x", "y" * 99])
    assert memory([alike + "a tree " * 9]) == ["x"]  # both begin alike
    assert TranslationMemory.of(["a tree"], ["y" * 99])(["a tree " * 99]) == ["y" * 30]


def test_many_texts_are_looked_up_in_pieces():
    texts = [f"number {n}" for n in range(600)]
    memory = TranslationMemory.of(texts, [str(n) for n in range(600)])
    order = np.random.default_rng(0).permutation(600).tolist()
    assert memory([texts[n] for n in order]) == [str(n) for n in order]
