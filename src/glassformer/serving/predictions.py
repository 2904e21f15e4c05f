"""/v1/<job>: texts in, predictions out."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from glassformer.serving.batching import Options
from glassformer.serving.errors import RefusedError, json_response
from glassformer.serving.models import Models, ServedModel
from glassformer.serving.schemas import PredictionRequest, options_of, prediction_request
from glassformer.serving.settings import Limits
from glassformer.serving.waiting import answered
from glassformer.tasks import JOBS
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.shared.text import TextPredictor


def add_predictions(app: FastAPI, models: Models, limits: Limits) -> None:
    """A path for each job that predicts from texts."""
    plain = [one for one in models if one.reads_text and not one.writes_tokens]
    for job in dict.fromkeys(one.job for one in plain):
        about = JOBS.about(job)
        path = f"/v1/{job}"
        answer = handler(models, limits, path, prediction_request(about, limits))
        app.post(path, summary=about.summary, name=job)(answer)


def handler(
    models: Models, limits: Limits, path: str, schema: type[PredictionRequest]
) -> Callable[..., Any]:
    """What answers the requests of one job."""

    async def predict(body: Any, request: Request) -> Response:
        model = models.find(body.model, path)
        texts = as_list(body.input, limits)
        options: Options = tuple(sorted(options_of(body).items()))
        check = partial(check_lengths, model, limits.tokens)
        work = model.predict(texts, options, check)
        found = await answered(request, work, limits.seconds, model)
        return json_response(listed(model, found))

    predict.__annotations__["body"] = schema  # each job has its own
    return predict


def listed(model: ServedModel, found: Sequence[Prediction]) -> dict[str, Any]:
    """Predictions as an answer."""
    data = [
        {"index": number, **one.as_values(), **({"note": one.note} if one.note else {})}
        for number, one in enumerate(found)
    ]
    return {"object": "list", "model": model.name, "data": data}


def as_list(given: str | list[str], limits: Limits, param: str = "input") -> list[str]:
    """One input or several, as several."""
    texts = [given] if isinstance(given, str) else given
    if not 1 <= len(texts) <= limits.inputs:
        raise RefusedError(
            422,
            f"{param} has {len(texts)} texts; send 1 to {limits.inputs}",
            code="too_many_inputs",
            param=param,
        )
    return texts


def check_lengths(model: ServedModel, most: int, texts: Sequence[str]) -> None:
    """Refuse texts of too many tokens; a token has at least one byte, so most need no counting."""
    for text in texts:
        if (tokens := len(text.encode())) <= most:
            continue
        if isinstance(model.predictor, TextPredictor):
            tokens = model.predictor.tokens_of(text)
        if tokens > most:
            raise RefusedError(
                422,
                f"a text has {tokens:,} tokens, more than {most:,}; send less at a time",
                code="too_many_tokens",
                param="input",
            )
