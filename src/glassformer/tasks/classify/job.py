"""The parts of `classify`."""

from glassformer.tasks.classify.about import ABOUT
from glassformer.tasks.classify.data import ClassifySchema
from glassformer.tasks.classify.explainer import explainer_of
from glassformer.tasks.classify.predictor import predictor_of
from glassformer.tasks.classify.pretraining import PRETRAIN_FIRST
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.tasks.classify.settings import ClassifyConfig, classify_defaults
from glassformer.tasks.classify.suited import suited_to
from glassformer.tasks.classify.task import ClassifyTask
from glassformer.tasks.job import Job

JOB = Job(
    about=ABOUT,
    settings=ClassifyConfig,
    defaults=classify_defaults,
    suited=suited_to,
    schema=ClassifySchema(),
    task=ClassifyTask,
    reporter=ClassifyReporter,
    first_stage=PRETRAIN_FIRST,
    predictor=predictor_of,
    explainer=explainer_of,
    model="classifier",
)
