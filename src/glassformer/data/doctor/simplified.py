"""Chinese in one script: checks see what a tokenizer sees that makes traditional simplified."""

from collections.abc import Iterator, Mapping, Sequence

from glassformer.data.doctor.check import Check, Figures, Specimen, specimen
from glassformer.data.doctor.finding import Finding, Where
from glassformer.data.text.chinese import simplified


class Simplified(Check):
    """Shows other checks the rows with some of their texts in simplified Chinese.

    Args:
        roles: The texts, such as source and target; without any, rows are shown as they are.
        checks: Those that compare texts, none of which needs all rows.
    """

    def __init__(self, roles: Sequence[str], checks: Sequence[Check]) -> None:
        self.roles, self.checks = roles, checks

    def see(self, row: Specimen) -> None:
        shown = self._converted(row) if self.roles else row
        for check in self.checks:
            check.see(shown)

    def findings(self, where: Where) -> Iterator[Finding]:
        for check in self.checks:
            yield from check.findings(where)

    def figures(self) -> Figures:
        return {title: table for check in self.checks for title, table in check.figures().items()}

    def to_drop(self) -> Mapping[int, str]:
        return {n: why for check in reversed(self.checks) for n, why in check.to_drop().items()}

    def _converted(self, row: Specimen) -> Specimen:
        sample = row.sample | {role: simplified(row.sample[role]) for role in self.roles}
        return specimen(row.number, row.part, sample, group=row.group, others=row.others)
