"""`translate`: it learns, and the fast ways to read and write say what the plain ones say."""

import numpy as np
import pytest
import torch
from small_jobs import everything
from small_pairs import STACK, backwards, pair_job, taught_quickly
from torch.nn import functional as F

from glassformer.config import OptimiserConfig, stack_of_size
from glassformer.config.run import config_of
from glassformer.config.values import merge_values, plain
from glassformer.core.layout import Layout
from glassformer.data.jagged import Jagged
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.tasks.translate import writing
from glassformer.tasks.translate.batch import pair_batch
from glassformer.tasks.translate.predictor import TranslatePredictor
from glassformer.tasks.translate.reporter import TranslateReporter
from glassformer.tasks.translate.settings import TranslateConfig, translate_defaults
from glassformer.training.schedules import lr_at

PAIRS = [("ab", "ba"), ("abcde", "edcba"), ("c", "c"), ("dea", "aed"), ("bb", "bb")]
STEPS = 20
MIXES = [("gru", "lstm"), ("lstm", "attention"), ("tcn", "gru"), ("attention", "tcn")]


def kinds(encoder, decoder):
    width = {"width": 3}
    return {
        "encoder": {"kind": encoder, "convolution": width},
        "decoder": {"kind": decoder, "convolution": width},
    }


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A translator that has learned to read numbers from the right."""
    stack = {"position": "t5", "attention": {"heads": 4}}
    settings = {
        "model": {"encoder": stack, "decoder": stack},
        "data": {"form": "padded"},
        "task": {"label_smoothing": 0.0},
    }
    job = pair_job(tmp_path_factory.mktemp("reader") / "job", backwards(), **settings)
    return job, taught_quickly(job, 130)


def fresh(job):
    torch.manual_seed(3)
    return job.model().eval()


# Learning


def test_it_learns_to_read_numbers_backwards_that_it_has_never_seen(reader):
    job, model = reader
    found = job.answers(model, [everything(job, "test")])
    assert found.values()["exact"] >= 0.9
    assert job.goal == "exact"
    assert job.score(model, [everything(job, "test")])["exact"] >= 0.9
    assert [one.text for one in TranslatePredictor(job).predict(model, ["012", "543"])] == [
        "210",
        "345",
    ]


def test_a_gru_with_bahdanau_attention_learns_the_same(tmp_path):
    job = pair_job(tmp_path / "job", backwards(), model=kinds("gru", "gru"))
    model = taught_quickly(job, 60)
    assert job.answers(model, [everything(job, "test")]).values()["exact"] >= 0.9


@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.usefixtures("without_shape_hook")
def test_six_and_six_layers_train_stably_in_either_order(order, tmp_path):
    deep = {"depth": 6, "dim": 16, "order": order}
    job = pair_job(tmp_path / "job", backwards(0), model={"encoder": deep, "decoder": deep})
    torch.manual_seed(0)
    model = job.model().train()
    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98))
    schedule = OptimiserConfig(lr=3e-3, schedule="inverse-root", warmup=0.3)
    losses = []
    for step in range(STEPS):
        batch = job.batch("train", np.arange(step % 6, 216, 6), step)
        for group in optimiser.param_groups:
            group["lr"] = lr_at(step + 1, STEPS, schedule)
        found = job.loss(job.forward(model, batch), batch)
        loss = found.total / found.count
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
    assert np.isfinite(losses).all()
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])
    assert max(losses[5:]) < 1.2 * max(losses[:5])


# Packed = padded, batch = one by one, cached = uncached


@pytest.mark.parametrize("mix", [("attention", "attention"), *MIXES], ids="-".join)
def test_packed_and_padded_rows_have_one_loss_and_one_answer(mix, tmp_path):
    found = []
    for form in ("packed", "padded"):
        job = pair_job(tmp_path / form, PAIRS, model=kinds(*mix), data={"form": form})
        model, batch = fresh(job), everything(job)
        assert batch.source_layout.is_packed == (form == "packed")
        loss = job.loss(job.forward(model, batch), batch)
        answers = job.answers(model, [batch])
        found.append((loss.total.item(), loss.count.item(), answers.hypotheses, answers.nll))
    packed, padded = found
    assert packed[0] == pytest.approx(padded[0], abs=1e-3)
    assert packed[1] == padded[1] == sum(len(target) + 1 for _, target in PAIRS)
    assert packed[2] == padded[2]
    np.testing.assert_allclose(packed[3], padded[3], atol=1e-4)


def test_a_batch_says_what_its_rows_say_one_by_one(reader):
    job, model = reader
    batch = job.batch("test", np.arange(7), None)
    rows = [job.batch("test", np.array([n]), None) for n in range(7)]
    together, apart = job.answers(model, [batch]), job.answers(model, reversed(rows))
    assert together.hypotheses == apart.hypotheses
    assert together.references == apart.references
    np.testing.assert_allclose(together.nll, apart.nll, atol=1e-4)
    texts = ["012", "5", "", "1 2"]
    predict = TranslatePredictor(job).predict
    in_one = [one.text for one in predict(model, texts)]
    assert in_one == [next(predict(model, [text])).text for text in texts]


def test_scores_of_an_answer_are_those_of_teacher_forcing(reader):
    job, model = reader
    for found in TranslatePredictor(job).predict(model, ["031", "5544", "20"]):
        ids = [token["id"] for token in found.details["tokens"]]
        assert ids[-1] == Tokenizer.end
        assert found.text == job.pair.target.decode(ids[:-1])
    for text in ("031", "5544"):
        [found] = TranslatePredictor(job).predict(model, [text])
        [source] = job.pair.source.encode([text])
        [target] = job.pair.target.encode([found.text])
        sides = job.pair.read(Jagged.of([source]), None), Jagged.of([target])
        batch = pair_batch(*sides, np.zeros(1, dtype=np.int64), packed=True)
        with torch.no_grad():
            references = job.forward(model, batch).log_softmax(-1)
        references = references.gather(1, batch.labels[:, None])[:, 0]
        said = [token["log_probability"] for token in found.details["tokens"]]
        np.testing.assert_allclose(said, references, atol=1e-4)


def test_the_loss_is_smoothed_while_learning_and_plain_in_scores(tmp_path):
    job = pair_job(tmp_path / "job", PAIRS, task={"label_smoothing": 0.2})
    model, batch = fresh(job), everything(job)
    scores = job.forward(model, batch)
    plainly = F.cross_entropy(scores, batch.labels)
    smoothed = 0.8 * plainly - 0.2 * scores.log_softmax(-1).mean()
    loss = job.loss(scores, batch)
    assert (loss.total / loss.count).item() == pytest.approx(smoothed.item(), rel=1e-5)
    assert job.score(model, [batch])["loss"] == pytest.approx(plainly.item(), rel=1e-4)
    assert "label smoothing (0.2)" in job.objective_note


def test_two_answers_differ_by_their_divergence(tmp_path):
    job = pair_job(tmp_path / "job", PAIRS)
    batch = everything(job)
    one, other = torch.randn(2, len(batch.labels), job.pair.target_size)
    assert job.divergence(one, one, batch).total.item() == pytest.approx(0, abs=1e-5)
    references = F.kl_div(
        other.log_softmax(-1), one.log_softmax(-1), reduction="sum", log_target=True
    )
    assert job.divergence(one, other, batch).total.item() == pytest.approx(
        references.item(), rel=1e-5
    )


# What is read and written


def test_a_batch_holds_what_is_read_what_is_told_and_what_comes_next(tmp_path):
    job = pair_job(tmp_path / "job", [("ab", "xy")], data={"form": "padded"})
    batch = everything(job)
    assert job.pair.source.pieces(batch.source[0]) == ["a", "b", "<end>"]
    assert job.pair.target.pieces(batch.decoder_input[0]) == ["<start>", "x", "y"]
    assert job.pair.target.pieces(batch.labels) == ["x", "y", "<end>"]
    assert batch.tokens == 6 == job.lengths("train").sum()


@pytest.mark.parametrize("special", ["unknown", "mask", "start", "tag"])
def test_specials_and_tags_are_never_written(special, tmp_path):
    rows = [{"source": s, "target": t, "to": "de"} for s, t in PAIRS]
    job = pair_job(tmp_path / "job", rows, task={"joint": True})
    model, number = fresh(job), getattr(Tokenizer, special, job.pair.source.size)
    with torch.no_grad():
        for name, weight in model.decoder.norm.named_parameters():
            weight.fill_(1.0 if name.endswith("bias") else 0.0)
        model.target.table.weight[number] = 1.0  # so it is the likeliest at every step
    source, reads = torch.tensor([[job.pair.source.size, 5, Tokenizer.end]]), Layout.full(1, 3)
    first = torch.tensor([[Tokenizer.start]])
    with torch.no_grad():
        scores = model(source, first, source=reads, target=Layout.full(1, 1))
    assert scores.argmax() == number
    for found in TranslatePredictor(job).predict(model, ["<de> ab", "<de> c"]):
        assert number not in {token["id"] for token in found.details["tokens"]}


def test_long_texts_are_cut_and_it_is_said(tmp_path):
    rows = [("ab", "ba"), ("abcdef", "x"), ("b", "fedcba"), ("abcdefg", "x")]
    job = pair_job(tmp_path / "job", rows, task={"max_length": 5})
    first, second = TranslateReporter(job).remarks()
    assert first == (
        "2 source texts have more than task.max_length = 5 tokens and are truncated, "
        f"the first at {tmp_path / 'job' / 'rows.jsonl'} row 2; the longest has 7"
    )
    assert second.startswith("1 target texts have more")
    assert (
        everything(job).source_layout.lengths.max()
        == everything(job).target_layout.lengths.max()
        == 6
    )
    model = fresh(job)
    whole, cut = TranslatePredictor(job).predict(model, ["abcde", "abcdefga"])
    assert "unread" not in whole.details
    assert cut.details["unread"] == 3
    assert all(len(one.details["tokens"]) <= 6 for one in (whole, cut))  # an end counts


def test_targets_that_cannot_be_written_are_told(tmp_path):
    held_out = [{"source": "a", "target": t, "split": "valid"} for t in ("ba", "bß")]
    job = pair_job(tmp_path / "job", [*PAIRS, *held_out])
    [remark] = TranslateReporter(job).remarks()
    assert remark.startswith("1 of 2 validation and test targets contain something")
    assert remark.endswith("row 7")
    assert job.score(fresh(job), [everything(job, "valid")])["exact"] == 0


@pytest.mark.parametrize("position", ["learned", "sinusoidal"])
def test_positions_reach_the_longest_text_with_its_tag_and_end(position, tmp_path):
    rows = [{"source": "ab" * 10, "target": "b" * 20, "to": "de"}]
    stacks = {name: {"position": position, "max_length": 3} for name in ("encoder", "decoder")}
    job = pair_job(tmp_path / "job", rows, model=stacks, task={"max_length": 20})
    model = fresh(job)
    assert job.forward(model, everything(job)).shape == (21, job.pair.target_size)
    assert next(TranslatePredictor(job).predict(model, ["<de> " + "ab" * 10])).text is not None


def test_merges_are_dropped_and_tokens_hidden_only_while_learning(tmp_path):
    text = "the cat saw the other cat and the dog"
    tokens = {"kind": "bpe", "vocabulary": 300, "dropout": 0.5}
    job = pair_job(tmp_path / "job", [(text, text)] * 3, data={"tokenizer": tokens})
    asked, one, other = (everything(job, epoch=epoch) for epoch in (None, 0, 1))
    assert job.settings.target.dropout == 0.5  # like the source
    assert one.tokens > asked.tokens
    assert len({batch.labels.numpy().tobytes() for batch in (asked, one, other)}) == 3
    again = everything(job, epoch=1)
    assert other.source.equal(again.source)
    assert other.labels.equal(again.labels)
    assert one.source.tolist() != one.labels.tolist(), "each side is broken in its own way"
    hiding = pair_job(tmp_path / "other", PAIRS, data={"token_dropout": 0.5})
    hidden = [everything(hiding, epoch=epoch) for epoch in (0, None)]
    assert [bool((batch.source == Tokenizer.mask).any()) for batch in hidden] == [True, False]
    assert hidden[0].labels.equal(hidden[1].labels)
    starts = hidden[0].source_layout.bounds[:-1].long()
    assert hidden[0].source[starts].equal(hidden[1].source[starts]), "the first token stays"
    alone = hiding.batch("train", np.array([1]), 0).source
    assert alone.equal(hidden[0].source[starts[1] : starts[2]]), "whatever its neighbours"


def test_either_script_of_chinese_is_read_and_simplified_is_written_and_right(tmp_path):
    pytest.importorskip("opencc")
    rows = [("book", "這是書"), {"source": "hair", "target": "頭髮", "references": ["头发", "发"]}]
    settings = {"data": {"tokenizer": {"simplified": True}}}
    job = pair_job(tmp_path / "there", rows, **settings)
    batch = everything(job)
    assert batch.references == (("这是书",), ("头发", "发"))
    assert job.settings.target.simplified
    back = pair_job(
        tmp_path / "back", [("這是書", "book")], data={"tokenizer": {"simplified": True}}
    )
    said = [one.text for one in TranslatePredictor(back).predict(fresh(back), ["這是書", "这是书"])]
    assert said[0] == said[1]
    assert back.pair.source.unknown not in everything(back).source


# Target languages


def tagged(source, target, to, **more):
    return {"source": source, "target": target, "to": to, **more}


def test_one_model_writes_the_language_that_the_tag_names(tmp_path):
    words = ["".join(pair) for pair in zip("abcdabcd", "bcdacdab", strict=True)]
    rows = [tagged(w, w[::-1], "back") for w in words] + [tagged(w, w, "same") for w in words]
    job = pair_job(tmp_path / "job", rows, task={"label_smoothing": 0.0})
    assert job.pair.tags == ("back", "same")
    assert job.lengths("train").sum() == everything(job).tokens
    model = taught_quickly(job, 60)
    said = [
        one.text
        for one in TranslatePredictor(job).predict(model, ["<back> ab", "<same> ab", " <back>ab"])
    ]
    assert said == ["ba", "ab", "ba"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ab", "'ab' has no target language; start it with one of <de>, <fr>"),
        ("<de>", "'<de>' has no target language"),
        ("<es> ab", "'<es> ab': unknown target language 'es'; this model translates into de, fr"),
    ],
)
def test_a_text_without_a_tag_that_is_known_is_refused(text, complaint, tmp_path):
    job = pair_job(tmp_path / "job", [tagged("a", "b", "fr"), tagged("b", "c", "de")])
    with pytest.raises(GlassformerError) as caught:
        list(TranslatePredictor(job).predict(fresh(job), [text]))
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (tagged("x", "y", ""), "row 3: has no target language; fill in the"),
        (tagged("x", "y", "es", split="valid"), "row 3: unknown target language 'es'; this"),
        ({"source": "x", "target": "y"}, "row 3: has no target language"),
    ],
)
def test_a_row_without_a_target_language_is_refused_before_training(row, complaint, tmp_path):
    rows = [tagged("a", "b", "fr"), tagged("b", "c", "de"), row]
    with pytest.raises(GlassformerError) as caught:
        pair_job(tmp_path / "job", rows)
    assert f"{tmp_path / 'job' / 'rows.jsonl'} {complaint}" in str(caught.value)


# Settings


def test_settings_of_decoding_change_the_search_and_nothing_else():
    values = merge_values(translate_defaults(False), {"task": {"decode": {"beam": {"width": 7}}}})
    decode = config_of(values | {"job": "translate"}, TranslateConfig).task.decode
    assert (decode.method, decode.beam.width, decode.beam.stopping) == ("beam", 7, "soon")
    assert decode.max_length >= 4096  # `task.max_length` is the limit


@pytest.mark.parametrize(("share", "joint", "tables"), [(True, True, 1), (False, True, 2)])
def test_one_vocabulary_is_read_and_written_with_one_embedding_unless_told(
    share, joint, tables, tmp_path
):
    job = pair_job(tmp_path / "job", PAIRS, model={"share": share}, task={"joint": joint})
    names = [name for name, _ in fresh(job).named_parameters() if "table" in name]
    assert len(names) == tables


def test_widths_may_differ_where_the_embeddings_do(tmp_path):
    model = {"decoder": {"dim": 20}, "share": False}
    job = pair_job(tmp_path / "job", PAIRS, model=model)
    assert job.forward(fresh(job), everything(job)).shape[1] == job.pair.target_size
    with pytest.raises(GlassformerError, match="a decoder of one width"):
        pair_job(tmp_path / "other", PAIRS, model={"decoder": {"dim": 20}})


def test_the_usual_model_is_the_papers_on_a_gpu():
    base = plain(stack_of_size("base", max_length=512, dropout=0.1))
    assert translate_defaults(True)["model"]["encoder"] == base
    assert STACK["dim"] < base["dim"]


@pytest.mark.parametrize(
    ("task", "complaint"),
    [
        ({"max_length": 1}, "task.max_length must be at least 2"),
        ({"measure": "blue"}, "unknown task.measure 'blue'; the choices are auto, text"),
        ({"label_smoothing": 1.0}, "task.label_smoothing must lie in"),
        ({"monolingual": ("x.txt",)}, "task.monolingual has no sources; name the run"),
        ({"backward": "runs/x"}, "task.backward=runs/x has nothing to translate; name a file"),
    ],
)
def test_settings_that_make_no_sense_are_refused(task, complaint):
    with pytest.raises(GlassformerError, match=complaint):
        TranslateConfig(**task)


def test_a_rehearsal_writes_no_more_than_what_is_right(tmp_path, monkeypatch):
    job = pair_job(tmp_path / "job", [("abcde" * 4, "a"), ("b", "ba")])
    model, batch, asked = fresh(job), everything(job), []
    decode = writing.decode
    monkeypatch.setattr(
        writing, "decode", lambda *given: asked.append(given[1].limits) or decode(*given)
    )
    said = job.for_timing().score(model, [batch])
    job.score(model, [batch])
    assert list(asked[0]) == batch.target_layout.lengths.tolist()
    assert min(asked[1]) > 30
    assert set(said) == set(job.score(model, [batch]))
