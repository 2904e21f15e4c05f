"""The shape of the house: imports go down, jobs stay in their folders, files fit in one sitting."""

import ast
import re
from dataclasses import fields
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest
from try_mutants import places, read_mutants

from glassformer import runs, tasks
from glassformer.config.run import Config

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "glassformer"
JOBS = {path.parent.name for path in (SOURCE / "tasks").glob("*/about.py")}
SETTINGS = {setting.name for setting in fields(Config)}  # one may be called like a job: pretrain

# From the ground up. A part imports itself and what lies below it, nothing beside or above it.
LAYERS = [
    {"errors", "files", "processes", "wording"},
    {"terminal", "notebook", "style"},
    {"config"},
    {"core"},
    {"metrics", "data", "decode"},
    {"models"},
    {"engine", "explaining", "reports"},
    {"tasks"},
    {"training"},
    {"runs"},
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


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def names_imported(tree):
    """What of glassformer a file imports, in full, wherever in the file it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            names = ["glassformer.a relative path"]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "glassformer")


def parts_imported(tree):
    """The parts of glassformer that a file imports."""
    for name in names_imported(tree):
        part = [*name.split("."), ""][1]
        if part != "__version__":
            yield part if part in LEVEL else FACE


def may_import(part, other):
    if other not in LEVEL:
        return False
    if part == "core" and other not in ("core", "errors"):
        return False
    return part == other or LEVEL[other] < LEVEL[part]


def module_of(path):
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def imports_of_package():
    """Each module with those that it imports; the public face, which shows all, is left out."""
    modules = {module_of(path): path for path in sources(SOURCE)}
    del modules["glassformer"]
    return {name: modules_imported(tree_of(path), modules) for name, path in modules.items()}


def modules_imported(tree, modules):
    """The modules that a file imports, or takes names from."""
    names = {*names_imported(tree)}
    return {one if one in modules else one.rpartition(".")[0] for one in names} & {*modules}


def cycle_in(imports):
    """Modules that import one another in a circle, if some do."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def order_of_runs():
    """The modules of `runs`, as its docstring lists them."""
    lines = (runs.__doc__ or "").splitlines()
    listed = (re.match(r"(\w+(?:, \w+)*)  +\w", line) for line in lines)
    return [name for match in listed if match for name in match[1].split(", ")]


def imports_against(order, imports):
    """Imports of a module that does not come before the one that imports it."""
    place = {f"glassformer.runs.{name}": number for number, name in enumerate(order)}
    for name in place:
        for other in imports[name] & {*place}:
            if place[other] >= place[name]:
                yield f"{name} imports {other}"


def job_of(module):
    """The job whose folder a module stands in, or none."""
    part = [*module.split("."), "", ""][2]
    return part if module.startswith("glassformer.tasks.") and part in JOBS else ""


def foreign_jobs(module, tree):
    """The jobs other than its own that a module imports from, or goes by the name of.

    Any string that is a job's name counts, with three exceptions. A job may declare another, as
    `job="pretrain"`. An extra to install may be called like a job. And what is also the name of a
    setting must only not be compared with.
    """
    own, declared, compared = job_of(module), set(), set()
    for node in ast.walk(tree):
        match node:
            case ast.keyword("job", ast.Constant() as value) if own:
                declared.add(value)
            case ast.Call(ast.Name("install"), [value]):
                declared.add(value)
            case ast.Compare() | ast.pattern():
                compared |= {*ast.walk(node)}
    strings = {node for node in ast.walk(tree) if isinstance(node, ast.Constant)} - declared
    named = {node.value for node in strings if node in compared or node.value not in SETTINGS}
    return (named & JOBS | {job_of(name) for name in names_imported(tree)}) - {"", own}


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


def test_contributors_are_told_the_layers():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [order] = re.findall(r"Imports go down: ([^.]*)\.", text)
    told = [{*re.findall(r"\w+", layer)} for layer in order.split("|")]
    assert told == LAYERS[:-1]


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


def test_no_modules_import_one_another_in_a_circle():
    assert not cycle_in(imports_of_package())


def test_a_circle_of_imports_is_found():
    lines = {"a": "from glassformer import b", "b": "import glassformer.c", "c": "import torch"}
    modules = {f"glassformer.{name}" for name in lines}

    def imports():
        return {
            f"glassformer.{name}": modules_imported(ast.parse(line), modules)
            for name, line in lines.items()
        }

    assert not cycle_in(imports())
    lines["c"] = "def later():\n    from glassformer.a import name"
    found = cycle_in(imports())
    assert len(found) == 4
    assert all(first in imports()[second] for first, second in pairwise(found))


def test_a_run_lives_in_the_order_that_its_package_tells():
    order, imports = order_of_runs(), imports_of_package()
    there = {name.split(".")[2] for name in imports if name.startswith("glassformer.runs.")}
    assert sorted(order) == sorted(there)
    assert not list(imports_against(order, imports))


def test_an_import_of_a_later_stage_is_found():
    fit, run = "glassformer.runs.fit", "glassformer.runs.run"
    assert not list(imports_against(["fit", "run"], {fit: {"glassformer.data"}, run: {fit}}))
    assert list(imports_against(["run", "fit"], {fit: set(), run: {fit}})) == [
        f"{run} imports {fit}"
    ]


def test_the_registry_lists_every_folder_of_a_job():
    assert {*tasks.BUILT_IN} == JOBS


def test_nothing_outside_the_folder_of_a_job_knows_it():
    known = {
        module: found
        for path in sources(SOURCE)
        if (module := module_of(path)) != "glassformer.tasks"  # the registry
        and (found := foreign_jobs(module, tree_of(path)))
    }
    assert not known


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("runs.run", "from glassformer.tasks.classify.blend import Blend"),
        ("runs.run", "from glassformer.tasks import classify"),
        ("cli.predict", "def later():\n    import glassformer.tasks.translate.task"),
        ("tasks.shared.text", "from glassformer.tasks.pretrain import task"),
        ("tasks.classify.task", "from glassformer.tasks.pretrain.masking import hide"),
        ("runs.plan", "if config.job == 'classify': pass"),
        ("runs.plan", "if config.job in ('pretrain', name): pass"),
        ("runs.plan", "match config.job:\n    case 'pretrain' | 'copy': pass"),
        ("cli.results", "SHOW = {'translate': print}"),
        ("data.columns", "NAME = 'classify'"),
        ("runs.plan", "open_task(job='classify')"),
        ("tasks.translate.task", "if job == 'pretrain': pass"),
    ],
)
def test_a_job_known_outside_its_folder_is_found(module, line):
    assert foreign_jobs(f"glassformer.{module}", ast.parse(line))


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("tasks.classify.task", "from glassformer.tasks.classify.blend import Blend"),
        ("tasks.classify.task", "name = 'classify'"),
        ("tasks.classify.task", "from glassformer.tasks.shared import text"),
        ("tasks.classify.pretraining", "FirstStage(job='pretrain')"),
        ("runs.request", "values = {'pretrain': 'auto'}"),
        ("runs.request", "if config.pretrain == 'auto': pass"),
        ("runs.run", "from glassformer.tasks.job import Job"),
        ("cli.app", "'Example: glassformer train classify reviews.csv'"),
    ],
)
def test_what_is_no_job_of_another_folder_is_fine(module, line):
    assert not foreign_jobs(f"glassformer.{module}", ast.parse(line))


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


def test_every_public_forward_says_what_it_gives():
    silent = [
        f"{path.relative_to(SOURCE)}: {kind.name}"
        for path in sources(SOURCE)
        for kind in ast.walk(tree_of(path))
        if isinstance(kind, ast.ClassDef) and not kind.name.startswith("_")
        for method in kind.body
        if isinstance(method, ast.FunctionDef) and method.name == "forward"
        if not ast.get_docstring(method)
    ]
    assert not silent


def test_every_mutant_breaks_exactly_one_place_and_names_tests_that_exist():
    mutants = read_mutants((ROOT / "tests" / "mutants.txt").read_text("utf-8"))
    assert not [mutant.title for mutant in mutants if places(mutant, ROOT) != 1]
    named = {test for mutant in mutants for test in mutant.tests}
    assert not [test for test in sorted(named) if not (ROOT / "tests" / test).exists()]
