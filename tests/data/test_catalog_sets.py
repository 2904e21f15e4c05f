"""The public sets: complete in the catalog, and read from every way their files are laid out."""

import gzip
import io
import json
import os
import re
import sys
import tarfile
import types
import zipfile
from pathlib import Path

import pytest

from glassformer.config import DataConfig
from glassformer.data.catalog import CATALOG, open_entry
from glassformer.data.catalog.checking import RECORDED, Counted, count, verdict
from glassformer.data.catalog.corpora import POETS
from glassformer.data.catalog.hub import read_hub
from glassformer.data.ingest import ingest, open_rows
from glassformer.data.rows import Row
from glassformer.data.splits import SPLIT_NAMES
from glassformer.errors import GlassformerError
from glassformer.tasks.classify.data import ClassifySchema
from glassformer.tasks.translate.data import TranslateSchema

COPIES = Path(os.environ.get("GLASSFORMER_DATA", ""))
QUICK = {"trec", "mr", "cr", "multi30k-en-de", "tatoeba-zh-en", "an4", "tinyshakespeare"}
PUBLIC = [name for name, entry in CATALOG.items() if entry.storage is not None]


@pytest.fixture
def storage(tmp_path, monkeypatch):
    """A place for files, where a set finds them."""
    monkeypatch.setenv("GLASSFORMER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def put(name, content):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return put


def rows_of(name):
    return [dict(row.values) for row in open_entry(name).rows()]


def tar_of(**files):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return made.getvalue()


def test_the_sets_that_people_ask_for_are_there():
    families = {name.split("-")[0] for name in CATALOG}
    assert families == {
        *(
            "languages",
            "dates",
            "morse",
            "python",
            *("digits", "mnist", "cifar10"),
            "imdb",
            "trec",
            *("mr", "subj", "cr", "mpqa"),
            "multi30k",
            "tatoeba",
            "cmudict",
            "an4",
            "fsdd",
        ),
        *("tinyshakespeare", "tang"),
        *("films", "movielens"),
    }
    assert {"multi30k-de-en", "multi30k-2017-en-fr", "tatoeba-en-zh"} <= CATALOG.keys()


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_set_says_what_to_download_and_how_sure_it_is(name):
    storage = CATALOG[name].storage
    unseen = not any(remote.verified for remote in storage.remotes)
    assert name in RECORDED or unseen
    names = {remote.name.removesuffix(".gz") for remote in storage.remotes}
    layouts = [{file.removesuffix(".gz") for file in layout} for layout in storage.layouts]
    assert names in layouts, "what is downloaded is one of the layouts"
    for remote in storage.remotes:
        assert remote.url.startswith("https://")
        if remote.checksum is None:
            assert not remote.verified
        else:
            assert re.fullmatch(r"sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}", remote.checksum)


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in PUBLIC],
)
def test_the_copies_have_the_rows_on_record(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if not (COPIES / CATALOG[name].storage.folder).is_dir():
        pytest.skip("needs the copies of the public sets under $GLASSFORMER_DATA")
    found = count(CATALOG[name].rows())
    assert found == RECORDED[name]
    assert set(found.counts) <= {"", *SPLIT_NAMES}


def test_a_fingerprint_tells_rows_apart_but_not_their_order():
    one, two = (Row({"text": text, "audio": text}, "f", 1) for text in ("a", "b"))
    assert count([one, two]) == count([two, one])
    assert count([one, two]) != count([one, one])
    assert count([one]) == count([Row({"text": "a", "audio": "elsewhere"}, "g", 7)])
    found = Counted({"train": 3}, "00")
    assert verdict("trec", found).startswith("3 rows, different from the 5,952 on record")
    assert verdict("trec", RECORDED["trec"]) == "5,952 rows, matching the record"
    assert verdict("languages", found).startswith("3 rows; there is no record")


def test_trec_as_published_has_fine_labels_too(storage):
    storage("sentence_classification/train_5500.label", "NUM:dist How far ?\n".encode("cp1252"))
    storage("sentence_classification/TREC_10.label", "HUM:ind Who \xf0 ?\n".encode("cp1252"))
    assert rows_of("trec") == [
        {"text": "How far ?", "label": "NUM", "fine": "NUM:dist", "split": "train"},
        {"text": "Who ð ?", "label": "HUM", "fine": "HUM:ind", "split": "test"},
    ]
    storage("sentence_classification/TREC_10.label", "who knows\n")
    with pytest.raises(GlassformerError, match=r"TREC_10\.label line 1: starts with 'who' instead"):
        rows_of("trec")


def test_trec_with_numbers_names_the_same_labels(storage):
    storage(
        "sentence_classification/TREC.train.all.gz", gzip.compress(b"5 How far ?\n2 What is a b ?")
    )
    storage("sentence_classification/TREC.test.all", "0 Why ?\n")
    assert [(row["label"], row["split"]) for row in rows_of("trec")] == [
        ("NUM", "train"),
        ("ABBR", "train"),
        ("DESC", "test"),
    ]
    storage("sentence_classification/TREC.test.all", "6 Why ?\n")
    with pytest.raises(
        GlassformerError, match="line 1: starts with '6' instead of a number from 0 to 5"
    ):
        rows_of("trec")


def test_mr_reads_alike_from_both_layouts(storage, tmp_path):
    storage("sentence_classification/rt-polarity.all", b"0 dull . \n0 clich\xe9 . \n1 warm . \n")
    numbered = rows_of("mr")
    (tmp_path / "data/sentence_classification/rt-polarity.all").unlink()
    files = {"rt/rt-polarity.pos": b"warm . \n", "rt/rt-polarity.neg": b"dull . \nclich\xe9 . \n"}
    storage("sentence_classification/rt-polaritydata.tar.gz", tar_of(**files))
    assert rows_of("mr") == numbered
    assert numbered[1] == {"text": "cliché .", "label": "neg", "split": ""}


@pytest.mark.parametrize(
    ("name", "file", "labels"),
    [
        ("subj", "subj", ["subjective", "objective"]),
        ("cr", "custrev", ["neg", "pos"]),
        ("mpqa", "mpqa", ["neg", "pos"]),
    ],
)
def test_sets_of_numbered_sentences_have_named_labels_and_no_split(name, file, labels, storage):
    storage(f"sentence_classification/{file}.all", b"0 dull . \n1 clich\xe9 . \n")
    expected = zip(["dull .", "cliché ."], labels, strict=True)
    assert rows_of(name) == [{"text": t, "label": n, "split": ""} for t, n in expected]


def test_multi30k_pairs_lines_in_the_direction_asked_for(storage):
    for part in ("train", "val", "test_2016_flickr"):
        storage(f"multi30k/{part}.en.gz", gzip.compress(f"A dog {part} .\n".encode()))
        storage(f"multi30k/{part}.de.gz", gzip.compress(f"Ein Hund {part} .\n".encode()))
    assert rows_of("multi30k-de-en")[1] == {
        "source": "Ein Hund val .",
        "target": "A dog val .",
        "split": "valid",
    }
    assert [row["split"] for row in rows_of("multi30k-en-de")] == ["train", "valid", "test"]
    storage("multi30k/val.en.gz", gzip.compress(b"A dog .\nA cat .\n"))
    with pytest.raises(GlassformerError, match=r"val\.en\.gz: 2 lines, but .*val\.de\.gz has 1"):
        rows_of("multi30k-en-de")


def test_tatoeba_keeps_translations_of_one_sentence_together(storage, tmp_path):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        packed.writestr("__MACOSX/._cmn.txt", b"\0junk")
        packed.writestr("cmn-eng/cmn.txt", "Hi.\t嗨。\tCC-BY\nHi.\t你好。\tCC-BY\nRun!\t跑！\n")
    storage("tatoeba/cmn-eng.zip", made.getvalue())
    there, back = rows_of("tatoeba-en-zh"), rows_of("tatoeba-zh-en")
    assert there[1] == {"source": "Hi.", "target": "你好。", "split": "", "english": "hi."}
    assert (back[1]["source"], back[1]["english"]) == ("你好。", "hi.")
    _, taken = ingest(
        DataConfig(files=("tatoeba-zh-en",), valid_share=0.0, group="english"),
        TranslateSchema(),
        tmp_path / "run",
    )
    assert taken.columns["group"] == "english"


def test_cmudict_tests_a_word_once_with_all_its_pronunciations(storage):
    name = "cmudict_g2p/cmudict-0.7b"
    storage(f"{name}.train-dev-20-21", "READ  R EH D\nREAD  R IY D\n")
    storage(f"{name}.train-dev-1-21", "TOP  T AA P\n")
    storage(f"{name}.test", "LEAD  L EH D\nLEAD  L IY D\nBIT  B IH T\n")
    found = [(row["source"], row["target"], row["split"]) for row in rows_of("cmudict")]
    assert found == [
        ("READ", "R EH D", "train"),
        ("READ", "R IY D", "train"),
        ("TOP", "T AA P", "valid"),
        ("LEAD", "L EH D", "test"),
        ("BIT", "B IH T", "test"),
    ]
    assert rows_of("cmudict")[3]["references"] == ["L EH D", "L IY D"]
    storage(f"{name}.test", "LEAD L EH D\n")
    with pytest.raises(GlassformerError, match="line 1: no two spaces between a word"):
        rows_of("cmudict")


def test_an4_reads_alike_from_both_layouts(storage, tmp_path):
    manifest = "path\tsplit\tspeaker\tseconds\ttext\n"
    manifest += "an4_clstk/fash/an1-fash-b.flac\ttrain\tfash\t1.0\tYES\n"
    manifest += "an4test_clstk/mmxg/an2-mmxg-b.flac\ttest\tmmxg\t1.0\tA B C\n"
    storage("an4/manifest.tsv", manifest)
    audio = ("an4_clstk/fash/an1-fash-b", "an4test_clstk/mmxg/an2-mmxg-b")
    storage("an4/an4_flac.tar", tar_of(**{f"{path}.flac": b"fLaC" for path in audio}))
    flac = rows_of("an4")
    (tmp_path / "data/an4/manifest.tsv").unlink()
    published = {f"an4/wav/{path}.sph": b"NIST" for path in audio}
    for part, path, said in zip(("train", "test"), audio, ("YES", "A B C"), strict=True):
        line = f"<s> {said} </s> ({path.split('/')[-1]})\n"
        published[f"an4/etc/an4_{part}.transcription"] = line.encode()
        published[f"an4/etc/an4_{part}.fileids"] = f"{path}\n".encode()
    storage("an4/an4_sphere.tar.gz", tar_of(**published))
    sphere = rows_of("an4")
    for rows in (flac, sphere):
        assert [row["text"] for row in rows] == ["YES", "A B C"]
        assert [row["speaker"] for row in rows] == ["fash", "mmxg"]
        assert all(Path(row.pop("audio")).is_file() for row in rows)
    assert flac == sphere
    storage("an4/manifest.tsv", manifest.replace("an1", "an9"))
    with pytest.raises(GlassformerError, match=r"row 1 \(line 2\): .*an9.* is not in the arch"):
        rows_of("an4")


def test_fsdd_tests_on_the_first_five_takes(storage):
    names = ("recordings/3_ann_4.wav", "recordings/3_ann_5.wav", "README.md", "tools/other.wav")
    storage("fsdd/fsdd_recordings_wav.tar.xz", tar_of(**dict.fromkeys(names, b"RIFF")))
    rows = rows_of("fsdd")
    assert all(Path(row.pop("audio")).read_bytes() == b"RIFF" for row in rows)
    shared = {"text": "three", "label": "3", "speaker": "ann"}
    assert rows == [{**shared, "split": "test"}, {**shared, "split": "train"}]


def test_the_parts_make_the_whole_of_shakespeare(storage):
    text = "\n\n".join(f"One:\nspeech {n}" for n in range(41)) + "\n"
    storage("tinyshakespeare/input.txt.gz", gzip.compress(text.encode()))
    rows = rows_of("tinyshakespeare")
    assert "".join(row["text"] for row in rows) == text
    assert [row["split"] for row in rows] == ["train", "valid"]
    assert len(rows[0]["text"]) == int(0.9 * len(text))
    assert [row.get("continued") for row in rows] == ["yes", None]


def test_tang_poems_read_alike_packed_and_as_published(storage, tmp_path):
    poem = {"author": "李白", "title": "靜夜思", "paragraphs": ["牀前", "舉頭"], "id": "1"}
    for name in POETS:
        storage(f"chinese_poetry/{name}", json.dumps([poem | {"title": name}]))
    published = rows_of("tang-poetry")
    assert published[7] == {
        "text": "牀前\n舉頭",
        "title": "poet.tang.7000.json",
        "author": "李白",
        "split": "",
    }
    files = {f"全唐诗/{name}": json.dumps([poem | {"title": name}]).encode() for name in POETS}
    storage("chinese_poetry/quantangshi_json.tar.xz", tar_of(**files))
    assert rows_of("tang-poetry") == published
    (tmp_path / "data/chinese_poetry/quantangshi_json.tar.xz").unlink()
    storage("chinese_poetry/poet.tang.0.json", "[{}]")
    with pytest.raises(GlassformerError, match=r"poet\.tang\.0\.json: not a list of poems"):
        rows_of("tang-poetry")


class ClassLabel:
    def int2str(self, number):
        return ("neg", "pos")[number]


Value, Audio, Translation = (type(name, (), {}) for name in ("Value", "Audio", "Translation"))


class Part(list):
    """As much of a dataset as is used."""

    @property
    def features(self):
        kinds = Value(), ClassLabel(), Audio(), Translation()
        return dict(zip(("text", "label", "sound", "pair"), kinds, strict=True))

    def select_columns(self, names):
        return [{name: row[name] for name in names} for row in self]


@pytest.fixture
def hub(monkeypatch):
    """A stand-in for `datasets`; returns its sets, and what was asked of it."""
    sets, asked = {}, []

    def load_dataset(*names, **options):
        asked.append((names, options))
        return sets[names[0]]

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    return sets, asked


def row_of_hub(text, label):
    return {"text": text, "label": label, "sound": b"", "pair": {"de": "ja", "en": "yes"}}


def test_a_dataset_of_the_hub_is_read_with_its_labels_and_splits(hub, tmp_path):
    sets, asked = hub
    sets["org/reviews"] = {
        "train": Part([row_of_hub("dull", 0), row_of_hub("what", -1)]),
        "validation": Part([row_of_hub("warm", 1)]),
        "unsupervised": Part([row_of_hub("hm", -1)]),
    }
    rows = list(read_hub("hf:org/reviews:plain"))
    assert asked == [(("org/reviews", "plain"), {})], "and no trust in code that comes with it"
    assert [dict(row.values) for row in rows] == [
        {"text": "dull", "label": "neg", "de": "ja", "en": "yes", "split": "train"},
        {"text": "what", "label": "", "de": "ja", "en": "yes", "split": "train"},
        {"text": "warm", "label": "pos", "de": "ja", "en": "yes", "split": "validation"},
    ]
    assert rows[2].where == "hf:org/reviews:plain validation row 1"
    columns = open_rows("hf:org/reviews", DataConfig(), ClassifySchema(), "train").columns
    assert columns == {"text": "text", "label": "label", "split": "split"}


def test_a_dataset_of_one_split_is_yet_to_be_split(hub):
    sets, _ = hub
    sets["one"] = {"train": Part([row_of_hub("dull", 0)])}
    assert [row["split"] for row in read_hub("hf:one")] == [""]
    sets["odd"] = {"r1": Part(), "r2": Part()}
    with pytest.raises(GlassformerError, match="hf:odd: its splits are r1, r2, none is train"):
        list(read_hub("hf:odd"))


def test_what_the_hub_cannot_give_is_one_line(hub, monkeypatch):
    with pytest.raises(GlassformerError, match=r"hf:none: cannot be loaded \('none'\); check the"):
        list(read_hub("hf:none"))
    with pytest.raises(GlassformerError, match="hf:: no dataset named; write hf:NAME"):
        list(read_hub("hf:"))
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(GlassformerError, match=r"pip install 'glassformer\[hub\]'"):
        list(read_hub("hf:imdb"))


def test_the_real_package_reads_a_local_dataset(tmp_path):
    datasets = pytest.importorskip("datasets")
    table = {"text": ["dull", "warm"], "label": [0, 1]}
    kinds = datasets.Features(
        text=datasets.Value("string"), label=datasets.ClassLabel(names=["neg", "pos"])
    )
    datasets.Dataset.from_dict(table, features=kinds).to_parquet(tmp_path / "train.parquet")
    assert [row["label"] for row in read_hub(f"hf:{tmp_path}")] == ["neg", "pos"]
