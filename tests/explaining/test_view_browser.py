"""The page in a real Chromium: no error, no request, keys and mouse, light and dark."""

import io
from dataclasses import replace

import pytest
import torch
from browser import CHROMIUM
from explained import EVERY, HOSTILE, gap, review, story, translation, words_of
from page_texts import focused, texts

from glassformer.explaining.parts import Target
from glassformer.explaining.views.selection import select
from glassformer.explaining.views.wording import percent, signed

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
PATIENCE = 50  # pictures taken of a page until it is drawn
PAPER = "getComputedStyle(document.body).backgroundColor"
FAINT = """(() => {  // texts whose contrast with what is behind them is below 4.5
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
    const paper = (e) => getComputedStyle(e).backgroundColor;
    const behind = (e) => e ? [...behind(e.parentElement), paper(e)] : [];
    const painted = (colours) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
        const part = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const [red, green, blue] = canvas.getImageData(0, 0, 1, 1).data;
        return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
    };
    const texts = document.createTreeWalker(document.getElementById("page"), NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) {
        const e = texts.currentNode.parentElement, style = getComputedStyle(e);
        if (!texts.currentNode.data.trim() || !e.checkVisibility()) continue;
        const ink = e.matches("svg *") ? style.fill : style.color;
        const levels = [painted(behind(e)), painted([...behind(e), ink])].sort((a, b) => a - b);
        if ((levels[1] + 0.05) / (levels[0] + 0.05) < 4.5) found.push(e.textContent);
    }
    return found;
})()"""


@pytest.mark.parametrize("name", EVERY)
def test_every_page_opens_on_a_phone_in_light_and_dark_and_fits_it(show, name):
    browser = show(EVERY[name](), width=390, height=800, scheme="dark")
    assert browser.ask("document.documentElement.scrollWidth") <= 390
    assert browser.ask("document.querySelectorAll('section').length") >= 2
    assert browser.ask(PAPER) == "rgb(22, 24, 26)"
    assert browser.ask(FAINT) == []
    browser.prefer("light")
    assert browser.ask(PAPER) == "rgb(253, 253, 251)"
    assert browser.ask(FAINT) == []


def test_hostile_text_stays_text(show):
    hostile = replace(
        review(),
        pieces=(HOSTILE, "fine"),
        answer=HOSTILE,
        targets=(Target(text=HOSTILE, probability=0.5),),
        influence=torch.tensor([[0.5, 0.1]]),
    )
    browser = show(hostile)
    assert texts(browser, "h1 bdi") == [HOSTILE]
    assert browser.ask("document.querySelectorAll('img').length") == 0
    assert texts(browser, ".piece")[0] == HOSTILE.strip()


def test_a_script_from_elsewhere_does_not_run(show):
    browser = show(gap())
    browser.ask(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        "document.body.append(s) })()"
    )
    assert browser.ask("window.ran") is None
    assert any("Content Security Policy" in str(error) for error in browser.errors)
    browser.errors.clear()


def test_words_are_coloured_for_and_against_the_label_that_is_chosen(show):
    browser = show(review())
    every = "[...document.querySelectorAll('.piece')]"
    kind = f"Object.fromEntries({every}.map(e => [e.textContent, e.className]))"
    words = browser.ask(kind)
    assert words["wonderful"] == "piece for"
    assert words["dull,"] == "piece against"
    browser.point(".label:nth-child(2)", click=True)
    words = browser.ask(kind)
    assert words["wonderful"] == "piece against"
    assert words["dull,"] == "piece for"
    assert texts(browser, "h2 bdi") == ["negative"]


@pytest.mark.parametrize(
    ("method", "title", "said"),
    [
        ("rollout", "What it looked at for positive", "How much it was looked at"),
        ("gradient_norm", "What mattered for positive", "How much it mattered"),
    ],
)
def test_a_method_without_a_sign_does_not_speak_for_a_label(show, method, title, said):
    explanation = review()
    browser = show(
        replace(explanation, method=method, signed=False, influence=explanation.influence.abs())
    )
    assert title in texts(browser, "h2")
    assert said in texts(browser, ".legend")[0]
    kinds = browser.ask(
        "[...new Set([...document.querySelectorAll('.piece')].map(e => e.className))]"
    )
    assert sorted(kinds) == ["piece", "piece counts"]
    assert not any("+" in row for row in texts(browser, "details tbody tr"))


def test_numbers_are_rounded_as_in_the_terminal(show):
    shares = (0.125, 0.0295, 0.0225, 0.99996, 0.996, 0.0005, 0.0995, 0.5)
    targets = tuple(Target(text=str(p), probability=p) for p in shares)
    influence = torch.tensor([[0.125, -0.0345, 0.0625, -3e-5, 0.0, 2.675]])
    pieces = words_of("a b c d e f")
    browser = show(
        replace(review(), targets=targets, pieces=pieces, influence=influence.expand(8, 6))
    )
    assert texts(browser, ".label .number") == [percent(p) for p in shares]
    said = texts(browser, "details td.number")
    assert said == [signed(value) for value in influence[0].tolist()]


