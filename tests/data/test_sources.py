"""Every format gives the same rows, one at a time."""

import gzip
import itertools
import json
import lzma
import tracemalloc

import pyarrow
import pytest
from hypothesis import example, given, settings, strategies as st
from pyarrow import parquet

from glassformer.data.rows import Row, as_text, as_value
from glassformer.data.sources import SOURCES, read_rows
from glassformer.data.sources.files import PACKINGS
from glassformer.data.sources.table import has_header
from glassformer.errors import GlassformerError

REVIEWS = [
    {"text": "a fine film, truly", "label": "good"},
    {"text": 'he said "no"\nand left', "label": "bad"},
    {"text": "非常好 🎬 déjà vu", "label": "good"},
]


def values(path, **options):
    return [dict(row.values) for row in read_rows(path, **options)]


def write(path, content, packed=True):
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(pack(path.suffix, data) if packed else data)
    return path


def pack(suffix, data):
    match suffix:
        case ".gz":
            return gzip.compress(data)
        case ".xz":
            return lzma.compress(data)
        case ".zst":
            return pyarrow.compress(data, codec="zstd", asbytes=True)
    return data


def delimited(mark):
    quoted = [
        mark.join('"' + cell.replace('"', '""') + '"' for cell in row.values()) for row in REVIEWS
    ]
    return "\n".join([mark.join(REVIEWS[0]), *quoted]) + "\n"


CONTENT = {
    ".csv": delimited(","),
    ".tsv": delimited("\t"),
    ".jsonl": "".join(json.dumps(row) + "\n" for row in REVIEWS),
}


@pytest.mark.parametrize("suffix", CONTENT)
@pytest.mark.parametrize("packing", ["", *PACKINGS])
def test_every_format_gives_the_same_rows_packed_or_not(tmp_path, suffix, packing):
    path = write(tmp_path / f"reviews{suffix}{packing}", CONTENT[suffix])
    rows = list(read_rows(path))
    assert [dict(row.values) for row in rows] == REVIEWS
    assert [row.number for row in rows] == [1, 2, 3]
    line = " (line 3)" if suffix in (".csv", ".tsv") else ""  # below the header
    assert rows[1].where == f"{path} row 2{line}"


def test_a_row_is_named_with_the_line_where_it_begins_in_an_editor(tmp_path):
    path = write(tmp_path / "x.csv", 'text,label\n"two\nlines",a\n\nlast,b\n')
    assert [row.where for row in read_rows(path)] == [
        f"{path} row 1 (line 2)",
        f"{path} row 2 (line 5)",
    ]
    path = write(tmp_path / "x.jsonl", '{"text": "a"}\n\n{"text": "b"}\n')
    assert [row.where for row in read_rows(path)] == [f"{path} row 1", f"{path} row 2 (line 3)"]


def test_a_blank_line_between_the_rows_of_a_single_column_is_an_empty_cell(tmp_path):
    path = write(tmp_path / "x.csv", "\ntext\n\na film\n\n\na town\n\n\n")
    rows = list(read_rows(path))
    assert [row["text"] for row in rows] == ["", "a film", "", "", "a town"]
    assert rows[3].where == f"{path} row 4 (line 6)"
    path = write(tmp_path / "y.csv", "text,label\na film,good\n\na town,bad\n")
    assert len(values(path)) == 2


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_out(tmp_path, mark):
    assert values(write(tmp_path / "reviews.csv", delimited(mark))) == REVIEWS


def test_a_delimiter_inside_the_texts_does_not_mislead(tmp_path):
    path = write(tmp_path / "x.csv", "text;label\none, two, three;a\nfour, five;b\n")
    assert values(path)[0] == {"text": "one, two, three", "label": "a"}


def test_bare_quotes_in_tab_separated_text_are_text(tmp_path):
    path = write(tmp_path / "x.tsv", 'text\tlabel\n"So," he said\ta\nthe 5" disk\tb\n"\tc\n')
    assert [row["text"] for row in values(path)] == ['"So," he said', 'the 5" disk', '"']


def test_a_quoted_tab_in_tab_separated_text_is_text(tmp_path):
    path = write(tmp_path / "x.tsv", 'text\tlabel\n"one\ttwo"\ta\nthree\tb\n')
    assert values(path)[0] == {"text": "one\ttwo", "label": "a"}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_of_a_table_end_in_any_way(tmp_path, end):
    content = end.join(["text,label", "a,b", "", "c,d"])
    assert values(write(tmp_path / "x.csv", content)) == [
        {"text": "a", "label": "b"},
        {"text": "c", "label": "d"},
    ]


