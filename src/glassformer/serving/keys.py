"""Keys: who may send requests.

A key is sent as `Authorization: Bearer KEY`. All keys are compared, by their digests and in
constant time, so that the time of a refusal says nothing about them.
"""

import hmac
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from glassformer.errors import GlassformerError
from glassformer.serving.errors import RefusedError
from glassformer.serving.page import FOLDER

ENVIRONMENT = "GLASSFORMER_KEYS"
OPEN = ("/", "/healthz", "/readyz", "/docs", "/openapi.json")  # paths that need no key
SHORTEST = 16  # characters


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
                await refusal.response()(scope, receive, send)
                return
        await self.app(scope, receive, send)


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