def test_an_empty_input_is_said_to_be_empty(show):
    empty = replace(review(), given="", pieces=(), influence=torch.zeros(2, 0), attention=())
    assert "There was nothing to explain." in texts(show(empty), "section p")
    assert texts(show(replace(empty, targets=(), answer="")), "h1") == [
        "There was nothing to explain."
    ]


def test_a_label_is_chosen_and_words_are_read_with_the_keyboard_alone(show):
    browser = show(review())
    browser.press("Tab")
    assert focused(browser) == "positive, 93 %"
    browser.press("ArrowDown")
    assert focused(browser) == "negative, 7.0 %"
    assert texts(browser, "[aria-checked=true].label bdi") == ["negative"]
    browser.press("Tab", "ArrowRight", "ArrowRight")
    assert focused(browser).startswith("wonderful, −")
    assert texts(browser, ".readout")[0].startswith("wonderful: −")
    assert browser.ask("document.activeElement.matches(':focus-visible')")


def test_layer_and_head_are_chosen_with_keys_and_the_token_stays(show):
    browser = show(review())
    browser.ask("document.querySelector('.token').focus()")
    browser.press("ArrowRight", "]", "}")
    assert texts(browser, ".token.looking") == ["A"]
    assert texts(browser, ".readout")[1].endswith("(layer 0, head 0)")
    browser.press("[", "{")
    assert texts(browser, ".readout")[1].endswith("(all layers, all heads)")


def test_layer_and_head_are_chosen_in_the_grid(show):
    browser = show(review())
    browser.ask("document.querySelector('.head[aria-checked=true]').focus()")
    browser.press("ArrowDown", "ArrowRight", "ArrowRight")
    assert focused(browser) == "layer 0, head 1"
    browser.point(".head[aria-label='layer 1, head 2']", click=True)
    assert texts(browser, ".readout")[1].endswith("(layer 1, head 2)")


def test_a_token_that_is_pointed_at_shows_what_it_looks_at(show):
    explanation = translation()
    browser = show(explanation)
    browser.point(".looks .tokens:last-child .token:nth-of-type(2)")
    assert texts(browser, ".token.looking") == ["morning"]
    assert texts(browser, "section > div .readout")[-1].startswith("morning looks at 早上 5")
    shares = browser.ask(
        "[...document.querySelectorAll('.looks .tokens:first-of-type .token')]"
        ".map(e => +e.style.getPropertyValue('--share'))"
    )
    assert shares.index(1) == 0
    assert browser.ask("document.querySelectorAll('.link').length") == len(explanation.targets)


def test_the_numbers_on_the_page_are_those_of_the_weights(show):
    explanation = review()
    browser = show(explanation)
    browser.point(".head[aria-label='layer 1, head 2']", click=True)
    browser.point(".tokens .token:nth-of-type(4)")
    row = explanation.attention[1].weights[2, 3]
    said = texts(browser, ".readout")[1]
    tokens = explanation.attention[1].keys
    assert said.startswith(f"wonderful looks at {tokens[row.argmax()]} {100 * row.max():.0f} %")


def test_the_beam_is_stepped_through(show):
    browser = show(translation())
    assert texts(browser, "section table.values caption")[-1] == "Step 8 of 8"
    browser.point("button[aria-label='Previous step']", click=True)
    assert texts(browser, "section table.values caption")[-1] == "Step 7 of 8"
    assert texts(browser, "tr.kept td bdi") == ["Good morning ! Did you sleep well"]
    browser.ask("document.querySelector('input[type=range]').focus()")
    browser.press("ArrowLeft")
    assert texts(browser, "tr.kept td bdi") == ["Good morning ! Did you sleep"]


def test_the_beam_opens_where_the_answer_ended(show):
    explanation = translation()
    longer = tuple(replace(branch, kept=False) for branch in explanation.beam[-1])
    browser = show(replace(explanation, beam=(*explanation.beam, longer)))
    assert texts(browser, "section table.values caption")[-1] == "Step 8 of 9"


def test_a_token_shows_its_alternatives(show):
    explanation = story()
    browser = show(explanation)
    browser.point(".word:nth-of-type(2)", click=True)
    assert texts(browser, ".alternative bdi") == ["two", "is", "names", "↵", "module"]
    sure = f"{100 * explanation.targets[1].probability:.0f} %"
    assert texts(browser, ".alternative .number")[0] == sure


