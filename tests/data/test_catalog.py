"""Data with a name: what is on board is sound, and what is not says where to put it."""

import builtins
import collections
import gzip
import io
import itertools
import json
import os
import re
import tarfile
import unicodedata

import pytest

from glassformer.data.catalog import CATALOG, open_entry
from glassformer.data.catalog.languages import CODES, SECTIONS
from glassformer.data.catalog.locales import NAMES
from glassformer.errors import GlassformerError

needs_imdb = pytest.mark.skipif(
    not os.path.isdir(os.path.join(os.environ.get("GLASSFORMER_DATA", ""), "imdb")),
    reason="needs $GLASSFORMER_DATA/imdb",
)


@pytest.fixture(scope="module")
def languages():
    return list(open_entry("languages").rows())


@pytest.mark.parametrize("name", CATALOG)
def test_every_entry_tells_what_it_is(name):
    entry = open_entry(name)
    assert entry.name == name
    assert all((entry.what, entry.licence))
    assert entry.source.startswith(("https://", "http://"))


def test_an_unknown_name_is_answered_with_a_near_one():
    with pytest.raises(
        GlassformerError,
        match="unknown data set 'langages'; did you mean 'languages'",
    ):
        open_entry("langages")


def test_languages_have_rows_enough_of_every_label(languages):
    assert 15_000 < len(languages) < 30_000
    counts = collections.Counter(row["label"] for row in languages)
    assert counts.keys() == {NAMES[code] for code in CODES}
    assert min(counts.values()) > 300
    assert [row.number for row in languages] == list(range(1, len(languages) + 1))
    assert all(row.values.keys() == {"text", "label", "split", "concept"} for row in languages)


def test_languages_names_every_kind_of_thing(languages):
    assert {row["concept"].rsplit(" ", 1)[0] for row in languages} == set(SECTIONS)


def test_no_name_stands_for_two_languages(languages):
    names = [unicodedata.normalize("NFC", row["text"]).casefold() for row in languages]
    assert len(set(names)) == len(names)


def test_every_name_is_a_word_and_no_code(languages):
    for row in languages:
        assert sum(character.isalpha() for character in row["text"]) >= 3
        assert not any(character.isdigit() for character in row["text"])
        assert row["text"].casefold() != row["concept"].rsplit(" ", 1)[1].casefold()


def test_languages_are_the_same_every_time(languages):
    assert list(open_entry("languages").rows()) == languages


@pytest.mark.parametrize(
    ("text", "label", "concept"),
    [
        ("Oostenrijk", "Dutch", "territory AT"),
        ("diciembre", "Spanish", "month 12"),
        ("kuutiomailit", "Finnish", "unit volume-cubic-mile"),
        ("walesiska", "Swedish", "language cy"),
        ("espagnol du Mexique", "French", "language es"),
    ],
)
def test_well_known_names_have_their_language(languages, text, label, concept):
    [row] = [row for row in languages if row["text"] == text]
    assert (row["label"], row["concept"]) == (label, concept)


def test_a_name_left_in_english_is_no_name_of_another_language(languages):
    from babel import Locale

    english = {name.casefold() for name in Locale("en").territories.values()}
    assert not [
        row for row in languages if row["label"] != "English" and row["text"].casefold() in english
    ]


def test_languages_without_babel_say_what_to_install(monkeypatch):
    real = builtins.__import__

    def without_babel(name, *rest):
        if name == "babel":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_babel)
    with pytest.raises(GlassformerError, match=r"pip install 'glassformer\[embedded\]'"):
        next(open_entry("languages").rows())


