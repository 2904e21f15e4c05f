"""/v1/audio/transcriptions: speech as text, as subtitles, or with the times of words."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import FastAPI, Form, Request
from starlette.responses import PlainTextResponse, Response

from glassformer.serving.audio import predicted
from glassformer.serving.errors import RefusedError, json_response
from glassformer.serving.models import Models, ServedModel
from glassformer.serving.schemas import TranscriptionRequest
from glassformer.serving.settings import Limits
from glassformer.serving.waiting import answered
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.served import SpeechWriter, Spoken

PATH = "/v1/audio/transcriptions"
TIMED = ("srt", "vtt", "verbose_json")  # forms that tell when words are spoken


def add_transcriptions(app: FastAPI, models: Models, limits: Limits) -> None:
    """The path, if a model writes down speech."""
    if not any(one.writes_speech for one in models):
        return

    @app.post(PATH, summary="Write down speech.", name="transcriptions")
    async def write_down(
        body: Annotated[TranscriptionRequest, Form()], request: Request
    ) -> Response:
        model = models.find(body.model, PATH)
        writer, form = model.predictor, body.response_format
        assert isinstance(writer, SpeechWriter)
        if body.timestamp_granularities and form != "verbose_json":
            raise RefusedError(
                422,
                "timestamp_granularities is for verbose_json; set response_format to it",
                code="invalid_value",
                param="timestamp_granularities",
            )
        if form in TIMED and not writer.has_times:
            raise RefusedError(
                422,
                f"{model.name} does not know when words are spoken; ask for json or text",
                code="no_times",
                param="response_format",
            )
        timed = {"align": True} if form in TIMED else {}
        work = predicted(model, body.file, limits, **timed)
        found, seconds = await answered(request, work, limits.seconds, model)
        if form == "verbose_json":
            return json_response(verbose(model, writer, found, body, seconds))
        return as_form(writer, found, form)


def as_form(writer: SpeechWriter, found: Prediction, form: str) -> Response:
    """The text in the form that was asked for."""
    if form == "text":
        return PlainTextResponse(found.best + "\n")
    if form == "json":
        names = ("probability", "validation")  # which OpenAI's clients ignore
        known = {name: found.details[name] for name in names if name in found.details}
        return json_response({"text": found.text, **known})
    words: Sequence[Spoken] = found.explanation
    media = "text/vtt" if form == "vtt" else "text/plain"
    return Response(writer.subtitles(words, form), media_type=media)


def verbose(
    model: ServedModel,
    writer: SpeechWriter,
    found: Prediction,
    body: TranscriptionRequest,
    seconds: float,
) -> dict[str, Any]:
    """The text with the times of its segments, its words, or both."""
    words: Sequence[Spoken] = found.explanation
    wanted = body.timestamp_granularities or ["segment"]
    values: dict[str, Any] = {
        "task": model.job,
        "duration": round(seconds, 3),
        "text": found.text,
        "confidence": found.confidence,
    }
    if "word" in wanted:
        values["words"] = [{"word": w.text, "start": w.start, "end": w.end} for w in words]
    if "segment" in wanted:
        values["segments"] = [
            {"id": number, "start": cue.start, "end": cue.end, "text": cue.text}
            for number, cue in enumerate(writer.cues(words))
        ]
    return values
