"""Where all rows have a time, the last ones of every stratum are held out."""

from dataclasses import dataclass

import numpy as np

from glassformer.config import DataConfig
from glassformer.data.rows import Row
from glassformer.data.schema import Schema
from glassformer.data.splits import last_first
from glassformer.data.splitter import IngestReport, Splitter


@dataclass
class Watched(Schema):
    roles = ()

    def content(self, sample, config):
        return sample["film"]

    def stratum(self, sample):
        return sample["user"]

    def time(self, sample):
        return sample.get("time")


def split(samples, **config):
    splitter, report = Splitter(DataConfig(**config), Watched(), 0), IngestReport()
    chosen = [
        splitter.split_for("train", Row({}, "x", 1), {}, sample, report) for sample in samples
    ]
    numbers = np.array([("train", "valid", "test").index(one) for one in chosen], dtype=np.uint8)
    return splitter.final_splits(numbers, report)[0].tolist()


def watched(times):
    return [{"user": u, "film": f"{u}{t}", "time": float(t)} for u in "ab" for t in times]


def test_the_last_rows_of_each_user_are_tested_on_and_those_before_them_validated():
    samples = watched([3, 9, 1, 7, 5, 4, 2, 8, 6, 0])
    found = split(samples, valid_share=0.2, test_share=0.1)
    assert [one["time"] for one, s in zip(samples, found, strict=True) if s == 2] == [9, 9]
    held = sorted(one["time"] for one, s in zip(samples, found, strict=True) if s == 1)
    assert held == [7, 7, 8, 8]


def test_a_given_split_leaves_the_last_rows_to_the_other():
    samples = watched(range(10))
    splitter = Splitter(DataConfig(test=("t.csv",)), Watched(), 0)
    for sample in samples:
        splitter.split_for("train", Row({}, "x", 1), {}, sample, IngestReport())
    found, _ = splitter.final_splits(np.zeros(20, dtype=np.uint8), IngestReport())
    assert np.flatnonzero(found == 1).tolist() == [9, 19]
    assert not (found == 2).any()


def test_without_a_time_in_every_row_or_without_strata_the_hash_decides():
    samples = watched(range(10))
    by_time = split(samples)
    assert split(samples, stratify=False) != by_time
    del samples[0]["time"]
    assert split(samples) != by_time


def test_what_happened_last_comes_first_and_equal_contents_count_as_their_last():
    contents = np.array([7, 5, 7, 9], dtype=np.uint64)
    assert last_first(contents, np.array([1.0, 2.0, 3.0, 2.0])).tolist() == [0, 1, 0, 2]
