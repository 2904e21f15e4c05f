"""The page of an explanation: what it holds, packed; whose text never becomes markup."""

import base64
import html
import io
import json
import re
import wave
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from explained import EVERY, HOSTILE, attention, review, transcript, translation

from glassformer.explaining.parts import Target
from glassformer.explaining.views import packing
from glassformer.explaining.views.packing import (
    as_wav,
    packed_attention,
    packed_influence,
    packed_sound,
)
from glassformer.explaining.views.page import SCRIPTS, embedded


def unpacked(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


def data_of(page):
    [found] = re.findall(r'<script type="application/json" id="explanation">(.*?)</script>', page)
    return json.loads(found)


def dense(layer, heads, queries, keys):
    """The weights that the scripts of a page unpack."""
    scales, counts = (unpacked(layer[name], "<u2") for name in ("scales", "counts"))
    places, levels = (unpacked(layer[name], "<u2") for name in ("places", "levels"))
    found, at = np.zeros((heads * queries, keys)), 0
    for row, count in enumerate(counts):
        found[row, places[at : at + count]] = (
            levels[at : at + count] / 65_535 * scales[row] / 65_535
        )
        at += count
    return torch.from_numpy(found.reshape(heads, queries, keys)).float()


# What is packed


def test_influence_survives_packing_exactly():
    influence = torch.randn(3, 11)
    assert unpacked(packed_influence(influence), "<f4").tolist() == influence.flatten().tolist()


def test_attention_survives_packing():
    one = attention("encoder.blocks.0.attention", "abcdefg", "hijkl", heads=3)
    found = packed_attention([one])
    [group] = found["groups"]
    assert (group["queries"], group["keys"]) == (list("abcdefg"), list("hijkl"))
    torch.testing.assert_close(dense(group["layers"][0], 3, 7, 5), one.weights, atol=2e-5, rtol=0)
    assert found["strongest"] is None


def test_of_much_attention_the_strongest_weights_are_kept_and_the_page_says_so(monkeypatch):
    tokens = [f"t{n}" for n in range(53)]
    one = attention("encoder.blocks.0.attention", tokens, tokens, heads=2, sharp=1.0)
    monkeypatch.setattr(packing, "MOST_BYTES", 4 * 7 * 2 * 53)
    found = packed_attention([one])
    assert found["strongest"] == 7
    kept = dense(found["groups"][0]["layers"][0], 2, 53, 53)
    torch.testing.assert_close(kept.amax(-1), one.weights.amax(-1), atol=1e-4, rtol=0)
    assert (kept > 0).sum(-1).max() == 7
    monkeypatch.setattr(packing, "MOST_BYTES", 1000)
    [note] = data_of(replace(review(), attention=(one,)).as_page())["notes"]
    assert note.startswith("Attention is shown for the 4 strongest weights of each token")


def test_the_page_of_a_long_input_stays_small():
    tokens = [f"token{n}" for n in range(600)]
    maps = tuple(
        attention(f"encoder.blocks.{n}.attention", tokens, tokens, heads=4, sharp=0.1)
        for n in range(3)
    )
    size = len(replace(review(), attention=maps).as_page())
    assert size < 4.5e6


def test_layers_are_grouped_by_what_they_connect_and_cross_attention_is_shown_first():
    found = packed_attention(translation().attention)
    titles = [
        (group["title"], [one["number"] for one in group["layers"]]) for group in found["groups"]
    ]
    assert titles == [("cross-attention", [0, 1]), ("encoder", [0]), ("decoder", [0])]
    assert (found["group"], found["layer"], found["head"]) == (0, None, None)
    assert packed_attention(translation().attention[::-1])["group"] == 2


def test_a_recording_is_a_wav_file_that_does_not_clip():
    with wave.open(io.BytesIO(as_wav(np.array([0.1, -0.2, 0.05], np.float32), 8000))) as file:
        assert (file.getframerate(), file.getnframes(), file.getsampwidth()) == (8000, 3, 2)
        assert np.frombuffer(file.readframes(3), "<i2").tolist() == [16_000, -32_000, 8_000]


def test_a_recording_that_chromium_would_not_play_is_a_copy_that_it_does():
    time = np.arange(2000) / 2000
    tone = np.sin(2 * np.pi * 440 * time).astype(np.float32)
    with wave.open(io.BytesIO(as_wav(tone, 2000))) as file:
        assert (file.getframerate(), file.getnframes()) == (16_000, 16_000)
        copy = np.frombuffer(file.readframes(16_000), "<i2") / 32_000
    heard = np.abs(np.fft.rfft(copy))
    assert heard.argmax() == 440
    np.testing.assert_allclose(copy[::8], tone, atol=0.02)


def test_symbols_that_ctc_finds_nowhere_are_left_out_but_the_blank_is_not():
    sound = transcript().sound
    found = packed_sound(sound)
    assert found["symbols"][0] == ""
    assert {*found["symbols"]} == {"", *"seventhri"}  # the space is likely nowhere
    posteriors = unpacked(found["posteriors"], "u1").reshape(60, -1)
    assert posteriors[:, 0].max() == round(0.95 * 255)


def test_attention_over_a_sound_is_drawn_over_time():
    explanation = transcript()
    [group] = packed_attention(explanation.attention, explanation.sound)["groups"]
    assert group["timed"]
    assert not packed_attention(explanation.attention)["groups"][0]["timed"]


def test_a_long_recording_is_cut_and_the_page_says_so(monkeypatch):
    explanation = transcript()
    monkeypatch.setattr(packing, "MOST_SECONDS", 1.0)
    found = packed_sound(explanation.sound)
    assert (found["seconds"], found["cut"]) == (1.0, True)
    assert len(unpacked(found["spectrogram"], "u1")) == 100 * 40
    [note] = data_of(explanation.as_page())["notes"]
    assert note.endswith("seconds of the recording are shown.")


# The file


@pytest.mark.parametrize("name", EVERY)
def test_a_page_is_one_file_that_may_fetch_nothing(name):
    page = EVERY[name]().as_page()
    assert "http:" not in page.replace("http://www.w3.org/2000/svg", "")  # the name of SVG
    assert "https:" not in page
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_text_cannot_end_the_element_that_holds_it():
    hostile = replace(
        review(),
        answer=HOSTILE,
        pieces=(HOSTILE,),
        targets=(Target(text=HOSTILE, probability=0.5),),
        influence=torch.ones(1, 1),
    )
    page = hostile.as_page()
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "<!--" not in page
    assert data_of(page)["pieces"] == [HOSTILE]
    assert embedded({"a": "\ud800</"}).count("<") == 0


def test_a_notebook_shows_the_page_in_a_frame_that_cannot_reach_it():
    explanation = review()
    frame = explanation._repr_html_()
    [inner] = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(inner) == explanation.as_page()
    assert 'sandbox="allow-scripts"' in frame
    assert repr(explanation) == "<Explanation of 'positive' (0.93) by integrated gradients>"


def test_json_has_the_same_numbers():
    values = json.loads(json.dumps(transcript().as_values()))
    assert values["targets"][0]["time"] == [0.2, 0.7]
    assert len(values["sound"]["posteriors"]) == 60
    assert np.shape(values["influence"]) == (3, 24)


def test_the_files_of_the_page_are_part_of_the_package():
    folder = files("glassformer.explaining.views.page")
    assert all(folder.joinpath(name).is_file() for name in ("page.html", "page.css", *SCRIPTS))
    scripts = {path.name for path in Path(str(folder)).glob("*.js")}
    assert scripts == {*SCRIPTS, "start.js"}
