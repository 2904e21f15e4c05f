"""`glassformer bench translate`: the same weights on all sides, the same work, and a report."""

import json
import signal
import sys
from dataclasses import replace

import pytest
import torch

from glassformer.benchmarks import marian, timing, translation
from glassformer.benchmarks.marian import END, Size
from glassformer.cli import main
from glassformer.errors import install

CPU = torch.device("cpu")
TINY = Size(vocabulary=101, dim=24, depth=2, heads=3, hidden=37)
LINE = ["bench", "translate", "--device", "cpu", "--threads", "1", "--rounds", "1"]

needs_hugging_face = pytest.mark.usefixtures("_hugging_face")


@pytest.fixture
def _hugging_face():
    pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    small = {"SIZES": (TINY,), "ROWS": 5, "MEDIAN": 6, "EVEN": 7}
    for name, value in small.items():
        monkeypatch.setattr(translation, name, value)
    monkeypatch.setattr(timing, "WARM_UPS", 1)
    translation.contest_of.cache_clear()


def contest():
    return translation.Contest(TINY, CPU, "float32")


@needs_hugging_face
@pytest.mark.parametrize("width", [1, 4])
def test_both_sides_say_the_same_and_never_end_by_themselves(width):
    this, limits = contest(), [7] * 5
    ours = this.our_output(width, limits)
    assert ours == this.hugging_face_output(width, limits)
    assert {len(row) for row in ours} == {7}
    assert not {END, TINY.pad} & {token for row in ours for token in row}
    assert len(set(ours)) > 1


@needs_hugging_face
@pytest.mark.parametrize("width", [1, 4])
def test_ctranslate2_says_the_same(width):
    pytest.importorskip("ctranslate2")
    this, limits = contest(), [7] * 5
    assert this.ctranslate2_output(width, limits) == this.our_output(width, limits)


@needs_hugging_face
@pytest.mark.parametrize("width", [1, 4])
def test_ragged_rows_write_as_much_on_both_sides(width):
    this, limits = contest(), [1, 2, 5, 7, 11]
    ours, theirs = this.our_output(width, limits), this.hugging_face_output(width, limits)
    assert [len(row) for row in ours] == limits
    assert [row.index(END) + 1 for row in theirs] == limits
    if width == 1:
        assert [row[:-1] for row in ours] == [
            row[: limit - 1] for row, limit in zip(theirs, limits, strict=True)
        ]


@needs_hugging_face
def test_the_command_reports_every_pair_and_who_agrees(capsys):
    assert main([*LINE, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["machine"]["batch"], found["machine"]["dtype"]) == (5, "float32")
    missing = marian.no_ctranslate2(CPU)
    others = ["Hugging Face"] if missing else ["Hugging Face", "CTranslate2"]
    cases = [f"{method}, vocabulary 101, float32" for method in ("greedy", "beam 4")]
    assert [(one["case"], one["theirs"]) for one in found["even"]] == [
        (case, other) for case in cases for other in others
    ]
    assert [(one["case"], one["theirs"]) for one in found["ragged"]] == [
        (case, "Hugging Face") for case in cases
    ]
    assert all(one["time"]["ratio"] > 0 for one in found["even"] + found["ragged"])
    for case in cases:
        assert f"{case}: 5 of 5 rows agree with Hugging Face" in found["notes"]
    assert (missing in found["notes"]) == (missing is not None)


@needs_hugging_face
def test_rows_said_otherwise_are_not_counted():
    pair, *_ = translation.ragged_pairs(CPU)  # theirs end in END, so that no row is the same
    assert translation.agreement(pair).endswith("0 of 5 rows agree with Hugging Face")


@needs_hugging_face
def test_without_ctranslate2_it_is_left_out_and_said(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert main(LINE) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "Note: CTranslate2 is not installed, so nothing is measured against it" in out
    assert out.count("Hugging Face") >= 4


def test_without_transformers_one_line_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers.models.marian.modeling_marian", None)
    assert main(LINE) == 1
    told = (
        f"translators are measured against transformers, which is not installed; {install('bench')}"
    )
    assert capsys.readouterr() == ("", f"glassformer: {told}\n")


@needs_hugging_face
def test_what_was_measured_before_an_interruption_is_shown(capsys, monkeypatch):
    def ragged(device):
        [first, *_] = translation.pairs(device, ["Hugging Face"], [2] * 5)
        return [replace(first, make=stop)]

    def stop():
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(translation, "ragged_pairs", ragged)
    assert main([*LINE, "--json"]) == 130
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert len(found["even"]) >= 2
    assert "ragged" not in found
    assert found["notes"][-1].startswith("interrupted: results are incomplete")
    assert err.endswith("glassformer: interrupted\n")
