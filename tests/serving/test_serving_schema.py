"""Whatever the OpenAPI document allows, and much that it does not, is answered without a 5xx."""

from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from small_served import Served

BUSY = {"limits": {"seconds": 20.0, "tokens": 200}}
MODELS = {
    "/v1/classify": "reviews",
    "/v1/pretrain": "gaps",
    "/v1/embeddings": "gaps",
    "/v1/translate": "words",
    "/v1/audio/classify": "sounds",
    "/v1/audio/transcriptions": "speech",
}
GENERATED = {
    "deadline": None,
    "derandomize": True,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}


@pytest.fixture(scope="module")
def operations(runs):
    """All paths of a server with every kind of run."""
    with Served(runs.values(), **BUSY) as server:
        schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        yield [found.ok() for found in schema.get_all_operations()]


def try_all(operations, examples):
    """Requests to every path, those that the document allows and those that it does not."""
    for operation in operations:
        for mode in GenerationMode:
            strategy = operation.as_strategy(generation_mode=mode)
            with suppress(Unsatisfiable):  # nothing is wrong with a request without any fields
                settings(**GENERATED, max_examples=examples)(given(case=strategy)(answer))()


def answer(case):
    if isinstance(case.body, dict) and isinstance(case.body.get("model"), str):
        case.body["model"] = MODELS.get(case.path, "bottles")  # random names would be no models
    found = case.call(timeout=30)
    assert found.status_code < 500
    if found.status_code >= 400:
        assert found.json()["error"].keys() == {"message", "type", "param", "code"}


def test_no_request_makes_the_server_fail(operations):
    try_all(operations, 2)


@pytest.mark.full
def test_no_request_of_many_makes_the_server_fail(operations):
    try_all(operations, 200)
