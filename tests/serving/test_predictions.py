"""Predictions over HTTP are those of `predict`, whatever else is asked at the same time."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from small_served import Served, recording, refusal
from small_translator import sentences

import glassformer

TEXTS = ["the film was great", "dull and weak", "superb", "", "awful 鳥 film"]


def close(found, expected):
    """Whether two answers are the same, up to the rounding of another batch."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(close(found[k], expected[k]) for k in found)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, float):
        return found == pytest.approx(expected, abs=1e-5)
    return found == expected


def test_classifications_are_those_of_predict(served, runs):
    found = served.post("/v1/classify", {"model": "reviews", "input": TEXTS}).json()["data"]
    own = glassformer.load(runs["reviews"], device="cpu").predict(TEXTS)
    assert [one.pop("index") for one in found] == [*range(5)]
    assert all(
        one.pop("note", "") == other.note and close(one, other.as_values())
        for one, other in zip(found, own, strict=True)
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [("reviews", "鳥 雪"), ("words", "鳥 雪"), ("gaps", "鳥 <mask> 雪"), ("bottles", "鳥雪")],
)
def test_where_nothing_was_seen_in_training_there_is_one_answer_none(served, runs, name, text):
    run = glassformer.load(runs[name], device="cpu")
    found = run.predict(text)
    assert (found.text, found.confidence, found.unknown) == (None, 0.0, True)
    assert found.reason.startswith("no ")
    assert found.reason.endswith("of this text was seen in training")
    assert repr(found).startswith(f"Prediction(None, {found.reason}; guess: ")
    assert f"<b>No answer:</b> {found.reason}.<details>" in found._repr_html_().replace("<p>", "")
    values = found.as_values()
    assert values["guess"] == found.guess.as_values()
    path = {"reviews": "classify", "words": "translate", "gaps": "pretrain"}.get(name)
    if path:  # others are continued over the protocol of OpenAI, which has no such answer
        [sent] = served.post(f"/v1/{path}", {"model": name, "input": text}).json()["data"]
        assert (sent["prediction"], sent["reason"]) == (None, found.reason)
        assert sent["guess"]["prediction"] == found.guess.text
    why = run.explain(text, measure=False)
    for shown in (why.as_values(), why.as_packed()):
        assert (shown["prediction"], shown["reason"]) == (None, found.reason)
        marked = "".join(shown["pieces"][place] for place in shown["unknown"])
        assert marked.replace(" ", "") == "鳥雪"
    assert f"No answer: {found.reason}." in str(why)
    assert found.reason in repr(why)
    names = {token for one in why.attention for token in (*one.queries, *one.keys)}
    assert "<unknown>" not in names


def test_a_translation_takes_the_options_of_the_job(served, runs):
    run, [text] = glassformer.load(runs["words"], device="cpu"), sentences(1, seed=9)
    for options in (
        {},
        {"alternatives": 3, "scores": True},
        {"prefix": "rot", "forbidden": ["alt"]},
        {"required": ["neu"]},
        {"align": True},
    ):
        values = {"model": "words", "input": text, **options}
        [found] = served.post("/v1/translate", values).json()["data"]
        assert found.pop("index") == 0
        assert close(found, run.predict(text, **options).as_values())


def test_gaps_are_filled_and_what_has_none_is_refused(served):
    found = served.post("/v1/pretrain", {"model": "gaps", "input": "the <mask> was"})
    assert found.json()["data"][0]["prediction"].startswith("the ")
    wrong = served.post("/v1/pretrain", {"model": "gaps", "input": ["the <mask> was", "none"]})
    assert refusal(wrong) == (422, "invalid_input")
    assert "has no gap to fill" in wrong.json()["error"]["message"]


def test_recordings_are_classified(served, runs):
    files = {"file": ("a", recording("ace"))}
    found = served.post("/v1/audio/classify", files=files, data={"model": "sounds"}).json()
    assert found["data"][0]["prediction"] in ("ace", "bead")
    assert close(sum(found["data"][0]["probabilities"].values()), 1.0)


def test_requests_that_come_together_are_one_batch(runs):
    asked = [{"model": "reviews", "input": f"the film was {word}"} for word in "abcdefgh"]
    with Served([runs["reviews"]], batching={"wait": 20.0, "most": len(asked)}) as server:
        sizes, batcher = [], next(iter(server.models)).predictions
        batcher.observe, batcher.expected = sizes.append, len(asked)
        with ThreadPoolExecutor(len(asked)) as pool:
            found = list(pool.map(lambda one: server.post("/v1/classify", one), asked))
        assert sizes == [len(asked)]
        batcher.expected = 1
        alone = [server.post("/v1/classify", one) for one in asked[:2]]
        assert sizes == [len(asked), 1, 1]
    assert all(close(one.json(), found[n].json()) for n, one in enumerate(alone))


def test_one_that_is_wrong_does_not_spoil_the_batch(runs):
    texts = ["the <mask> was", "no gap", "<mask> film"]
    with Served([runs["gaps"]], batching={"wait": 20.0, "most": 3}) as server:
        next(iter(server.models)).predictions.expected = 3

        def ask(text):
            return server.post("/v1/pretrain", {"model": "gaps", "input": text})

        with ThreadPoolExecutor(3) as pool:
            statuses = [one.status_code for one in pool.map(ask, texts)]
        assert statuses == [200, 422, 200]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"model": "words", "input": "red", "alternatives": 17},
            "alternatives: must be at most 16",
        ),
        (
            {"model": "words", "input": "red", "picture": "a.png"},
            "picture: unknown field; /docs lists",
        ),
        ({"model": "words", "input": "red", "set": ["decode.best=9"]}, "set: unknown field"),
        ({"model": "words", "input": "red", "required": [""]}, "the model cannot write ''"),
        ({"model": "words", "input": []}, "input has 0 texts; send 1 to 256"),
        ({"model": "words", "input": ["a"] * 257}, "input has 257 texts"),
        ({"model": "words"}, "input: this field is missing"),
        ({"model": "words", "input": 3}, "input: must be a text or a list"),
        ({"model": "words", "input": [3]}, "input.0: must be a text"),
        ({"model": "reviews", "input": "a"}, "reviews does not answer /v1/translate"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(served, values, says):
    found = served.post("/v1/translate", values)
    assert refusal(found)[0] == 422
    assert says in found.json()["error"]["message"]


def test_a_path_that_a_client_names_is_never_opened(served, tmp_path):
    secret = tmp_path / "secret.wav"
    secret.write_bytes(recording("ace"))
    for sent in (
        {"data": {"model": "sounds", "file": str(secret)}},
        {"json": {"model": "sounds", "input": str(secret)}},
        {"data": {"model": "../sounds"}, "files": {"file": ("a", recording("ace"))}},
        {"data": {"model": "sounds"}, "files": {"file": (str(secret), b"RIFF")}},
    ):
        found = served.post("/v1/audio/classify", **sent)
        assert found.status_code in (404, 422)
        assert str(tmp_path) not in found.text
        assert "glassformer-" not in found.text  # where uploads are put
