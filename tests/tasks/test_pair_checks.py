"""The doctor finds what was planted among pairs, and leaves sound pairs alone."""

import json
import os
import random

import pytest
from ailing import examined as examined_file, row_number

from glassformer.data.catalog import dates
from glassformer.data.doctor.check import Specimen
from glassformer.tasks.translate.checks import languages
from glassformer.tasks.translate.checks.lengths import BLOCK, PairLengths

PAIRS = {
    "der Hund": "the dog",
    "die Katze": "the cat",
    "läuft über": "runs across",
    "die alte Brücke": "the old bridge",
    "und sieht": "and sees",
    "das kalte Wasser": "the cold water",
    "schnell nach Hause": "quickly home",
    "weil es regnet": "because it rains",
    "ein kleines Mädchen": "a little girl",
    "mit einem roten Ball": "with a red ball",
    "wartet vor der Schule": "waits outside the school",
    "auf ihren großen Bruder": "for her big brother",
}
RUSSIAN = "Собака бежит домой через старый мост"


@pytest.fixture
def pairs():
    """Made-up German and English, all different."""
    rng, said = random.Random(3), list(PAIRS.items())
    found = []
    for number in range(300):
        parts = rng.choices(said, k=rng.randint(1, 9))
        sides = (" ".join(words) for words in zip(*parts, strict=True))
        found.append([f"{side} {number}." for side in sides])
    return found


def examined(folder, pairs):
    path = folder / "x.tsv"
    rows = "".join(f"{source}\t{target}\n" for source, target in pairs)
    path.write_text(f"source\ttarget\n{rows}", encoding="utf-8")
    return examined_file(path, job="translate")


def findings(folder, pairs):
    """What was found: severity, count, and the first rows by number."""
    return {
        (finding.kind, finding.what.split()[1] if finding.kind == "wrong language" else ""): (
            finding.severity,
            finding.count,
            [row_number(row) for row in finding.rows],
        )
        for finding in examined(folder, pairs).findings
    }


def test_sound_pairs_raise_no_alarm(tmp_path, pairs):
    assert findings(tmp_path, pairs) == {}


def test_dates_raise_no_alarm():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dates, "DAYS", 211)
        assert examined_file("dates", job="translate").findings == ()


@pytest.mark.skipif("GLASSFORMER_DATA" not in os.environ, reason="needs $GLASSFORMER_DATA")
@pytest.mark.parametrize(
    "name",
    [
        "multi30k-2017-en-de",
        pytest.param("multi30k-en-de", marks=pytest.mark.full),
        pytest.param("tatoeba-zh-en", marks=pytest.mark.full),
    ],
)
def test_real_pairs_raise_no_alarm(name):
    found = examined_file(name, job="translate").findings
    assert {finding.severity for finding in found} <= {"note"}


def test_odd_lengths_are_told(tmp_path, pairs):
    pairs[40][1] = "No."
    pairs[41][0] = "der Hund"
    pairs[41][1] = " ".join(PAIRS.values())
    assert findings(tmp_path, pairs) == {("odd lengths", ""): ("warning", 2, [41, 42])}


def test_a_single_odd_pair_among_many_is_a_note(tmp_path, pairs):
    many = [[f"{source} {n}", f"{target} {n}"] for n in range(4) for source, target in pairs]
    many[40][1] = "No."
    assert findings(tmp_path, many) == {("odd lengths", ""): ("note", 1, [41])}


def test_a_copied_source_is_told_but_names_and_numbers_may_stay(tmp_path, pairs):
    pairs[40][1] = f"{pairs[40][0].upper()}"
    pairs[50] = ["Tom Jackson 1987", "Tom Jackson 1987"]
    pairs[51] = ["12 34 56 78", "12 34 56 78"]
    found = findings(tmp_path, pairs)
    assert found.pop(("wrong language", "target")) == ("warning", 1, [41])
    assert found == {("copied source", ""): ("warning", 1, [41])}


def test_lines_on_the_wrong_side_are_told(tmp_path, pairs):
    for row in (30, 77, 211):
        pairs[row] = [
            "the cat waits outside the school with a red ball because it rains",
            "die Katze wartet vor der Schule mit einem roten Ball weil es regnet",
        ]
    found = findings(tmp_path, pairs)
    assert found[("wrong language", "source")] == ("warning", 3, [31, 78, 212])
    assert found[("wrong language", "target")] == ("warning", 3, [31, 78, 212])


