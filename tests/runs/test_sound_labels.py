"""classify on recordings: from a folder per label to labels of new ones."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from small_recordings import RATE, play, write_wave

import glassformer
from glassformer.cli import main
from glassformer.errors import GlassformerError
from glassformer.runs.folds import rows_with_folds
from glassformer.tasks.classify.votes import votes

LABELS = ("a", "c", "e")
SHARES = ["data.valid_share=0.2", "data.test_share=0.2"]
SETTINGS = [
    *("model.encoder.dim=24", "model.encoder.depth=1", "model.encoder.attention.heads=2"),
    *("model.encoder.dropout=0", "model.frontend.kind=subsampling", "model.frontend.bins=20"),
    *(f"task.rate={RATE}", "task.masking.frequencies=0", "machine.device=cpu"),
    *("train.optimiser.lr=0.01", "data.batch_tokens=1024"),
    *SHARES,
]


def record_labels(folder, each=14):
    rng = np.random.default_rng(0)
    for label in LABELS:
        (folder / label).mkdir(parents=True)
        for number in range(each):
            sound = play(label * int(rng.integers(1, 4)), rng)
            write_wave(folder / label / f"{label}{number}.wav", sound)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sounds")
    data = record_labels(folder / "data")
    command = ["train", "classify", str(data), "--steps", "40", "--run", str(folder / "run")]
    assert main([*command, "--quiet", *(f"--set={setting}" for setting in SETTINGS)]) == 0
    return folder


def test_a_folder_of_recordings_for_each_label_is_learned_and_reported(run):
    report = json.loads((run / "run" / "report.json").read_text())
    ours, baseline, *_ = report["scores"].values()
    assert ours["accuracy"]["value"] == 1.0
    assert baseline["accuracy"]["value"] > 0.5
    assert "nearest recordings (5 by mean features)" in report["scores"]
    tables = {table["title"]: table for table in report["tables"]}
    assert tables["Some rows"]["header"][0] == "recording"
    assert tables["Some rows"]["rows"][0][0].endswith(".wav")
    assert not any("retraining" in note for note in report["notes"])


def test_a_table_in_place_of_a_recording_is_read_and_said(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("clips.csv").write_text(f"path,label\n{run / 'data' / 'c' / 'c3.wav'},c\n")
    assert main(["predict", str(run / "run"), "clips.csv"]) == 0
    out, err = capsys.readouterr()
    assert out == "c\n"
    assert "reading the file clips.csv, as @clips.csv does" in err


def test_labels_of_paths_of_samples_and_of_a_table_are_predicted(run, capsys):
    path = run / "data" / "c" / "c3.wav"
    assert main(["predict", str(run / "run"), str(path)]) == 0
    assert capsys.readouterr().out == "c\n"
    trained = glassformer.load(run / "run")
    sound = play("ee", np.random.default_rng(5))
    found = trained.predict([sound, Path(path), str(path)])
    assert [one.text for one in found] == ["e", "c", "c"]
    assert found[1].details["probabilities"].keys() == {*LABELS}
    rows = [f"data/{label}/{label}1.wav,{label}" for label in LABELS]
    (run / "rows.csv").write_text("\n".join(["clip,kind", *rows]), encoding="utf-8")
    scores = trained.evaluate(run / "rows.csv", columns="path=clip,label=kind").scores
    assert scores["accuracy"].value == 1.0
    named = ["--columns", "path=clip"]
    assert main(["predict", str(run / "run"), f"@{run / 'rows.csv'}", *named]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == [*LABELS]


def test_a_recording_has_the_same_scores_alone_and_beside_a_longer_one(run):
    trained = glassformer.load(run / "run")
    rng = np.random.default_rng(1)
    short, long = play("a", rng), play("eeeee", rng)
    alone = trained.predict([short])[0].details["probabilities"]
    padded = trained.predict([long, short, long])[1].details["probabilities"]
    assert padded == pytest.approx(alone, abs=1e-5)


def test_the_label_of_a_recording_is_explained_by_stretches_of_it(run):
    trained = glassformer.load(run / "run")
    sound = play("ee", np.random.default_rng(5))
    found = trained.explain(sound, method="occlusion")
    assert found.targets[0].text == found.answer == "e"
    assert found.influence.shape == (len(LABELS), len(found.pieces))
    assert found.influence[0].max() > 0
    assert len(found.sound.stretches) == len(found.pieces) > 2
    assert found.sound.stretches[-1][1] == pytest.approx(len(sound) / RATE, abs=0.05)
    subject = trained.explainer.job.subject(trained.model, sound)
    every = torch.ones(1, len(subject.pieces), dtype=torch.bool)
    scores = subject.scores(subject.model, copies=2)
    assert torch.allclose(scores, subject.scores_of(every).expand(2, -1), atol=1e-4)
    for method in ("attention", "integrated_gradients"):
        assert trained.explain(sound, method=method).influence.isfinite().all()
    path = run / "data" / "c" / "c3.wav"
    [nearest] = trained.explain(path, method="rollout", nearest=1).neighbours
    assert (nearest.target, nearest.text[:3]) == ("c", "c/c")
    with pytest.raises(GlassformerError, match="the pieces of a sound are stretches of it"):
        trained.explain(path, unit="word")


def test_of_a_long_recording_the_beginning_is_read(run, tmp_path):
    trained = glassformer.load(run / "run")
    inputs, most = trained.task.inputs, int(30 * RATE)
    path = write_wave(
        tmp_path / "long.wav", np.resize(play("c", np.random.default_rng(2)), 3 * most)
    )
    part = trained.predictor.accept(path)
    assert len(inputs.sound(part)) == most
    assert len(inputs.features(np.zeros(2 * most, dtype=np.float32))) == 30 * 100 - 2
    assert trained.predict(path).text == "c"


def test_the_doctor_sees_that_a_folder_of_recordings_is_for_labels(run, tmp_path, capsys):
    folder = record_labels(tmp_path / "data", each=3)
    write_wave(folder / "a" / "silent.wav", np.zeros(RATE, dtype=np.float32))
    assert main(["doctor", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "1 recording without a sound" in out
    assert glassformer.doctor(folder, quiet=True).job == "classify"


def test_a_run_reads_recordings_or_texts_but_not_both(run, tmp_path):
    trained = glassformer.load(run / "run")
    (tmp_path / "texts.csv").write_text("text,label\nhello,a\nbye,c\n", encoding="utf-8")
    with pytest.raises(GlassformerError, match=r"texts.csv .*: not a recording, as the other rows"):
        trained.evaluate(tmp_path / "texts.csv")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("task.long=tail", "task.long has no effect on recordings"),
        ("task.vectors=ppmi", "task.vectors has no effect on recordings"),
        ("data.token_dropout=0.1", "data.token_dropout has no effect on recordings"),
    ],
)
def test_settings_of_texts_are_refused_for_recordings(run, setting, message):
    with pytest.raises(GlassformerError, match=message):
        glassformer.train("classify", run / "data", set=[*SETTINGS, setting], quiet=True)


def test_recordings_have_no_words_to_mask_for_pretraining(run):
    with pytest.raises(GlassformerError, match="pretrain has no effect on recordings; leave it"):
        glassformer.train("classify", run / "data", set=[*SHARES, "pretrain=yes"])


def test_settings_of_recordings_are_refused_for_texts(tmp_path):
    rows = [f"text {number},{'ab'[number % 2]}" for number in range(60)]
    (tmp_path / "texts.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    with pytest.raises(GlassformerError, match=r"task\.rate has no effect on texts; leave it out"):
        glassformer.train("classify", tmp_path / "texts.csv", set=["task.rate=8000"])


def test_folds_of_a_table_know_where_its_recordings_are(run, tmp_path):
    (run / "data" / "broken.wav").write_bytes(b"RIFF")
    names = [*(f"{label}/{label}1.wav" for label in LABELS), "broken.wav"]
    rows = [f"{name},{name[0]}" for name in names]
    (run / "data" / "rows.csv").write_text("\n".join(["path,label", *rows]), encoding="utf-8")
    found = rows_with_folds("classify", str(run / "data" / "rows.csv"), None, 2).splitlines()
    assert [json.loads(row)["path"] for row in found] == [
        str(run / "data" / name) for name in names
    ]
    assert all({"test", "train"} == {*list(json.loads(row).values())[2:]} for row in found)


def test_votes_are_shares_of_one_label_or_of_each():
    one = votes(np.array([[0, 0, 2], [1, 2, 2]]), 3)
    assert one[0].argmax() == 0
    assert one[1].argmax() == 2
    assert one.sum(1) == pytest.approx([1, 1])
    several = votes(np.array([[[1, 0], [1, 1], [1, 0]]]), 2)
    assert several[0, 0] > 0.8 > 0.5 > several[0, 1]
