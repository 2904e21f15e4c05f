"""`pretrain`: gaps in raw text, filled, and what is learned so taken along to labels."""

import math

import numpy as np
import pytest
import torch
from small_jobs import everything, job_of, taught
from torch.distributions import Categorical, kl_divergence

from glassformer.errors import GlassformerError
from glassformer.runs.api import train
from glassformer.runs.prepare import initial_model
from glassformer.tasks.pretrain.predictor import PretrainPredictor
from glassformer.tasks.pretrain.reporter import PretrainReporter
from glassformer.training.weights import read_tensors, weights_of

ANIMALS = {"red": "fox", "grey": "wolf", "black": "crow", "white": "swan", "brown": "bear"}
PLACES = ("hill", "river", "wood", "lake", "road", "house", "bridge")
TEXTS = [
    f"the {colour} {animal} sleeps by the {place}"
    for colour, animal in ANIMALS.items()
    for place in PLACES
]
WORDS = {"data": {"tokenizer": {"kind": "words"}}}


def filler(folder, texts=TEXTS, held=(), **settings):
    rows = [{"text": text} for text in texts]
    rows += [{"text": text, "split": "valid"} for text in held]
    return job_of("pretrain", folder, rows, **(WORDS | settings))


def shown_and_true(job, batch):
    """The row of shown tokens as one line, and the same with the gaps filled in."""
    line = batch.ids.reshape(-1)
    true = line.clone()
    true[batch.positions] = batch.labels
    return line, true


@pytest.mark.parametrize("kind", ["characters", "bpe", "words"])
@pytest.mark.parametrize("form", ["packed", "padded"])
def test_the_gaps_of_a_batch_are_whole_words_of_its_texts(tmp_path, kind, form):
    data = {"tokenizer": {"kind": kind, "vocabulary": 300}, "form": form}
    job = filler(tmp_path, data=data, task={"masked": 0.3})
    batch = everything(job, epoch=0)
    shown, true = shown_and_true(job, batch)
    rows = batch.layout.row_of
    if rows is None:
        rows = torch.arange(len(TEXTS)).repeat_interleave(batch.layout.longest)
    assert torch.equal(rows[batch.positions], batch.row_ids)
    for row, text in enumerate(TEXTS):
        ids = job.tokenizer.encode([text])[0]
        line = true[rows == row][: len(ids) + 1]
        assert line.tolist() == [job.tokenizer.start, *ids.tolist()]
        places = torch.nonzero(rows == row)[1 : len(ids) + 1, 0]
        asked = torch.isin(places, batch.positions).numpy()
        words = job.tokenizer.word_of(ids)
        assert asked.any()
        assert all(len({*asked[words == word].tolist()}) == 1 for word in range(words[-1] + 1))
        hidden = shown[places].numpy() != ids
        assert not (hidden & ~asked).any(), "what is not asked about is shown"


def test_about_the_asked_share_is_hidden_and_no_special_stands_in(tmp_path):
    job = filler(tmp_path, task={"masked": 0.4})
    batches = [everything(job, epoch=epoch) for epoch in range(20)]
    words = sum(batch.tokens - len(TEXTS) for batch in batches)
    assert sum(len(batch.positions) for batch in batches) / words == pytest.approx(0.4, abs=0.02)
    inside = torch.cat([batch.ids[batch.positions] for batch in batches])
    assert {*inside[inside < 4].tolist()} == {job.tokenizer.mask}


def test_gaps_are_the_same_in_every_evaluation_and_others_in_every_epoch(tmp_path):
    one, two = filler(tmp_path / "a"), filler(tmp_path / "b", seed=1)
    still = everything(one)
    assert torch.equal(still.ids, everything(one).ids)
    assert torch.equal(still.ids, everything(two).ids), "two runs are asked the same"
    epochs = [everything(one, epoch=epoch).ids for epoch in (0, 1)]
    assert torch.equal(epochs[0], everything(one, epoch=0).ids)
    assert not torch.equal(*epochs)
    assert not torch.equal(epochs[0], everything(two, epoch=0).ids)
    alone = one.batch("train", np.array([11]), 1)
    start = one.lengths("train")[:11].sum()
    assert torch.equal(alone.ids, epochs[1][start : start + len(alone.ids)])