@pytest.mark.parametrize(
    ("first", "others", "answer"),
    [
        (["text", "label"], [["a film", "good"]], True),
        (["blurb", "grade"], [["a film", "good"], ["another", "good"]], True),
        (["a film", "good"], [["another", "good"]], False),
        (["5", "a film"], [["4", "another"]], False),
        (["a film " * 9, "good"], [["another", "bad"]], False),
        (["text", "label"], [["a", "b"], ["text", "label"], ["c", "d"]], True),
        (["id", "2020"], [["1", "a"]], True),
        (["title", "en"], [["titre", "fr"], ["word", "en"]], False),
        (["first_thing", "second"], [["a", "b"]], True),
        (["a film"], [["another"]], False),
        (["review"], [["another"]], True),
        (["", "words", "grade"], [["0", "a", "b"]], True),
        (["Hi.", "嗨。"], [["Run!", "快跑！"]], False),
        (["Hi.", "嗨。", "tatoeba #1"], [["Run!", "快跑！", "tatoeba #2"]], False),
        (["abacus", "AE B AH K"], [["zip", "Z IH B AH"], ["kale", "K EY AE B"]], False),
        (["Is it spam?", "Words"], [["yes", "a b"]], True),
        (["What people wrote to us", "Mood"], [["It rains.", "bad"], ["Fine.", "good"]], True),
        (["How do you like it?", "Your comment"], [["a lot", "Nice."], ["not", "Hm."]], True),
        (["Approx.", "Value"], [["1.5", "a"]], True),
        (["Name", "No. of rooms", "Rent p.m."], [["a", "b", "c"]], True),
        (["message", "spam"], [["win a prize", "spam"], ["see you then", "ham"]], True),
        (["spam", "message"], [["spam", "win a prize"], ["ham", "see you then"]], True),
        (["Sentence #", "Word", "POS", "Tag"], [["1", "its", "POS", "O"]], True),
        (["Sentence #", "Word", "POS", "Tag"], [["1", "Word", "POS", "O"]], True),
        (["message", "label"], [["message", "ham"], ["see you then", "ham"]], True),
        (["name", "noun"], [["book", "noun"], ["read", "verb"]], False),
        (["title", "noun", "3"], [["book", "noun", "4"]], False),
        (["see you", "name", "ham"], [["win", "name", "ham"]], False),
    ],
)
def test_a_header_is_told_from_data(first, others, answer):
    assert has_header(first, others) is answer


def test_a_header_is_one_by_declaration_or_by_the_columns_that_are_asked_for(tmp_path):
    path = write(tmp_path / "x.csv", "5,a fine film\n1,a bad one\n")
    assert values(path, header=True) == [{"5": "1", "a fine film": "a bad one"}]
    odd = write(tmp_path / "y.csv", "Kommentar,gut\nja,gut\nnein,schlecht\n")
    assert values(odd)[0] == {"1": "Kommentar", "2": "gut"}
    assert values(odd, names={"Kommentar"})[0] == {"Kommentar": "ja", "gut": "gut"}
    assert values(odd, header=False, names={"Kommentar"})[0] == {"1": "Kommentar", "2": "gut"}
    assert values(odd, names={"1", "2"})[0] == {"1": "Kommentar", "2": "gut"}


TEXTS = [f"it was film {n}" for n in range(23)]


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        ([f"ham\t{text}" for text in TEXTS], ["1", "2"]),
        (["text,label", *(f"{text},ham" for text in TEXTS)], ["text", "label"]),
        ([f"{n},{text},ham" for n, text in enumerate(TEXTS)], ["1", "2", "3"]),
        ([f"well, {text}" for text in TEXTS], ["text"]),
        ([f"well, so, {text}" for text in TEXTS[:7]], ["text"]),
        ([f"a\t{text}" for text in TEXTS] + ["no tab"], ["text"]),
        (TEXTS, ["text"]),
    ],
)
@pytest.mark.parametrize("name", ["SMSSpamCollection", "x.xls", "x.txt.gz"])
def test_a_file_is_a_table_by_what_it_looks_like(tmp_path, name, lines, columns):
    path = write(tmp_path / name, "\n".join(lines))
    assert list(values(path)[0]) == columns


