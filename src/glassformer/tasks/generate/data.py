"""The data of `generate`: texts."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.columns import Columns, find_by_name
from glassformer.data.doctor.check import Check
from glassformer.data.doctor.default_checks import default_checks
from glassformer.data.ingest import LOOKED_AT
from glassformer.data.rows import CONTINUED, Row, as_text
from glassformer.data.samples import Sample
from glassformer.data.sources.formats import is_table
from glassformer.tasks.generate.checks import (
    Boilerplate,
    LanguageMix,
    LongLines,
    NearDuplicates,
)
from glassformer.tasks.generate.documents import are_many, files_in, read_documents
from glassformer.tasks.shared.text_checks import GarbledText, Lengths
from glassformer.tasks.shared.text_data import LABEL, TextSchema

MOST = 0.8  # of the first rows


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
        ends = name in config.files and not are_many(config.files)
        return read_documents(path, config.encoding, open_shares if ends else {}, config.header)

    def group_column(self, name: str, config: DataConfig) -> str | None:
        texts = Path(name).exists() and not any(map(is_table, files_in(Path(name))))
        return "file" if texts and are_many(config.files) else None

    def text_files(self, name: str) -> Sequence[Path]:
        return files_in(Path(name))

    def recognises(self, name: str, config: DataConfig, rows: Iterator[Row]) -> bool:
        """Rows of texts that go on in the next, or of several lines, without a column of labels."""
        if Path(name).exists() and not is_table(Path(name)):
            return False
        head = list(islice(rows, LOOKED_AT))
        if any(row.values.get(CONTINUED) for row in head):
            return True
        lined = sum("\n" in as_text(row.values.get("text")) for row in head)
        columns = dict.fromkeys(column for row in head for column in row.values)
        label = find_by_name(list(columns), [LABEL]).get("label")
        values = [as_text(row.values.get(label)) for row in head] if label else []
        return lined > MOST * len(head) and (not label or len({*values}) > MOST * len(head))

    def sample(self, row: Row, columns: Columns) -> tuple[Sample, str]:
        sample, fault = super().sample(row, columns)
        if row.values.get(CONTINUED):
            sample[CONTINUED] = True
        return sample, fault

    def checks(self, config: Config) -> list[Check]:
        lengths = Lengths("text", None, config.data.tokenizer.kind)
        own = [NearDuplicates(), Boilerplate(), LongLines(), LanguageMix()]
        return [*default_checks(), GarbledText("text"), lengths, *own]