def test_packed_is_padded(tmp_path):
    texts = [" ".join(TEXTS[:n]) for n in (1, 3, 2)] + ["fox"]
    packing, padding = (
        filler(tmp_path / form, texts, data=WORDS["data"] | {"form": form})
        for form in ("packed", "padded")
    )
    model = packing.model().eval()
    with torch.no_grad():
        losses = [
            job.loss(job.forward(model, batch), batch)
            for job in (packing, padding)
            for batch in [everything(job)]
        ]
        tables = [job.answers(model, [everything(job)]) for job in (packing, padding)]
    assert (everything(packing).ids.ndim, everything(padding).ids.ndim) == (1, 2)
    assert losses[0].total == pytest.approx(losses[1].total.item(), rel=1e-5)
    assert losses[0].count == losses[1].count == len(everything(packing).positions)
    assert np.allclose(tables[0].nll, tables[1].nll, atol=1e-4)


@pytest.mark.parametrize("longest", [2, 4, 7, 64])
def test_pieces_cover_every_token_of_every_text_exactly_once(tmp_path, longest):
    texts = [" ".join(PLACES[:n] * 2) for n in (1, 2, 3, 5, 7)]
    job = filler(tmp_path, texts, task={"max_length": longest})
    lengths = job.lengths("train")
    assert lengths.max() <= longest
    found = {text: [] for text in texts}
    for row, length in enumerate(lengths.tolist()):
        batch = job.batch("train", np.array([row]), 0)
        assert batch.tokens == length
        _, true = shown_and_true(job, batch)
        assert true[0] == job.tokenizer.start
        owner = job.pieces("train")[0][row]
        found[texts[owner]] += true[1:].tolist()
    for text, ids in found.items():
        assert ids == job.tokenizer.encode([text])[0].tolist()


def test_nobody_is_asked_for_a_word_that_is_unknown(tmp_path):
    data = {"tokenizer": {"kind": "words", "vocabulary": 4 + 5}}
    job = filler(tmp_path, data=data, task={"masked": 0.5})
    batch = everything(job, epoch=0)
    unknown = torch.cat([torch.from_numpy(ids) for ids in job.tokenizer.encode(TEXTS)]) == 0
    assert unknown.float().mean() > 0.2
    for row in range(len(TEXTS)):
        asked = batch.labels[batch.row_ids == row] == job.tokenizer.unknown
        assert asked.all() or not asked.any(), "only where there is nothing else"
    assert (batch.labels == job.tokenizer.unknown).float().mean() < 0.05
    alone = filler(tmp_path / "b", TEXTS, held=["Ω"], data=data)
    assert everything(alone, "valid").labels.tolist() == [job.tokenizer.unknown]


def test_scores_are_means_over_the_gaps_and_perplexity_is_their_exponential(tmp_path):
    job = filler(tmp_path)
    model = job.model().eval()
    batches = [job.batch("train", rows, None) for rows in np.array_split(np.arange(35), 4)]
    with torch.no_grad():
        found = job.score(model, batches)
        whole = everything(job)
        said = job.forward(model, whole)
        answers = job.answers(model, batches)
    loss = job.loss(said, whole)
    assert found["loss"] == pytest.approx((loss.total / loss.count).item(), rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(found["loss"]))
    assert found["accuracy"] == pytest.approx((said.argmax(-1) == whole.labels).double().mean())
    scores = PretrainReporter(job).scores(answers)
    assert scores["perplexity"].value == pytest.approx(math.exp(scores["loss"].value))
    assert scores["loss"].low < scores["loss"].value == pytest.approx(found["loss"])
    assert answers.gaps.sum() == len(whole.positions)
    assert len(answers.gaps) == len(TEXTS)


