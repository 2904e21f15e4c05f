"""The parts of `translate`."""

from glassformer.tasks.job import Job
from glassformer.tasks.translate.about import ABOUT
from glassformer.tasks.translate.back_translation import BackTranslation
from glassformer.tasks.translate.data import TranslateSchema
from glassformer.tasks.translate.reporter import TranslateReporter
from glassformer.tasks.translate.sequences import explainer_of, predictor_of
from glassformer.tasks.translate.settings import TranslateConfig, translate_defaults
from glassformer.tasks.translate.suited import suited_to
from glassformer.tasks.translate.task import TranslateTask

JOB = Job(
    about=ABOUT,
    settings=TranslateConfig,
    defaults=translate_defaults,
    suited=suited_to,
    schema=TranslateSchema(),
    task=TranslateTask,
    reporter=TranslateReporter,
    extension=BackTranslation(),
    predictor=predictor_of,
    explainer=explainer_of,
    model="encoder-decoder",
    unused=("data.stratify",),  # there are no labels
)
