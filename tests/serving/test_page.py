"""The page in a real Chromium: every job end to end, with nothing fetched from elsewhere."""

import json
import re
from urllib.parse import urlparse

import httpx
import numpy as np
import pytest
import soundfile
from browser import CHROMIUM
from small_served import recording
from test_images import picture

from glassformer.serving.page import page_files

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
HOSTILE = 'the <img src=x onerror="window.ran=1"> film was great'
PAPER = "getComputedStyle(document.body).backgroundColor"
WRITTEN = "document.querySelector('.flow .word') && document.querySelector('.reply .quiet')"
DRAWN = "document.querySelector('.pieces, .line') && !document.querySelector('[aria-busy]')"


@pytest.fixture
def visit(browser, served):
    """Opens the desk of a model; at the end nothing was wrong or came from elsewhere."""

    def visit(name, **options):
        browser.open(f"{served.url}/#/{name}", **options)
        browser.until(f"document.querySelector('h1')?.textContent === {json.dumps(name)}")
        return browser

    yield visit
    assert not browser.errors
    own = {"about:blank", *(url for url in browser.requests if url.startswith(served.url + "/"))}
    assert {urlparse(url).scheme for url in {*browser.requests} - own} <= {"data", "blob"}


def ask(browser, text):
    browser.ask("document.querySelector('textarea').focus()")
    browser.type(text)
    browser.press("Enter")


def text_of(browser, selector):
    return browser.ask(f"document.querySelector({json.dumps(selector)})?.textContent")


def texts(browser, selector):
    return browser.ask(
        f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"
    )


def click(browser, selector):
    browser.point(selector, click=True)


def test_a_classifier_says_why_and_what_changes_without_a_word(visit):
    page = visit("reviews")
    ask(page, "the film was great and lovely")
    page.until(DRAWN)
    assert text_of(page, ".reply .said") == "good"
    assert texts(page, ".piece") == ["the", "film", "was", "great", "and", "lovely"]
    click(page, ".piece:nth-of-type(4)")
    page.until("document.querySelector('.changes table')")
    assert text_of(page, ".changes h3") == "Without great"
    assert {*texts(page, ".changes tbody th")} == {"good", "bad"}
    assert page.ask("document.querySelector('.piece.gone').getAttribute('aria-pressed')") == "true"
    click(page, ".piece.gone")
    assert text_of(page, ".changes") == ""


def test_a_text_of_which_nothing_was_seen_has_no_answer_and_a_guess_on_request(visit):
    page = visit("reviews")
    ask(page, "鳥 雪")
    page.until(DRAWN)
    told = "No answer. No character of this text was seen in training."
    assert text_of(page, ".reply .said") == told
    assert not page.ask("document.querySelector('.reply details').open")
    assert "sure" in text_of(page, ".reply details")
    assert texts(page, ".piece.unknown") == ["鳥", "雪"]
    assert not page.ask("document.querySelector('.panels details.guess').open")


def test_a_head_is_chosen_and_a_token_pointed_at(visit):
    page = visit("reviews")
    ask(page, "the film was great")
    page.until(DRAWN)
    click(page, "#view-attention")
    before = text_of(page, "#panel-attention .readout")
    page.point(".token:nth-of-type(4)")
    after = text_of(page, "#panel-attention .readout")
    assert "looks at" in after != before
    click(page, ".head:last-of-type")
    assert "head 1" in text_of(page, "#panel-attention .readout")
    click(page, "#view-learning")
    page.until("document.querySelector('.chart polyline')")
    assert "training loss" in text_of(page, ".chart figcaption")


def test_a_translation_shows_its_beam_and_takes_another_word(visit):
    page = visit("words")
    ask(page, "red old new")
    page.until(DRAWN)
    own = text_of(page, ".reply .said")
    click(page, "#view-beam")
    assert text_of(page, "#panel-beam caption").startswith("Step ")
    click(page, "#panel-beam button[aria-label='Previous step']")
    click(page, "#view-reasons")
    other = text_of(page, "button.alternative bdi").rstrip("…")
    click(page, "button.alternative")
    page.until("document.querySelector('.reply button')")
    assert text_of(page, ".reply .said").startswith(other)
    page.until(DRAWN)
    click(page, ".reply button")
    page.until("!document.querySelector('.reply button')")
    page.until(DRAWN)
    assert text_of(page, ".reply .said") == own


