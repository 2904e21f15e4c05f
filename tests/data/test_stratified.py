"""Each split has its share of every label, where nothing groups the rows."""

from collections import Counter

from ailing import table as write_table

from glassformer.config import DataConfig
from glassformer.data.ingest import ingest
from glassformer.data.samples import SPLITS
from glassformer.tasks.classify.data import ClassifySchema

HEADER = ("text", "label")


def table(path, *rows, header=HEADER):
    return str(write_table(path, (dict(zip(header, row, strict=True)) for row in rows)))


def take(folder, *files, **settings):
    return ingest(DataConfig(files=files, **settings), ClassifySchema(), folder / "out")


def parts_of(samples):
    return {part: samples.texts(part, "text") for part in SPLITS}


def test_each_part_has_its_share_of_every_label(tmp_path):
    rows = [(f"text {n}", "rare" if n % 20 == 0 else "common") for n in range(400)]
    samples, _ = take(tmp_path, table(tmp_path / "x.csv", *rows, *reversed(rows)))
    texts = {part: Counter(s["label"] for s in samples.of(part)) for part in SPLITS}
    assert texts["valid"] == texts["test"] == {"rare": 4, "common": 76}  # each row is there twice
    assert texts["train"] == {"rare": 32, "common": 608}
    parts = parts_of(samples)
    assert not {*parts["train"]} & {*parts["valid"], *parts["test"]}
    backwards, _ = take(tmp_path, table(tmp_path / "y.csv", *reversed(rows)))
    assert {part: {*texts} for part, texts in parts_of(backwards).items()} == {
        part: {*texts} for part, texts in parts.items()
    }


def test_with_groups_or_without_stratify_the_hash_of_a_row_decides_alone(tmp_path):
    rows = [(f"text {n}", "even" if n % 2 else "odd", str(n // 2)) for n in range(400)]
    file = table(tmp_path / "x.csv", *rows, header=("text", "label", "film"))
    some = table(tmp_path / "some.csv", *rows[:300], header=("text", "label", "film"))
    for settings in ({"group": "film"}, {"stratify": False}):
        (all_rows, _), (few, _) = (take(tmp_path, f, **settings) for f in (file, some))
        for part in SPLITS:
            first = {s["text"] for s in all_rows.of(part) if int(s["text"].split()[1]) < 300}
            assert first == {*few.texts(part, "text")}


def test_of_few_groups_one_validates_even_if_no_hash_falls_there(tmp_path):
    rows = [(f"text {n}", "yes", f"film {n % 12}") for n in range(36)]
    path = table(tmp_path / "x.csv", *rows, header=("text", "label", "film"))
    for share in (0.001, 0.01, 0.02):
        samples, _ = take(tmp_path, path, group="film", valid_share=share, test_share=0.0)
        train, valid = ({*samples.texts(part, "group")} for part in ("train", "valid"))
        assert (len(valid), len(train), valid & train) == (1, 11, set())
