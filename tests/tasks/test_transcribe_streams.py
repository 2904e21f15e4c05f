"""Streams: trained for by chunks, heard as they arrive, and written while they do."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_jobs import everything, job_of, taught
from small_recordings import RATE, SETTINGS, play, record, write_wave

from glassformer.config.decoding import DecodeConfig
from glassformer.config.values import merge_values
from glassformer.core import masks
from glassformer.core.masks import chunks
from glassformer.errors import GlassformerError
from glassformer.tasks import JOBS
from glassformer.tasks.transcribe.live import LiveTranscript
from glassformer.tasks.transcribe.sounds import BLANK

STREAM = {"stream": {"chunk": 0.2, "left": 0.5}, "normalise": "all", "ctc_weight": 1.0}


def task_of(folder, texts=("ad", "bead"), **settings):
    rows = record(folder / "clips", texts)
    values = merge_values(merge_values(SETTINGS, {"task": STREAM}), settings)
    return job_of("transcribe", folder / "run", rows, **values)


@torch.no_grad()
def test_a_model_that_is_trained_for_streams_does_not_hear_beyond_a_chunk(tmp_path):
    task = task_of(tmp_path, ["decade decade"])
    model, batch = task.model().eval(), everything(task)
    assert model.mask == chunks(5, 3)
    before = task.forward(model, batch).frames
    batch.features[:, 60:] = 0.0  # from the sixteenth vector on
    same = (task.forward(model, batch).frames == before).all(-1)[0]
    assert same[:15].all()
    assert not same[15:].any()


@torch.no_grad()
def test_varied_chunks_differ_by_batch_and_files_are_heard_as_a_whole(tmp_path):
    task = task_of(tmp_path, ["decade decade"], task={"stream": {"varied": True}})
    model, epochs = task.model().eval(), range(60)
    batches = [everything(task, epoch=epoch) for epoch in epochs]
    seen = [batch.mask for batch in batches]
    assert seen == [everything(task, epoch=epoch).mask for epoch in epochs]
    assert 20 <= seen.count(masks.everything) <= 40
    sizes = {mask.size for mask in seen if mask != masks.everything}
    assert {*range(3, 10)} <= sizes <= {*range(2, 11)}
    whole, streamed = everything(task), replace(everything(task), mask=chunks(5, 3))
    assert whole.mask == model.mask == masks.everything
    assert LiveTranscript(task, model).listener.mask == chunks(5, 3)
    apart = task.forward(model, whole).frames != task.forward(model, streamed).frames
    assert apart.any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": {"ctc_weight": 0.0}}, "task.stream writes by CTC"),
        ({"task": {"window": 40}}, r"heard 25 ms at a time; with task.stream, leave out"),
        (
            {"task": {"features": "tone"}, "model": {"frontend": {"bins": 7}}},
            r"with task.stream, leave out task.features=tone",
        ),
        ({"task": {"normalise": "recording"}}, r"with task.stream, set task.normalise=all"),
        ({"task": {"stream": {"chunk": 61.0}}}, r"chunk must lie in 0 ... 60 seconds, got 61"),
        ({"task": {"stream": {"left": -1.0}}}, r"left must lie in 0 ... 60 seconds, got -1"),
        ({"task": {"stream": {"chunk": 0.0, "varied": True}}}, r"set task.stream.chunk=0.64"),
        ({"model": {"encoder": {"kind": "lstm"}}}, "encoder of kind lstm with softmax attention"),
        ({"model": {"encoder": {"position": "learned"}}}, "learned positions end somewhere"),
        (
            {
                "model": {
                    "encoder": {"block": "transformer", "position": "none"}
                    | {"attention": {"kind": "linear"}}
                }
            },
            "of kind attention with linear attention cannot read a stream",
        ),
    ],
)
def test_what_cannot_read_streams_is_not_trained_for_them(tmp_path, settings, message):
    with pytest.raises(GlassformerError, match=message):
        task_of(tmp_path, **settings)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A task, a model that learned a little, and its predictor."""
    folder = tmp_path_factory.mktemp("live")
    task = task_of(folder, ["ad bead", "bead ad", "ace", "cab ad ace"])
    return task, taught(task, 40), JOBS["transcribe"].predictor(task).configured(stream=True)


def spoken(words, rng, pause=0.3):
    pieces = [play(word, rng) for word in words.split("|")]
    silence = rng.normal(0, 0.01, int(pause * RATE)).astype(np.float32)
    return np.concatenate([one for piece in pieces for one in (piece, silence)])


