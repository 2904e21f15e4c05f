"""The data of `pretrain`: texts."""

from glassformer.config.run import Config
from glassformer.data.doctor.check import Check
from glassformer.data.doctor.default_checks import default_checks
from glassformer.tasks.shared.text_checks import GarbledText, Lengths
from glassformer.tasks.shared.text_data import TextSchema


class PretrainSchema(TextSchema):
    """One text per row."""

    def checks(self, config: Config) -> list[Check]:
        read = None  # all of it: long texts are split into pieces
        lengths = Lengths("text", read, config.data.tokenizer.kind)
        return [*default_checks(), GarbledText("text"), lengths]
