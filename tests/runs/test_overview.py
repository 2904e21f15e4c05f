"""What stands at the top of a folder names every file in it."""

import pkgutil

import pytest

from glassformer import runs


@pytest.mark.parametrize("package", [runs], ids=lambda one: one.__name__)
def test_every_module_is_told_of(package):
    told = [line.split()[0].rstrip("/") for line in package.__doc__.splitlines()[2:] if line]
    assert sorted(told) == sorted(module.name for module in pkgutil.iter_modules(package.__path__))
