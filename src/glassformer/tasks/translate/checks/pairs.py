"""Checks of single pairs, of target languages, and a check for each target language."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec

from glassformer.data.doctor.check import Check, Finding, HashSample, Specimen
from glassformer.data.splits import hashed
from glassformer.data.text.chinese import simplified, traditional
from glassformer.tasks.shared.text_checks import words_of
from glassformer.tasks.translate.tokens import can_be_typed
from glassformer.wording import counted

WORDS = 3  # names and numbers are often the same in both; this many words rarely are
MANY = 0.001  # of the pairs: copies teach a model to copy
LOOKED_AT = 300  # rows
READ = 200  # characters of a text that are examined
GOOD_SHARE = 0.05  # of the rows, in each script
KANA = re.compile("[\u3040-\u30ff]")

Keys = Mapping[str, Callable[[str], str]]  # for each side, equal for texts that are the same


class CopiedSources(Check):
    """Pairs whose target equals the source."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self.rows: list[int] = []
        self.seen = 0

    def see(self, row: Specimen) -> None:
        self.seen += 1
        source = self.keys["source"](row.sample["source"])
        copied = source == self.keys["target"](row.sample["target"])
        if copied and sum(word.isalpha() for word in words_of(source)) >= WORDS:
            self.rows.append(row.number)

    def findings(self) -> Iterator[Finding]:
        if self.rows:
            share = len(self.rows) / self.seen
            what = (
                f"{counted(len(self.rows), 'pair')} ({share:.2%}) with the source copied as target"
            )
            advice = "a model learns to copy them; translate or drop them"
            severity = "warning" if share >= MANY else "note"
            yield Finding("copied source", severity, what, advice, self.rows)


class EachLanguage(Check):
    """A separate check for every target language, as named by the role `to`.

    Args:
        make: Makes the check.
    """

    def __init__(self, make: Callable[[], Check]) -> None:
        self.make = make
        self.needs_all, self.slow = make().needs_all, make().slow
        self.checks: dict[str, Check] = {}

    def see(self, row: Specimen) -> None:
        language = str(row.sample.get("to", ""))
        if language not in self.checks:
            self.checks[language] = self.make()
        self.checks[language].see(row)

    def findings(self) -> Iterator[Finding]:
        for language, check in self.checks.items():
            into = f" (to {language})" if len(self.checks) > 1 and language else ""
            for finding in check.findings():
                yield replace(finding, what=f"{finding.what}{into}")

    def to_drop(self) -> Mapping[int, str]:
        return {n: why for check in self.checks.values() for n, why in check.to_drop().items()}


class Tags(Check):
    """Target languages that cannot be typed or are not in train, and rows without one."""

    def __init__(self) -> None:
        self.learned: set[str] = set()
        self.held_out: dict[str, list[int]] = {}
        self.named = False
        self.unnamed: list[int] = []
        self.unfit: list[int] = []

    def see(self, row: Specimen) -> None:
        tag = str(row.sample.get("to", ""))
        self.named = self.named or bool(tag)
        if not tag:
            self.unnamed.append(row.number)
        elif not can_be_typed(tag):
            self.unfit.append(row.number)
        elif row.split == "train":
            self.learned.add(tag)
        else:
            self.held_out.setdefault(tag, []).append(row.number)

    def findings(self) -> Iterator[Finding]:
        new = [n for tag, some in self.held_out.items() if tag not in self.learned for n in some]
        faults = (
            (new, "with a target language that no training row has", "add such rows to train"),
            (self.unnamed, "without a target language", "fill in the column `to`"),
            (self.unfit, "with < > or spaces in the target language", "write it like de or pt-br"),
        )
        for numbers, fault, remedy in faults if self.named and self.learned else ():
            if numbers:
                what, advice = (
                    f"{counted(len(numbers), 'row')} {fault}",
                    f"training refuses them; {remedy}",
                )
                yield Finding("target languages", "error", what, advice, numbers)


class MixedScripts(Check):
    """Sides with traditional and with simplified Chinese: one word becomes two.

    A text is traditional if converting it to simplified changes it, and simplified if only the
    reverse does; many short ones are both. Needs opencc, and is skipped without it.

    Args:
        settings: The sides to check, each with the setting that would convert it to one script.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = settings
        self.seen = 0
        self.sample = HashSample[Mapping[str, str]](LOOKED_AT)

    def see(self, row: Specimen) -> None:
        self.seen += 1
        texts = {side: row.sample[side][:READ] for side in self.settings}
        self.sample.see(row.number, hashed(" ".join(texts.values())), lambda: texts)

    def findings(self) -> Iterator[Finding]:
        if find_spec("opencc") is None:
            return
        rows = self.sample.rows()
        some = f", of {len(rows):,} sampled" if len(rows) < self.seen else ""
        for side, setting in self.settings.items():
            scripts = [(number, script_of(texts[side])) for number, texts in rows]
            found = {
                script: [number for number, its in scripts if its == script]
                for script in ("traditional", "simplified")
            }
            first, second = found.values()
            if min(len(first), len(second)) > GOOD_SHARE * len(rows):
                what = (
                    f"{counted(len(first), 'row')} of the {side} side "
                    f"{'is' if len(first) == 1 else 'are'} in traditional and {len(second):,} in "
                    f"simplified Chinese{some}"
                )
                advice = f"convert them to one script with --set {setting}=true"
                yield Finding("mixed scripts", "note", what, advice, first)


def script_of(text: str) -> str:
    """The script of a Chinese text; empty if it is ambiguous.

    >>> script_of("這是一本書"), script_of("这是一本书"), script_of("我想吃"), script_of("本を買う")
    ('traditional', 'simplified', '', '')
    """
    if text.isascii() or KANA.search(text):
        return ""
    if simplified(text) != text:
        return "traditional"
    return "simplified" if traditional(text) != text else ""
