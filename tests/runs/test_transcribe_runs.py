"""A run of transcribe, from recordings to texts, through the command line and from Python."""

import base64
import io
import json
import os
import re

import numpy as np
import pytest
import soundfile
from small_recordings import RATE, WORDS, play, record, write_table

import glassformer
from glassformer.cli import main
from glassformer.errors import GlassformerError

STACK = ("dim=24", "depth=1", "attention.heads=2")
SETTINGS = [
    *(f"model.{side}.{one}" for side in ("encoder", "decoder") for one in STACK),
    *("model.frontend.bins=20", f"task.rate={RATE}", "machine.device=cpu"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that learned little, in a folder with its recordings."""
    folder = tmp_path_factory.mktemp("transcribe")
    texts = [WORDS[number % len(WORDS)] for number in range(40)]
    table = write_table(folder / "rows.csv", record(folder / "clips", texts))
    words = [f"--set={setting}" for setting in SETTINGS]
    command = ["train", "transcribe", str(table), "--steps", "4", "--run", str(folder / "run")]
    with pytest.MonkeyPatch.context() as patch:  # or it would write nothing after four steps
        patch.setattr("glassformer.tasks.transcribe.task.expect_blanks", lambda layer: None)
        assert main([*command, "--quiet", *words]) == 0
    return folder


def test_a_report_has_scores_a_baseline_confused_words_and_the_worst_rows(run):
    report = json.loads((run / "run" / "report.json").read_text())
    ours, baseline = report["scores"].values()
    assert ours.keys() == baseline.keys() == {"wer", "cer", "exact"}
    assert "nearest recording (by mean features)" in report["scores"]
    assert baseline["wer"]["value"] < 0.5  # a few words, said alike
    titles = {table["title"] for table in report["tables"]}
    assert {"The worst rows", "Most confused words"} <= titles
    assert any("substitutions" in note for note in report["notes"])
    assert any("for the n-gram model of the transcripts" in note for note in report["notes"])
    assert any("real-time factor" in note for note in report["notes"])


def test_a_page_plays_the_worst_rows_which_programs_get_without_sound(run):
    page = (run / "run" / "report.html").read_text()
    [worst] = [
        table
        for table in json.loads((run / "run" / "report.json").read_text())["tables"]
        if table["title"] == "The worst rows"
    ]
    assert worst["header"][:2] == ["listen", "recording"]
    assert all(row[0] is None for row in worst["rows"])
    clips = re.findall(r'<audio [^>]*src="data:audio/mpeg;base64,([^"]+)"', page)
    assert 0 < len(clips) == len(worst["rows"]) <= 10
    sound, rate = soundfile.read(io.BytesIO(base64.b64decode(clips[0])))
    original, _ = soundfile.read(run / "clips" / worst["rows"][0][1])
    assert len(sound) / rate == pytest.approx(len(original) / RATE, abs=0.15)


def test_predict_reads_recordings_and_tables(run, capsys):
    clip = run / "clips" / "0.wav"
    assert main(["predict", str(run / "run"), str(clip), "--align", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["input"] == str(clip)
    assert found["prediction"]
    assert " ".join(word["word"] for word in found["words"]) == found["prediction"]
    subtitles = run / "clip.srt"
    assert main(["predict", str(run / "run"), str(clip), "--srt", str(subtitles)]) == 0
    assert capsys.readouterr().out == f"{found['prediction']}\n"
    shown = [line for line in subtitles.read_text().splitlines() if line and "-->" not in line]
    assert " ".join(shown[1::2]) == found["prediction"]
    assert main(["predict", str(run / "run"), f"@{run / 'rows.csv'}"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 40
    assert main(["predict", str(run / "run"), str(run / "none.wav")]) == 1
    assert "none.wav" in capsys.readouterr().err


def test_evaluate_scores_other_recordings(run, capsys):
    others = write_table(run / "others.csv", record(run / "others", WORDS, seed=1))
    assert main(["evaluate", str(run / "run"), str(others), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == len(WORDS)
    assert found["trained_on"] == 0
    assert found["wer"]["value"] > 0


def test_recordings_from_python_are_paths_or_arrays_at_the_rate_of_the_run(run):
    loaded = glassformer.load(run / "run")
    sound = play("ad", np.random.default_rng(7))
    clip = run / "clips" / "1.wav"
    alone, *several = [loaded.predict(sound), *loaded.predict([sound, clip, os.fspath(clip)])]
    assert several[0].text == alone.text
    spoken = glassformer.align(loaded, sound)
    assert "".join(word.text for word in spoken) == alone.text.replace(" ", "")
    assert all(0 <= word.start < word.end <= len(sound) / RATE + 0.04 for word in spoken)
    assert several[1].text == several[2].text
    with pytest.raises(GlassformerError, match=r"8,000 a second; got float32 of shape \(2, 3\)"):
        loaded.predict(np.zeros((2, 3), np.float32))
    for bad in (np.zeros(9, np.float32), np.full(RATE, np.nan)):
        with pytest.raises(GlassformerError, match="finite numbers for at least 25 ms; got"):
            loaded.predict(bad)
    with pytest.raises(GlassformerError, match=r"predict takes a recording or a list .* got 7;"):
        loaded.predict(7)


def test_a_long_recording_is_predicted_from_python_as_one(run):
    loaded = glassformer.load(run / "run")
    sound = np.tile(play("bead ace", np.random.default_rng(8)), 40)
    [found] = loaded.predict_each([sound])
    *partial, last = loaded.predict_partly([sound])
    assert last == found
    assert 0 < partial[0].done < 1


def test_the_language_model_of_another_run_takes_part_in_the_search(run, tmp_path, capsys):
    (tmp_path / "words.jsonl").write_text("".join(f'{{"text": "{word}"}}\n' for word in WORDS * 9))
    command = ["train", "generate", str(tmp_path / "words.jsonl"), "--steps", "2", "--quiet"]
    assert main([*command, "--run", str(tmp_path / "lm"), "--set=machine.device=cpu"]) == 0
    clips = sorted(str(path) for path in (run / "clips").iterdir())[:3]
    written = []
    for more in ([], ["--lm", str(tmp_path / "lm"), "--lm-weight", "9"]):
        assert main(["predict", str(run / "run"), *clips, *more]) == 0
        written.append(capsys.readouterr().out)
    assert written[0] != written[1]
    assert main(["predict", str(run / "run"), clips[0], "--lm", str(run / "run")]) == 1
    assert "a run of transcribe; --lm takes one of `train generate`" in capsys.readouterr().err


def test_the_next_best_texts_are_alternatives(run):
    trained, clip = glassformer.load(run / "run"), run / "clips"
    path = next(iter(sorted(clip.glob("*.wav"))))
    found = trained.predict(path, alternatives=2)
    others = [one["text"] for one in found.details["alternatives"]]
    assert 1 <= len(others) <= 2
    assert len({found.text, *others}) == len(others) + 1
    assert found.below[0].startswith(f"  or {others[0]}\t")
    assert "alternatives" not in trained.predict(path).details
