"""`generate`: windows of texts that do not see each other, likelihoods, and continuations."""

import json
import math
import random
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_jobs import everything, job_of, taught

from glassformer.config import DataConfig, RegulariserConfig
from glassformer.core.layout import Layout
from glassformer.decode import cut_at_stop
from glassformer.errors import GlassformerError
from glassformer.tasks.generate import ngram_baseline, predictor as predictor_module, task
from glassformer.tasks.generate.answers import Likelihoods
from glassformer.tasks.generate.data import GenerateSchema
from glassformer.tasks.generate.predictor import GeneratePredictor
from glassformer.tasks.generate.reporter import GenerateReporter
from glassformer.tasks.generate.streaming import Streamed
from glassformer.tasks.shared.losses import IGNORED
from glassformer.tasks.shared.ngram_model import NgramModel

RHYMES = [
    "the cat sat on the mat\nand looked at the rat",
    "a fox in a box",
    "one, two, buckle my shoe; three, four, knock at the door",
    "é 白日依山尽",
]
SMALL = {"decoder": {"dim": 24, "depth": 1, "dropout": 0.0, "attention": {"heads": 2}}}
KINDS = ("characters", "bytes", "bpe")


def writer(folder, texts=RHYMES, held=RHYMES[:3], kind="characters", **settings):
    rows = [{"text": text} for text in texts]
    rows += [{"text": text, "split": "valid"} for text in held]
    values = {"model": SMALL, "data": {"tokenizer": {"kind": kind, "vocabulary": 300}}} | settings
    return job_of("generate", folder, rows, **values)


def as_read(job, texts):
    """Every text as ids and labels: after a start, and before an end."""
    pairs = []
    for text in texts:
        ids = job.tokenizer.encode([text])[0].tolist()
        pairs.append(([job.tokenizer.start, *ids], [*ids, job.tokenizer.end]))
    return pairs


# What is trained on


def test_the_windows_of_an_epoch_hold_every_place_of_the_texts_once(tmp_path):
    job = writer(tmp_path, task={"max_length": 5})
    places = [pair for text in as_read(job, RHYMES) for pair in zip(*text, strict=True)]
    assert len(places) > 100
    batch = everything(job, epoch=3)
    found = [*zip(batch.ids.tolist(), batch.labels.tolist(), strict=True)]
    left = len(places) % 5
    assert len(found) == len(places) - left
    twice = [*places, *places]  # the stream is a ring
    starts = [n for n in range(len(places)) if twice[n : n + len(found)] == found]
    assert len(starts) == 1


def test_windows_begin_elsewhere_in_every_epoch_and_the_same_in_every_run(tmp_path):
    job, again = writer(tmp_path / "a"), writer(tmp_path / "b")
    first, second = everything(job, epoch=0), everything(job, epoch=1)
    assert not torch.equal(first.ids, second.ids)
    assert torch.equal(first.ids, everything(again, epoch=0).ids)


def test_a_text_sees_nothing_of_the_others_in_its_window(tmp_path):
    job = writer(tmp_path, task={"max_length": 64})
    model, batch = job.model(), everything(job, epoch=0)
    rows = batch.layout.row_of
    scores = model(batch.ids, layout=batch.layout)
    changed = batch.ids.clone()
    changed[rows == 1] = job.tokenizer.mask
    other = model(changed, layout=batch.layout)
    same = rows != 1
    assert batch.layout.rows == 3
    torch.testing.assert_close(scores[same], other[same], rtol=0, atol=1e-6)
    assert not torch.allclose(scores[~same], other[~same])


def test_a_batch_in_a_fixed_shape_has_the_same_loss(tmp_path):
    job = writer(tmp_path, task={"max_length": 16})
    model, batch = job.model(), everything(job, epoch=0)
    rows, longest, tokens = batch.sizes
    filled = batch.filled((rows + 3, longest + 1, tokens + 40))
    losses = [job.loss(job.forward(model, one), one) for one in (batch, filled)]
    torch.testing.assert_close(losses[0].total, losses[1].total)
    assert losses[0].count == losses[1].count == tokens
    both = batch.twice()
    torch.testing.assert_close(job.loss(job.forward(model, both), both).total / 2, losses[0].total)


