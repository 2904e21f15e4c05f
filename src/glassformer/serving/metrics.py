"""What Prometheus reads: requests, their times, the sizes of batches, and what is under way."""

import time
from collections.abc import MutableMapping
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120)
INPUTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "glassformer_requests",
            "Requests, by path and status; 499 if the client was gone before the answer.",
            ["path", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "glassformer_request_seconds",
            "Time from the headers of a request to the end of its answer.",
            ["path"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.open = Gauge(
            "glassformer_open_requests", "Requests under way.", registry=self.registry
        )
        self.batch_inputs = Histogram(
            "glassformer_batch_inputs",
            "Inputs that were answered together.",
            ["model"],
            buckets=INPUTS,
            registry=self.registry,
        )
        self.tokens = Counter(
            "glassformer_tokens",
            "Tokens of prompts and of what was written.",
            ["model", "kind"],
            registry=self.registry,
        )

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self.registry)


class Measured:
    """Counts and times the requests of an application."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics
        self.requests = cache(metrics.requests.labels)
        self.seconds = cache(metrics.seconds.labels)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 499

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.open.inc()
        try:
            await self.app(scope, receive, noting)
        finally:
            self.metrics.open.dec()
            path = path_of(scope)
            self.requests(path, status).inc()
            self.seconds(path).observe(time.perf_counter() - began)


def path_of(scope: MutableMapping[str, Any]) -> str:
    """The path as the application declares it, so that clients cannot make up new ones."""
    route = scope.get("route")
    return getattr(route, "path", "other")
