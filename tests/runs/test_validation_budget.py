"""Validation takes at most a tenth of the time: on a sample of the rows, or less often."""

import json
from unittest.mock import Mock

import numpy as np
import pytest
from quick import quickly
from small_runs import learn, write_reviews

from glassformer.config import DataConfig, ModelConfig, StackConfig, TrainConfig
from glassformer.config.run import Config
from glassformer.runs.prepare import resolve_validation, validation_line
from glassformer.tasks.job import JobTask
from glassformer.training.loader import sample_rows


def resolved(valid_rows, *, work=6.0, **train):
    """Rows, interval and line for 1,000 steps of 1,000 tokens and rows of ten."""
    lengths = {"train": np.full(10_000, 10), "valid": np.full(valid_rows, 10)}
    task = Mock(spec=JobTask, lengths=lengths.__getitem__, scoring_work=work)
    config = Config(
        job="any",
        task=None,
        model=ModelConfig(encoder=StackConfig(dim=12)),
        train=TrainConfig(**{"steps": 1000} | train),
        data=DataConfig(batch_tokens=1000),
    )
    found = resolve_validation(config, task)
    return found.train.validate_rows, found.train.validate_every, validation_line(found, task)


@pytest.mark.parametrize(
    ("rows", "options", "sampled", "every"),
    [
        (160, {}, None, None),  # ten times 160 * 10 * 6 tokens are less than a tenth of 1,000,000
        (15_000, {"work": 1 / 3}, 3000, None),
        (15_000, {"work": 2.0}, 500, None),
        (15_000, {}, 200, 125),  # fewer rows would tell little: eight times then
        (15_000, {"work": 60.0}, 200, 500),
        (15_000, {"steps": 100_000}, None, None),
        (15_000, {"validate_every": 50}, None, 50),  # a person's choice
        (15_000, {"validate_rows": 400}, 400, 250),
        (0, {}, None, None),
    ],
)
def test_validation_is_given_a_tenth_of_the_time(rows, options, sampled, every):
    found_rows, found_every, line = resolved(rows, **options)
    assert (found_rows, found_every) == (sampled, every)
    if sampled is None:
        assert line is None
    else:
        assert line.startswith(f"validating on a sample of {sampled:,} of {rows:,} rows")


def test_a_sample_is_the_same_every_time_and_from_everywhere():
    rows = sample_rows(10_000, 100)
    assert len(set(rows.tolist())) == 100
    assert np.array_equal(rows, sample_rows(10_000, 100))
    assert np.array_equal(rows, np.sort(rows))
    assert 4000 < rows.mean() < 6000
    assert sample_rows(5, 100).tolist() == sample_rows(5, None).tolist() == [0, 1, 2, 3, 4]


def test_the_report_counts_the_rows_that_were_sampled(tmp_path):
    with quickly():
        learn(write_reviews(tmp_path / "x.csv"), tmp_path / "run", "train.validate_rows=3")
    notes = json.loads((tmp_path / "run" / "report.json").read_text())["notes"]
    assert "Only 3 validation rows selected the model, so the choice is noisy." in notes
