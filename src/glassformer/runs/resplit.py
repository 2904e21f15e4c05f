"""The same run over the same samples in other splits, in a folder of its own."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from glassformer.data.samples import Samples
from glassformer.runs.folder import RunFolder


def resplit(
    folder: RunFolder, path: Path, splits: UInt8[np.ndarray, " samples"], steps: int
) -> RunFolder:
    """An untrained copy of a run, with these splits and so many steps; its samples are links.

    It has no n-grams: those of the run itself stay what they are.
    """
    copy = RunFolder(path, own_model=folder.own_model)
    learned = (folder.model, folder.metrics, folder.report)
    for file in folder.path.iterdir():
        if file.is_file() and file not in learned:
            shutil.copyfile(file, path / file.name)
    copy.data.mkdir()
    there = copy.data.resolve()
    for file in folder.data.resolve().iterdir():
        if file.name != "parts.npy":
            os.symlink(os.path.relpath(file, there), there / file.name)
    Samples.assign(copy.data, splits)
    config = folder.config()
    copy.write_config(
        replace(
            config,
            model=replace(config.model, ngrams="no"),
            train=replace(config.train, steps=steps),
        )
    )
    return copy
