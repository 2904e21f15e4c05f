"""What a decoder writes token by token from a source goes through the engine."""

import threading

import numpy as np
import pytest
from small_served import recording, refusal, wait_until, wave_bytes
from small_translator import WORDS, sentences
from test_cancelled import send
from test_predictions import close

import glassformer

PATH, SPEECH = "/v1/translate", "/v1/audio/transcriptions"


def engine_of(server, name):
    return server.models.served[name].generator.engine


def assert_all_pages_are_free(engine):
    for pool in (engine.decoder.pool, engine.decoder.sources):
        assert pool.free_pages == pool.pages


@pytest.mark.parametrize("name", ["greedy", "drawn", "words"])
@pytest.mark.parametrize("options", [{}, {"forbidden": ["alt"], "scores": True}, {"align": True}])
def test_a_translation_is_that_of_predict(served, runs, name, options):
    texts = [*sentences(5, seed=4), "", "an unknown 猫 red"]
    engine = engine_of(served, name)
    before = engine._submitted
    found = served.post(PATH, {"model": name, "input": texts, **options}).json()["data"]
    assert engine._submitted - before == 6  # an empty text needs no model
    own = glassformer.load(runs[name], device="cpu").predict(texts, **options)
    for one, other in zip(found, own, strict=True):
        assert one.pop("index") == found.index(one)
        assert one.pop("note", "") == other.note
        assert close(one, other.as_values())
    assert_all_pages_are_free(engine)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("drawn", {"alternatives": 2}),
        ("drawn", {"prefix": "rot"}),
        ("words", {"alternatives": 3}),
        ("words", {"required": ["rot"], "prefix": "neu"}),
    ],
)
def test_a_search_is_that_of_predict(served, runs, name, options):
    engine, texts = engine_of(served, name), sentences(3, seed=4)
    before = engine._submitted
    found = served.post(PATH, {"model": name, "input": texts, **options}).json()["data"]
    assert engine._submitted == before + 3
    own = glassformer.load(runs[name], device="cpu").predict(texts, **options)
    for one, other in zip(found, own, strict=True):
        one.pop("index")
        assert close(one, other.as_values())
    assert_all_pages_are_free(engine)


@pytest.mark.parametrize("name", ["dictation", "speech"])
@pytest.mark.parametrize("form", ["json", "verbose_json"])
def test_a_transcription_is_that_of_predict(served, runs, tmp_path, name, form):
    engine, sound = engine_of(served, name), recording("bead")
    before = engine._submitted
    files, data = {"file": ("a.wav", sound)}, {"model": name, "response_format": form}
    found = served.post(SPEECH, files=files, data=data).json()
    assert engine._submitted == before + 1
    (tmp_path / "a.wav").write_bytes(sound)
    run = glassformer.load(runs[name], device="cpu")
    own = run.predict(tmp_path / "a.wav", align=form != "json")
    assert found["text"] == own.text != ""
    if form != "json":
        assert found["confidence"] == pytest.approx(own.confidence, abs=1e-5)
        assert own.explanation
        assert found["segments"][-1]["end"] == own.explanation[-1].end
        assert found["duration"] == pytest.approx(len(sound) / 2 / 8000, abs=0.02)
    assert_all_pages_are_free(engine)


def test_a_long_recording_is_written_piece_by_piece(served, runs):
    engine = engine_of(served, "dictation")
    before, longest = engine._submitted, served.models.served["dictation"].predictor.longest
    noise = np.random.default_rng(0).normal(scale=0.1, size=int(2.5 * longest * 8000))
    files, data = {"file": ("a.wav", wave_bytes(noise))}, {"model": "dictation"}
    assert served.post(SPEECH, files=files, data=data).status_code == 200
    assert engine._submitted - before >= 3
    assert_all_pages_are_free(engine)


def test_rules_that_allow_nothing_are_refused(served):
    found = served.post(PATH, {"model": "drawn", "input": "red", "forbidden": [*WORDS.values()]})
    assert refusal(found) == (422, "invalid_input")
    assert "allow no token; forbid less" in found.json()["error"]["message"]


def test_required_words_need_beams(served):
    wrong = served.post(PATH, {"model": "greedy", "input": "red", "required": ["rot"]})
    assert refusal(wrong) == (422, "invalid_input")
    assert "beam" in wrong.json()["error"]["message"]


@pytest.mark.parametrize("name", ["greedy", "words"])
def test_a_source_whose_client_goes_is_written_no_further(served, monkeypatch, name):
    engine, begun, go_on = engine_of(served, name), threading.Event(), threading.Event()
    own, steps = engine.step, 0

    def step():
        nonlocal steps
        steps += 1
        found = own()
        begun.set()
        go_on.wait(20)
        return found

    monkeypatch.setattr(engine, "step", step)
    connection = send(served, PATH, {"model": name, "input": sentences(9)})
    assert begun.wait(30)
    assert engine.scheduler.running
    connection.close()
    served.idle()
    go_on.set()
    wait_until(lambda: not served.worker._active)
    assert steps == 1
    assert not engine.busy
    assert not engine.searches.running
    assert_all_pages_are_free(engine)


def test_a_source_that_cannot_be_encoded_leaves_nothing(served, monkeypatch):
    engine, model = engine_of(served, "greedy"), served.models.served["greedy"].model

    def fails(*given):
        raise RuntimeError("at /secret/path")

    with monkeypatch.context() as patch:
        patch.setattr(model, "encode", fails)
        found = served.post(PATH, {"model": "greedy", "input": ["red", "old"]})
        assert found.status_code == 500
        assert "secret" not in found.text
    assert not engine.busy
    assert_all_pages_are_free(engine)
    assert served.post(PATH, {"model": "greedy", "input": "red"}).status_code == 200
