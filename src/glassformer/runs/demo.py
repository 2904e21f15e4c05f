"""The demo: four small models on embedded data, each within a time budget.

The runs lie side by side in one folder. One that was interrupted continues; a finished one is kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from glassformer.config.values import merge_values
from glassformer.data.audio.morse_decoder import decode
from glassformer.data.catalog.morse import RATE, clips
from glassformer.errors import GlassformerError, install
from glassformer.metrics.error_rates import character_error_rate
from glassformer.runs.display import Display
from glassformer.runs.folder import RunFolder
from glassformer.runs.recipes import Recipe, pursue, read_recipe
from glassformer.runs.run import Run
from glassformer.runs.timing import TooLittleTimeError

BUDGETS = {"languages": 90, "dates": 90, "python-reference": 140, "morse": 130}  # seconds
SLOWEST = (1, 2, 4, 8)  # times this budget
FEWER = {"languages": {"model": {"members": 2}}}  # four would end before they have learned
EXPLAINED = ("languages", "Donaudampfschifffahrt")
LIBRARIES = ("babel", "jiwer", "rapidfuzz", "sacrebleu", "sklearn", "soundfile")

Ends = Mapping[str, Any]  # value, low, high, and why there is no interval


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run of the demo, and its score on the test split beside that of a baseline."""

    run: Run
    what: str
    score: str
    ours: Ends
    baseline: str
    theirs: Ends


def refuse_missing_libraries() -> None:
    """Refuse to start what could not end."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise GlassformerError(
            f"the demo needs {' and '.join(missing)}, which {are} not installed; {install('demo')}"
        )


def train_demo(name: str, folder: Path, display: Display) -> Outcome:
    """Train a recipe within its time budget, or take up the run that is there.

    A machine that is too slow or too busy for a single step gets twice the time, up to `SLOWEST`.
    """
    recipe, target = read_recipe(name), folder / name
    display.say(f"{name}: {recipe.what}")
    if RunFolder(target).is_finished:
        display.say(f"{target}: already trained; remove it to train it again")
    for times in SLOWEST:
        budget = f"{times * BUDGETS[name]}s"
        try:
            return outcome(pursue(within(recipe, budget), display, target), recipe)
        except TooLittleTimeError:
            display.say(f"{name}: this machine is slow or busy, and {budget} are too little")
    raise GlassformerError(
        f"this machine is too slow or too busy to train {name} in {budget}; start the demo again "
        f"when less runs on it, or train with: glassformer reproduce {name}"
    )


def within(recipe: Recipe, time: str) -> Recipe:
    """A recipe whose stages have a time budget each, instead of their length."""
    fewer = FEWER.get(recipe.name, {})
    stages = (
        replace(stage, steps=None, epochs=None, time=time, values=merge_values(stage.values, fewer))
        for stage in recipe.stages
    )
    return replace(recipe, stages=tuple(stages))


def outcome(run: Run, recipe: Recipe) -> Outcome:
    """What a run of a recipe with a result has reached."""
    assert recipe.result is not None
    score = recipe.result.score
    (_, ours), (baseline, theirs) = list(run.report["scores"].items())[:2]
    if recipe.name == "morse":
        baseline, theirs = "adaptive threshold", {score: threshold_errors()}
    return Outcome(
        run, headline(recipe.what), score, ours[score], headline(baseline), theirs[score]
    )


def headline(text: str) -> str:
    """What stands before the details.

    >>> headline("Names of places (embedded), by characters")
    'Names of places'
    """
    return text.partition(",")[0].partition(" (")[0]


def threshold_errors() -> Ends:
    """Character errors of a decoder that learns nothing, on the test recordings of Morse code."""
    test = [clip for clip in clips() if clip.split == "test"]
    texts = [decode(clip.samples() / 2**15, RATE) for clip in test]
    found = character_error_rate(texts, [[clip.text] for clip in test]).score()
    return found.as_values()
