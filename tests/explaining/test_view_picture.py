"""Explanations as pictures: words that flow, matrices, sounds; in every script."""

import warnings
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from explained import (
    EVERY,
    REVIEWS,
    attention,
    gap,
    review,
    story,
    transcript,
    translation,
    words_of,
)

from glassformer.errors import GlassformerError
from glassformer.explaining.parts import Target
from glassformer.explaining.views import blocks, hearing_picture, pictures
from glassformer.explaining.views.blocks import MARGIN, WIDTH, Block, Fonts, beside
from glassformer.explaining.views.matrix_picture import frame_of, painted
from glassformer.explaining.views.picture import draw_explanation
from glassformer.explaining.views.selection import select
from glassformer.explaining.views.sound_picture import heard
from glassformer.explaining.views.table_picture import SIZE, table_block
from glassformer.explaining.views.word_picture import SPACE, flow
from glassformer.explaining.views.wording import percent

to_hex = pytest.importorskip("matplotlib.colors").to_hex


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


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """Draws an explanation without saving it: what the picture says, and hues of its boxes."""
    figures = []
    for module in (blocks, hearing_picture):
        monkeypatch.setattr(module, "save_picture", lambda figure, path: figures.append(figure))

    def drawn(explanation, **chosen):
        draw_explanation(explanation, tmp_path / "a.png", **chosen)
        figure = figures.pop()
        texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
        hues = Counter(to_hex(box.get_facecolor()) for axes in figure.axes for box in axes.patches)
        return {text.get_text() for text in texts}, hues

    return drawn


def test_neighbours_are_drawn_without_the_folders_they_come_from(drawn):
    said, _ = drawn(review())
    assert {"Nearest training rows", "train.csv, row 131", "A wonderful, quiet little film.",
            "0.93"} <= said  # fmt: skip
    said, _ = drawn(replace(transcript(), neighbours=review().neighbours))
    assert "0.88 negative (train.csv, row 7002)" in said
    assert "Nearest training rows" not in drawn(gap())[0]


@pytest.mark.parametrize("kind", [review, gap, transcript])
def test_notes_are_drawn(kind, drawn):
    said, _ = drawn(replace(kind(), neighbours=(), notes=("Only the first part was read.",)))
    assert "Only the first part was read." in said


def test_labels_that_are_not_drawn_are_named(drawn):
    targets = tuple(Target(text=f"label{n}", probability=0.5 ** (n + 1)) for n in range(5))
    influence = torch.rand(5, len(review().pieces))
    said, _ = drawn(replace(review(), targets=targets, influence=influence))
    assert {"label0", "label2", "Less likely: label3 6.3 %, label4 3.1 %"} <= said
    assert not any(text.startswith("Less likely") for text in drawn(review())[0])


def test_a_long_neighbour_is_cut_to_its_line(drawn):
    long = replace(review().neighbours[0], text="wonderful " * 40)
    [found] = [
        text
        for text in drawn(replace(review(), neighbours=(long,)))[0]
        if text.startswith("wonderful wonderful")
    ]
    assert found.endswith("…")
    assert 30 < len(found) < 110


def test_a_method_without_a_sign_has_one_colour_and_says_what_it_means(drawn):
    explanation = review()
    unsigned = replace(
        explanation, method="rollout", signed=False, influence=explanation.influence.abs()
    )
    said, hues = drawn(unsigned)
    assert any(text.endswith("not whether that spoke for or against.") for text in said)
    words = (explanation.influence[0].abs() >= 0.04 * explanation.influence.abs().max()).sum()
    assert hues == {"#007a5c": words}  # once, since all labels have the same


def test_each_word_that_was_written_has_its_probability_and_its_alternatives(drawn):
    said, _ = drawn(story())
    assert {"sure", "alternatives", percent(story().targets[0].probability)} <= said
    assert sum(text.startswith("is ") for text in said) > 10
    bare = [replace(target, alternatives=((target.text, 0.9),)) for target in story().targets]
    assert "alternatives" not in drawn(replace(story(), targets=tuple(bare)))[0]


