"""`recognise`: from a folder of images per label to labels of new ones, and what they rest on."""

import io
import json

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from rich.text import Text
from sklearn.linear_model import LogisticRegression
from small_images import LABELS, SIDE, pixels_of, write_images

import glassformer
from glassformer.cli import main
from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.explaining.parts import AttentionMap, Image as Shown
from glassformer.explaining.views import image_terminal
from glassformer.runs.folder import RunFolder
from glassformer.tasks.recognise import pixel_baseline
from glassformer.tasks.recognise.images import settled
from glassformer.tasks.recognise.pixel_baseline import PixelBaseline, pixel_features
from glassformer.tasks.recognise.settings import RecogniseConfig

SETTINGS = {
    "model.encoder.dim": 16,
    "model.encoder.depth": 1,
    "model.encoder.attention.heads": 2,
    "model.encoder.dropout": 0,
    "train.optimiser.lr": 0.02,
    "train.validate_every": 100,
    "data.batch_tokens": 256,
    "data.valid_share": 0.2,
    "data.test_share": 0.2,
    "task.augment.crop": 0,
}


def learn(data, run, steps=30, **settings):
    return glassformer.train(
        "recognise", data, run=run, steps=steps, set=SETTINGS | settings, device="cpu", quiet=True
    )


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return write_images(tmp_path_factory.mktemp("images") / "data")


@pytest.fixture(scope="module")
def run(images):
    return learn(images, images.parent / "run", **{"model.pool": "first"})


def opened(run):
    folder = RunFolder(run.folder.path)
    return folder.open_task(folder.config(), folder.data)


def test_a_folder_of_images_for_each_label_is_learned_beside_a_baseline(run):
    scores = run.report["scores"]
    ours, baseline, *_ = scores.values()
    assert ours["accuracy"]["value"] == 1.0
    assert ours["accuracy"]["low"] < 1.0
    assert "calibration_error" in ours
    assert any(name.startswith("pixels (logistic regression, C = ") for name in scores)
    assert baseline["accuracy"]["value"] > 0.8


def test_size_patches_and_channels_follow_from_the_images(run):
    frontend = run.config.model.frontend
    assert (frontend.height, frontend.width, frontend.patch) == (SIDE, SIDE, 2)
    assert frontend.channels == 1
    assert run.model.frontend.first is not None  # pool = first: a class token
    assert run.model.frontend.table.shape == (16, 16)


def test_paths_pixels_and_tables_are_predicted(run, images, capsys):
    path, rng = images / "left" / "left3.png", np.random.default_rng(5)
    found = run.predict([str(path), path, pixels_of("right", rng)])
    assert [one.text for one in found] == ["left", "left", "right"]
    assert run.predict(path, alternatives=1).details["alternatives"][0]["text"] != "left"
    larger = Image.fromarray(pixels_of("left", rng)).resize((40, 40)).convert("RGB")
    assert run.predict(np.asarray(larger)).text == "left"
    (images.parent / "table.csv").write_text("picture,label\ndata/dark/dark1.png,dark\n")
    table = str(images.parent / "table.csv")
    assert main(["predict", str(run.folder.path), f"@{table}", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["prediction"] == "dark"
    assert "read 'picture' as path, a guess" in err  # the run learned from a folder
    assert run.evaluate(table).scores["accuracy"].value == 1.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros((4, 4)), r"bytes \(uint8\) of shape .* got float64 of shape \(4, 4\)"),
        (np.zeros((0, 4), np.uint8), "without pixels"),
        (3, "predict takes a image|an image"),
        ("nowhere.png", r"nowhere\.png: not found"),
    ],
)
def test_what_is_no_image_is_refused(run, given, said):
    with pytest.raises(GlassformerError, match=said):
        run.predict(given)


