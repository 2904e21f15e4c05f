"""Connections that send or read too slowly, or send too much beside a body, are closed.

uvicorn waits for a request, and for a client to read an answer, as long as it takes, and keeps
whatever comes after a body in chunks; here there are limits. And whoever answers a request is told
at once when its client leaves.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from glassformer.serving.errors import RefusedError
from glassformer.serving.settings import Limits


def bounded(limits: Limits) -> type[HttpToolsProtocol]:
    """uvicorn's protocol with these limits."""

    class Bounded(HttpToolsProtocol):
        """One connection.

        Attributes:
            beside: Bytes since the last request, or the last part of a body: headers, the sizes of
                chunks, and trailers.
            in_head: Whether the headers of a request are yet to be completed.
            late: Ends the connection unless the request, or the next one, arrives in time.
            unread: Ends it unless the client reads on.
            lost: Whether the client has left.
            leave: What to call then.
        """

        beside = 0
        in_head = True
        late: asyncio.TimerHandle | None = None
        unread: asyncio.TimerHandle | None = None
        lost = False
        leave: Callable[[], object] | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                self._refuse(
                    503, "the server has too many connections; try again", "too_many_connections"
                )
            else:
                self._expect()

        def connection_lost(self, exc: Exception | None) -> None:
            self._arrived()
            self._read_on()
            super().connection_lost(exc)
            self.lost = True
            if self.leave is not None:
                self.leave()

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            before, self.beside = self.beside, self.beside + len(data)
            if before <= limits.headers:
                super().data_received(data)
            if self.beside > limits.headers:
                self._refuse_headers()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["state"]["connection"], self.in_head = self, True
            self._expect()

        def on_header(self, name: bytes, value: bytes) -> None:
            if self.in_head:  # trailers are not looked at
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            size = sum(len(name) + len(value) for name, value in self.headers)
            if size + len(self.url) > limits.headers:
                self._refuse_headers()
                return
            self.in_head = False
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self.beside = 0
            if not self.transport.is_closing():
                super().on_body(body)

        def on_message_complete(self) -> None:
            self.beside, self.in_head = 0, True
            if self.transport.is_closing():
                return
            super().on_message_complete()
            if self.cycle.response_complete:
                self._expect()
            else:
                self._arrived()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.cycle.response_complete and not self.transport.is_closing():
                self._expect()

        def watch(self, leave: Callable[[], object]) -> None:
            """Have this called when the client leaves, which shows only to one who reads."""
            self.leave = leave
            self.flow.resume_reading()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._read_on()
            self.unread = self.loop.call_later(limits.patience, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._read_on()

        def _read_on(self) -> None:
            if self.unread is not None:
                self.unread.cancel()
                self.unread = None

        def _expect(self) -> None:
            """End the connection unless a request, as far as one has begun, arrives in time."""
            self._arrived()
            self.late = self.loop.call_later(limits.patience, self._too_late)

        def _arrived(self) -> None:
            if self.late is not None:
                self.late.cancel()
                self.late = None

        def _too_late(self) -> None:
            if self.flow.read_paused:  # it waits for us
                self._expect()
            else:
                self._refuse(408, "the request did not arrive in time", "too_slow")

        def _refuse_headers(self) -> None:
            message = f"the headers have more than {limits.headers:,} bytes; send less"
            self._refuse(431, message, "headers_too_large")

        def _refuse(self, status: int, message: str, code: str) -> None:
            """Close the connection, with an error unless it would end up in another answer."""
            if self.transport.is_closing():
                return
            cycle = self.cycle
            due = cycle is not None and not cycle.response_complete
            if due and (self.in_head or self.pipeline or cycle.response_started):
                self.transport.abort()
                return
            response = RefusedError(status, message, code=code).response()
            fields = [name + b": " + value + b"\r\n" for name, value in response.raw_headers]
            head = b"".join([STATUS_LINE[status], *fields, b"connection: close\r\n\r\n"])
            self.transport.write(head + bytes(response.body))
            self.transport.close()

    return Bounded