@pytest.mark.parametrize("block", [320, 7001, 10**6])
def test_a_stream_says_what_the_whole_recording_does_in_whatever_blocks_it_arrives(live, block):
    task, model, _ = live
    sound = spoken("ad bead|ace|cab", np.random.default_rng(1), pause=0.9)
    greedy = replace(task.searcher, search="ctc", decode=DecodeConfig())
    [whole] = greedy.write(model, [task.features(sound)], times=True)
    assert len(whole.text) > 5
    stream, heard = LiveTranscript(task, model), []
    for start in range(0, len(sound), block):
        heard += stream.hear(sound[start : start + block])
    heard += stream.hear(sound[:0], last=True)
    assert "".join(text for text, _ in heard) == stream.text == whole.text
    assert stream.confidence == pytest.approx(whole.confidence, rel=1e-3)
    words = [word for _, some in heard for word in some]
    assert [word.text for word in words] == [word.text for word in whole.words]
    starts = [word.start * 0.04 for word in whole.words]
    assert [word.start for word in words] == pytest.approx(starts, abs=0.09)


def test_a_word_is_written_when_the_next_begins_or_after_a_pause(live):
    task, model, _ = live
    stream = LiveTranscript(task, model)
    a, d, space = task.tokenizer.encode(["ad "])[0].tolist()

    def after(*tokens):
        scores = torch.full((len(tokens), task.tokenizer.size), -9.0)
        scores[torch.arange(len(tokens)), torch.tensor(tokens)] = -0.1
        stream.path.extend(scores)
        return stream._complete(last=False)[0]

    assert after(a, a, BLANK, d) == ""
    assert after(d, BLANK, space, BLANK) == "ad"
    assert after(space, BLANK, space, a, BLANK, a) == ""
    assert after(*[BLANK] * 19) == ""
    assert after(BLANK) == " aa"
    assert after(*[BLANK] * 50) == ""
    assert stream._complete(last=True) == ("", [])
    assert [(word.start, word.end) for word in stream.words] == [(0.0, 0.2), (0.44, 0.56)]


def test_predictions_of_streams_come_word_by_word_with_their_latency(live, tmp_path):
    (_, model, predictor), partial = live, []
    sound = spoken("ad|bead|ace", np.random.default_rng(2), pause=1.0)
    path = write_wave(tmp_path / "talk.wav", sound)
    predictor = predictor.configured(stream=True, align=True, srt=tmp_path / "talk.srt")
    threads, before = set(), torch.get_num_threads()
    torch.set_num_threads(2)
    for found in predictor.predict(model, [predictor.accept(path)]):
        partial.append(found)
        threads.add(torch.get_num_threads())
    torch.set_num_threads(before)
    assert threads == {1, 2}  # and two again at the end
    *partial, found = partial
    assert len(partial) > 1
    assert "".join(one.text for one in partial) == found.text
    assert all(one.details["start"] < one.details["end"] for one in partial)
    assert [word["word"] for word in found.details["words"]] == found.text.split()
    latency = found.details["latency"]
    assert latency["look_ahead"] == pytest.approx(0.2 + 0.015)
    assert 0 < latency["median"] <= latency["p95"]
    assert "look-ahead of 0.21 s" in found.note or "look-ahead of 0.22 s" in found.note
    assert "-->" in (tmp_path / "talk.srt").read_text()


def test_a_run_that_was_not_trained_for_streams_says_how_to_train_one(tmp_path):
    task = task_of(tmp_path, task={"stream": {"chunk": 0.0}})
    predictor = JOBS["transcribe"].predictor(task)
    with pytest.raises(GlassformerError, match=r"train one with set=..task.stream.chunk=0.64"):
        predictor.configured(stream=True)
    with pytest.raises(GlassformerError, match=r"rate is that of raw sound .*; add stream -"):
        predictor.configured(rate=8000)
    with pytest.raises(GlassformerError, match="leave out picture or stream"):
        predictor.configured(stream=True, picture="a.png")


def test_standard_input_is_for_streams_and_a_rate_for_standard_input(live, tmp_path):
    _, model, predictor = live
    path = write_wave(tmp_path / "ad.wav", play("ad", np.random.default_rng(3)))
    with pytest.raises(GlassformerError, match=r"ad.wav: rate is that of raw sound"):
        [*predictor.configured(stream=True, rate=8000).predict(model, [predictor.accept(path)])]
    with pytest.raises(GlassformerError, match="standard input is read by stream only"):
        [*predictor.configured().predict(model, [predictor.accept("-")])]
