"""The parts of `generate`."""

from glassformer.tasks.generate.about import ABOUT
from glassformer.tasks.generate.data import GenerateSchema
from glassformer.tasks.generate.explainer import GenerateExplainer
from glassformer.tasks.generate.predictor import GeneratePredictor
from glassformer.tasks.generate.reporter import GenerateReporter
from glassformer.tasks.generate.settings import GenerateConfig, generate_defaults
from glassformer.tasks.generate.task import GenerateTask
from glassformer.tasks.job import Job

JOB = Job(
    about=ABOUT,
    settings=GenerateConfig,
    defaults=generate_defaults,
    schema=GenerateSchema(),
    task=GenerateTask,
    reporter=GenerateReporter,
    predictor=GeneratePredictor,
    explainer=GenerateExplainer,
    model="language model",
    unused=(
        *("data.token_dropout", "data.tokenizer.dropout", "data.form"),  # windows are packed
        "data.stratify",  # there are no labels
    ),
)
