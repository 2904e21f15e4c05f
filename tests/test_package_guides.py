"""The docstring of a package guides its readers: where it lists modules, it lists all of them."""

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "glassformer"


def guides():
    """Each package with its docstring."""
    for path in sorted(SOURCE.rglob("__init__.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield path.parent, ast.get_docstring(tree) or ""


def modules_in(folder):
    """The modules and packages in a folder."""
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    return files | {path.parent.name for path in folder.glob("*/__init__.py")}


def named_in(guide):
    """The modules that a docstring names: in a list, after a semicolon, or in backticks."""
    lists = re.findall(r"^ *((?:[\w*]+/?, )*[\w*]+/?)(?:  +\S.*)?$", guide, flags=re.MULTILINE)
    lists += re.findall(r"; (\w+(?:, \w+)*)[: ]", guide)
    quoted = re.findall(r"`([\w*]+)(?:\.py|/)?`", guide)
    return {name.rstrip("/") for text in lists for name in text.split(", ")} | {*quoted}


def left_out(guide, modules):
    """Modules that a docstring does not name, if it names more than one of them."""
    named = named_in(guide)
    missing = {name for name in modules if not any(fnmatch(name, one) for one in named)}
    return missing if len(modules - missing) > 1 else set()


def test_the_guide_of_a_package_leaves_none_of_its_modules_out():
    silent = {
        str(folder.relative_to(SOURCE)): missing
        for folder, guide in guides()
        if (missing := left_out(guide, modules_in(folder)))
    }
    assert not silent


def test_a_module_left_out_of_a_guide_is_found():
    guide = (
        "Masks.\n\nrules, base   who sees a picture; tables: the same\n*_kernel      see `extra.py`"
    )
    modules = {"rules", "base", "tables", "fast_kernel", "extra"}
    assert not left_out(guide, modules)
    assert left_out(guide, {*modules, "picture"}) == {"picture"}
    assert not left_out("The rules are in `rules`.", modules)
