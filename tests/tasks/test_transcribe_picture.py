"""predict --picture: what was heard, on one axis of time."""

import numpy as np
import pytest
import torch
from small_jobs import job_of
from small_recordings import RATE, SETTINGS, play, record

from glassformer.config.values import merge_values
from glassformer.data.audio.extractor import BANKS
from glassformer.data.audio.features import bin_of
from glassformer.errors import GlassformerError
from glassformer.tasks import JOBS
from glassformer.tasks.shared.sound_settings import FEATURE_NAMES
from glassformer.tasks.transcribe import picture
from glassformer.tasks.transcribe.picture import UNITS, attended, ticks


def task_of(folder, **settings):
    rows = record(folder / "clips", ("ad", "bead", "ace bad"))
    return job_of("transcribe", folder / "run", rows, **merge_values(SETTINGS, settings))


@pytest.fixture
def drawn(monkeypatch):
    """What would be drawn."""
    found = []
    monkeypatch.setattr(picture, "draw_hearing", lambda one, path: found.append(one))
    monkeypatch.setattr("glassformer.tasks.transcribe.task.expect_blanks", lambda layer: None)
    return found


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_a_picture_has_what_the_model_was_trained_for(tmp_path, drawn, weight):
    task = task_of(tmp_path, task={"ctc_weight": weight})
    torch.manual_seed(1)
    model, sound = task.model().eval(), play("ace bad", np.random.default_rng(5))
    predictor = JOBS["transcribe"].predictor(task).configured(picture=tmp_path / "a.png")
    [found] = predictor.predict(model, [sound])
    [heard] = drawn
    assert heard.seconds == pytest.approx(len(sound) / RATE, abs=0.03)
    vectors = -(-len(heard.features) // task.factor)
    assert len(heard.tokens) > 0
    assert (heard.posteriors is None) == (weight == 0)
    assert (heard.attention is None) == (weight == 1)
    if weight:
        assert heard.posteriors.shape == (vectors, len(heard.names))
        assert set(heard.names[1:]) == set(heard.tokens)
    if weight < 1:
        assert heard.attention.shape == (len(heard.tokens), vectors)
    assert "".join(word for word, _, _ in heard.words) == found.text.replace(" ", "")
    assert all(0 <= start < end <= heard.seconds for _, start, end in heard.words)
    assert found.note == ""


def test_of_a_long_recording_the_beginning_is_drawn_and_a_note_says_so(tmp_path, drawn):
    task = task_of(tmp_path, task={"max_seconds": 1.0})
    sound = play("ace bad cab decade", np.random.default_rng(5))
    predictor = JOBS["transcribe"].predictor(task).configured(picture=tmp_path / "a.png")
    found = list(predictor.predict(task.model().eval(), [sound]))[-1]
    [heard] = drawn
    assert 0.4 < heard.seconds <= 1.0
    assert found.note == f"is long: the picture shows its first {heard.seconds:.1f} seconds"


def test_words_lie_where_their_tokens_attend_to_most(tmp_path):
    tokenizer = task_of(tmp_path).tokenizer
    [tokens] = tokenizer.encode(["ad b"])
    attention = np.zeros((4, 9), np.float32)
    attention[[0, 1, 2, 3], [3, 2, 7, 5]] = 1.0
    assert attended(tokenizer, tokens.tolist(), attention) == [("ad", 2, 4), ("b", 5, 6)]


def test_round_frequencies_are_labelled_and_cepstra_have_none(tmp_path):
    task = task_of(tmp_path / "a")
    assert [label for _, label in ticks(task)] == ["250", "500", "1,000", "2,000", "4,000"]
    assert ticks(task)[1][0] == bin_of(500, RATE, 20) + 0.5
    assert ticks(task_of(tmp_path / "b", task={"features": "mfcc"})) == []
    assert {*UNITS} == {*BANKS} == {*FEATURE_NAMES}


def test_the_middle_of_a_bin_is_where_its_triangle_is_highest(tmp_path):
    task = task_of(tmp_path)
    time = np.arange(RATE) / RATE
    for pitch in (400.0, 1500.0, 2600.0):
        tone = np.sin(2 * np.pi * pitch * time).astype(np.float32)
        loudest = int(task.extract.unnormalised(tone)[40].argmax())
        assert loudest == pytest.approx(bin_of(pitch, RATE, 20), abs=0.6)


def test_a_picture_is_refused_before_anything_is_read(tmp_path):
    predictor = JOBS["transcribe"].predictor(task_of(tmp_path))
    with pytest.raises(GlassformerError, match=r"a picture must end in \.png"):
        predictor.configured(picture="heard.gif")
