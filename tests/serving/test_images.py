"""Images and names of users are served, too; a picture is no way into the server."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from small_images import pixels_of
from small_served import Served, refusal
from test_predictions import close

import glassformer

PATH, EXPLAIN = "/v1/images/recognise", "/v1/images/explain"


def picture(label="left", form="PNG"):
    file = io.BytesIO()
    Image.fromarray(pixels_of(label, np.random.default_rng(5))).save(file, form)
    return file.getvalue()


def bomb(width=60_000, height=60_000):
    """A PNG that says it is huge, and would be."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(bytes(1 << 20))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def upload(server, path, content, name="a.png", model="pictures", **values):
    return server.post(path, files={"file": (name, content)}, data={"model": model, **values})


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_the_label_of_a_picture_is_that_of_predict(served, runs, tmp_path, form):
    [found] = upload(served, PATH, picture(form=form), "../../etc/passwd").json()["data"]
    (tmp_path / "a").write_bytes(picture(form=form))
    own = glassformer.load(runs["pictures"], device="cpu").predict(tmp_path / "a")
    assert found.pop("index") == 0
    assert close(found, own.as_values())


def test_what_a_picture_was_recognised_by_is_explained(served):
    found = upload(served, EXPLAIN, picture(), packed=True).json()
    assert found["prediction"] in ("dark", "left", "right")
    assert found["image"]["pixels"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (bomb(), "too many pixels"),
        (bomb(5000, 5000), "too many pixels"),
        (picture()[:60], "damaged image"),
        (b"", "empty"),
        (b"%PDF-1.4 not a picture", "not an image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not an image"),
    ],
)
@pytest.mark.parametrize("path", [PATH, EXPLAIN])
def test_what_is_no_picture_is_refused_without_a_path(served, content, words, path):
    found = upload(served, path, content)
    assert refusal(found) == (422, "invalid_image")
    assert words in found.json()["error"]["message"]
    assert "/tmp" not in found.text
    assert "glassformer-" not in found.text


def test_a_body_beyond_the_limit_is_refused(runs):
    with Served([runs["pictures"]], limits={"upload": 4096}) as server:
        assert refusal(upload(server, PATH, bytes(9000))) == (413, "body_too_large")


def test_users_are_recommended_what_predict_recommends(served, runs):
    options = {"alternatives": 1, "likes": ["item 2=4.5"]}
    asked = {"model": "ratings", "input": ["u3", "u4"], **options}
    found = served.post("/v1/recommend", asked).json()["data"]
    own = glassformer.load(runs["ratings"], device="cpu").predict(["u3", "u4"], **options)
    for one, other in zip(found, own, strict=True):
        one.pop("index")
        assert close(one, other.as_values())
        assert len(one["items"]) == 2


def test_a_user_that_nobody_knows_is_refused(served):
    found = served.post("/v1/recommend", {"model": "ratings", "input": "/etc/passwd"})
    assert refusal(found) == (422, "invalid_input")
    assert "no user of the training rows" in found.json()["error"]["message"]


def test_runs_say_where_they_take_images_and_names(served):
    forms = {one["id"]: one["paths"] for one in served.get("/v1/models").json()["data"]}
    assert forms["pictures"] == [PATH, EXPLAIN]
    assert forms["ratings"] == ["/v1/recommend"]
