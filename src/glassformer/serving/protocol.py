"""Connections that send or read too slowly, or send too many headers, are closed.

uvicorn waits for headers, and for a client to read an answer, as long as it takes; here there is
a limit on both. And whoever answers a request is told at once when its client leaves.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from glassformer.serving.settings import Limits

TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


def bounded(limits: Limits) -> type[HttpToolsProtocol]:
    """uvicorn's protocol with these limits."""

    class Bounded(HttpToolsProtocol):
        """One connection.

        Attributes:
            head: Bytes since the last complete headers; None while a body arrives.
            late: Ends the connection, unless it is cancelled before.
            whole: Whether the body of the last request has arrived.
            lost: Whether the client has left.
            leave: What to call then.
        """

        head: int | None = 0
        late: asyncio.TimerHandle | None = None
        whole = lost = False
        leave: Callable[[], object] | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._expect()

        def connection_lost(self, exc: Exception | None) -> None:
            self._arrived()
            super().connection_lost(exc)
            self.lost = True
            if self.leave is not None:
                self.leave()

        def data_received(self, data: bytes) -> None:
            if self.head is not None:
                self.head += len(data)
                if self.head > limits.headers + len(data):
                    self._refuse()
                    return
            super().data_received(data)
            if self.head is not None and self.head > limits.headers:
                self._refuse()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["state"]["connection"], self.whole = self, False
            self._expect()

        def on_headers_complete(self) -> None:
            self.head = None
            self._arrived()
            size = sum(len(name) + len(value) for name, value in self.headers)
            if size + len(self.url) > limits.headers:
                self._refuse()
                return
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self.head, self.whole = 0, True
            if not self.transport.is_closing():
                super().on_message_complete()

        def on_body(self, body: bytes) -> None:
            if not self.transport.is_closing():
                super().on_body(body)

        def watch(self, leave: Callable[[], object]) -> None:
            """Have this called when the client leaves, which shows only to one who reads."""
            self.leave = leave
            self.flow.resume_reading()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._expect()

        def resume_writing(self) -> None:
            super().resume_writing()
            self._arrived()

        def _expect(self) -> None:
            """End the connection unless something arrives in time."""
            self._arrived()
            self.late = self.loop.call_later(limits.patience, self.transport.abort)

        def _arrived(self) -> None:
            if self.late is not None:
                self.late.cancel()
                self.late = None

        def _refuse(self) -> None:
            if not self.transport.is_closing():
                self.transport.write(TOO_LARGE)
                self.transport.close()

    return Bounded
