"""The gate: how large a request may be, how long it may take to arrive, and how many are open.

413  the body is too large
408  it came too slowly
429  the client has too many open requests
503  there are too many altogether, or the server is shutting down
"""

import asyncio
import time
from collections import Counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.serving.errors import RefusedError
from glassformer.serving.keys import bearer
from glassformer.serving.settings import Limits

AGAIN = 1  # second, after which a refused request may be tried again


class Gate:
    """Counts the open requests, and refuses those beyond the limits.

    Attributes:
        draining: Whether the server is about to stop.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app, self.limits = app, limits
        self.open: Counter[bytes | str] = Counter()  # by client
        self.draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        client = bearer(scope) or (scope.get("client") or ("",))[0]
        body = Body(scope, receive, send, self.limits)
        try:
            body.refuse_announced()
            self._refuse_beyond(client)
        except RefusedError as refusal:
            await body.refused(refusal)
            return
        self.open[client] += 1
        try:
            await body.handled_by(self.app)
        finally:
            self.open[client] -= 1
            if not self.open[client]:
                del self.open[client]

    def _refuse_beyond(self, client: bytes | str) -> None:
        if self.draining:
            raise RefusedError(
                503, "the server is shutting down", code="shutting_down", retry_after=AGAIN
            )
        if self.open[client] >= self.limits.concurrency:
            raise RefusedError(
                429,
                f"{self.limits.concurrency} of your requests are open; wait for their answers",
                code="too_many_requests",
                retry_after=AGAIN,
            )
        if self.open.total() >= self.limits.queue:
            raise RefusedError(
                503, "the server is busy; try again", code="queue_full", retry_after=AGAIN
            )


class Body:
    """The body of a request, bounded in size and time.

    What is too large or too slow is refused in place of whatever the application makes of it.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: Limits) -> None:
        self.scope, self._receive, self._send = scope, receive, send
        self.connection = scope["state"]["connection"]
        headers = dict(scope["headers"])
        upload = headers.get(b"content-type", b"").startswith(b"multipart/form-data")
        self.most = limits.upload if upload else limits.body
        self.deadline = time.monotonic() + limits.patience
        self.bytes, self.complete = 0, False
        self.refusal: RefusedError | None = None
        length = headers.get(b"content-length", b"0")
        self.announced = int(length[:20]) if length.isdigit() else 0

    def refuse_announced(self) -> None:
        """Refuse what says itself that it is too large."""
        if self.announced > self.most:
            raise self._too_large()

    async def refused(self, refusal: RefusedError) -> None:
        """Answer with an error, once the body was read: a client may not listen before."""
        try:
            while not self.complete and refusal.status != 413:
                await self.receive()
        except RefusedError as worse:
            refusal = worse
        await refusal.response()(self.scope, self._receive, self._send)

    async def handled_by(self, app: ASGIApp) -> None:
        """Let the application answer."""
        try:
            await app(self.scope, self.receive, self.send)
        except RefusedError:
            if self.refusal is None:
                raise
        if self.refusal is not None:
            await self.refusal.response()(self.scope, self._receive, self._send)

    async def receive(self) -> Message:
        if self.complete:
            return await self._receive()
        message = await (self._receive() if self.connection.whole else self._in_time())
        self.bytes += len(message.get("body", b""))
        self.complete = not message.get("more_body", False)
        if self.bytes > self.most:
            self.refusal = self._too_large()
            raise self.refusal
        return message

    async def _in_time(self) -> Message:
        """The next part of the body, refused if it comes too late."""
        try:
            async with asyncio.timeout(self.deadline - time.monotonic()):
                return await self._receive()
        except TimeoutError:
            self.refusal = RefusedError(408, "the body did not arrive in time", code="too_slow")
            raise self.refusal from None

    async def send(self, message: Message) -> None:
        if self.refusal is None:
            await self._send(message)

    def _too_large(self) -> RefusedError:
        return RefusedError(
            413, f"the body has more than {self.most:,} bytes; send less", code="body_too_large"
        )