def test_a_row_in_an_epoch_depends_on_seed_epoch_and_row_alone(images, tmp_path):
    changed = {
        "task.augment.crop": 0.25,
        "task.augment.flip": True,
        "task.augment.erase": 0.5,
        "task.augment.mixup": 0.4,
        "task.augment.rotate": 15,
        "task.augment.zoom": 0.2,
        "model.frontend.position": "sinusoidal",
    }
    task = opened(learn(images, tmp_path / "run", steps=1, **changed))
    alone = task.batch("train", np.array([7]), 2)
    others = task.batch("train", np.array([3, 7, 5]), 2)
    assert torch.equal(alone.images[0], others.images[1])
    assert torch.equal(alone.labels[0], others.labels[1])
    assert not torch.equal(alone.images, task.batch("train", np.array([7]), 3).images)
    assert alone.labels.sum() == pytest.approx(1.0)
    plain = task.batch("train", np.array([7]), None)
    assert plain.labels.dtype == torch.long
    numbers = task.samples.rows("train")
    other, share = task.inputs.mixes(numbers[[7]], 2)
    mixed = torch.zeros(3)
    mixed[task.label_ids[numbers[7]]] += share[0]
    mixed[task.label_ids[other[0]]] += 1 - share[0]
    assert torch.allclose(alone.labels[0], mixed.float())
    output = torch.randn(1, 3)
    loss = task.loss(output, alone)
    assert loss.total == pytest.approx(-(mixed * output[0].log_softmax(0)).sum().item(), rel=1e-5)


def test_unreadable_images_are_skipped_and_counted(images, tmp_path, capsys):
    data = write_images(tmp_path / "data", each=5)
    (data / "left" / "cut.png").write_bytes((data / "left" / "left0.png").read_bytes()[:40])
    (data / "dark" / "text.png").write_text("hello")
    Image.new("L", (8, 8)).save(data / "left" / "scan.tif")
    assert main(["doctor", str(data)]) in (0, 1)
    said = " ".join(capsys.readouterr().out.split())
    assert "warning: 3 rows with an image that cannot be read (not an image" in said
    assert "left/cut.png row 1" in said
    assert "15 train rows" in said
    assert "height smallest 8 " in said


def test_settings_that_do_not_fit_are_refused(images, tmp_path):
    for setting, said in {
        "task.height": "images of 3 x 8 pixels do not divide into patches of 2 x 2",
        "model.frontend.patch": "model.frontend.patch has no effect",
        "task.channels": r"task.channels must be 1 \(grey\) or 3",
    }.items():
        value = {"task.channels": 2}.get(setting, 3)
        with pytest.raises(GlassformerError, match=said):
            learn(images, tmp_path / "run", **{setting: value})
    assert not (tmp_path / "run").exists()


def test_large_images_are_scaled_down_to_whole_patches(tmp_path):
    facts = {"height": 300, "width": 210, "grey": False}
    samples = Samples.write(tmp_path, [("train", {"image": facts})])
    found = settled(RecogniseConfig(largest=64), samples)
    assert (found.height, found.width, found.patch, found.channels) == (64, 48, 8, 3)


def test_in_a_narrow_terminal_titles_wrap_and_drawings_do_not():
    drawings = [Text("\n".join([line] * 3)) for line in ("a" * 28, "b" * 18, "c" * 18)]
    titles = ("image", "for left", "encoder, all layers, all heads")
    console = Console(width=80, file=io.StringIO())
    console.print(image_terminal.panels(*zip(titles, drawings, strict=True)))
    lines = console.file.getvalue().splitlines()
    assert "heads" in lines[1]
    assert [line.split() for line in lines[2:]] == [["a" * 28, "b" * 18, "c" * 18]] * 3


