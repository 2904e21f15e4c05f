"""transcribe and classify on a GPU: training, searching with a language model, and prediction."""

import pytest
import torch
from small_recordings import RATE, WORDS, record, write_table

import glassformer

for package in ("rapidfuzz", "soundfile", "soxr"):
    pytest.importorskip(package)

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]
STACK = ("dim=32", "depth=1", "attention.heads=2")
SOUND = ("model.frontend.bins=20", f"task.rate={RATE}", "machine.device=cuda")


def test_recordings_are_transcribed_on_a_gpu_with_a_language_model(tmp_path):
    texts = [WORDS[number % len(WORDS)] for number in range(40)]
    rows = record(tmp_path / "clips", texts)
    stacks = [f"model.{side}.{one}" for side in ("encoder", "decoder") for one in STACK]
    settings = [*stacks, *SOUND, "task.augment.speeds=[0.9, 1.1]"]
    table = write_table(tmp_path / "rows.csv", rows)
    run = glassformer.train("transcribe", table, steps=4, set=settings, quiet=True)
    assert {"wer", "cer"} <= run.evaluate(table).scores.keys()
    assert (run.folder.path / "search.json").exists()  # weights were chosen
    assert isinstance(run.predict(rows[0]["path"]).text, str)


def test_a_deterministic_run_on_a_gpu_has_the_same_bits_every_time(tmp_path):
    table = write_table(tmp_path / "rows.csv", record(tmp_path / "clips", WORDS * 6))
    stacks = [f"model.{side}.{one}" for side in ("encoder", "decoder") for one in STACK]
    runs = [
        glassformer.train(
            "transcribe",
            table,
            run=tmp_path / name,
            steps=6,
            set=[*stacks, *SOUND],
            deterministic=True,
            quiet=True,
        )
        for name in ("one", "two")
    ]
    weights = [run.model.state_dict() for run in runs]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_recordings_are_classified_on_a_gpu(tmp_path):
    rows = record(tmp_path / "clips", [WORDS[number % 3] for number in range(40)])
    table = write_table(tmp_path / "rows.csv", rows)
    settings = [*(f"model.encoder.{one}" for one in STACK), *SOUND]
    run = glassformer.train(
        "classify",
        table,
        steps=4,
        columns="path=path,label=text",
        set=[*settings, "model.frontend.kind=subsampling"],
        quiet=True,
    )
    assert run.predict(rows[0]["path"]).text in WORDS[:3]
