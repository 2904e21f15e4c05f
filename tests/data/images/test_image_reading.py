"""Any picture is read right, or refused in one line that names it."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from glassformer.data.images import reading
from glassformer.data.images.reading import FORMATS, Picture, read_facts, read_image
from glassformer.errors import GlassformerError

RED, WHITE = (200, 30, 40), (255, 255, 255)


def read(path):
    return read_image(Picture(path=path))


def saved(path, image, **options):
    image.save(path, **options)
    return path


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "webp"])
def test_every_format_is_read(suffix, tmp_path):
    pixels = read(saved(tmp_path / f"a.{suffix}", Image.new("RGB", (7, 5), RED)))
    assert pixels.shape == (5, 7, 3)
    assert np.abs(pixels.astype(int) - RED).max() < 12  # JPEG and WebP lose a little


def test_what_has_no_colours_has_one_channel(tmp_path):
    grey = Image.new("L", (3, 2), 77)
    for name, image in (("l", grey), ("rgb", grey.convert("RGB")), ("one", grey.convert("1"))):
        assert read(saved(tmp_path / f"{name}.png", image)).shape == (2, 3, 1)
    assert (read(tmp_path / "l.png") == 77).all()


def test_sixteen_bits_become_eight_by_their_upper_half(tmp_path):
    wide = np.array([[0, 256, 0x7FFF], [0x8000, 0xFEFF, 0xFFFF]], dtype=np.uint16)
    pixels = read(saved(tmp_path / "wide.png", Image.fromarray(wide)))
    assert pixels[..., 0].tolist() == [[0, 1, 127], [128, 254, 255]]


def test_cmyk_becomes_rgb(tmp_path):
    image = Image.new("RGB", (16, 16), RED).convert("CMYK")
    pixels = read(saved(tmp_path / "print.jpg", image))
    assert np.abs(pixels.astype(int) - RED).max() < 12


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_lies_on_white(mode, tmp_path):
    image = Image.new("RGBA", (4, 4), (*RED, 255))
    image.paste((0, 0, 0, 0), (0, 0, 2, 4))
    pixels = read(saved(tmp_path / "hole.png", image.convert(mode)))
    assert (pixels[:, :2] == 255).all()
    assert (pixels[:, 2:] < 255).any()


def test_a_photo_is_turned_upright(tmp_path):
    image = Image.new("RGB", (6, 4), WHITE)
    image.paste(RED, (0, 0, 6, 1))  # red on top, as the camera was held
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise to see it upright
    pixels = read(saved(tmp_path / "photo.png", image, exif=exif))
    assert pixels.shape == (6, 4, 3)
    assert (pixels[:, -1] == RED).all()


def test_of_an_animation_the_first_frame_is_read(tmp_path):
    frames = [Image.new("RGB", (4, 4), colour) for colour in (RED, WHITE)]
    path = saved(tmp_path / "a.gif", frames[0], save_all=True, append_images=frames[1:])
    assert read_facts(Picture(path=path)).frames == 2
    assert (read(path) == RED).all()


def test_pictures_with_the_same_pixels_have_the_same_content(tmp_path):
    image = Image.new("RGB", (4, 4), RED)
    paths = [saved(tmp_path / name, image) for name in ("a.png", "b.gif")]
    other = saved(tmp_path / "c.png", Image.new("RGB", (2, 8), RED))
    first, second, third = (read_facts(Picture(path=p)).content for p in (*paths, other))
    assert first == second != third


def huge_png(path, side):
    """A valid header of many pixels, in few bytes."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    return path


@pytest.mark.parametrize("side", [9_000, 12_000, 60_000])  # Pillow is silent, warns, or refuses
def test_a_decompression_bomb_is_refused_by_its_header(side, tmp_path):
    with pytest.raises(GlassformerError, match=r"bomb\.png: too many pixels .*; scale it down"):
        read(huge_png(tmp_path / "bomb.png", side))


def broken(tmp_path):
    whole = saved(tmp_path / "whole.png", Image.effect_noise((64, 64), 50)).read_bytes()
    yield "cut.png", whole[: len(whole) // 2], "a damaged image"
    yield "empty.png", b"", "the file is empty; save or fetch it again"
    yield "text.png", b"not an image", f"one of the formats {', '.join(FORMATS)}; convert it"
    yield "page.png", b"%!PS-Adobe-3.0 EPSF-3.0\n", "formats"  # never given to another program


def test_what_cannot_be_read_is_refused_in_one_line(tmp_path):
    for name, content, said in broken(tmp_path):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(GlassformerError, match=rf"{name}: .*{said}") as caught:
            read(tmp_path / name)
        assert "\n" not in str(caught.value)
    with pytest.raises(GlassformerError, match="a folder, not an image"):
        read(tmp_path)
    with pytest.raises(GlassformerError, match="not found"):
        read(tmp_path / "nowhere.png")


def test_without_pillow_it_says_what_to_install(tmp_path, monkeypatch):
    path = saved(tmp_path / "a.png", Image.new("L", (2, 2)))

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(reading, "import_module", missing)
    with pytest.raises(GlassformerError, match=r"pip install 'glassformer\[images\]'"):
        read(path)
