"""A request that fits is answered without the framework, as the framework would answer it."""

import re

import pytest
from small_served import refusal
from starlette.responses import PlainTextResponse

BODY = b'{"model": "reviews", "input": "a lovely film"}'


def sent_as(served, kind, content=BODY):
    return served.post("/v1/classify", content=content, headers={"content-type": kind})


@pytest.fixture
def framework(served, monkeypatch):
    """Something else in the place of FastAPI."""
    monkeypatch.setattr(served.gate.app, "app", PlainTextResponse("asked", 418))


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
def test_json_that_fits_needs_no_framework(served, framework, kind):
    assert sent_as(served, kind).json()["data"][0]["label"] == "good"


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("text/plain", BODY),
        ("application/x+json", BODY),
        ("application/json", BODY[:-1]),
        ("application/json", b'{"model": "reviews", "input": "a", "other": 1}'),
        ("application/json", b'{"model": "reviews", "input": "\\ud800"}'),
    ],
)
def test_whatever_else_comes_is_left_to_the_framework(served, framework, kind, content):
    assert sent_as(served, kind, content).status_code == 418


def test_both_ways_have_the_same_answer_and_are_counted_alike(served):
    def count():
        lines = re.findall(r'requests_total\{path="(.+)",status="200"\} (\S+)', metrics())
        return float(dict(lines).get("/v1/classify", 0.0))

    def metrics():
        return served.get("/metrics").text

    before = count()
    direct, other = sent_as(served, "application/json"), sent_as(served, "application/x+json")
    assert direct.content == other.content
    assert direct.headers == other.headers
    assert count() == before + 2


def test_a_wrong_body_in_pieces_is_explained(served):
    pieces = (bytes([one]) for one in b'{"model": "reviews", "input": 5}')
    found = sent_as(served, "application/json", pieces)
    assert refusal(found) == (422, "invalid_value")
    assert found.json()["error"]["param"].startswith("input")


def test_a_right_body_in_pieces_is_answered(served, framework):
    found = sent_as(served, "application/json", (bytes([one]) for one in BODY))
    assert found.json()["data"][0]["label"] == "good"
