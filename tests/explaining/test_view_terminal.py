"""Explanations in the terminal: coloured, readable without colours, as wide as the terminal."""

import io
from dataclasses import replace

import pytest
import torch
from explained import EVERY, gap, review, story, transcript, translation
from rich.cells import cell_len
from rich.text import Text

from glassformer.errors import GlassformerError
from glassformer.explaining.parts import AttentionMap, Target
from glassformer.explaining.views.flow import Flow, listed
from glassformer.explaining.views.selection import grouped, select
from glassformer.explaining.views.terminal import ExplanationView
from glassformer.explaining.views.wording import alternatives_of
from glassformer.terminal import Terminal


def shown(explanation, *, width=80, coloured=False, **chosen):
    """The lines that a terminal shows."""
    file = io.StringIO()
    colours = {"color_system": "truecolor", "force_terminal": True} if coloured else {}
    terminal = Terminal(file=file, width=width, no_color=not coloured, **colours)
    terminal.print(ExplanationView(explanation=explanation, **chosen))
    return [line.rstrip() for line in file.getvalue().split("\n")]


def test_without_colours_marks_tell_what_speaks_for_and_against_a_label():
    lines = shown(review())
    assert lines[0].split()[:3] == ["positive", "93", "%"]
    assert lines[0].count("█") == 22
    text = " ".join(lines)
    assert "A [quiet,]+ [wonderful]+++ film: the two" in text
    assert "[dull,]−−−" in text
    assert "for positive: wonderful +0.36, superb, +0.33, moved +0.18" in text
    assert "; against: dull, −" in text
    assert "integrated gradients: Better than chance by 0.21 [0.18, 0.24]" in text
    assert "0.93  positive  A wonderful, quiet little film.  train.csv, row 131" in text


def test_what_was_not_seen_in_training_is_marked_and_no_answer_is_said_first():
    strange = replace(review(), strange=(1, 2), reason="no word was seen")
    for coloured in (False, True):
        lines = shown(strange, coloured=coloured)
        assert "No answer: no word was seen. Below is the model's guess." in lines[0]
        assert "not seen in training, marked ?: quiet,, wonderful" in "\n".join(lines)
    assert "[quiet,]+? [wonderful]+++? film:" in " ".join(shown(strange))


def test_with_colours_words_are_blue_and_orange_and_have_no_marks():
    text = "\n".join(shown(review(), coloured=True))
    assert "[wonderful]" not in text
    assert "48;2;0;114;178mwonderful" in text
    assert "48;2;191;84;0mdull," in text


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("name", EVERY)
def test_every_explanation_fits_the_terminal(name, width):
    assert max(map(cell_len, shown(EVERY[name](), width=width))) <= width


def test_wide_characters_fit_it_too():
    assert max(map(cell_len, shown(review("zh"), width=40))) <= 40


@pytest.mark.parametrize("width", [20, 23, 31])
def test_no_number_stands_in_another_line_than_its_word(width):
    parts = ["returns 4.9 %", "早上 12 %", "a 3.0 %", "dictionary 0.8 %"]
    file = io.StringIO()
    Terminal(file=file, width=width).print(Flow(listed([Text(part) for part in parts])))
    lines = file.getvalue().splitlines()
    assert [part for line in lines for part in line.rstrip(", ").split(", ")] == parts
    assert len(lines) < len(parts)


def test_no_mark_stands_in_another_line_than_its_word():
    lines = shown(review("zh"), width=41)
    assert not any(line.startswith(("]", "−", "+")) for line in lines)


def test_line_breaks_that_count_can_be_seen():
    explanation = replace(
        gap(), pieces=("One", "\n", "\n  ", "two"), influence=torch.tensor([[0.1, 0.9, -0.5, 0.0]])
    )
    lines = shown(explanation)
    place = lines.index("One[↵]+++")
    assert lines[place + 1 : place + 3] == ["[↵␣␣]−−", "two"]


def test_another_line_break_is_an_alternative():
    others = (("\n", 0.5), ("\n\n", 0.2), (" a", 0.1))
    target = Target(text="\n", probability=0.5, alternatives=others)
    assert alternatives_of(target, 4) == ["↵↵ 20 %", "a 10 %"]


def test_a_translation_shows_alternatives_reasons_and_attention():
    lines = shown(translation())
    assert lines[0] == "Good morning ! Did you sleep well ?"
    [row] = [line for line in lines if line.startswith("morning  86")]
    assert row.split("  ")[1:] == ["86 %", "other 3.0 %, … 1.0 %", "早上 +0.72"]
    at = lines.index("cross-attention, all layers, all heads")
    assert lines[at + 1].split() == ["早上", "好", "！", "你", "睡", "得", "好", "吗", "？"]
    assert lines[at + 3] == "morning  ████"


def test_a_transcript_shows_when_each_word_was_heard():
    text = "\n".join(shown(transcript()))
    assert "three  0.90-1.30  90 %  heaven 4.0 %" in text
    assert "cross" not in text  # attention over time is for pictures


def test_each_token_of_a_story_has_its_alternatives():
    [line] = [line for line in shown(story(), width=120) if line.startswith("operations")]
    assert "is 3.7 %, names 2.5 %, ↵ 1.9 %," in line
    assert line.endswith("two +0.43, statement +0.36, The +0.23, combines +0.18")


