"""Text files as documents: sections, what is held out, folders, and what is refused."""

from itertools import chain

import pytest

from glassformer.config import DataConfig
from glassformer.data.ingest import ingest
from glassformer.errors import GlassformerError
from glassformer.tasks.generate.data import GenerateSchema
from glassformer.tasks.generate.documents import SECTION, read_documents

LINES = [f"{n}: the quick brown fox jumps over the lazy dog\n" for n in range(2000)]


def read(folder, *names, **settings):
    """All samples of some files by split, in order."""
    config = DataConfig(files=tuple(str(folder / name) for name in names), **settings)
    samples, report = ingest(config, GenerateSchema(), folder / "out")
    splits = ("train", "valid", "test")
    return {split: list(samples.of(split)) for split in splits}, report


def texts(samples):
    return [sample["text"] for sample in samples]


def test_a_file_is_read_in_sections_of_whole_lines_and_its_end_is_held_out(tmp_path):
    whole = "".join(LINES)
    (tmp_path / "a.txt").write_text(whole)
    found, _ = read(tmp_path, "a.txt", valid_share=0.05, test_share=0.1)
    assert "".join(chain(*(texts(found[split]) for split in found))) == whole
    assert [len("".join(texts(found[split]))) / len(whole) for split in found] == pytest.approx(
        [0.85, 0.05, 0.1], abs=0.002
    )
    sections = list(chain(*found.values()))
    assert all(len(sample["text"]) < SECTION + len(LINES[-1]) for sample in sections)
    assert all(sample["text"].endswith("\n") for sample in sections)
    assert ["continued" in sample for sample in sections] == [True] * (len(sections) - 1) + [False]
    second = sections[1]
    line = whole[: whole.index(second["text"])].count("\n") + 1
    assert second["where"] == f"{tmp_path}/a.txt row {line}"


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_end_as_in_prompts_whatever_ends_them_in_the_file(tmp_path, end):
    (tmp_path / "text.txt").write_bytes(f"one{end}two{end}{end}three".encode())
    (row,) = read_documents(tmp_path / "text.txt", None, {})
    assert row.values["text"] == "one\ntwo\n\nthree"


def test_empty_files_in_a_folder_are_counted(tmp_path):
    (tmp_path / "texts").mkdir()
    for name, text in {"a.txt": "one", "b.txt": "", "c.txt": " \n", "d.txt": "two"}.items():
        (tmp_path / "texts" / name).write_text(text)
    _, report = read(tmp_path, "texts", valid_share=0.0, test_share=0.0)
    assert sum(one.count for one in report.skipped.values()) == 2
    assert report.counts["train"] == 2


def test_a_very_long_line_comes_in_pieces(tmp_path):
    whole = "x" * (3 * SECTION + 5)
    (tmp_path / "a.txt").write_text(whole)
    found, _ = read(tmp_path, "a.txt", valid_share=0.3, test_share=0.0)
    sizes = {split: [len(text) for text in texts(found[split])] for split in ("train", "valid")}
    assert sum(sizes["train"] + sizes["valid"]) == len(whole)
    assert max(sizes["train"]) < SECTION + len(whole) / 100
    assert sum(sizes["valid"]) / len(whole) == pytest.approx(0.3, abs=0.01)
    config = DataConfig(test=(str(tmp_path / "a.txt"),))
    rows = GenerateSchema().open(str(tmp_path / "a.txt"), config)
    assert [len(row["text"]) for row in rows] == [SECTION] * 3 + [5]


def test_a_small_file_has_all_splits_too(tmp_path):
    whole = "".join(LINES[:3])
    (tmp_path / "a.txt").write_text(whole)
    found, _ = read(tmp_path, "a.txt", valid_share=0.1, test_share=0.1)
    assert "".join(texts(found[split])[0] for split in found) == whole
    shares = [len(texts(found[split])[0]) / len(whole) for split in found]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.01)


def test_of_many_files_whole_ones_are_held_out(tmp_path):
    (tmp_path / "many" / "deep").mkdir(parents=True)
    for n in range(60):
        place = tmp_path / "many" / ("deep" if n % 2 else "")
        (place / f"{n}.txt").write_text(f"{n}: " + "".join(LINES[: 400 + n]))
    found, _ = read(tmp_path, "many", valid_share=0.2, test_share=0.2)
    files = {split: {one["group"] for one in some} for split, some in found.items()}
    assert sum(map(len, files.values())) == 60
    assert len(set.union(*files.values())) == 60
    assert min(map(len, files.values())) > 2