def test_what_a_large_matrix_leaves_out_is_said(drawn):
    many = tuple(f"w{n} " for n in range(97))
    long = replace(story(), pieces=many, influence=torch.rand(16, 97), attention=())
    assert any("the first 80 words" in text for text in drawn(long)[0])
    assert not any("the first 80 words" in text for text in drawn(story())[0])


@pytest.mark.parametrize("kind", [review, translation])
def test_an_empty_explanation_says_so(kind, drawn):
    nothing = replace(
        kind(), given="", pieces=(), influence=torch.zeros(2, 0), attention=(), neighbours=(),
        targets=kind().targets[:2] if kind is review else (),
    )  # fmt: skip
    assert "There was nothing to explain." in drawn(nothing)[0]


def test_columns_run_as_their_script_does():
    names = [["Good", "morning"], ["صباح", "الخير", "!"]]
    fonts = Fonts(["DejaVu Sans"])
    leftward, rightward = frame_of(names, fonts), frame_of([names[1], names[0]], fonts)
    assert leftward.column(0) > leftward.column(1) > leftward.column(2) > leftward.start == 0
    assert rightward.start < rightward.column(0) < rightward.column(1)


def test_columns_of_blocks_stand_side_by_side_only_where_they_fit():
    narrow, wide = (Block(height=1.0, draw=lambda axes: None, width=w) for w in (3.0, 9.0))
    [row] = beside([narrow], [narrow, narrow])
    assert row.height > 2
    assert beside([narrow], [wide, narrow]) == [narrow, wide, narrow]


@pytest.mark.parametrize(("text", "shown"), [("\n", "↵"), ("", "∅")])
def test_a_line_break_that_was_written_is_drawn(drawn, text, shown):
    written = Target(text=text, probability=0.5, alternatives=(("a", 0.1),))
    said, hues = drawn(replace(gap(), answer=text, targets=(written,)))
    assert shown in said
    assert hues["#e69f00"] == 1


def test_chosen_attention_is_added(drawn):
    title = "Self-attention, layer 1, head 0"
    named = replace(review(), attention=(attention("blocks.1.attention", "abc", "abc"),))
    assert title not in drawn(named)[0]
    assert title in drawn(named, layer="1", head=0)[0]


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
    unsigned = painted(np.array([[2.0, 0.0]]), signed=False)
    np.testing.assert_allclose(unsigned[0] * 255, ((0, 122, 92), (255, 255, 255)))


# A recording


def test_a_recording_is_drawn_with_its_words_and_the_chosen_head():
    explanation = transcript()
    chosen = select(explanation.attention, head=1)
    found = heard(explanation, explanation.sound, chosen)
    assert found.words[1] == ("three", 0.9, 1.3)
    assert found.attention.shape == (14, 60)
    assert found.influence.shape == (3, 24)
    assert found.notes[0].startswith("occlusion: Better than chance")
    assert found.targets == ["seven", "three", "nine"]
    alone = replace(explanation, influence=torch.zeros(3, 5))
    assert heard(alone, alone.sound, None).influence is None


def test_the_cells_of_a_table_stand_in_columns_and_are_wrapped_where_they_are_too_wide():
    lines, drawn = [["head", "reason"], ["0.1", "because " * 40], ["0.2", "none"]], []
    fonts = Fonts.for_texts(*(text for line in lines for text in line))
    axes = SimpleNamespace(text=lambda x, y, text, **style: drawn.append((text, x, y)))
    table_block(lines, fonts).draw(axes)
    x, y = ({text: place[axis] for text, *place in drawn} for axis in (0, 1))
    assert x["head"] == x["0.1"] == x["0.2"] == 0
    assert x["reason"] == x["none"] > fonts.width("head", SIZE)
    wrapped = [(text, high) for text, _, high in drawn if text.startswith("because")]
    assert len(wrapped) > 1
    assert all(
        x["none"] + fonts.width(text, SIZE) < WIDTH - 2 * MARGIN + 0.1 for text, _ in wrapped
    )
    assert y["reason"] > max(high for _, high in wrapped)
    assert y["none"] < min(high for _, high in wrapped)
