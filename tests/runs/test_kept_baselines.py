"""`predict --baseline`: every job whose baseline can answer keeps it, and answers with it."""

import json
import shutil

import numpy as np
import pytest
from small_recordings import RATE, WORDS, play, record
from small_translators import translate, write_pairs

import glassformer
from glassformer import GlassformerError
from glassformer.cli import main
from glassformer.files import physical_memory
from glassformer.tasks.generate import ngram_baseline
from glassformer.tasks.recognise.pixel_baseline import PixelBaseline
from glassformer.tasks.recommend.least_squares import LeastSquares
from glassformer.tasks.shared.nearest import StoredNearest
from glassformer.tasks.translate.stored_memory import StoredMemory

pytest.importorskip("sklearn")
pytestmark = pytest.mark.usefixtures("without_shape_hook")
STACK = ("dim=8", "depth=1", "attention.heads=2")
SOUND = (
    "model.frontend.kind=subsampling",
    "model.frontend.bins=20",
    f"task.rate={RATE}",
    *(f"model.encoder.{x}" for x in STACK),
)
TAGGED = [
    ("ab ab", "x", "one"),
    ("ab ab", "y", "two"),
    ("cd cd", "z", "one"),
    ("cd cd", "w", "two"),
]


@pytest.fixture(scope="module", autouse=True)
def no_board():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glassformer.runs.log.open_board", lambda folder, step: None)
        yield


def learn(job, data, run, *settings):
    given = {"steps": 1, "quiet": True, "device": "cpu"}
    return glassformer.train(job, data, run=run, set=settings, **given)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    return translate(write_pairs(folder / "pairs.tsv"), folder / "run", steps=1)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ngrams")
    (folder / "a.txt").write_text("".join(f"{n} green bottles on the wall\n" for n in range(200)))
    small = (f"model.decoder.{x}" for x in STACK)
    return learn("generate", folder / "a.txt", folder / "run", *small, "task.max_length=32")


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nearest")
    clips = record(folder / "clips", [WORDS[n % 4] for n in range(40)])
    settings = (*SOUND, "task.ctc_weight=1", "task.decode.method=greedy", "task.lm=0")
    return clips, learn("transcribe", clips, folder / "run", *settings)


@pytest.fixture(scope="module")
def labels(words):
    clips, run = words
    rows = [{"path": row["path"], "label": row["text"]} for row in clips]
    return learn("classify", rows, run.folder.path.parent / "labels", *SOUND)


def test_a_translation_memory_answers_with_the_translation_of_a_similar_text(pairs, capsys):
    stored = json.loads((pairs.folder.path / "memory.json").read_text())
    source, target = (side[0] for side in stored[""])
    found = pairs.predict(source, baseline=True, alternatives=1)
    assert (found.text, round(found.confidence, 3)) == (target, 1.0)
    assert [other["text"] != target for other in found.details["alternatives"]] == [True]
    strange, nothing = pairs.predict(["ÿ þ ð", " "], baseline=True)
    assert strange.unknown
    assert nothing.empty
    folder = str(pairs.folder.path)
    assert main(["predict", folder, source, "--baseline"]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    assert main(["predict", folder, source, "--baseline", "--align"]) == 1
    told = "the baseline has no option align; leave it out, or leave out --baseline"
    assert told in capsys.readouterr().err


def test_a_memory_of_several_languages_answers_in_the_one_asked_for(tmp_path):
    lines = ["source\ttarget\tto\tsplit"]
    splits = {"train": TAGGED * 3, "valid": TAGGED[:1], "test": TAGGED}
    lines += ["\t".join((*row, split)) for split, rows in splits.items() for row in rows]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = translate(tmp_path / "pairs.tsv", tmp_path / "run", steps=1)
    found = run.predict(["<one> ab ab", "<two> ab ab"], baseline=True)
    assert [one.text for one in found] == ["x", "y"]


def test_n_grams_continue_a_prompt(texts):
    greedy = {"baseline": True, "set": ("decode.method=greedy", "decode.max_length=20")}
    found = texts.predict("12 green bot", **greedy)
    assert found.text.startswith("12 green bottles on the wall")
    assert texts.predict(["12 green bot", "7 "], **greedy)[0].text == found.text
    assert texts.predict("12 green bot", set=greedy["set"]).text != found.text


def test_n_grams_that_take_much_room_are_not_kept(texts, monkeypatch):
    monkeypatch.setattr(ngram_baseline, "KEPT", 10)
    task = texts.folder.open_task(texts.config, texts.folder.data)
    found = ngram_baseline.ngram_baseline(task, "test")
    assert found.save is None
    assert found.notes[-1].startswith("The baseline is not kept: it takes 0 MiB")


def test_the_nearest_recording_gives_its_transcript(words):
    clips, run = words
    found = run.predict(clips[0]["path"], baseline=True, alternatives=2)
    assert found.text == clips[0]["text"]
    assert 0 < found.confidence <= 1
    assert len(found.details["alternatives"]) == 2
    sound = play("bead", np.random.default_rng(1))
    assert run.predict(sound, baseline=True).text in WORDS


def test_the_nearest_recordings_vote_for_a_label(labels, words):
    clips, _ = words
    found = labels.predict(clips[1]["path"], baseline=True, alternatives=1)
    assert found.text == clips[1]["text"]
    assert sum(found.details["probabilities"].values()) == pytest.approx(1)
    assert len(found.details["alternatives"]) == 1


@pytest.mark.parametrize(
    ("load", "file", "damaged"),
    [
        (StoredMemory.load, "memory.json", b'{"": [["a", "b"], ["c"]]}'),
        (StoredMemory.load, "memory.json", b"[1]"),
        (ngram_baseline.kept_ngrams, "baseline.safetensors", b"no tensors"),
        (StoredNearest.load, "nearest.json", b"[1]"),
        (PixelBaseline.load, "pixels.safetensors", b"no tensors"),
        (LeastSquares.load, "least_squares.safetensors", b"no tensors"),
    ],
)
def test_a_damaged_baseline_is_refused(load, file, damaged, tmp_path):
    assert load(tmp_path) is None
    (tmp_path / file).write_bytes(damaged)
    with pytest.raises(GlassformerError, match=r"not the baseline of a run .*; copy the run again"):
        load(tmp_path)


def test_a_baseline_that_is_a_large_hole_is_refused(tmp_path):
    path, size = tmp_path / "least_squares.safetensors", 10 * int(physical_memory())
    header = {"numbers": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}
    lines = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(lines).to_bytes(8, "little") + lines)
        file.truncate(8 + len(lines) + size)
    with pytest.raises(GlassformerError, match=r"larger than the memory .*; copy the run again"):
        LeastSquares.load(tmp_path)


def test_a_run_without_one_says_so(pairs, tmp_path):
    shutil.copytree(pairs.folder.path, tmp_path / "run")
    (tmp_path / "run" / "memory.json").unlink()
    (tmp_path / "run" / "checksums.json").unlink()
    with pytest.raises(GlassformerError, match="the run keeps no baseline; leave out"):
        glassformer.load(tmp_path / "run").predict("a", baseline=True)
