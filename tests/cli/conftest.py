"""What the tests of several commands share."""

import sys

import pytest


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """Puts bytes on standard input."""

    def put(content):
        (tmp_path / "stdin").write_bytes(content)
        file = (tmp_path / "stdin").open("rb")
        monkeypatch.setattr(sys, "stdin", file)
        return file

    return put
