"""The command line: what it prints, what it refuses, and the exit code the shell sees."""

import os
import subprocess
import sys
from itertools import pairwise

import pytest

import glassformer
from glassformer.cli import app, main, mask_expression
from glassformer.core.masks import causal, prefix, window
from glassformer.tasks import JOBS, as_wish

ALLOWED = (
    "allowed are causal, everything, window(3), prefix(3), documents([3, 2]), "
    "valid_lengths([[1, 3, 2]]), &, | and parentheses"
)
CHOICES = "causal, everything, window, prefix, documents, valid_lengths"

PICTURES = {
    "causal & window(2)": """
        #....
        ##...
        .##..
        ..##.
        ...##
    """,
    "(causal | prefix(3)) & documents([3, 2])": """
        ###..
        ###..
        ###..
        ...#.
        ...##
    """,
    "causal | prefix(3) & window(2)": """
        ##...
        ###..
        ###..
        ####.
        #####
    """,
    "valid_lengths([[0, 3, 1, 5, 2]])": """
        .....
        ###..
        #....
        #####
        ##...
    """,
    "everything": """
        #####
        #####
        #####
        #####
        #####
    """,
}

UNKNOWN = {
    "casual": f"unknown rule 'casual'; did you mean 'causal'? The choices are {CHOICES}",
    "windw(3)": f"unknown rule 'windw'; did you mean 'window'? The choices are {CHOICES}",
    "__import__('os')": f"unknown rule '__import__'; the choices are {CHOICES}",
    "causal" + " " * 500: "the mask has 506 characters; shorten it to 500 or fewer",
    "valid_lengths([[1, 3]])": (
        "valid_lengths([[1, 3]]) describes 2 queries, but a row has 8; give each row one number, "
        "or a list with one for each of its queries; or lower --size"
    ),
}
UNPARSED = (
    *("__import__('os').getcwd()", "causal.__class__", "(lambda: causal)()", "~causal", "3", ""),
    *("[causal for _ in 'ab']", "causal + causal", "causal and window(2)", "causal &", "'\\d'"),
    *("x = causal", "causal\n& window(2)", "causal\0", "window", "documents", "valid_lengths"),
    *("valid_lengths([3, 2])", "causal(3)", "window()", "window(2, 3)", "window(size=3)"),
    *("window(*[3])", "window([3])", "window(-3)", "window(3.5)", "window(True)", "documents(3)"),
    *("documents([causal])", "documents([[3, 2]])", "~" * 400 + "causal", "(" * 250 + ")" * 250),
)
IMPOSSIBLE = {
    "window(0)": "a window must hold at least the position itself: got size 0, use 1 or more",
    "documents([])": "each row needs lengths of 1 or more, got []",
    "prefix(129)": "129 is too large to draw",
    "documents([3, 1000000000])": "1000000000 is too large to draw",
}
REFUSED = {
    **UNKNOWN,
    **{text: f"cannot parse {text!r} as a mask; {ALLOWED}" for text in UNPARSED},
    **{
        text: f"cannot parse {text!r} as a mask ({reason}); {ALLOWED}"
        for text, reason in IMPOSSIBLE.items()
    },
}


def drawn(picture):
    return "".join(f"{line.strip()}\n" for line in picture.strip().splitlines())


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERMINAL_WIDTH", "100")


# Pictures


@pytest.mark.parametrize("expression", PICTURES)
def test_a_mask_is_drawn(expression, capsys):
    assert main(["mask", expression, "--size", "5"]) == 0
    assert capsys.readouterr() == (drawn(PICTURES[expression]), "")


def test_a_picture_has_eight_lines_unless_told_otherwise(capsys):
    assert main(["mask", "causal"]) == 0
    assert capsys.readouterr().out == causal.picture(8) + "\n"


@pytest.mark.parametrize("size", [1, 128])
def test_a_picture_may_be_as_small_as_1_and_as_large_as_128(size, capsys):
    assert main(["mask", "window(5) | prefix(3)", "--size", str(size)]) == 0
    assert capsys.readouterr().out == (window(5) | prefix(3)).picture(size) + "\n"


def test_on_a_terminal_cells_are_square_and_the_mask_has_its_name(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["mask", "causal & documents([1, 2])", "--size", "3"]) == 0
    assert without_style(capsys.readouterr().out).splitlines() == [
        "██░░░░",
        "░░██░░",
        "░░████",
        "causal & documents([1, 2]): one row per query, one column per key",
    ]


def test_on_a_terminal_too_narrow_for_that_it_is_drawn_in_single_characters(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "9")
    assert main(["mask", "causal", "--size", "5"]) == 0
    assert capsys.readouterr().out == causal.picture(5) + "\n"


# What is refused


@pytest.mark.parametrize("expression", REFUSED)
def test_what_is_no_mask_is_refused_in_one_line(expression, capsys):
    assert main(["mask", expression]) == 1
    assert capsys.readouterr() == ("", f"glassformer: {REFUSED[expression]}\n")


