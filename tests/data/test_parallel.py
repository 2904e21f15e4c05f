"""Two text files side by side: paired in order, told apart by line, and split by what is read."""

import gzip
import random

import pytest

from glassformer.config import DataConfig
from glassformer.data.columns import SPLIT
from glassformer.data.ingest import ingest
from glassformer.data.rows import Row
from glassformer.data.samples import SPLITS
from glassformer.data.sources.parallel import read_parallel
from glassformer.errors import GlassformerError
from glassformer.tasks.classify.data import ClassifySchema
from glassformer.tasks.shared.text_data import TextSchema
from glassformer.tasks.translate.data import TranslateSchema, has_nearly_as_many_lines

LABELLED, TEXTS, PAIRS = ClassifySchema(), TextSchema(), TranslateSchema()
NAMES = ("t.de", "t.en")
WORDS = ("ein", "Hund", "läuft", "über", "die", "alte", "Brücke", "und", "sieht", "Wasser")


def write(path, lines):
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


def take(folder, *files, schema=PAIRS, **settings):
    return ingest(DataConfig(files=files, **settings), schema, folder / "out")


def refusal(folder, *files, **settings):
    with pytest.raises(GlassformerError) as error:
        take(folder, *files, **settings)
    assert "\n" not in str(error.value)
    return str(error.value).replace(f"{folder}/", "")


def sentences(count=97, seed=0):
    """German and a target that is a little longer, all different."""
    rng = random.Random(seed)
    for number in range(count):
        words = [*rng.choices(WORDS, k=rng.randint(1, 20)), str(number)]
        yield " ".join(words), " ".join(f"{word}x" for word in words)


@pytest.fixture
def sides():
    return [list(side) for side in zip(*sentences(), strict=True)]


def test_two_text_files_are_one_source_of_pairs(tmp_path, sides):
    files = [write(tmp_path / name, side) for name, side in zip(NAMES, sides, strict=True)]
    samples, taken = take(tmp_path, *files)
    assert [sample["source"] for sample in samples] == sides[0]
    assert [sample["target"] for sample in samples] == sides[1]
    assert samples[16]["where"] == f"{tmp_path}/t.de + t.en row 17"
    assert taken.columns == {"source": "source", "target": "target"}


def test_packed_files_pair_like_others(tmp_path, sides):
    files = [
        write(tmp_path / name, side) for name, side in zip(("t.de.gz", "t.en"), sides, strict=True)
    ]
    assert len(take(tmp_path, *files)[0]) == 97


def test_each_part_has_its_own_pairs(tmp_path, sides):
    def files(stem, *numbers):
        picked = [[side[n] for n in range(*numbers)] for side in sides]
        return tuple(
            write(tmp_path / f"{stem}.{language}", side)
            for language, side in zip(("de", "en"), picked, strict=True)
        )

    train = files("a", 0, 40) + files("b", 40, 80)
    samples, _ = take(tmp_path, *train, valid=files("v", 80, 90), test=files("t", 90, 97))
    assert [len(samples.rows(part)) for part in SPLITS] == [80, 10, 7]
    assert samples[80]["where"].endswith("v.de + v.en row 1")
    assert [sample["source"] for sample in samples] == sides[0]


def test_files_of_other_folders_are_named_in_full(tmp_path):
    (tmp_path / "other").mkdir()
    one, two = write(tmp_path / "a.txt", ["x"]), write(tmp_path / "other/a.txt", ["y"])
    config = DataConfig(test=(one, two))
    samples, _ = ingest(config, PAIRS, tmp_path / "out")
    assert samples[0]["where"] == f"{one} + {two} row 1"


def test_tables_stand_between_pairs_as_they_are(tmp_path, sides):
    files = [write(tmp_path / name, side[:50]) for name, side in zip(NAMES, sides, strict=True)]
    rows = ["source\ttarget", *map("\t".join, zip(sides[0][50:], sides[1][50:], strict=True))]
    table = write(tmp_path / "more.tsv", rows)
    samples, _ = take(tmp_path, files[0], table, files[1])
    assert sorted(sample["source"] for sample in samples) == sorted(sides[0])


