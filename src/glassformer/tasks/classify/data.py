"""The data of `classify`: texts and their labels."""

from functools import partial

from glassformer.config.run import Config
from glassformer.data.doctor.check import Check
from glassformer.data.doctor.default_checks import default_checks
from glassformer.data.samples import Sample
from glassformer.tasks.classify.checks.labels import LabelCounts, LabelOrder
from glassformer.tasks.classify.checks.leaks import Leaks
from glassformer.tasks.classify.labels import MANY, names_in
from glassformer.tasks.shared.text_checks import GarbledText, Lengths
from glassformer.tasks.shared.text_data import LABEL, TEXT, TextSchema


class ClassifySchema(TextSchema):
    """A text and its label or labels."""

    roles = (TEXT, LABEL)

    def checks(self, config: Config) -> list[Check]:
        task, names = config.task, partial(names_in, separator=config.task.separator)
        read = None if task.long == "windows" else task.max_length - 2  # without start and end

        def answer(sample: Sample) -> str:
            return "\n".join(sorted(set(names(sample))))

        return [
            *default_checks(answer, one_answer=True),
            GarbledText("text"),
            Lengths("text", read, config.data.tokenizer.kind, ", or all with task.long=windows"),
            LabelCounts(names, rarest=task.rarest, most=MANY),
            LabelOrder(names),
            Leaks(names),
        ]