WRONG_USAGE = {
    "a command that does not exist": (["nope"], "No such command 'nope'"),
    "an option that does not exist": (["mask", "causal", "--sise", "3"], "No such option: --sise"),
    "no mask": (["mask"], "Missing argument"),
    "a size of nothing": (["mask", "causal", "--size", "0"], "Invalid value for '--size'"),
    "a size too large": (["mask", "causal", "--size", "129"], "Invalid value for '--size'"),
    "a size that is no number": (["mask", "causal", "--size", "x"], "Invalid value for '--size'"),
    "a word too many": (["mask", "causal", "window(3)"], "unexpected extra argument"),
}


@pytest.mark.parametrize("case", WRONG_USAGE)
def test_wrong_usage_is_explained_with_exit_code_2(case, capsys):
    argv, told = WRONG_USAGE[case]
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert "--help" in err


# Help, version, and how it ends


def test_help_names_every_command_and_every_rule(capsys):
    assert main(["--help"]) == 0
    commands = capsys.readouterr().out
    assert all(command.callback.__name__ in commands for command in app.app.registered_commands)
    assert main(["mask", "--help"]) == 0
    rules = capsys.readouterr().out
    assert all(rule in rules for rule in mask_expression.RULES)
    assert 'glassformer mask "causal & window(3)"' in rules


def test_help_shows_flags_without_a_type_for_they_take_no_value(capsys):
    for command in ([], ["train"], ["runs", "list"]):
        assert main([*command, "--help"]) == 0
        assert "bool" not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["train", "plan", "compare"])
def test_data_in_place_of_the_job_are_refused_with_a_command(
    command, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my films.csv").write_text("text,label\n")
    assert main([command, "my films.csv"]) == 1
    told = "the job comes before the data, as in `glassformer train classify 'my films.csv'`"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("ner", "there is no job 'ner': no job marks words"),
        (
            "Regression",
            "there is no job 'Regression': no job predicts numbers; put them into a few",
        ),
        ("embed", "`glassformer predict RUN --embed`"),
        ("summarise", "--columns source=article,target=summary"),
        ("speech-recognition", "did you mean 'transcribe'?"),
        ("clasify", "did you mean 'classify'?"),
    ],
)
def test_a_word_for_what_is_wished_gets_the_job_that_is_meant_or_what_to_do_instead(
    word, told, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("text,label\na,b\n")
    assert main(["train", word, "a.csv"]) == 1
    assert told in capsys.readouterr().err
    if word != "clasify":  # a folder of that name does not make it data
        (tmp_path / word).mkdir()
        assert main(["train", word, "a.csv"]) == 1
        said = capsys.readouterr().err
        assert told in said
        assert "the job comes before" not in said
    with pytest.raises(glassformer.GlassformerError, match="job"):
        glassformer.train(word, "a.csv")


def test_the_advice_for_a_word_names_jobs_that_exist():
    for word, (meant, advice) in JOBS.wishes().items():
        assert word == as_wish(word)
        assert word not in JOBS
        assert meant or advice
        assert not meant or meant in JOBS


def test_without_a_command_it_shows_the_help(capsys):
    main([])
    assert "Usage: glassformer" in "".join(capsys.readouterr())


def test_version_is_the_package_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr() == (f"glassformer {glassformer.__version__}\n", "")


def test_an_interrupted_command_ends_with_130(monkeypatch, capsys):
    def interrupt(expression):
        raise KeyboardInterrupt

    monkeypatch.setattr(mask_expression, "parse", interrupt)
    assert main(["mask", "causal"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_fault_of_ours_is_not_hidden(monkeypatch):
    def fail(expression):
        raise ZeroDivisionError

    monkeypatch.setattr(mask_expression, "parse", fail)
    with pytest.raises(ZeroDivisionError):
        main(["mask", "causal"])


NO_MEMORY = [
    MemoryError(),
    ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    RuntimeError("could not create a primitive"),
    RuntimeError("can't start new thread"),
    RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB.\nAnd more lines."),
    OSError(12, "Cannot allocate memory"),
]


@pytest.mark.parametrize("error", NO_MEMORY, ids=repr)
def test_a_memory_that_is_not_enough_is_told_in_one_line(error, monkeypatch, capsys):
    def fail(expression):
        raise error

    monkeypatch.setattr(mask_expression, "parse", fail)
    assert main(["mask", "causal"]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    said = str(error).splitlines()[0] if str(error) else "MemoryError"
    assert err.startswith(f"glassformer: out of memory ({said}); free some, raise the ")


def test_the_module_passes_the_exit_code_to_the_shell():
    done = run("-m", "glassformer", "mask", "causal &")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"glassformer: cannot parse 'causal &' as a mask; {ALLOWED}\n"


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_answer_within_half_a_second(option):
    # In processor time, so that other work on the machine does not count.
    spent = [work_of_children()]
    for _ in range(3):
        assert run("-m", "glassformer", option).returncode == 0
        spent.append(work_of_children())
    assert 0 < min(after - before for before, after in pairwise(spent)) < 0.5


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_do_not_import_torch(option):
    code = f"import sys; from glassformer.cli import main; main([{option!r}])"
    done = run("-c", f"{code}; sys.exit('torch' in sys.modules)")
    assert done.returncode == 0


def work_of_children():
    return os.times().children_user + os.times().children_system


def run(*args):
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, check=False)


def without_style(text):
    from rich.text import Text

    return Text.from_ansi(text).plain
