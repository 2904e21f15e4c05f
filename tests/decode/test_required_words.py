"""Required words: every answer has them, by themselves, and the best answer is not missed."""

import random
import re
from dataclasses import replace
from itertools import combinations, product

import pytest
import torch
from small_scorers import END, HashScorer

from glassformer.config.decoding import BeamConfig, DecodeConfig
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Request, RequiredWords, decode
from glassformer.decode.automaton import NEVER, build_automaton
from glassformer.decode.required import MOST_WORDS, ranks
from glassformer.decode.stopping import Stops
from glassformer.errors import GlassformerError
from glassformer.tasks.shared.generation import GenerationOptions, spell

ROWS, V, LENGTH = 5, 7, 12
STOPS = ("c", "de")
BEAMS = [
    DecodeConfig(method="beam", best=3, max_length=LENGTH),
    DecodeConfig(method="beam", best=4, max_length=LENGTH, beam=BeamConfig(groups=2)),
]
each_beam = pytest.mark.parametrize("config", BEAMS, ids=["beam", "diverse beam"])


def contains(tokens, word):
    return any(tokens[at : at + len(word)] == tuple(word) for at in range(len(tokens)))


def is_whole(tokens, word, opening, continuing, separating):
    """Whether a word stands somewhere by itself, by the definition."""
    for start, end in combinations(range(len(tokens) + 1), 2):
        begins = start == 0 or tokens[start - 1] in separating
        ends = end == len(tokens) or tokens[end] not in continuing or tokens[end - 1] in separating
        if ends and (tokens[start:end] == word or (begins and tokens[start:end] == opening)):
            return True
    return False


def answers(config, request, **settings):
    found = decode(HashScorer(ROWS, V, **settings), request, config)
    assert all(found)
    return found


def best_by_brute_force(scorer, row, limit, is_right):
    """The likeliest sequence of all that are right."""
    found = []
    for length in range(limit + 1):
        for tokens in product(range(1, scorer.vocabulary), repeat=length):
            if is_right(tokens):
                written = tokens if length == limit else (*tokens, END)
                found.append((sum(scorer.log_probabilities(row, written)), tokens))
    return max(found, default=None)


def random_words(draw, tokens):
    """Some words of a few tokens, which often overlap, with openings and boundaries."""
    words = tuple(
        tuple(draw.choices(tokens, k=draw.randint(1, 3))) for _ in range(draw.randint(1, 2))
    )
    openings = tuple(draw.choice([(), word[1:]]) for word in words)
    some = [tuple(token for token in tokens if draw.random() < 0.4) for _ in range(2)]
    return RequiredWords(words, openings, *draw.choice([((), ()), (some[0], ()), some]))


def exhaustive(limit):
    """A beam so wide that nothing is dropped."""
    beam = BeamConfig(width=3**limit, penalty="none")
    return DecodeConfig(method="beam", max_length=limit, beam=beam)


def test_a_word_that_is_begun_may_be_begun_again_in_the_last_places():
    """Required (1, 2), five places: x x 1 1 2 has it, though 1 2 is only begun in the third."""
    scorer, limit, found = HashScorer(23, 4, end=-9.0), 5, []
    request = Request(end=END, required=[[(1, 2)]] * 23)
    for row, [answer] in enumerate(decode(scorer, request, exhaustive(limit))):
        best = best_by_brute_force(scorer, row, limit, lambda tokens: contains(tokens, (1, 2)))
        assert (answer.score, answer.tokens) == (pytest.approx(best[0], abs=1e-5), best[1])
        found.append(answer.tokens[2:])
    assert (1, 1, 2) in found


@pytest.mark.parametrize("seed", range(31))
def test_the_best_answer_with_all_words_is_found(seed):
    draw = random.Random(seed)
    scorer, limit = HashScorer(1, 4, end=draw.choice([-9.0, 0.0, 3.0])), draw.randint(2, 5)
    scorer.first += seed
    words = random_words(draw, (1, 2, 3))

    def is_right(tokens):
        pairs = zip(words.words, words.openings, strict=True)
        return all(is_whole(tokens, *pair, words.continuing, words.separating) for pair in pairs)

    request = Request(
        end=END,
        required=[words.words],
        openings=[words.openings],
        continuing=words.continuing,
        separating=words.separating,
    )
    best = best_by_brute_force(scorer, 0, limit, is_right)
    if best is None:
        with pytest.raises(GlassformerError, match="required words"):
            decode(scorer, request, exhaustive(limit))
    else:
        [[answer]] = decode(scorer, request, exhaustive(limit))
        assert (answer.score, answer.tokens) == (pytest.approx(best[0], abs=1e-5), best[1])


