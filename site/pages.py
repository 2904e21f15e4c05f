"""The website of the documentation, in build/site/: every page in one folder, then MkDocs.

    python site/pages.py

Pages come from docs/, from the README and its neighbours, and from the code: one for all commands,
one for each module. Links are rewritten to where their targets end up; MkDocs refuses broken ones.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from chapters import FULL, chapters
from latex2mathml.converter import convert

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
SOURCE = ROOT / "src" / "glassformer"
ELSEWHERE = {
    "README.md": "index.md",
    "README.zh.md": "index.zh.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/cost.png": "cost.png",
    "site/iframe-worker.js": "assets/iframe-worker.js",
}
FENCED = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
TO_ENGLISH = re.compile(r"\[([^\]]+)\]\((\w+)\.md(#[\w-]+)\)")
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")
FORMULA = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
IN_LINE = re.compile(r"(?<![\w$])\$([^$\n]+)\$(?![\w$])")
MODULE = re.compile(r"`src/glassformer/([\w/]+)\.py`(?! *\])")


def modules() -> dict[str, str]:
    """Every module of the package by its dotted name, and the page that describes it."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if path.stem.endswith("_kernel"):  # of Triton, not to be imported
            continue
        folder = path.parent.relative_to(SOURCE.parent)
        name = str(folder if path.stem == "__init__" else folder / path.stem).replace("/", ".")
        found[name] = f"reference/{folder}.md"
    return found


def sources() -> dict[Path, str]:
    """Where each file of the documentation ends up on the site."""
    docs = ROOT / "docs"
    found = {path: str(path.relative_to(docs)) for path in docs.rglob("*") if path.is_file()}
    return found | {ROOT / name: target for name, target in ELSEWHERE.items()}


def page(path: Path, target: str, targets: dict[Path, str], reference: dict[str, str]) -> str:
    """A page as the site has it: links to other pages and modules, formulas as MathML."""
    here = os.path.dirname(target)

    def follow(link: re.Match[str]) -> str:
        there = targets.get((path.parent / link[1]).resolve())
        return link[1] if there is None else os.path.relpath(there, here or ".")

    def refer(found: re.Match[str]) -> str:
        name = f"glassformer.{found[1].removesuffix('/__init__').replace('/', '.')}"
        if name not in reference:
            return found[0]
        return f"[{found[0]}]({os.path.relpath(reference[name], here or '.')}#{name})"

    text = path.read_text(encoding="utf-8").removeprefix(FULL)  # MkDocs looks for a title on top
    parts = FENCED.split(text)
    for number in range(0, len(parts), 2):  # what is not fenced
        prose = parts[number]
        if target.endswith(
            ".zh.md"
        ):  # MkDocs would lead to the page in Chinese, with other headings
            prose = TO_ENGLISH.sub(r'<a href="../\2.html\3">\1</a>', prose)
        prose = MODULE.sub(refer, LINK.sub(follow, prose))
        if "/tour/" in f"/{target}":
            prose = FORMULA.sub(lambda math: convert(math[1].strip(), display="block"), prose)
            # In a span, since Markdown ends the paragraph where a line begins with <math>.
            prose = IN_LINE.sub(lambda math: f"<span>{convert(math[1])}</span>", prose)
        parts[number] = prose
    return "".join(parts)


def write_pages() -> None:
    """Write every page and picture into one folder."""
    shutil.rmtree(PAGES, ignore_errors=True)
    targets, reference = sources(), modules()
    for path, target in targets.items():
        (PAGES / target).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = page(path, target, targets, reference)
            (PAGES / target).write_text(text, encoding="utf-8")
        else:
            shutil.copy(path, PAGES / target)
    for target in dict.fromkeys(reference.values()):
        (PAGES / target).parent.mkdir(parents=True, exist_ok=True)
        parts = [f"::: {name}\n" for name, where in reference.items() if where == target]
        title = f"# {Path(target).with_suffix('').relative_to('reference')}"
        (PAGES / target).write_text("\n".join([title, "", *parts]), encoding="utf-8")


def navigation() -> list[dict[str, list[object]]]:
    """The menu: that of menu.yml with the chapters of the tour and the reference of the code."""
    menu = yaml.safe_load((ROOT / "site" / "menu.yml").read_text(encoding="utf-8"))
    by_title = {title: pages for part in menu for title, pages in part.items()}
    by_title["Tour"] += [f"tour/{chapter.path.name}" for chapter in chapters()]
    return [*menu, {"Code": list(tree(PAGES / "reference"))}]


def tree(folder: Path) -> Iterator[dict[str, object]]:
    """The pages of the reference, nested as their folders are."""
    for path in sorted(folder.glob("*.md")):
        inside = path.with_suffix("")
        own = {path.stem: str(path.relative_to(PAGES))}
        yield {path.stem: [own, *tree(inside)]} if inside.is_dir() else own


def main() -> int:
    """Write the pages and build the site; a warning, such as a broken link, is an error."""
    write_pages()
    config = PAGES.parent / "mkdocs.yml"
    whole = {"INHERIT": "../site/mkdocs.yml", "nav": navigation()}
    config.write_text(yaml.safe_dump(whole, allow_unicode=True), encoding="utf-8")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-f", config], cwd=ROOT
    )
    if not built.returncode:
        print("open build/site/index.html")
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
