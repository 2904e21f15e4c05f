"""Pairs with Chinese in two scripts: the doctor says so, or compares them in one."""

import sys

import pytest
from ailing import examined

pytest.importorskip("opencc")

TRADITIONAL = ("我喜歡讀書", "這是一張圖", "他們說話了", "請關門")
SIMPLIFIED = ("我喜欢读书", "这是一张图", "他们说话了", "请关门")
EITHER = ("我很好", "你在不在", "早上好", "我想吃")
JAPANESE = ("彼は国語を学ぶ", "本を売る", "国の中で", "話を聞く")
IN_ONE_SCRIPT = "data.tokenizer.simplified=true"


def numbered(texts, count):
    return [f"{texts[n % len(texts)]} {n}" for n in range(count)]


def found(folder, sources, *settings, test=()):
    """Findings in Chinese beside made-up English, by kind."""
    files = {"train": sources, "test": test}
    for part, texts in files.items():
        rows = "".join(f"{text}\tnumber {text.split()[-1]}\n" for text in texts)
        (folder / f"{part}.tsv").write_text(f"source\ttarget\n{rows}", encoding="utf-8")
    given = {"test": folder / "test.tsv"} if test else {}
    examination = examined(folder / "train.tsv", job="translate", set=settings, **given)
    return {finding.kind: finding for finding in examination.findings}, examination


def test_two_scripts_on_one_side_are_noted_with_the_setting_that_helps(tmp_path):
    sources = numbered(TRADITIONAL, 20) + numbered(SIMPLIFIED, 30) + numbered(EITHER, 10)
    note = found(tmp_path, sources)[0]["mixed scripts"]
    assert note.line == (
        "note: 20 rows of the source side are in traditional and 30 in simplified Chinese (first "
        f"{tmp_path / 'train.tsv'} row 1 (line 2)); convert them to one script with "
        "--set data.tokenizer.simplified=true"
    )
    assert note.count == 20


def test_rows_are_drawn_from_all_of_many(tmp_path):
    sources = numbered(SIMPLIFIED, 1500) + numbered(TRADITIONAL, 1500)
    note = found(tmp_path, sources)[0]["mixed scripts"]
    assert note.what.endswith("in simplified Chinese, of 300 sampled")
    assert 100 < note.count < 200


@pytest.mark.parametrize("texts", [TRADITIONAL, SIMPLIFIED, JAPANESE])
def test_one_script_and_japanese_are_left_alone(tmp_path, texts):
    assert "mixed scripts" not in found(tmp_path, numbered((*texts, *EITHER), 60))[0]


def test_a_stray_row_in_the_other_script_is_no_mixture(tmp_path):
    sources = numbered(SIMPLIFIED, 99) + numbered(TRADITIONAL, 1)
    assert "mixed scripts" not in found(tmp_path, sources)[0]


def test_a_side_that_is_read_in_one_script_is_not_noted(tmp_path):
    sources = numbered(TRADITIONAL, 20) + numbered(SIMPLIFIED, 30)
    assert "mixed scripts" not in found(tmp_path, sources, IN_ONE_SCRIPT)[0]
    target_only = found(tmp_path, sources, "task.target.simplified=true")[0]
    assert "mixed scripts" in target_only


def test_a_target_with_settings_of_its_own_is_told_by_them(tmp_path):
    path = tmp_path / "x.tsv"
    targets = numbered(TRADITIONAL, 20) + numbered(SIMPLIFIED, 20)
    rows = "".join(f"number {n}\t{text}\n" for n, text in enumerate(targets))
    path.write_text(f"source\ttarget\n{rows}", encoding="utf-8")
    for settings, setting in (
        ((), "data.tokenizer.simplified"),
        (("task.target.kind=bpe",), "task.target.simplified"),
    ):
        (note,) = examined(path, job="translate", set=settings).findings
        assert "of the target side" in note.what
        assert note.advice == f"convert them to one script with --set {setting}=true"


def test_without_opencc_nothing_is_said_of_scripts(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "opencc", None)
    sources = numbered(TRADITIONAL, 20) + numbered(SIMPLIFIED, 30)
    assert "mixed scripts" not in found(tmp_path, sources)[0]


def test_pairs_that_differ_in_script_alone_come_again_where_it_is_read_as_one(tmp_path):
    sources, again = numbered(TRADITIONAL, 40), numbered(SIMPLIFIED, 3)
    apart = found(tmp_path, sources + again)[0]
    assert "duplicate rows" not in apart
    alike, examination = found(tmp_path, sources + again, IN_ONE_SCRIPT)
    assert alike["duplicate rows"].count == 3
    assert examination.to_drop == dict.fromkeys((40, 41, 42), "duplicate")


def test_splits_that_differ_in_script_alone_share_texts_where_it_is_read_as_one(tmp_path):
    sources, test = numbered(TRADITIONAL, 40), numbered(SIMPLIFIED, 5)
    assert "shared by splits" not in found(tmp_path, sources, test=test)[0]
    shared = found(tmp_path, sources, IN_ONE_SCRIPT, test=test)[0]["shared by splits"]
    assert shared.what == "5 rows of test (100.0%) are also in train"
