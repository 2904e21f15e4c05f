"""Text files in legacy or mixed encodings: doctor reads them, and copies every line in UTF-8."""

import shlex

import pytest
from ailing import examined

from glassformer import train
from glassformer.cli import main
from glassformer.errors import GlassformerError
from glassformer.runs.doctor import doctor
from glassformer.tasks.generate.documents import SECTION

REFRAIN = "La la la, the café über the river\r\nLa la la, once more\n\n"
VERSES = [f"{n}: the über-long river runs past the café\n\n" for n in range(40)]
REPEATED = "the same line in every of its sections\n"
REPEATED *= 2 * -(-SECTION // len(REPEATED))  # two sections, which are equal
SONG = "".join(verse + REFRAIN for verse in VERSES)


def mixed(path):
    """A song whose last quarter is in another encoding."""
    cut = SONG.index("30: ")
    path.write_bytes(SONG[:cut].encode() + SONG[cut:].encode("cp1252"))
    return path


def read(path):
    return path.read_bytes().decode("utf-8")


def with_plain_ends(text):
    """As the job reads it."""
    return text.replace("\r\n", "\n")


def test_a_file_of_mixed_encodings_is_refused_with_the_command_that_mends_it(tmp_path, capsys):
    path, out = mixed(tmp_path / "a song.txt"), tmp_path / "b.txt"
    with pytest.raises(GlassformerError) as refused:
        train("generate", path, run=tmp_path / "run")
    assert f'glassformer.doctor("{path}", job="generate").fix(path)' in str(refused.value)
    assert main(["train", "generate", str(path), "--run", str(tmp_path / "run")]) == 1
    _, command, *words = shlex.split(capsys.readouterr().err.split("`")[1])
    words[words.index("OUT")] = str(out)
    assert main([command, *words]) == 0  # no error is left in the copy
    assert "kept: 1 text" in capsys.readouterr().out
    assert read(out) == with_plain_ends(SONG)


@pytest.mark.parametrize("codec", ["gb18030", "latin-1", "utf-16"])
def test_a_file_in_a_legacy_encoding_is_reported_and_converted(tmp_path, codec):
    text = "".join(f"{n} 床前明月光疑是地上霜\n\n举头望明月\n" for n in range(30))
    text = text if codec != "latin-1" else SONG
    path = tmp_path / "poems.txt"
    path.write_bytes(text.encode(codec))
    found = examined(path, job="generate")
    told = [one.what for one in found.findings if one.kind == "encoding"]
    guess = {"gb18030": "gb18030", "latin-1": "cp1252"}.get(codec)
    assert told == (
        [f"{path} is not UTF-8; it looks like {guess} and was read as such"] * bool(guess)
    )
    found.fix(tmp_path / "copy.txt")
    assert read(tmp_path / "copy.txt") == with_plain_ends(text)
    again = examined(tmp_path / "copy.txt", job="generate")
    assert not [one for one in again.findings if one.kind == "encoding"]


def test_long_files_that_repeat_themselves_lose_nothing(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("the same words again and again\n" * 10_000 + "\n" * 30)
    examined(path, job="generate").fix(tmp_path / "copy.txt")
    assert (tmp_path / "copy.txt").read_bytes() == path.read_bytes()


def test_a_folder_becomes_a_folder_of_texts(tmp_path):
    songs = tmp_path / "songs"
    (songs / "a" / "b" / "c").mkdir(parents=True)
    mixed(songs / "a" / "b" / "c" / "deep.txt")
    (songs / "good.txt").write_text(SONG + "The end\n", encoding="utf-8")
    (songs / "twice.txt").write_text("only once\n" * 3)
    (songs / "x.txt").write_text("only once\n" * 3)
    (songs / "long.txt").write_text(REPEATED)
    config = {"job": "generate", "set": ["data.valid_share=0", "data.test_share=0"]}
    found = examined(songs, **config)
    assert "encoding" in {one.kind for one in found.findings}
    cleaned = found.fix(tmp_path / "out")
    copy = tmp_path / "out" / "songs"
    assert cleaned.files == {str(copy): str(songs)}
    assert (cleaned.kept, cleaned.dropped) == (4, {"duplicate": 1})
    assert {str(path.relative_to(copy)): read(path) for path in copy.rglob("*.txt")} == {
        "a/b/c/deep.txt": with_plain_ends(SONG),
        "good.txt": with_plain_ends(SONG) + "The end\n",
        "long.txt": REPEATED,
        "twice.txt": "only once\n" * 3,
    }
    assert "left out: 1 text, duplicate" in cleaned.lines
    assert not [
        one for one in doctor(copy, quiet=True, **config).findings if one.kind == "encoding"
    ]


def test_a_file_that_repeats_another_is_left_out_of_few_files_too(tmp_path):
    songs = tmp_path / "songs"
    songs.mkdir()
    for name, text in {"a": SONG, "b": SONG, "c": SONG + "The end\n", "d": REPEATED}.items():
        (songs / f"{name}.txt").write_text(text, encoding="utf-8")
    cleaned = examined(songs, job="generate").fix(tmp_path / "out")
    assert (cleaned.kept, cleaned.dropped) == (3, {"duplicate": 1})
    copies = {path.name: read(path) for path in (tmp_path / "out" / "songs").glob("*.txt")}
    assert copies == {
        "a.txt": with_plain_ends(SONG),
        "c.txt": with_plain_ends(SONG) + "The end\n",
        "d.txt": REPEATED,
    }
