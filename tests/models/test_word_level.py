"""Words in rows of characters: found by their letters, read alone, and put back where they end."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn

from glassformer.config import AttentionConfig, FrontendConfig, ModelConfig, StackConfig
from glassformer.core.layout import Layout, pack
from glassformer.errors import GlassformerError
from glassformer.explaining.watching import watching
from glassformer.models.build import build_classifier
from glassformer.models.ensemble import members_of
from glassformer.models.frontends.words import ALONE, BETWEEN, Spelling, WordEnds, WordPhrases
from glassformer.models.fused_encoder import FusedEncoder
from glassformer.models.packing import for_inference
from glassformer.models.stacks import Encoder
from glassformer.models.word_level import WordEncoder, WordPool, word_ends

ALPHABET = " ?ab12雪"  # a blank, a mask, letters, digits, and a character that is a word
LETTER, DIGIT = 2, 3
SPELLING = Spelling(np.array([BETWEEN, LETTER, LETTER, LETTER, DIGIT, DIGIT, ALONE]), mask=1)
D, BUCKETS, CLASSES, MEMBERS = 8, 20_002, 5, 4
TEXTS = ("ab ba 雪 12", "a12雪雪", "b", " ", "ab a?a ba ba")
STACK = StackConfig(dim=D, depth=1, max_length=23, dropout=0.0, attention=AttentionConfig(heads=2))
CONFIG = ModelConfig(
    encoder=STACK,
    members=MEMBERS,
    pool="attention",
    frontend=FrontendConfig(kind="ngrams", buckets=7, word_grams=2),
)


def ids(*texts, longest=None):
    """Padded rows of characters, with noise in the padding, and their layout."""
    layout = Layout.padded([len(text) for text in texts], longest=longest)
    rows = torch.randint(len(ALPHABET), (len(texts), layout.longest))
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = torch.tensor([ALPHABET.index(c) for c in text], dtype=torch.long)
    return rows, layout


def words_in(text):
    """The words of a text and where each ends, by a loop."""
    found, kinds = [], [SPELLING.kinds[ALPHABET.index(c)] for c in text]
    for place, (character, kind) in enumerate(zip(text, kinds, strict=True)):
        if kind == BETWEEN:
            continue
        if place and kind > ALONE and kinds[place - 1] == kind:
            found[-1] = found[-1][0] + character, place
        else:
            found.append((character, place))
    return found


def frontend(longest=2):
    made = WordPhrases(SPELLING, D, longest=longest, buckets=BUCKETS)
    nn.init.normal_(made.phrases.weight)
    return made


def random_weights(model):
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3)
    return model.eval()


def classifier():
    return random_weights(
        build_classifier(CONFIG, classes=CLASSES, source=len(ALPHABET), spelling=SPELLING)
    )


@settings(max_examples=40)
@given(texts=st.lists(st.text(ALPHABET, max_size=13), min_size=1, max_size=5))
def test_words_are_those_that_a_loop_finds_and_equal_ones_have_equal_vectors(texts):
    tokens, layout = ids(*texts, longest=max(map(len, texts)) + 1)
    x, after = frontend(1)(tokens, layout)
    assert after is layout
    expected = [words_in(text) for text in texts]
    found = layout.memo[WordEnds]
    assert found.layout.lengths.tolist() == [len(words) for words in expected]
    vectors, ends = {}, torch.zeros(x.shape[:2], dtype=torch.bool)
    for row, words in enumerate(expected):
        assert found.places[row, : len(words)].tolist() == [place for _, place in words]
        for word, place in words:
            ends[row, place] = True
            key = "?" if "?" in word else word
            assert torch.equal(vectors.setdefault(key, x[row, place]), x[row, place])
    assert x[~ends].eq(0).all()
    different = torch.stack([*vectors.values(), torch.zeros(D)])
    assert len(different.unique(dim=0)) == len(different)


@torch.no_grad()
def test_phrases_end_in_a_word_and_begin_after_a_hidden_one():
    tokens, layout = ids("a b", "b b", "a b a?a b", "b")
    two, one = frontend(2), frontend(1)
    one.load_state_dict(two.state_dict())
    x, alone = two(tokens, layout)[0], one(tokens, layout)[0]
    assert not torch.equal(x[0, 2], x[1, 2])  # after another word
    assert torch.equal(x[0, 2], x[2, 2])
    assert torch.equal(x[1, 0], x[3, 0])  # the first of its row, and not
    assert not torch.equal(x[3, 0], alone[3, 0])
    assert torch.equal(x[2, 8], alone[3, 0])  # after a hidden word
    assert torch.equal(x[2, 6], two.word.weight[1] * two.scale)  # which has no phrases either
    assert torch.equal(alone[0, 2], alone[3, 0])


@torch.no_grad()
def test_the_order_of_letters_tells_words_apart():
    x, _ = frontend(1)(*ids("ab ba", "abb bab"))
    vectors = x[[0, 0, 1, 1], [1, 4, 2, 6]]
    assert len(vectors.unique(dim=0)) == 4


@torch.no_grad()
def test_no_phrase_shares_its_vector_with_a_word():
    two, one = frontend(2), frontend(1)
    two.phrases.weight[BUCKETS // 2 :] = 0
    one.load_state_dict(two.state_dict())
    rows = ids(*TEXTS)
    assert torch.equal(two(*rows)[0], one(*rows)[0])


def test_members_hash_with_a_salt_of_their_own():
    assert [one.salt for one in members_of(classifier().frontend)] == [*range(MEMBERS)]
    tokens, layout = ids("ab ba", "abb a")
    learned, made = frontend().state_dict(), []
    for salt in range(2):
        one = WordPhrases(SPELLING, D, longest=2, buckets=BUCKETS, salt=salt)
        one.load_state_dict(learned)
        made.append(one(tokens, layout)[0])
    ends = made[0].any(-1)
    assert (made[0] != made[1])[ends].any(-1).all()


@torch.no_grad()
def test_a_batch_without_tokens_has_no_words():
    tokens, layout = torch.zeros(2, 0, dtype=torch.long), Layout.padded([0, 0], longest=0)
    assert classifier()(tokens, layout=layout).shape == (2, CLASSES)


@torch.no_grad()
def test_words_that_were_never_learned_are_any_word():
    made = WordPhrases(SPELLING, D, longest=2, buckets=BUCKETS)
    x, _ = made(*ids("ab ba"))
    assert torch.equal(x[0, 1], made.word.weight[0] * made.scale)
    assert torch.equal(x[0, 4], x[0, 1])


@torch.no_grad()
def test_an_encoder_of_words_reads_them_as_if_they_were_all():
    encoder = random_weights(Encoder(STACK))
    reader = WordEncoder(encoder)
    tokens, layout = ids("ab a 雪", "b")
    x, _ = frontend()(tokens, layout)
    found = reader(x, layout=layout)
    for row, ends in enumerate(([1, 3, 5], [0])):
        alone = encoder(x[row, ends][None], layout=Layout.full(1, len(ends)))
        torch.testing.assert_close(found[row, ends], alone[0])
        others = [place for place in range(layout.longest) if place not in ends]
        assert found[row, others].eq(0).all()


@torch.no_grad()
def test_packed_is_padded_and_both_are_one_by_one():
    model = classifier()
    tokens, layout = ids(*TEXTS, longest=17)
    padded, flat = model(tokens, layout=layout), layout.as_packed()
    torch.testing.assert_close(model(pack(tokens, flat), layout=flat), padded)
    each = [model(one, layout=own) for one, own in (ids(text) for text in TEXTS)]
    torch.testing.assert_close(torch.cat(each), padded)
    assert padded.isfinite().all()


@torch.inference_mode()
def test_a_fused_twin_says_the_same():
    model, (tokens, layout) = classifier(), ids(*TEXTS)
    twin = for_inference(model)
    readers = members_of(twin.encoder)
    assert [isinstance(one, WordEncoder) for one in readers] == [False, True] * 2
    assert all(isinstance(getattr(one, "inside", one), FusedEncoder) for one in readers)
    torch.testing.assert_close(twin(tokens, layout=layout), model(tokens, layout=layout))


def test_only_every_second_member_reads_words():
    model = classifier()
    parts = (model.frontend, WordPhrases), (model.encoder, WordEncoder), (model.pool, WordPool)
    for part, kind in parts:
        assert [isinstance(one, kind) for one in members_of(part)] == [False, True] * 2


def test_attention_between_words_is_shown_where_they_end():
    model, (tokens, layout) = classifier(), ids("ab a 雪", "b")
    ends, encoder, pool = [1, 3, 5], "encoder.members.1.inside", "pool.members.1.inside"
    layer = f"{encoder}.blocks.0.attention"
    with watching(model, gradients=True) as (watched, maps):
        scores = watched(tokens, layout=layout)
        by = maps.gradients(scores[0].sum())
    weights = maps[layer]
    assert maps.shape(layer) == weights.shape == by[layer].shape == (2, 2, 6, 6)
    torch.testing.assert_close(weights[0][:, ends].sum(-1), torch.ones(2, 3))
    inside = weights[0][:, ends][..., ends]
    assert inside.count_nonzero() == weights[0].count_nonzero() == 18
    assert by[layer][0].count_nonzero() == by[layer][0][:, ends][..., ends].count_nonzero() > 0
    assert torch.equal(maps.rows(layer, heads=[1], queries=[3])[0, 0, 0], weights[0, 1, 3])
    assert maps.shape(pool) == (2, 1, 1, 6)
    torch.testing.assert_close(maps[pool][:, 0, 0].sum(-1), torch.ones(2))
    assert maps[pool][1, 0, 0].nonzero().tolist() == [[0]]
    assert maps["encoder.members.0.blocks.0.attention"].shape == weights.shape


def test_places_are_never_read_from_the_device():
    layout = Layout.padded(torch.zeros(3, dtype=torch.long, device="meta"), longest=7)
    made = frontend().to("meta")
    x, _ = made(torch.zeros(3, 7, dtype=torch.long, device="meta"), layout)
    assert x.shape == (3, 7, D)
    assert layout.memo[WordEnds].places.shape == (3, 7)


def test_words_that_nobody_looked_for_are_not_read():
    with pytest.raises(ValueError, match="does not know where words end; pass the one that"):
        word_ends(Layout.full(2, 3))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: build_classifier(
                replace(CONFIG, members=1), classes=CLASSES, source=9, spelling=SPELLING
            ),
            "frontend.word_grams is for every second member .*, but members = 1; set members to 2",
        ),
        (
            lambda: FrontendConfig(kind="ngrams", word_grams=-1),
            "frontend.word_grams must be 0 or more, got -1",
        ),
        (
            lambda: FrontendConfig(kind="ngrams", word_grams=1, buckets=1),
            "half of frontend.buckets is for single words; set it to 2 or more",
        ),
        (
            lambda: build_classifier(CONFIG, classes=CLASSES, source=len(ALPHABET)),
            "members that read words need the spelling of the tokens; pass it as `spelling`",
        ),
    ],
)
def test_words_that_cannot_be_read_are_refused(make, words):
    with pytest.raises(GlassformerError, match=words):
        make()
