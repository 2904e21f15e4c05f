"""transcribe: its losses, its searches, and what is left out of training."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small_jobs import everything, job_of, taught
from small_recordings import SETTINGS, record

from glassformer.config.model import BLOCK_NAMES
from glassformer.config.values import build, merge_values, plain
from glassformer.data.text.coders import SPECIALS
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode.ctc import ctc_scores
from glassformer.errors import GlassformerError
from glassformer.models.transcriber import Transcriber
from glassformer.tasks import JOBS
from glassformer.tasks.transcribe import searching
from glassformer.tasks.transcribe.listened import listened
from glassformer.tasks.transcribe.losses import ctc_loss
from glassformer.tasks.transcribe.rescoring import attention_scores
from glassformer.tasks.transcribe.searching import room_beside
from glassformer.tasks.transcribe.sounds import BLANK

TEXTS = ("ad", "bead", "ace bad", "abba")


def task_of(folder, texts=TEXTS, **settings):
    rows = record(folder / "clips", texts)
    return job_of("transcribe", folder / "run", rows, **merge_values(SETTINGS, settings))


@pytest.fixture
def joint(tmp_path):
    return task_of(tmp_path)


def test_it_learns_a_few_recordings_by_heart(tmp_path):
    task = task_of(tmp_path, TEXTS[:3])
    model = taught(task, 60)
    assert task.answers(model, [everything(task)]).written == list(TEXTS[:3])
    scores = task.score(model, [everything(task)])
    assert scores.pop("loss") == pytest.approx(loss_of(task, model), rel=1e-4)
    assert scores == {"wer": 0.0, "cer": 0.0, "exact": 1.0}


@pytest.mark.parametrize(("weight", "search"), [(0.0, "attention"), (1.0, "ctc")])
def test_attention_and_ctc_learn_alone_too(tmp_path, weight, search):
    task = task_of(tmp_path, task={"ctc_weight": weight})
    assert task.settings.search == search
    assert (task.model().decoder is None) == (search == "ctc")
    losses = [loss_of(task, taught(task, steps)) for steps in (0, 10)]
    assert losses[1] < 0.8 * losses[0]
    assert task.score(task.model(), [everything(task)]).keys() == {"wer", "cer", "exact", "loss"}


def test_before_training_one_frame_in_16_says_a_token_and_none_is_likelier(joint):
    model, batch = joint.model(), everything(joint)
    with torch.no_grad():
        model.to_token.weight.zero_()
        found = joint.forward(model, batch).frames.softmax(-1)[0, 0]
    said = torch.cat([found[:BLANK], found[BLANK + 1 :]])
    assert found[BLANK].item() == pytest.approx(15 / 16, rel=0.01)
    assert torch.allclose(said, said[:1])


def test_every_weight_has_a_gradient_even_where_ctc_is_left_out(tmp_path):
    task = task_of(tmp_path, task={"ctc_weight": 0.0})
    model, batch = task.model(), everything(task, epoch=0)
    task.loss(task.forward(model, batch), batch).total.backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []
    assert not model.to_token.weight.grad.any()


@torch.no_grad()
def loss_of(task, model):
    batch = everything(task)
    loss = task.loss(task.forward(model, batch), batch)
    return float(loss.total / loss.count)


@torch.no_grad()
def test_the_loss_is_the_weighted_sum_of_ctc_and_cross_entropy(joint):
    model, batch = joint.model().eval(), everything(joint, epoch=0)
    output = joint.forward(model, batch)
    loss, (frames, written, _) = joint.loss(output, batch), output
    texts = [joint.texts[row].tolist() for row in range(len(TEXTS))]
    log_probs = frames.log_softmax(-1)
    scores = ctc_scores(log_probs, batch.vectors, [[text] for text in texts], blank=BLANK)
    ctc = -sum(score for [score] in scores)
    targets = torch.tensor([token for text in texts for token in [*text, Tokenizer.end]])
    attention = F.cross_entropy(written, targets, reduction="sum", label_smoothing=0.1)
    assert float(loss.total) == pytest.approx(0.3 * ctc + 0.7 * float(attention), rel=1e-5)
    assert float(loss.count) == sum(len(text) + 1 for text in texts)


@torch.no_grad()
def test_two_passes_diverge_by_nothing_only_where_they_agree(joint):
    batch = everything(joint, epoch=0)
    a, b = (joint.forward(joint.model().eval(), batch) for _ in range(2))
    assert float(joint.divergence(a, a, batch).total) == pytest.approx(0.0, abs=1e-4)
    apart = joint.divergence(a, b, batch)
    real = torch.arange(a[0].shape[1]) < torch.tensor(batch.vectors)[:, None]
    frames = F.kl_div(b[0].log_softmax(-1), a[0].log_softmax(-1), reduction="none", log_target=True)
    tokens = F.kl_div(b[1].log_softmax(-1), a[1].log_softmax(-1), reduction="sum", log_target=True)
    right = 0.3 * frames.sum(-1)[real].sum() + 0.7 * tokens
    assert float(apart.total) == pytest.approx(float(right), rel=1e-4)


@torch.no_grad()
def test_a_share_of_the_ctc_loss_is_taken_halfway(tmp_path):
    task = task_of(
        tmp_path,
        task={"intermediate": 0.4, "ctc_weight": 1.0},
        model={"encoder": {"depth": 2}},
    )
    batch = everything(task, epoch=0)
    output = task.forward(task.model().train(), batch)
    last, halfway = (float(ctc_loss(one, batch)) for one in (output.frames, output.halfway))
    assert float(task.loss(output, batch).total) == pytest.approx(0.6 * last + 0.4 * halfway)


def test_a_joint_search_writes_the_text_with_the_best_sum_of_both_scores(joint):
    model, batch = taught(joint, 15), everything(joint)
    found = joint.searcher.search_batch(model, batch.features, batch.layout, batch.vectors)
    sounds = listened(model, batch.features, batch.layout, batch.vectors)
    log_probs = sounds.frames.log_softmax(-1)
    texts = [[one.tokens] for one in found]
    by_ctc = ctc_scores(log_probs, batch.vectors, texts, blank=BLANK)
    by_attention = attention_scores(sounds, texts)
    for one, [ctc], [attention] in zip(found, by_ctc, by_attention, strict=True):
        assert one.score == pytest.approx(0.3 * ctc + 0.7 * attention, rel=1e-4)


def test_in_a_joint_search_no_text_is_much_longer_than_what_ctc_writes(joint, monkeypatch):
    model, batch = joint.model().eval(), everything(joint)
    sounds, asked = (batch.features, batch.layout, batch.vectors), []

    def decode(scorer, request, config):
        asked.append(list(request.limits))
        return searching.decode_before(scorer, request, config)

    monkeypatch.setattr(searching, "decode_before", searching.decode, raising=False)
    monkeypatch.setattr(searching, "decode", decode)
    by_ctc = replace(joint.searcher, search="ctc").search_batch(model, *sounds)
    found = joint.searcher.search_batch(model, *sounds)
    rooms = [room_beside(max(len(choice.tokens) for choice in one.choices)) for one in by_ctc]
    assert min(rooms) < max(batch.vectors)
    assert asked == [[min(sizes) + 1 for sizes in zip(rooms, batch.vectors, strict=True)]]
    written = [{choice.tokens for choice in one.choices} for one in found]
    assert written == [{choice.tokens for choice in one.choices} for one in by_ctc]  # none ended


@pytest.mark.parametrize(
    ("search", "method"), [("ctc", "greedy"), ("ctc", "beam"), ("joint", "beam")]
)
def test_what_seems_unknown_is_written_as_something_known(joint, search, method):
    searcher = task_with(joint, {"search": search, "decode": {"method": method}}).searcher
    model = taught(joint, 5)
    model.to_token.bias.data[Tokenizer.unknown] = 20.0
    for one in searcher.write(model, [joint.sounds[row] for row in range(len(TEXTS))]):
        assert Tokenizer.unknown not in {token for x in one.choices for token in x.tokens}
        assert one.score > -np.inf


@pytest.mark.parametrize("search", ["ctc", "attention", "joint"])
@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_a_recording_is_written_alone_as_it_is_beside_longer_ones(joint, search, method):
    settings = {"search": search, "decode": {"method": method}}
    searcher = task_with(joint, settings).searcher
    model = taught(joint, 5)
    sounds = [joint.sounds[row] for row in range(len(TEXTS))]
    together = searcher.write(model, sounds)
    for sound, one in zip(sounds, together, strict=True):
        [alone] = searcher.write(model, [sound])
        assert alone.text == one.text
        assert alone.score == pytest.approx(one.score, abs=1e-4)


ENCODERS = {
    **{name: {"block": name} for name in BLOCK_NAMES},
    **{name: {"kind": name, "block": "transformer"} for name in ("lstm", "gru", "tcn")},
}


@pytest.mark.parametrize("weight", [1.0, 0.0])
@pytest.mark.parametrize("name", ENCODERS)
def test_padding_changes_neither_loss_nor_text_whatever_reads_and_writes(tmp_path, name, weight):
    settings = {"ctc_weight": weight, "decode": {"method": "greedy"}}
    task = task_of(tmp_path, task=settings, model={"encoder": ENCODERS[name]})
    model, rows = taught(task, 1).eval(), range(len(TEXTS))
    batch, singles = everything(task), [task.batch("train", np.array([row]), None) for row in rows]
    with torch.no_grad():
        losses = [task.loss(task.forward(model, one), one).total for one in (batch, *singles)]
    assert float(losses[0]) == pytest.approx(float(sum(losses[1:])), rel=1e-5)
    sounds = [task.sounds[row] for row in rows]
    together = task.searcher.write(model, sounds)
    alone = [task.searcher.write(model, [sound])[0] for sound in sounds]
    assert [one.text for one in together] == [one.text for one in alone]
    assert [one.score for one in together] == pytest.approx([one.score for one in alone], abs=1e-4)


def task_with(task, settings):
    """The same task with other settings."""
    merged = merge_values(plain(task.config.task), settings)
    config = replace(task.config, task=build(JOBS["transcribe"].settings, merged))
    return JOBS["transcribe"].task(config, task.folder, None)


def test_rows_that_cannot_be_trained_on_are_named_and_left_out_but_scored(tmp_path):
    rows = record(tmp_path / "clips", ["ad", "bad", "decade " * 9, "ad", "ab"])
    rows[0]["text"] = "a transcript too long for its sound"
    rows[3] = rows[0] | {"split": "test"}
    task = job_of(
        "transcribe",
        tmp_path / "run",
        rows,
        **merge_values(SETTINGS, {"task": {"max_seconds": 4.0}}),
    )
    assert len(task.lengths("train")) == 2
    assert len(task.lengths("test")) == 1
    remarks = JOBS["transcribe"].reporter(task).remarks()
    assert len(remarks) == 2
    assert "1 recording with a transcript too long for the sound, first" in remarks[0]
    assert "rows.jsonl row 1" in remarks[0]
    assert "a length over task.max_seconds = 4, first" in remarks[1]
    loss = task.loss(task.forward(task.model(), everything(task)), everything(task))
    assert bool(loss.total.isfinite())
    rows = [row | {"text": "a transcript too long for its sound"} for row in rows[:2]]
    with pytest.raises(GlassformerError, match=r"row 1: a transcript too long .*, as in every row"):
        job_of("transcribe", tmp_path / "other", rows, **SETTINGS)


def test_transcripts_are_normalised_by_the_settings_of_the_run(tmp_path):
    texts = ["Ad, BAD!", "ace"]
    task = task_of(tmp_path / "a", texts, task={"punctuation": True, "lowercase": False})
    assert everything(task).references == ("Ad, BAD!", "ace")
    task = task_of(tmp_path / "b", texts)
    assert everything(task).references == ("ad bad", "ace")
    assert task.config.data.tokenizer.kind == "characters"
    assert task.goal == "wer"
    assert task_of(tmp_path / "c", ["早上好", "你好"]).goal == "cer"


def test_a_script_of_many_characters_is_learned_as_a_whole(tmp_path):
    many = "".join(map(chr, range(0x4E00, 0x4E00 + 1201)))
    rows = record(tmp_path, ["ad", "bad"])
    rows[1]["text"] = many
    task = job_of("transcribe", tmp_path / "run", rows, **SETTINGS)
    assert task.tokenizer.size == len(SPECIALS) + 1203


def test_a_small_lexicon_is_learned_as_words_and_written_as_words(tmp_path):
    task = task_of(tmp_path, ["ad", "bead ad"] * 20)
    assert task.config.data.tokenizer.kind == "words"
    assert task.tokenizer.size == len(SPECIALS) + 2
    model = taught(task, 40)
    assert task.answers(model, [everything(task)]).written == ["ad", "bead ad"] * 20


def test_training_hides_something_else_in_each_epoch_and_the_same_in_each_repetition(tmp_path):
    masking = {"frequencies": 1, "bins": 9, "times": 1, "share": 0.5}
    task = task_of(tmp_path, task={"masking": masking})
    first, again, second, bare = (everything(task, epoch=n).features for n in (0, 0, 1, None))
    assert first.equal(again)
    assert not first.equal(second)
    assert not first.equal(bare)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": {"ctc_weight": 1.5}}, r"task.ctc_weight must lie in \[0, 1\], got 1.5"),
        ({"task": {"ctc_weight": 1.0, "search": "joint"}}, "does not train; choose ctc"),
        ({"task": {"decode": {"method": "sample"}}}, "use greedy or beam"),
        ({"task": {"intermediate": 0.5}}, "needs an encoder of kind attention with 2 blocks"),
        ({"task": {"intermediate": 0.5, "ctc_weight": 0.0}}, "task.ctc_weight = 0 leaves out"),
        (
            {"task": {"punctuation": True}, "data": {"tokenizer": {"kind": "words"}}},
            "words joins words by blanks, so punctuation is lost",
        ),
        ({"task": {"rate": 7}}, "task.rate must lie in 2,000 ... 192,000"),
        ({"task": {"max_seconds": 0.1}}, "task.max_seconds must be 1 or more, got 0.1"),
        ({"task": {"masking": {"times": -1}}}, "task.masking.times must be 0 or more, got -1"),
        ({"model": {"frontend": {"kind": "tokens"}}}, "tokens does not read sound; choose from"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path, settings, message):
    with pytest.raises(GlassformerError, match=message):
        task_of(tmp_path, **settings)


def test_words_begin_and_end_where_their_tokens_do(joint):
    [tokens] = joint.tokenizer.encode(["ad bad"])
    log_probs = torch.full((1, 12, joint.tokenizer.size), -20.0)
    path = [BLANK, *tokens[:2], tokens[2], BLANK, *tokens[3:].tolist(), tokens[-1], BLANK]
    log_probs[0, torch.arange(len(path)), torch.tensor(path)] = 0.0
    [words] = joint.searcher.timed(log_probs, [len(path)], [tuple(tokens.tolist())])
    assert [(word.text, word.start, word.end) for word in words] == [("ad", 1, 3), ("bad", 5, 9)]


def test_only_a_model_with_ctc_knows_when_words_are_spoken(tmp_path):
    task = task_of(tmp_path, task={"ctc_weight": 0.0})
    with pytest.raises(GlassformerError, match="trained without CTC"):
        JOBS["transcribe"].predictor(task).configured(align=True)
    assert isinstance(task.model(), Transcriber)
