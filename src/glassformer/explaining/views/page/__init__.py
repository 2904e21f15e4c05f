"""An explanation as one self-contained HTML file, which works without a network.

`page.html` holds the frame, `page.css` the style besides what every page shares, and the scripts
what happens. They are the body of one function, `draw(given, options)`, which the page of a server
calls, too: `data.js` unpacks what `views.packing` packed, then a file for each section, and
`main.js` puts them in order; `start.js` calls it. Sentences go through `say`, so that a page can
have them in another language.

Texts of the explanation travel as JSON, in which nothing can end the element that holds it, and the
scripts put them on the page as text alone. The page may fetch nothing, and runs no other script
than its own.
"""

import base64
import hashlib
import html
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from glassformer import __version__
from glassformer.files import to_json
from glassformer.style import STYLE

SCRIPTS = (
    *("elements.js", "data.js", "words.js", "weights.js", "looks.js", "matrix.js"),
    *("image.js", "attention.js", "lanes.js", "sound.js", "beam.js", "main.js"),
)
# Of JSON inside of a page: what could end the element, or a line of a script.
UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
HEIGHT = 640  # pixels, in a notebook


def page(values: Mapping[str, Any], title: str) -> str:
    """The HTML file of packed values."""
    script = f'"use strict";\n(() => {{\n{drawing()}\n{_asset("start.js")}}})();\n'
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; media-src data:; base-uri 'none'; form-action 'none'"
    )
    return _asset("page.html").format(
        policy=policy,
        version=__version__,
        title=html.escape(title),
        style=f"{STYLE}\n{drawing_style()}",
        data=embedded(values),
        script=script,
    )


def framed(document: str) -> str:
    """The page inside another, such as a notebook, which it cannot reach."""
    style = f"width: 100%; height: {HEIGHT}px; border: 0; resize: vertical; overflow: auto"
    return (
        f'<iframe sandbox="allow-scripts" style="{style}" title="Explanation" '
        f'srcdoc="{html.escape(document)}"></iframe>'
    )


def embedded(values: Mapping[str, Any]) -> str:
    r"""JSON that can stand in a script element, whatever its texts are.

    >>> embedded({"text": "</script>"})
    '{"text": "\\u003c/script\\u003e"}'
    """
    return to_json(values).translate(UNSAFE)


@cache
def drawing() -> str:
    """The function that draws packed values: its sections by name, null where there is none."""
    joined = "\n".join(_asset(name) for name in SCRIPTS)
    return f"function draw(given, options = {{}}) {{\n{joined}}}"


def elements() -> str:
    """The functions that build elements, which draw nothing by themselves."""
    return _asset("elements.js")


def drawing_style() -> str:
    """The style of what it draws, besides what every page shares."""
    return _asset("page.css")


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
