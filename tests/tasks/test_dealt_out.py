"""Scores of rows that were dealt out to processes are those of all rows, for every job."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from small_images import write_images
from small_jobs import job_of
from small_recordings import SETTINGS, WORDS, record
from test_filled_batches import JOBS, TEXTS

from glassformer import processes
from glassformer.tasks import BUILT_IN
from glassformer.training.validation import in_shares

WRITER = {
    "model": {"decoder": {"dim": 12, "depth": 1, "attention": {"heads": 2}}},
    "task": {"max_length": 8},
}
RATINGS = [
    {"user": str(user), "item": str(item), "rating": (user * item) % 5}
    for user in range(7)
    for item in range(user % 3, 11)
]
EVERY = JOBS | {
    "texts": ("generate", [{"text": text} for text in TEXTS], WRITER),
    "recordings": ("transcribe", None, SETTINGS),
    "ratings": ("recommend", RATINGS, {"task": {"features": 3}}),
    "images": ("recognise", None, {}),
}


class TwoProcesses:
    """Stands for the collective calls of two processes: the first one's are kept for the second."""

    def __init__(self, monkeypatch):
        self.first, self.second = [], False
        monkeypatch.setattr(processes, "gathered", self.gathered)
        monkeypatch.setattr(processes, "gathered_rows", self.gathered_rows)

    def gathered(self, rows):
        return torch.cat([self.other(rows), rows])

    def gathered_rows(self, rows):
        return [*self.other(rows), *rows]

    def other(self, rows):
        if self.second:
            return self.first.pop(0)
        self.first.append(rows)
        return rows[:0]


def recorded(kind, folder):
    """Rows that name files: recordings with their words, or images with their labels."""
    if kind == "transcribe":
        return record(folder, WORDS)
    paths = sorted(write_images(folder, each=3).glob("*/*.png"))
    return [{"path": str(path), "label": path.parent.name} for path in paths]


@pytest.mark.parametrize("name", EVERY)
def test_rows_of_all_processes_count(name, tmp_path, monkeypatch):
    kind, rows, settings = EVERY[name]
    rows = rows or recorded(kind, tmp_path / "files")
    rows = [row | {"split": split} for split in ("train", "valid") for row in rows]
    job = job_of(kind, tmp_path / "job", rows, **settings)
    torch.manual_seed(0)
    model = job.model().eval()
    chosen = np.array_split(np.arange(len(job.lengths("valid"))), 4)
    batches = [job.batch("valid", some, None) for some in chosen]
    with torch.no_grad():
        whole = job.score(model, batches)
        two = TwoProcesses(monkeypatch)
        job.score(model, batches[::2])
        two.second = True
        assert job.score(model, batches[1::2]) == pytest.approx(whole, rel=1e-5)
    assert not two.first


def test_every_job_is_tried():
    assert {kind for kind, *_ in EVERY.values()} == {*BUILT_IN}


def test_a_score_of_ones_own_rows_alone_is_refused():
    with pytest.raises(RuntimeError, match="must gather"), processes.dealt_out():
        pass


@pytest.mark.parametrize(
    ("batches", "shares"),
    [
        ([1, 2, 3, 4, 5], [[1, 3, 5], [2, 4]]),
        ([1], [[1], [1]]),  # fewer than processes: both score all
    ],
)
def test_batches_are_dealt_out_and_none_is_left(batches, shares, monkeypatch):
    monkeypatch.setattr(processes, "is_joined", lambda: True)
    monkeypatch.setattr(processes, "world_size", lambda: 2)
    monkeypatch.setattr(processes, "dealt_out", nullcontext)
    rows = [np.array([number]) for number in batches]
    with in_shares(rows, torch.nn.Linear(1, 1)) as found:
        assert [[int(one[0]) for one in share] for share in found] == shares
