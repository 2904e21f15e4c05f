"""Models step by step: every branch scores what the whole model scores without a cache."""

import gc
import weakref
from functools import partial

import pytest
import torch
from small_models import (
    FIRST,
    LENGTHS,
    LINEAR,
    V,
    baseline_decoder,
    continued,
    encoder_decoder,
    language_model,
    prompts,
    sources,
    translated,
)

from glassformer.config import AttentionConfig
from glassformer.core.caches.branching import Ancestry, BranchingCache
from glassformer.core.layout import Layout, pack
from glassformer.core.positions import POSITIONS
from glassformer.decode import Scorer, ScorerState
from glassformer.decode.scorer import log_probabilities
from glassformer.errors import GlassformerError
from glassformer.models.baselines import BASELINE_DECODERS
from glassformer.models.incremental import BranchingScorer, StateScorer, continuing, translating

W, STEPS = 3, 6


def walked(scorer, expected, branches=W):
    """Walk at random, changing branches at every step and dropping a row on the way.

    Every step is compared with `expected(rows, said)`.
    """
    assert isinstance(scorer, Scorer)
    state, rows = scorer.begin(branches, STEPS), list(range(len(scorer.first)))
    assert isinstance(state, ScorerState)
    tokens = scorer.first[:, None].expand(-1, branches)
    said = [[[] for _ in range(branches)] for _ in rows]
    for step in range(STEPS):
        scores, state = scorer.step(tokens, state)
        row_of = [row for row in rows for _ in range(branches)]
        paths = [path for row in said for path in row]
        torch.testing.assert_close(
            log_probabilities(scores).flatten(0, 1),
            expected(row_of, paths)[:, -1],
            atol=1e-4,
            rtol=0,
        )
        if step == 2:
            kept = torch.tensor([2, 0])
            state, rows = state.select_rows(kept), [rows[place] for place in kept]
            said = [said[place] for place in kept]
        parents = torch.randint(branches, (len(rows), branches))
        tokens = torch.randint(V, (len(rows), branches))
        state = state.reorder(parents)
        said = [
            [[*row[parent], token] for parent, token in zip(*lines, strict=True)]
            for row, *lines in zip(said, parents.tolist(), tokens.tolist(), strict=True)
        ]


def fixed(scorer):
    """The same scorer in the room of fixed shapes that a graph is captured in."""
    read = {"memory": scorer.memory, "prompt": scorer.prompt, "capture": True}
    if isinstance(scorer, StateScorer):
        return StateScorer(scorer.score, scorer.decoder, scorer.first, **read)
    return BranchingScorer(scorer.decoder, scorer.tokens, scorer.unembed, scorer.first, **read)


each_room = pytest.mark.parametrize(
    "room", [lambda scorer: scorer, fixed], ids=["growing", "fixed"]
)


@torch.no_grad()
@pytest.mark.parametrize("name", POSITIONS)
def test_branches_of_a_translation_score_as_without_a_cache(name):
    model, source = encoder_decoder(position=name), sources()
    walked(translating(model, *source, first=FIRST), partial(translated, model, source))


@torch.no_grad()
@pytest.mark.parametrize("name", POSITIONS)
@each_room
def test_branches_of_a_ragged_batch_of_prompts_score_as_without_a_cache(name, room):
    model, texts = language_model(position=name), prompts()
    walked(room(continuing(model, texts)), partial(continued, model, texts))


@torch.no_grad()
@pytest.mark.parametrize("lengths", [(1, 1, 1), (4, 4, 4), (1, 3, 2)], ids=str)
def test_one_branch_scores_as_without_a_cache(lengths):
    model, texts = language_model(), prompts(lengths)
    walked(continuing(model, texts), partial(continued, model, texts), branches=1)


@torch.no_grad()
@each_room
@pytest.mark.parametrize(
    "settings",
    [
        {"attention": AttentionConfig(heads=3, key_width=10, value_width=6, qk_norm=True)},
        {"order": "post", "norm": "rms"},
        {"attention": AttentionConfig(heads=3, scale=0.9, softcap=0.8), "parallel": True},
        {"position": {"kind": "rotary", "fraction": 0.5}},
        {"attention": AttentionConfig(heads=3, window=(2, 3))},
        {"attention": AttentionConfig(heads=3, window=(2, 0)), "position": "alibi"},
        {"attention": LINEAR, "position": "sinusoidal"},
    ],
    ids=[
        "own heads",
        "post-norm",
        "capped and parallel",
        "partial rotary",
        "windows",
        "a window and a bias",
        "linear",
    ],
)
def test_other_decoders_score_as_without_a_cache(settings, room):
    model, source = encoder_decoder(**settings), sources()
    walked(room(translating(model, *source, first=FIRST)), partial(translated, model, source))


@torch.no_grad()
@each_room
@pytest.mark.parametrize("branches", [1, W])
@pytest.mark.parametrize("lengths", [(4, 4, 4), LENGTHS], ids=str)
def test_a_language_model_keeps_to_its_windows_after_prompts_of_any_length(lengths, branches, room):
    model = language_model(attention=AttentionConfig(heads=3, window=(3, 2)))
    texts = prompts(lengths)
    walked(room(continuing(model, texts)), partial(continued, model, texts), branches=branches)


@torch.no_grad()
@each_room
def test_a_language_model_of_linear_attention_scores_as_without_a_cache(room):
    model, texts = language_model(attention=LINEAR, position="learned"), prompts()
    walked(room(continuing(model, texts)), partial(continued, model, texts))


