"""The gate: how large a request may be, and how many are open.

413  the body is too large
429  the client has too many open requests
503  there are too many altogether, or the server is shutting down
"""

from collections import Counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.serving.errors import RefusedError
from glassformer.serving.settings import Limits

AGAIN = 1  # second, after which a refused request may be tried again
WATCHED = ("/healthz", "/readyz", "/metrics")  # even while nothing else is answered


class Gate:
    """Counts the open requests, and refuses those beyond the limits.

    A client is a key of the server's, or else an address.

    Attributes:
        draining: Whether the server is about to stop.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app, self.limits = app, limits
        self.open: Counter[bytes | str] = Counter()  # by client
        self.draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in WATCHED:
            await self.app(scope, receive, send)
            return
        client = scope["state"].get("key") or (scope.get("client") or ("",))[0]
        body = Body(scope, receive, send, self.limits)
        try:
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
    """The body of a request, bounded in size.

    What is too large is refused in place of whatever the application makes of it.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: Limits) -> None:
        self.scope, self._receive, self._send = scope, receive, send
        headers = dict(scope["headers"])
        upload = headers.get(b"content-type", b"").startswith(b"multipart/form-data")
        self.most = limits.upload if upload else limits.body
        self.bytes, self.complete = 0, False
        self.refusal: RefusedError | None = None
        length = headers.get(b"content-length", b"0")
        self.announced = int(length[:20]) if length.isdigit() else 0

    async def refused(self, refusal: RefusedError) -> None:
        """Answer with an error, once the body was read: a client may not listen before."""
        try:
            while not self.complete:
                await self.receive()
        except RefusedError as too_large:
            await too_large.close(self.scope, self._receive, self._send)
        else:
            await refusal.response()(self.scope, self._receive, self._send)

    async def handled_by(self, app: ASGIApp) -> None:
        """Let the application answer."""
        try:
            if self.announced > self.most:
                self._refuse()
            await app(self.scope, self.receive, self.send)
        except RefusedError:
            if self.refusal is None:
                raise
        if self.refusal is not None:
            await self.refusal.close(self.scope, self._receive, self._send)

    async def receive(self) -> Message:
        message = await self._receive()
        if not self.complete:
            self.bytes += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
            if self.bytes > self.most:
                self._refuse()
        return message

    async def send(self, message: Message) -> None:
        if self.refusal is None:
            await self._send(message)

    def _refuse(self) -> None:
        self.refusal = RefusedError(
            413, f"the body has more than {self.most:,} bytes; send less", code="body_too_large"
        )
        raise self.refusal
