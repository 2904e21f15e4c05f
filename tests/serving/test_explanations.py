"""Explanations over HTTP are those of a run's `explain`."""

import numpy as np
import pytest
from small_served import recording, refusal, wave_bytes
from test_predictions import close

import glassformer


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("reviews", "the film was great", {}),
        ("reviews", "the film was great", {"method": "occlusion", "target": "bad"}),
        ("words", "red old new", {"unit": "word"}),
        ("bottles", "3 green", {}),
    ],
)
def test_an_explanation_is_that_of_the_run(served, runs, name, text, options):
    found = served.post("/v1/explain", {"model": name, "input": text, **options}).json()
    run = glassformer.load(runs[name], device="cpu")
    own = run.explain(text, keep=False, **options).as_values()
    assert not (runs[name] / "faithfulness.json").exists()  # a server writes nothing
    assert found.pop("object") == "explanation"
    assert found.pop("model") == name
    assert close(found, own)


def test_predictions_for_recordings_are_explained(served):
    files, data = {"file": ("a.wav", recording("ace"))}, {"model": "speech"}
    found = served.post("/v1/audio/explain", files=files, data=data)
    assert found.status_code == 200
    assert found.json()["pieces"]
    assert "/tmp" not in found.text


def test_what_cannot_be_explained_is_refused(served):
    path = "/v1/explain"
    for name, more, says in [
        ("gaps", {}, "has no gap to fill"),
        ("speech", {}, "ask it at /v1/audio/transcriptions or /v1/audio/explain"),
        ("reviews", {"method": "guessing"}, "unknown method 'guessing'"),
        ("reviews", {"target": "neither"}, "neither"),
        ("reviews", {"input": "film " * 600}, "more than 512; send less"),
    ]:
        found = served.post(path, {"model": name, "input": "a film", **more})
        assert refusal(found)[0] == 422
        assert says in found.json()["error"]["message"]


def test_a_long_recording_is_not_explained(served):
    sound = wave_bytes(np.zeros(31 * 8000, dtype=np.float32))
    files, data = {"file": ("a.wav", sound)}, {"model": "speech"}
    found = served.post("/v1/audio/explain", files=files, data=data)
    assert refusal(found) == (422, "audio_too_long")
