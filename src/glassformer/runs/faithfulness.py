"""How faithful the methods of explanation are on the rows of a run, measured once and kept."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from torch import nn

from glassformer.config.values import fitting
from glassformer.errors import GlassformerError
from glassformer.explaining.faithfulness import Faithfulness, measure
from glassformer.explaining.subject import Subject
from glassformer.files import checksum, write_json
from glassformer.runs.checksums import is_as_written, known_checksums, renew_checksum
from glassformer.runs.display import Done
from glassformer.runs.folder import RunFolder, malformed, read_json
from glassformer.runs.rows import OpenedRows
from glassformer.tasks.explainer import Explainer
from glassformer.tasks.predictor import Predictor

FILE = "faithfulness.json"
ROWS = 128  # when it is asked for
QUICK_ROWS, QUICK_SECONDS = 64, 10.0  # before a first explanation


def measured_on(
    opened: OpenedRows,
    model: nn.Module,
    explainer: Explainer[Any, Any],
    predictor: Predictor[Any, Any],
    progress: Done,
    **limits: Any,
) -> Faithfulness:
    """The faithfulness of all methods on some rows."""
    result = None
    total = min(limits["rows"], len(opened.samples.rows(opened.split)))
    for count, found in measure(_subjects(opened, model, explainer, predictor), **limits):
        progress(count, total)
        result = found
    if result is None:
        raise GlassformerError(
            "no row has two words or more, so faithfulness cannot be measured; give other rows"
        )
    return result


def _subjects(
    opened: OpenedRows,
    model: nn.Module,
    explainer: Explainer[Any, Any],
    predictor: Predictor[Any, Any],
) -> Iterator[Subject]:
    """What is explained of the rows."""
    for given in inputs_in(opened, explainer, predictor):
        try:
            subject = explainer.subject(model, given)
        except GlassformerError:  # such as a recording without words
            continue
        yield subject


def inputs_in(
    opened: OpenedRows, explainer: Explainer[Any, Any], predictor: Predictor[Any, Any]
) -> Iterator[Any]:
    """The inputs of rows, in random order; those that nothing can be explained of are left out."""
    numbers = opened.samples.rows(opened.split)
    for row in np.random.default_rng(0).permutation(numbers).tolist():
        try:
            given = explainer.example(predictor.from_sample(opened.samples[row]))
        except GlassformerError:  # such as a text of a single word, which can have no gap
            continue
        yield given


def keep(folder: RunFolder, found: Faithfulness) -> bool:
    """Store what was measured in the run folder; whether that was possible."""
    try:
        write_json({"model": model_checksum(folder), **asdict(found)}, folder.path / FILE)
        renew_checksum(folder.path, FILE)
    except OSError:  # a folder that only others may write
        return False
    return True


def kept(folder: RunFolder) -> Faithfulness | None:
    """What was measured of the present model, if anything."""
    path = folder.path / FILE
    values = read_json(path)
    if values.pop("model", None) != model_checksum(folder):
        return None
    if not is_as_written(folder.path, FILE):
        raise GlassformerError(
            f"{path}: changed since the run wrote it; remove it, or measure again with "
            f"--faithfulness"
        )
    try:
        return fitting(Faithfulness, values, "it")
    except GlassformerError as error:
        raise malformed(path, error) from None


def model_checksum(folder: RunFolder) -> str:
    """What tells one model from another."""
    return known_checksums(folder.path).get(folder.model.name) or checksum(folder.model)