def test_a_large_table_of_scores_never_exists_unless_training_compares_two(tmp_path):
    job = writer(tmp_path, task={"label_smoothing": 0.1})
    model, batch = job.model(), everything(job, epoch=0)
    output = job.forward(model, batch)
    found = job.loss(output, batch)
    assert output.ndim == 0
    train = replace(job.config.train, regularise=RegulariserConfig(r_drop=1.0))
    job.config = replace(job.config, train=train)
    expected = job.loss(job.forward(model, batch), batch)
    torch.testing.assert_close(found.total, expected.total)
    assert found.count == expected.count


def test_a_section_that_is_continued_does_not_learn_its_end(tmp_path):
    (tmp_path / "long.txt").write_text("".join(f"line {n}\n" for n in range(4000)))
    rows = GenerateSchema().open(str(tmp_path / "long.txt"), DataConfig())
    samples = [{"text": row["text"], "continued": row.values.get("continued")} for row in rows]
    assert [bool(sample["continued"]) for sample in samples] == [True, True, False]
    job = writer(tmp_path / "run")
    job.continued[:2] = True
    ends = everything(job, epoch=0).labels
    known = int((ends == job.tokenizer.end).sum())
    assert (known, int((ends == IGNORED).sum())) == (2, 2)


# How texts are scored