@torch.no_grad()
@each_room
@pytest.mark.parametrize("kind", BASELINE_DECODERS)
def test_a_decoder_with_a_state_scores_as_without_a_cache(kind, room):
    model, source = baseline_decoder(kind), sources()
    walked(room(translating(model, *source, first=FIRST)), partial(translated, model, source))


@torch.no_grad()
def test_a_fixed_state_stays_where_it_is_until_a_row_leaves():
    scorer = fixed(translating(baseline_decoder("gru"), *sources(), first=FIRST))
    _, state = scorer.step(scorer.first[:, None].expand(-1, W), scorer.begin(W, STEPS))
    address = state.caches[0].state.data_ptr()
    tokens = torch.randint(V, (len(scorer.first), W))
    _, state = scorer.step(tokens, state.reorder(torch.zeros_like(tokens)))
    assert state.caches[0].state.data_ptr() == address
    assert state.select_rows(torch.tensor([1])).caches[0].state.data_ptr() != address


@pytest.mark.parametrize("kind", ["linear", "softmax"])
def test_learned_positions_limit_what_is_written(kind):
    attention = AttentionConfig(heads=6, kind=kind)
    model = language_model(attention=attention, position="learned")
    longest = model.decoder.position.max_length
    assert continuing(model, prompts((4, 2))).room == [longest - 3, longest - 1]


@torch.no_grad()
def test_a_packed_source_is_read_as_a_padded_one():
    model, (samples, layout) = encoder_decoder(), sources()
    packed = layout.as_packed()
    scorer = translating(model, pack(samples, packed), packed, first=FIRST)
    walked(scorer, partial(translated, model, (samples, layout)))


@torch.no_grad()
def test_branches_share_their_source_and_prompt():
    """However many branches: one line of keys a row, and no key moves when branches change."""
    scorer = translating(encoder_decoder(), *sources(), first=FIRST)
    state = scorer.begin(7, STEPS)
    _, state = scorer.step(scorer.first[:, None].expand(-1, 7), state)
    assert [memory.k.shape[0] for memory in state.memory] == [len(LENGTHS)] * 2
    before = [(cache.k, cache.k.clone()) for cache in state.caches]
    state = state.reorder(torch.randint(7, (len(LENGTHS), 7)))
    for cache, (room, held) in zip(state.caches, before, strict=True):
        assert cache.k is room
        used = state.ancestry.used
        assert torch.equal(room[:, :, :used], held[:, :, :used])
    reader = continuing(language_model(), prompts())
    state = reader.begin(7, STEPS)
    assert state.ancestry.used == max(LENGTHS) - 1  # one slot a token, not one a branch


@torch.no_grad()
def test_a_state_is_gone_with_its_last_name():
    """Without waiting for the garbage collector: it holds most of the memory."""
    scorer = continuing(language_model(), prompts())
    state = scorer.begin(2, STEPS)
    _, state = scorer.step(scorer.first[:, None].expand(-1, 2), state)
    alive = weakref.ref(state.caches[0])
    gc.disable()
    del state
    gone = alive() is None
    gc.enable()
    assert gone


def test_the_mask_shows_each_branch_its_ancestors():
    ancestry = Ancestry(1, 2, 3, prompt=None, reach=3, fixed=False, device=torch.device("cpu"))
    for parents in ([1, 0], [1, 1], [0, 1]):
        ancestry.advance()
        ancestry.branch(torch.tensor([parents]))
    picture = ["".join("#" if seen else "." for seen in line) for line in ancestry.seen[0].tolist()]
    assert picture == ["#..##.", "#..#.#"]


def test_learned_positions_say_how_much_can_be_written():
    model = language_model(position="learned")
    assert continuing(model, prompts((5, 2, 7))).room == [32 - 4, 32 - 1, 32 - 6]
    assert continuing(language_model(), prompts()).room is None


def test_an_empty_prompt_is_refused():
    with pytest.raises(GlassformerError, match=r"prompt 2 is empty; give at least one token"):
        continuing(language_model(), [[3], [], [4]])


def test_a_branching_cache_reads_one_prompt():
    cache, k = BranchingCache(9, fixed=False), torch.randn(2, 3, 4, 5)
    cache.append(k, k, Layout.full(2, 4))
    with pytest.raises(ValueError, match="takes one prompt in padded rows"):
        cache.append(k, k, Layout.full(2, 4))


@pytest.mark.parametrize(("lengths", "packed"), [((9, 2, 3), True), ((9, 9, 8), False)])
@torch.no_grad()
def test_on_a_cpu_rows_with_much_padding_are_read_packed(lengths, packed):
    model, (samples, layout) = encoder_decoder(), sources(lengths)
    seen = []
    model.encoder.register_forward_hook(
        lambda _, __, options, ___: seen.append(options["layout"].is_packed), with_kwargs=True
    )
    scorer = translating(model, samples, layout, first=FIRST)
    assert seen == [packed]
    walked(scorer, partial(translated, model, (samples, layout)))


@pytest.mark.parametrize("lengths", [(9, 2, 3), (9, 9, 8)], ids=["read packed", "read padded"])
def test_a_source_padded_wider_than_its_layout_is_refused(lengths):
    model, (samples, layout) = encoder_decoder(), sources(lengths)
    wider = torch.cat([samples, samples[:, :2]], 1)
    with pytest.raises(
        ValueError, match=r"holds \(3, 11\) tokens, but its layout describes \(3, 9"
    ):
        translating(model, wider, layout, first=FIRST)