@pytest.mark.parametrize("seed", range(11))
def test_complete_and_missing_are_as_defined(seed):
    draw = random.Random(seed)
    words = random_words(draw, (1, 2, 3))
    automaton = build_automaton(words, 4, END)

    def has_all(tokens):
        pairs = zip(words.words, words.openings, strict=True)
        return all(is_whole(tokens, *pair, words.continuing, words.separating) for pair in pairs)

    def longer(tokens, count):
        return ((*tokens, *more) for more in product((1, 2, 3), repeat=count))

    for tokens in product((1, 2, 3), repeat=3):
        state = 0
        for token in tokens:
            state = automaton.transitions[state, automaton.class_of[token]]
        least = next((n for n in range(5) if any(map(has_all, longer(tokens, n)))), 5)
        assert min(automaton.remaining[state], 5) == least
        at = words.complete_at(tokens)
        assert (at is not None) == has_all(tokens)
        assert at is None or has_all(tokens[:at])


def test_a_word_that_has_no_room_is_refused_before_anything_is_written():
    request = Request(end=END, required=[[(1, 2, 3)], [(4,), (5,), (4,), (6, 4, 6)]])
    config = DecodeConfig(method="beam", max_length=3)
    with pytest.raises(
        GlassformerError,
        match=r"^row 2: its prefix and required words need 4 tokens, but the limit is 3; raise",
    ):
        decode(HashScorer(2, V), request, config)
    with pytest.raises(GlassformerError, match=r"^row 2: its prefix and .* need 5 tokens"):
        decode(HashScorer(2, V), replace(request, prefix=[(1,), (5, 6, 6)]), config)


def test_more_words_than_can_be_searched_for_are_refused():
    many = [(1, token) for token in range(MOST_WORDS + 1)]
    with pytest.raises(GlassformerError, match=r"^row 1: 11 required words are too many to search"):
        decode(
            HashScorer(1, 13),
            Request(end=12, required=[many]),
            DecodeConfig(method="beam", max_length=41),
        )


def test_most_words_are_searched_for_within_moments():
    words = tuple((1, token, token) for token in range(2, 2 + MOST_WORDS))
    automaton = build_automaton(RequiredWords(words), 31, END)
    assert automaton.remaining[0] == 3 * MOST_WORDS
    assert (automaton.remaining[-1], set(automaton.transitions[-1])) == (NEVER, {-1})


@pytest.mark.parametrize("seed", range(12))
def test_required_words_are_always_written(seed):
    draw = random.Random(seed)
    words = [
        [
            [draw.randrange(1, V) for _ in range(draw.randint(1, 3))]
            for _ in range(draw.randint(0, 3))
        ]
        for _ in range(ROWS)
    ]
    shortest = max(1, max(sum(map(len, row)) for row in words))
    config = DecodeConfig(
        method="beam",
        best=2,
        max_length=draw.randint(shortest, shortest + 4),
        beam=BeamConfig(width=draw.choice([2, 4, 6]), groups=draw.choice([1, 2])),
    )
    request = Request(end=END, required=words)
    for row, found in zip(words, answers(config, request, end=draw.choice([-1, 3])), strict=True):
        assert all(contains(h.tokens, word) for h in found for word in row)


def test_a_row_may_begin_with_another_spelling_of_its_word():
    """A spelling for the beginning counts there and nowhere else, and is looked for there."""
    draw, many, opened = random.Random(1), 41, 0
    config = DecodeConfig(method="beam", max_length=7, beam=BeamConfig(width=3))
    for _ in range(6):
        words, openings = (
            [[tuple(draw.sample(range(1, many), length))] for _ in range(ROWS)] for length in (3, 2)
        )
        request = Request(end=END, required=words, openings=openings)
        for row, [found] in enumerate(decode(HashScorer(ROWS, many), request, config)):
            [word], [opening] = words[row], openings[row]
            begins = found.tokens[:2] == opening
            assert begins or contains(found.tokens, word)
            assert RequiredWords((word,), (opening,)).complete_at(found.tokens) is not None
            opened += begins and not contains(found.tokens, word)
    assert opened > 5  # of 30: few of these tokens are likely by themselves


@pytest.mark.parametrize("limit", [2, 9])
def test_a_required_word_counts_only_where_nothing_makes_another_word_of_it(limit):
    words, more = [[(3, 5)]] * ROWS, (1, 2, 6)
    config = DecodeConfig(method="beam", best=3, max_length=limit, beam=BeamConfig(width=6))
    request = Request(end=END, required=words, continuing=more)
    for row in answers(config, request, end=-3.0):
        assert all(is_whole(h.tokens, (3, 5), (), more, ()) for h in row)
    if limit > 2:
        bound = replace(request, prefix=[(3, 5, 6)] * ROWS)
        for row in answers(config, bound):
            assert all(h.tokens[:3] == (3, 5, 6) for h in row)
            assert all(is_whole(h.tokens, (3, 5), (), more, ()) for h in row)