def test_the_divergence_is_kullback_and_leiblers(tmp_path):
    job = filler(tmp_path)
    batch = everything(job)
    a, b = torch.randn(2, len(batch.positions), job.tokenizer.size)
    theirs = kl_divergence(Categorical(logits=a), Categorical(logits=b)).sum()
    assert job.divergence(a, b, batch).total == pytest.approx(theirs.item(), rel=1e-4)
    assert job.divergence(a, b, batch).count == job.loss(a, batch).count
    assert job.divergence(a, a, batch).total == 0


def test_runs_with_different_gaps_are_not_compared(tmp_path):
    job = filler(tmp_path / "a")
    other = filler(tmp_path / "b", task={"max_length": 4})
    with torch.no_grad():
        answers = [some.answers(some.model().eval(), [everything(some)]) for some in (job, other)]
    assert PretrainReporter(job).compare(answers[0], answers[0])["loss"].difference.value == 0
    with pytest.raises(GlassformerError, match=r"the two runs mask different tokens, since the"):
        PretrainReporter(job).compare(*answers)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A tiny corpus, known by heart."""
    job = filler(tmp_path_factory.mktemp("heart"), data=WORDS["data"] | {"batch_tokens": 512})
    return job, taught(job, 150, rate=2e-2)


def test_it_learns_a_tiny_corpus_by_heart(learned):
    job, model = learned
    for colour, animal in ANIMALS.items():
        found = next(
            PretrainPredictor(job).predict(model, [f"the {colour} <mask> sleeps by the lake"])
        )
        assert found.text == f"the {colour} {animal} sleeps by the lake"
        assert found.confidence > 0.5
        assert next(iter(found.details["gaps"][0])) == animal


def test_several_gaps_are_filled_at_once_and_alternatives_are_told(learned):
    job, model = learned
    found = next(PretrainPredictor(job).predict(model, ["the <mask> fox sleeps <mask> the <mask>"]))
    assert found.text.startswith("the red fox sleeps by the ")
    gaps = found.as_values()["gaps"]
    assert [next(iter(gap)) for gap in gaps[:2]] == ["red", "by"]
    assert {*gaps[2]} <= {*PLACES}
    for gap in gaps:
        assert list(gap.values()) == sorted(gap.values(), reverse=True)
        assert sum(gap.values()) <= 1 + 1e-6
    assert found.confidence == pytest.approx(math.prod(max(gap.values()) for gap in gaps))


def test_a_gap_in_a_long_text_is_seen_with_what_stands_around_it(learned):
    job, model = learned
    around = "the white <mask> sleeps by the wood"
    long = " ".join([*TEXTS[:40], around, *TEXTS[:40]])
    assert (
        "the white swan sleeps by the wood"
        in next(PretrainPredictor(job).predict(model, [long])).text
    )
    for text in (f"{around} {long}"[:-1], " ".join(TEXTS[:41]) + " the white <mask>"):
        assert (
            "<mask>"
            not in next(PretrainPredictor(job).predict(model, [text.replace(long, TEXTS[0])])).text
        )


def test_alternatives_are_shown_for_each_gap(learned):
    job, model = learned
    predictor = PretrainPredictor(job).configured(alternatives=2)
    [found] = predictor.predict(model, ["the <mask> fox sleeps by the <mask>"])
    assert [len(fill) for fill in found.details["gaps"]] == [3, 3]
    assert len(found.below) == 4
    assert all(line.startswith("  or ") for line in found.below)


def test_an_empty_text_has_an_empty_answer(learned):
    job, model = learned
    [found] = PretrainPredictor(job).predict(model, [" "])
    assert (found.text, found.empty) == ("", True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no gap\nat all", "'no gap\\nat all' has no gap to fill; write <mask> for it"),
        (
            "<mask> " + "fox " * 300 + "<mask>",
            "'<mask> fox fox fox fox fox fox fox fox f' has gaps 301 tokens apart, but the model "
            "reads 255 tokens at once; fill them one by one",
        ),
    ],
)
def test_what_cannot_be_filled_is_refused_in_one_line(learned, text, words):
    job, model = learned
    with pytest.raises(GlassformerError) as refusal:
        list(PretrainPredictor(job).predict(model, [text]))
    assert str(refusal.value) == words


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("the red <mask> sleeps", ["the", " red", "<mask>", " sleeps"]),
        ("<mask> red fox", ["<mask>", " red", " fox"]),
        ("the <mask><mask>", ["the", "<mask>", "<mask>"]),
    ],
)
def test_a_gap_takes_the_blank_before_it_where_words_do(tmp_path, text, read):
    data = {"tokenizer": {"kind": "bpe", "vocabulary": 320}}
    job = filler(tmp_path, data=data)
    ids, gaps = PretrainPredictor(job)._with_gaps(text)
    assert job.tokenizer.pieces(ids) == ["<start>", *read]
    assert gaps.tolist() == [n + 1 for n, piece in enumerate(read) if piece == "<mask>"]
    assert next(PretrainPredictor(job).predict(job.model().eval(), [text])).text.count("  ") == 0


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A run that learned the texts, from a file with labels beside them."""
    folder = tmp_path_factory.mktemp("pretrained")
    lines = [f"{text},{colour}" for text in TEXTS for colour in ANIMALS if colour in text]
    (folder / "animals.csv").write_text("\n".join(["text,label", *lines]))
    small = [f"model.encoder.{s}" for s in ("dim=16", "depth=1", "attention.heads=2")]
    return train(
        "pretrain",
        folder / "animals.csv",
        run=folder / "run",
        steps=3,
        quiet=True,
        set=(*small, "data.tokenizer.vocabulary=280", "data.valid_share=0.2"),
    )


