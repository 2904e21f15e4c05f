"""What clients send. A field that is not listed is refused, so that none is ignored in silence."""

from typing import Annotated, Any, Literal

from fastapi import UploadFile
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from glassformer.config.decoding import MOST_TOKENS
from glassformer.explaining.methods import METHODS
from glassformer.serving.settings import Limits
from glassformer.tasks.about import About, Option

SCALARS = (bool, int, float, str)  # kinds of options that a client may set
MODEL = "Name of the model: that of its run folder."
STOPS = 4  # stop texts
ONLY = "Nothing but {}, which some clients send, and which changes nothing."
Share = Annotated[float, Field(ge=0, le=1)]
Zero = Annotated[float, Field(ge=0, le=0)] | None


def whole_characters(text: str) -> str:
    """Refuse halves of characters, which JSON can spell but no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is no character") from None
    return text


Text = Annotated[str, AfterValidator(whole_characters)]


class Sent(BaseModel):
    """Any request."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class StreamOptions(Sent):
    """What a stream tells besides the text."""

    include_usage: bool = False


class CompletionRequest(Sent):
    """A text to continue. Settings that are left out are the run's own."""

    model: str = Field(description=MODEL)
    prompt: Text | list[Text] = Field("", description="A text, or several.")
    max_tokens: int | None = Field(
        None, ge=1, le=MOST_TOKENS, description="Maximum number of tokens to write."
    )
    temperature: float | None = Field(
        None, ge=0, le=100, description="Sampling temperature; 0 always takes the likeliest token."
    )
    top_p: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="Sample from the likeliest tokens that together reach this probability."
    )
    top_k: Annotated[int, Field(ge=0, le=1 << 20)] | None = Field(
        None, description="Sample from this many of the likeliest tokens; 0 for all."
    )
    min_p: Share | None = Field(
        None, description="Sample from tokens at least this likely, relative to the likeliest."
    )
    n: int = Field(1, ge=1, description="Number of continuations of each prompt.")
    stream: bool = Field(False, description="Send the text in server-sent events as it is written.")
    stream_options: StreamOptions | None = Field(
        None, description="Whether the last event counts the tokens."
    )
    logprobs: int | None = Field(
        None, ge=0, le=20, description="Return log-probabilities, and this many likely tokens."
    )
    echo: bool = Field(False, description="Whether the text begins with the prompt.")
    stop: Text | Annotated[list[Text], Field(max_length=STOPS)] | None = Field(
        None, description=f"End before this text, or the first of up to {STOPS}."
    )
    seed: int | None = Field(
        None, description="Random seed; without one, the same request always has the same answer."
    )
    user: str | None = Field(None, description="Ignored; some clients send it.")
    frequency_penalty: Zero = Field(None, description=ONLY.format(0))
    presence_penalty: Zero = Field(None, description=ONLY.format(0))
    best_of: Annotated[int, Field(ge=1, le=1)] | None = Field(None, description=ONLY.format(1))


class EmbeddingRequest(Sent):
    """Texts to turn into vectors of length 1."""

    model: str = Field(description=MODEL)
    input: Text | list[Text] = Field(description="A text, or several.")
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="Numbers, or base64 of 32-bit floats."
    )
    user: str | None = Field(None, description="Ignored; some clients send it.")


class AudioRequest(Sent):
    """A recording."""

    model: str = Field(description=MODEL)
    file: UploadFile = Field(description="WAV, FLAC, OGG or MP3; more with the extra `media`.")


class ImageRequest(Sent):
    """A picture."""

    model: str = Field(description=MODEL)
    file: UploadFile = Field(description="PNG, JPEG, GIF or WebP.")


class Explained(Sent):
    """What is explained, and how."""

    method: Text | None = Field(None, description=f"One of {', '.join(METHODS)}.")
    target: Text | None = Field(
        None, description="Explain this label or text instead of the prediction."
    )
    unit: Literal["word", "token"] | None = Field(
        None, description="Explain by words or by tokens."
    )
    packed: bool = Field(False, description="Pack the numbers, for the page to draw.")


class ExplainRequest(Explained):
    """A text whose prediction is explained."""

    model: str = Field(description=MODEL)
    input: Text = Field(description="A text.")


class AudioExplainRequest(AudioRequest, Explained):
    """A recording whose prediction is explained."""


class ImageExplainRequest(ImageRequest, Explained):
    """A picture whose prediction is explained."""


class TranscriptionRequest(AudioRequest):
    """Speech to be written down."""

    response_format: Literal["json", "text", "srt", "vtt", "verbose_json"] = "json"
    timestamp_granularities: list[Literal["word", "segment"]] = Field(
        default=[],
        alias="timestamp_granularities[]",
        description="What has times in verbose_json: segments by default, words, or both.",
    )


class PredictionRequest(Sent):
    """Inputs to predict for."""

    model: str = Field(description=MODEL)
    input: Text | list[Text] = Field(description="A text, or several.")


def prediction_request(about: About, limits: Limits) -> type[PredictionRequest]:
    """The request of a job, with those of its options that a client may set."""
    options: dict[str, Any] = {
        option.name: (field_type(option, limits), Field(None, description=option.help))
        for option in about.options
        if is_remote(option)
    }
    name = f"{about.name.capitalize()}Request"
    return create_model(name, __base__=PredictionRequest, __doc__=about.summary, **options)


def is_remote(option: Option) -> bool:
    """Whether a client may set it: nothing that names a file, or is about a single one."""
    return option.remote and option.kind in SCALARS and not option.run and not option.single


def field_type(option: Option, limits: Limits) -> Any:
    kind: Any = Text if option.kind is str else option.kind
    if kind is int:
        kind = Annotated[int, Field(ge=option.least or 0, le=limits.answers)]
    if option.several:
        kind = Annotated[list[kind], Field(max_length=limits.answers)]
    return kind | None


def options_of(request: PredictionRequest) -> dict[str, Any]:
    """The options that a client has set."""
    own = {name: getattr(request, name) for name in request.model_fields_set}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in own.items()
        if name not in ("model", "input") and value is not None
    }
