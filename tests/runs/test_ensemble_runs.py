"""A run whose classifier is an ensemble: what every other run can do, it does, too."""

import numpy as np
import pytest
import torch
from quick import quickly, unchecked
from small_runs import learn, same, weights, write_reviews

import glassformer
from glassformer.errors import GlassformerError
from glassformer.explaining.views.selection import grouped, select
from glassformer.runs import api
from glassformer.training import loop
from glassformer.training.weights import read_tensors

MEMBERS, DIM = 3, 16
ENSEMBLE = (f"model.members={MEMBERS}", "model.pool=attention", "model.encoder.depth=2")
TEXT = "The film was great, with some people who said: a lovely town."


@pytest.fixture(scope="module", autouse=True)
def _quickly():
    with quickly():
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ensemble")
    return learn(write_reviews(folder / "x.csv"), folder / "run", *ENSEMBLE, steps=20)


def test_its_folder_is_the_whole_model(run):
    again = glassformer.load(run.folder.path)
    texts = [TEXT, "A dull story.", "people"]
    probabilities = [
        [one.details["probabilities"]["good"] for one in some.predict(texts)]
        for some in (run, again)
    ]
    assert probabilities[0] == probabilities[1]
    assert len({*probabilities[0]}) == 3
    assert sum(name.startswith("to_class.") for name in weights(run.folder.path)) == 2 * MEMBERS


def test_training_goes_on_as_if_it_was_never_interrupted(run, tmp_path, monkeypatch):
    data, original, calls = write_reviews(tmp_path / "x.csv"), loop.update_weights, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 11:
            raise KeyboardInterrupt
        original(*args)

    with unchecked():
        with monkeypatch.context() as patch:
            patch.setattr(loop, "update_weights", interrupted)
            with pytest.raises(KeyboardInterrupt):
                learn(data, tmp_path / "run", *ENSEMBLE, "train.save_every=7", steps=20)
        resumed = api.resume(tmp_path / "run", quiet=True)
    assert same(weights(resumed.folder.path), weights(run.folder.path))


@pytest.mark.parametrize("method", ["attention_x_gradient", "integrated_gradients"])
def test_its_answers_are_explained(run, method):
    found = run.explain(TEXT, method=method)
    assert found.influence.shape == (2, len(found.pieces))
    assert found.influence.abs().sum() > 0


def test_equal_members_have_the_reasons_of_one(tmp_path):
    data, stays = write_reviews(tmp_path / "x.csv"), "train.optimiser.lr=1e-12"
    with unchecked():
        one = learn(data, tmp_path / "one", *ENSEMBLE, "model.members=1", steps=20)
        more = learn(data, tmp_path / "more", *ENSEMBLE, stays, from_=tmp_path / "one", steps=1)
    for method in ("attention", "rollout", "occlusion"):
        first, second = (some.explain(TEXT, method=method).influence for some in (one, more))
        torch.testing.assert_close(second, first, atol=1e-4, rtol=1e-3)


def test_the_layers_of_its_members_are_counted_on(run):
    maps = run.explain(TEXT, method="attention").attention
    groups = {group.name: sorted(group.layers) for group in grouped(maps)}
    assert groups == {"encoder": [*range(2 * MEMBERS)], "pool": [*range(MEMBERS)]}
    last = [one for one in maps if one.name.startswith("encoder.members.2.blocks.1.")]
    shown = select(maps, layer="encoder.5", head=1).attention.weights
    torch.testing.assert_close(shown[0], last[0].weights[1].float())


def test_a_text_has_the_vectors_of_all_members(run):
    predictor = run.configured()
    vectors = predictor.embed(run.model, [TEXT, "A dull story."])
    assert vectors.shape == (2, MEMBERS * DIM)
    assert not np.allclose(vectors[0, :DIM], vectors[0, DIM : 2 * DIM])


