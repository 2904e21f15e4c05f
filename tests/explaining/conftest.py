"""A browser for all pages of explanations, and how they are shown in it."""

from urllib.parse import urlparse

import pytest
from browser import Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def show(browser, tmp_path):
    def show(explanation, **options):
        path = tmp_path / "page.html"
        path.write_text(explanation.as_page(), encoding="utf-8")
        browser.open(path, **options)
        return browser

    yield show
    assert not browser.errors
    assert {urlparse(url).scheme for url in browser.requests} <= {"file", "data"}
    assert sum(url.startswith("file:") for url in browser.requests) == 1  # the page itself
