"""transcribe: which data it reads, what it skips, and what the doctor finds in them."""

import json

import numpy as np
import pytest
import soundfile
from small_recordings import RATE, record, write_table, write_wave

from glassformer.config.run import config_of
from glassformer.config.values import merge_values
from glassformer.data.doctor.check import Specimen
from glassformer.data.ingest import ingest
from glassformer.errors import GlassformerError
from glassformer.runs.doctor import doctor
from glassformer.tasks import JOBS
from glassformer.tasks.shared.recordings import Part, read_facts
from glassformer.tasks.shared.sound_checks import SoundLevels

TEXTS = ("ad", "bad", "cab", "ace", "bead")


def ingested(folder, name, **data):
    job = JOBS["transcribe"]
    values = {"job": "transcribe", "data": {"files": [str(name)], **data}}
    config = config_of(merge_values(job.defaults(False), values), job.settings)
    return ingest(config.data, job.schema, folder / "data")


def test_a_table_names_recordings_as_seen_from_where_it_lies(tmp_path):
    rows = record(tmp_path / "clips", TEXTS)
    near = [row | {"path": row["path"].removeprefix(f"{tmp_path}/")} for row in rows]
    samples, _ = ingested(tmp_path, write_table(tmp_path / "rows.csv", near), valid_share=0.4)
    assert [sample["path"] for sample in samples] == [row["path"] for row in rows]
    assert samples[0]["sound"]["rate"] == RATE


