"""The parts of `pretrain`."""

from glassformer.tasks.job import Job
from glassformer.tasks.pretrain.about import ABOUT
from glassformer.tasks.pretrain.data import PretrainSchema
from glassformer.tasks.pretrain.explainer import GapExplainer
from glassformer.tasks.pretrain.predictor import PretrainPredictor
from glassformer.tasks.pretrain.reporter import PretrainReporter
from glassformer.tasks.pretrain.settings import PretrainConfig, pretrain_defaults
from glassformer.tasks.pretrain.task import PretrainTask

JOB = Job(
    about=ABOUT,
    settings=PretrainConfig,
    defaults=pretrain_defaults,
    schema=PretrainSchema(),
    task=PretrainTask,
    reporter=PretrainReporter,
    predictor=PretrainPredictor,
    explainer=GapExplainer,
    model="masked language model",
    unused=(
        *("data.token_dropout", "data.tokenizer.dropout"),  # it masks tokens itself
        "data.stratify",  # there are no labels
    ),
)
