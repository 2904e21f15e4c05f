"""What `train` refuses in the data, `doctor` finds, once: for every job, every refusal there is."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_recordings import RATE, play, write_wave

import glassformer
from glassformer import GlassformerError

pytestmark = pytest.mark.usefixtures("without_shape_hook")
GOOD = [f"film number {n} by someone,{('good', 'bad')[n % 2]}" for n in range(40)]
PAIRS = [f"word {n} here,wort {n} da,{('de', 'fr')[n % 2]}" for n in range(40)]
TAGGED = "source,target,to"
SPLIT = [f"{row},train" for row in GOOD]
ONE_SECOND = ("task.max_seconds=1", f"task.rate={RATE}")
CLIPS = 12
IMAGES = [f"x/{label}/{n}.png" for label in "ab" for n in range(9)]
TWO_IMAGES = struct.pack(">4B3I", 0, 0, 8, 3, 2, 3, 3) + bytes(range(18))
ONE_LABEL = struct.pack(">4BI", 0, 0, 8, 1, 1) + b"\0"
UIR = "user,item,rating"
RATED = [f"u{n % 7},i{n % 11},{n % 5}" for n in range(77)]


def table(*rows, header="text,label"):
    return "\n".join([header, *rows]) + "\n"


def clips(text="ad", path="{n}.wav", header="path,text", more=""):
    return table(*(f"{path.format(n=n)},{text}{more}" for n in range(CLIPS)), header=header)


# job: name of a case -> (files, what both say; more options). The first files are the data.
CASES = {
    "classify": {
        "an empty file": ({"x.csv": ""}, "the file is empty"),
        "blank lines": ({"x.csv": "\n\n\n"}, "no rows, only blank lines"),
        "a header alone": ({"x.csv": table()}, "but no rows below it"),
        "few rows": ({"x.csv": table("a film,good", "a town,good")}, "too few to hold some out"),
        "one text": ({"x.csv": table(*["a film,good", "a film,bad"] * 9)}, "1 different text"),
        "a cell too many": ({"x.csv": table(*GOOD, "a,b,c")}, "3 cells where the table has 2"),
        "a cell too few": ({"x.csv": table(*GOOD, "a")}, "add the missing cells"),
        "an open quote": ({"x.csv": table(*GOOD, '"a,good')}, "the row cannot be parsed"),
        "a name twice": ({"x.csv": table("a,b,c", header="text,label,label")}, "two columns are"),
        "no column": ({"x.csv": table(*map(str, range(40)), header="n")}, "no column for"),
        "one label": ({"x.csv": table(*(f"film {n},a" for n in range(40)))}, "one label|two or mo"),
        "a rare label": ({"x.csv": table(*GOOD, "a town,odd")}, "odd"),
        "many labels": ({"x.csv": table(*(f"film {n},{n} x" for n in range(1001)))}, "1,000 diff"),
        "no texts": ({"x.csv": table(*[",good", ",bad"] * 9)}, "no usable row"),
        "an unknown split": (
            {"x.csv": table(*SPLIT, "a,good,trian", header="text,label,split")},
            "unknown split 'trian'",
        ),
        "no training rows": (
            {"x.csv": table(*(f"{row},test" for row in GOOD), header="text,label,split")},
            "none left to train on",
        ),
        "one group": (
            {"x.csv": table(*(f"{row},x" for row in GOOD), header="text,label,film")},
            "or smaller groups",
            {"group": "film"},
        ),
        "an unusable test file": (
            {"x.csv": table(*GOOD), "t.csv": table(",good")},
            "no usable row in test",
            {"test": "t.csv"},
        ),
        "another encoding": ({"x.csv": table(*GOOD).encode() + b"\xfcber \xa350,good\n"}, "cp1252"),
        "mixed encodings": (
            {"x.csv": table(*GOOD, "naïve,good").encode() + b"\xfcber \xa350,good\n"},
            "not valid UTF-8|not in UTF-8",
        ),
        "no byte order mark": ({"x.csv": table(*GOOD).encode("utf-16-le")}, "every other byte"),
        "a binary file": ({"x.csv": b"text,label\n\0\1\2"}, "a zero byte"),
        "an archive": ({"x.csv": b"PK\3\4" + b"x" * 99}, "not text but"),
        "half a line of JSON": ({"x.jsonl": '{"text": "a", "label": "b"}\n{"te'}, "not JSON"),
        "a list in JSON Lines": ({"x.jsonl": '{"text": "a", "label": "b"}\n[1]'}, "a list inst"),
        "a long line": ({"x.txt": "a" * 16_000_001}, "longer than 16,000,000 characters"),
        "damaged Parquet": ({"x.parquet": b"PAR1 no"}, "not a valid Parquet file"),
        "damaged gzip": ({"x.csv.gz": b"no"}, "damaged or truncated"),
        "a mixed folder": ({"x/a.csv": "a,b\n1,2\n", "x/b.txt": "c"}, "mixes tables"),
        "tables that differ": (
            {"x/a.csv": table(*GOOD), "x/b.csv": "texts,labels\na,b\n"},
            "must share their columns",
        ),
        "texts among recordings": (
            {"x.csv": table(*GOOD), "y.csv": clips("bad", header="path,label")},
            "not a text|among",
            {"data": ("x.csv", "y.csv")},
        ),
    },
    "translate": {
        "one side": ({"x.txt": "a\nb\n"}, "a single text file has only one side"),
        "sides of other lengths": (
            {"x.de": "a\nb\nc\n", "x.en": "a\nb\n"},
            "each line needs its translation",
            {"data": ("x.de", "x.en")},
        ),
        "the same side twice": (
            {"x.de": "a\nb\n", "y.de": "a\nb\n"},
            "are not a pair",
            {"data": ("x.de", "y.de")},
        ),
        "no columns": ({"x.csv": table(*map(str, range(30)), header="n")}, "no column for"),
        "no targets": ({"x.csv": table(*["a,"] * 9, header="source,target")}, "no usable row"),
        "a row without a language": (
            {"x.csv": table(*PAIRS, "a word,ein wort,", header=TAGGED)},
            "no target language|without a target language",
        ),
        "a language that cannot be typed": (
            {"x.csv": table(*PAIRS, "a word,ein wort,<d>", header=TAGGED)},
            "cannot be typed|< > or spaces",
        ),
        "a language that is not learned": (
            {"x.csv": table(*PAIRS, header=TAGGED), "v.csv": table("a,un,it", header=TAGGED)},
            "unknown target language|that no training row has",
            {"valid": "v.csv"},
        ),
        "broken TMX": ({"x.tmx": "<tmx><body><tu>"}, "not valid TMX"),
    },
    "transcribe": {
        "no transcripts": ({"x/0.wav": None}, "without a transcript"),
        "no readable recording": ({"x.csv": clips(path="gone{n}.wav")}, "no usable row"),
        "impossible times": (
            {"x.csv": clips(header="path,text,start,end", more=",5,1")},
            "no usable row",
        ),
        "transcripts too long": ({"x.csv": clips("ad" * 99)}, "too long for the sound"),
        "recordings too long": (
            {"x.csv": clips()},
            "a length over task.max_seconds|longer than 1 seconds",
            {"set": ONE_SECOND},
        ),
        "a line of LJ Speech": (
            {"x/metadata.csv": "a|text|text\nb text\n", "x/wavs/a.wav": None},
            "not of the form NAME",
        ),
        "a recording missing in Kaldi": (
            {"x/text": "u1 a\nu2 b\n", "x/wav.scp": "u1 a.wav\n"},
            "no recording 'u2' in wav.scp",
        ),
        "a command in Kaldi": ({"x/text": "u a\n", "x/wav.scp": "u sox |\n"}, "a command instead"),
    },
    "generate": {
        "an empty file": ({"x.txt": ""}, "the file is empty"),
        "a blank file": ({"x.txt": " \n \n"}, "no usable row"),
        "a short text": ({"x.txt": "abc"}, "too few to hold some out"),
        "a mixed folder": ({"x/a.csv": "text\nb\n", "x/b.txt": "c"}, "mixes tables"),
    },
    "pretrain": {
        "a blank file": ({"x.txt": "\n\n"}, "no rows, only blank lines"),
        "one line": ({"x.txt": "one line\n"}, "too few to hold some out"),
    },
    "recognise": {
        "no images": (
            {"x/a/0.txt": "no image", "x/b/0.txt": "no image"},
            "hold no PNG, JPEG, GIF or WebP images",
        ),
        "one label": ({f"x/a/{n}.png": None for n in range(9)}, "one label|two or mo"),
        "a rare label": (dict.fromkeys([*IMAGES, "x/odd/0.png"]), "odd"),
        "no readable image": ({f"x/{'ab'[n % 2]}/{n}.png": b"no" for n in range(9)}, "no usable"),
        "paths of nothing": (
            {"x.csv": table(*(f"{n}.png,{'ab'[n % 2]}" for n in range(9)), header="path,label")},
            "no usable row",
        ),
        "labels of other images": (
            {"x/train-images-idx3-ubyte": TWO_IMAGES, "x/train-labels-idx1-ubyte": ONE_LABEL},
            "labels, but train-images-idx3-ubyte has 2 images",
        ),
    },
    "recommend": {
        "no users": ({"x.csv": table(*RATED, header="a,b,stars")}, "no column for user and item"),
        "one user": ({"x.csv": table(*(f"u,{n},{n % 5}" for n in range(40)), header=UIR)}, "one u"),
        "one item": (
            {"x.csv": table(*(f"u{n},i,{n % 5}" for n in range(40)), header=UIR)},
            "one i",
        ),
        "no ratings": (
            {"x.csv": table(*(row[:-2] for row in RATED), header="user,item")},
            "no rating|without a rating",
            {"set": "task.feedback=explicit"},
        ),
        "ratings in words": (
            {"x.csv": table(*(f"{row}good" for row in RATED), header=UIR)},
            "no usable row",
        ),
        "no times": (
            {"x.csv": table(*RATED, header=UIR)},
            "not all rows have a time|without a time",
            {"set": "task.method=sasrec"},
        ),
    },
}
ALL = [(job, case) for job, cases in CASES.items() for case in cases]


@pytest.fixture(scope="module")
def recordings():
    rng = np.random.default_rng(0)
    return [np.tile(play("bead", rng), 3) for _ in range(CLIPS)]  # over a second each


def write(files, recordings):
    """The files of a case; the recordings that they name, too."""
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        if content is None and name.endswith(".png"):
            Image.fromarray(np.full((8, 8), zlib.crc32(name.encode()) % 251, dtype=np.uint8)).save(
                name
            )
        elif content is None:
            write_wave(Path(name), recordings[0])
        else:
            Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    if any(".wav," in content for content in files.values() if isinstance(content, str)):
        for number, sound in enumerate(recordings):
            write_wave(Path(f"{number}.wav"), sound)


@pytest.mark.parametrize(("job", "case"), ALL)
def test_what_training_refuses_the_doctor_finds_once(job, case, tmp_path, monkeypatch, recordings):
    monkeypatch.chdir(tmp_path)
    files, told, *more = CASES[job][case]
    write(files, recordings)
    options = {} if not more else dict(more[0])
    data = options.pop("data", (next(iter(files)).split("/")[0],))
    with pytest.raises(GlassformerError, match=told):
        glassformer.train(job, *data, run="run", steps=1, quiet=True, device="cpu", **options)
    assert not Path("run").exists()
    found = [
        line
        for line in examined(data, job=job, **options)
        if any(part in line for part in told.split("|"))
    ]
    assert len(found) == 1
    assert not found[0].startswith("warning:")


def examined(data, **options):
    """What the doctor says: findings, or why a file cannot be read to its end."""
    try:
        return list(map(repr, glassformer.doctor(*data, quiet=True, **options).findings))
    except GlassformerError as error:
        return [str(error)]
