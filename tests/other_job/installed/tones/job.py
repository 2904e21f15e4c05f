"""The parts of `listen`, put together."""

from glassformer.tasks.job import Job
from tones.about import ABOUT
from tones.data import ListenSchema
from tones.predictor import ListenPredictor
from tones.reporter import ListenReporter
from tones.settings import ListenConfig, listen_defaults
from tones.task import ListenTask

JOB = Job(
    about=ABOUT,
    settings=ListenConfig,
    defaults=listen_defaults,
    schema=ListenSchema(),
    task=ListenTask,
    predictor=ListenPredictor,
    reporter=ListenReporter,
)
