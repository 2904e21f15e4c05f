"""A second training on all labelled rows, once the validation rows have nothing left to decide.

Validation rows choose the step that is kept, the calibration and the weight of n-grams. After that,
the model is trained again from the start on the training and validation rows together, for as many
epochs as the weights that were used. Its scores come from the test rows, which neither training
sees.
"""

import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace

from glassformer import processes
from glassformer.data.samples import SPLITS, Samples
from glassformer.runs.display import Display
from glassformer.runs.fit import FitResult, fit
from glassformer.runs.folder import RunFolder
from glassformer.runs.new_folder import under_temporary_name
from glassformer.runs.prepare import Prepared
from glassformer.runs.resplit import resplit
from glassformer.runs.timing import Budget, without_refit

FITS = 0.9  # of its estimated time must be left: the clock shortens it a little
TRAIN, VALID = SPLITS.index("train"), SPLITS.index("valid")


def refit(
    result: FitResult, folder: RunFolder, display: Display, budget: Budget | None = None
) -> FitResult:
    """Train a finished run again, on its training and validation rows together.

    Args:
        budget: Where this does not fit into it, the model stays as it is.
    """
    budget = budget or Budget()
    lengths = {split: len(result.task.lengths(split)) for split in SPLITS}
    if not (lengths["valid"] and lengths["test"]):
        missing = "test" if lengths["valid"] else "validation"
        display.say(f"not trained again on all rows: there are no {missing} rows")
        return result
    path = folder.path / "refit"
    if processes.broadcast("" if result.task.needs_network else "alone"):
        display.say("no second training on all rows: n-grams alone make the predictions")
        return result
    steps = steps_again(result, lengths)
    seconds = FITS * steps * result.seconds / max(1, result.steps)
    why = "" if path.exists() else budget.left_out("no second training on all rows", seconds)
    if why := processes.broadcast(why):
        display.say(why)
        return without_second(result, folder)
    if processes.is_first() and not path.exists():
        create(result, folder, steps)
    processes.wait()
    again = RunFolder(path, own_model=folder.own_model)
    rows = lengths["train"] + lengths["valid"]
    display.say(f"training again on all {rows:,} rows of the training and validation splits")
    found = fit(Prepared.open(again), display, budget, 1.0)
    if processes.is_first():
        os.replace(again.model, folder.model)
        shutil.copyfile(again.metrics, folder.second_metrics)
        shutil.rmtree(path)
    processes.wait()
    return replace(result, model=found.model, refitted=found)


def steps_again(result: FitResult, lengths: Mapping[str, int]) -> int:
    """The steps of as many epochs over all rows as the kept weights have seen of some."""
    share = (lengths["train"] + lengths["valid"]) / lengths["train"]
    return math.ceil(max(result.kept) * share)


def without_second(result: FitResult, folder: RunFolder) -> FitResult:
    """Write down that there is no second training, so that all learn and report the same."""
    config = without_refit(result.config)
    if processes.is_first():
        folder.write_config(config)
    result.task.config = config
    return replace(result, config=config)


def create(result: FitResult, folder: RunFolder, steps: int) -> None:
    """Create the folder of the second training."""
    splits = Samples.open(folder.data).splits.copy()
    splits[splits == VALID] = TRAIN
    with under_temporary_name(folder.path / "refit") as path:
        copy = resplit(folder, path, splits, steps)
        config = copy.config()
        train = replace(config.train, validate_every=None, patience=None, average=1)
        copy.write_config(replace(config, train=train))