def test_the_baseline_handles_several_labels_and_one_that_never_occurs():
    rng = np.random.default_rng(0)
    images = np.stack([pixels_of(LABELS[n % 3], rng) for n in range(30)])[..., None]
    labels = np.stack([[n % 3 == 1, n % 3 == 2, False] for n in range(30)]).astype(np.uint8)
    fitted = PixelBaseline.fit(images, labels, images, labels, 3)
    chances = fitted.probabilities(images)
    assert ((chances > 0.5) == labels.astype(bool)).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_the_baseline_is_the_logistic_regression_of_scikit_learn(classes, tmp_path):
    rng = np.random.default_rng(0)
    images = np.stack([pixels_of(LABELS[n % 3], rng) for n in range(30)])[..., None]
    labels = np.arange(30) % 3 % classes
    none = images[:0]
    PixelBaseline.fit(images, labels, none, labels[:0], classes).save(tmp_path)
    theirs = LogisticRegression(C=0.1, max_iter=200).fit(pixel_features(images), labels)
    expected = theirs.predict_proba(pixel_features(images))
    found = PixelBaseline.load(tmp_path).probabilities(images)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(("seconds", "rows"), [(0.0, 50), (1e6, 300)])
def test_the_baseline_learns_from_as_many_images_as_its_time_allows(seconds, rows, monkeypatch):
    monkeypatch.setattr(pixel_baseline, "FEW", 50)
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 100)  # as folders by label are read
    shades = 80 * labels.astype(np.uint8)[:, None, None, None]
    images = rng.integers(0, 80, (300, 4, 4, 3)).astype(np.uint8) + shades
    found = PixelBaseline.fit(images, labels, images[::9], labels[::9], 3, seconds)
    assert found.rows == rows
    assert (found.probabilities(images).argmax(1) == labels).mean() > 0.95  # all labels are seen


def test_the_baseline_stays_in_the_run_and_answers(run, images):
    found = run.predict(images / "left" / "left2.png", baseline=True, alternatives=1)
    assert found.text == "left"
    assert len(found.details["alternatives"]) == 1
    assert found.confidence != run.predict(images / "left" / "left2.png").confidence


def test_an_explanation_knows_the_patches_that_matter(run, images):
    found = run.explain(images / "left" / "left2.png", method="occlusion")
    assert len(found.pieces) == 16
    grid = found.image.grid(found.influence[0])
    assert grid[:, :2].sum() > grid[:, 2:].sum()  # the bright half speaks for `left`
    looked = found.image.looked_at(found.attention[0])
    weights = found.attention[0].weights.mean(0)[0, 1:]
    assert torch.allclose(looked.flatten(), weights)
    with pytest.raises(GlassformerError, match="leave out the unit"):
        run.explain(images / "left" / "left2.png", unit="word")


def test_attention_without_a_class_token_is_that_of_all_patches():
    weights = torch.rand(2, 6, 6)
    names = tuple("abcdef")
    shown = Shown(pixels=torch.zeros(4, 6, 1, dtype=torch.uint8), rows=2, columns=3)
    found = shown.looked_at(AttentionMap(name="x", queries=names, keys=names, weights=weights))
    assert torch.allclose(found, weights.mean((0, 1)).reshape(2, 3))


@pytest.mark.parametrize("coloured", [False, True])
def test_a_wide_image_is_drawn_small_enough_to_stand_beside_its_patches(coloured):
    pixels = torch.zeros(30, 90, 3, dtype=torch.uint8)
    drawn = image_terminal.pixels_of(Shown(pixels=pixels, rows=2, columns=8), coloured=coloured)
    assert {line.cell_len for line in drawn.split()} == {28}


def test_an_image_is_explained_in_every_view(run, images, tmp_path, capsys):
    command = ["explain", str(run.folder.path), str(images / "left" / "left2.png")]
    assert main([*command, "--method", "occlusion"]) == 0
    shown = capsys.readouterr().out
    assert "image" in shown
    assert "for left" in shown
    assert "##" in shown
    assert "all layers, all heads" in shown
    for name in ("a.png", "a.html", "a.json"):
        assert main([*command, "--method", "occlusion", "--out", str(tmp_path / name)]) == 0
    assert Image.open(tmp_path / "a.png").width > 500
    assert json.loads((tmp_path / "a.json").read_text())["grid"] == [4, 4]
    assert '"rows": 4' in (tmp_path / "a.html").read_text()
