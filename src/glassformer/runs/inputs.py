"""Inputs in the rows of a table: which columns they are read from.

A run reads the columns that it was trained on. A table without them is refused, unless its columns
are named, or there is only one. Runs that do not know their columns guess, and say so: older ones,
and those of a folder of images or recordings.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from glassformer.config import DataConfig
from glassformer.data.columns import Columns, Role, find_by_name, normal_name
from glassformer.data.ingest import LOOKED_AT, header_of, rows_of
from glassformer.data.rows import InMemory, Row, listed
from glassformer.data.schema import Schema
from glassformer.errors import GlassformerError, unknown
from glassformer.runs.folder import RunFolder
from glassformer.tasks.predictor import Predictor

NAMED: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True, slots=True)
class TableInputs:
    """The inputs in the rows of a table.

    Attributes:
        columns: Columns by role, those that inputs are read from.
        guessed: Whether the run does not know which columns it was trained on.
        header: Whether the first row named the columns; None for what is no text table.
        pairs: Each row with its input; None where its cell is empty.
    """

    name: str
    columns: Columns
    guessed: bool
    header: bool | None = None
    pairs: Iterator[tuple[Row, Any]]

    def __str__(self) -> str:
        """Which columns were read."""
        read = " and ".join(f"{column!r} as {role}" for role, column in self.columns.items())
        example = next(iter(self.columns), "text")
        advice = f", a guess: this run does not know its columns; choose with --columns {example}="
        said = f"{self.name}: read {read}" + (f"{advice}..." if self.guessed else "")
        return said if self.header is None else f"{said}; header: {'yes' if self.header else 'no'}"


def table_inputs(
    name: str,
    folder: RunFolder,
    config: DataConfig,
    schema: Schema,
    predictor: Predictor[Any, Any],
    given: Mapping[str, str] = NAMED,
    header: bool | None = None,
) -> TableInputs:
    """The inputs in a file, a folder or rows that are held in memory.

    Args:
        schema: That of the job.
        given: Columns by role, as specified by the user.
        header: Whether the first row of a text table names its columns, if different from training.
    """
    known: Columns = folder.intake().get("columns", {})
    named = known | dict(given)  # which tell a header from a row
    header = config.header if header is None else header
    config = replace(config, columns=named, group=None, header=header)
    rows, header = rows_of(name, config, schema), header_of(name, config, schema)
    head = list(islice(rows, LOOKED_AT))
    inputs = schema.inputs().reading(known or given)
    if predictor.reads:
        inputs = copy(inputs)
        inputs.roles = tuple(role for role in inputs.roles if role.name in predictor.reads)
    if not head:
        return TableInputs(name=name, columns={}, guessed=False, pairs=iter(()))
    known = without_layout(known, inputs.roles, head)
    guessed = not any(role.name in known for role in inputs.roles)
    refuse_other_roles(given, schema, inputs)
    if guessed:
        columns = inputs.find_columns(head, given)
    else:
        columns = input_columns(name, head, inputs.roles, known, given)

    def pairs() -> Iterator[tuple[Row, Any]]:
        for row in chain(head, rows):
            values = {
                role.name: inputs.value(role, row, columns)
                for role in inputs.roles
                if role.name in columns
            }
            yield row, None if _is_empty(values, inputs.roles) else predictor.from_sample(values)

    return TableInputs(name=name, columns=columns, guessed=guessed, header=header, pairs=pairs())


def without_layout(known: Columns, roles: Sequence[Role], head: Sequence[Row]) -> Columns:
    """The columns of training, but for those of a folder of files, which no table has.

    They are called like their roles, and what is read from them can be told by its content.
    """
    there = {name for row in head for name in row.values}
    layout = {role.name for role in roles if role.by_content and known.get(role.name) == role.name}
    return {role: name for role, name in known.items() if role not in layout - there}


def input_columns(
    source: str,
    head: Sequence[Row],
    roles: Sequence[Role],
    known: Mapping[str, str],
    given: Mapping[str, str],
) -> Columns:
    """The columns of the inputs: as given, else as in training; refused if they are not there.

    The layout of a folder has columns of its own, which are called like their roles.
    """
    columns = list(dict.fromkeys(name for row in head for name in row.values))
    is_layout = not isinstance(source, InMemory) and Path(source).is_dir()
    needed = [role for role in roles if role.required]
    optional = [role for role in roles if not role.required]
    found: Columns = {}
    for role in needed:
        names = [given.get(role.name, ""), known.get(role.name, "")]
        names += [role.name] if is_layout else []
        there = _first_there(names, columns)
        if role.name in given and there != given[role.name]:
            raise GlassformerError(f"{source}: {unknown('column', given[role.name], columns)}")
        if there is None and len(columns) == len(needed) == 1:
            there = columns[0]
        if there is None:
            raise _without(source, role, known, columns)
        found[role.name] = there
    for role in optional:
        name = given.get(role.name, known.get(role.name, ""))
        if role.name in given and name not in columns:
            raise GlassformerError(f"{source}: {unknown('column', name, columns)}")
        if name in columns:
            found[role.name] = name
    free = [column for column in columns if column not in found.values()]
    return found | find_by_name(free, [role for role in optional if role.name not in found])


def refuse_other_roles(given: Mapping[str, str], schema: Schema, inputs: Schema) -> None:
    """Refuse columns for roles that inputs do not have."""
    roles = [role.name for role in inputs.roles]
    for role in given:
        if role in roles:
            continue
        if role in [one.name for one in schema.roles]:
            raise GlassformerError(
                f"--columns: {role} is not read to predict, only {', '.join(roles)}; leave it out"
            )
        raise GlassformerError(f"--columns: {unknown('role', role, roles)}")


def _first_there(names: Sequence[str], columns: Sequence[str]) -> str | None:
    """The first of some names that a table has, if need be in another spelling."""
    for name in names:
        if name in columns:
            return name
        alike = [one for one in columns if name and normal_name(one) == normal_name(name)]
        if len(alike) == 1:
            return alike[0]
    return None


def _without(
    source: str, role: Role, known: Mapping[str, str], columns: Sequence[str]
) -> GlassformerError:
    """The error for a table that lacks a column."""
    return GlassformerError(
        f"{source}: has no column {known.get(role.name, role.name)!r}, which the run learned its "
        f"{role.name} from, only {listed(columns)}; name the one to read with "
        f"--columns {role.name}=..."
    )


def _is_empty(values: Mapping[str, Any], roles: Sequence[Role]) -> bool:
    """Whether the cell of a role that is needed is empty."""
    needed = [values.get(role.name) for role in roles if role.required and role.name in values]
    return any(isinstance(value, str) and not value.strip() for value in needed)
