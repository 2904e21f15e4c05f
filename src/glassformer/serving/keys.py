"""Keys, hosts and origins: who may send requests.

A key is sent as `Authorization: Bearer KEY`. All keys are compared, by their digests and in
constant time, so that the time of a refusal says nothing about them.

A page on the internet can send requests to a server on its reader's machine, and read the answers
if its own name has meanwhile come to mean that machine (DNS rebinding). Both show in the headers
that the browser sends: `Host` names another machine, or `Origin` another page.
"""

import hmac
import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from glassformer.errors import GlassformerError
from glassformer.serving.errors import RefusedError
from glassformer.serving.page import FOLDER

ENVIRONMENT = "GLASSFORMER_KEYS"
OPEN = ("/", "/healthz", "/readyz", "/docs", "/openapi.json")  # paths that need no key
SHORTEST = 16  # characters
BODILESS = ("GET", "HEAD", "OPTIONS")


class Keys:
    """The keys that a server accepts; all requests are if there are none."""

    def __init__(self, keys: Sequence[str]) -> None:
        for key in keys:
            if len(key) < SHORTEST or not key.isascii() or not key.isprintable() or " " in key:
                raise GlassformerError(
                    f"a key has {SHORTEST} or more letters, digits and signs, without spaces; "
                    f"got one of {len(key)} characters; make one with: openssl rand -hex 24"
                )
        self._digests = [sha256(key.encode()).digest() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def accept(self, key: bytes) -> bool:
        """Whether it is one of the keys."""
        digest = sha256(key).digest()
        return any([hmac.compare_digest(digest, known) for known in self._digests])  # noqa: C419


def read_keys(
    given: Sequence[str], file: Path | None, environment: Mapping[str, str] = os.environ
) -> Keys:
    """Keys that were given, one per line of a file, and those of the environment."""
    keys = [*given, *environment.get(ENVIRONMENT, "").split()]
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            raise GlassformerError(
                f"{file}: cannot be read ({reason}); give a file with one key per line"
            ) from None
        if not lines:
            raise GlassformerError(f"{file}: holds no key; write one per line")
        keys += lines
    return Keys(keys)


class Guarded:
    """Refuses requests without a key, except for a few paths that tell nothing."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self.app, self.keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.keys and not is_open(scope["path"]):
            key = bearer(scope)
            if key is None or not self.keys.accept(key):
                refusal = RefusedError(
                    401,
                    "a key is needed; send it as Authorization: Bearer KEY"
                    if key is None
                    else "the key is not one of this server's; check it",
                    code="invalid_api_key",
                )
                await refusal.close(scope, receive, send)
                return
            scope["state"]["key"] = key
        await self.app(scope, receive, send)


class Addressed:
    """Refuses requests to other hosts, and those that pages of other origins send.

    Args:
        hosts: Names that the server is known by, in lower case; None for any.
        origins: Those whose pages may send requests; `*` for all.
    """

    def __init__(
        self, app: ASGIApp, hosts: Collection[str] | None, origins: Collection[str]
    ) -> None:
        self.app, self.hosts, self.origins = app, hosts, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] != "http" else self._refusal(scope)
        if refusal is not None:
            await refusal.close(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _refusal(self, scope: Scope) -> RefusedError | None:
        """Return the error for a request whose headers are not allowed, or None."""
        found: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            found.setdefault(name, []).append(value.decode("latin-1"))
        hosts, lengths = found.get(b"host", []), found.get(b"content-length", [])
        if len(hosts) > 1 or (not hosts and scope["http_version"] != "1.0"):
            return RefusedError(400, "the request needs exactly one Host header", code="no_host")
        if scope["method"] in BODILESS and (
            b"transfer-encoding" in found or lengths not in ([], ["0"])
        ):
            what = f"a {scope['method']} request has no body; send it without one"
            return RefusedError(400, what, code="unexpected_body")
        host = hosts[0].lower() if hosts else ""
        if self.hosts is not None and hosts and not self._knows(name_of(host)):
            name = name_of(host)[:100]
            return RefusedError(
                403,
                f"Host {name!r} is not allowed; if it is one of this server's names, start it with "
                f"--allow-host {shlex.quote(name)}",
                code="host_not_allowed",
            )
        for origin in found.get(b"origin", []):
            place = origin.lower().partition("://")[2]
            if place != host and not {origin, "*"} & {*self.origins} and not self._named(place):
                page = origin[:100]
                return RefusedError(
                    403,
                    f"Origin {page!r} is not allowed; if its pages may send requests, start the "
                    f"server with --cors {shlex.quote(page)}",
                    code="origin_not_allowed",
                )
        return None

    def _knows(self, name: str) -> bool:
        return is_loopback(name) or self._named(name)

    def _named(self, place: str) -> bool:
        """Whether it is one of the names that the server was given."""
        return self.hosts is not None and name_of(place) in self.hosts


def name_of(host: str) -> str:
    """A host without its port.

    >>> name_of("localhost:8000"), name_of("[::1]:8000"), name_of("localhost.")
    ('localhost', '::1', 'localhost')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def known_hosts(host: str, more: Sequence[str]) -> set[str] | None:
    """The names that a server listening at `host` is known by; None if nobody can say.

    Other machines may call it whatever they like, unless `more` lists their names for it.
    """
    return {name.lower() for name in (host, *more)} if more or is_loopback(host) else None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("::")
    (True, True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_open(path: str) -> bool:
    """Whether it needs no key: the page, for one, asks for it."""
    return path in OPEN or path.startswith(FOLDER)


def bearer(scope: Scope) -> bytes | None:
    """The key of a request."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, key = value.partition(b" ")
            return key.strip() if scheme.lower() == b"bearer" else None
    return None