def write_small_imdb(folder, films, labels="np"):
    """Two reviews in each part, one of each label, as the real files hold them."""
    folder.mkdir(parents=True)
    for part in ("train", "test", "unsup"):
        rows = [{"id": 0, "text": f"{part} one<br />"}, {"id": 1, "text": f"{part} two"}]
        if part != "unsup":
            rows = [
                row | {"label": label, "id": 0} for row, label in zip(rows, labels, strict=True)
            ]
        with gzip.open(folder / f"{part}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    with gzip.open(folder / "films.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("split\tlabel\tid\tfilm\n" + "".join("\t".join(film) + "\n" for film in films))


FILMS = [
    ("train", "n", "0", "tt1"),
    ("train", "p", "0", "tt2"),
    ("test", "n", "0", "tt3"),
    ("test", "p", "0", "tt4"),
    ("unsup", "unsup", "0", "tt5"),
    ("unsup", "unsup", "1", "tt6"),
]
REAL_FILMS = [(row[0], {"n": "neg", "p": "pos"}.get(row[1], row[1]), *row[2:]) for row in FILMS]


def test_each_review_gets_its_film(tmp_path, monkeypatch):
    write_small_imdb(tmp_path / "imdb", FILMS)
    monkeypatch.setenv("GLASSFORMER_DATA", str(tmp_path))
    assert [tuple(row.values.values()) for row in open_entry("imdb").rows()] == [
        ("train one<br />", "n", "train", "tt1"),
        ("train two", "p", "train", "tt2"),
        ("test one<br />", "n", "test", "tt3"),
        ("test two", "p", "test", "tt4"),
    ]
    assert [dict(row.values) for row in open_entry("imdb-unlabelled").rows()] == [
        {"text": "unsup one<br />", "film": "tt5"},
        {"text": "unsup two", "film": "tt6"},
    ]


def test_a_review_without_a_film_is_named(tmp_path, monkeypatch):
    write_small_imdb(tmp_path / "imdb", FILMS[:1])
    monkeypatch.setenv("GLASSFORMER_DATA", str(tmp_path))
    with pytest.raises(
        GlassformerError, match=r"train\.jsonl\.gz row 2: review '0' is not in films"
    ):
        list(open_entry("imdb").rows())


def test_the_archive_as_published_has_the_same_rows(tmp_path, monkeypatch):
    write_small_imdb(tmp_path / "repacked" / "imdb", REAL_FILMS, labels=("neg", "pos"))
    with tarfile.open(tmp_path / "aclImdb_v1.tar.gz", "w:gz") as tar:
        for split, label, identity, film in reversed(REAL_FILMS):
            part = "train" if split == "unsup" else split
            number = int(label == "pos" or identity == "1")
            text = f"{split} {('one<br />', 'two')[number]}"
            add(tar, f"aclImdb/{part}/{label}/{identity}_7.txt", text)
            films = [row[3] for row in REAL_FILMS if row[:2] == (split, label)]
            pages = "".join(f"http://www.imdb.com/title/{film}/usercomments\n" for film in films)
            add(tar, f"aclImdb/{part}/urls_{label}.txt", pages)
        add(tar, "aclImdb/imdb.vocab", "the")
    (tmp_path / "published" / "imdb").mkdir(parents=True)
    (tmp_path / "aclImdb_v1.tar.gz").rename(tmp_path / "published/imdb/aclImdb_v1.tar.gz")
    for name in ("imdb", "imdb-unlabelled"):
        rows = []
        for place in ("repacked", "published"):
            monkeypatch.setenv("GLASSFORMER_DATA", str(tmp_path / place))
            rows.append([dict(row.values) for row in open_entry(name).rows()])
        assert rows[0] == rows[1]


def add(tar, name, text):
    info = tarfile.TarInfo(name)
    info.size = len(text.encode())
    tar.addfile(info, io.BytesIO(text.encode()))


def test_without_a_data_folder_one_line_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv("GLASSFORMER_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        GlassformerError,
        match=r"imdb: not found in \$GLASSFORMER_DATA/imdb \(GLASSFORMER_DATA is not set\) or .*; "
        r"get it with `glassformer data fetch imdb`, or put train\.jsonl, test\.jsonl and films\.ts"
        r"v, or aclImdb_v1\.tar\.gz into",
    ):
        next(open_entry("imdb").rows())


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("tang-poetry", "quantangshi_json.tar.xz, or poet.tang.0.json and 57 more files into"),
        ("trec", "train_5500.label and TREC_10.label, or TREC.train.all and TREC.test.all into"),
        ("cmudict", "-20-21, cmudict-0.7b.train-dev-1-21 and cmudict-0.7b.test into"),
    ],
)
def test_a_missing_set_names_its_files_or_the_first_of_many(monkeypatch, tmp_path, name, files):
    monkeypatch.delenv("GLASSFORMER_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(GlassformerError, match=re.escape(files)):
        next(open_entry(name).rows())


def test_a_set_that_is_not_whole_is_not_found(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GLASSFORMER_DATA", str(tmp_path))
    write_small_imdb(tmp_path / "imdb", FILMS)
    (tmp_path / "imdb" / "unsup.jsonl.gz").unlink()
    with pytest.raises(GlassformerError, match=r"put unsup\.jsonl and films\.tsv, or acl.* into"):
        next(open_entry("imdb-unlabelled").rows())
    assert next(open_entry("imdb").rows())["film"] == "tt1"


@needs_imdb
def test_the_real_imdb_opens():
    rows = list(itertools.islice(open_entry("imdb").rows(), 1009))
    assert {row["split"] for row in rows} == {"train"}
    assert {row["label"] for row in rows} == {"neg"}  # the files are sorted by label
    assert all(row["film"].startswith("tt") and len(row["text"]) > 30 for row in rows)
