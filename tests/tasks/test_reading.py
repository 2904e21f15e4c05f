"""What a classifier reads of a text: which tokens, in which pieces, with what hidden."""

import numpy as np
import pytest
import torch
from small_jobs import everything, job_of, labelled, read_by

from glassformer.tasks.classify.long_texts import WAYS

LONG = " ".join(f"w{n}" for n in range(13))
EXACT = " ".join(f"w{n}" for n in range(9))  # two windows, nothing over
SHORT = "w1 w2 w3"
ROWS = labelled((LONG, "a"), (SHORT, "b"), (LONG + " w0", "a"), (SHORT + " w4", "b"))
HELD = labelled((LONG, "a"), (SHORT, "b"), (EXACT, "a"), split="valid")
WORDS = {"kind": "words"}


def pieces_of(length, way, longest=5):
    """The places that are read of a text of this length, piece by piece."""
    [count] = WAYS[way].pieces(np.array([length]), longest)
    return [
        WAYS[way].read(np.array([length]), np.array([piece]), longest).values.tolist()
        for piece in range(count)
    ]


def reader(folder, **task):
    data = {"tokenizer": WORDS}
    return job_of("classify", folder, ROWS + HELD, task={"max_length": 6, **task}, data=data)


@pytest.mark.parametrize(
    ("long", "read"),
    [
        ("head", ["w0 w1 w2 w3 w4"]),
        ("tail", ["w9 w10 w11 w12 <end>"]),
        ("both", ["w0 w1 w2 w12 <end>"]),
        ("windows", ["w0 w1 w2 w3 w4", "w5 w6 w7 w8 w9", "w9 w10 w11 w12 <end>"]),
    ],
)
def test_of_a_long_text_exactly_these_tokens_are_read(tmp_path, long, read):
    job = reader(tmp_path, long=long)
    batch = job.batch("valid", np.array([0, 1]), None)
    pieces = [*read, "w1 w2 w3 <end>"]
    assert read_by(job, batch) == [["<start>", *piece.split()] for piece in pieces]
    assert batch.row_ids.tolist() == [0] * len(read) + [1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [0, 1, 4, 5])
def test_a_text_that_fits_is_read_whole(way, length):
    assert pieces_of(length, way) == [[*range(length)]]


