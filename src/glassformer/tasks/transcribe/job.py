"""The parts of `transcribe`."""

from glassformer.tasks.job import Job
from glassformer.tasks.transcribe.about import ABOUT
from glassformer.tasks.transcribe.data import TranscribeSchema
from glassformer.tasks.transcribe.explainer import TranscribeExplainer
from glassformer.tasks.transcribe.predictor import TranscribePredictor
from glassformer.tasks.transcribe.reporter import TranscribeReporter
from glassformer.tasks.transcribe.settings import TranscribeConfig, transcribe_defaults
from glassformer.tasks.transcribe.task import TranscribeTask

JOB = Job(
    about=ABOUT,
    settings=TranscribeConfig,
    defaults=transcribe_defaults,
    schema=TranscribeSchema(),
    task=TranscribeTask,
    predictor=TranscribePredictor,
    explainer=TranscribeExplainer,
    reporter=TranscribeReporter,
    model="encoder-decoder",
    unused=(
        *("data.token_dropout", "data.form"),  # it reads no tokens, and pads
        *("data.tokenizer.lowercase", "data.tokenizer.dropout"),  # task.lowercase has more effect
        *("data.stratify", "model.share"),
    ),
)
