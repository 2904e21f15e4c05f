"""Subtitles: which words are shown together, and how they are written."""

import pytest

from glassformer.errors import GlassformerError
from glassformer.tasks.served import Spoken
from glassformer.tasks.transcribe.subtitles import check_subtitles, cues, write_subtitles

WORDS = [Spoken("so", 0.5, 0.7), Spoken("be", 0.8, 1.0), Spoken("it", 2.5, 3661.25)]


def test_a_pause_a_long_line_and_a_long_time_begin_a_new_cue():
    assert [cue.text for cue in cues(WORDS)] == ["so be", "it"]
    many = [Spoken("word", 0.1 * n, 0.1 * n + 0.1) for n in range(20)]
    assert [len(cue.text) for cue in cues(many)] == [39, 39, 19]
    slow = [Spoken("a", 2.0 * n, 2.0 * n + 1.9) for n in range(5)]
    assert [cue.text for cue in cues(slow)] == ["a a a", "a a"]
    assert (slow[0].start, slow[2].end) == (next(cues(slow)).start, next(cues(slow)).end)
    assert list(cues([])) == []


def test_srt_and_vtt_write_the_same_cues_in_their_own_ways(tmp_path):
    write_subtitles(WORDS, tmp_path / "talk.srt", form="srt")
    srt = "1\n00:00:00,500 --> 00:00:01,000\nso be\n\n2\n00:00:02,500 --> 01:01:01,250\nit\n\n"
    assert (tmp_path / "talk.srt").read_text() == srt
    write_subtitles(WORDS, tmp_path / "talk.vtt", form="vtt")
    assert (tmp_path / "talk.vtt").read_text() == "WEBVTT\n\n" + srt.replace(",", ".")


def test_subtitles_need_a_folder(tmp_path):
    check_subtitles(tmp_path / "talk.srt")
    with pytest.raises(GlassformerError, match="gone: no such folder for subtitles"):
        check_subtitles(tmp_path / "gone" / "talk.srt")
    with pytest.raises(GlassformerError, match="is a folder; name a file"):
        check_subtitles(tmp_path)