def test_parquet_is_known_whatever_the_name(tmp_path):
    parquet.write_table(pyarrow.Table.from_pylist(REVIEWS), tmp_path / "reviews")
    assert values(tmp_path / "reviews") == REVIEWS


def test_what_could_not_be_kept_of_a_row_is_known(tmp_path):
    lines = ['{"text": "a", "text": "b", "label": "c"}', r'{"text": "half \ud83c", "label": "c"}']
    path = write(tmp_path / "x.jsonl", "\n".join([*lines, '{"text": "fine \u00e9", "n": 3}']))
    first, second, third = read_rows(path)
    assert first["text"] == "b"
    assert "a key given twice" in first.losses[0]
    assert "half a character" in second.losses[0]
    assert third.losses == ()


def test_a_table_with_more_columns_than_anybody_names_is_refused_at_once(tmp_path):
    names = [f"c{n}" for n in range(10_007)]
    wide = write(tmp_path / "x.csv", f"{','.join(names)}\n{','.join(names)}\n")
    one = write(tmp_path / "x.jsonl", json.dumps(dict.fromkeys(names, "a")))
    table = pyarrow.table([["a"]] * len(names), names=names)
    parquet.write_table(table, tmp_path / "x.parquet")
    for path in (wide, one, tmp_path / "x.parquet"):
        with pytest.raises(GlassformerError, match="10,007 columns, the limit is 10,000"):
            values(path)


def test_columns_without_a_header_are_numbered(tmp_path):
    rows = list(read_rows(write(tmp_path / "x.csv", "5,a fine film\n1,a bad one\n")))
    assert dict(rows[0].values) == {"1": "5", "2": "a fine film"}
    assert rows[0].number == 1


def test_a_column_without_a_name_is_numbered(tmp_path):
    path = write(tmp_path / "x.csv", ",text,label\n0,fine,a\n1,bad,b\n")
    assert values(path)[0] == {"1": "0", "text": "fine", "label": "a"}


def test_a_field_may_be_long_but_not_endless(tmp_path):
    path = write(tmp_path / "x.csv", f"text,label\n{'x' * 999_999},a\n")
    assert len(values(path)[0]["text"]) == 999_999


def test_json_values_become_text_as_a_person_would_write_them(tmp_path):
    line = '{"a": 3, "b": true, "c": null, "d": ["x", 1], "e": 2.50, "f": {"g": ["h"]}, "i": 4.0}'
    assert values(write(tmp_path / "x.jsonl", line)) == [
        {"a": "3", "b": "true", "c": "", "d": ["x", "1"], "e": "2.5", "f": '{"g": ["h"]}', "i": "4"}
    ]


def test_a_number_of_ten_thousand_digits_is_kept(tmp_path):
    digits = "7" * 10_007
    assert values(write(tmp_path / "x.jsonl", f'{{"a": {digits}}}'))[0]["a"] == digits


def test_half_a_surrogate_pair_becomes_the_replacement_character(tmp_path):
    path = write(tmp_path / "x.jsonl", r'{"text": "half \ud83c", "b": ["\ud83c\udfac"]}')
    assert values(path) == [{"text": "half \ufffd", "b": ["🎬"]}]


def test_a_row_lacks_nothing_it_is_asked_for():
    assert Row({"text": "a"}, "x.jsonl", 1)["label"] == ""


def test_values_that_are_no_text_are_empty():
    assert as_text(float("nan")) == as_text(b"\xff\xfe\xfd") == as_text(None) == ""
    assert as_text(b"caf\xc3\xa9") == "café"
    assert as_value([[1], [2]]) == "[[1], [2]]"


def test_parquet_comes_batch_by_batch_with_its_values_as_text(tmp_path):
    count = 601  # more than two batches
    table = pyarrow.table(
        {
            "text": [f"film {n}" for n in range(count)],
            "stars": [None, *range(count - 1)],
            "tags": [["a", "b"]] * count,
            "when": pyarrow.array([1_700_000_000_123_456_789] * count, pyarrow.timestamp("ns")),
        }
    )
    parquet.write_table(table, tmp_path / "x.parquet")
    rows = list(read_rows(tmp_path / "x.parquet"))
    assert [row.number for row in rows] == list(range(1, count + 1))
    assert dict(rows[0].values) == {
        "text": "film 0",
        "stars": "",
        "tags": ["a", "b"],
        "when": "2023-11-14 22:13:20.123456789",
    }
    assert rows[600]["stars"] == "599"


