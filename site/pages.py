"""The website of the documentation, in build/site/: every page in one folder, then MkDocs.

    python site/pages.py

Pages come from docs/, from the neighbours of the README, and from the code: one for all public
names. Links are rewritten to where their targets end up; MkDocs refuses broken ones.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from chapters import FULL, chapters
from latex2mathml.converter import convert

from glassformer import PUBLIC

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
ELSEWHERE = {
    "site/home.md": "index.md",
    "site/home.zh.md": "index.zh.md",
    "docs/README.md": "contents.md",
    "docs/README.zh.md": "contents.zh.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/cost.png": "cost.png",
    "examples/README.md": "examples.md",
    "recipes/README.md": "recipes.md",
    "site/iframe-worker.js": "assets/iframe-worker.js",
}
BOOST = "---\nsearch:\n  boost: {}\n---\n\n"  # below 1: found after other pages
FENCED = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
TO_ENGLISH = re.compile(r"\[([^\]]+)\]\(((?!https?:)[\w./-]+)(?<!\.zh)\.md(#[\w-]+)\)")
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")
FORMULA = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
PAGE = re.compile(r"^\[[^\]]+\]\((pages/[\w-]+\.html)\)$", re.M)  # shown where it is linked
FOLDED = re.compile(r"^<details>$", re.M)  # Markdown within HTML has to be asked for
FOR_CONTRIBUTORS = ("dev/", "changelog.md")  # found last, as they have every word
IN_LINE = re.compile(r"(?<![\w$])\$([^$\n]+)\$(?![\w$])")


def api_page() -> str:
    """The signature and description of every public name, from its docstring."""
    head = BOOST.format(0.5) + "# Python API\n"
    names = sorted(f"{module}.{name}" for module, names in PUBLIC.items() for name in names)
    return "\n".join([head, *(f"::: {name}\n" for name in names)])


def sources() -> dict[Path, str]:
    """Where each file of the documentation ends up on the site."""
    docs = ROOT / "docs"
    found = {path: str(path.relative_to(docs)) for path in docs.rglob("*") if path.is_file()}
    return found | {ROOT / name: target for name, target in ELSEWHERE.items()}


def page(path: Path, target: str, targets: dict[Path, str]) -> str:
    """A page as the site has it: links to other pages, formulas as MathML."""
    here = os.path.dirname(target)

    def follow(link: re.Match[str]) -> str:
        there = targets.get((path.parent / link[1]).resolve())
        return link[1] if there is None else os.path.relpath(there, here or ".")

    def to_english(link: re.Match[str]) -> str:
        there = targets.get((path.parent / f"{link[2]}.md").resolve())
        if there is None:
            return link[0]
        page = os.path.relpath(Path(there).with_suffix(".html"), Path("zh") / here)
        return f'<a href="{page}{link[3]}">{link[1]}</a>'

    def embedded(link: re.Match[str]) -> str:
        shown = link[1]
        if target.endswith(".zh.md"):  # built one folder deeper
            shown = f"../../{here}/{shown}"
        frame = 'width="100%" height="620" loading="lazy" style="border: 1px solid #ccc"'
        return f'{link[0]}\n\n<iframe src="{shown}" title="{Path(shown).stem}" {frame}></iframe>'

    text = path.read_text(encoding="utf-8").replace(
        f"{FULL}\n", ""
    )  # MkDocs looks for a title on top
    parts = FENCED.split(text)
    for number in range(0, len(parts), 2):  # what is not fenced
        prose = parts[number]
        if target.endswith(
            ".zh.md"
        ):  # MkDocs would lead to the page in Chinese, with other headings
            prose = TO_ENGLISH.sub(to_english, prose)
        prose = LINK.sub(follow, prose)
        prose = PAGE.sub(embedded, prose)
        prose = FOLDED.sub('<details markdown="1">', prose)
        if "/tour/" in f"/{target}":
            prose = FORMULA.sub(lambda math: convert(math[1].strip(), display="block"), prose)
            # In a span, since Markdown ends the paragraph where a line begins with <math>.
            prose = IN_LINE.sub(lambda math: f"<span>{convert(math[1])}</span>", prose)
        parts[number] = prose
    head = BOOST.format(0.3) if target.startswith(FOR_CONTRIBUTORS) else ""
    return head + "".join(parts)


def write_pages() -> None:
    """Write every page and picture into one folder."""
    shutil.rmtree(PAGES, ignore_errors=True)
    targets = sources()
    for path, target in targets.items():
        (PAGES / target).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = page(path, target, targets)
            (PAGES / target).write_text(text, encoding="utf-8")
        else:
            shutil.copy(path, PAGES / target)
    (PAGES / "reference" / "api.md").write_text(api_page(), encoding="utf-8")


def navigation() -> list[dict[str, list[object]]]:
    """The menu: that of menu.yml with the chapters of the tour."""
    menu = yaml.safe_load((ROOT / "site" / "menu.yml").read_text(encoding="utf-8"))
    by_title = {title: pages for part in menu for title, pages in part.items()}
    by_title["Tour"] += [f"tour/{chapter.path.name}" for chapter in chapters()]
    return menu


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
