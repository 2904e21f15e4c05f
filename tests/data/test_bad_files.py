"""Whatever is wrong with a file is one line: what was wrong, what was found, what to do."""

import gzip
import lzma
import os
import sys

import pyarrow
import pytest
from pyarrow import parquet

from glassformer.data.sources import decoding, read_rows, table
from glassformer.data.sources.files import MAGIC
from glassformer.errors import GlassformerError


def complaint(path, **options):
    """The one line that reading this gives, without the folder it is in."""
    with pytest.raises(GlassformerError) as error:
        list(read_rows(path, **options))
    line = str(error.value)
    assert "\n" not in line
    assert str(path) in line or "data.encoding" in line
    assert ";" in line, "a third part says what to do"
    return line.replace(f"{path.parent}{os.sep}", "")


def written(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


CASES = {
    ("x.csv", b""): "x.csv: the file is empty; give a file with at least one row",
    ("x.txt", b"\xef\xbb\xbf"): "x.txt: the file is empty; give a file with at least one row",
    ("x.csv", b"\n\r\n\n"): "x.csv: no rows, only blank lines; give a file with at least one row",
    ("x.jsonl", b" \n"): "x.jsonl: no rows, only blank lines; give a file with at least one row",
    ("x.csv", b'text,"label\n  and\tmore"\n'): (
        "x.csv: a header (text, label and more) but no rows below it; "
        "give a table with at least one row"
    ),
    ("x.csv", b"text," + b",".join(b"c%d" % n for n in range(997))): (
        "x.csv: a header (text, c0, c1, c2, c3, c4, c5, c6, ... (998 in total)) but no rows below "
        "it; give a table with at least one row"
    ),
    ("x.csv", b"text,label\n"): (
        "x.csv: a header (text, label) but no rows below it; give a table with at least one row"
    ),
    ("x.csv", b"text,label\na,b\none, two,c\n"): (
        "x.csv row 2 (line 3): 3 cells where the table has 2 columns (text, label); "
        "quote a cell that holds a comma"
    ),
    ("x.tsv", b"text\tlabel\na\n"): (
        "x.tsv row 1 (line 2): 1 cell where the table has 2 columns (text, label); "
        "add the missing cells"
    ),
    ("x.csv", b"5,a film\n4,b\n3\n"): (
        "x.csv row 3 (line 3): 1 cell where the table has 2 columns (1, 2); add the missing cells"
    ),
    ("x.csv", b'text,label\n"one\ntwo",a\n"a "fine" film",b\n'): (
        "x.csv row 2 (line 4): the row cannot be parsed up to line 4 (',' expected after '\"'); "
        'close every opening quote, and double a quote inside a cell ("")'
    ),
    ("x.csv", b'text,label\na,b\n"never closed,a\nfine,b\n'): (
        "x.csv row 2 (line 3): the row cannot be parsed up to line 4 (unexpected end of data); "
        'close every opening quote, and double a quote inside a cell ("")'
    ),
    ("x.csv", b"text,label,text\na,b,c\n"): (
        "x.csv: two columns are named 'text' in the header (text, label, text); rename one of them"
    ),
    ("x.jsonl", b'{"text": "a"}\n\n{"text": \n'): (
        "x.jsonl row 2 (line 3): not JSON (Expecting value at character 11); "
        "write one complete JSON object per line"
    ),
    ("x.json", b'[{"text": "a"}]'): (
        "x.json row 1 (line 1): a list instead of an object; "
        'write every line like {"text": "...", "label": "..."}'
    ),
    ("x.jsonl", b"17\n"): (
        "x.jsonl row 1 (line 1): a number instead of an object; "
        'write every line like {"text": "...", "label": "..."}'
    ),
    ("x.parquet.gz", gzip.compress(b"text,label\n" * 9, mtime=0)): (
        "x.parquet.gz: not a valid Parquet file (Parquet magic bytes not found in footer. Either "
        "the file is corrupted or this is not a parquet file.); write or fetch it again"
    ),
    ("x.jsonl", b'{"a":' * 100_003): (
        "x.jsonl row 1 (line 1): JSON nested too deeply; use plain values"
    ),
    ("x.csv", "text,label\ngood,a\ndéjà vu,b\n".encode("cp1252")): (
        "x.csv line 3: not valid UTF-8 (byte 0xe9 at position 19); "
        'it looks like cp1252: save it as UTF-8, or train with set="data.encoding=cp1252"'
    ),
    ("x.txt", "да\nпросто хороший фильм".encode("cp1251")): (
        "x.txt line 1: not valid UTF-8 (byte 0xe4 at position 0); "
        'it looks like cp1251: save it as UTF-8, or train with set="data.encoding=cp1251"'
    ),
    ("x.txt", "film\n这部电影非常好看".encode("gbk")): (
        "x.txt line 2: not valid UTF-8 (byte 0xd5 at position 5); "
        'it looks like gb18030: save it as UTF-8, or train with set="data.encoding=gb18030"'
    ),
    ("x.txt", "café\nréal\n".encode() + b"caf\xe9 noir\n"): (
        "x.txt line 3: not valid UTF-8 (byte 0xe9 at position 15); earlier lines are UTF-8 and "
        "this one looks like cp1252, so the file mixes encodings; save all of it as UTF-8: "
        '`glassformer.doctor("x.txt").fix(path)` writes such a copy'
    ),
    ("x.txt", "£5 für drei\n".encode() + "£5 über\n".encode("cp1252") + "é漢字ö".encode() * 9): (
        "x.txt line 2: not valid UTF-8 (byte 0xa3 at position 14); earlier lines are UTF-8 and "
        "this one looks like cp1252, so the file mixes encodings; save all of it as UTF-8: "
        '`glassformer.doctor("x.txt").fix(path)` writes such a copy'
    ),
    ("x.txt", b"text \xff\x01\x02\x03\x04\x05 more"): (
        "x.txt line 1: not valid UTF-8 (byte 0xff at position 5); "
        "it looks like a binary file; give a text file or a table"
    ),
    ("x.txt", "film".encode("utf-16") + b"\x00"): (
        "x.txt line 1: not valid utf-16 (byte 0x00 at position 10); "
        "try another data.encoding, or remove it for UTF-8"
    ),
    ("x.csv", "text,label\n".encode("utf-16-le")): (
        "x.csv: every other byte is zero, which looks like utf-16-le without a byte order "
        'mark; save it as UTF-8, or train with set="data.encoding=utf-16-le"'
    ),
    ("x.csv", "text,label\n".encode("utf-16-be")): (
        "x.csv: every other byte is zero, which looks like utf-16-be without a byte order "
        'mark; save it as UTF-8, or train with set="data.encoding=utf-16-be"'
    ),
    ("x.csv", b"text,label\na\0b,c\n"): (
        "x.csv line 2: a zero byte, so this is a binary file and not text; give "
        "a text file or a table"
    ),
    ("x.txt", b"fine\n" * 50_021 + b"a\0b"): (
        "x.txt line 50022: a zero byte, so this is a binary file and not text; give "
        "a text file or a table"
    ),
    ("x.csv", b"\x89PNG\r\n"): ("x.csv: not text but a PNG image; give a text file or a table"),
    ("x.csv", b"PK\x03\x04"): (
        "x.csv: not text but a ZIP archive or an office document; "
        "unpack it, or save the sheet as CSV"
    ),
    ("x.csv.gz", gzip.compress(b"text,label\n" * 997, mtime=0)[:-11]): (
        "x.csv.gz: the .gz file is damaged or truncated (Compressed file ended before the "
        "end-of-stream marker was reached); fetch or compress it again"
    ),
    ("x.csv.xz", lzma.compress(b"text,label\n" * 997)[:-41]): (
        "x.csv.xz: the .xz file is damaged or truncated (Compressed file ended before the "
        "end-of-stream marker was reached); fetch or compress it again"
    ),
    ("x.csv.zst", pyarrow.compress(b"text,label\n" * 997, codec="zstd", asbytes=True)[:-11]): (
        "x.csv.zst: the .zst file is damaged or truncated (Truncated compressed stream); fetch "
        "or compress it again"
    ),
    ("x.csv.gz", b"text,label\na,b\n"): (
        "x.csv.gz: the .gz file is damaged or truncated (Not a gzipped file (b'te')); fetch "
        "or compress it again"
    ),
    ("x.parquet.gz", b"PAR1"): (
        "x.parquet.gz: the .gz file is damaged or truncated (Not a gzipped file (b'PA')); fetch "
        "or compress it again"
    ),
}


@pytest.mark.parametrize(
    ("name", "content"), CASES, ids=[f"{number}-{name}" for number, (name, _) in enumerate(CASES)]
)
def test_a_bad_file_is_one_line(tmp_path, name, content):
    assert complaint(written(tmp_path / name, content)) == CASES[name, content]


@pytest.mark.parametrize("magic", sorted(MAGIC.keys() - {b"PAR1\x15"}))  # which is read
def test_a_known_binary_is_called_by_its_name(tmp_path, magic):
    line = complaint(written(tmp_path / "x.txt", magic + b"\0\0\0"))
    assert f"not text but {MAGIC[magic].split(';')[0]}; " in line


@pytest.mark.parametrize("size", [1_000_005, 10_000_000])
@pytest.mark.parametrize(
    ("content", "row"),
    [
        ('text,label\na,b\n"{}",c\n', "row 2 (line 3)"),
        ("text,label\na,b\nc,{}\n", "row 2 (line 3)"),
        ('text,label\n"a ""b"", c","{}\n', "row 1 (line 2)"),
        ("5,{}\n", "row 1 (line 1)"),
    ],
)
def test_ten_megabytes_in_one_field_name_the_row(tmp_path, size, content, row):
    line = complaint(written(tmp_path / "x.csv", content.format("word " * (size // 5))))
    assert line == (
        f"x.csv {row}: more than 1,000,000 characters in one field; "
        f'look for a quote (") that is opened there and not closed'
    )


def test_a_quote_left_open_is_found_long_before_the_end_of_the_file(tmp_path, monkeypatch):
    read = 0

    def counted(*arguments):
        nonlocal read
        for line in decoding.lines(*arguments):
            read += 1
            yield line

    monkeypatch.setattr(table, "lines", counted)
    content = 'text,label\na,b\n"never closed,c\n' + "one more line,d\n" * 200_003
    line = complaint(written(tmp_path / "x.csv", content))
    assert line.startswith("x.csv row 2 (line 3): more than 1,000,000 characters")
    assert read < 70_000


def test_the_limit_holds_whatever_others_do_to_the_csv_module(tmp_path, monkeypatch):
    before = table.csv.field_size_limit(sys.maxsize)
    try:
        line = complaint(written(tmp_path / "x.csv", f"text,label\n{'x' * 1_000_003},b\n"))
    finally:
        table.csv.field_size_limit(before)
    assert "row 1 (line 2): more than 1,000,000 characters" in line


def test_a_long_field_of_json_or_parquet_names_row_and_column(tmp_path):
    words = "row 1, column 'b': 1,000,003 characters in one field, the limit is 1,000,000; split it"
    long = "x" * 1_000_003
    assert words in complaint(written(tmp_path / "x.jsonl", f'{{"a": 1, "b": "{long}"}}'))
    parquet.write_table(pyarrow.table({"a": ["1"], "b": [long]}), tmp_path / "x.parquet")
    assert words in complaint(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.txt", "x", "line 1: longer than 16,000,000 characters; split it into several lines"),
        ("x.jsonl", "x", "line 1: longer than 16,000,000 characters; split it into several lines"),
        ("x.csv", "x" * 96 + ",", "line 1: longer than 16,000,000 characters; split it into"),
    ],
)
def test_a_line_without_end_is_not_read_to_its_end(tmp_path, name, content, words):
    line = complaint(written(tmp_path / name, content * (16_000_003 // len(content) + 1)))
    assert words in line


def test_a_document_beyond_all_bounds_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(decoding, "LONGEST_DOCUMENT", 997)
    path = written(tmp_path / "texts" / "a.txt", "x" * 998)
    with pytest.raises(GlassformerError, match=r"a\.txt: longer than 997 characters, too long for"):
        list(read_rows(path.parent))


@pytest.mark.parametrize("name", ["klingon", "base64", "utf7", "idna", "a\0b", "", "\ud800"])
def test_an_unknown_encoding_is_refused_before_anything_is_read(tmp_path, name):
    line = complaint(written(tmp_path / "x.txt", "text"), encoding=name)
    assert line == (
        f"data.encoding: {name!r} is not a text encoding known to "
        f"Python; use a name such as utf-8, utf-16, cp1252 or gb18030"
    )


def test_a_file_that_is_not_in_the_encoding_given_says_so(tmp_path):
    line = complaint(written(tmp_path / "x.txt", "one\ncafé"), encoding="ascii")
    assert line.startswith("x.txt line 2: not valid ascii (byte 0xc3 at position 7); try another")
    line = complaint(tmp_path / "x.txt", encoding="utf-16")
    assert line.startswith(
        "x.txt: cannot be read as utf-16 (UTF-16 stream does not start with BOM)"
    )


@pytest.mark.parametrize("at", [65_535, 65_536, 131_071])
def test_a_bad_byte_is_counted_right_across_chunks(tmp_path, at):
    content = (b"abc\r\n" * 30_000)[:at] + b"\xc3\xff"
    line = complaint(written(tmp_path / "x.txt", content))
    number = 1 + content[:at].count(b"\n")
    assert line.startswith(f"x.txt line {number}: not valid UTF-8 (byte 0xc3 at position {at});")


def test_a_missing_file_is_told_with_the_nearest_beside_it(tmp_path):
    written(tmp_path / "reviews.csv", "text")
    assert complaint(tmp_path / "review.csv") == (
        f"review.csv: not found; did you mean '{tmp_path / 'reviews.csv'}'?".replace(
            f"{tmp_path}{os.sep}", ""
        )
    )
    assert complaint(tmp_path / "zzz") == "zzz: not found; check the path"
    line = complaint(tmp_path / "no" / "x.csv")
    assert line == f"x.csv: not found, nor is its folder {tmp_path / 'no'}; check the path"
    assert "cannot be read (Not a directory); check" in complaint(tmp_path / "reviews.csv" / "x")
    assert "cannot be read (embedded null byte); check" in complaint(tmp_path / "a\0b")
    assert "cannot be read (File name too long); check" in complaint(tmp_path / ("x" * 999))


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.txt.gz"])
def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch, name):
    written(tmp_path / name, gzip.compress(b"text"))
    refuse(monkeypatch, "io.open")
    refuse(monkeypatch, "builtins.open")
    assert f"{name}: cannot be read (Permission denied); check" in complaint(tmp_path / name)


def test_a_folder_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    refuse(monkeypatch, "os.listdir")
    line = complaint(tmp_path)
    assert line.endswith(": the folder cannot be opened (Permission denied); check its permissions")


def refuse(monkeypatch, function):
    def denied(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(function, denied)


def test_a_corrupt_parquet_file_says_so(tmp_path):
    parquet.write_table(pyarrow.table({"text": ["a"] * 997}), tmp_path / "x.parquet")
    whole = (tmp_path / "x.parquet").read_bytes()
    for broken in (b"", b"text", whole[:-5], whole[:4] + b"\xff" * 40 + whole[44:]):
        line = complaint(written(tmp_path / "x.parquet", broken))
        assert line.startswith("x.parquet: not a valid Parquet file (")
        assert line.endswith("); write or fetch it again")


def test_a_parquet_file_without_rows_or_with_twin_columns_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.table({"text": pyarrow.array([], pyarrow.string())}), path)
    assert complaint(path).startswith("x.parquet: no rows, only")
    parquet.write_table(pyarrow.table([["a"], ["b"]], names=["a", "a"]), path)
    assert complaint(path) == "x.parquet: two columns are named 'a'; rename one of them"


@pytest.mark.parametrize(("name", "what"), [("x.parquet", "Parquet"), ("x.csv.zst", ".zst")])
def test_without_pyarrow_the_line_says_what_to_install(tmp_path, monkeypatch, name, what):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    line = complaint(written(tmp_path / name, b"anything"))
    assert line.startswith(f"{name}: {what} needs pyarrow, which is not installed; pip install")


FOLDERS = {
    (): ": the folder is empty; put a table, text files, or one folder per label into it",
    (".hidden",): ": the folder is empty; put a table",
    ("a.csv", "notes.md"): (
        ": mixes tables such as a.csv with other files such as notes.md; name the tables"
    ),
    ("train/pos/a.txt", "test/pos/a.txt"): (
        "/test: read as the texts of label 'test', but it contains pos; give this folder itself"
    ),
    ("train/a.csv",): (
        "/train: read as the texts of label 'train', but it contains a.csv; give this folder itself"
    ),
    ("pos/.hidden", "neg/a.txt"): "/pos: the folder is empty; put",
}


@pytest.mark.parametrize("names", FOLDERS)
def test_a_bad_folder_is_one_line(tmp_path, names):
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("5,text\n")
    with pytest.raises(GlassformerError) as error:
        list(read_rows(tmp_path))
    assert str(error.value).startswith(f"{tmp_path}{FOLDERS[names]}")


def test_tables_of_one_folder_share_their_columns(tmp_path):
    written(tmp_path / "a.csv", "text,label\na,b\n")
    written(tmp_path / "b.csv", "text,stars\na,b\n")
    with pytest.raises(GlassformerError, match=r"b\.csv: has columns text, stars but a\.csv has"):
        list(read_rows(tmp_path))


def test_a_label_that_is_not_utf8_becomes_text(tmp_path):
    os.makedirs(os.fsencode(tmp_path) + b"/caf\xe9")
    (tmp_path / os.fsdecode(b"caf\xe9") / "a.txt").write_text("black")
    assert [row["label"] for row in read_rows(tmp_path)] == ["caf\ufffd"]


@pytest.mark.timeout(20)
def test_pipes_and_links_in_circles_do_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert complaint(tmp_path / "pipe").startswith("pipe: a pipe, socket or device, which cannot")
    with pytest.raises(GlassformerError, match="pipe: a pipe, socket or device"):
        list(read_rows(tmp_path))
    (tmp_path / "pipe").unlink()
    for target, words in [
        ("link", "cannot be read (Too many levels of symbolic links); check"),
        ("nothing", "a dangling link; fix or remove it"),
        (".", "read as the texts of label 'link', but it contains link; give"),
    ]:
        (tmp_path / "link").symlink_to(target)
        with pytest.raises(GlassformerError) as error:
            list(read_rows(tmp_path))
        assert str(error.value).startswith(f"{tmp_path / 'link'}: {words}")
        (tmp_path / "link").unlink()


@pytest.mark.parametrize("content", [b"PK\x03\x04\0\0", b"\xd0\xcf\x11\xe0\0", b"<html><table>"])
def test_a_workbook_is_refused_with_what_to_do(tmp_path, content):
    line = complaint(written(tmp_path / "x.xls", content))
    assert "x.xls: a workbook, which is not read; open it in a spreadsheet program and save" in line
