"""Explained transcripts: every word by stretches of sound, with when it was heard."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_jobs import job_of
from small_recordings import RATE, SETTINGS, play, record

from glassformer.config.values import merge_values
from glassformer.errors import GlassformerError
from glassformer.explaining.methods import METHODS, usable_methods
from glassformer.explaining.watching import watching
from glassformer.tasks.shared.recordings import Part
from glassformer.tasks.transcribe.explainer import TranscribeExplainer
from glassformer.tasks.transcribe.predictor import STANDARD_INPUT, TranscribePredictor
from glassformer.tasks.transcribe.sounds import BLANK


@pytest.fixture(autouse=True)
def likely_tokens(monkeypatch):
    """Untrained models that write something."""
    monkeypatch.setattr("glassformer.tasks.transcribe.task.expect_blanks", lambda layer: None)


def explained(folder, **settings):
    rows = record(folder / "clips", ("ad", "bead", "ace bad"))
    task = job_of("transcribe", folder / "run", rows, **merge_values(SETTINGS, settings))
    torch.manual_seed(1)
    return TranscribeExplainer(task), task.model().eval()


def sound_of(text, seed=5):
    return play(text, np.random.default_rng(seed))


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_words_are_scored_by_what_the_run_searches_with(tmp_path, weight):
    explainer, model = explained(tmp_path, task={"ctc_weight": weight})
    sound = sound_of("ace bad")
    subject = explainer.subject(model, sound, target="ace bad")
    assert [one.text for one in subject.targets] == ["ace", "bad"]
    everything = torch.ones(1, len(subject.pieces), dtype=torch.bool)
    scores = subject.scores(model, copies=2)
    assert torch.allclose(subject.scores_of(everything)[0], scores[1], atol=1e-4)
    probabilities = torch.tensor([one.probability for one in subject.targets])
    assert torch.allclose(scores[0], probabilities.logit(), atol=1e-3)
    for one in subject.targets:
        start, end = one.time
        assert 0 <= start < end <= len(sound) / RATE
    assert subject.targets[0].time[1] <= subject.targets[1].time[0] or weight == 0
    for name in usable_methods(subject):
        found = METHODS[name].influence(subject)
        assert found.isfinite().all(), name
        assert found.abs().sum() > 0, name


def test_a_stretch_that_is_left_out_sounds_like_the_mean(tmp_path):
    explainer, model = explained(tmp_path)
    subject = explainer.subject(model, sound_of("ace bad"), target="ace bad")
    kept = torch.ones(1, len(subject.pieces), dtype=torch.bool)
    kept[0, 2] = False
    start, end = (round(at * 100) for at in subject.stretches[2])
    features = subject.features.clone()
    features[start:end] = features.mean(0)
    subject.features = features
    assert torch.allclose(
        subject.scores_of(torch.ones_like(kept))[0], subject.scores(model)[0], atol=1e-4
    )
    other = explainer.subject(model, sound_of("ace bad"), target="ace bad")
    assert torch.allclose(other.scores_of(kept), subject.scores(model), atol=1e-4)


def test_gradients_start_from_a_sound_that_is_its_mean(tmp_path):
    explainer, model = explained(tmp_path)
    subject = explainer.subject(model, sound_of("ace bad"), target="ace bad")
    nothing = torch.zeros(1, len(subject.pieces), dtype=torch.bool)
    blank = subject.scores(model, noise=lambda x, layout: subject.baseline(x))
    assert torch.allclose(blank, subject.scores_of(nothing), atol=1e-4)


def test_the_letters_of_a_single_word_are_explained_one_by_one(tmp_path):
    explainer, model = explained(tmp_path)
    subject = explainer.subject(model, sound_of("bead"), target="Bead!")
    assert [one.text for one in subject.targets] == list("bead")


def test_by_ctc_a_letter_is_as_likely_as_its_frames_on_average(tmp_path):
    explainer, model = explained(tmp_path, task={"ctc_weight": 1.0})
    subject = explainer.subject(model, sound_of("bead"), target="bead")
    lengths = set()
    for one in subject.targets:
        start, end = (round(at / subject.vector) for at in one.time)
        curve = subject.sound.posteriors[start:end, subject.sound.symbols.index(one.text)]
        assert one.probability == pytest.approx(curve.log().mean().exp().item(), rel=1e-3)
        lengths.add(end - start)
    assert max(lengths) > 1


def test_stretches_cover_the_sound_and_are_not_too_many(tmp_path):
    explainer, model = explained(tmp_path)
    for text in ("ad", "ace bad decade abba cab" * 2):
        subject = explainer.subject(model, sound_of(text), target="ad")
        edges = [start for start, _ in subject.stretches] + [subject.stretches[-1][1]]
        assert edges[0] == 0
        assert edges[-1] == pytest.approx(len(subject.features) / 100)
        assert [end for _, end in subject.stretches] == edges[1:]
        assert len(subject.pieces) == len(subject.stretches) <= 60
        assert max(b - a for a, b in subject.stretches) >= 0.04
    assert subject.pieces[0] == f"0.00-{edges[1]:.2f}"


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_a_picture_has_the_sound_and_what_was_heard(tmp_path, weight):
    explainer, model = explained(tmp_path, task={"ctc_weight": weight})
    sound = sound_of("ace bad")
    subject = explainer.subject(model, sound)
    heard = subject.sound
    vectors = subject.piece_of.shape[1]
    assert torch.equal(heard.samples, torch.from_numpy(sound))
    assert heard.spectrogram.shape == (len(subject.features), 20)
    assert (heard.posteriors is None) == (weight == 0)
    if weight:
        assert heard.posteriors.shape == (vectors, len(heard.symbols))
        assert heard.symbols[0] == ""
    with watching(model) as (watched, maps):
        subject.scores(watched)
        found = {one.name: one for one in subject.attention_of(maps)}
    assert len(found["encoder.blocks.0.attention"].keys) == vectors
    if weight < 1:
        assert found["decoder.blocks.0.cross_attention"].keys[1] == "0.04"
        assert len(found["decoder.blocks.0.cross_attention"].queries) == len(subject.tokens)


def test_it_explains_what_predict_writes(tmp_path):
    explainer, model = explained(tmp_path)
    sound = sound_of("ace bad")
    [prediction] = TranscribePredictor(explainer.task).predict(model, [sound])
    assert explainer.subject(model, sound).answer == prediction.text


def test_of_a_long_recording_the_beginning_is_explained(tmp_path):
    explainer, model = explained(tmp_path, task={"max_seconds": 1.0})
    subject = explainer.subject(model, sound_of("ace bad cab decade"), target="ad")
    assert 0.4 < len(subject.samples) / RATE <= 1.0
    assert subject.given.endswith(f"the first {len(subject.samples) / RATE:.1f} seconds")
    assert subject.notes[0].startswith("Only the first ")
    clip = Part(path=tmp_path / "clips" / "0.wav")
    assert explainer.subject(model, clip, target="ad").given == str(clip.path)


def test_what_cannot_be_explained_is_refused(tmp_path):
    explainer, model = explained(tmp_path)
    sound = sound_of("ad")
    with pytest.raises(GlassformerError, match=r"is too short for 'ad.*give a shorter target"):
        explainer.subject(model, sound, target="ad" * 40)
    with pytest.raises(GlassformerError, match="cannot write 'x': some of it is in no training"):
        explainer.subject(model, sound, target="x")
    with pytest.raises(GlassformerError, match="pieces of a sound are stretches"):
        explainer.subject(model, sound, unit="word")
    with pytest.raises(GlassformerError, match="standard input is not explained; record it"):
        explainer.subject(model, Part(path=STANDARD_INPUT))
    with pytest.raises(GlassformerError, match="a stream is not explained"):
        explainer.configured(stream=True)
    with torch.no_grad():
        model.to_token.bias[BLANK] = 100.0
    explainer.predictor.searcher = replace(explainer.predictor.searcher, search="ctc")
    with pytest.raises(GlassformerError, match="no words were heard"):
        explainer.subject(model, sound)
