"""/v1/embeddings: texts as vectors of length 1."""

import base64
from functools import partial
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from jaxtyping import Float
from starlette.responses import Response

from glassformer.serving.errors import json_response
from glassformer.serving.models import Models
from glassformer.serving.predictions import as_list, check_lengths
from glassformer.serving.schemas import EmbeddingRequest
from glassformer.serving.settings import Limits
from glassformer.serving.waiting import answered

PATH = "/v1/embeddings"


def add_embeddings(app: FastAPI, models: Models, limits: Limits) -> None:
    """The path, if a model has vectors."""
    if not any(one.embeds for one in models):
        return

    @app.post(PATH, summary="Turn texts into vectors.", name="embeddings")
    async def embed(body: EmbeddingRequest, request: Request) -> Response:
        model = models.find(body.model, PATH)
        texts = as_list(body.input, limits)
        work = model.embeddings.answers(texts, (), partial(check_lengths, model, limits.tokens))
        found = await answered(request, work, limits.seconds, model)
        data = [
            {"object": "embedding", "index": n, "embedding": written(vector, body.encoding_format)}
            for n, (vector, _) in enumerate(found)
        ]
        tokens = sum(count for _, count in found)
        models.metrics.tokens.labels(model.name, "prompt").inc(tokens)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return json_response({"object": "list", "model": model.name, "data": data, "usage": usage})


def written(vector: Float[np.ndarray, " D"], form: str) -> Any:
    """A vector as numbers, or as base64 of their bytes."""
    bytes_of = vector.astype("<f4").tobytes
    return base64.b64encode(bytes_of()).decode() if form == "base64" else vector.tolist()