def test_an_odd_file_is_one_line(tmp_path, sides):
    one, two = (write(tmp_path / name, side) for name, side in zip(NAMES, sides, strict=True))
    assert refusal(tmp_path, one) == (
        "t.de: a single text file has only one side; give both files, as in train.de train.en, or "
        "rename it to .tsv if each line has both, separated by a tab"
    )
    assert refusal(tmp_path, one, two, valid=(two,)).startswith("t.en: a single text file")


def test_two_files_of_one_language_are_no_pair(tmp_path):
    names = ("a.de", "b.de.gz", "a.en", "b.en.gz")
    files = [write(tmp_path / name, ["x"]) for name in names]
    assert refusal(tmp_path, *files) == (
        "a.de and b.de.gz: both end in .de, so they are not a pair; put each source right before "
        "its target, as in train.de train.en"
    )


def test_a_missing_or_misspelt_name_is_told_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "train.en", ["x"])
    assert refusal(tmp_path, "train.de", "train.en") == (
        "train.de: not found; did you mean 'train.en'?"
    )
    assert refusal(tmp_path, "multi30k-en-dee") == (
        "multi30k-en-dee: not found; did you mean the data set 'multi30k-en-de'?"
    )


def test_other_jobs_read_text_files_one_by_one(tmp_path):
    files = [write(tmp_path / f"{name}.txt", [f"{name} {n}" for n in range(40)]) for name in "abc"]
    samples, _ = take(tmp_path, *files, schema=TEXTS)
    assert len(samples) == 120


def test_a_line_that_one_side_lacks_is_left_out_and_counted(tmp_path, sides):
    sides[0][4], sides[1][7], sides[0][9], sides[1][9] = "", " ", "", ""
    files = [write(tmp_path / name, side) for name, side in zip(NAMES, sides, strict=True)]
    samples, taken = take(tmp_path, *files)
    told = {reason: (left.count, left.first) for reason, left in taken.skipped.items()}
    where = f"{tmp_path}/t.de + t.en row"
    assert told == {"empty source": (1, f"{where} 5"), "empty target": (1, f"{where} 8")}
    assert len(samples) == 94
    assert samples[-1]["where"] == f"{where} 97"


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("line", [1, 30, 62, 97])
def test_uneven_files_tell_where_they_part(tmp_path, sides, side, line):
    sides[side][line - 1 : line - 1] = ["one more line of usual length"]
    files = [write(tmp_path / name, lines) for name, lines in zip(NAMES, sides, strict=True)]
    counts = (98, 97) if side == 0 else (97, 98)
    assert refusal(tmp_path, *files) == (
        f"t.de: {counts[0]} lines, but t.en has {counts[1]}, and each line needs its translation; "
        f"they seem to diverge near line {line}; fix them there"
    )


def test_a_file_that_is_cut_short_is_told_as_such(tmp_path, sides):
    files = [
        write(tmp_path / "t.de", sides[0][:61]),
        write(tmp_path / "t.en", sides[1]),
    ]
    assert refusal(tmp_path, *files) == (
        "t.de: 61 lines, but t.en has 97, and each line needs its translation; all of t.de seems "
        "to match, so it may be truncated; give the full file"
    )


def test_blank_pairs_only_and_empty_files_are_one_line(tmp_path):
    blank, empty = write(tmp_path / "a.de", ["", " "]), write(tmp_path / "b.de", [])
    other = write(tmp_path / "a.en", ["", ""])
    assert refusal(tmp_path, blank, other) == (
        "a.de + a.en: no rows, only blank lines; give files with at least one row"
    )
    assert refusal(tmp_path, empty, other).startswith("b.de: the file is empty")