@pytest.mark.parametrize("packing", PACKINGS)
def test_packed_parquet_is_read_and_leaves_nothing_behind(tmp_path, monkeypatch, packing):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    parquet.write_table(pyarrow.table({"text": ["é", "b"]}), tmp_path / "x.parquet")
    path = write(tmp_path / f"x.parquet{packing}", (tmp_path / "x.parquet").read_bytes())
    assert values(path) == [{"text": "é"}, {"text": "b"}]
    assert not [*(tmp_path / "tmp").iterdir()]


def test_bytes_that_are_no_text_are_refused_where_they_are_asked_for(tmp_path):
    table = pyarrow.table({"source": [b"a", "é".encode("cp1252")], "target": ["b", "c"]})
    parquet.write_table(table, tmp_path / "x.parquet")
    first, second = read_rows(tmp_path / "x.parquet")
    assert (first["source"], second["target"]) == ("a", "c")
    with pytest.raises(GlassformerError) as error:
        _ = second["source"]
    assert str(error.value) == (
        f"{tmp_path}/x.parquet row 2: column 'source' holds bytes that are not UTF-8; write them "
        f"as text"
    )


@pytest.mark.parametrize("value", [{"a": "b"}, [["a"], "b"], [{"a": "b"}]])
def test_objects_are_no_text(tmp_path, value):
    content = json.dumps({"text": "a", "label": value, "stars": 3, "seen": True})
    (row,) = read_rows(write(tmp_path / "x.jsonl", content))
    assert (row["text"], row["stars"], row["seen"]) == ("a", "3", "true")
    with pytest.raises(GlassformerError, match="row 1: column 'label' holds an object or"):
        _ = row["label"]


@pytest.mark.parametrize("name", ["poem.txt", "poem.gz"])
def test_lines_may_end_as_on_old_macs(tmp_path, name):
    rows = list(read_rows(write(tmp_path / name, "one\r\rtwo" + " x" * 70_000 + "\rthree\r")))
    assert [row["text"][:5] for row in rows] == ["one", "two x", "three"]
    assert [row.number for row in rows] == [1, 3, 4]


def test_a_newline_far_into_the_file_makes_returns_part_of_lines(tmp_path):
    rows = list(read_rows(write(tmp_path / "x.txt", "one\rline" + " x" * 70_000 + "\nnext")))
    assert [row["text"][:8] for row in rows] == ["one\rline", "next"]


@pytest.mark.parametrize("name", ["poem.txt", "poem.de", "poem", "poem.txt.xz"])
def test_plain_text_is_a_row_a_line_numbered_as_in_an_editor(tmp_path, name):
    rows = list(read_rows(write(tmp_path / name, "one\r\n\n  \n two\rthree \nfour")))
    assert [row["text"] for row in rows] == ["one", " two\rthree ", "four"]
    assert [row.number for row in rows] == [1, 4, 5]


