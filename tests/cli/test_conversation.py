"""Typed lines: edited with the usual keys, remembered, and read plainly without a terminal."""

import os
import pty
import sys
from io import BytesIO, TextIOWrapper

import pytest

from glassformer.cli import conversation
from glassformer.cli.conversation import line_reader, talk
from glassformer.cli.inputs import Placed
from glassformer.errors import GlassformerError

UP, LEFT = b"\x1b[A", b"\x1b[D"
SCRIPT = """
import sys
from pathlib import Path
from glassformer.cli.conversation import line_reader
with line_reader(Path(sys.argv[1])) as typed_line:
    for _ in range(int(sys.argv[2])):
        print("read", repr(typed_line()), flush=True)
"""


def typed_on_a_terminal(history, *lines):
    """What is read of keys that are pressed on a terminal, in a process of its own."""
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [sys.executable, "-c", SCRIPT, str(history), str(len(lines))])
    printed = b""
    for keys in lines:
        while not printed.endswith(b"> "):
            printed += os.read(terminal, 1000)
        os.write(terminal, keys + b"\r")
        printed += os.read(terminal, 1)
    while True:
        try:
            more = os.read(terminal, 1000)
        except OSError:  # the process has ended
            break
        if not more:
            break
        printed += more
    os.waitpid(child, 0)
    os.close(terminal)
    return [line.strip() for line in printed.decode().splitlines() if line.startswith("read")]


def test_lines_are_edited_and_come_back_with_the_up_arrow_also_another_day(tmp_path):
    history = tmp_path / "new" / "history"
    assert typed_on_a_terminal(history, b"ab" + LEFT + "ü".encode(), UP) == ["read 'aüb'"] * 2
    assert typed_on_a_terminal(history, UP + b"!") == ["read 'aüb!'"]


def test_a_history_that_cannot_be_written_is_no_trouble(tmp_path):
    (tmp_path / "file").write_text("")
    assert typed_on_a_terminal(tmp_path / "file" / "history", b"a") == ["read 'a'"]


def test_without_a_terminal_lines_are_read_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"a \x00 b\n\xff\nlast")))
    with line_reader(tmp_path / "history") as typed_line:
        assert typed_line() == "a \x00 b"
        with pytest.raises(GlassformerError, match="this line is not UTF-8"):
            typed_line()
        assert typed_line() == "last"
        with pytest.raises(EOFError):
            typed_line()
    assert not (tmp_path / "history").exists()


class Spoken:
    """What a conversation needs of a run and of the display."""

    noun = "text"

    def __init__(self):
        self.predictor, self.summed_up = self, 0

    def parse(self, typed):
        if typed == "bad":
            raise GlassformerError("bad: not good; say something else")
        return typed

    def sum_up(self):
        self.summed_up += 1


def test_an_error_does_not_end_a_conversation(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"one\nbad\ntwo\n")))
    monkeypatch.setattr(conversation, "cache_folder", lambda: tmp_path)
    run, answered = Spoken(), []
    talk(run, answered.extend, run)
    assert answered == [Placed("", "one"), Placed("", "two")]
    assert run.summed_up == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("One text per line; Ctrl-D to quit.\nglassformer: bad: not good")