def test_a_column_of_any_name_holds_the_recordings_if_all_its_values_end_like_some(tmp_path):
    rows = record(tmp_path, TEXTS)
    lines = [json.dumps({"n": 1, "was": row["path"], "text": row["text"]}) for row in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    samples, report = ingested(tmp_path, tmp_path / "rows.jsonl", valid_share=0.4)
    assert report.columns["path"] == "was"
    assert len(samples) == len(TEXTS)


def test_a_column_of_any_name_holds_the_transcripts_unless_it_looks_like_labels(tmp_path):
    record(tmp_path, TEXTS)
    table, clips = tmp_path / "rows.csv", [f"{n}.wav" for n in range(len(TEXTS))] * 3
    texts = [f"{clip},{TEXTS[n % len(TEXTS)]} {n}\n" for n, clip in enumerate(clips)]
    table.write_text("file,spoken\n" + "".join(texts))
    assert doctor(str(table), quiet=True).columns[str(table)] == {"path": "file", "text": "spoken"}
    labels = [f"{clip},{'yn'[n % 2]}\n" for n, clip in enumerate(clips)]
    table.write_text("file,spoken\n" + "".join(labels))
    found = doctor(str(table), quiet=True)
    assert found.job == "classify"
    assert found.guesses == ["the job was guessed; transcribe fits as well: choose with --job"]


def test_text_files_beside_recordings_are_their_transcripts(tmp_path):
    for number, row in enumerate(record(tmp_path / "pairs", TEXTS)):
        (tmp_path / "pairs" / f"{number}.txt").write_text(row["text"])
    samples, _ = ingested(tmp_path, tmp_path / "pairs", valid_share=0.4)
    assert sorted(sample["text"] for sample in samples) == sorted(TEXTS)


@pytest.mark.parametrize(("speakers", "grouped"), [(24, True), (4, False)])
def test_a_layout_with_many_speakers_is_split_by_speaker(tmp_path, speakers, grouped):
    rows = record(tmp_path / "clips", TEXTS * 10)
    keys = [f"{number:02}" for number in range(len(rows))]
    pairs = list(zip(keys, rows, strict=True))
    files = {
        "wav.scp": [f"{key} {row['path']}" for key, row in pairs],
        "text": [f"{key} {row['text']}" for key, row in pairs],
        "utt2spk": [f"{key} s{number % speakers}" for number, key in enumerate(keys)],
    }
    for name, lines in files.items():
        (tmp_path / "clips" / name).write_text("\n".join(lines) + "\n")
    samples, report = ingested(tmp_path, tmp_path / "clips", valid_share=0.3)
    assert (report.columns.get("group") == "speaker") == grouped
    assert (most_splits(samples) == 1) == grouped


def most_splits(samples):
    """In how many splits the rows of one group are, at most."""
    splits = {}
    for sample, split in zip(samples, samples.splits.tolist(), strict=True):
        splits.setdefault(sample.get("group"), set()).add(split)
    return max(map(len, splits.values()))


@pytest.mark.parametrize("column", ["speaker", "speaker_id", "client_id"])
def test_a_table_with_many_speakers_is_split_by_speaker(tmp_path, column):
    rows = record(tmp_path, TEXTS * 10)
    lines = [f"{row['path']},{row['text']},s{n % 24},{n // 5}" for n, row in enumerate(rows)]
    table = tmp_path / "rows.csv"
    table.write_text("\n".join([f"path,text,{column},session", *lines]))
    samples, report = ingested(tmp_path / "a", table, valid_share=0.3)
    assert report.columns["group"] == column
    assert most_splits(samples) == 1
    samples, report = ingested(tmp_path / "b", table, valid_share=0.3, group="session")
    assert report.columns["group"] == "session"
    assert {sample["group"] for sample in samples} == set("0123456789")
    table.write_text("\n".join([f"path,text,{column},session", *lines[:19]]))
    assert "group" not in ingested(tmp_path / "c", table, valid_share=0.3)[1].columns


def test_a_part_of_a_recording_is_a_row_of_its_own(tmp_path):
    whole = record(tmp_path, ["ad bad cab ace bead"])[0]["path"]
    times = [(0.1 * n, 0.1 * n + 0.5) for n in range(5)]
    lines = [f"{whole},{text},{a},{b}" for text, (a, b) in zip(TEXTS, times, strict=True)]
    (tmp_path / "parts.csv").write_text("\n".join(["path,text,start,end", *lines]))
    samples, _ = ingested(tmp_path, tmp_path / "parts.csv", valid_share=0.4)
    assert len({sample["sound"]["content"] for sample in samples}) == 5
    assert str(Part.of(samples[1])) == f"{whole} from 0.1 to 0.6"
    assert str(Part.of({"path": whole})) == whole
    assert [sample["sound"]["seconds"] for sample in samples] == pytest.approx([0.5] * 5)


def test_recordings_that_cannot_be_read_are_skipped_and_the_first_is_named(tmp_path):
    rows = record(tmp_path, TEXTS)
    (tmp_path / "broken.wav").write_bytes(b"no sound")
    (tmp_path / "empty.wav").touch()
    write_wave(tmp_path / "one.wav", np.zeros(1))
    names = ("none", "broken", "empty", "one", "nothing")
    bad = [{"path": str(tmp_path / f"{name}.wav"), "text": "ad"} for name in names]
    table = write_table(tmp_path / "rows.csv", [*bad, *rows])
    samples, report = ingested(tmp_path, table, valid_share=0.4)
    assert len(samples) == len(TEXTS)
    told = {
        reason.removeprefix("a recording that cannot be read "): (one.count, one.first)
        for reason, one in report.skipped.items()
    }
    assert told == {
        "(not found)": (2, f"{table} row 1 (line 2)"),
        "(not sound, or damaged)": (1, f"{table} row 2 (line 3)"),
        "(the file is empty)": (1, f"{table} row 3 (line 4)"),
        "(too short)": (1, f"{table} row 4 (line 5)"),
    }


def test_a_missing_recording_is_told_with_the_folder_that_it_was_looked_for_in(tmp_path):
    table = write_table(tmp_path / "rows.csv", [{"path": "a/b.wav", "text": "ad"}])
    with pytest.raises(GlassformerError, match=f"not found, seen from {tmp_path}"):
        ingested(tmp_path, table)


def test_recordings_without_transcripts_are_refused(tmp_path):
    record(tmp_path / "clips", TEXTS)
    with pytest.raises(GlassformerError, match=r"0\.wav: a recording without a transcript, like"):
        ingested(tmp_path, tmp_path / "clips")
    (tmp_path / "clips" / "list.csv").write_text("path,text\n")
    for job in ("transcribe", None):
        with pytest.raises(GlassformerError, match=r"; add rows to .*list\.csv, each with"):
            doctor(str(tmp_path / "clips"), job=job, quiet=True)
    (tmp_path / "clips" / "list.csv").unlink()
    with pytest.raises(GlassformerError, match=r"0\.wav: a recording without a transcript, like"):
        ingested(tmp_path, tmp_path)


@pytest.mark.parametrize("inner", ["", "wav/"])
def test_the_only_table_in_a_folder_of_recordings_is_read_and_said(tmp_path, inner):
    record(tmp_path / "clips" / inner, TEXTS)
    rows = [f"{inner}{n}.wav,{text}" for n, text in enumerate(TEXTS)]
    table = tmp_path / "clips" / "list.csv"
    table.write_text("\n".join(["path,text", *rows]))
    samples, report = ingested(tmp_path, tmp_path / "clips", valid_share=0.0)
    assert [sample["text"] for sample in samples] == [*TEXTS]
    assert report.tables == {str(tmp_path / "clips"): str(table)}
    (tmp_path / "clips" / "more.csv").write_text("\n".join(["path,text", *rows]))
    with pytest.raises(GlassformerError, match="a recording without a transcript"):
        ingested(tmp_path, tmp_path / "clips")  # which of the two is not known


@pytest.mark.parametrize(
    ("start", "end"), [("soon", ""), ("nan", ""), ("", "inf"), ("-1", ""), ("0.3", "0.2")]
)
def test_times_that_cannot_be_are_told_and_their_rows_left_out(tmp_path, start, end):
    rows = record(tmp_path, TEXTS)
    times = [(start, end)] + [("", "")] * (len(rows) - 1)
    lines = [f"{row['path']},ad,{a},{b}" for row, (a, b) in zip(rows, times, strict=True)]
    table = tmp_path / "rows.csv"
    table.write_text("\n".join(["path,text,start,end", *lines]))
    samples, report = ingested(tmp_path, table, valid_share=0.4)
    assert len(samples) == len(TEXTS) - 1
    [(reason, skipped)] = report.skipped.items()
    assert reason == "a recording that cannot be read (impossible times)"
    assert skipped.first == f"{table} row 1 (line 2)"


def test_the_same_sound_under_two_names_is_one_sample(tmp_path):
    rows = record(tmp_path, TEXTS)
    copy = tmp_path / "copy.wav"
    copy.write_bytes((tmp_path / "0.wav").read_bytes())
    table = write_table(tmp_path / "rows.csv", [*rows, {"path": str(copy), "text": "ad"}])
    found = doctor(str(table), job="transcribe", quiet=True)
    assert "duplicate rows" in {finding.kind for finding in found.findings}


def test_the_doctor_finds_silence_clipping_and_transcripts_that_do_not_fit(tmp_path):
    rows = record(tmp_path, [*TEXTS * 2])
    time = np.arange(RATE) / RATE
    write_wave(tmp_path / "silent.wav", 1e-3 * np.sin(900 * time))
    write_wave(tmp_path / "loud.wav", 3 * np.sin(900 * time))
    write_wave(tmp_path / "long.wav", 0.1 * np.sin(900 * np.arange(4 * RATE) / RATE))
    more = {"silent": "ad", "loud": "a transcript too long for its sound", "long": "adq"}
    rows += [{"path": str(tmp_path / f"{name}.wav"), "text": text} for name, text in more.items()]
    table = write_table(tmp_path / "rows.csv", rows)
    found = doctor(str(table), quiet=True, set=("task.max_seconds=3",))
    assert found.job == "transcribe"
    rows_of = {finding.kind: finding.rows for finding in found.findings}
    assert rows_of["silence"] == (f"{table} row 11 (line 12)",)
    assert rows_of["clipping"] == (f"{table} row 12 (line 13)",)
    assert rows_of["long transcripts"] == (f"{table} row 12 (line 13)",)
    assert rows_of["long recordings"] == (f"{table} row 13 (line 14)",)
    [rare] = [one for one in found.findings if one.kind == "rare characters"]
    assert "q" in rare.what
    assert rows_of["low rate"] == ()
    assert found.to_drop == {10: "silent"}
    assert found.figures["samples a second"] == {str(RATE): 13}
    assert found.figures["seconds"]["longest"] == 4.0
    settings = ("task.max_seconds=3", f"task.rate={RATE}", "model.frontend.bins=40")
    kinds = {one.kind for one in doctor(str(table), quiet=True, set=settings).findings}
    assert kinds == rows_of.keys() - {"low rate"}


def test_the_doctor_finds_transcripts_that_are_unlikely_for_the_length_of_their_sound(tmp_path):
    rows = record(tmp_path, [*TEXTS * 5])
    rows[4]["text"], rows[8]["text"] = "a", "abacab dedad abba cab bead cabbed"
    table = write_table(tmp_path / "rows.csv", rows)
    found = {one.kind: one for one in doctor(str(table), quiet=True).findings}
    assert found["unlikely paces"].rows == (f"{table} row 5 (line 6)", f"{table} row 9 (line 10)")
    assert "(usual: 6.8 characters a second)" in found["unlikely paces"].what
    table = write_table(tmp_path / "rows.csv", rows[:19])
    kinds = {one.kind for one in doctor(str(table), quiet=True).findings}
    assert "unlikely paces" not in kinds


def test_a_table_of_texts_is_for_another_job(tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("text,label\n" + "\n".join(f"text {n},{n % 2}" for n in range(30)))
    assert doctor(str(table), quiet=True).job == "classify"


def test_the_same_sound_has_the_same_content_whatever_its_file(tmp_path):
    rng = np.random.default_rng(0)
    sound, other = rng.integers(-8000, 8000, (2, 4001)).astype(np.int16)

    def content(name, samples, rate=16000, start=0.0):
        soundfile.write(tmp_path / name, samples, rate)
        return read_facts(Part(path=tmp_path / name, start=start)).content

    found = content("a.wav", sound)
    assert content("b.flac", sound) == found
    assert content("c.wav", other) != found
    assert content("d.wav", sound, 8000) != found
    assert content("e.wav", sound, start=0.05) != found


def test_the_usual_rate_is_one_that_recordings_have():
    check = SoundLevels(30.0, 16_000)
    for number, rate in enumerate([8_000, 16_000, 8_000, 16_000, 8_000, 16_000]):
        sound = {"seconds": 1.0, "rate": rate, "peak": 0.5, "clipped": 0.0}
        check.see(Specimen(number, "train", {"sound": sound}, 0))
    [low] = check.findings()
    assert low.what == "most recordings have 8,000 samples a second, task.rate is 16,000"
    check.rates[16_000] += 1
    assert not [*check.findings()]
