"""The chapters of the tour: run their code, and compare what it prints and draws with the text.

docs/dev/tour.md describes the format. A chapter's code is run once; both languages show the
same results.
"""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

TOUR = Path(__file__).parents[1] / "docs" / "tour"
PICTURES = TOUR / "pictures"
FULL = "<!-- full -->"  # the first line of a chapter that trains, and is run by `make test-all`
CODE = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?P<output>\n*^```text\n(?P<text>.*?)^```\n)?", re.M | re.S
)
METADATA = re.compile(r" *<metadata>.*?</metadata>\n", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
NEAR = 0.25  # pixels by which pictures may differ from one processor to another


@dataclass(frozen=True)
class Chapter:
    """One chapter in its languages."""

    path: Path

    @property
    def paths(self) -> tuple[Path, Path]:
        """The files in English and in Chinese."""
        return self.path, self.path.with_suffix(".zh.md")

    @property
    def is_full(self) -> bool:
        """Whether it takes too long for `make test`."""
        return self.path.read_text(encoding="utf-8").startswith(FULL)


@dataclass(frozen=True)
class Results:
    """What the blocks of a chapter print, and the pictures they write, by name."""

    printed: tuple[str, ...]
    pictures: dict[str, str]


def chapters() -> list[Chapter]:
    """All of them, in order."""
    return [
        Chapter(path) for path in sorted(TOUR.glob("[0-9][0-9]-*.md")) if ".zh." not in path.name
    ]


def code_of(text: str) -> list[str]:
    """The blocks of Python in a chapter."""
    return [block["code"] for block in CODE.finditer(text)]


def run(chapter: Chapter) -> Results:
    """Run the blocks one after another, in one namespace and an empty folder."""
    prepare()
    names, printed = {"__name__": "chapter"}, []
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for number, code in enumerate(code_of(chapter.path.read_text(encoding="utf-8")), start=1):
            with redirect_stdout(StringIO()) as out:
                exec(compile(code, f"{chapter.path.name}, block {number}", "exec"), names)
            printed.append(out.getvalue())
        pictures = {path.name: tidy(path.read_text()) for path in sorted(Path().glob("*.svg"))}
    return Results(tuple(printed), pictures)


def prepare() -> None:
    """The same start for every chapter: one seed, one thread, pictures that do not vary."""
    import matplotlib
    import torch

    os.environ["SOURCE_DATE_EPOCH"] = "0"
    matplotlib.use("svg")
    matplotlib.rcdefaults()
    matplotlib.rcParams.update({"svg.hashsalt": "tour", "svg.fonttype": "none"})
    torch.manual_seed(0)
    torch.set_num_threads(1)


def tidy(picture: str) -> str:
    """The same picture without digits that nobody sees, and without the name of its program."""

    def rounded(tag: re.Match[str]) -> str:
        return re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}", tag[0])

    return TAG.sub(rounded, METADATA.sub("", picture))


def filled(text: str, printed: Sequence[str]) -> str:
    """The chapter with what its blocks print after each of them."""
    outputs = iter(printed)

    def fill(block: re.Match[str]) -> str:
        output = next(outputs)
        shown = f"\n```text\n{output}```\n" if output else ""
        return f"```python\n{block['code']}```\n{shown}"

    return CODE.sub(fill, text)


def looks_alike(one: str, other: str) -> bool:
    """Whether two pictures differ by no more than a fraction of a pixel anywhere."""
    drawn, again = ("".join(TAG.findall(picture)) for picture in (one, other))
    if TAG.sub("", one) != TAG.sub("", other) or NUMBER.sub("", drawn) != NUMBER.sub("", again):
        return False
    pairs = zip(NUMBER.findall(drawn), NUMBER.findall(again), strict=True)
    return all(abs(float(a) - float(b)) <= NEAR for a, b in pairs)


def stale(chapter: Chapter, results: Results) -> Iterator[tuple[Path, str]]:
    """The files that do not show these results, with what they should contain."""
    for path in filter(Path.exists, chapter.paths):
        text = path.read_text(encoding="utf-8")
        if (new := filled(text, results.printed)) != text:
            yield path, new
    for name, picture in results.pictures.items():
        path = PICTURES / name
        if not path.exists() or not looks_alike(path.read_text(), picture):
            yield path, picture
