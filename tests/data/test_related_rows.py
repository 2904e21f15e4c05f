"""Rows that could be learned by heart through each other are in one split, or it is said."""

from pathlib import Path

import numpy as np
import pytest
from small_recordings import write_wave

from glassformer.config import DataConfig
from glassformer.data.ingest import ingest
from glassformer.data.samples import SPLITS
from glassformer.data.splits import components
from glassformer.runs.doctor import doctor
from glassformer.tasks import JOBS

WORDS = ("red", "green", "blue", "black", "white")
SENTENCES = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS]


def table(path: Path, *rows: tuple[str, ...], columns: str) -> str:
    path.write_text("\n".join([columns, *map(",".join, rows)]) + "\n", encoding="utf-8")
    return str(path)


def clips(folder, count, seed=0):
    """Different recordings, so short that they are quickly written."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    return [
        str(write_wave(folder / f"{seed}-{n}.wav", rng.uniform(-0.5, 0.5, 900)))
        for n in range(count)
    ]


def spoken(folder, texts, *more, columns="path,text", seed=0):
    paths = clips(folder, len(texts), seed)
    name = folder / f"{seed}.csv"
    return table(name, *zip(paths, texts, *more, strict=True), columns=columns)


def take(folder, *files, job="transcribe", **settings):
    config = DataConfig(files=files, **settings)
    return ingest(config, JOBS[job].schema, folder / "out")


def shared(samples, role="text"):
    """The values that training rows have, and held-out ones as well."""
    held_out = {*samples.texts("valid", role), *samples.texts("test", role)}
    assert held_out
    return held_out & {*samples.texts("train", role)}


def test_recordings_of_one_sentence_are_in_one_split_however_it_is_written(tmp_path):
    texts = [*SENTENCES, *(f"{text.upper()}." for text in SENTENCES[:60])]
    file = spoken(tmp_path, texts)
    samples, report = take(tmp_path, file)
    splits = {text: set() for text in SENTENCES}
    for split in SPLITS:
        for text in samples.texts(split):
            splits[text.strip(".").lower()].add(split)
    assert all(len(found) == 1 for found in splits.values())
    assert not report.related
    assert [*report.together] == [
        "185 rows have 125 different transcripts; those with the same transcript are in one split"
    ]
    _, report = take(tmp_path, file, together=False)
    assert not report.together
    assert report.related["transcript"]["test"].count > 0


def test_what_was_said_of_a_sentence_elsewhere_moves_no_other_row(tmp_path):
    some, all_rows = spoken(tmp_path, [*SENTENCES, *SENTENCES[:9]]), SENTENCES + SENTENCES[:60]
    few, _ = take(tmp_path, some)
    many, _ = take(tmp_path, spoken(tmp_path, all_rows, seed=1))
    for split in SPLITS:
        assert {*few.texts(split)} == {*many.texts(split)}


def test_a_fixed_set_of_transcripts_is_in_every_split_as_labels_are(tmp_path):
    file = spoken(tmp_path, list(WORDS) * 20)
    samples, report = take(tmp_path, file)
    assert shared(samples) == {*WORDS}
    assert [*report.together] == [
        "100 rows have 5 different transcripts: too few to keep the rows of each in one split"
    ]
    found = doctor(file, job="transcribe", quiet=True).findings
    kinds = ("shared answers", "kept together")
    assert {finding.severity for finding in found if finding.kind in kinds} == {"note"}


def test_a_word_that_many_rows_say_is_in_every_split_but_sentences_are_not(tmp_path):
    samples, report = take(tmp_path, spoken(tmp_path, [*SENTENCES, *SENTENCES, *["yes"] * 40]))
    assert shared(samples) == {"yes"}
    (line,) = report.together
    assert line.endswith("except for 1 transcript that more than 29 rows have")


def test_speakers_count_more_than_sentences_which_all_of_them_read(tmp_path):
    texts = SENTENCES[:8] * 30 + SENTENCES[:120]
    speakers = [f"speaker {n // 8}" for n in range(240)] + [f"speaker {n // 4}" for n in range(120)]
    file = spoken(tmp_path, texts, speakers, columns="path,text,speaker")
    samples, report = take(tmp_path, file)
    assert not shared(samples, "group")
    assert shared(samples)
    (line,) = report.together
    assert line.endswith(
        "kept in one split by speaker, as rows of different speakers share transcripts"
    )
    assert report.related["transcript"].keys() <= {"valid", "test"}


def test_speakers_and_sentences_are_both_kept_together_where_few_share_any(tmp_path):
    speakers = [f"speaker {n // 3}" for n in range(125)] + [f"speaker {n ^ 1}" for n in range(20)]
    file = spoken(tmp_path, SENTENCES + SENTENCES[:60:3], speakers, columns="path,text,speaker")
    samples, report = take(tmp_path, file)
    assert not shared(samples, "group")
    assert not shared(samples)
    assert "in one split" in next(iter(report.together))


def test_the_doctor_counts_sentences_that_splits_of_the_user_share(tmp_path):
    train = spoken(tmp_path, SENTENCES)
    test = spoken(tmp_path, [*SENTENCES[:10], *(f"so {text}" for text in SENTENCES[:30])], seed=1)
    found = doctor(train, test=test, job="transcribe", quiet=True)
    (finding,) = (finding for finding in found.alarms if finding.kind == "shared answers")
    assert finding.what == (  # the tenth is held out for validation
        "9 of 40 test rows (22.5 %) have a transcript that training rows also have"
    )
    assert finding.count == 9
    assert finding.rows[0].startswith(test)


@pytest.mark.parametrize("ending", ["png", "gif"])
def test_images_with_the_same_pixels_are_in_one_split_whatever_their_format(tmp_path, ending):
    image = pytest.importorskip("PIL.Image")
    rng, rows = np.random.default_rng(0), []
    for number in range(60):
        pixels = image.fromarray(rng.integers(0, 256, (4, 5), dtype=np.uint8))
        for name in (f"{number}.png", f"again-{number}.{ending}"):
            pixels.save(tmp_path / name)
            rows.append((str(tmp_path / name), "ab"[number % 2]))
    file = table(tmp_path / "x.csv", *rows, columns="path,label")
    samples, _ = take(tmp_path, file, job="recognise")
    numbers = {
        split: {Path(sample["path"]).stem.removeprefix("again-") for sample in samples.of(split)}
        for split in SPLITS
    }
    assert not numbers["train"] & (numbers["valid"] | numbers["test"])
    assert numbers["valid"]


def test_translations_that_splits_share_are_counted(tmp_path):
    rows = [(f"word number {n}", f"Wort {n % 100}") for n in range(300)]
    _, report = take(tmp_path, table(tmp_path / "x.csv", *rows, columns="en,de"), job="translate")
    assert not report.together
    assert {"valid", "test"} == report.related["target"].keys()


def test_a_chain_of_rows_that_share_keys_is_one_component():
    rows = np.random.default_rng(0).permutation(1000).astype(np.uint64)
    assert components(rows // 2, (rows + 1) // 2).tolist() == [0] * 1000
    assert components(rows // 2, rows // 2).max() == 499
