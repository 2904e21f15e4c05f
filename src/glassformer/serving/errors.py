"""Refusals, and the form of every error: that of OpenAI's API.

{"error": {"message": ..., "type": ..., "param": ..., "code": ...}}
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from glassformer.serving.invalid import EMPTY, NO_JSON_HEADER, NO_OBJECT, unreadable, what_is_wrong

TYPES = {  # of errors, by status; others are wrong requests
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "overloaded_error",
    504: "timeout_error",
}
INVALID = "invalid_request_error"
UNKNOWN_PATH = "there is no such path; /docs lists those of this server"
SHOWN = 300  # characters of a message
LINGER = 2.0  # seconds in which a refused body may still come
TYPE_NAMES = {"str", "int", "float", "bool"}


class ErrorDetails(BaseModel):
    """What was wrong, in words and for programs."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorBody(BaseModel):
    """The body of every error."""

    error: ErrorDetails


# What every path may answer, for the OpenAPI document.
RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorBody, "description": "The request was refused."},
    "5XX": {"model": ErrorBody, "description": "The server is busy, too late, or failed."},
}


class RefusedError(Exception):
    """A request that gets an error for an answer.

    Args:
        code: What was wrong, in a word for programs.
        param: The field that was wrong, if it was one.
        retry_after: Seconds after which it may work.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code
        self.param, self.retry_after = param, retry_after

    def values(self) -> dict[str, Any]:
        """The error as plain values."""
        return {
            "error": {
                "message": printable(self.message),
                "type": TYPES.get(self.status, INVALID),
                "param": None if self.param is None else printable(self.param),
                "code": self.code,
            }
        }

    def response(self) -> Response:
        """The answer."""
        headers = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        return json_response(self.values(), status=self.status, headers=headers)

    async def close(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer before the body was read, and close the connection.

        What still comes is thrown away for a moment: a client that sends all of its request before
        it reads would otherwise see a broken connection instead of the answer.
        """
        response = self.response()
        response.headers["connection"] = "close"
        head = {"status": response.status_code, "headers": response.raw_headers}
        await send({"type": "http.response.start", **head})
        await send({"type": "http.response.body", "body": response.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while (await receive()).get("more_body", False):
                    pass
        await send({"type": "http.response.body", "body": b""})


def json_response(
    values: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Plain values as JSON; what is no number in JSON, such as infinity, becomes null."""
    content = to_json(values, inf_nan_mode="null")
    return Response(content, status, dict(headers or {}), media_type="application/json")


def printable(text: str) -> str:
    """A text that can be sent, whatever a client made of it.

    >>> printable("a" + chr(0xD800))
    'a?'
    """
    return text[:SHOWN].encode("utf-8", "replace").decode()


def invalid_request(error: RequestValidationError) -> RefusedError:
    """The first thing that is wrong with a request; what was sent is not repeated.

    A field of several types has an error for each of them: one of its content says more than one
    of its type.
    """
    errors: list[Mapping[str, Any]] = [*error.errors()] or [{"loc": ()}]
    first = errors[0]
    if first.get("type") == "json_invalid":
        message = f"the body is not valid JSON: error at character {first['loc'][-1]}"
        return RefusedError(422, message, code="invalid_json")
    if first["loc"] == ("body",):
        return no_object(first)
    same = [one for one in errors if place_of(one)[:1] == place_of(first)[:1]]
    deepest = max(same, key=lambda one: len(place_of(one)))  # of equals, the first
    found = next((one for one in same if not one.get("type", "").endswith("_type")), deepest)
    place = place_of(found)
    param = ".".join(place) or None
    message = what_is_wrong([found, *(one for one in same if place_of(one) == place)])
    message = f"{param}: {message}" if param else message
    return RefusedError(422, message, code="invalid_value", param=param)


def no_object(error: Mapping[str, Any]) -> RefusedError:
    """For a body of which no field could be read."""
    if isinstance(error.get("input"), bytes):
        return RefusedError(422, NO_JSON_HEADER, code="no_json_header")
    message = EMPTY if error.get("type") == "missing" else NO_OBJECT
    return RefusedError(422, message, code="invalid_json")


def place_of(error: Mapping[str, Any]) -> list[str]:
    """The field that is wrong, and where inside it; pydantic names its type, too.

    >>> place_of({"loc": ("body", "stop", "list[str]", 2)})
    ['stop', '2']
    """
    parts = [str(part) for part in error["loc"] if part not in ("body", "path", "query")]
    return [part for part in parts if part not in TYPE_NAMES and "[" not in part]


def add_error_handlers(app: FastAPI) -> None:
    """Give every error the same form."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, RefusedError)
        return error.response()

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return invalid_request(error).response()

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if (reason := unreadable(error.__cause__)) is not None:
            return RefusedError(422, reason, code="invalid_json").response()
        message = UNKNOWN_PATH if error.status_code == 404 else str(error.detail)
        response = RefusedError(error.status_code, message, code="http_error").response()
        response.headers.update(error.headers or {})
        return response

    async def failed(request: Request, error: Exception) -> Response:
        return internal_error().response()

    app.add_exception_handler(RefusedError, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, failed)


def internal_error() -> RefusedError:
    """For what went wrong here; the details are in the server's log alone."""
    return RefusedError(500, "the server failed to answer; its log says why", code="internal")