def test_a_text_is_continued_token_by_token_and_from_another_token(visit):
    page = visit("bottles")
    ask(page, "3 green")
    page.until("document.querySelector('.flow .word:nth-of-type(5)')")
    click(page, ".reply button")  # stops it
    page.until(WRITTEN)
    click(page, ".flow .word:nth-of-type(3)")
    before = texts(page, ".flow .word")[:2]
    other = text_of(page, ".others button.alternative bdi")
    click(page, ".others button.alternative")
    page.until("document.querySelector('.flow .taken + .word + .word')")
    click(page, ".reply button")
    page.until(WRITTEN)
    page.until(DRAWN)
    assert texts(page, ".flow .word")[:2] == before
    assert text_of(page, ".flow .taken").replace("\n", "").strip() == other.replace("␣", "").strip()
    click(page, ".piece")
    page.until("document.querySelector('.changes .said')")


def test_a_picture_is_recognised_patch_by_patch(visit, tmp_path):
    page = visit("pictures")
    (tmp_path / "left.png").write_bytes(picture())
    page.upload("input[type=file]", tmp_path / "left.png")
    page.until("document.querySelector('.images') && !document.querySelector('[aria-busy]')")
    assert text_of(page, ".reply .said") in ("dark", "left", "right")
    assert page.ask("document.querySelector('.given img').naturalWidth") == 8


def test_a_user_is_shown_what_to_like_next(visit):
    page = visit("ratings")
    ask(page, "u3")
    page.until("document.querySelector('.ranking li')")
    first, *_ = texts(page, ".ranking bdi")
    assert first == text_of(page, ".reply .said")


def test_an_uploaded_recording_is_heard_and_played_at_a_word(visit, tmp_path):
    (tmp_path / "bead.wav").write_bytes(recording("bead"))
    page = visit("speech")
    page.upload("input[type=file]", tmp_path / "bead.wav")
    page.until("document.querySelector('.reply .said')")
    if "empty" in page.ask("document.querySelector('.reply .said').className"):
        pytest.fail("the small run hears nothing")
    page.until(DRAWN)
    assert text_of(page, ".given bdi") == "bead.wav"
    click(page, ".spoken")
    page.until("document.querySelector('.panels audio').currentTime > 0")
    click(page, ".strip button:nth-of-type(2)")
    page.until("document.querySelector('.changes .said')")
    assert text_of(page, ".changes h3") == "Without this stretch of sound"


def test_a_recording_at_a_rate_that_chromium_does_not_play_is_heard_in_a_copy(visit, tmp_path):
    time = np.arange(1000) / 2000
    tone = 0.5 * np.sin(2 * np.pi * 300 * time)
    soundfile.write(tmp_path / "slow.wav", tone, 2000, subtype="PCM_16")
    page = visit("sounds")
    page.upload("input[type=file]", tmp_path / "slow.wav")
    page.until("Math.abs(document.querySelector('.given audio')?.duration - 0.5) < 0.01")
    page.until("document.querySelector('.reply .said')")


def test_the_microphone_is_recorded(visit):
    page = visit("sounds")
    click(page, ".record")
    page.until("parseFloat(document.querySelector('.clock').textContent) > 0.3")
    click(page, ".record")
    page.until("document.querySelector('.reply .said')")
    assert text_of(page, ".reply .said") in ("ace", "bead")
    page.until(DRAWN)


def test_a_gap_is_filled(visit):
    page = visit("gaps")
    page.ask("document.querySelector('textarea').focus()")
    page.type("the film was ")
    click(page, ".ask button.plain")
    page.press("Enter")
    page.until(DRAWN)
    assert page.ask("document.querySelector('textarea').value") == "the film was <mask>"
    assert texts(page, ".written .word")
    assert texts(page, ".alternative bdi")


def test_everything_is_reached_with_the_keyboard(visit):
    page = visit("words")
    focus = "document.activeElement"
    for _ in range(20):
        page.press("Tab")
        if page.ask(f"{focus}.textContent") == "reviews":
            break
    assert page.ask(f"getComputedStyle({focus}).outlineStyle") == "solid"
    page.press("Enter")
    page.until("document.querySelector('h1').textContent === 'reviews'")
    assert page.ask(f"{focus}.tagName") == "TEXTAREA"
    page.type("the film was great")
    page.press("Enter")
    page.until(DRAWN)
    while page.ask(f"{focus}.id") != "view-reasons":
        page.press("Tab")
    page.press("ArrowRight")
    assert page.ask("document.querySelector('#panel-attention').hidden") is False
    page.press("ArrowLeft", "Tab", "ArrowDown", "Tab", "ArrowRight", "Delete")
    page.until("document.querySelector('.changes table')")
    assert text_of(page, ".piece.gone") == "film"