def test_a_line_does_not_vouch_for_itself(tmp_path):
    common, rare = list(PAIRS.items())[:6], list(PAIRS.items())[8:]
    rng = random.Random(5)
    pairs = [
        [f"{' '.join(side)} {n}" for side in zip(*rng.choices(common, k=5), strict=True)]
        for n in range(60)
    ]
    pairs[10] = [" ".join(side) for side in zip(*rare, strict=True)]
    pairs[30] = [" ".join(side) for side in zip(*rare[::-1], strict=True)][::-1]
    found = findings(tmp_path, pairs)
    assert 31 in found[("wrong language", "source")][2]
    assert 31 in found[("wrong language", "target")][2]


@pytest.mark.parametrize("side", [0, 1])
def test_lines_in_another_script_are_told(tmp_path, pairs, side):
    pairs[60][side] = RUSSIAN
    pairs[60][1 - side] = (
        "A dog runs home over the old bridge, Собака" if side == 0 else "Собака da"
    )
    pairs[61][side] = "OK ОК"
    found = findings(tmp_path, pairs)
    assert found[("wrong language", ("source", "target")[side])] == ("warning", 1, [61])
    assert ("wrong language", ("target", "source")[side]) not in found


def test_a_side_of_many_scripts_has_no_wrong_one(tmp_path, pairs):
    for row in range(0, 300, 3):
        pairs[row][0] = f"{RUSSIAN} {row}"
    assert not [kind for kind, _ in findings(tmp_path, pairs) if kind == "wrong language"]


def test_lines_after_those_that_were_learned_from_are_judged_too(tmp_path, pairs, monkeypatch):
    monkeypatch.setattr(languages, "LEARNED", 100)
    pairs[250][1] = "die Katze wartet vor der Schule mit einem roten Ball weil es regnet"
    assert findings(tmp_path, pairs)[("wrong language", "target")] == ("warning", 1, [251])


@pytest.mark.parametrize(("lost", "place"), [(0, "1 row below"), (1, "1 row above")])
def test_a_lost_line_is_told_by_where_the_pairs_part(tmp_path, pairs, lost, place):
    sides = [list(side) for side in zip(*pairs, strict=True)]
    del sides[lost][170]
    sides[lost].append("the end" if lost else "das Ende")
    (finding,) = (
        f
        for f in examined(tmp_path, zip(*sides, strict=True)).findings
        if f.kind == "misaligned pairs"
    )
    assert finding.severity == "error"
    assert "in one stretch" in finding.what
    assert finding.what.endswith(f"if each target is taken from {place}")
    (row,) = (row_number(row) for row in finding.rows)
    assert abs(row - 171) <= 3
    assert abs(finding.count - 130) <= 5


def test_a_stretch_that_is_moved_ends_where_lines_match_again(tmp_path, pairs):
    sides = [list(side) for side in zip(*pairs, strict=True)]
    sides[1][100:200] = [sides[1][199], sides[1][198], *sides[1][100:198]]
    (finding,) = (
        f
        for f in examined(tmp_path, zip(*sides, strict=True)).findings
        if f.kind == "misaligned pairs"
    )
    assert finding.what.endswith("if each target is taken from 2 rows below")
    assert abs(row_number(finding.rows[0]) - 102) <= 3
    assert abs(finding.count - 98) <= 5


@pytest.fixture
def alike():
    """Lengths of the sides of 500 aligned pairs that are all about as long."""
    rng = random.Random(7)
    sources = [rng.randint(38, 45) for _ in range(500)]
    return [[source, source + rng.randint(-2, 2)] for source in sources]


def found_by_length(lengths):
    """What was found in pairs of these lengths: its kind, and the first rows from 0."""
    check = PairLengths()
    for number, (source, target) in enumerate(lengths):
        sample = {"source": "x" * source, "target": "x" * target}
        check.see(Specimen(number=number, split="train", sample=sample, content=0))
    return {f.kind: [*f.numbers] for f in check.findings()}


@pytest.mark.parametrize("length", [150, 400, 4000])
@pytest.mark.parametrize("usual", ["alike", "equal"])
def test_one_odd_pair_is_odd_wherever_it_stands_and_moves_no_others(alike, usual, length):
    if usual == "equal":
        alike = [[40, 40] for _ in alike]
    edges = {place + near for place in range(0, 500, 4 * BLOCK) for near in range(-3, 4)}
    for row in sorted(edges & {*range(500)} | {*range(0, 500, 61), 499}):
        lengths = [list(pair) for pair in alike]
        lengths[row][1] = length
        assert found_by_length(lengths) == {"odd lengths": [row]}


