"""Explanations as pictures: words that flow, matrices, sounds; in every script."""

import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
import torch
from explained import EVERY, REVIEWS, gap, review, transcript, translation, words_of

from glassformer.errors import GlassformerError
from glassformer.explaining.parts import Target
from glassformer.explaining.views import pictures
from glassformer.explaining.views.matrix_picture import painted
from glassformer.explaining.views.picture import draw_explanation, heard
from glassformer.explaining.views.selection import select
from glassformer.explaining.views.word_picture import SPACE, flow

pytest.importorskip("matplotlib")


def at(boxes):
    return {box.word: (round(box.x, 3), box.line) for box in boxes}


@pytest.mark.parametrize("name", EVERY)
def test_every_explanation_is_drawn_without_a_warning(name, tmp_path):
    path = tmp_path / "a.png"
    explanation = EVERY[name]()
    if name == "translation":
        explanation = translation(source=tuple("abc"), target=tuple("def"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_explanation(explanation, path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_svg_has_a_box_for_every_word_that_counts(tmp_path):
    path = tmp_path / "a.svg"
    explanation = review()
    draw_explanation(explanation, path)
    text = path.read_text(encoding="utf-8")
    ET.fromstring(text)
    shares = explanation.influence[0] / explanation.influence[0].abs().max()
    assert text.count("fill: #0072b2") == (shares.abs() >= 0.04).sum()  # for one label or another
    assert text.count("fill: #d55e00") == (shares.abs() >= 0.04).sum()


def test_a_line_break_that_was_written_is_drawn(tmp_path):
    drawn = []
    for text in ("\n", ""):
        written = Target(text=text, probability=0.5, alternatives=(("a", 0.1),))
        draw_explanation(replace(gap(), answer=text, targets=(written,)), tmp_path / "a.svg")
        drawn.append((tmp_path / "a.svg").read_text(encoding="utf-8").count("fill: #e69f00"))
    assert drawn == [1, 1]


def test_chosen_attention_is_added(tmp_path):
    tall = []
    for chosen in ({}, {"layer": "1", "head": 0}):
        draw_explanation(review(), tmp_path / "a.svg", **chosen)
        tall.append(float(ET.parse(tmp_path / "a.svg").getroot().get("height")[:-2]))
    assert tall[1] > tall[0] + 100


@pytest.mark.parametrize("language", ["zh", "ar"])
def test_other_scripts_are_drawn_where_there_are_fonts(language, tmp_path):
    try:
        pictures.families_for(REVIEWS[language])
    except GlassformerError as error:
        pytest.skip(str(error))
    draw_explanation(review(language), tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


# Where words stand


def test_words_flow_over_lines_and_spaces_are_kept():
    boxes = flow(["one ", "two", "three ", "four"], [1.0, 1.0, 1.0, 1.0], available=3.2)
    assert at(boxes) == {0: (0, 0), 1: (1 + SPACE, 0), 2: (2 + SPACE, 0), 3: (0, 1)}


def test_a_line_break_starts_a_line():
    assert at(flow(["one\n", "two"], [1.0, 1.0], available=9.0)) == {0: (0, 0), 1: (0, 1)}


def test_a_text_from_right_to_left_starts_at_the_right_and_foreign_words_keep_their_order():
    pieces = words_of("في New York جميل")
    places = at(flow(pieces, [1.0] * 4, available=10.0, leftward=True))
    xs = [places[word][0] for word in range(4)]
    assert xs[0] == 9
    assert xs[3] < xs[1] < xs[2] < xs[0]
    assert xs[2] + 1 + SPACE == pytest.approx(xs[0])


# Colours


def test_large_numbers_are_dark_blue_or_orange_and_zero_is_white():
    found = painted(np.array([[2.0, 0.0, -1.0]]))
    np.testing.assert_allclose(found[0, 0] * 255, (0, 114, 178))
    np.testing.assert_allclose(found[0, 1], 1)
    np.testing.assert_allclose(found[0, 2] * 255, (234, 174.5, 127.5))


# A recording


def test_a_recording_is_drawn_with_its_words_and_the_chosen_head():
    explanation = transcript()
    chosen = select(explanation.attention, head=1)
    found = heard(explanation, explanation.sound, chosen)
    assert found.words[1] == ("three", 0.9, 1.3)
    assert found.attention.shape == (14, 60)
    assert found.influence.shape == (3, 24)
    assert found.note.startswith("occlusion: Better than chance")
    alone = replace(explanation, influence=torch.zeros(3, 5))
    assert heard(alone, alone.sound, None).influence is None
