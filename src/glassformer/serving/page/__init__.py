"""The page: what a browser shows at /.

Plain files without a build step: `index.html` loads the style sheets and `main.js`, which imports
the rest. Explanations are drawn by the scripts of `explaining.views.page`, as one module. Texts
are in `strings/`, a file for each language. The page may fetch nothing from elsewhere, and runs
no script but its own files.
"""

from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath

from fastapi import FastAPI, Request
from starlette.responses import Response

from glassformer.explaining.views.page import drawing, drawing_style, elements
from glassformer.style import STYLE

FOLDER = "/page/"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob:; media-src data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "permissions-policy": "microphone=(self), camera=(), geolocation=()",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}
KINDS = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
START = "index.html"
SHARED = ("make", "rove", "bar", "percent", "visible", "direction", "filled")  # of `elements`


def page_files() -> dict[str, bytes]:
    """All files of the page, by their paths below the folder."""
    here = files(__package__)
    found = {
        f"{prefix}{one.name}": one.read_bytes()
        for prefix, folder in (("", here), ("strings/", here / "strings"))
        for one in folder.iterdir()
        if PurePath(one.name).suffix in KINDS
    }
    made = {
        "base.css": STYLE,
        "drawing.css": drawing_style(),
        "drawing.js": f"export {drawing()}",
        "elements.js": f"{elements()}\nexport {{ {', '.join(SHARED)} }};",
    }
    return found | {name: text.encode() for name, text in made.items()}


def add_page(app: FastAPI) -> None:
    """The page at /, and its files below."""
    contents = page_files()

    def file_response(name: str, request: Request) -> Response:
        body = contents[name]
        tag = f'"{sha256(body).hexdigest()[:32]}"'
        headers = HEADERS | {"etag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=KINDS[PurePath(name).suffix])

    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return file_response(START, request)

    @app.get(FOLDER + "{name:path}", include_in_schema=False)
    async def page_file(name: str, request: Request) -> Response:
        if name not in contents or name == START:
            return Response("not found\n", 404, headers=HEADERS, media_type="text/plain")
        return file_response(name, request)
