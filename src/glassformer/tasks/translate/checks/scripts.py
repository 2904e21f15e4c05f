"""Chinese in two scripts on one side of pairs: one word becomes two, each with less data.

A text is traditional if converting it to simplified changes it, and simplified if only the reverse
does. Many short texts are both. A text with kana is Japanese, whose characters are of both kinds.
"""

import re
from collections.abc import Iterator, Mapping

from glassformer.data.doctor.check import Check, Finding, HashSample, Specimen, counted
from glassformer.data.splits import hashed
from glassformer.data.text.chinese import can_convert, simplified, traditional

LOOKED_AT = 300  # rows
READ = 200  # characters of a text that are examined
GOOD_SHARE = 0.05  # of the rows, in each script
KANA = re.compile("[\u3040-\u30ff]")


class MixedScripts(Check):
    """Sides with traditional and with simplified Chinese; needs opencc, and is skipped without it.

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
        if not can_convert():
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
