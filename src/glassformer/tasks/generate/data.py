"""The data of `generate`: texts."""

from collections.abc import Iterator
from pathlib import Path

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.columns import Columns
from glassformer.data.doctor.check import Check
from glassformer.data.doctor.default_checks import default_checks
from glassformer.data.rows import CONTINUED, Row
from glassformer.data.samples import Sample
from glassformer.tasks.generate.checks import (
    Boilerplate,
    LanguageMix,
    LongLines,
    NearDuplicates,
)
from glassformer.tasks.generate.documents import read_documents
from glassformer.tasks.shared.text_checks import GarbledText, Lengths
from glassformer.tasks.shared.text_data import TextSchema


class GenerateSchema(TextSchema):
    """One text per row of a table; a text file is a text."""

    groups = ("file",)

    def open(self, name: str, config: DataConfig) -> Iterator[Row] | None:
        path = Path(name)
        if not path.exists():
            return None
        shares = {"valid": config.valid_share, "test": config.test_share}
        open_shares = {
            split: 0.0 if getattr(config, split) else share for split, share in shares.items()
        }
        return read_documents(path, config.encoding, open_shares if name in config.files else {})

    def sample(self, row: Row, columns: Columns) -> tuple[Sample, str]:
        sample, fault = super().sample(row, columns)
        if row.values.get(CONTINUED):
            sample[CONTINUED] = True
        return sample, fault

    def checks(self, config: Config) -> list[Check]:
        lengths = Lengths("text", None, config.data.tokenizer.kind)
        own = [NearDuplicates(), Boilerplate(), LongLines(), LanguageMix()]
        return [*default_checks(), GarbledText("text"), lengths, *own]
