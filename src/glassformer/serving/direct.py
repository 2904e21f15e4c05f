"""Requests that are as they should be are answered without the framework.

FastAPI describes every path, and says what is wrong with a request. For a small model, its way to a
path takes longer than the prediction. So a body of JSON that fits is taken straight to the function
of its path; whatever else comes goes through FastAPI.
"""

import logging

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from glassformer.serving.errors import RefusedError, internal_error
from glassformer.serving.schemas import Sent

log = logging.getLogger(__name__)
JSON = b"application/json"


class Direct:
    """The paths of an application that take JSON, without the way to them."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        posts = (
            one for one in app.routes if isinstance(one, APIRoute) and "POST" in (one.methods or ())
        )
        self.routes = {one.path: (one, schema) for one in posts if (schema := schema_of(one))}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self.routes.get(scope["path"]) if scope.get("method") == "POST" else None
        if found is None or not has_json(scope):
            await self.app(scope, receive, send)
            return
        body = Whole(receive)
        await body.read()
        route, schema = found
        try:
            sent = schema.model_validate_json(body.content)
        except ValidationError:
            await self.app(scope, body.again, send)  # which says what is wrong
            return
        scope["route"] = route
        try:
            response = await route.endpoint(sent, Request(scope, receive))
        except RefusedError as refusal:
            response = refusal.response()
        except Exception as error:
            log.error("a request failed", exc_info=error)
            response = internal_error().response()
        await response(scope, receive, send)


class Whole:
    """A body, as one message."""

    def __init__(self, receive: Receive) -> None:
        self.receive, self.content = receive, b""
        self.message: Message | None = None

    async def read(self) -> None:
        """Read it to its end."""
        message = await self.receive()
        content = message.get("body", b"")
        while message.get("more_body", False):
            message = await self.receive()
            content += message.get("body", b"")
        self.content = content
        self.message = (
            message
            if message["type"] == "http.disconnect"
            else {"type": "http.request", "body": content, "more_body": False}
        )

    async def again(self) -> Message:
        """The body once more, and then what follows it."""
        message, self.message = self.message, None
        return message or await self.receive()


def schema_of(route: APIRoute) -> type[Sent] | None:
    """What a path takes, if it is JSON."""
    schema = route.endpoint.__annotations__.get("body")
    return schema if isinstance(schema, type) and issubclass(schema, Sent) else None


def has_json(scope: Scope) -> bool:
    """Whether a body is announced as JSON."""
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    return len(kinds) == 1 and kinds[0].partition(b";")[0].strip().lower() == JSON
