"""`glassformer compare`: the table, JSON, and its errors in a line."""

import json

import pytest
from quick import quickly
from small_files import TINY, reviews, write_csv

from glassformer.cli import main
from glassformer.cli.compare import tables_within
from glassformer.runs import compare
from glassformer.terminal import Terminal


@pytest.fixture(autouse=True)
def _quickly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with quickly():
        yield


@pytest.fixture
def data(tmp_path):
    return str(write_csv(tmp_path / "reviews.csv", reviews()))


def words(data, *more):
    vary = ("--vary", "model.pool=mean,max", "--seeds", "1", "--at-once", "1", "--quiet")
    return ["compare", "classify", data, *TINY, *vary, *more]


def test_it_prints_a_table_with_drawings_and_the_verdict_then_the_same_as_json(data, capsys):
    budget = ("--flops", "2e8")
    assert main(words(data, *budget)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "classify on" in out
    assert out.count("●") == 2
    few = "differences are not tested: too few rows for a comparison: "  # as few as there are here
    assert few in " ".join(out.split())
    assert "Page: runs/reviews-compare/comparison.html" in out
    again = [word for word in words(data, *budget, "--json") if word != "--quiet"]
    assert main(again) == 0
    out, err = capsys.readouterr()
    assert "all 2 runs are already finished" in err
    found = json.loads(out)
    assert [one["name"] for one in found["variants"]] == ["mean", "max"]
    assert "at once" not in found["facts"]["machine"]
    assert found["notes"][-1].startswith("2 runs trained before this command was given again: ")
    assert min(one["steps"] for one in found["variants"]) > 1
    assert found["facts"]["folder"] == "runs/reviews-compare"
    assert found["facts"]["budget"] == "2e+08 FLOPs for each run"
    assert "--vary model.pool=mean,max --seeds 1" in found["facts"]["command"]


def test_too_little_compute_is_said_of_the_run(data, capsys):
    assert main(words(data, "--flops", "1")) == 1
    said = capsys.readouterr().err
    assert "fewer than two variants can be trained: --flops 1 is too little for one step, " in said


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "a comparison needs a budget, the same for every variant; add --time, --steps, "),
        (("--steps", "2", "--time", "1m"), "--steps and --time both set the length of training"),
        (("--steps", "2", "--on", "train"), "unknown split in --on 'train'; the choices are valid"),
        (("--steps", "2", "--set", "seed=1"), "--set seed=1: every variant is trained with the "),
        (("--steps", "2", "--vary", "model.nrom=rms,layer"), "model.pool=mean, model.nrom=rms: "),
        (("--steps", "2", "--vary", "model.norm=rms"), "is a single value; add another"),
        (("--steps", "2", "--longer", "none.csv"), "none.csv"),
    ],
)
def test_errors_take_one_line_and_leave_nothing_behind(data, refused, more, message):
    assert message in refused(*words(data, *more))


def test_torchrun_is_refused(data, refused, monkeypatch):
    monkeypatch.setattr(compare.processes, "world_size", lambda: 2)
    assert "compare starts processes of its own; drop torchrun" in refused(*words(data))


def printed(tables, width):
    console = Terminal(width=width, color_system=None, force_jupyter=False)
    with console.capture() as captured:
        for table in tables:
            console.print(table)
    return captured.get()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_narrow_terminal_shows_every_number_in_tables_one_below_another(width):
    header = ["position", "accuracy", "", "difference from the best", "p", "verdict"]
    header += ["parameters", "tokens/s", "rows/s", "memory"]
    rows = [
        [
            *(name, "0.912 [0.871, 0.941]", "├──────●──────┤", "-0.020 [-0.051, +0.011]", "0.31"),
            *("as good as the best", "1,234,567", "45,678", "1,234", "1.2 GB"),
        ]
        for name in ("rotary", "sinusoidal")
    ]
    tables = tables_within(width, header, rows)
    shown = printed(tables, width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    for row in rows:
        for cell in (*row[:2], *row[3:]):
            assert cell in shown
    assert ("├──────●──────┤" in shown) == (width == 200)
    assert len(tables_within(None, header, rows)) == 1
