"""Copy as a job: what a run needs of it beside its task."""

import numpy as np
import torch
from jobs import Copy, CopyConfig

from glassformer.config import stack_of_size
from glassformer.config.values import plain
from glassformer.metrics.intervals import bootstrap, ratio
from glassformer.metrics.paired import paired_test
from glassformer.tasks.about import About
from glassformer.tasks.job import Job
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.reporter import Reporter
from glassformer.tasks.shared.text import TextPredictor
from glassformer.tasks.shared.text_data import TextSchema


class CopyReporter(Reporter[Copy, np.ndarray]):
    """Its scores say all."""

    score_names = ("exact",)

    def answers(self, model, batches):
        return self.task.answers(model, batches)

    def scores(self, answers):
        return {"exact": bootstrap(ratio, answers, np.ones(len(answers)))}

    def compare(self, first, second):
        return {"exact": paired_test(first, second)}


def copy_defaults(accelerated):
    stack = plain(stack_of_size("tiny", depth=1, dropout=0.0))
    return {"model": {"encoder": stack, "decoder": stack}, "train": {"epochs": 3.0}}


class CopyPredictor(TextPredictor[Copy]):
    """Copies of new texts."""

    @torch.no_grad()
    def predict(self, model, inputs):
        for text in inputs:
            ids = [np.array(self.task.read(text))]
            [(written, sure)] = self.task.write(model, self.task.pairs(ids, ids, np.arange(1)))
            letters = [*self.task.alphabet, "", "", "?"]
            yield Prediction("".join(letters[place] for place in written), sure, {})


ABOUT = About(name="copy", summary="Writes what it reads.", job="copy_job:COPY")
COPY = Job(
    about=ABOUT,
    settings=CopyConfig,
    defaults=copy_defaults,
    schema=TextSchema(),
    task=Copy,
    predictor=CopyPredictor,
    reporter=CopyReporter,
)
