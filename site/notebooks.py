"""The chapters of the tour as executed notebooks, in build/notebooks/.

python site/notebooks.py          every chapter in both languages
python site/notebooks.py 03 05    only these
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from chapters import CODE, FULL, chapters
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "build" / "notebooks"
PICTURE = re.compile(r"^!\[.*?\]\(pictures/.*?\)\n", re.MULTILINE)  # a notebook shows its own
LINK = re.compile(r"\]\((\d\d-[\w-]+(?:\.zh)?)\.md(#[\w-]+)?\)")


def cells(text: str) -> Iterator[nbformat.NotebookNode]:
    """Prose and code in turn; what the code prints is left to the kernel."""
    end = 0
    for block in CODE.finditer(text):
        yield from prose(text[end : block.start()])
        yield nbformat.v4.new_code_cell(block["code"].rstrip("\n"))
        end = block.end()
    yield from prose(text[end:])


def prose(text: str) -> Iterator[nbformat.NotebookNode]:
    """A cell of prose, unless it is empty; links lead to other notebooks."""
    text = LINK.sub(r"](\1.ipynb)", PICTURE.sub("", text.removeprefix(FULL))).strip()
    if text:
        yield nbformat.v4.new_markdown_cell(text)


def write(path: Path) -> Path:
    """Execute a chapter as a notebook and write it with its results."""
    notebook = nbformat.v4.new_notebook(cells=list(cells(path.read_text(encoding="utf-8"))))
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
