"""What runs a server: the list of models, health, metrics, and reloading."""

import logging

from fastapi import FastAPI, Request
from starlette.responses import PlainTextResponse, Response

from glassformer.errors import GlassformerError
from glassformer.serving.errors import RefusedError, json_response
from glassformer.serving.keys import Keys
from glassformer.serving.metrics import CONTENT_TYPE
from glassformer.serving.models import Models

log = logging.getLogger(__name__)


def add_operations(app: FastAPI, models: Models, keys: Keys) -> None:
    """The paths of operators."""

    @app.get("/v1/models", summary="List the models.", name="models")
    async def list_models() -> Response:
        return json_response({"object": "list", "data": [one.values() for one in models]})

    @app.get("/v1/models/{name}", summary="Describe a model.", name="model")
    async def describe(name: str) -> Response:
        return json_response(models.named(name).values())

    @app.post("/v1/models/{name}/reload", summary="Load a run again.", name="reload")
    async def reload(name: str) -> Response:
        if not keys:
            raise RefusedError(
                403,
                "reloading needs a key, and this server has none; start it with one, or send "
                "SIGHUP to it",
                code="no_keys",
            )
        models.named(name)  # or it is refused
        try:
            model = await models.reload(name)
        except GlassformerError as error:
            log.warning("%s is not reloaded: %s", name, error)
            raise RefusedError(
                409,
                f"{name} cannot be loaded, and stays as it was; the server's log says why",
                code="reload_failed",
            ) from None
        return json_response(model.values())

    @app.get("/healthz", summary="Whether the process is alive.", name="healthz")
    async def healthz() -> Response:
        return PlainTextResponse("ok\n")

    @app.get("/readyz", summary="Whether requests are accepted.", name="readyz")
    async def readyz(request: Request) -> Response:
        if request.app.state.gate.draining:
            raise RefusedError(503, "the server is shutting down", code="shutting_down")
        return PlainTextResponse("ok\n")

    @app.get("/metrics", summary="Metrics for Prometheus.", name="metrics")
    async def metrics() -> Response:
        return Response(models.metrics.text(), media_type=CONTENT_TYPE)