def test_a_folder_for_every_label(tmp_path):
    for name in ("pos/b.txt", "pos/a.txt.gz", "neg/long.md", ".git/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, f"{name}\nsecond line\n")
    (tmp_path / "README").write_text("not a sample")
    rows = list(read_rows(tmp_path))
    assert [(row["label"], row["text"].split("\n")[0]) for row in rows] == [
        ("neg", "neg/long.md"),
        ("pos", "pos/a.txt.gz"),
        ("pos", "pos/b.txt"),
    ]
    assert rows[0].where == f"{tmp_path / 'neg' / 'long.md'} row 1"


def test_a_folder_of_files_is_a_text_a_file_and_a_text_may_be_long(tmp_path):
    write(tmp_path / "a.txt", "x" * 2_000_003)
    write(tmp_path / "b", "")
    assert [len(row["text"]) for row in read_rows(tmp_path)] == [2_000_003, 0]


def test_a_folder_of_tables_is_their_rows(tmp_path):
    write(tmp_path / "b.csv", "label,text\nx,one\ny,two\n")
    write(tmp_path / "a.csv.gz", "text,label\nzero,z\n")
    rows = list(read_rows(tmp_path))
    assert [row["text"] for row in rows] == ["zero", "one", "two"]
    assert [row.number for row in rows] == [1, 1, 2]


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("told", [None, "cp1252"])
def test_a_byte_order_mark_says_how_to_read(tmp_path, codec, told):
    path = write(tmp_path / "x.csv", CONTENT[".csv"].encode(codec))
    assert values(path, encoding=told) == REVIEWS


@pytest.mark.parametrize("codec", ["cp1252", "gb18030", "utf-16-le", "shift_jis"])
def test_the_encoding_may_be_given(tmp_path, codec):
    word = {"cp1252": "déjà", "gb18030": "文本", "utf-16-le": "文本", "shift_jis": "本"}[codec]
    path = write(tmp_path / "x.csv", f"text,label\n{word},a\n".encode(codec))
    assert values(path, encoding=codec) == [{"text": word, "label": "a"}]


@pytest.mark.parametrize(
    "suffix",
    [
        ".csv",
        ".csv.gz",
        *(pytest.param(name, marks=pytest.mark.full) for name in (".jsonl", ".txt")),
    ],
)
def test_a_file_is_never_in_memory_as_a_whole(tmp_path, suffix):
    line = '{"text": "' + "x" * 1000 + '", "label": 1}\n' if "json" in suffix else "x" * 1000 + "\n"
    path = write(tmp_path / f"big{suffix}", ("text\n" if "csv" in suffix else "") + line * 4001)
    tracemalloc.start()
    count = sum(1 for _ in read_rows(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 4001
    assert peak < 1_000_000


def test_the_first_row_comes_before_the_rest_is_read(tmp_path):
    broken = "text,label\n" + "fine,a\n" * 20_011 + '"broken'
    rows = read_rows(write(tmp_path / "x.csv", broken))
    assert [row.number for row in itertools.islice(rows, 3)] == [1, 2, 3]


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(
            st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=2, max_size=2
        )
    ),
    st.sampled_from([",", ";", "|"]),
)
def test_what_is_written_with_quotes_comes_back_as_it_was(tmp_path_factory, cells, mark):
    path = tmp_path_factory.mktemp("round") / "x.csv"
    table = [["text", "label"], *cells, ["the", "end"]]
    lines = [mark.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in table]
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    assert [list(row.values.values()) for row in read_rows(path)] == table[1:]


def test_every_suffix_has_its_reader_and_capitals_do_not_matter(tmp_path):
    assert {".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".txt"} <= SOURCES.keys()
    assert values(write(tmp_path / "X.CSV", CONTENT[".csv"])) == REVIEWS


SUFFIXES = [a + b for a, b in itertools.product([*SOURCES, ""], ["", *PACKINGS])]
PIECES = [
    *(b"text,label\n", b'"', b",", b"\n", b"\r", b"\t", b"{", b'{"a": ', b"[", b"}", b"1e999"),
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9", b"PAR1", b"\x1f\x8b\x08", b"NaN", b"\\ud800"),
]
ENCODINGS = st.sampled_from([None, "utf-16", "utf-32", "cp1252", "gb18030", "hz"])


@settings(max_examples=250)
@given(
    st.binary(max_size=97) | st.lists(st.sampled_from(PIECES), max_size=13).map(b"".join),
    st.sampled_from(SUFFIXES),
    ENCODINGS,
    st.booleans(),
)
@example(b'"' * 40_009, ".tsv", None, False)
@example(b"," * 40_009, ".csv", None, False)
@example(b"a" * 40_009, ".txt", None, False)
@example(b"\x1b[2J\n" * 7, ".tmx", None, False)
def test_any_bytes_are_rows_or_one_line(tmp_path_factory, content, suffix, encoding, packed):
    path = tmp_path_factory.getbasetemp() / f"fuzz{suffix}"
    rows, line = outcome(write(path, content, packed=packed), encoding=encoding)
    assert bool(rows) != (str(path) in line)
    assert "\n" not in line
    assert all(isinstance(v, str | list) for row in rows for v in row.values.values())


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=7))
def test_a_damaged_parquet_file_is_rows_or_one_line(tmp_path_factory, at, damage):
    path = tmp_path_factory.getbasetemp() / "damaged.parquet"
    parquet.write_table(pyarrow.table({"text": ["é", "b"], "n": [1, None]}), path)
    whole = path.read_bytes()
    at %= len(whole)
    path.write_bytes(whole[:at] + damage + whole[at + len(damage) :])
    rows, line = outcome(path)
    assert bool(rows) != (str(path) in line)
    assert "\n" not in line


def outcome(path, **options):
    """The rows and no words, or no rows and the words."""
    try:
        return list(read_rows(path, **options)), ""
    except GlassformerError as error:
        return [], str(error)
