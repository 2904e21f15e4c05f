"""The data of `classify`: texts or recordings, and their labels."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

from glassformer.config import DataConfig
from glassformer.config.own_code import is_own
from glassformer.config.run import Config
from glassformer.data.columns import Columns, Role
from glassformer.data.doctor.check import Check, OnlyWith
from glassformer.data.doctor.default_checks import default_checks
from glassformer.data.doctor.repairs import StrayCharacters
from glassformer.data.rows import Row
from glassformer.data.samples import Sample
from glassformer.data.schema import Schema
from glassformer.tasks.classify.checks.kinds import OneKind
from glassformer.tasks.classify.checks.leaks import Leaks
from glassformer.tasks.shared.label_checks import LabelCounts, answer_of
from glassformer.tasks.shared.labels import MANY, names_in
from glassformer.tasks.shared.sound_checks import SoundLevels
from glassformer.tasks.shared.sound_data import (
    END,
    PATH,
    START,
    SoundSchema,
    paths_of_recordings,
    without_answers,
)
from glassformer.tasks.shared.text_checks import GarbledText, Lengths
from glassformer.tasks.shared.text_data import LABEL, TEXT, TextSchema


class LabelledTexts(TextSchema):
    """A text and its label or labels."""

    roles = (TEXT, LABEL)


class LabelledSounds(SoundSchema):
    """A recording, or a part of one, and its label or labels."""

    roles = (PATH, LABEL, START, END)


class ClassifySchema(Schema):
    """Texts or recordings: a source holds recordings if a column of it names some."""

    def __init__(self) -> None:
        self.texts: Schema = LabelledTexts()
        self.sounds: Schema = LabelledSounds()
        self.roles = (*self.texts.roles, PATH, START, END)

    def inputs(self) -> Schema:
        other = copy(self)
        other.texts, other.sounds = self.texts.inputs(), self.sounds.inputs()
        other.roles = tuple(role for role in self.roles if not role.answer)
        return other

    def reading(self, columns: Mapping[str, str]) -> Schema:
        return self._with(columns) if {TEXT.name, PATH.name} & {*columns} else self

    def arrange(self, names: Sequence[str]) -> list[str]:
        return self.sounds.arrange(names)

    def open(self, name: str, config: DataConfig) -> Iterator[Row] | None:
        """Folders of recordings; tables are left to the general readers."""
        return self.sounds.open(name, config) if Path(name).is_dir() else None

    def recognises(self, name: str, config: DataConfig, rows: Iterator[Row]) -> bool:
        """A folder of recordings for each label."""
        first = next(rows, None)
        return first is not None and {*first.values} == {PATH.name, LABEL.name}

    def find_columns(self, head: Sequence[Row], given: Mapping[str, str], *more: Role) -> Columns:
        columns = list(dict.fromkeys(column for row in head for column in row.values))
        named = PATH.name in given
        heard = named or (TEXT.name not in given and paths_of_recordings(columns, head) is not None)
        if columns == [PATH.name] and LABEL in self.roles and not given:
            advice = "put the recordings into one folder per label, or give a table of paths and "
            raise without_answers(head[0].file, "label", advice + "labels")
        return (self.sounds if heard else self.texts).find_columns(head, given, *more)

    def sample(self, row: Row, columns: Columns) -> tuple[Sample, str]:
        return self._with(columns).sample(row, columns)

    def value(self, role: Role, row: Row, columns: Columns) -> Any:
        return self._with(columns).value(role, row, columns)

    def content(self, sample: Sample, config: DataConfig) -> str:
        return self._with(sample).content(sample, config)

    def stratum(self, sample: Sample) -> str | None:
        label = sample.get("label")
        if label is None:  # where only texts are read
            return None
        return label if isinstance(label, str) else "\n".join(sorted(map(str, label)))

    def _with(self, roles: Mapping[str, Any]) -> Schema:
        return self.sounds if PATH.name in roles else self.texts

    def checks(self, config: Config) -> list[Check]:
        task, names = config.task, partial(names_in, separator=config.task.separator)
        read = None if task.long == "windows" else task.max_length - 2  # without start and end
        kind, advice = config.data.tokenizer.kind, ", or all with task.long=windows"

        def answer(sample: Sample) -> str:
            return answer_of(names(sample))

        several = {"separator": task.separator, "several": task.multi_label}
        labels = LabelCounts(names, rarest=task.rarest, most=MANY, **several)
        default = default_checks(answer, one_answer=True, renamed=labels.renamed)
        if is_own(config.model.frontend.kind):
            return [*default, labels]
        return [
            *default,
            OneKind(),
            OnlyWith("text", GarbledText("text")),
            OnlyWith("text", Lengths("text", read, kind, advice)),
            OnlyWith("sound", SoundLevels(task.max_seconds, task.rate, cuts=True)),
            StrayCharacters("text", "label"),
            labels,
            Leaks(names, labels),
        ]
