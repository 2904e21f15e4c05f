"""The page of a recording in a real Chromium: it plays, and everything stands at its time."""

from dataclasses import replace

import pytest
import torch
from browser import CHROMIUM
from explained import transcript
from page_texts import focused, texts

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")


def test_curves_of_ctc_are_filled_down_to_zero(show):
    heard = transcript()
    rising = torch.linspace(0.9, 0.1, len(heard.sound.posteriors))
    posteriors = torch.stack([1 - rising, *[rising / 4] * 4], 1)
    sound = replace(heard.sound, posteriors=posteriors, symbols=("", *"abcd"))
    browser = show(replace(heard, sound=sound))
    areas = browser.ask(
        "[...document.querySelectorAll('.area')].map(e => e.getAttribute('points'))"
    )
    assert len(areas) == 4
    first, *_, last = areas[0].split()
    assert (first, last) == ("0.5,1", f"{len(posteriors) - 0.5},1")
    fills = "[...document.querySelectorAll('.curve')].map(e => getComputedStyle(e).fill)"
    assert {*browser.ask(fills)} == {"none"}


def test_a_word_of_a_recording_plays(show):
    browser = show(transcript())
    browser.ask(
        "new Promise(r => { const a = document.querySelector('audio');"
        "if (a.readyState > 1) r(); else a.oncanplay = r })"
    )
    assert browser.ask("document.querySelector('audio').duration") == pytest.approx(2.4, abs=0.01)
    browser.point(".spoken:nth-child(2)", click=True)
    at = browser.ask("document.querySelector('audio').currentTime")
    assert 0.9 <= at <= 1.4
    assert texts(browser, ".word[aria-checked=true]") == ["three"]


def test_a_word_of_one_frame_is_played_long_enough_to_be_heard(show):
    heard = transcript()
    short = replace(heard.targets[1], time=(1.08, 1.12))
    browser = show(replace(heard, targets=(heard.targets[0], short, heard.targets[2])))
    browser.ask("HTMLMediaElement.prototype.play = () => new Promise(() => {})")
    browser.point(".spoken:nth-child(2)", click=True)
    start = browser.ask("document.querySelector('audio').currentTime")
    assert start == pytest.approx(0.95, abs=0.001)


def test_a_word_of_a_recording_is_chosen_with_the_keyboard_alone(show):
    browser = show(transcript())
    browser.press("Tab")
    assert focused(browser) == "seven, 90 % sure"
    browser.ask("document.querySelector('.sound').focus()")
    browser.press("Tab")
    assert focused(browser) == "Play seven, 0.20 to 0.70 seconds"
    browser.press("ArrowRight", "ArrowRight", " ")
    assert focused(browser) == "Play nine, 1.60 to 2.20 seconds"
    assert texts(browser, ".word[aria-checked=true]") == ["nine"]
    left = browser.ask("parseFloat(document.querySelector('.span').style.left)")
    assert left == pytest.approx(100 * 1.6 / 2.4, abs=0.01)


def test_names_of_lanes_stand_beside_the_recording_and_words_are_whole(show):
    browser = show(transcript(), width=390, height=800)
    assert texts(browser, ".lane-name") == ["words", "Hz", "influence", "CTC", "attention"]
    right = (
        "[...document.querySelectorAll('.side-names')].map(e => e.getBoundingClientRect().right)"
    )
    left = (
        "[...document.querySelectorAll('.over, .track')].map(e => e.getBoundingClientRect().left)"
    )
    assert max(browser.ask(right)) <= min(browser.ask(left)) + 0.5
    cut = "[...document.querySelectorAll('.spoken')].some(e => e.scrollWidth > e.clientWidth)"
    assert not browser.ask(cut)
    assert "blank" in texts(browser, ".legends")[0]
