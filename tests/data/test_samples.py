"""Samples come back as they were stored, by part, from any thread or process."""

import multiprocessing
import pickle
import tracemalloc
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from glassformer.data.ragged import Ragged
from glassformer.data.samples import NO_SPLIT, SPLITS, Samples
from glassformer.data.spool import Spool
from glassformer.errors import GlassformerError

ROWS = [
    ("train", {"where": "a.csv row 1", "text": "Ünïcode 日本 🎬", "label": "yes"}),
    ("test", {"where": "a.csv row 2", "text": 'a "quoted"\n\\ line', "label": ["x", "y"]}),
    ("train", {"where": "a.csv row 3", "text": "lone \ud800 half", "label": []}),
    ("valid", {"where": "a.csv row 4", "text": "", "label": "no"}),
    ("train", {"where": "a.csv row 5", "text": "x" * 10_007, "label": "no"}),
]


def test_samples_come_back_as_they_were_in_their_parts(tmp_path):
    samples = Samples.write(tmp_path, ROWS)
    assert list(samples) == [sample for _, sample in ROWS]
    assert len(samples) == len(ROWS)
    for part in SPLITS:
        assert list(samples.of(part)) == [sample for own, sample in ROWS if own == part]
    assert samples.rows("train").tolist() == [0, 2, 4]
    assert samples.texts("test") == ['a "quoted"\n\\ line']
    assert samples.texts("train", "where") == [f"a.csv row {n}" for n in (1, 3, 5)]


def test_one_role_is_read_alone_whether_it_is_spooled_or_decoded(tmp_path):
    samples = Samples.write(tmp_path, ROWS)
    assert set(samples.spools) == {"text"}, "a label is not always a text"
    for some in (samples, Samples.open(tmp_path)):
        for role in ("text", "label", "where"):
            assert list(some.values(role)) == [sample[role] for _, sample in ROWS]
            assert list(some.values(role, "valid")) == [ROWS[3][1][role]]


def test_other_splits_leave_the_spools(tmp_path):
    samples = Samples.write(tmp_path, ROWS).with_splits(np.array([0, 0, 1, NO_SPLIT, 1], np.uint8))
    assert samples.texts("valid") == [ROWS[2][1]["text"], ROWS[4][1]["text"]]
    assert Samples.open(tmp_path).texts("valid") == samples.texts("valid")


def test_a_role_that_a_sample_lacks_is_not_spooled(tmp_path):
    rows = [
        ("train", {"where": "1", "text": "a", "to": "de"}),
        ("train", {"where": "2", "text": "b"}),
    ]
    assert set(Samples.write(tmp_path, rows).spools) == {"text"}


def test_texts_of_any_length_are_spooled_in_order_and_read_by_two_at_once(tmp_path):
    texts = [("ü\ud800" * (n % 5 + (100_003 if n % 700 == 9 else 0))) for n in range(1501)]
    spool = Spool(tmp_path)
    for text in texts:
        spool.append(text)
    assert list(zip(spool, spool, strict=True)) == [(text, text) for text in texts]
    assert len(spool) == len(texts)
    assert not list(tmp_path.iterdir()), "its file has no name"


def test_no_samples_are_fine(tmp_path):
    samples = Samples.write(tmp_path, [])
    assert len(samples) == 0
    assert samples.rows("train").tolist() == []


def test_samples_are_stored_as_they_come_and_never_held(tmp_path):
    text, many = "x" * 20_000, 500
    rows = (("train", {"where": str(n), "text": text}) for n in range(many))
    tracemalloc.start()
    samples = Samples.write(tmp_path, rows)
    last = samples[many - 1]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert last == {"where": str(many - 1), "text": text}
    assert peak < 0.1 * many * len(text)


def test_a_part_can_be_changed_and_a_sample_can_be_in_none(tmp_path):
    samples = Samples.write(tmp_path, ROWS)
    parts = samples.splits.copy()
    parts[0], parts[2] = SPLITS.index("valid"), NO_SPLIT
    Samples.assign(tmp_path, parts)
    changed = Samples.open(tmp_path)
    assert [changed.rows(part).tolist() for part in SPLITS] == [[4], [0, 3], [1]]
    assert len(changed) == len(ROWS)


def texts_of(samples):
    return [sample["text"] for sample in samples]


def test_many_threads_read_at_once(tmp_path):
    rows = [("train", {"where": str(n), "text": f"text {n}"}) for n in range(97)]
    samples = Samples.write(tmp_path, rows)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(texts_of, [samples] * 8))
    assert found == [[f"text {n}" for n in range(97)]] * 8


def test_another_process_opens_the_same_files(tmp_path):
    samples = Samples.write(tmp_path, ROWS)
    samples.rows("train")
    sent = pickle.dumps(samples)
    assert len(sent) < 1000, "what is in the files is not sent"
    assert pickle.loads(sent).rows("train").tolist() == [0, 2, 4]
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=fork) as pool:
        assert pool.submit(texts_of, samples).result() == texts_of(samples)


BROKEN = {
    "missing": (lambda path: path.unlink(), "cannot be read .*No such file"),
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:-2]), "not a valid numpy file"),
    "empty": (lambda path: path.write_bytes(b""), "not a valid numpy file"),
    "objects": (
        lambda path: np.save(path, np.array([{}]), allow_pickle=True),
        "not a valid numpy file",
    ),
    "others": (lambda path: np.save(path, np.zeros(3, np.uint8)), r"is \(3,\) instead of \(5,\)"),
    "a table": (lambda path: np.save(path, np.zeros((5, 1))), "not a one-dimensional array"),
    "fractions": (lambda path: np.save(path, np.zeros(5)), "holds float64 instead of integers"),
    "no split": (lambda path: np.save(path, np.full(5, 3, np.uint8)), "holds unknown splits"),
    "below 0": (lambda path: np.save(path, np.full(5, -1)), "numbers outside 0 to 255"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_splits_are_refused_in_one_line(tmp_path, kind):
    Samples.write(tmp_path, ROWS)
    destroy, words = BROKEN[kind]
    destroy(tmp_path / "parts.npy")
    with pytest.raises(GlassformerError, match=rf"parts.npy: .*{words}") as refusal:
        Samples.open(tmp_path)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("content", [b"[", b"7", b"[" * 100_000, b'"\xff"'])
def test_a_sample_that_is_damaged_is_refused_when_it_is_read(tmp_path, content):
    Samples.write(tmp_path, ROWS)
    rows = [np.frombuffer(line, np.uint8) for line in (b"{}", content, b"{}", b"{}", b"{}")]
    Ragged.write(tmp_path / "samples", rows, np.uint8)
    samples = Samples.open(tmp_path)
    with pytest.raises(GlassformerError, match=r"samples.values.npy: row 2 is damaged; copy"):
        samples[1]
    with pytest.raises(GlassformerError, match=r"samples.values.npy: row 2 is damaged; copy"):
        list(samples)
    with pytest.raises(GlassformerError, match=r"its text is missing; copy the run again"):
        samples[0]["text"]


def test_a_folder_without_samples_is_refused_in_one_line(tmp_path):
    with pytest.raises(GlassformerError, match=r"samples.values.npy: cannot be read"):
        Samples.open(tmp_path)
