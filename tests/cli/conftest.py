"""What the tests of the commands share."""

import pytest
from small_files import everything_in

from glassformer.cli import main


@pytest.fixture
def refused(tmp_path, capsys):
    """Runs a command that must fail, and returns what it says."""

    def run(*words):
        capsys.readouterr()
        before = everything_in(tmp_path)
        assert main([str(word) for word in words]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("glassformer: ")
        assert err.count("\n") == 1
        assert everything_in(tmp_path) == before
        return err.removeprefix("glassformer: ").strip()

    return run
