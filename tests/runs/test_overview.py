"""What stands at the top of a folder names every file in it."""

import pkgutil

import pytest

from glassformer import runs


@pytest.mark.parametrize("package", [runs], ids=lambda one: one.__name__)
def test_every_module_is_told_of(package):
    lines = package.__doc__.split("\n\n")[-1].splitlines()
    told = [name for line in lines for name in line.split("  ")[0].rstrip("/").split(", ") if name]
    assert sorted(told) == sorted(module.name for module in pkgutil.iter_modules(package.__path__))