def test_a_wrong_encoding_is_told_with_its_line(tmp_path):
    (tmp_path / "a.de").write_bytes("gut\nschön\n".encode("cp1252"))
    write(tmp_path / "a.en", ["good", "nice"])
    files = (tmp_path / "a.de", tmp_path / "a.en")
    with pytest.raises(GlassformerError, match="line 2: not valid UTF-8"):
        list(read_parallel(*files, None))
    rows = list(read_parallel(*files, "cp1252"))
    assert [row["source"] for row in rows] == ["gut", "schön"]
    with pytest.raises(GlassformerError, match="is not a text encoding known to Python"):
        list(read_parallel(*files, "cp12523"))


def test_a_carriage_return_inside_a_line_does_not_push_files_apart(tmp_path):
    (tmp_path / "a.de").write_bytes(b"one\rline\r\nnext\r\n")
    write(tmp_path / "a.en", ["ONE", "NEXT"])
    rows = list(read_parallel(tmp_path / "a.de", tmp_path / "a.en", None))
    assert [row["source"] for row in rows] == ["one\rline", "next"]


def test_one_source_never_straddles_whatever_its_targets(tmp_path):
    rows = ["source\ttarget"]
    rows += [
        f"{'Satz' if n % 2 else ' satz'} {n % 97}\ttranslation {n} of a sentence"
        for n in range(970)
    ]
    samples, _ = take(tmp_path, write(tmp_path / "x.tsv", rows), valid_share=0.3)
    said = [{text.strip().casefold() for text in samples.texts(part, "source")} for part in SPLITS]
    assert all(len(part) > 3 for part in said)
    assert len(said[0] | said[1] | said[2]) == sum(map(len, said)) == 97
    assert len(samples) == 970


def test_references_stay_a_list_and_decide_nothing(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(
        "\n".join(
            f'{{"source": "word {n % 50}", "target": "W {n}", "references": ["W {n}", "V"]}}'
            for n in range(100)
        )
    )
    samples, _ = take(tmp_path, str(path))
    assert samples[3]["references"] == ["W 3", "V"]
    parts = [{*samples.texts(part, "source")} for part in SPLITS]
    assert len(parts[0] | parts[1] | parts[2]) == sum(map(len, parts)) == 50


@pytest.mark.parametrize(
    ("names", "source", "target"),
    [
        (("id", "src", "tgt"), "src", "tgt"),
        (("de", "en"), "de", "en"),
        (("en", "de", "split"), "en", "de"),
        (("Source Text", "Target Text", "score"), "Source Text", "Target Text"),
        (("id", "translation", "original"), "original", "translation"),
        (("target", "source"), "source", "target"),
    ],
)
def test_columns_of_pairs_are_known_by_name_or_by_their_order(names, source, target):
    row = Row(dict.fromkeys(names, "train"), "x.csv", 1)
    found = PAIRS.find_columns([row], {}, SPLIT)
    assert (found["source"], found["target"]) == (source, target)


def test_columns_of_pairs_leave_text_and_label_as_they_were():
    row = Row({"target": "good", "review": "a fine film", "source": "web"}, "x.csv", 1)
    assert LABELLED.find_columns([row], {}) == {"text": "review", "label": "target"}


@pytest.mark.parametrize(
    ("names", "counts", "meant"),
    [
        (("t.en", "short.de"), (800, 800), True),
        (("t.en", "short.de"), (800, 799), True),
        (("src.txt", "short.de"), (760, 800), True),
        (("a.txt", "b.txt"), (200, 181), True),
        (("a.txt", "b.txt"), (1000, 900), False),
        (("a.txt", "b.txt"), (60, 50), False),
        (("part.1", "part.2"), (800, 799), False),
    ],
)
def test_files_of_nearly_as_many_lines_are_meant_as_a_pair(tmp_path, names, counts, meant):
    paths = [tmp_path / name for name in names]
    for path, count in zip(paths, counts, strict=True):
        path.write_text("a line\n" * count)
    assert has_nearly_as_many_lines(*paths, None) == meant
