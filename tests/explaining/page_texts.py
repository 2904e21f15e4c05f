"""What stands on a page of a browser."""


def texts(browser, selector):
    return browser.ask(f"[...document.querySelectorAll('{selector}')].map(e => e.textContent)")


def focused(browser, attribute="aria-label"):
    return browser.ask(f"document.activeElement.getAttribute('{attribute}')")
