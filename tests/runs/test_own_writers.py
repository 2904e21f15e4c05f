"""Models of one's own that write: any module with the right `forward`, for every such job."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from quick import quickly
from small_recordings import RATE, WORDS, record
from small_translators import translate, write_pairs
from torch import nn

import glassformer
from glassformer import GlassformerError
from glassformer.config.decoding import BeamConfig, DecodeConfig
from glassformer.core.layout import Layout
from glassformer.decode import Request, decode
from glassformer.models.incremental import WholeScorer, continuing, translating

DIM = 8
STACK = glassformer.StackConfig(dim=16, depth=2)


class Pairs(nn.Module):
    """Reads the mean of a source, and the last token."""

    def __init__(self, task):
        super().__init__()
        self.reads = nn.Embedding(task.vocabulary, DIM)
        self.writes = nn.Embedding(task.target_vocabulary, DIM)
        self.score = nn.Linear(DIM, task.target_vocabulary)

    def forward(self, samples, tokens, *, source, target):
        real = self.reads(samples) * source.real[..., None]
        mean = real.sum(1) / source.lengths[:, None]
        return self.score(mean[:, None] + self.writes(tokens))


class Bigrams(nn.Module):
    """Reads the last token."""

    def __init__(self, task):
        super().__init__()
        self.writes = nn.Embedding(task.vocabulary, DIM)
        self.score = nn.Linear(DIM, task.vocabulary)

    def forward(self, tokens, *, layout):
        assert tokens.shape == (layout.rows, layout.longest)
        return self.score(self.writes(tokens))


class Frames(nn.Module):
    """Scores each vector of a recording alone, by CTC."""

    def __init__(self, task):
        super().__init__()
        self.factor = task.factor
        self.score = nn.Linear(task.bins, task.vocabulary)

    def forward(self, features, tokens=None, *, source, target=None):
        return self.score(features[:, :: self.factor])


class Hears(Frames):
    """The same with a decoder."""

    def __init__(self, task):
        super().__init__(task)
        self.writes = nn.Embedding(task.vocabulary, task.vocabulary)

    def forward(self, features, tokens=None, *, source, target=None):
        frames = super().forward(features, source=source)
        if tokens is None:
            return frames
        return frames, self.writes(tokens) + frames.mean(1, keepdim=True)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    with quickly():
        return translate(write_pairs(folder / "pairs.tsv"), folder / "run", model=Pairs)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "a.txt").write_text("".join(f"{n} green bottles on the wall\n" for n in range(200)))
    given = {"steps": 3, "quiet": True, "set": ("data.batch_tokens=512", "task.max_length=32")}
    return glassformer.train(
        "generate", folder / "a.txt", run=folder / "run", model=Bigrams, **given
    )


def test_a_translator_writes_with_search_alternatives_and_its_scores(pairs):
    again = glassformer.load(pairs.folder.path, model=Pairs)
    options = {"alternatives": 2, "set": "decode.method=beam"}
    found = again.predict(["abcd", "ff"], **options)
    assert found == pairs.predict(["abcd", "ff"], **options)
    assert len(found[0].details["alternatives"]) == 2
    assert "exact" in pairs.report["scores"]["this model"]
    with pytest.raises(GlassformerError, match=r"^align looks inside .* is your own, Pairs; leave"):
        again.predict("abcd", align=True)


def test_a_language_model_continues_one_prompt_and_many(texts):
    again = glassformer.load(texts.folder.path, model=Bigrams)
    greedy = {"set": ("decode.method=greedy", "decode.max_length=9")}
    alone = again.predict("12 green", **greedy)
    assert alone.text.startswith("12 green")
    assert again.predict(["12 green", "9"], **greedy)[0].text == alone.text
    assert texts.report["scores"]["this model"]["bits_per_byte"]["value"] < 9


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heard")
    clips = record(folder / "clips", [WORDS[n % 7] for n in range(30)])
    settings = ("model.frontend.bins=20", f"task.rate={RATE}", "task.ctc_weight=0.5")
    given = {"model": Hears, "steps": 1, "quiet": True, "set": (*settings, "task.lm=0")}
    with quickly():
        return clips, glassformer.train("transcribe", clips, run=folder / "run", **given)


def test_a_transcriber_writes_with_its_scores(heard):
    clips, run = heard
    again = glassformer.load(run.folder.path, model=Hears)
    assert again.predict(clips[0]["path"]) == run.predict(clips[0]["path"])
    assert "cer" in run.report["scores"]["this model"]
    with pytest.raises(GlassformerError, match="picture looks inside a model of glassformer"):
        again.predict(clips[0]["path"], picture=str(run.folder.path / "a.png"))


@pytest.mark.parametrize("search", ["ctc", "attention", "joint"])
def test_every_search_of_it_writes_what_it_would_with_one_encoding(heard, search):
    """A Transcriber, and the same hidden behind a class of one's own."""
    _, run = heard
    torch.manual_seed(3)
    task, sound = run.task, torch.randn(40, run.task.bins).numpy()
    model = task.model().eval()
    nn.init.normal_(model.to_token.bias)  # or all would be blank
    searcher = replace(task.searcher, search=search)
    ours, theirs = (searcher.write(one, [sound, sound[:23]]) for one in (model, Hidden(model)))
    assert [one.tokens for one in ours] == [one.tokens for one in theirs]
    assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-4)


