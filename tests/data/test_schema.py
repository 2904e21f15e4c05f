"""Data that are no text: a layout, a content and samples of a job's own, for ingest and doctor."""

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from glassformer.config import DataConfig
from glassformer.data.columns import Role
from glassformer.data.doctor import examination
from glassformer.data.doctor.check import Check
from glassformer.data.doctor.default_checks import default_checks
from glassformer.data.doctor.examination import examine, examine_samples
from glassformer.data.doctor.reading import Reading
from glassformer.data.ingest import ingest
from glassformer.data.rows import Row
from glassformer.data.schema import Schema

LENGTHS = (7, 11, 13)


class Waves(Schema):
    """A folder of files of samples of sound, each named after the word that is said in it."""

    roles = (
        Role(name="wave", names=("wave",), several=True),
        Role(name="word", names=("word",), answer=True),
    )

    def open(self, name, config):
        return self._read(Path(name)) if Path(name).is_dir() else None

    def _read(self, folder):
        for number, path in enumerate(sorted(folder.glob("*.npy")), start=1):
            word = path.stem.split("-")[0].strip("_")
            yield Row({"wave": np.load(path), "word": word}, str(folder), number)

    def content(self, sample, config):
        return sha256(np.asarray(sample["wave"], dtype=np.float32).tobytes()).hexdigest()


def write(folder, count=40):
    """Noise of several lengths, as many as this."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        wave = rng.random(LENGTHS[number % 3], dtype=np.float32)
        np.save(folder / f"{('yes', 'no')[number % 2]}-{number:02}.npy", wave)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "waves")


def test_samples_hold_arrays_as_numbers_of_full_precision(folder, tmp_path):
    samples, report = ingest(DataConfig(files=(str(folder),)), Waves(), tmp_path / "out")
    assert report.columns == {"wave": "wave", "word": "word"}
    first = np.load(sorted(folder.iterdir())[0])
    assert samples[0]["word"] == "no"
    assert np.array_equal(np.array(samples[0]["wave"], dtype=np.float32), first)


def test_samples_with_one_content_stay_in_one_split(folder, tmp_path):
    for path in sorted(folder.iterdir()):
        np.save(path.with_name(f"{path.stem}-again.npy"), np.load(path))
    config = DataConfig(files=(str(folder),), valid_share=0.3, test_share=0.3)
    samples, report = ingest(config, Waves(), tmp_path / "out")
    assert len(report.counts) == 3
    contents = [{Waves().content(one, config) for one in samples.of(s)} for s in report.counts]
    assert len(set.union(*contents)) == sum(map(len, contents)) == 40


def test_the_doctor_finds_what_is_repeated_and_what_lacks(folder, tmp_path):
    np.save(folder / "no-99.npy", np.load(folder / "no-01.npy"))
    np.save(folder / "__-00.npy", np.ones(5, dtype=np.float32))
    reading = Reading(DataConfig(files=(str(folder),)), Waves())
    found = examine(reading, default_checks())
    assert {f.kind: f.rows for f in found.findings} == {
        "empty rows": (f"{folder} row 1",),
        "duplicate rows": (f"{folder} row 22",),
    }
    assert found.encodings == {}
    cleaned = found.fix(tmp_path / "clean.jsonl")
    assert (cleaned.kept, cleaned.dropped) == (40, {"empty word": 1, "duplicate": 1})
    first = json.loads((tmp_path / "clean.jsonl").read_text().splitlines()[0])
    assert len(first["wave"]) in LENGTHS


def test_the_samples_of_a_run_are_known_by_the_same_content(folder, tmp_path):
    np.save(folder / "no-99.npy", np.load(folder / "no-01.npy"))
    config = DataConfig(files=(str(folder),), valid_share=0.2)
    samples, _ = ingest(config, Waves(), tmp_path / "out")
    found = examine_samples(samples, Waves(), config, default_checks())
    assert [f.kind for f in found.findings] == ["duplicate rows"]


def test_a_brief_examination_spares_slow_checks_most_rows(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(examination, "SLOW_ROWS", 10)
    config = DataConfig(files=(str(folder),), valid_share=0.2)
    samples, _ = ingest(config, Waves(), tmp_path / "out")
    quick, slow = Counting(), Counting()
    slow.slow = True
    examine_samples(samples, Waves(), config, [quick, slow])
    assert (quick.seen, slow.seen) == (len(samples), 10)


class Counting(Check):
    """Counts the rows that it sees."""

    seen = 0

    def see(self, row):
        self.seen += 1

    def findings(self):
        return iter(())


def test_a_role_without_a_column_is_one_line(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("sound,word\na,b\n")
    with pytest.raises(Exception, match="no column for wave; the columns are sound, word"):
        ingest(DataConfig(files=(str(path),)), Waves(), tmp_path / "out")
