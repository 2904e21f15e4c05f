"""The parts of `recommend`."""

from glassformer.tasks.job import Job
from glassformer.tasks.recommend.about import ABOUT
from glassformer.tasks.recommend.data import RecommendSchema
from glassformer.tasks.recommend.predictor import RecommendPredictor
from glassformer.tasks.recommend.reporter import RecommendReporter
from glassformer.tasks.recommend.settings import (
    RecommendConfig,
    recommend_defaults,
    unused_settings,
)
from glassformer.tasks.recommend.task import RecommendTask

JOB = Job(
    about=ABOUT,
    settings=RecommendConfig,
    defaults=recommend_defaults,
    schema=RecommendSchema(),
    task=RecommendTask,
    predictor=RecommendPredictor,
    reporter=RecommendReporter,
    model="language model",
    unused=("data.tokenizer", "data.token_dropout", "data.form"),  # it reads no texts, and packs
    unused_with=unused_settings,
)