@pytest.mark.parametrize("seed", range(7))
def test_required_words_are_written_though_a_run_comes_twice_but_never_a_forbidden_word(seed):
    draw, forbidden = random.Random(seed), [(4, 4), (5,)]
    words = [[tuple(draw.sample((1, 2, 3, 6), k=3))] for _ in range(ROWS)]
    config = DecodeConfig(method="beam", best=2, max_length=LENGTH, no_repeat=2)
    prompts = [(*row[0][:2], draw.randrange(1, V)) for row in words]
    request = Request(
        end=END, required=words, prompts=prompts, forbidden=forbidden, continuing=(1, 2)
    )
    for row, found in zip(words, answers(config, request, end=-2.0), strict=True):
        for h in found:
            assert is_whole(h.tokens, row[0], (), (1, 2), ())
            assert not any(contains(h.tokens, word) for word in forbidden)


@pytest.mark.parametrize("seed", range(3))
def test_ranks_count_the_better_ones_of_the_same_bank(seed):
    draw = torch.Generator().manual_seed(seed)
    worth = torch.randint(-4, 4, (3, 29), generator=draw).float()
    worth[worth == 3] = -torch.inf
    bank = torch.randint(0, 3, (3, 29), generator=draw)
    place = torch.arange(29)
    better = worth[:, None] > worth[..., None]
    better |= (worth[:, None] == worth[..., None]) & (place < place[:, None])
    assert torch.equal(ranks(worth, bank), (better & (bank[:, None] == bank[..., None])).sum(-1))


def test_required_words_find_a_better_place_in_a_wider_beam():
    """The banks let ways with and without the word live on side by side."""
    words = [[(3, 5)]] * ROWS

    def score(width):
        beam = BeamConfig(width=width, penalty="none")
        config = DecodeConfig(method="beam", max_length=LENGTH, beam=beam)
        return sum(row[0].score for row in answers(config, Request(end=END, required=words)))

    assert score(8) > score(1) + 1


@each_beam
def test_rows_without_required_words_are_searched_as_ever(config):
    words = [[], [(3, 5)], [], [], []]
    free, bound = (
        answers(config, Request(end=END)),
        answers(config, Request(end=END, required=words)),
    )
    assert [free[row] == bound[row] for row in range(ROWS)] == [True, False, True, True, True]


def text_of(tokens):
    return "".join("abcdefg"[token] for token in tokens)


@pytest.mark.parametrize("seed", range(6))
@each_beam
def test_writing_stops_at_a_text_only_behind_all_required_words(config, seed):
    draw = random.Random(seed)
    words = [
        [[draw.randrange(1, V) for _ in range(2)] for _ in range(draw.randrange(3))]
        for _ in range(ROWS)
    ]
    request = Request(end=END, required=words, detokenize=text_of)
    found = answers(replace(config, stop=STOPS), request, end=-5.0)
    assert "stop" in {h.reason for row in found for h in row}
    for row, needed in zip(found, words, strict=True):
        for h in row:
            rest = text_of(
                h.tokens[RequiredWords(tuple(map(tuple, needed))).complete_at(h.tokens) :]
            )
            assert (h.reason == "stop") == rest.endswith(STOPS)
            assert not any(stop in rest[:-1] for stop in STOPS)


def test_a_required_word_stands_before_the_stop_and_not_in_it():
    stops, opened = Stops(["bc"], text_of), RequiredWords(((5,),), ((6,),))
    assert stops.reached([1, 2])
    assert not stops.reached([1, 2], RequiredWords(((1,),)))
    assert not stops.reached([1, 2], RequiredWords(((2,),)))
    assert not stops.reached([1, 2, 1, 3], RequiredWords(((1,),)))
    assert stops.reached([1, 2, 1, 2], RequiredWords(((1,),)))
    assert not stops.reached([1, 2], RequiredWords(((5,),)))
    assert stops.reached([6, 1, 2], opened)
    assert not stops.reached([1, 2, 6], opened)
    spaced = Stops([" b"], lambda tokens: " ".join(text_of(tokens)))
    assert spaced.reached([0, 1], RequiredWords(((0,),)))


@pytest.mark.parametrize("kind", ["characters", "bytes", "bpe"])
def test_a_search_finds_required_words_that_stand_by_themselves(kind):
    tokens = Tokenizer.train(kind, ["j'ai faim", "bois (de) l'eau."] * 9, vocabulary=300)
    spelt = spell(GenerationOptions(required=("faim", "eau")), tokens)
    request = Request(
        end=Tokenizer.end,
        required=[spelt.required] * 3,
        openings=[spelt.openings] * 3,
        continuing=spelt.continuing,
        separating=spelt.separating,
        forbidden=[[Tokenizer.unknown], [Tokenizer.mask], [Tokenizer.start]],
    )
    config = DecodeConfig(method="beam", max_length=17)
    for [answer] in decode(HashScorer(3, tokens.size), request, config):
        text = tokens.decode(list(answer.tokens))
        assert all(re.search(rf"(?<![a-z]){word}(?![a-z])", text) for word in ("faim", "eau")), text
