"""Two languages are told apart by the words that they do not share, whatever texts are about."""

import random

import pytest

from glassformer.tasks.shared.language_groups import language_groups

ENGLISH, GERMAN = (
    ["a", "the", "in", "of", "and", "is", "on", "with", "to", "man"],
    ["ein", "die", "im", "von", "und", "ist", "auf", "mit", "zu", "man"],
)


def texts_of(rng, function_words, topics, count):
    """Sets of words: most are function words, the others belong to one of some topics."""
    for _ in range(count):
        topic = rng.choice(topics)
        yield {
            *rng.choices(function_words, k=6),
            *(f"{topic}{rng.randrange(30)}" for _ in range(4)),
        }


@pytest.mark.parametrize(("many", "few"), [(67, 41), (1000, 101), (900, 61)])
def test_the_smaller_of_two_languages_is_found(many, few):
    rng = random.Random(0)
    english = texts_of(rng, ENGLISH, ["dog", "boat", "street"], many)
    german = texts_of(rng, GERMAN, ["Hund", "Boot"], few)
    texts = [*((0, one) for one in english), *((1, one) for one in german)]
    rng.shuffle(texts)
    found = language_groups([one for _, one in texts])
    truth = {place for place, (is_german, _) in enumerate(texts) if is_german}
    assert len(truth ^ {*found.smaller}) < 0.1 * few
    larger, smaller = found.words
    assert {*larger} <= {*ENGLISH} - {*GERMAN}
    assert {*smaller} <= {*GERMAN} - {*ENGLISH}


@pytest.mark.parametrize("topics", [["dog"], ["dog", "boat"], ["dog", "boat", "street", "food"]])
def test_topics_of_one_language_are_not_two(topics):
    rng = random.Random(1)
    assert language_groups(list(texts_of(rng, ENGLISH, topics, 500))) is None


def test_a_few_other_texts_are_no_second_language():
    rng = random.Random(2)
    texts = [*texts_of(rng, ENGLISH, ["dog"], 500), *texts_of(rng, GERMAN, ["Hund"], 7)]
    assert language_groups(texts) is None
    assert language_groups([]) is None
