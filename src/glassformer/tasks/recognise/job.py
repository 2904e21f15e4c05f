"""The parts of `recognise`."""

from glassformer.tasks.job import Job
from glassformer.tasks.recognise.about import ABOUT
from glassformer.tasks.recognise.data import RecogniseSchema
from glassformer.tasks.recognise.explainer import ImageLabelExplainer
from glassformer.tasks.recognise.predictor import ImageLabelPredictor
from glassformer.tasks.recognise.reporter import RecogniseReporter
from glassformer.tasks.recognise.settings import RecogniseConfig, recognise_defaults
from glassformer.tasks.recognise.task import RecogniseTask

JOB = Job(
    about=ABOUT,
    settings=RecogniseConfig,
    defaults=recognise_defaults,
    schema=RecogniseSchema(),
    task=RecogniseTask,
    reporter=RecogniseReporter,
    predictor=ImageLabelPredictor,
    explainer=ImageLabelExplainer,
    model="classifier",
    unused=(
        *("data.tokenizer", "data.token_dropout", "data.form", "model.ngrams"),  # of texts
        # found from the images, or set as task.height ...
        *(f"model.frontend.{name}" for name in ("channels", "patch", "height", "width")),
    ),
)
