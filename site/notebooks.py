"""The chapters of the tour as executed notebooks, in build/notebooks/.

Their first cell installs the package where they are opened in Colab. Solutions are folded.

python site/notebooks.py          every chapter in both languages
python site/notebooks.py 03 05    only these
"""

import base64
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from chapters import CODE, COLAB, FULL, PICTURES, REPOSITORY, SOLUTION, chapters
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "build" / "notebooks"
PICTURE = re.compile(r"^!\[.*?\]\(pictures/(?!diagram-).*?\)\n", re.M)  # a notebook shows its own
DIAGRAM = re.compile(r"\]\(pictures/(diagram-\d\d\.svg)\)")
LINK = re.compile(r"\]\((\d\d-[\w-]+(?:\.zh)?)\.md(#[\w-]+)?\)")
ELSEWHERE = re.compile(r"\]\((?!https?:|\d\d-|#|data:)([^)\s]+)\)")
OPEN = re.compile(rf" · \[[^\]]+\]\({re.escape(COLAB)}[^)]+\)")
FOLD = re.compile(r"^<details>\n<summary>(.*?)</summary>\n|^</details>\n?", re.M)
INSTALL = f"""\
import sys

if "google.colab" in sys.modules:
    %pip install -q "glassformer[baseline,pictures] @ git+{REPOSITORY}"
"""


def cells(text: str) -> Iterator[nbformat.NotebookNode]:
    """Prose and code in turn; what the code prints is left to the kernel."""
    folded = [solution.span() for solution in SOLUTION.finditer(text)]
    end = 0
    for block in CODE.finditer(text):
        yield from prose(text[end : block.start()])
        cell = nbformat.v4.new_code_cell(block["code"].rstrip("\n"))
        if any(start < block.start() < stop for start, stop in folded):
            cell.metadata.update({"cellView": "form", "jupyter": {"source_hidden": True}})
        yield cell
        end = block.end()
    yield from prose(text[end:])


def prose(text: str) -> Iterator[nbformat.NotebookNode]:
    """A cell of prose, unless it is empty; chapters are linked as notebooks, pages on the web."""
    text = FOLD.sub(lambda fold: f"**{fold[1]}**\n" if fold[1] else "", text)
    text = OPEN.sub("", PICTURE.sub("", text.removeprefix(FULL)))
    text = ELSEWHERE.sub(on_the_web, DIAGRAM.sub(embedded, LINK.sub(r"](\1.ipynb)", text))).strip()
    if text:
        yield nbformat.v4.new_markdown_cell(text)


def embedded(diagram: re.Match[str]) -> str:
    """The end of an image whose data stands in the cell."""
    data = base64.b64encode((PICTURES / diagram[1]).read_bytes()).decode()
    return f"](data:image/svg+xml;base64,{data})"


def on_the_web(link: re.Match[str]) -> str:
    """The end of a link to a file of the repository, seen from the tour."""
    if link[1].endswith(".ipynb"):
        return link[0]
    inside = Path("docs/tour") / link[1]
    parts: list[str] = []
    for part in inside.parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return f"]({REPOSITORY}/blob/main/{'/'.join(parts)})"


def write(path: Path) -> Path:
    """Execute a chapter as a notebook and write it with its results."""
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(INSTALL), *cells(text)])
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # the same each time
    target = FOLDER / path.with_suffix(".ipynb").name
    target.parent.mkdir(parents=True, exist_ok=True)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": FOLDER}}).execute()
    nbformat.write(notebook, target)
    return target


def main(numbers: Sequence[str]) -> None:
    """Write the chapters with these numbers, or all of them."""
    for chapter in chapters():
        if not numbers or chapter.path.name[:2] in numbers:
            for path in chapter.paths:
                print(write(path).relative_to(FOLDER.parents[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
