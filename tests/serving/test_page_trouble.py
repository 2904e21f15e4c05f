"""The page of a server that is slow, busy, asks for a key, or stops; and of a run in training."""

import asyncio
import time

import pytest
from browser import CHROMIUM
from small_served import Served
from test_page import DRAWN, ask, click, text_of, texts
from test_training import begun_run, finish, trained_meanwhile

from glassformer.serving import training
from glassformer.serving.errors import RefusedError

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
KEY = "sk-0123456789abcdef"
RETRY = ".notice button"


@pytest.fixture
def page(browser, served):
    browser.open(f"{served.url}/#/reviews")
    browser.until("document.querySelector('textarea')")
    return browser


def refusing(status, **more):
    def refuse(*_):
        raise RefusedError(status, "no", code="no", **more)

    return refuse


def test_a_slow_answer_is_waited_for_calmly(page, served, monkeypatch):
    batcher = served.models.served["reviews"].predictions
    answers = batcher.answers

    async def later(*given):
        await asyncio.sleep(2.2)
        return await answers(*given)

    monkeypatch.setattr(batcher, "answers", later)
    ask(page, "the film was great")
    page.until("document.querySelector('.notice.waiting')")
    assert text_of(page, ".notice.waiting").startswith("Still working…")
    page.until(DRAWN)
    assert text_of(page, ".reply .said") == "good"
    assert not texts(page, ".notice")


@pytest.mark.parametrize(
    ("refuse", "says"),
    [
        (refusing(429, retry_after=1), "The server is busy right now."),
        (refusing(504), "The answer took too long, so the server gave up on it."),
        (refusing(500), "Something went wrong on the server. Its log says more."),
    ],
)
def test_a_refusal_is_said_calmly_and_tried_again(page, served, monkeypatch, refuse, says):
    with monkeypatch.context() as patch:
        patch.setattr(served.gate, "_refuse_beyond", refuse)
        ask(page, "the film was great")
        page.until(f"document.querySelector('{RETRY}')")
        assert text_of(page, ".notice p").startswith(says)
    page.until(f"!document.querySelector('{RETRY}').disabled")
    assert text_of(page, RETRY) == "Try again"
    click(page, RETRY)
    page.until(DRAWN)
    assert text_of(page, ".reply .said") == "good"
    assert not texts(page, ".notice")


def test_a_refused_request_takes_the_answer_before_it_away(page, served, monkeypatch):
    ask(page, "the film was great")
    page.until(DRAWN)
    assert text_of(page, ".reply .asked") == "the film was great"
    monkeypatch.setattr(served.models.served["reviews"].predictions, "answers", refusing(422))
    ask(page, " or dull")
    page.until("document.querySelector('.notice')")
    assert text_of(page, ".reply") == ""
    assert not texts(page, ".piece")


def test_what_the_server_does_not_accept_is_said_in_its_words(page):
    ask(page, "film " * 600)
    page.until("document.querySelector('.inside .notice')")
    assert text_of(page, ".inside .notice").startswith("This answer cannot be explained.")
    assert "more than 512; send less" in text_of(page, ".inside .notice")
    assert text_of(page, ".reply .said")  # the answer itself is there


def test_a_key_is_asked_for_once_and_a_stopped_server_is_noticed(browser, runs, monkeypatch):
    with Served([runs["bottles"], runs["reviews"]], keys=[KEY]) as server:
        browser.open(f"{server.url}/#/reviews")
        browser.until("document.activeElement.id === 'key'")
        browser.type("sk-wrong-wrong-wrong")
        browser.press("Enter")
        browser.until("document.activeElement.id === 'key' && !document.activeElement.value")
        browser.type(KEY)
        browser.press("Enter")
        browser.until("document.querySelector('textarea')")
        ask(browser, "the film was great")
        browser.until(DRAWN)
        browser.open(f"{server.url}/#/bottles")  # in the same tab
        browser.until("document.querySelector('textarea')")
        generator = server.models.served["bottles"].generator
        step = generator.step
        monkeypatch.setattr(generator, "step", lambda: time.sleep(0.05) or step())
        ask(browser, "3 green")
        browser.until("document.querySelectorAll('.flow .word').length > 2")
        assert text_of(browser, ".reply .plain") == "Stop"  # it is still being written
        server.server.force_exit = True
    browser.until(f"document.querySelector('{RETRY}')")
    assert text_of(browser, ".notice p").startswith("The connection ended before the answer")
    assert len(texts(browser, ".flow .word")) > 2  # what was written stays
    click(browser, RETRY)
    browser.until("document.querySelector('.notice')?.textContent.includes('cannot be reached')")


def test_a_run_is_shown_as_it_learns_until_it_can_be_asked(browser, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "EVERY", 0.1)
    path = begun_run(runs["reviews"], tmp_path / "reviews")
    with Served([path]) as server:
        with trained_meanwhile(path):
            browser.open(f"{server.url}/")
            browser.until("document.querySelector('.sample .newest')")
            assert text_of(browser, ".models .state") == "in training"
            assert text_of(browser, ".progress p").startswith("in training · step ")
            assert "training loss" in text_of(browser, ".chart figcaption")
            assert text_of(browser, ".sample .newest bdi") in ("good", "bad")
            finish(runs["reviews"], path)
        browser.until("document.querySelector('textarea')")  # it can be asked now
        ask(browser, "the film was great")
        browser.until(DRAWN)
        assert text_of(browser, ".reply .said") == "good"
        assert not browser.errors
