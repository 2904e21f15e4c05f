"""Files of many images, folders of images, sizes, and what training changes."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from glassformer.data.catalog import CATALOG, pictures
from glassformer.data.images import augment
from glassformer.data.images.bundles import cifar_records, image_in, is_bundle, read_idx
from glassformer.data.images.fitting import fitted
from glassformer.data.images.layouts import read_images
from glassformer.errors import GlassformerError
from glassformer.tasks.recognise.data import RecogniseSchema


def idx_of(array):
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return head + array.astype(np.uint8).tobytes()


def write_mnist(folder, count=5):
    images = np.arange(count * 6).reshape(count, 2, 3)
    folder.mkdir(parents=True, exist_ok=True)
    for start in ("train", "t10k"):
        path = folder / f"{start}-images-idx3-ubyte.gz"
        path.write_bytes(gzip.compress(idx_of(images)))
        (folder / f"{start}-labels-idx1-ubyte").write_bytes(idx_of(np.arange(count) % 3))
    return images


def test_idx_files_are_read_compressed_or_not(tmp_path):
    images = write_mnist(tmp_path)
    rows = list(read_images(tmp_path))
    assert [row["label"] for row in rows[:5]] == ["0", "1", "2", "0", "1"]
    assert {row["split"] for row in rows} == {"train", "test"}
    path = tmp_path / "train-images-idx3-ubyte.gz"
    assert is_bundle(path)
    assert (image_in(path, 3)[..., 0] == images[3]).all()
    with pytest.raises(GlassformerError, match="#5: has 5 images; give a number from 0 to 4"):
        image_in(path, 5)


def test_idx_files_are_found_from_any_folder(tmp_path, monkeypatch):
    write_mnist(tmp_path / "digits")
    monkeypatch.chdir(tmp_path)
    rows = list(read_images(Path("digits")))
    sample, fault = RecogniseSchema().sample(rows[0], {"path": "path", "number": "number"})
    assert fault == ""
    assert sample["path"] == str(tmp_path / "digits" / "train-images-idx3-ubyte.gz")


def test_a_damaged_idx_file_is_refused(tmp_path):
    path = tmp_path / "x-idx3-ubyte"
    for content in (b"", b"\0\0\x0d\x03", idx_of(np.zeros((2, 2, 2)))[:-1]):
        path.write_bytes(content)
        with pytest.raises(GlassformerError, match="not a complete IDX file"):
            read_idx(path, axes=3)
    write_mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_of(np.arange(4)))
    with pytest.raises(GlassformerError, match=r"has 4 labels, but .* has 5 images"):
        list(read_images(tmp_path))


def test_mnist_and_cifar_are_read_as_published(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSFORMER_DATA", str(tmp_path))
    write_mnist(tmp_path / "mnist")
    assert len(list(CATALOG["mnist"].rows())) == 10
    record = bytes([3]) + bytes(range(256)) * 12
    monkeypatch.setattr(pictures, "unpacked", lambda archive, suffix: tmp_path)
    (tmp_path / "cifar10").mkdir()
    (tmp_path / "cifar10" / pictures.CIFAR_ARCHIVE).write_bytes(b"")
    for name in pictures.CIFAR_FILES:
        (tmp_path / name).write_bytes(2 * record)
    rows = list(CATALOG["cifar10"].rows())
    assert len(rows) == 12
    assert rows[-1].values["label"] == "cat"
    assert rows[-1].values["split"] == "test"
    image = image_in(tmp_path / "test_batch.bin", 1)
    assert image.shape == (32, 32, 3)
    assert image[0, :2].tolist() == [[0, 0, 0], [1, 1, 1]]  # planes of red, green and blue
    (tmp_path / "test_batch.bin").write_bytes(record[:-1])
    with pytest.raises(GlassformerError, match="3,072 bytes, but images of CIFAR take 3,073"):
        cifar_records(tmp_path / "test_batch.bin")


def test_folders_of_splits_hold_folders_of_labels(tmp_path):
    for split in ("train", "test"):
        (tmp_path / split / "cat").mkdir(parents=True)
        Image.new("L", (2, 2)).save(tmp_path / split / "cat" / "1.png")
    rows = {(row["split"], row["label"]) for row in read_images(tmp_path)}
    assert rows == {("train", "cat"), ("test", "cat")}
    assert [*next(read_images(tmp_path / "train" / "cat")).values] == ["path"]
    assert read_images(tmp_path / "train" / "cat" / "..") is not None


def test_folders_without_a_readable_format_say_what_they_hold(tmp_path):
    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        Image.new("RGB", (5, 7)).save(tmp_path / label / "one.bmp")
    with pytest.raises(GlassformerError, match=r"no PNG, .* but files such as cat/one.bmp; conv"):
        read_images(tmp_path)


def test_an_image_covers_its_size_and_is_cut_alike_at_both_ends():
    wide = np.zeros((4, 12, 1), dtype=np.uint8)
    wide[:, 4:8] = 200
    assert (fitted(wide, 4, 4, 1) == 200).all()
    assert fitted(wide, 2, 2, 3).shape == (2, 2, 3)
    red = np.full((2, 2, 3), (255, 0, 0), dtype=np.uint8)
    assert (fitted(red, 2, 2, 1) == 76).all()


def test_a_shift_keeps_the_size_and_repeats_the_border():
    pixels = np.arange(16, dtype=np.uint8).reshape(4, 4, 1)
    seen = {
        augment.shifted(pixels, np.random.default_rng(seed), 1)[..., 0].tobytes()
        for seed in range(60)
    }
    assert len(seen) == 9
    assert np.pad(pixels[..., 0], 1, mode="edge")[:4, :4].tobytes() in seen


def test_a_picture_is_turned_and_scaled_about_its_middle_as_pillow_does_it():
    pixels = np.zeros((13, 29, 1), dtype=np.float32)
    pixels[3:8, 6:17] = 1.0  # wider than high, so that a wrong aspect shows
    several = np.stack([pixels, pixels])
    turned, larger = augment.warped(several, np.array([20.0, 0.0]), np.array([1.0, 1.5]))
    image = Image.fromarray(pixels[..., 0])
    expected = image.rotate(20, resample=Image.Resampling.BILINEAR)
    assert abs(turned[..., 0] - np.asarray(expected)).max() < 1e-4
    middle = (29 / 2 * (1 - 1 / 1.5), 13 / 2 * (1 - 1 / 1.5))
    matrix = (1 / 1.5, 0, middle[0], 0, 1 / 1.5, middle[1])
    expected = image.transform(
        image.size, Image.Transform.AFFINE, matrix, resample=Image.Resampling.BILINEAR
    )
    assert abs(larger[..., 0] - np.asarray(expected)).max() < 1e-4


def test_a_flip_happens_half_of_the_time_and_erasing_as_often_as_asked():
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    rngs = [np.random.default_rng(seed) for seed in range(200)]
    turned = [augment.flipped(pixels, rng) for rng in rngs]
    mirrored = sum((one == pixels[:, ::-1]).all() for one in turned)
    assert 70 < mirrored < 130
    erased = [augment.erased(pixels, rng, 0.25) for rng in rngs]
    assert 30 < sum((one != pixels).any() for one in erased) < 70
    assert (augment.erased(pixels, rngs[0], 0.0) == pixels).all()
