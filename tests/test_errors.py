"""Errors: in the words of the command line there, and in Python's from Python."""

import errno

import pytest

import glassformer
from glassformer.cli import main
from glassformer.errors import GlassformerError, at_command_line, in_python, unknown, usable_paths


@pytest.mark.parametrize(
    ("typed", "in_words"),
    [
        ("name another with --run", "name another with run=..."),
        ("drop --curve, or use a smaller --size.", "drop curve, or use a smaller size."),
        ("--no-pretrain skips both", "pretrain=False skips both"),
        ("train without --from", "train without from_"),
        ("--module encoder needs --from RUN", "module=encoder needs from_=RUN"),
        ("--device cuda: no; use --device auto", 'device="cuda": no; use device="auto"'),
        ("write --columns text=a,label=b", 'write columns="text=a,label=b"'),
        ("with --columns a=b, or c", 'with columns="a=b", or c'),
        ("use --set a.b=0.5; or drop it", 'use set="a.b=0.5"; or drop it'),
        ("with --set a=1 --set b=[2].", 'with set=["a=1", "b=[2]"].'),
        ("--set 'a' is not key=value", "set 'a' is not key=value"),
        ("--lm-weight needs --lm", "lm_weight needs lm"),
        ("leave out --with and --without", "leave out required and forbidden"),
        ("use `glassformer resume 'my run'`", 'use `glassformer.resume("my run")`'),
        ("use `glassformer predict a/b`", 'use `glassformer.load("a/b").predict(...)`'),
        ("`glassformer predict RUN --embed`", '`glassformer.load("RUN").embed(texts)`'),
        ("try `torchrun --nproc-per-node 2`", "try `torchrun --nproc-per-node 2`"),
        ("a well-known -- and usual -- dash", "a well-known -- and usual -- dash"),
    ],
)
def test_options_become_arguments(typed, in_words):
    assert in_python(typed) == in_words


@pytest.mark.parametrize("choices", [["clip", "seed"], ["clip", *(f"a{n}" for n in range(20))]])
def test_of_many_choices_only_those_close_to_a_name_are_shown(choices):
    told = unknown("setting", "clp", choices, listed_in="the list")
    assert "unknown setting 'clp'; did you mean 'clip'?" in told
    assert told.endswith("the list lists all 21" if len(choices) > 2 else "are clip, seed")
    assert "a7" not in told


def test_the_table_that_all_settings_are_in_makes_none_of_them_close():
    assert "did you mean" not in unknown("setting", "train.qqqq", ["train.ema", "train.clip"])


def test_an_error_speaks_to_whoever_reads_it():
    error = GlassformerError("name another with --run")
    assert str(error) == "name another with run=..."
    with at_command_line():
        assert str(error) == "name another with --run"
    assert str(error) == "name another with run=..."


def test_the_same_mistake_is_told_in_both_ways(tmp_path, capsys):
    data = tmp_path / "a.csv"
    data.write_text("text,label\na,b\n")
    with pytest.raises(GlassformerError) as error:
        glassformer.train("classify", data, module="encoder")
    assert str(error.value) == "module=encoder needs a run to copy it from; add from_=RUN"
    assert main(["train", "classify", str(data), "--module", "encoder"]) == 1
    said = capsys.readouterr().err
    assert said == "glassformer: --module encoder needs a run to copy it from; add --from RUN\n"


def test_other_errors_of_the_system_keep_their_traceback():
    with pytest.raises(BlockingIOError), usable_paths():
        raise BlockingIOError(errno.EAGAIN, "try again", "a.txt")
    with pytest.raises(PermissionError), usable_paths():
        raise PermissionError(errno.EACCES, "a port is no path")