def test_line_breaks_that_count_can_be_seen(show):
    pieces, values = ("One", "\n", "\n  ", "two"), [[0.1, 0.9, -0.5, 0.0]]
    browser = show(replace(gap(), pieces=pieces, influence=torch.tensor(values)))
    assert texts(browser, ".pieces") == ["One↵\n↵␣␣\ntwo"]
    assert texts(browser, ".piece.for") == ["One", "↵"]
    assert texts(browser, ".piece.against") == ["↵␣␣"]
    assert texts(browser, "details th[scope=row]") == ["One", "↵", "↵␣␣", "two"]


def test_a_filled_gap_shows_how_open_the_choice_was(show):
    browser = show(gap())
    assert texts(browser, ".alternatives p") == ["Entropy of the choice: 1.7 bits."]
    assert texts(browser, ".alternative bdi") == ["Paris", "Lyon", "Rouen"]
    assert texts(browser, ".token.looking") == ["<mask>"]


@pytest.mark.parametrize(("language", "way"), [("en", "ltr"), ("zh", "ltr"), ("ar", "rtl")])
def test_a_text_runs_as_its_script_does(show, language, way):
    browser = show(review(language))
    for selector in (".pieces", ".tokens"):
        assert (
            browser.ask(f"getComputedStyle(document.querySelector('{selector}')).direction") == way
        )
    x = browser.ask(
        "[...document.querySelectorAll('.piece')].map(e => e.getBoundingClientRect().x)"
    )
    assert (x[0] < x[1]) == (way == "ltr")
    browser.ask("document.querySelector('.piece').focus()")
    browser.press("ArrowRight" if way == "ltr" else "ArrowLeft")
    assert focused(browser).startswith(f"{review(language).pieces[1].strip()}, ")


def test_the_matrix_of_a_source_from_right_to_left_runs_so_too(show):
    browser = show(translation(source=("صباح", "الخير", "!"), target=("Good", "morning")))
    x = "[...document.querySelectorAll('{}')].map(e => e.getBoundingClientRect().x)"
    for selector in (".looks .tokens:first-of-type .token", ".across span"):
        places = browser.ask(x.format(selector))
        assert sorted(places, reverse=True) == places
    turned = "getComputedStyle(document.querySelector('{} canvas')).transform"
    assert {browser.ask(turned.format(one)) for one in (".matrix", ".heads")} == {
        "matrix(-1, 0, 0, 1, 0, 0)"
    }
    browser.point(".matrix canvas", across=0.95)
    said = browser.ask("document.querySelector('.matrix canvas').title")
    assert said.startswith("morning → صباح: ")


def test_the_weights_of_the_chosen_token_are_a_table(show):
    explanation = translation()
    browser = show(explanation)
    browser.ask("[...document.querySelectorAll('summary')].at(-1).click()")
    browser.settle()
    weights = select(explanation.attention).attention.weights[0, 0].tolist()
    rows = texts(browser, "section:nth-of-type(3) details tbody tr")
    keys = explanation.attention[0].keys
    assert rows == [f"{key}{percent(weight)}" for key, weight in zip(keys, weights, strict=True)]


def test_screen_readers_get_a_table(show):
    explanation = review()
    browser = show(explanation)
    rows = texts(browser, "details table.values tbody tr")
    assert len(rows) == len(explanation.pieces)
    assert rows[2] == f"wonderful+{explanation.influence[0, 2]:.2f}"
    unnamed = browser.ask(
        "[...document.querySelectorAll('button, canvas, audio ~ div, svg[role]')].filter("
        "e => !e.closest('[aria-hidden=true], button') && !e.textContent.trim()"
        " && !e.getAttribute('aria-label')).length"
    )
    assert unnamed == 0


def test_a_notebook_shows_the_page_in_its_frame(show, browser, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8>{review()._repr_html_()}", "utf-8")
    browser.open(path)
    blues = [86, 180, 233], [0, 114, 178]  # in dark and light, of what speaks for the label

    def is_drawn():
        pixels = colours(browser.screenshot(whole=False))
        return any((pixels == blue).all(-1).sum() > 100 for blue in blues)

    assert any(is_drawn() for _ in range(PATIENCE))  # the frame is drawn by a process of its own


def colours(png):
    image = pytest.importorskip("matplotlib.image").imread(io.BytesIO(png), format="png")
    return (image[..., :3] * 255).round().astype(int)


def test_attention_is_drawn_in_the_colours_of_the_scheme(show):
    browser = show(review(), scheme="dark")
    strongest = """(() => {
        const copy = new OffscreenCanvas(30, 30).getContext("2d", {willReadFrequently: true});
        copy.drawImage(document.querySelector(".matrix canvas"), 0, 0);
        const pixels = copy.getImageData(0, 0, 30, 30).data;
        for (let at = 0; at < pixels.length; at += 4)
            if (pixels[at + 3] === 255) return [...pixels.slice(at, at + 3)];
    })()"""
    assert browser.ask(strongest) == [69, 196, 156]
    browser.prefer("light")
    browser.settle()
    assert browser.ask(strongest) == [0, 122, 92]
