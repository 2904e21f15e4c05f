"""A second training on all labelled rows, once the validation rows have nothing left to decide.

Validation rows choose the step that is kept, the calibration and the weight of n-grams. After that,
the model is trained again from the start on the training and validation rows together, for as many
epochs as the weights that were used. Its scores come from the test rows, which neither training
sees.
"""

import math
import os
import shutil
from dataclasses import replace

from glassformer import processes
from glassformer.data.samples import SPLITS, Samples
from glassformer.runs.display import Display
from glassformer.runs.fit import FitResult, fit
from glassformer.runs.folder import RunFolder
from glassformer.runs.new_folder import under_temporary_name
from glassformer.runs.prepare import Prepared
from glassformer.runs.resplit import resplit

TRAIN, VALID = SPLITS.index("train"), SPLITS.index("valid")


def refit(result: FitResult, folder: RunFolder, display: Display) -> FitResult:
    """The same run with a model that has learned from its validation rows, too."""
    lengths = {split: len(result.task.lengths(split)) for split in SPLITS}
    if not (lengths["valid"] and lengths["test"]):
        missing = "test" if lengths["valid"] else "validation"
        display.say(f"not trained again on all rows: there are no {missing} rows")
        return result
    path = folder.path / "refit"
    if processes.is_first() and not path.exists():
        create(result, folder)
    processes.wait()
    again = RunFolder(path, own_model=folder.own_model)
    rows = lengths["train"] + lengths["valid"]
    display.say(f"training again on all {rows:,} rows of the training and validation splits")
    found = fit(Prepared.open(again), display)
    if processes.is_first():
        os.replace(again.model, folder.model)
        shutil.rmtree(path)
    processes.wait()
    return replace(result, model=found.model, refitted=found.steps)


def create(result: FitResult, folder: RunFolder) -> None:
    """Create the folder of the second training."""
    samples = Samples.open(folder.data)
    splits = samples.splits.copy()
    splits[splits == VALID] = TRAIN
    share = (splits == TRAIN).sum() / len(samples.rows("train"))
    steps = math.ceil(max(result.kept) * share)
    with under_temporary_name(folder.path / "refit") as path:
        copy = resplit(folder, path, splits, steps)
        config = copy.config()
        train = replace(config.train, validate_every=None, patience=None, average=1)
        copy.write_config(replace(config, train=train))
