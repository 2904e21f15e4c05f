"""Bytes of a run that changed by chance: refused where that can be known, never a crash."""

import json
import math
import random
import shutil
from dataclasses import asdict

import pytest
from quick import quickly
from small_runs import learn, write_reviews

import glassformer
from glassformer.errors import GlassformerError
from glassformer.files import write_json
from glassformer.runs import api
from glassformer.runs.forecast import Forecast
from glassformer.runs.listing import list_runs_in

USED = ("config.toml", "intake.json", "labels.json", "model.safetensors", "tokenizer.json")
HEADER = 160  # bytes at the beginning of a file, which say what the others are


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    with quickly():
        learn(write_reviews(folder / "x.csv", 31), folder / "run")
    return folder / "run"


def harmed(content, dice):
    """The content with one byte changed, every other time among the first."""
    changed = bytearray(content)
    among = min(len(content), HEADER) if dice.random() < 0.5 else len(content)
    changed[dice.randrange(among)] ^= 1 << dice.randrange(8)
    return bytes(changed)


def outcome(action):
    """What an action gives, or the line it is refused with; anything else is a crash."""
    done, refused = None, ""
    try:
        done = action()
    except GlassformerError as error:
        refused = str(error)
    assert "\n" not in refused
    return done, refused


@pytest.mark.parametrize("name", USED)
def test_no_changed_byte_is_used_or_crashes_a_prediction(name, finished, tmp_path):
    dice, run = random.Random(name), tmp_path / "run"
    shutil.copytree(finished, run)
    whole = (run / name).read_bytes()

    def say():
        return glassformer.load(run).predict("a great film")

    for _ in range(7):
        (run / name).write_bytes(harmed(whole, dice))
        shutil.copy(finished / "checksums.json", run)
        said, refused = outcome(say)
        assert refused, said
        (run / "checksums.json").unlink()  # as in a run of an older version
        said, refused = outcome(say)
        assert refused or math.isfinite(said.confidence)


@pytest.mark.parametrize("name", ["labels", "parts", "samples", "tokens"])
def test_no_changed_byte_of_the_index_is_learned_from_or_crashes(name, finished, tmp_path):
    dice = random.Random(name)
    for number in range(3):
        run = tmp_path / str(number)
        shutil.copytree(finished, run)
        for made in ("report.json", "model.safetensors"):
            (run / made).unlink()
        shutil.rmtree(run / "checkpoints")
        path = dice.choice(sorted((run / "data").glob(f"{name}*.npy")))
        path.write_bytes(harmed(path.read_bytes(), dice))

        def go_on(run=run):
            with quickly():
                return api.resume(run, quiet=True)

        assert f"{path}: changed since the run wrote it" in outcome(go_on)[1]
        (run / "checksums.json").unlink()
        done, refused = outcome(go_on)
        assert refused or json.loads((done.folder.path / "report.json").read_text())["scores"]


ODD = [None, True, -1, 1e308, math.nan, "x", "\ud800", [], [[1]], {}, {"a": 1}, 10**30]
PREDICTED = Forecast(after=2, steps=3, seconds=1.5, took_seconds=2.0, bytes=None, took_bytes=None)
KEPT = ("intake.json", "labels.json", "prediction.json", "report.json", "tokenizer.json")


def places(value, way=()):
    """The way to every value in nested ones; of a long list, to the first."""
    yield way
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value[:3])
        for key, inner in inside:
            yield from places(inner, (*way, key))


def with_an_odd_value(path, dice):
    """Put something of another kind in the place of some value of a JSON file."""
    values = {"all": json.loads(path.read_text())}
    *way, last = dice.choice([("all", *way) for way in places(values["all"])])
    inner = values
    for key in way:
        inner = inner[key]
    inner[last] = dice.choice(ODD)
    path.write_text(json.dumps(values["all"]))


@pytest.mark.parametrize("name", KEPT)
def test_json_that_a_stranger_wrote_is_refused_or_does_no_harm(name, finished, tmp_path):
    dice, data = random.Random(name), write_reviews(tmp_path / "x.csv", 7)
    for number in range(4):
        run = tmp_path / "runs" / str(number)
        shutil.copytree(finished, run)
        (run / "checksums.json").unlink()
        write_json(asdict(PREDICTED), run / "prediction.json")
        with_an_odd_value(run / name, dice)
        outcome(lambda run=run: repr(glassformer.load(run)))
        outcome(lambda run=run: glassformer.load(run).evaluate(data))
    assert len(list_runs_in(tmp_path / "runs")) == 4
    (run / "report.json").unlink()
    with quickly():
        outcome(lambda: api.resume(run, quiet=True))
