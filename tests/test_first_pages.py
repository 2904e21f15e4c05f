"""Every command of the pages that are read first runs, on files of a few rows.

Those of the page on data are about reading, so training ends where its first step would begin.
"""

import re
import shlex
from itertools import islice
from pathlib import Path

import cookbook_files
import pytest
from quick import quickly, unchecked

from glassformer.cli import main
from glassformer.runs import api

ROOT = Path(__file__).parents[1]
QUICKSTART = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
DATA = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
SHORT = ("--steps", "1", "--quiet")
TINY = ("--size", "tiny", "--set", "model.dim=16", "--set", "model.depth=1")
TINY += ("--set", "model.attention.heads=2")
LEFT_OUT = ("glassformer serve", "# not run")  # waits for requests; needs a network
ERRORS = {"glassformer doctor messy.csv": 1}  # what it exits with, as it finds some


def commands(text: str) -> list[str]:
    """The commands of a page, after a $ or indented, without those that its tests leave out."""
    found = re.findall(r"^(?:\$ | {4})(glassformer .+)$", text, flags=re.MULTILINE)
    return [line for line in found if not any(words in line for words in LEFT_OUT)]


def miniature(line: str) -> list[str]:
    """The arguments of a command, with a tiny model that is trained for a step."""
    argv = shlex.split(line, comments=True)[1:]
    if argv[0] != "train":
        return argv
    argv = shlex.split(re.sub(r"--(time|epochs|steps) \S+", "", shlex.join(argv)))
    tiny = () if argv[1] == "recommend" or "--from" in argv else TINY
    return [*argv, *SHORT, *tiny]


def run(line: str) -> None:
    with quickly(), unchecked():
        assert main(miniature(line)) == ERRORS.get(line, 0), line


class ReadyError(Exception):
    """Raised where a run has read its data and built its model."""


@pytest.fixture(scope="module")
def cookbook(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cookbook")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        cookbook_files.write_all()
    return folder


@pytest.mark.parametrize("line", dict.fromkeys(commands(DATA)))
def test_a_command_of_the_page_on_data_runs(line, cookbook, monkeypatch):
    def ready(run, *_):
        raise ReadyError(run.task)

    monkeypatch.chdir(cookbook)
    monkeypatch.setattr(api, "complete", ready)
    if line.startswith("glassformer train"):
        with pytest.raises(ReadyError):
            run(line)
    else:
        run(line)


def test_the_commands_on_starting_from_a_run_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cookbook_files.write_texts()
    guide = ROOT / "docs" / "guides" / "starting-from-a-run.md"
    lines = commands(guide.read_text(encoding="utf-8"))
    assert len(lines) >= 8
    for line in lines:
        run(line)


def test_the_commands_of_the_quick_start_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").mkdir()
    with (ROOT / "examples" / "names.csv").open(encoding="utf-8") as file:
        few = "".join(islice(file, 300))
    (tmp_path / "examples" / "names.csv").write_text(few, encoding="utf-8")
    shown = QUICKSTART.partition("$ cat places.csv\n")[2].partition("\n$")[0]
    (tmp_path / "places.csv").write_text(shown, encoding="utf-8")
    lines = commands(QUICKSTART)
    assert len(lines) >= 8
    for line in lines:
        run(line)


def test_the_quick_start_shows_what_doctor_prints(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    line = "glassformer doctor examples/names.csv"
    shown = QUICKSTART.partition(f"$ {line}\n")[2].partition("\n```")[0].splitlines()
    assert main(miniature(line)) == 0
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in shown if line != "..." and line.strip() not in printed] == []


@pytest.mark.parametrize("page", ["quickstart", "data"])
def test_the_commands_of_a_page_are_those_of_its_english_one(page):
    chinese = (ROOT / "docs" / f"{page}.zh.md").read_text(encoding="utf-8")
    english = {"quickstart": QUICKSTART, "data": DATA}[page]
    arguments = [[shlex.split(c, comments=True) for c in commands(t)] for t in (english, chinese)]
    assert arguments[0] == arguments[1]