def test_classify_begins_with_what_pretraining_learned(pretrained):
    folder = pretrained.folder.path
    run = train(
        "classify",
        folder.parent / "animals.csv",
        run=folder.parent / "labels",
        from_=folder,
        steps=1,
        quiet=True,
        set=("train.optimiser.lr=0.1", "model.ngrams=no"),
    )
    job = run.folder.open_task(run.config, run.folder.data)
    first = weights_of(initial_model(job, run.config, run.folder))
    learned = read_tensors(pretrained.folder.model)
    shared = [name for name in first if name.split(".")[0] in ("frontend", "encoder")]
    assert {*shared} == {*learned}
    assert all(torch.equal(first[name], learned[name]) for name in shared)
    assert not all(torch.equal(first[name], weights_of(run.model)[name]) for name in shared)
    tokenizers = [(path / "tokenizer.json").read_bytes() for path in (folder, run.folder.path)]
    assert tokenizers[0] == tokenizers[1]
    assert run.config.data.tokenizer == pretrained.config.data.tokenizer
    assert run.config.data.tokenizer.kind == "bpe"


def test_raw_text_is_enough_and_a_run_fills_its_gaps(pretrained):
    assert pretrained.config.job == "pretrain"
    assert {"loss", "perplexity", "accuracy"} <= {*pretrained.report["scores"]["this model"]}
    found = pretrained.predict("the red <mask> sleeps")
    assert found.text.startswith("the red ")
    assert found.text.endswith(" sleeps")
    assert len(found.details["gaps"]) == 1


def test_settings_that_teach_nothing_are_refused(tmp_path):
    with pytest.raises(
        GlassformerError, match=r"task.masked must be above 0: without masks nothing"
    ):
        filler(tmp_path, task={"masked": 0.0})
    with pytest.raises(GlassformerError, match=r"task.max_length must be at least 2: a start and"):
        filler(tmp_path, task={"max_length": 1})
