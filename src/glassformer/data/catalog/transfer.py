"""One attempt at an HTTP download: resumes where the last one ended, writes to a part file.

Next to the part is a mark with the server's version identifier (`ETag` or `Last-Modified`): a part
of one version is never continued with another.
"""

import http.client
import re
import shutil
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from glassformer import __version__
from glassformer.data.catalog.storage import Remote
from glassformer.data.sources.files import reason
from glassformer.errors import GlassformerError

TIMEOUT = 30.0  # seconds without a byte
PIECE = 1 << 18  # bytes read at once
MOST_BYTES = 2 * 2**30  # of a file whose size is not known
SPARE = 64 * 2**20  # bytes left free on the disk
PASSING = (408, 425, 429, 500, 502, 503, 504)  # transient errors, worth another attempt

Seen = Callable[[str, int, int | None], None]  # name, bytes so far, total bytes


class BrokenTransferError(Exception):
    """The connection broke, or the server is busy: another attempt may succeed."""


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to web addresses only, and never from https to http."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        refuse_other_schemes(newurl)
        if req.type == "https" and urlsplit(newurl).scheme == "http":
            raise GlassformerError(f"{req.full_url}: redirects to {newurl}, without encryption")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def receive(remote: Remote, part: Path, seen: Seen) -> None:
    """Complete the part. BrokenTransferError: worth a retry; GlassformerError: not."""
    refuse_other_schemes(remote.url)
    have, mark = begun(part, remote)
    request = urllib.request.Request(remote.url, headers=headers_for(have, mark))
    try:
        with opener().open(request, timeout=TIMEOUT) as answer:
            take(answer, remote, part, have, seen)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # the part does not match the file on the server
            discard(part)
        if error.code in (*PASSING, 416):
            raise BrokenTransferError(f"the server responded {error.code}") from None
        words = " ".join(str(error.reason).split())
        raise GlassformerError(f"{remote.url}: the server responded {error.code} {words}") from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, socket.gaierror):
            raise GlassformerError(f"{remote.url}: no such server, or no network") from None
        raise BrokenTransferError(str(error.reason)) from None
    except (http.client.HTTPException, TimeoutError, ConnectionError, ssl.SSLError) as error:
        raise BrokenTransferError(reason(error)) from None


def take(answer: Any, remote: Remote, part: Path, have: int, seen: Seen) -> None:
    """Append what the server sends, or start over if it sends the full file."""
    if answer.status == 206 and starts_at(answer) != have:
        discard(part)
        raise BrokenTransferError("the server sent a different range than requested")
    if answer.status != 206:
        have = 0
        mark_of(part).write_text(f"{remote.url}\n{version_of(answer)}", encoding="utf-8")
    total = remote.size if answer.length is None else have + answer.length
    refuse_too_large(remote, total, part)
    refuse_full_disk(part, (total or 0) - have)
    with part.open("ab" if have else "wb") as file:
        while piece := answer.read(PIECE):
            have += len(piece)
            refuse_too_large(remote, have, part)
            file.write(piece)
            seen(remote.name, have, total)
    if total is not None and have < total:
        raise BrokenTransferError(f"the connection ended after {have:,} of {total:,} bytes")


def begun(part: Path, remote: Remote) -> tuple[int, str]:
    """How many bytes can be resumed from, and their version; 0 if uncertain."""
    if not (part.is_file() and mark_of(part).is_file()):
        return 0, ""
    url, _, version = mark_of(part).read_text(encoding="utf-8").partition("\n")
    sure = url == remote.url and (version or remote.checksum)
    return (part.stat().st_size, version) if sure else (0, "")


def headers_for(have: int, mark: str) -> dict[str, str]:
    """Headers that request the full file, or the rest of the same version."""
    headers = {"User-Agent": f"glassformer/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    if have and mark:
        headers["If-Range"] = mark
    return headers


def version_of(answer: Any) -> str:
    """A strong version identifier; a weak ETag does not count."""
    tag = answer.headers.get("ETag", "")
    return answer.headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag


def starts_at(answer: Any) -> int | None:
    """Where the range that the server sends starts."""
    found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    return int(found[1]) if found else None


def mark_of(part: Path) -> Path:
    """The file next to a part that identifies its version."""
    return part.with_name(f"{part.name}.mark")


def discard(part: Path) -> None:
    """Remove a part and its mark."""
    part.unlink(missing_ok=True)
    mark_of(part).unlink(missing_ok=True)


def refuse_other_schemes(url: str) -> None:
    """Allow http and https only, so that no local file is ever "downloaded"."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise GlassformerError(f"{url}: not a web address; only http and https are followed")


def refuse_too_large(remote: Remote, size: int | None, part: Path) -> None:
    """Refuse a download larger than expected."""
    most = MOST_BYTES if remote.size is None else remote.size
    if size is not None and size > most:
        discard(part)
        raise GlassformerError(f"{remote.url}: {size:,} bytes or more, expected {most:,} at most")


def refuse_full_disk(part: Path, needed: int) -> None:
    """Refuse a download that would fill the disk."""
    free = shutil.disk_usage(part.parent).free
    if needed + SPARE > free:
        raise GlassformerError(
            f"{part.parent}: {needed:,} bytes to download but {free:,} free on the disk; free some"
        )


def opener() -> urllib.request.OpenerDirector:
    """An opener for http and https with the environment's proxies, nothing else."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        Redirects(),
    ):
        opener.add_handler(handler)
    return opener
