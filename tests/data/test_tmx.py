"""Translation memories: languages are columns, markup is left out, and nothing in one is obeyed."""

import gzip
import tracemalloc

import pytest

from glassformer.config import DataConfig
from glassformer.data.ingest import ingest, open_rows
from glassformer.data.sources import read_rows
from glassformer.errors import GlassformerError
from glassformer.tasks.translate.data import TranslateSchema

PAIRS = TranslateSchema()
DOCTYPE = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">'


def unit(**said):
    texts = (
        f'<tuv xml:lang="{language.replace("_", "-")}"><seg>{text}</seg></tuv>'
        for language, text in said.items()
    )
    return f"<tu><prop>draft</prop>{''.join(texts)}</tu>\n"


def memory(path, *units, source="*all*", head=DOCTYPE, encoding="utf-8"):
    text = f'<?xml version="1.0" encoding="{encoding}"?>\n{head}\n<tmx version="1.4">'
    text += f'<header srclang="{source}"><note>a header</note></header><body>\n'
    path.write_bytes(f"{text}{''.join(units)}</body></tmx>".encode(encoding))
    return path


def values(path, encoding=None):
    return [dict(row.values) for row in read_rows(path, encoding=encoding)]


def refusal(path, encoding=None):
    with pytest.raises(GlassformerError) as error:
        list(read_rows(path, encoding=encoding))
    assert "\n" not in str(error.value)
    return str(error.value).replace(f"{path.parent}/", "")


GREETINGS = [unit(en="Good &amp; day", de="Guten Tag"), unit(en="Bye", de="Tschüß")]


def test_a_unit_is_a_row_and_a_language_a_column(tmp_path):
    rows = list(read_rows(memory(tmp_path / "x.tmx", *GREETINGS)))
    assert [dict(row.values) for row in rows] == [
        {"en": "Good & day", "de": "Guten Tag"},
        {"en": "Bye", "de": "Tschüß"},
    ]
    assert rows[1].where == f"{tmp_path}/x.tmx row 2"


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_the_file_says_how_it_is_encoded(tmp_path, encoding):
    plain = values(memory(tmp_path / "x.tmx", *GREETINGS))
    assert values(memory(tmp_path / "y.tmx", *GREETINGS, encoding=encoding)) == plain


def test_it_may_be_packed(tmp_path):
    plain = memory(tmp_path / "x.tmx", *GREETINGS)
    packed = tmp_path / "y.tmx.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert values(packed) == values(plain)


@pytest.mark.parametrize("source", ["de", "DE"])
def test_the_source_of_the_header_comes_first(tmp_path, source):
    path = memory(tmp_path / "x.tmx", unit(en="Bye", de_AT="Servus"), source=source)
    assert list(values(path)[0]) == ["de-at", "en"]
    columns = open_rows(str(path), DataConfig(), PAIRS, "train").columns
    assert columns == {"source": "de-at", "target": "en"}


def test_of_more_languages_a_person_names_two(tmp_path):
    units = [unit(en=f"one {n}", de=f"eins {n}", fr=f"un {n}") for n in range(40)]
    path = memory(tmp_path / "x.tmx", *units)
    with pytest.raises(GlassformerError, match=r"the columns are en, de, fr; .*columns=.sour"):
        open_rows(str(path), DataConfig(), PAIRS, "train")
    config = DataConfig(files=(str(path),), columns={"source": "fr", "target": "de"})
    samples, _ = ingest(config, PAIRS, tmp_path / "out")
    assert (samples[3]["source"], samples[3]["target"]) == ("un 3", "eins 3")


def test_a_unit_that_lacks_a_language_is_left_out_and_counted(tmp_path):
    units = [unit(en=f"one {n}", de=f"eins {n}") for n in range(40)] + [unit(en="alone")]
    config = DataConfig(files=(str(memory(tmp_path / "x.tmx", *units)),))
    _, taken = ingest(config, PAIRS, tmp_path / "out")
    assert taken.skipped["empty target"].first.endswith("x.tmx row 41")


def test_markup_of_another_format_is_no_text(tmp_path):
    said = 'Press <bpt i="1">&lt;b&gt;<sub>tip</sub></bpt><hi>Start</hi><ept i="1">x</ept>\n now'
    path = memory(tmp_path / "x.tmx", unit(en=said, de="Start <ph/>drücken"))
    assert values(path) == [{"en": "Press Start now", "de": "Start drücken"}]


def test_entities_are_refused_before_they_can_grow(tmp_path):
    bomb = '<!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
    path = memory(tmp_path / "x.tmx", unit(en="&b;", de="x"), head=bomb)
    assert refusal(path) == (
        "x.tmx line 2: defines the entity 'a', which is not expanded for safety; write the "
        "text itself"
    )
    outside = f'<!DOCTYPE tmx [<!ENTITY a SYSTEM "file://{tmp_path}/secret">]>'
    (tmp_path / "secret").write_text("secret")
    path = memory(tmp_path / "y.tmx", unit(en="&a;", de="x"), head=outside)
    assert refusal(path).startswith("y.tmx line 2: defines the entity 'a'")


def test_an_entity_that_only_the_document_type_knows_is_refused(tmp_path):
    path = memory(tmp_path / "x.tmx", unit(en="a&nbsp;b", de="x"))
    assert refusal(path) == ("x.tmx line 4: &nbsp; is not defined; write the character itself")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text[:-20], "x.tmx line 4: not valid TMX (unclosed token)"),
        (lambda text: text.replace("</seg>", "", 1), "x.tmx line 4: not valid TMX (mismatched"),
        (lambda text: text.replace("tmx", "html"), "line 3: not valid TMX (the outermost element"),
        (lambda text: text.replace(' xml:lang="de"', ""), "a <tuv> has no language"),
        (lambda text: "no XML at all", "x.tmx line 1: not valid TMX (syntax error)"),
        (lambda text: text.replace("Bye", "x" * 1_000_001), "more than 1,000,000 characters"),
    ],
    ids=["cut", "unclosed", "other", "language", "text", "long"],
)
def test_what_is_not_tmx_is_one_line(tmp_path, change, words):
    path = memory(tmp_path / "x.tmx", unit(en="Bye", de="Tschüß"))
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    assert words in refusal(path)


def test_an_encoding_it_cannot_read_is_one_line(tmp_path):
    path = memory(tmp_path / "x.tmx", *GREETINGS)
    assert "not valid TMX (multi-byte encodings" in refusal(path, encoding="gb18030")


def test_a_memory_of_any_size_passes_in_pieces(tmp_path):
    path = memory(tmp_path / "x.tmx", *(unit(en="e" * 5000, de="d" * 5000) for _ in range(301)))
    tracemalloc.start()
    assert sum(1 for _ in read_rows(path)) == 301
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000 < path.stat().st_size
