"""Lines in a third language are told, and each target language is judged by itself."""

import random

import pytest
from ailing import examined as examined_file, row_number

from glassformer.tasks.shared import language_outliers

GERMAN = {
    "wer": "ein Hund|eine Frau|der alte Mann|das kleine Mädchen|die Kinder|ein Junge",
    "was": "läuft|sitzt|wartet|spielt|schläft|steht",
    "wo": "auf der Wiese|vor einem Haus|in der Stadt|an dem Fluss|unter einer Brücke",
    "wie": "mit einem Ball|und lacht dabei|ohne die Jacke|in der Sonne|bei dem Regen",
}
ENGLISH = {
    "who": "a dog|a woman|the old man|the little girl|the children|a boy",
    "what": "runs|sits|waits|plays|sleeps|stands",
    "where": "on the grass|outside a house|in the town|at the river|under a bridge",
    "how": "with a ball|and is laughing|without the coat|in the sun|in the rain",
}
FRENCH = (
    "Une vieille dame lit son journal près de la fenêtre ouverte.",
    "Deux garçons jouent au ballon derrière cette petite école.",
    "Le chien noir saute par-dessus les vagues avec joie.",
)
CHINESE = "一只狗在草地上跑来跑去很高兴"


def sentences(kinds, count, seed):
    rng = random.Random(seed)
    return [" ".join(rng.choice(some.split("|")) for some in kinds.values()) for _ in range(count)]


def examined(folder, rows, columns="source\ttarget"):
    path = folder / "x.tsv"
    lines = ["\t".join(row) for row in rows]
    path.write_text("\n".join([columns, *lines]) + "\n", encoding="utf-8")
    return examined_file(path, job="translate").findings


def wrong_lines(findings):
    return {
        f.what.split(" line")[0].split()[-1]: [row_number(row) for row in f.rows]
        for f in findings
        if f.kind == "wrong language"
    }


@pytest.fixture
def pairs():
    numbered = zip(sentences(ENGLISH, 400, 1), sentences(GERMAN, 400, 2), strict=True)
    return [[f"{source} {n}", f"{target} {n}"] for n, (source, target) in enumerate(numbered)]


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("first", [language_outliers.FIRST, 150])
def test_a_third_language_in_the_same_script_is_told(tmp_path, pairs, side, first, monkeypatch):
    monkeypatch.setattr(language_outliers, "FIRST", first)
    for row, line in zip((40, 211, 333), FRENCH, strict=True):
        pairs[row][side] = line
    name = ("source", "target")[side]
    assert wrong_lines(examined(tmp_path, pairs)) == {name: [41, 212, 334]}


def test_few_odd_lines_are_a_note_and_more_a_warning(tmp_path, pairs):
    for count, severity in ((1, "note"), (2, "note"), (3, "warning")):
        for row, line in zip((40, 211, 333)[:count], FRENCH, strict=False):
            pairs[row][1] = line
        (finding,) = (f for f in examined(tmp_path, pairs) if f.kind == "wrong language")
        assert (finding.severity, finding.count) == (severity, count)


def test_sound_lines_and_short_ones_are_no_third_language(tmp_path, pairs):
    pairs[40][1] = "Bonjour, monsieur Dupont!"
    assert wrong_lines(examined(tmp_path, pairs)) == {}


def test_a_side_without_common_words_or_without_blanks_is_left_alone(tmp_path, pairs):
    rng = random.Random(4)
    for row, pair in enumerate(pairs):
        pair[0] = " ".join("".join(rng.choices("abdeiknorstu", k=6)) for _ in range(7))
        pair[1] = "".join(rng.sample(CHINESE, len(CHINESE))) + str(row)
    pairs[40][0] = FRENCH[0]
    pairs[41][1] = "龘靐齉爩鱻麤龖灪籲鸞"
    assert wrong_lines(examined(tmp_path, pairs)) == {}


def test_each_target_language_is_judged_by_itself(tmp_path, pairs):
    rows = []
    for source, target in pairs:
        rows += [[source, target, "de"], [source, f"{source} {' and so on' * 30}", "en"]]
    assert not list(examined(tmp_path, rows, "source\ttarget\tto"))
    rows[80][1] = FRENCH[0]
    (finding,) = (
        f for f in examined(tmp_path, rows, "source\ttarget\tto") if f.kind == "wrong language"
    )
    assert finding.what.startswith("1 target line (0.25%)")
    assert finding.what.endswith("other target lines (to de)")
    assert finding.rows == (f"{tmp_path}/x.tsv row 81 (line 82)",)


@pytest.mark.parametrize(
    ("tag", "what"),
    [
        ("<x y>", "1 row with < > or spaces in the target language"),
        ("", "1 row without a target language"),
    ],
)
def test_a_target_language_that_training_refuses_is_an_error(tmp_path, pairs, tag, what):
    rows = [[*pair, "de"] for pair in pairs]
    assert not [f for f in examined(tmp_path, rows, "source\ttarget\tto") if f.severity == "error"]
    rows[7][2] = tag
    (finding,) = (
        f for f in examined(tmp_path, rows, "source\ttarget\tto") if f.severity == "error"
    )
    assert (finding.what, finding.rows) == (what, (f"{tmp_path}/x.tsv row 8 (line 9)",))