def test_what_only_a_transcriber_can_do_is_refused(heard):
    _, run = heard
    stream = replace(run.config.task.stream, chunk=0.64)
    chunks = replace(run.config, task=replace(run.config.task, stream=stream, normalise="all"))
    task = run.folder.open_task(chunks, run.folder.data)
    batch = task.batch("train", np.arange(2), 0)
    with pytest.raises(GlassformerError, match=r"task\.stream\.chunk needs a Transcriber"):
        task.forward(Hears(task), batch)
    with pytest.raises(TypeError, match="no scores of next tokens, which attention needs"):
        run.task.searcher.write(Frames(task), [np.zeros((8, task.bins), dtype=np.float32)])


class Hidden(nn.Module):
    """A model whose class nobody knows."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *samples, **layouts):
        return self.inner(*samples, **layouts)


BEAM = DecodeConfig(method="beam", best=3, beam=BeamConfig(width=3), max_length=7)
WAYS = {
    "greedy": replace(BEAM, method="greedy", best=1),
    "beam": BEAM,
    "sample": replace(BEAM, method="sample", best=2),
}


@pytest.mark.parametrize("way", WAYS)
@torch.no_grad()
def test_reading_all_again_writes_what_a_cache_writes(way):
    """Rows of different lengths, which end at different steps."""
    torch.manual_seed(3)
    config = glassformer.ModelConfig(encoder=STACK, decoder=STACK)
    model = glassformer.build_transformer(config, vocabulary=13, source=11).eval()
    samples, layout = torch.randint(4, 11, (3, 5)), Layout.padded([5, 2, 4])
    request = Request(end=2, limits=[7, 3, 5], seeds=[1, 2, 3])
    found = [
        decode(translating(one, samples, layout, first=1), request, WAYS[way])
        for one in (model, Hidden(model))
    ]
    assert [[x.tokens for x in row] for row in found[0]] == [
        [x.tokens for x in row] for row in found[1]
    ]


@pytest.mark.parametrize("way", WAYS)
@torch.no_grad()
def test_prompts_of_different_lengths_are_read_again_alike(way):
    torch.manual_seed(3)
    model = glassformer.build_language_model(
        glassformer.ModelConfig(decoder=STACK), vocabulary=13
    ).eval()
    prompts = [[1, 4, 5, 6], [1], [1, 7]]
    request = Request(end=2, prompts=prompts, seeds=[1, 2, 3])
    scorers = continuing(model, prompts), continuing(Hidden(model), prompts)
    assert isinstance(scorers[1], WholeScorer)
    one, other = (decode(scorer, request, WAYS[way]) for scorer in scorers)
    assert [[x.tokens for x in row] for row in one] == [[x.tokens for x in row] for row in other]
