"""What a person sees: a bar in a terminal, lines in a log, nothing when it is to be quiet."""

import io
import os
import re
import sys

import pytest

from glassformer.runs import display
from glassformer.runs.display import Display, clock
from glassformer.terminal import Terminal
from glassformer.training.setup import Step, Validation

EVENTS = [
    *(Step(step, 1 / step, 1e-3, 0.5, 1234.5) for step in range(1, 6)),
    Validation(5, {"accuracy": 0.5, "loss": 12.25}, True),
    *(Step(step, 1 / step, 1e-3, 0.5, 1234.5) for step in range(6, 12)),
    Validation(11, {"accuracy": 0.25, "loss": 0.125}, False),
]


@pytest.fixture
def paper():
    return io.StringIO()


def show(paper, *, terminal, quiet=False):
    console = Terminal(file=paper, force_terminal=terminal, width=100)
    return Display(quiet=quiet, console=console)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("quiet", [True, False])
def test_every_event_passes_through_unchanged(terminal, quiet, paper):
    told = show(paper, terminal=terminal, quiet=quiet).follow(iter(EVENTS), lambda: 11, "classify")
    assert list(told) == EVENTS


def test_a_log_has_a_line_now_and_then_and_one_for_every_validation(paper, monkeypatch):
    list(show(paper, terminal=False).follow(iter(EVENTS), lambda: 11, "classify"))
    lines = paper.getvalue().splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["classify", "1/11"],
        ["step", "5"],
        ["classify", "11/11"],
        ["step", "11"],
    ]
    assert re.fullmatch(
        r"classify 11/11  loss 0\.091  lr 1\.0e-03  1,23[45] tokens/s  0s left", lines[2]
    )
    assert lines[1] == "step       5  validation  accuracy 0.5000   loss 12.2500  best so far"
    assert lines[3] == "step      11  validation  accuracy 0.2500   loss 0.1250"


def test_a_long_run_writes_more_lines(paper, monkeypatch):
    monkeypatch.setattr(display, "LINE_EVERY", -1.0)
    list(show(paper, terminal=False).follow(iter(EVENTS), lambda: 11, "classify"))
    assert len(paper.getvalue().splitlines()) == len(EVENTS)


def test_a_terminal_has_a_bar_with_loss_rate_speed_and_time_left(paper):
    list(show(paper, terminal=True).follow(iter(EVENTS), lambda: 11, "classify"))
    shown = paper.getvalue()
    for told in ("11/11", "loss 0.091", "lr 1.0e-03", "tokens/s", "left", "accuracy 0.5000"):
        assert told in shown
    assert "\x1b[" in shown


def test_quiet_says_nothing_at_all(paper):
    silent = show(paper, terminal=True, quiet=True)
    silent.say("hello")
    with silent.waiting("thinking"), silent.counting("rows") as seen:
        seen(3)
    list(silent.follow(iter(EVENTS), lambda: 11, "classify"))
    assert paper.getvalue() == ""


def test_rows_are_counted_in_a_terminal_and_not_in_a_log(paper):
    for terminal in (False, True):
        assert paper.getvalue() == ""
        with show(paper, terminal=terminal).counting("reading rows") as seen:
            seen(12000)
    assert "reading rows: 12,000" in paper.getvalue()


def test_a_sentence_is_one_line_whatever_it_holds(paper):
    show(paper, terminal=False).say("a [bold]name[/bold]\nwith \x1b[31m colours " + "x" * 200)
    [line] = paper.getvalue().splitlines()
    assert line == "a [bold]name[/bold]\\x0awith \\x1b[31m colours " + "x" * 200


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0s"),
        (59.4, "59s"),
        (59.6, "1m00s"),
        (75, "1m15s"),
        (3599.7, "1h00m"),
        (90000, "25h00m"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds, said):
    assert clock(seconds) == said


def test_what_is_shown_goes_on_when_nobody_reads(monkeypatch):
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stderr", pipe)
        shown = Display()
        assert list(shown.follow(iter(EVENTS), lambda: 11, "classify")) == EVENTS
        print("and so do others", file=sys.stderr, flush=True)


def test_a_bar_appears_once_work_takes_long_and_has_no_other_inside(paper, monkeypatch):
    display = show(paper, terminal=True)
    with display.bar("reading rows") as outer, display.bar("occlusion") as inner:
        outer(3, 7)
        inner(1, 2)
    assert "3/7" not in paper.getvalue()
    monkeypatch.setattr("glassformer.runs.display.SOON", -1.0)
    with display.bar("reading rows") as outer, display.bar("occlusion") as inner:
        outer(3, 7)
        inner(1, 2)
    assert "reading rows" in paper.getvalue()
    assert "3/7" in paper.getvalue()
    assert "occlusion" not in paper.getvalue()


def test_a_log_has_no_bar(paper):
    with show(paper, terminal=False).bar("reading rows") as progress:
        progress(3, 7)
    assert not paper.getvalue()
