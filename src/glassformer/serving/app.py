"""The application: every path, behind the gate, the keys and the meters."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from glassformer import __version__
from glassformer.serving.audio import add_recordings
from glassformer.serving.completions import add_completions
from glassformer.serving.direct import Direct
from glassformer.serving.embeddings import add_embeddings
from glassformer.serving.errors import RESPONSES, add_error_handlers
from glassformer.serving.explanations import add_explanations
from glassformer.serving.gate import Gate
from glassformer.serving.images import add_images
from glassformer.serving.keys import Addressed, Guarded, Keys
from glassformer.serving.metrics import Measured
from glassformer.serving.models import Models
from glassformer.serving.operations import add_operations
from glassformer.serving.page import add_page
from glassformer.serving.predictions import add_predictions
from glassformer.serving.reference import POLICY, reference_page
from glassformer.serving.training import add_training, admitting
from glassformer.serving.transcriptions import add_transcriptions

SAFE = {"content-security-policy": POLICY, "x-content-type-options": "nosniff"}


class Application:
    """What uvicorn runs.

    Args:
        origins: Those whose pages may send requests.
        hosts: Names of the server besides those of the machine itself; None for any.

    Attributes:
        api: The paths alone.
        gate: Counts the open requests.
    """

    def __init__(
        self,
        models: Models,
        keys: Keys,
        origins: Sequence[str] = (),
        hosts: Collection[str] | None = (),
    ) -> None:
        self.models, self.keys, limits = models, keys, models.config.limits
        self.api = paths(models, keys)
        self.gate = self.api.state.gate = Gate(Direct(self.api), limits)
        self.api.state.renew = self.renew
        app: ASGIApp = Guarded(self.gate, keys) if keys else self.gate
        if origins:
            headers, methods = ["authorization", "content-type"], ["GET", "POST"]
            app = CORSMiddleware(
                app, allow_origins=origins, allow_methods=methods, allow_headers=headers
            )
        self.asgi: ASGIApp = Measured(Addressed(app, hosts, origins), models.metrics)

    def renew(self) -> None:
        """Add the paths of a model that was not there before; open requests end where they are."""
        self.api = paths(self.models, self.keys)
        self.api.state.gate, self.gate.app = self.gate, Direct(self.api)


def paths(models: Models, keys: Keys) -> FastAPI:
    """The API: the forms of the models that are served, and what runs a server."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        models.worker.start()
        async with admitting(models, app.state.renew):
            yield

    app = FastAPI(
        title="Glassformer",
        version=__version__,
        description="Trained models over HTTP.",
        docs_url=None,
        redoc_url=None,
        responses=RESPONSES,
        lifespan=lifespan,
    )
    limits = models.config.limits
    add_error_handlers(app)
    add_completions(app, models, limits)
    add_predictions(app, models, limits)
    add_recordings(app, models, limits)
    add_transcriptions(app, models, limits)
    add_images(app, models, limits)
    add_embeddings(app, models, limits)
    add_explanations(app, models, limits)
    add_training(app, models)
    add_operations(app, models, keys)
    add_page(app)

    @app.get("/docs", include_in_schema=False)
    async def reference() -> Response:
        return HTMLResponse(reference_page(app.openapi()), headers=SAFE)

    return app
