"""Run folders written by an earlier version load and give the answers they gave then."""

import json
import shutil
from pathlib import Path

import pytest

import glassformer as gf

FIXTURES = Path(__file__).parents[1] / "fixtures"
ANSWERS = json.loads((FIXTURES / "runs" / "answers.json").read_text(encoding="utf-8"))


def numbers_in(value):
    """Every number in a nested answer, in order."""
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in numbers_in(value[key])]
    if isinstance(value, list):
        return [number for item in value for number in numbers_in(item)]
    return [value] if isinstance(value, int | float) else []


@pytest.mark.parametrize("name", ANSWERS)
def test_a_run_of_an_earlier_version_gives_the_answers_it_gave_then(name, tmp_path, monkeypatch):
    shutil.copytree(FIXTURES / "runs" / name, tmp_path / name)
    monkeypatch.chdir(FIXTURES / "inputs")
    run = gf.load(tmp_path / name)
    settings = {"decode.method": "greedy", "decode.max_length": 20} if name == "generate" else {}
    for answer in ANSWERS[name]:
        prediction = run.predict(answer["input"], **({"set": settings} if settings else {}))
        assert prediction.text == answer["text"]
        for key, value in answer["details"].items():
            now = prediction.details[key]
            assert numbers_in(now) == pytest.approx(numbers_in(value), rel=1e-3, abs=1e-4)