@pytest.mark.parametrize("length", range(6, 32))
def test_windows_read_every_token_and_all_are_full(length):
    pieces = pieces_of(length, "windows")
    assert {token for piece in pieces for token in piece} == {*range(length)}
    assert all(piece == [*range(piece[0], piece[0] + 5)] for piece in pieces)
    assert len(pieces) == -(-length // 5)


@pytest.mark.parametrize("length", range(6, 13))
def test_a_long_text_is_read_from_its_ends(length):
    places = [*range(length)]
    assert pieces_of(length, "head") == [places[:5]]
    assert pieces_of(length, "tail") == [places[-5:]]
    assert pieces_of(length, "both") == [places[:3] + places[-2:]]
    assert pieces_of(length, "both", longest=4) == [places[:2] + places[-2:]]


@pytest.mark.parametrize("way", WAYS)
def test_texts_are_read_together_as_they_are_one_by_one(way):
    lengths, piece = np.array([3, 13, 0, 6, 5, 13]), np.array([0, 2, 0, 1, 0, 1])
    together = WAYS[way].read(lengths, piece, 5).rows
    alone = [WAYS[way].read(lengths[[n]], piece[[n]], 5).values for n in range(6)]
    assert all(map(np.array_equal, together, alone))


def test_training_sees_one_window_at_random_and_every_one_in_turn(tmp_path):
    job, seen = reader(tmp_path, long="windows"), set()
    for epoch in range(30):
        batch = job.batch("train", np.array([0]), epoch)
        [tokens] = read_by(job, batch)
        seen.add(" ".join(tokens[1:]))
    assert seen == {"w0 w1 w2 w3 w4", "w5 w6 w7 w8 w9", "w9 w10 w11 w12 <end>"}
    together = read_by(job, job.batch("train", np.array([3, 1, 0]), epoch))
    assert together[2] == tokens, "whatever its neighbours"


@pytest.mark.parametrize("long", WAYS)
def test_the_index_knows_how_many_tokens_each_row_takes(tmp_path, long):
    job = reader(tmp_path, long=long)
    for part, epoch in (("train", 0), ("valid", None)):
        lengths = job.lengths(part)
        for row, length in enumerate(lengths.tolist()):
            assert job.batch(part, np.array([row]), epoch).ids.numel() == length


@pytest.mark.parametrize("multi", [False, True])
def test_the_votes_of_windows_are_averaged(tmp_path, multi):
    job = reader(tmp_path, long="windows", multi_label=multi)
    model = job.model().eval()
    with torch.no_grad():
        model.to_class.weight.mul_(7.0)
        batch = everything(job, "valid")
        said = job.forward(model, batch)
        found = job.answers(model, [batch])
    votes = said.sigmoid() if multi else said.softmax(-1)
    by_hand = [votes[batch.row_ids == row].mean(0) for row in range(3)]
    assert np.allclose(found.probabilities(), torch.stack(by_hand), atol=1e-6)
    assert not np.allclose(votes[0], votes[1], atol=1e-2), "the windows disagree"
    assert found.labels.tolist() == ([[1, 0], [0, 1], [1, 0]] if multi else [0, 1, 0])


def test_windows_in_different_batches_are_put_together_again(tmp_path):
    job = reader(tmp_path, long="windows")
    model = job.model().eval()
    with torch.no_grad():
        whole = job.answers(model, [everything(job, "valid")])
        apart = job.answers(model, [job.batch("valid", np.array([row]), None) for row in (2, 0, 1)])
    assert np.allclose(whole.probabilities(), apart.probabilities(), atol=1e-6)
    assert whole.labels.tolist() == apart.labels.tolist()


def dropper(folder, share, seed=0):
    texts = [" ".join(f"w{(n * k) % 31}" for k in range(1, 41)) for n in range(1, 24)]
    rows = labelled(*((text, "ab"[n % 2]) for n, text in enumerate(texts)))
    data = {"token_dropout": share, "tokenizer": WORDS}
    return job_of("classify", folder, rows, data=data, seed=seed)


def test_token_dropout_hides_the_asked_share_and_never_the_start(tmp_path):
    job = dropper(tmp_path, 0.3)
    whole = everything(job).ids
    batches = [everything(job, epoch=epoch).ids for epoch in range(10)]
    hidden = torch.stack([ids == job.inputs.tokenizer.mask for ids in batches])
    assert not hidden[:, :, 0].any()
    assert hidden[:, :, 1:].float().mean() == pytest.approx(0.3, abs=0.02)
    for ids, gone in zip(batches, hidden, strict=True):
        assert torch.equal(ids[~gone], whole[~gone])
    assert not (whole == job.inputs.tokenizer.mask).any(), "evaluation hides nothing"


def test_what_is_hidden_follows_from_seed_epoch_and_row_alone(tmp_path):
    job, other = dropper(tmp_path / "a", 0.3), dropper(tmp_path / "b", 0.3, seed=1)
    ids = everything(job, epoch=2).ids
    assert torch.equal(everything(job, epoch=2).ids, ids)
    assert torch.equal(job.batch("train", np.array([7, 3]), 2).ids, ids[[7, 3]])
    assert not torch.equal(everything(job, epoch=3).ids, ids)
    assert not torch.equal(everything(other, epoch=2).ids, ids)
    masks = (ids == job.inputs.tokenizer.mask).float()
    assert not torch.equal(masks[0], masks[1])


def test_bpe_dropout_breaks_words_in_training_alone(tmp_path):
    texts = [f"wonderful film number {n} wonderful again" for n in range(20)]
    rows = labelled(*((text, "ab"[n % 2]) for n, text in enumerate(texts)))
    broken = {"kind": "bpe", "vocabulary": 300, "dropout": 0.4}
    job = job_of("classify", tmp_path, rows, data={"tokenizer": broken})
    whole = everything(job)
    first, again, later = (everything(job, epoch=epoch) for epoch in (0, 0, 1))
    assert torch.equal(first.ids, again.ids)
    assert first.ids.shape != later.ids.shape or not torch.equal(first.ids, later.ids)
    for batch in (whole, first, later):
        said = [
            job.inputs.tokenizer.decode(row[:length])
            for row, length in zip(batch.ids.numpy(), batch.layout.lengths.tolist(), strict=True)
        ]
        assert said == texts, "however it is broken, it is the same text"
    assert first.tokens > 1.2 * whole.tokens
    row = job.batch("train", np.array([5]), 0)
    assert row.ids[0].tolist() == first.ids[5, : row.ids.shape[1]].tolist()