@pytest.mark.parametrize("name", ["reviews", "words", "bottles", "speech", "gaps"])
def test_a_phone_in_the_dark_has_room_for_every_desk(visit, name):
    page = visit(name, width=390, height=800, scheme="dark")
    if name != "speech":
        ask(page, "the film was <mask> and 3 green bottles")
        page.until("document.querySelector('.flow .word')" if name == "bottles" else DRAWN)
    assert page.ask("document.documentElement.scrollWidth") <= 390
    assert page.ask(PAPER) == "rgb(22, 24, 26)"
    unnamed = "[...document.querySelectorAll('button, a, input:not([hidden]), textarea')].filter("
    assert (
        page.ask(f"{unnamed}e => !(e.textContent || e.ariaLabel || e.labels?.length)).length") == 0
    )


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_a_tap_on_a_phone_leaves_a_word_out(visit, language):
    page = visit("reviews", width=360, height=740, language=language)
    ask(page, "the film was great and lovely")
    page.until(DRAWN)
    page.tap(".piece:nth-of-type(4)")
    page.until("document.querySelector('.changes table')")
    assert text_of(page, ".piece.gone") == "great"
    box, *shares = page.ask(
        "[...document.querySelectorAll('.changes table, .changes .share')].map(e =>"
        " e.getBoundingClientRect().left + e.scrollWidth)"
    )
    assert max(shares) <= box


def test_a_score_that_stays_the_same_is_drawn_below_its_own_height(visit):
    page = visit("reviews")
    click(page, "[role=tab]:last-child")
    page.until("document.querySelectorAll('.bounds').length > 1")
    assert [bounds for bounds in texts(page, ".bounds") if bounds.startswith("1")] == ["10", "10"]


def test_a_chinese_browser_gets_a_chinese_page(visit):
    page = visit("words", language="zh-CN")
    ask(page, "red old new")
    page.until(DRAWN)
    assert page.ask("document.documentElement.lang") == "zh-Hans"
    shown = page.ask("document.querySelector('.inside').innerText")
    assert "哪些内容支持" in shown
    assert "写出的内容与把握" in shown
    click(page, "#view-attention")
    assert "词元" in text_of(page, "#panel-attention")


def test_both_languages_have_every_sentence(visit):
    page = visit("reviews")
    english, chinese = page.ask(
        "Promise.all(['en', 'zh'].map(l => import(`/page/strings/${l}.js`)))"
        ".then(ms => ms.map(m => {"
        "const walk = (o, at) => Object.entries(o).flatMap(([k, v]) =>"
        " typeof v === 'object' ? walk(v, at + k + '.') : [at + k]);"
        "return walk(m.words, '') }))"
    )
    assert len(english) > 60
    assert {*english} == {*chinese}


def test_a_dropped_file_of_text_is_read(visit):
    page = visit("reviews")
    page.ask(
        "(() => { const files = new DataTransfer();"
        "files.items.add(new File(['the film was great'], 'review.txt'));"
        "document.querySelector('.ask').dispatchEvent("
        "new DragEvent('drop', { dataTransfer: files, cancelable: true })) })()"
    )
    page.until("document.querySelector('textarea').value === 'the film was great'")
    page.press("Enter")
    page.until(DRAWN)


def test_the_first_link_leads_past_the_models(visit):
    page = visit("words")
    page.ask("document.activeElement.blur()")
    page.press("Tab")
    assert page.ask("document.activeElement.id") == "skip"
    page.press("Enter")
    assert page.ask("document.activeElement.id") == "main"
    assert text_of(page, "h1") == "words"


def test_hostile_text_stays_text(visit):
    page = visit("reviews")
    ask(page, HOSTILE)
    page.until(DRAWN)
    assert page.ask("window.ran") is None
    assert page.ask("document.querySelectorAll('main img').length") == 0


def test_a_script_from_elsewhere_does_not_run(visit):
    page = visit("reviews")
    page.ask(
        "(() => { const s = document.createElement('script');"
        "try { s.src = 'data:text/javascript,window.ran=1'; document.body.append(s) }"
        "catch (error) { window.refused = error.message } })()"
    )
    assert "TrustedScriptURL" in page.ask("window.refused")
    assert page.ask("window.ran") is None
    page.errors.clear()


def test_the_files_of_the_page_come_with_a_strict_policy(served):
    with httpx.Client(base_url=served.url) as client:
        for name in ("", *(f"page/{name}" for name in page_files() if name != "index.html")):
            found = client.get(f"/{name}")
            assert found.status_code == 200
            policy = found.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            again = client.get(f"/{name}", headers={"if-none-match": found.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
        for name in ("page/nothing.js", "page/__init__.py", "page/..%2f..%2fapp.py", "page/"):
            assert client.get(f"/{name}").status_code == 404


def test_nothing_on_the_page_names_another_place():
    for name, content in page_files().items():
        found = re.findall(rb"https?://[^\s\"')]+", content)
        assert {*found} <= {b"http://www.w3.org/2000/svg"}, name
        assert b"innerHTML" not in content, name