def test_a_file_is_read_whole_where_nothing_is_held_out_of_it(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name + "".join(LINES[:20]))
    valid = (str(tmp_path / "b.txt"),)
    found, _ = read(tmp_path, "a.txt", valid=valid, test_share=0.0)
    assert texts(found["train"]) == ["a.txt" + "".join(LINES[:20])]
    assert texts(found["valid"]) == ["b.txt" + "".join(LINES[:20])]
    config = DataConfig(test=(str(tmp_path / "a.txt"),))  # as for `evaluate`
    samples, _ = ingest(config, GenerateSchema(), tmp_path / "other")
    assert len(list(samples.of("test"))) == 1


def test_tables_in_folders_are_read_row_by_row(tmp_path):
    (tmp_path / "set" / "part").mkdir(parents=True)
    (tmp_path / "set" / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    (tmp_path / "set" / "part" / "b.jsonl").write_text('{"text": "three"}\n')
    found, _ = read(tmp_path, "set", valid_share=0.0, test_share=0.0)
    assert texts(found["train"]) == ["one", "two", "three"]


def refusal(folder, *names, **settings):
    with pytest.raises(GlassformerError) as refused:
        read(folder, *names, **settings)
    return str(refused.value)


def test_what_cannot_be_read_is_refused_in_a_line(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    told = f"{empty}: no text in this folder; put text files or tables into it"
    assert refusal(tmp_path, "empty") == told
    (empty / "nothing.txt").write_text("")
    assert refusal(tmp_path, "empty") == told
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "a.txt").write_text("a")
    (mixed / "b.csv").write_text("text\na\n")
    assert "mixes tables such as b.csv with other files such as a.txt" in refusal(tmp_path, "mixed")
    (tmp_path / "one.txt").write_text("a")
    assert refusal(tmp_path, "one.txt").endswith(
        "one.txt: 1 row is too few to hold some out for validation; give more rows, or give some "
        "with valid=..."
    )
    (mixed / "b.csv").unlink()
    (mixed / "loop").symlink_to(mixed)
    assert "nested too deeply; remove the link to a parent folder" in refusal(tmp_path, "mixed")
    (tmp_path / "a.txt").write_bytes("café".encode("cp1252") * 9)
    assert "a.txt line 1: not valid UTF-8" in refusal(tmp_path, "a.txt")


@pytest.mark.parametrize("count", [20, 23, 40])
@pytest.mark.parametrize("seed", range(6))
def test_of_twenty_files_or_more_at_least_one_is_in_each_split(tmp_path, count, seed):
    (tmp_path / "poems").mkdir()
    for n in range(count):
        (tmp_path / "poems" / f"{n:02}.txt").write_text("".join(LINES[9 * n : 9 * n + 9]))
    config = DataConfig(files=(str(tmp_path / "poems"),))
    samples, _ = ingest(config, GenerateSchema(), tmp_path / "out", seed=seed)
    files = {
        split: {one["group"] for one in samples.of(split)} for split in ("train", "valid", "test")
    }
    assert min(map(len, files.values())) >= 1
    assert sum(map(len, files.values())) == len(set.union(*files.values())) == count


def test_files_given_one_by_one_are_held_out_as_those_of_a_folder(tmp_path):
    (tmp_path / "poems").mkdir()
    names = [f"poems/{n:02}.txt" for n in range(30)]
    for n, name in enumerate(names):
        (tmp_path / name).write_text(f"{n}: " + "".join(LINES[: 400 + n]))
    one_by_one, _ = read(tmp_path, *names)
    (tmp_path / "out").rename(tmp_path / "other")
    of_folder, _ = read(tmp_path, "poems")
    assert one_by_one == of_folder
    few, _ = read(tmp_path, *names[:19])
    assert {one["where"].split(" row")[0] for one in few["valid"]} == {
        str(tmp_path / name) for name in names[:19]
    }


def test_no_held_out_section_is_blank(tmp_path):
    for number, text in enumerate(("a single line\n", "one    \n\n\n\ntwo words" + "\n" * 20)):
        (tmp_path / f"{number}.txt").write_text(text)
        found, report = read(tmp_path, f"{number}.txt", valid_share=0.1, test_share=0.1)
        assert not report.skipped
        assert "".join(chain(*(texts(found[split]) for split in found))) == text
