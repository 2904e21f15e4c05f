"""The public interface: a new name is a decision, so it is written here too."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import glassformer

NAMES = [
    "Cache",
    "Estimate",
    "FixedCache",
    "GlassformerError",
    "GrowingCache",
    "Heads",
    "KERNELS",
    "KeyCache",
    "Layout",
    "Mask",
    "Memory",
    "ModelConfig",
    "MultiHeadAttention",
    "POSITIONS",
    "PagePool",
    "Position",
    "Run",
    "StackConfig",
    "StateCache",
    "align",
    "allow_code",
    "attend",
    "build_classifier",
    "build_language_model",
    "build_masked_model",
    "build_transformer",
    "causal",
    "compare",
    "doctor",
    "documents",
    "encoder_decoder_of_size",
    "everything",
    "load",
    "make_position",
    "pack",
    "pad",
    "plan",
    "prefix",
    "resume",
    "stack_of_size",
    "train",
    "valid_lengths",
    "watching",
    "weigh",
    "window",
]


def for_type_checkers():
    """What the file imports under TYPE_CHECKING: the names each module gives, re-exported."""
    tree = ast.parse(Path(glassformer.__file__).read_text(encoding="utf-8"))
    (guarded,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    assert all(alias.asname == alias.name for node in guarded.body for alias in node.names)
    return {node.module: tuple(alias.name for alias in node.names) for node in guarded.body}


def test_the_public_names_are_these():
    assert sorted(name for names in glassformer.PUBLIC.values() for name in names) == NAMES


def test_type_checkers_see_the_same_names_in_the_same_places():
    assert for_type_checkers() == glassformer.PUBLIC


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_the_object_of_its_module(name):
    (module,) = (module for module, names in glassformer.PUBLIC.items() if name in names)
    assert getattr(glassformer, name) is getattr(importlib.import_module(module), name)


def test_dir_lists_the_public_names_and_the_version():
    assert dir(glassformer) == sorted(["__version__", *NAMES])


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'glassformer' has no attribute 'casual'"):
        glassformer.casual  # noqa: B018


def test_importing_glassformer_does_not_import_torch():
    code = "import sys, glassformer; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
