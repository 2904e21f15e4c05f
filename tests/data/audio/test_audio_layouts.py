"""Data sets of recordings, in the layouts that people have them in."""

from pathlib import Path

import pytest

from glassformer.data.audio.layouts import LAYOUTS, read_recordings
from glassformer.data.audio.paths import is_recording
from glassformer.data.paths import located
from glassformer.data.rows import Row
from glassformer.data.sources import read_rows
from glassformer.errors import GlassformerError


def write(folder: Path, **files: str) -> Path:
    """A folder of text files; `__` stands for a slash, and `_` for a dot."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return folder


def rows_of(path, folder=None):
    """Values and locations, without the folder."""
    folder = f"{folder or path}/"
    found = read_recordings(path)
    assert found is not None
    return [
        (
            {name: value.removeprefix(folder) for name, value in row.values.items()},
            row.where.removeprefix(folder),
        )
        for row in found
    ]


def test_kaldi_folders(tmp_path):
    write(
        tmp_path,
        wav_scp="r1 sound/one.wav\nr2 /data/two.flac\n",
        text="u1 HELLO  THERE\nu2\n\nr2 BYE\n",
        utt2spk="u1 anna\nu2 anna\n",
        segments="u1 r1 0.5 7199.125\nu2 r1 2 -1\n",
    )
    assert rows_of(tmp_path) == [
        (
            {
                "path": "sound/one.wav",
                "text": "HELLO  THERE",
                "start": "0.5",
                "end": "7199.125",
                "speaker": "anna",
            },
            "text row 1",
        ),
        ({"path": "sound/one.wav", "text": "", "start": "2", "speaker": "anna"}, "text row 2"),
        ({"path": "/data/two.flac", "text": "BYE"}, "text row 4"),
    ]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"wav_scp": "a sph2pipe -f wav a.sph |", "text": "a HI"},
            "wav.scp row 1: a command instead of a path; write its output to a file, and the path "
            "of that file here",
        ),
        (
            {"wav_scp": "a a.wav", "text": "a HI\nb HO"},
            "text row 2: no recording 'b' in wav.scp; add it there, or remove the line",
        ),
        (
            {"wav_scp": "a a.wav", "text": "u HI", "segments": "u a zero 1"},
            "segments row 1: not of the form UTTERANCE RECORDING START END, with times in seconds; "
            "correct the line",
        ),
        (
            {"metadata_csv": "a|Hi.|Hi.\nb\n", "wavs__a_wav": ""},
            "metadata.csv row 2: not of the form NAME|TEXT or NAME|TEXT|NORMALISED TEXT; correct "
            "the line",
        ),
    ],
)
def test_a_wrong_line_is_named(tmp_path, files, words):
    with pytest.raises(GlassformerError) as error:
        rows_of(write(tmp_path, **files))
    assert str(error.value) == f"{tmp_path}/{words}"


def test_common_voice_in_a_folder_or_as_one_of_its_tables(tmp_path):
    table = 'client_id\tpath\tsentence\tage\nabc\tone.mp3\tShe said "no.\t\nxyz\ttwo.mp3\tBye.\t9\n'
    write(tmp_path, validated_tsv=table, clips__one_mp3="")
    (tmp_path / "dev.tsv").write_text(table)
    for path, name in ((tmp_path, "validated"), (tmp_path / "dev.tsv", "dev")):
        assert rows_of(path, tmp_path) == [
            (
                {"path": "clips/one.mp3", "text": 'She said "no.', "speaker": "abc"},
                f"{name}.tsv row 1 (line 2)",
            ),
            (
                {"path": "clips/two.mp3", "text": "Bye.", "speaker": "xyz"},
                f"{name}.tsv row 2 (line 3)",
            ),
        ]
    (tmp_path / "other.tsv").write_text("path\ttext\none.mp3\tHi.\n")
    assert read_recordings(tmp_path / "other.tsv") is None


def test_ljspeech_in_a_folder_or_as_its_table(tmp_path):
    write(tmp_path, metadata_csv='L-1|"It, 2.|"It, two.\nL-2|Bye.\n', wavs__a_wav="")
    for path in (tmp_path, tmp_path / "metadata.csv"):
        assert rows_of(path, tmp_path) == [
            ({"path": "wavs/L-1.wav", "text": '"It, two.'}, "metadata.csv row 1"),
            ({"path": "wavs/L-2.wav", "text": "Bye."}, "metadata.csv row 2"),
        ]


def test_librispeech_as_a_whole_or_one_subset_of_it(tmp_path):
    tmp_path = tmp_path / "LibriSpeech"
    write(
        tmp_path,
        **{
            "train-clean-100__84__1__84-1_trans_txt": "84-1-0 HE SAID\n84-1-1 NO\n",
            "train-clean-100__84__1__84-1-0_flac": "",
            "train-clean-100__84__1__84-1-1_wav": "",
            "dev-clean__7__2__7-2_trans_txt": "7-2-0 AND SO\n",
        },
    )
    first = "84/1/84-1.trans.txt row 1"
    whole = rows_of(tmp_path)
    assert whole[0] == (
        {
            "path": "dev-clean/7/2/7-2-0.flac",
            "text": "AND SO",
            "speaker": "7",
            "split": "dev",
        },
        "dev-clean/7/2/7-2.trans.txt row 1",
    )
    assert [values["split"] for values, _ in whole] == ["dev", "train", "train"]
    assert [values["split"] for values, _ in rows_of(tmp_path.parent)] == ["dev", "train", "train"]
    assert rows_of(tmp_path / "train-clean-100") == [
        ({"path": "84/1/84-1-0.flac", "text": "HE SAID", "speaker": "84"}, first),
        ({"path": "84/1/84-1-1.wav", "text": "NO", "speaker": "84"}, first[:-1] + "2"),
    ]


def test_recordings_and_their_texts_side_by_side(tmp_path):
    write(tmp_path, b_WAV="", b_txt="Good\n bye.\n", a_m4a="", notes_txt="none")
    assert rows_of(tmp_path) == [
        ({"path": "a.m4a", "text": ""}, "a.m4a row 1"),
        ({"path": "b.WAV", "text": "Good bye."}, "b.WAV row 1"),
    ]


def test_recordings_and_their_texts_in_a_folder_of_each_speaker(tmp_path):
    write(tmp_path, anna__1_wav="", anna__1_txt="Hi.", bob__1_wav="", bob__2_wav="", bob__2_txt="A")
    assert rows_of(tmp_path) == [
        ({"path": "anna/1.wav", "speaker": "anna", "text": "Hi."}, "anna/1.wav row 1"),
        ({"path": "bob/1.wav", "speaker": "bob", "text": ""}, "bob/1.wav row 1"),
        ({"path": "bob/2.wav", "speaker": "bob", "text": "A"}, "bob/2.wav row 1"),
    ]


def test_recordings_alone_have_no_texts(tmp_path):
    write(tmp_path, b_wav="", a_wav="", readme_md="")
    assert rows_of(tmp_path) == [({"path": n}, f"{n} row 1") for n in ("a.wav", "b.wav")]


def test_one_folder_per_label(tmp_path):
    write(tmp_path, dog__1_wav="", cat__2_ogg="", cat__1_ogg="", readme_md="", empty__a_txt="")
    assert rows_of(tmp_path) == [
        ({"path": path, "label": path[:3]}, f"{path} row 1")
        for path in ("cat/1.ogg", "cat/2.ogg", "dog/1.wav")
    ]


def test_what_holds_no_recordings_is_left_to_other_readers(tmp_path):
    write(tmp_path, pos__1_txt="fine", neg__1_txt="poor", table_csv="path,text\na.wav,hi\n")
    assert read_recordings(tmp_path) is None
    assert read_recordings(tmp_path / "table.csv") is None
    assert read_recordings(tmp_path / "nothing") is None


def test_each_data_set_is_of_one_layout(tmp_path):
    made = {
        "kaldi": write(tmp_path / "1", wav_scp="a a.wav", text="a HI", utt2spk="a anna"),
        "common_voice": write(
            tmp_path / "2", validated_tsv="client_id\tpath\tsentence\nc\tp\ts\n", clips__a_mp3=""
        ),
        "ljspeech": write(tmp_path / "3", metadata_csv="a|b|c", wavs__a_wav=""),
        "librispeech": write(tmp_path / "4", **{"1__2__1-2_trans_txt": "1-2-0 A"}),
        "pairs": write(tmp_path / "5", a_wav="", a_txt="hi"),
        "labels": write(tmp_path / "6", x__a_wav="", y__a_wav=""),
    }
    assert made.keys() == LAYOUTS.keys()
    for name, path in made.items():
        first = next(other for other, (recognises, _) in LAYOUTS.items() if recognises(path))
        assert first == name


def test_a_path_in_a_table_is_seen_from_the_table(tmp_path):
    write(tmp_path, table_csv="path,text\nsub/a.wav,hi\n/data/b.wav,ho\nsub\\c.wav,he\n")
    rows = list(read_rows(tmp_path / "table.csv"))
    found = [located(row, row["path"]) for row in rows]
    assert found == [str(tmp_path / "sub/a.wav"), "/data/b.wav", str(tmp_path / "sub/c.wav")]
    (tmp_path / "sub\\c.wav").touch()
    assert located(rows[2], rows[2]["path"]) == str(tmp_path / "sub\\c.wav")


def test_relative_folders_give_paths_that_hold_elsewhere(tmp_path, monkeypatch):
    write(tmp_path, a_wav="", a_txt="hi")
    monkeypatch.chdir(tmp_path)
    [row] = read_recordings(Path("."))
    assert row["path"] == str(tmp_path / "a.wav")
    assert located(Row({}, "table.csv", 1), "b.wav") == str(tmp_path / "b.wav")


def test_a_name_that_is_not_text_is_refused(tmp_path):
    write(tmp_path, **{"x\udcff__a_wav": ""})
    with pytest.raises(GlassformerError, match=r"the name 'x\\udcff' is not UTF-8; rename it"):
        read_recordings(tmp_path)


def test_recordings_are_known_by_their_suffix():
    assert is_recording("a.FLAC")
    assert not is_recording("a.txt")
