"""The shape of the house: imports go down, files fit in one sitting, and no file can run code."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "glassformer"

# From the ground up. A part imports itself and what lies below it, nothing beside or above it.
LAYERS = [
    {"errors", "files", "processes"},
    {"terminal"},
    {"config"},
    {"core"},
    {"metrics", "data", "decode"},
    {"models"},
    {"explaining", "reports"},
    {"tasks"},
    {"training"},
    {"runs"},
    {"interop"},
    {"serving", "benchmarks"},
    {"cli"},
    {"__main__"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
FACE = "the public face"  # what `from glassformer import ...` gives
RUNS_CODE = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


def sources(folder):
    return sorted(folder.rglob("*.py"))


def part_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def parts_imported(tree):
    """The parts of glassformer that a file imports, wherever in the file it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield "a relative path"
            continue
        elif isinstance(node, ast.ImportFrom) and node.module == "glassformer":
            names = [f"glassformer.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "glassformer" and rest != "__version__":
                part = rest.split(".")[0]
                yield part if part in LEVEL else FACE


def may_import(part, other):
    if other not in LEVEL:
        return False
    if part == "core" and other not in ("core", "errors"):
        return False
    return part == other or LEVEL[other] < LEVEL[part]


def ways_to_run_code(tree):
    """What would let a file that is loaded, or a text that is typed, run as a program."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from RUNS_CODE & {alias.name.split(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                yield from RUNS_CODE & {module.split(".")[0]}
                if module == "torch" and any(alias.name == "load" for alias in names):
                    yield "torch.load"
            case ast.Attribute(ast.Name("torch"), "load"):
                yield "torch.load"
            case ast.Call(ast.Name("eval" | "exec" as name)):
                yield name


def test_every_part_has_its_layer():
    parts = {part_of(path) for path in sources(SOURCE)} - {"__init__"}
    assert parts <= LEVEL.keys()


def test_imports_only_go_down():
    upward = [
        f"{path.relative_to(ROOT)} imports {other}"
        for path in sources(SOURCE)
        if path != SOURCE / "__init__.py"  # the public face shows every layer
        for other in parts_imported(tree_of(path))
        if not may_import(part_of(path), other)
    ]
    assert not upward


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ("core", "from glassformer.models.blocks import Block"),
        ("core", "import glassformer.config"),
        ("core", "from glassformer import data"),
        ("core", "from glassformer import causal"),
        ("core", "from ..models import blocks"),
        ("core", "import glassformer"),
        ("metrics", "from glassformer.data import text"),
        ("training", "def later():\n    import torch, glassformer.cli"),
    ],
)
def test_an_import_upwards_is_found(part, line):
    assert not all(may_import(part, other) for other in parts_imported(ast.parse(line)))


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ("core", "import torch.nn"),
        ("core", "from glassformer.core.layout import Layout"),
        ("core", "from glassformer.errors import unknown"),
        ("cli", "from glassformer import __version__"),
        ("models", "import glassformer.core.masks"),
    ],
)
def test_an_import_downwards_is_fine(part, line):
    assert all(may_import(part, other) for other in parts_imported(ast.parse(line)))


def test_every_file_fits_in_one_sitting():
    limits = {SOURCE: 300, ROOT / "tests": 400}
    long = {
        str(path.relative_to(ROOT)): lines
        for folder, limit in limits.items()
        for path in sources(folder)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > limit
    }
    assert not long


def test_no_file_we_load_can_run_code():
    found = {
        str(path.relative_to(ROOT)): ways
        for path in sources(SOURCE)
        if (ways := list(ways_to_run_code(tree_of(path))))
    }
    assert not found


@pytest.mark.parametrize(
    ("line", "way"),
    [
        ("import pickle", "pickle"),
        ("import json, joblib.memory", "joblib"),
        ("from pickle import loads", "pickle"),
        ("from torch import load", "torch.load"),
        ("weights = torch.load(path)", "torch.load"),
        ("eval('1')", "eval"),
        ("def f():\n    exec(text)", "exec"),
    ],
)
def test_a_way_to_run_code_is_found(line, way):
    assert list(ways_to_run_code(ast.parse(line))) == [way]


def test_evaluation_mode_is_no_way_to_run_code():
    assert not list(ways_to_run_code(ast.parse("model.eval()")))
