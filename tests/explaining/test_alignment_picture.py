"""Alignments drawn: in the terminal, cell by cell, and as pictures, in fonts that have them."""

import shutil
import warnings
from pathlib import Path

import pytest
import torch
from rich.cells import cell_len

from glassformer.errors import GlassformerError
from glassformer.explaining.alignment import Alignment
from glassformer.explaining.views import alignment_picture, pictures
from glassformer.explaining.views.alignment_picture import centres, draw_alignment
from glassformer.explaining.views.alignment_terminal import alignment_text
from glassformer.explaining.views.pictures import check_picture, families_for

MORNING = Alignment(
    ("早上", "好", "！"),
    ("Good", "morning", "!"),
    torch.tensor([[0.1, 0.5, 0.0], [0.5, 0.0, 0.1], [0.0, 0.0, 0.3]]),
)
LATIN = Alignment(("new", "$x$ <b>"), ("neu",), torch.tensor([[0.9, 0.1]]))
ONLY_IN_STIX = "\N{LATIN SMALL LETTER D WITH PALATAL HOOK}"


def drawn(alignment, width=80):
    return [line.rstrip() for line in alignment_text(alignment, width).plain.split("\n")]


# In the terminal


def test_columns_are_as_wide_as_their_words_on_the_screen():
    lines = drawn(MORNING)
    assert lines == [
        "         早上 好 ！",
        "Good     ···· ██",
        "morning  ████    ··",
        "!                ▒▒",
    ]
    above = alignment_text(MORNING).plain.split("\n")
    assert len({cell_len(line) for line in above}) == 1


def test_columns_that_do_not_fit_go_on_below():
    lines = drawn(MORNING, width=17)
    assert lines[0].split() == ["早上", "好"]
    assert lines[5].split() == ["！"]
    assert lines[6:] == ["Good", "morning  ··", "!        ▒▒"]
    assert all(cell_len(line) <= 17 for line in lines)


def test_the_brightest_cell_is_the_strongest_look():
    text = alignment_text(Alignment(("a",), ("b", "c"), torch.tensor([[0.60], [0.36]])))
    assert text.plain.split("\n")[1:] == ["b  █", "c  ▒"]
    assert "#ffd166" in {str(span.style) for span in text.spans}


def test_looking_at_all_words_alike_stays_pale_and_a_strong_look_among_many_does_not():
    even = Alignment(tuple("abcdefgh"), ("x",), torch.full((1, 8), 1 / 8))
    assert drawn(even)[1].split()[1:] == ["░"] * 8
    weights = torch.full((1, 40), 0.02)
    weights[0, 3] = 0.2
    strong = Alignment(tuple("a" * 40), ("x",), weights)
    assert strong.strengths.amax() == 1


def test_words_cannot_command_a_terminal_and_are_cut_where_they_are_long():
    strange = Alignment(("\x1b[31m", "长" * 30), ("x",), torch.tensor([[1.0, 0.0]]))
    head = drawn(strange)[0].split()
    assert head[0] == "\\x1b[31m"
    assert head[1].endswith("长…")
    assert cell_len(head[1]) <= 16


def test_nothing_is_drawn_of_nothing():
    assert drawn(Alignment((), (), torch.zeros(0, 0))) == [""]


# As a picture


class Axes:
    """Takes down the lines that are drawn."""

    def __init__(self):
        self.lines = {}

    def plot(self, xs, ys, *, alpha, linewidth, color):
        self.lines[tuple(xs)] = (ys, alpha, linewidth)


def test_every_look_is_a_line_from_the_answer_up_to_the_source_as_dark_as_it_is_strong():
    axes = Axes()
    alignment_picture.draw_links(axes, MORNING, above=[1.0, 2.0, 3.0], below=[10.0, 20.0, 30.0])
    shades = {ends: (round(alpha, 3), ys) for ends, (ys, alpha, _) in axes.lines.items()}
    assert shades == {
        (10, 1): (0.2, [0, 1]),
        (10, 2): (1.0, [0, 1]),
        (20, 1): (1.0, [0, 1]),
        (20, 3): (0.2, [0, 1]),
        (30, 3): (0.6, [0, 1]),
    }
    assert axes.lines[10, 2][2] > axes.lines[10, 1][2]


def test_words_stand_around_the_middle_and_do_not_overlap():
    at, cells = centres(["早上好", "a", "bcd"])
    assert cells == (6 + 3) + (1 + 3) + (3 + 3)
    assert at == [-9.5 + 4.5, -9.5 + 9 + 2, -9.5 + 13 + 3]


@pytest.mark.parametrize(
    ("suffix", "begins"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")]
)
def test_a_picture_is_drawn(tmp_path, suffix, begins):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"picture{suffix}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_alignment(LATIN, path)
    assert path.read_bytes().startswith(begins)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_what_cannot_be_drawn_to_is_refused(tmp_path, monkeypatch):
    for path, told in [
        (tmp_path / "a.jpeg", "a picture must end in .png, .svg, .pdf, got"),
        (tmp_path / "none" / "a.png", "none: no such folder for the picture; create it first"),
    ]:
        with pytest.raises(GlassformerError, match=told):
            check_picture(path)
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    told = r"needs matplotlib, .* pip install 'glassformer\[pictures\]'"
    with pytest.raises(GlassformerError, match=told):
        check_picture(tmp_path / "a.png")


# Fonts


@pytest.fixture
def manager():
    return pytest.importorskip("matplotlib.font_manager")


def test_the_usual_font_is_enough_for_what_it_has(manager, monkeypatch):
    monkeypatch.setattr(manager, "findSystemFonts", list)
    assert families_for("Straße, ёж и λ") == [pictures.DEFAULT]


def test_a_font_of_the_system_is_found_by_its_characters(manager, monkeypatch, tmp_path):
    own = Path(manager.findfont(pictures.DEFAULT)).parent
    other = shutil.copy(own / "STIXGeneral.ttf", tmp_path / "Other-Regular.ttf")
    broken = tmp_path / "Broken-Regular.ttf"
    broken.write_bytes(b"no font")
    monkeypatch.setattr(manager, "findSystemFonts", lambda: [str(broken), str(other)])
    assert families_for(f"a{ONLY_IN_STIX}") == [pictures.DEFAULT, str(other)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a character that it cannot draw
        draw_alignment(Alignment((ONLY_IN_STIX,), ("d",), torch.ones(1, 1)), tmp_path / "a.png")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("早上好", "has 上好早; install one that does, such as Noto Sans CJK (fonts-noto-cjk)"),
        ("𐎀", "has 𐎀; install one that does, such as Noto Sans (fonts-noto)"),
    ],
)
def test_a_missing_font_is_named(manager, monkeypatch, text, told, tmp_path):
    monkeypatch.setattr(manager, "findSystemFonts", list)
    with pytest.raises(GlassformerError) as error:
        draw_alignment(Alignment((text,), ("x",), torch.ones(1, 1)), tmp_path / "a.png")
    assert str(error.value).endswith(told)
    assert not list(tmp_path.iterdir())