def test_how_open_a_choice_was_is_shown_in_bits_and_faint_reasons_are_not():
    told = story()
    targets = [replace(target, entropy=3.14) for target in told.targets]
    influence = torch.zeros_like(told.influence)
    influence[0, :2] = torch.tensor([5.0, 0.01])
    text = "\n".join(shown(replace(told, targets=tuple(targets), influence=influence)))
    assert "bits" in text
    assert text.count(" 3.1 ") == len(targets)
    assert "+5.00" in text
    assert "+0.010" not in text


@pytest.mark.parametrize(
    ("method", "title"), [("rollout", "What it looked at"), ("gradient_norm", "What mattered")]
)
def test_a_method_without_a_sign_speaks_neither_for_nor_against(method, title):
    other = review()
    alike = other.influence.abs()  # the second is the negative of the first
    same = replace(other, method=method, signed=False, influence=alike)
    text = " ".join(shown(same, width=200))
    assert "[wonderful]***" in text
    strongest = other.pieces[int(alike[0].argmax())].strip()
    assert f"{title} for positive, negative: {strongest} {float(alike.max()):.2f}, " in text
    assert "for positive: " not in text.replace(title, "")
    assert "+" not in text
    assert "0;122;92mwonderful" in "".join(shown(same, coloured=True))
    apart = replace(same, influence=alike * torch.tensor([[1.0], [2.0]]))
    assert f"{title} for negative: {strongest} {2 * float(alike.max()):.2f}, " in " ".join(
        shown(apart, width=200)
    )


def test_reasons_against_a_written_word_are_listed_with_those_for_it():
    told = story()
    influence = torch.zeros_like(told.influence)
    influence[0, :3] = torch.tensor([2.0, -5.0, 0.1])
    text = "\n".join(shown(replace(told, influence=influence), width=120))
    assert "import −5.00, The +2.00\n" in text
    assert "influence" in text
    unsigned = replace(told, method="attention", signed=False, influence=influence.abs())
    text = "\n".join(shown(unsigned, width=120))
    assert "looked at" in text
    assert "import 5.00, The 2.00\n" in text


def test_the_text_around_a_gap_is_marked_by_what_speaks_for_its_fill():
    text = " ".join(shown(gap()))
    assert "The [capital]++ of [France]+++ is <mask> , a [city]+ on the [Seine]++ ." in text


def test_attention_of_a_classifier_is_shown_when_it_is_asked_for():
    assert "encoder" not in "\n".join(shown(review()))
    lines = shown(review(), layer="1", head=2)
    assert "encoder, layer 1, head 2" in lines
    assert any(line.startswith("wonderful") for line in lines)


def test_attention_to_a_script_from_right_to_left_is_a_list():
    lines = shown(review("ar"), head=0, width=100)
    at = lines.index("encoder, all layers, head 0")
    weights = torch.stack([one.weights[0] for one in review("ar").attention]).mean(0)[0]
    best = review("ar").attention[0].keys[weights.argmax()]
    assert lines[at + 1].startswith(f"<s>: {best} {100 * weights.max():.0f} %, ")


def test_three_labels_have_a_line_each_and_two_share_one():
    text = "\n".join(shown(review()))
    assert text.count("for positive:") == 1
    assert "for negative:" not in text
    other = review()
    three = replace(
        other,
        targets=(*other.targets, Target(text="mixed", probability=0.1)),
        influence=torch.cat([other.influence, other.influence[:1]]),
    )
    assert "for negative:" in "\n".join(shown(three))


def test_text_cannot_command_the_terminal():
    strange = replace(review(), pieces=("\x1b[31mred",), influence=torch.ones(2, 1))
    assert "[\\x1b[31mred]+++" in "\n".join(shown(strange))


# Which attention


def test_layers_are_grouped_and_averaged():
    explanation = translation()
    assert [(group.name, [*group.layers]) for group in grouped(explanation.attention)] == [
        ("cross", [0, 1]),
        ("encoder", [0]),
        ("decoder", [0]),
    ]
    chosen = select(explanation.attention)
    first, second = (one.weights.mean(0) for one in explanation.attention[:2])
    torch.testing.assert_close(chosen.attention.weights[0], (first + second) / 2)
    one = select(explanation.attention, layer="cross.1", head=3)
    torch.testing.assert_close(one.attention.weights[0], explanation.attention[1].weights[3])
    assert select(explanation.attention, layer="1").title == "cross-attention, layer 1, all heads"


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"layer": "7"}, "there is no layer '7'; choose from cross.0, cross.1, encoder.0, decod"),
        ({"layer": "encoder.1"}, "there is no layer 'encoder.1'; choose from"),
        ({"head": 4}, "there is no head 4; choose from 0 to 3"),
    ],
)
def test_a_layer_or_head_that_is_not_there_is_refused(chosen, told):
    with pytest.raises(GlassformerError) as error:
        select(translation().attention, **chosen)
    assert str(error.value).startswith(told)


def test_a_map_names_every_query_and_key():
    with pytest.raises(ValueError, match="names of 2 queries and 1 keys, but the weights are 1 by"):
        AttentionMap(name="a", queries=("b", "c"), keys=("d",), weights=torch.ones(1, 1, 1))


def test_a_choice_of_no_attention_is_refused():
    assert select(()) is None
    with pytest.raises(GlassformerError, match="has no attention; leave out the layer and head"):
        select((), head=1)