@pytest.mark.parametrize("apart", [-3, -1, 1, 2])
def test_two_odd_pairs_that_would_fit_each_other_are_no_moved_stretch(alike, apart):
    for row in (100, 112, 124):
        lengths = [list(pair) for pair in alike]
        lengths[row][0] = lengths[row + apart][1] = 400
        assert found_by_length(lengths) == {"odd lengths": sorted([row, row + apart])}


def test_lengths_that_say_nothing_of_each_other_are_no_moved_stretch():
    for seed in range(20):
        rng = random.Random(seed)
        lengths = [[rng.randint(30, 59), rng.randint(30, 59)] for _ in range(500)]
        assert "misaligned pairs" not in found_by_length(lengths)


def test_a_moved_stretch_is_found_beside_an_odd_pair(alike):
    targets = [target for _, target in alike]
    targets[200:320] = [targets[319], *targets[200:319]]
    targets[374] = 400
    lengths = [[source, target] for (source, _), target in zip(alike, targets, strict=True)]
    found = found_by_length(lengths)
    assert found["odd lengths"] == [374]
    (row,) = found["misaligned pairs"]
    assert abs(row - 200) <= 5


def test_empty_sides_are_told(tmp_path, pairs):
    pairs[4][0], pairs[9][1] = " ", ""
    found = [f for f in examined(tmp_path, pairs).findings if f.kind == "empty rows"]
    assert sorted(f.what for f in found) == ["1 row with empty source", "1 row with empty target"]


def test_pairs_that_come_again_are_notes_and_several_targets_are_fine(tmp_path, pairs):
    pairs[20] = list(pairs[5])
    pairs[30] = [pairs[6][0], f"well, {pairs[6][1]}"]
    pairs[31] = [pairs[6][0].upper(), pairs[6][1]]
    assert findings(tmp_path, pairs) == {("duplicate rows", ""): ("note", 2, [21, 32])}


def test_a_copy_keeps_every_target_of_a_source(tmp_path, pairs):
    pairs[20] = list(pairs[5])
    pairs[30] = [pairs[6][0], f"well, {pairs[6][1]}"]
    assert examined(tmp_path, pairs).to_drop == {20: "duplicate"}


def test_a_source_that_is_held_out_and_learned_is_told_whatever_its_target(tmp_path, pairs):
    (tmp_path / "y.tsv").write_text(
        f"source\ttarget\n{pairs[3][0].upper()}\tanother answer\nganz neu\tquite new\n"
    )
    examined(tmp_path, pairs)
    found = examined_file(tmp_path / "x.tsv", job="translate", test=tmp_path / "y.tsv")
    (shared,) = (f for f in found.findings if f.kind == "shared by splits")
    assert shared.rows == (f"{tmp_path}/y.tsv row 1 (line 2)",)
    assert found.to_drop == {3: "also in test"}


def test_the_first_of_several_references_is_the_target_as_in_training(tmp_path):
    rows = [
        {
            "source": f"ein ganzer Satz {n}",
            "refs": [f"a whole sentence {n}", f"ein ganzer Satz {n}"],
        }
        for n in range(97)
    ]
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert examined_file(path, job="translate").findings == ()
    rows[5]["refs"].reverse()
    path.write_text("\n".join(map(json.dumps, rows)))
    kinds = {f.kind for f in examined_file(path, job="translate").findings}
    assert "copied source" in kinds


def test_one_source_in_several_languages_may_have_several_targets(tmp_path, pairs):
    path = tmp_path / "x.tsv"
    rows = [f"{source}\t{target}\ten" for source, target in pairs]
    rows += [f"{source}\tThe {target}\tfr" for source, target in pairs]
    rows += [f"{pairs[6][0]}\twell, {pairs[6][1]}\ten"]
    path.write_text("source\ttarget\tto\n" + "\n".join(rows), encoding="utf-8")
    assert not examined_file(path, job="translate").findings


def test_few_pairs_are_not_judged_by_what_is_usual(tmp_path):
    pairs = [["ja", "yes"], ["nein", "no, by no means, never in my life, not for any money at all"]]
    assert findings(tmp_path, pairs).keys() == {("no training", "")}
