"""The data of `recognise`: images, and their labels."""

from collections.abc import Iterator
from functools import partial

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.doctor.check import Check
from glassformer.data.doctor.default_checks import default_checks
from glassformer.data.doctor.repairs import StrayCharacters
from glassformer.data.rows import Row
from glassformer.data.samples import Sample
from glassformer.tasks.recognise.checks import ImageSizes
from glassformer.tasks.shared.image_data import NUMBER, PATH, ImageSchema
from glassformer.tasks.shared.label_checks import LabelCounts, answer_of
from glassformer.tasks.shared.labels import MANY, names_in
from glassformer.tasks.shared.text_data import LABEL


class RecogniseSchema(ImageSchema):
    """An image and its label or labels."""

    roles = (PATH, LABEL, NUMBER)

    def recognises(self, name: str, config: DataConfig, rows: Iterator[Row]) -> bool:
        """A folder of images for each label."""
        first = next(rows, None)
        return first is not None and {PATH.name, LABEL.name} <= {*first.values}

    def stratum(self, sample: Sample) -> str:
        label = sample["label"]
        return label if isinstance(label, str) else "\n".join(sorted(map(str, label)))

    def checks(self, config: Config) -> list[Check]:
        task, names = config.task, partial(names_in, separator=config.task.separator)

        def answer(sample: Sample) -> str:
            return answer_of(names(sample))

        several = {"separator": task.separator, "several": task.multi_label}
        labels = LabelCounts(names, rarest=task.rarest, most=MANY, **several)
        return [
            *default_checks(answer, one_answer=True, renamed=labels.renamed),
            ImageSizes(task.largest),
            StrayCharacters("label"),
            labels,
        ]