@pytest.mark.parametrize(("width", "stride"), [(8, 3), (8, 8), (64, 32)])
@torch.no_grad()
def test_sliding_windows_score_every_token_once_with_enough_before_it(tmp_path, width, stride):
    task = {"max_length": width, "stride": stride}
    job = writer(tmp_path, task=task)
    model, nll = job.model().eval(), []
    for ids, labels in as_read(job, RHYMES[:3]):
        for place, label in enumerate(labels):
            # Windows begin at multiples of the stride; the first that holds a place counts it.
            first = max(0, math.ceil((place + 1 - width) / stride)) * stride
            line = torch.tensor([ids[first : place + 1]])
            scores = model(line, layout=Layout.full(1, line.shape[1]))[0, -1]
            nll.append(-scores.log_softmax(-1)[label])
    found = job.answers(model, [everything(job, "valid")])
    assert found.tokens.sum() == len(nll)
    assert found.nll.sum() == pytest.approx(float(sum(nll)), rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_bits_per_byte_count_the_bytes_of_the_text_whatever_its_tokens(tmp_path, kind):
    long = "é 白日依山尽, " * 300
    job = writer(tmp_path, [*RHYMES, long], [long, "a fox"], kind=kind, task={"max_length": 32})
    found = job.answers(job.model().eval(), [everything(job, "valid")])
    sizes = [len(text.encode()) for text in (long, "a fox")]
    assert found.bytes.sum() == sum(sizes)
    assert found.bytes.tolist() == sizes  # documents are the units
    values = found.values()
    assert values["bits_per_byte"] == pytest.approx(found.nll.sum() / math.log(2) / sum(sizes))
    assert values["perplexity"] == pytest.approx(math.exp(values["loss"]))


@torch.no_grad()
def test_a_character_that_no_token_stands_for_is_spelt_out(tmp_path):
    held = ["a cat", "a ç t"]
    job = writer(tmp_path, held=held)
    model = job.model().eval()
    model.tokens.table.weight.zero_()  # all tokens are equally likely
    found = job.answers(model, [everything(job, "valid")])
    assert found.nll[1] - found.nll[0] == pytest.approx(21 * math.log(2))


def test_runs_with_other_tokens_are_compared_on_the_same_text(tmp_path):
    answers = []
    for kind in ("characters", "bytes"):
        job = writer(tmp_path / kind, kind=kind)
        with torch.no_grad():
            answers.append(job.answers(job.model().eval(), [everything(job, "valid")]))
    found = GenerateReporter(job).compare(*answers)["bits_per_byte"]
    bits = [one.values()["bits_per_byte"] for one in answers]
    assert found.difference.value == pytest.approx(bits[0] - bits[1])
    assert found.wins + found.losses == 3
    with pytest.raises(GlassformerError, match="read different texts"):
        GenerateReporter(job).compare(answers[0], Likelihoods(*(np.ones(2) for _ in "abc")))


# How texts go on


def last(found):
    *_, prediction = found
    return prediction


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A job that knows its rhymes by heart, and its model."""
    job = writer(tmp_path_factory.mktemp("learned"), RHYMES[:3])
    return job, taught(job, 120).eval()


def test_it_learns_the_rhymes_by_heart(learned):
    job, model = learned
    settings = ("decode.method=greedy",)
    predictor = GeneratePredictor(job).configured(set=settings)
    found = list(predictor.predict(model, ["the cat", "a fox", "one, two, b"]))
    assert [one.text for one in found] == RHYMES[:3]
    assert found[0].details["continuation"] == RHYMES[0].removeprefix("the cat")
    assert {one.details["ended"] for one in found} == {"end"}
    assert all(one.confidence > 0.5 for one in found)


@pytest.mark.parametrize("stop", [(), (" at", "rat"), ("mat\nand",)])
def test_a_stream_writes_what_a_prediction_says_in_pieces(learned, stop):
    job, model = learned
    settings = ("decode.method=greedy", f"decode.stop={json.dumps(stop)}")
    predictor = GeneratePredictor(job).configured(set=settings)
    *pieces, found = predictor.predict(model, ["the cat"])
    several = next(predictor.predict(model, ["the cat", "a"]))
    assert (found.text, found.details["ended"]) == (several.text, several.details["ended"])
    assert found.confidence == pytest.approx(several.confidence)
    assert "".join(piece.text for piece in pieces) == found.text
    assert len(pieces) > 8
    expected = RHYMES[0] if not stop else RHYMES[0][: min(map(RHYMES[0].find, stop))]
    assert found.text == expected


def test_a_stream_of_bytes_waits_for_whole_characters(tmp_path):
    job = writer(tmp_path, kind="bytes")
    streamed = Streamed(job.tokenizer, ())
    pieces = [streamed.add(int(token)) for token in job.tokenizer.encode(["é白"])[0]]
    assert pieces == ["", "é", "", "", "白"]


@pytest.mark.parametrize("kind", ["bytes", "characters", "bpe", "unigram"])
def test_a_stream_writes_what_stands_before_the_first_stop_text(tmp_path, kind):
    tokenizer, rng = writer(tmp_path, kind=kind).tokenizer, random.Random(1)
    for _ in range(200):
        ids = [rng.randrange(tokenizer.size) for _ in range(rng.randint(0, 12))]
        text = tokenizer.decode([one for one in ids if one != tokenizer.end])
        places = [rng.randrange(len(text) + 1) for _ in range(3)]
        stops = [stop for at in places if (stop := text[at : at + rng.randint(1, 4)])]
        streamed = Streamed(tokenizer, stops)
        written = "".join(map(streamed.add, ids))
        assert cut_at_stop(text, stops).startswith(written)
        assert streamed.length == len(written)
        longest = max(map(len, stops), default=0)
        assert len(written) >= len(cut_at_stop(text, stops)) - longest - 3  # bytes


def test_a_stream_takes_as_long_for_each_token_whatever_came_before_and_whatever_ends_it(tmp_path):
    tokenizer = writer(tmp_path).tokenizer
    ids = tokenizer.encode(["the cat sat on the mat and " * 400])[0].tolist()
    streamed, begun = Streamed(tokenizer, ["a" * 30_000, "at " * 10_000]), time.perf_counter()
    assert len("".join(map(streamed.add, ids))) > 10_000
    assert time.perf_counter() - begun < 2  # more than a minute if all is compared at each token


def test_other_prompts_change_nothing_and_an_empty_one_is_continued(learned):
    job, model = learned
    predictor = GeneratePredictor(job)
    alone = last(predictor.predict(model, ["a f"]))
    *_, together = predictor.predict(model, ["the", "", "a f"])
    assert together.text == alone.text
    assert last(predictor.predict(model, [""])).text


@pytest.mark.parametrize("method", ["greedy", "sample"])
def test_prompts_by_the_engine_go_on_as_in_batches(learned, method, monkeypatch):
    job, model = learned
    monkeypatch.setattr(predictor_module, "TOGETHER", 3)
    settings = (f"decode.method={method}", "decode.max_length=20", "decode.stop=['k']")
    predictor = GeneratePredictor(job).configured(set=settings, alternatives=2)
    prompts = [text[:end] for text in RHYMES for end in (9, 2, 5)]
    found = list(predictor.predict(model, prompts))
    assert len(found) == 12
    for one, other in zip(found, predictor._in_batches(model, prompts), strict=True):
        assert one.text == other.text
        one, other = (either.guess or either for either in (one, other))
        assert one.text == other.text
        assert one.confidence == pytest.approx(other.confidence)
        ids = [[t["id"] for t in token["instead"]] for token in one.details["tokens"]]
        others = [[t["id"] for t in token["instead"]] for token in other.details["tokens"]]
        assert ids == others


def test_a_prompt_too_long_for_the_engine_is_continued_beside_others(learned, monkeypatch):
    job, model = learned
    monkeypatch.setattr(predictor_module, "TOGETHER", 1)
    predictor = GeneratePredictor(job).configured(set=("decode.max_length=4",))
    prompts = ["the", "o" * 300, "a f", "i" * 300, "one"]
    found = list(predictor.predict(model, prompts))
    assert [one.text for one in found] == [
        last(predictor.predict(model, [prompt])).text for prompt in prompts
    ]


@pytest.mark.parametrize("count", [1, 2])
def test_rules_that_allow_no_token_are_refused_for_any_number_of_prompts(learned, count):
    job, model = learned
    settings = ("decode.no_repeat=1", "decode.min_length=100", "decode.max_length=100")
    predictor = GeneratePredictor(job).configured(set=settings)
    with pytest.raises(GlassformerError, match="the given rules allow no token; forbid less, or"):
        list(predictor.predict(model, ["the"] * count))


def test_a_decoder_that_keeps_no_keys_goes_on_in_batches(tmp_path):
    decoder = {**SMALL["decoder"], "attention": {"heads": 2, "kind": "linear"}, "position": "none"}
    job = writer(tmp_path, model={"decoder": decoder})
    settings = ("decode.max_length=2",)
    predictor = GeneratePredictor(job).configured(set=settings)
    assert len(list(predictor.predict(job.model().eval(), ["a", "the", "fox"]))) == 3


def test_alternatives_show_what_else_was_likely_at_each_token(learned):
    job, model = learned
    settings = ("decode.max_length=3", "decode.method=greedy")
    predictor = GeneratePredictor(job).configured(alternatives=2, set=settings)
    found = last(predictor.predict(model, ["a fox"]))
    assert [len(token["instead"]) for token in found.details["tokens"]] == [2, 2, 2]
    assert [line.strip()[0] for line in found.below] == ["␣", "i", "n"]


def test_a_stop_text_that_never_comes_and_a_long_prompt_are_noted(learned):
    job, model = learned
    settings = ("decode.stop=['zzz']", "decode.max_length=5", "decode.method=greedy")
    predictor = GeneratePredictor(job).configured(set=settings)
    found = last(predictor.predict(model, ["one"]))
    assert found.note == "is continued without a stop text, up to 5 tokens"
    found = last(predictor.predict(model, ["one" * 100]))
    assert found.note == "has 301 tokens, more than the 256 that were read in training"


def test_a_prompt_beyond_the_positions_that_were_learned_is_refused(tmp_path):
    decoder = {**SMALL["decoder"], "position": "learned", "max_length": 30}
    job = writer(tmp_path, model={"decoder": decoder}, task={"max_length": 20})
    predictor, model = GeneratePredictor(job), job.model().eval()
    words = (
        "the prompt 'o{20}' has 21 tokens, but the model has learned only 20 positions; shorten it"
    )
    with pytest.raises(GlassformerError, match=f"^{words}$"):
        next(predictor.predict(model, ["o" * 20]))  # before anything is written


@pytest.mark.parametrize("best", [1, 2])
def test_a_continuation_ends_where_positions_that_were_learned_do(tmp_path, best):
    decoder = {**SMALL["decoder"], "position": "learned", "max_length": 30}
    job = writer(tmp_path, model={"decoder": decoder}, task={"max_length": 20})
    settings = ("decode.method=sample", "decode.min_length=9", f"decode.best={best}")
    predictor, model = GeneratePredictor(job).configured(set=settings), job.model().eval()
    alone = last(predictor.predict(model, ["o" * 12]))
    assert len(alone.details["tokens"]) == 8
    assert alone.details["ended"] == "length"
    prompts = ["o" * 19, "o" * 18, "o" * 12]
    assert [len(one.details["tokens"]) for one in predictor.predict(model, prompts)] == [1, 2, 8]


# What is refused


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "words"}, "data.tokenizer.kind = words loses the spaces of a text; use bpe"),
        ({"task": {"stride": 300}}, r"task.stride must lie in 1 ... task.max_length \(256\), got"),
        ({"task": {"max_length": 1}}, "task.max_length must be at least 2: a start and a token"),
        ({"model": {"decoder": {"kind": "gru"}}}, "model.decoder.kind = gru reads what another"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path, settings, words):
    with pytest.raises(GlassformerError, match=f"^{words}"):
        writer(tmp_path, **settings)


# The baseline


def test_the_baseline_scores_the_same_text_by_n_grams_of_the_order_that_is_best(tmp_path):
    job = writer(tmp_path, RHYMES * 3, RHYMES[:3])
    found = GenerateReporter(job).baseline("valid")
    with torch.no_grad():
        ours = job.answers(job.model().eval(), [everything(job, "valid")])
    assert np.array_equal(found.answers.bytes, ours.bytes)
    assert np.array_equal(found.answers.tokens, ours.tokens)
    by_order = {}
    for order in ngram_baseline.ORDERS:
        texts, _ = ngram_baseline.training_texts(job)
        model = NgramModel.learn(texts, vocab_size=job.tokenizer.size, order=order, ends=(2, 3))
        nll = 0.0
        for _, labels in as_read(job, RHYMES[:3]):
            prefix = torch.tensor([labels])
            for place, label in enumerate(labels):
                nll -= float(model(prefix, torch.tensor([place]))[0, label])
        by_order[f"n-gram (order {order})"] = nll
    assert found.name == min(by_order, key=by_order.get)
    assert found.answers.nll.sum() == pytest.approx(by_order[found.name], rel=1e-4)


def test_a_vocabulary_too_large_for_the_text_is_remarked_on(tmp_path):
    [remark] = GenerateReporter(writer(tmp_path / "bytes", kind="bytes")).remarks()
    told = "The vocabulary has 260 tokens for 136 of text, so most are rare; give more text"
    assert remark == told
    [remark] = GenerateReporter(writer(tmp_path / "bpe", kind="bpe")).remarks()
    assert remark.endswith(
        "give more text, lower data.tokenizer.vocabulary, or set data.tokenizer.kind=characters"
    )
    assert GenerateReporter(writer(tmp_path / "more", RHYMES * 9)).remarks() == []


def test_the_baseline_learns_from_so_many_tokens_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr(ngram_baseline, "MOST_TOKENS", 50)
    job = writer(tmp_path)
    texts, all_of_them = ngram_baseline.training_texts(job)
    assert (sum(map(len, texts)), all_of_them) == (50, False)
    assert GenerateReporter(job).baseline("valid").notes == ["The baseline learned from 50 tokens."]


def test_a_baseline_without_time_has_the_shortest_n_grams(tmp_path):
    reporter = GenerateReporter(writer(tmp_path))
    reporter.seconds = 0.0
    found = reporter.baseline("valid")
    assert found.name == "n-gram (order 3)"
    assert found.notes == ["The time budget left no time for n-grams longer than 3."]


def test_little_text_is_read_by_characters_and_more_by_bpe(tmp_path, monkeypatch):
    assert writer(tmp_path / "a", kind="auto").tokenizer.kind == "characters"
    monkeypatch.setattr(task, "SMALL", 50)
    monkeypatch.setattr(task, "LEARNED_FROM", 60)
    job = writer(tmp_path / "b", kind="auto")
    assert job.tokenizer.kind == "bpe"
    assert list(task.beginning(job.samples, 50)) == RHYMES[:2]
