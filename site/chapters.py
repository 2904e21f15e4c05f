"""The chapters of the tour: run their code, and compare what it prints and draws with the text.

docs/dev/tour.md describes the format. A chapter's code is run once; both languages show the
same results.
"""

import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from diagram import described, drawing

ROOT = Path(__file__).parents[1]
TOUR = ROOT / "docs" / "tour"
PICTURES = TOUR / "pictures"
# The first line of a chapter, or the line before a block, that only `make test-all` runs.
FULL = "<!-- full -->"
CODE = re.compile(
    r"^(?P<full><!-- full -->\n)?```python\n(?P<code>.*?)^```\n"
    r"(?P<output>\n*^```text\n(?P<text>.*?)^```\n)?",
    re.M | re.S,
)
HEAD = re.compile(r"(?P<title>^# [^\n]+\n)(?P<head>.*?)(?=^## )", re.M | re.S)
SOLUTION = re.compile(r"^<details>\n.*?^</details>\n", re.M | re.S)
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
NOTEBOOKS = "notebooks"  # the branch to which .github/workflows/site.yml publishes them
COLAB = (
    REPOSITORY.replace("https://github.com/", "https://colab.research.google.com/github/")
    + f"/blob/{NOTEBOOKS}/"
)
HEADS = tomllib.loads((ROOT / "site" / "tour.toml").read_text(encoding="utf-8"))
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

    @property
    def diagram(self) -> str:
        """The name of its diagram."""
        return f"diagram-{self.path.name[:2]}.svg"


@dataclass(frozen=True)
class Results:
    """What the blocks of a chapter print, and the pictures they write, by name.

    A block that was left out has None in place of what it prints.
    """

    printed: tuple[str | None, ...]
    pictures: dict[str, str]


def chapters() -> list[Chapter]:
    """All of them, in order."""
    return [
        Chapter(path) for path in sorted(TOUR.glob("[0-9][0-9]-*.md")) if ".zh." not in path.name
    ]


def code_of(text: str) -> list[str]:
    """The blocks of Python in a chapter."""
    return [block["code"] for block in CODE.finditer(text)]


def run(chapter: Chapter, full: bool = True) -> Results:
    """Run the blocks one after another, in one namespace and an empty folder.

    Without `full`, the blocks marked as costly are left out.
    """
    prepare()
    names: dict[str, object] = {"__name__": "chapter"}
    printed: list[str | None] = []
    blocks = CODE.finditer(chapter.path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for number, block in enumerate(blocks, start=1):
            if block["full"] and not full:
                printed.append(None)
                continue
            with redirect_stdout(StringIO()) as out:
                exec(compile(block["code"], f"{chapter.path.name}, block {number}", "exec"), names)
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


def filled(text: str, printed: Sequence[str | None]) -> str:
    """The chapter with what its blocks print after each of them."""
    outputs = iter(printed)

    def fill(block: re.Match[str]) -> str:
        output = next(outputs)
        if output is None:
            return block[0]
        shown = f"\n```text\n{output}```\n" if output else ""
        return f"{block['full'] or ''}```python\n{block['code']}```\n{shown}"

    return CODE.sub(fill, text)


def head(chapter: Chapter, chinese: bool) -> str:
    """What stands between a chapter's title and its first part: time, links, the diagram."""
    about = HEADS[chapter.path.stem]
    path = chapter.paths[chinese]
    page = {int(other.path.name[:2]): other.paths[chinese].name for other in chapters()}
    minutes, seconds = about["minutes"], about["seconds"]
    if chinese:
        before = "、".join(f"[第 {n} 章]({page[n]})" for n in about["after"])
        parts = [
            f"约 {minutes} 分钟",
            f"代码运行约 {seconds} 秒" if seconds < 60 else f"代码运行约 {seconds // 60} 分钟",
            f"先读{before}" if before else "不需要先读别的章",
        ]
        colab = "在 Colab 中打开"
    else:
        before = " and ".join(f"[chapter {n}]({page[n]})" for n in about["after"])
        took = f"{seconds} seconds" if seconds < 60 else f"{seconds // 60} minutes"
        parts = [
            f"{minutes} minutes",
            f"the code runs for about {took.replace('1 minutes', 'a minute')}",
            f"read {before} first" if before else "needs no other chapter",
        ]
        colab = "Open in Colab"
    link = f"[{colab}]({COLAB}{path.with_suffix('.ipynb').name})"
    shown = f"![{described(about['parts'], chinese)}](pictures/{chapter.diagram})"
    return f"\n{' · '.join([*parts, link])}\n\n{shown}\n\n"


def headed(text: str, head: str) -> str:
    """The chapter with this between its title and its first part."""
    return HEAD.sub(lambda match: match["title"] + head, text, count=1)


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
        new = headed(filled(text, results.printed), head(chapter, ".zh." in path.name))
        if new != text:
            yield path, new
    diagram = drawing(HEADS[chapter.path.stem]["parts"])
    if not (path := PICTURES / chapter.diagram).exists() or path.read_text() != diagram:
        yield path, diagram
    for name, picture in results.pictures.items():
        path = PICTURES / name
        if not path.exists() or not looks_alike(path.read_text(), picture):
            yield path, picture
