"""Several target languages in one table: each is compared with itself alone."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from glassformer.data.doctor.check import Check, Specimen
from glassformer.data.doctor.finding import Finding, Where, counted, named

NOT_IN_TAGS = {*"<>"}  # a tag is typed as <de> before a text


def can_be_typed(tag: str) -> bool:
    """Whether a target language can stand as <de> before a text.

    >>> can_be_typed("pt-br"), can_be_typed("<x>")
    (True, False)
    """
    return tag == tag.strip() and not {*tag} & NOT_IN_TAGS


class EachLanguage(Check):
    """A check by itself for every target language, which the role `to` names.

    Args:
        make: Makes the check.
    """

    def __init__(self, make: Callable[[], Check]) -> None:
        self.make = make
        self.needs_all = make().needs_all
        self.checks: dict[str, Check] = {}

    def see(self, row: Specimen) -> None:
        language = str(row.sample.get("to", ""))
        if language not in self.checks:
            self.checks[language] = self.make()
        self.checks[language].see(row)

    def findings(self, where: Where) -> Iterator[Finding]:
        for language, check in self.checks.items():
            into = f" (to {language})" if len(self.checks) > 1 and language else ""
            for finding in check.findings(where):
                yield replace(finding, what=f"{finding.what}{into}")

    def to_drop(self) -> Mapping[int, str]:
        return {n: why for check in self.checks.values() for n, why in check.to_drop().items()}


class Tags(Check):
    """Target languages that could not be asked for, and rows that do not say theirs."""

    def __init__(self) -> None:
        self.said = False
        self.unsaid: list[int] = []
        self.unfit: list[int] = []

    def see(self, row: Specimen) -> None:
        tag = str(row.sample.get("to", ""))
        self.said = self.said or bool(tag)
        if not tag:
            self.unsaid.append(row.number)
        elif not can_be_typed(tag):
            self.unfit.append(row.number)

    def findings(self, where: Where) -> Iterator[Finding]:
        faults = (
            (self.unsaid, "that do not say", "that does not say", "fill in the column of `to`"),
            (self.unfit, "with < > or blanks in", "with < > or blanks in", "write it as in de"),
        )
        for numbers, several, one, advice in faults if self.said else ():
            if numbers:
                yield Finding(
                    kind="target languages",
                    severity="error",
                    what=f"{counted(len(numbers), 'row')} {one if len(numbers) == 1 else several} "
                    f"the target language",
                    advice=f"training refuses them; {advice}",
                    count=len(numbers),
                    rows=named(numbers, where),
                )
