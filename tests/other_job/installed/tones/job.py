"""The parts of `listen`, put together."""

from glassformer.tasks.job import Job
from tones.about import ABOUT
from tones.data import ListenSchema
from tones.predictor import ListenPredictor
from tones.reporter import ListenReporter
from tones.settings import ListenConfig, listen_defaults
from tones.task import ListenTask

NOT_OF_THE_MODEL = ("frontend", "decoder", "pool", "scale", "tie", "share")

JOB = Job(
    about=ABOUT,
    settings=ListenConfig,
    defaults=listen_defaults,
    schema=ListenSchema(),
    task=ListenTask,
    predictor=ListenPredictor,
    reporter=ListenReporter,
    unused=(
        *("data.tokenizer", "data.token_dropout", "data.form"),  # it reads no tokens, and pads
        *(f"model.{name}" for name in NOT_OF_THE_MODEL),
    ),
)