def test_members_all_start_from_the_weights_of_a_single_model(tmp_path):
    data = write_reviews(tmp_path / "x.csv")
    with unchecked():
        first = learn(data, tmp_path / "first", steps=1)
        later = learn(data, tmp_path / "later", "model.members=2", from_=tmp_path / "first")
        third = learn(data, tmp_path / "third", from_=tmp_path / "later", steps=1)
    single, started = weights(first.folder.path), read_tensors(later.folder.initial)
    for name in (
        "encoder.members.{}.blocks.0.attention.to_q.weight",
        "frontend.members.{}.table.weight",
    ):
        for member in range(2):
            expected = single[name.replace(".members.{}", "")]
            torch.testing.assert_close(started[name.format(member)], expected)
    assert third.config.model.members == 2
    assert same(read_tensors(third.folder.initial), weights(later.folder.path))
    with pytest.raises(GlassformerError, match="of 2 members cannot start one of 4; use model"):
        learn(data, tmp_path / "fourth", "model.members=4", from_=tmp_path / "later")


WORDS = (
    *("model.members=2", "model.pool=attention", "model.frontend.kind=ngrams"),
    *("model.frontend.word_grams=2", "data.tokenizer.kind=characters"),
)


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    """A run of two members, one of which reads words."""
    folder = tmp_path_factory.mktemp("readers")
    return learn(write_reviews(folder / "x.csv"), folder / "run", *WORDS, steps=20)


def test_members_that_read_words_are_found_in_a_folder_again(readers):
    texts = [TEXT, "a dull story", "?", "好 wonderful"]
    expected = [one.confidence for one in readers.predict(texts)]
    again = glassformer.load(readers.folder.path)
    assert [one.confidence for one in again.predict(texts)] == expected
    assert [again.predict(text).confidence for text in texts] == pytest.approx(expected, abs=1e-5)
    assert len({*expected}) == len(texts)


@pytest.mark.parametrize(
    "method",
    ["attention", "rollout", "attention_x_gradient", "integrated_gradients", "occlusion"],
)
def test_what_members_read_as_words_is_explained_by_every_method(readers, method):
    found = readers.explain(TEXT, method=method)
    assert found.influence.shape == (2, len(found.pieces))
    assert found.influence.isfinite().all()
    assert found.influence.abs().sum() > 0
    names = [one.name for one in found.attention]
    assert "encoder.members.1.inside.blocks.0.attention" in names
    assert len({(one.queries, one.keys) for one in found.attention}) == 2  # one of them of pools


def test_members_start_from_members_that_read_the_same(readers, tmp_path):
    data = write_reviews(tmp_path / "x.csv")
    no_words = (*WORDS, "model.frontend.word_grams=0")
    with unchecked():
        again = learn(data, tmp_path / "again", from_=readers.folder.path, steps=1)
        characters = learn(data, tmp_path / "characters", *no_words, steps=1)
    assert again.config.model.frontend.word_grams == 2
    assert same(read_tensors(again.folder.initial), weights(readers.folder.path))
    for origin, grams in ((readers, 0), (characters, 2)):
        with pytest.raises(GlassformerError, match=r"read other units .* leave model\.frontend"):
            learn(
                data,
                tmp_path / "other",
                f"model.frontend.word_grams={grams}",
                from_=origin.folder.path,
            )
    assert not (tmp_path / "other").exists()


def test_tables_that_are_hashed_in_another_way_start_no_member(readers, tmp_path):
    alone = [one for one in WORDS if "members" not in one and "word_grams" not in one]
    data = write_reviews(tmp_path / "x.csv")
    with unchecked():
        single = learn(data, tmp_path / "single", *alone, steps=1).folder.path
    with pytest.raises(GlassformerError, match=r"hashes in its own way; use model\.members=1"):
        learn(data, tmp_path / "other", "model.members=2", from_=single)


def test_summaries_of_words_are_shown_as_they_are(tmp_path):
    data, kind = write_reviews(tmp_path / "x.csv"), "model.encoder.attention.kind=linformer"
    run = learn(data, tmp_path / "run", *WORDS, kind, steps=1)
    found = run.explain(TEXT, method="integrated_gradients")
    shapes = {one.name: one.weights.shape[2] for one in found.attention}
    assert shapes["encoder.members.1.inside.blocks.0.attention"] == 64
    assert shapes["pool.members.1.inside"] > len(TEXT)


def test_words_are_read_from_characters_alone(tmp_path):
    data = write_reviews(tmp_path / "x.csv")
    settings = [one for one in WORDS if "tokenizer" not in one]
    with pytest.raises(GlassformerError, match="reads words from characters, but the tokens are"):
        learn(data, tmp_path / "run", *settings, "data.tokenizer.kind=words", steps=1)
