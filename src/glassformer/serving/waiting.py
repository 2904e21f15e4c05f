"""Answers within a time limit, for clients that are still there."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from glassformer.errors import GlassformerError
from glassformer.serving.errors import RefusedError, internal_error
from glassformer.serving.models import ServedModel
from glassformer.wording import counted

Answer = TypeVar("Answer")


async def answered(
    request: Request, work: Coroutine[Any, Any, Answer], seconds: float, model: ServedModel
) -> Answer:
    """The answer to a request; the work is cancelled if it takes too long or the client goes."""
    connection, task = request.scope["state"]["connection"], asyncio.current_task()
    assert task is not None
    connection.watch(task.cancel)
    try:
        async with asyncio.timeout(0 if connection.lost else seconds):
            return await work
    except TimeoutError:
        raise client_gone() if connection.lost else too_late(seconds) from None
    except asyncio.CancelledError:
        if not connection.lost or task.uncancel():
            raise
        raise client_gone() from None
    except GlassformerError as error:
        raise as_refusal(error, model) from None
    finally:
        connection.leave = None


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def client_gone() -> RefusedError:
    return RefusedError(499, "the client has gone", code="client_gone")


def too_late(seconds: float) -> RefusedError:
    message = f"there was no answer within {counted(seconds, 'second')}"
    return RefusedError(504, message, code="timeout")


def as_refusal(error: GlassformerError, model: ServedModel) -> RefusedError:
    """What was wrong with an input, in words that do not tell where the run is."""
    message = str(error).replace(str(model.run.folder.path), model.name)
    return RefusedError(422, message, code="invalid_input")


class EventStream(Response):
    """Server-sent events: one for each value, then `[DONE]`.

    An error after the first event becomes the last one. What writes them is closed when the
    client goes.
    """

    media_type = "text/event-stream"

    def __init__(
        self, values: AsyncIterator[dict[str, Any]], seconds: float, model: ServedModel
    ) -> None:
        self.values, self.seconds, self.model = values, seconds, model
        self.status_code, self.background = 200, None
        self.init_headers({"cache-control": "no-store"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.ensure_future(self._stream(scope, receive, send))
        gone = asyncio.ensure_future(disconnected(receive))
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
        finally:
            for one in (task, gone):
                one.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = False

        async def event(data: bytes) -> None:
            nonlocal began
            if not began:
                await send(
                    {
                        "type": "http.response.start",
                        "status": self.status_code,
                        "headers": self.raw_headers,
                    }
                )
                began = True
            body = b"data: " + data + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})

        try:
            async with asyncio.timeout(self.seconds):
                async for value in self.values:
                    await event(to_json(value, inf_nan_mode="null"))
                    await asyncio.sleep(0)  # or much that waits to be sent would hold up all others
            await event(b"[DONE]")
        except Exception as error:
            refusal = self._refusal(error)
            if not began:
                await refusal.response()(scope, receive, send)
                return
            await event(to_json(refusal.values()))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _refusal(self, error: Exception) -> RefusedError:
        if isinstance(error, RefusedError):
            return error
        if isinstance(error, TimeoutError):
            return too_late(self.seconds)
        if isinstance(error, GlassformerError):
            return as_refusal(error, self.model)
        return internal_error()
