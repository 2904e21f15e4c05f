"""How wrong a classifier is, by hand and by torch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small_jobs import everything, job_of, labelled
from torch.distributions import Bernoulli, Categorical, kl_divergence

SINGLE = labelled(("u", "rare"), ("v", "common"), ("w", "common"), ("x", "common"), ("y", "other"))
MULTI = labelled(("u", ["a"]), ("v", ["a", "b"]), ("w", []), ("x", ["c", "a"]), ("y", ["b"]))


def classifier(folder, rows, **task):
    return job_of("classify", folder, rows, task={"rarest": 1, **task})


def drawn(job, seed=0):
    batch = everything(job)
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(batch.labels), len(job.labels.names), generator=generator), batch


def test_the_loss_is_the_sum_of_cross_entropies_over_the_texts(tmp_path):
    job = classifier(tmp_path, SINGLE)
    logits, batch = drawn(job)
    loss = job.loss(logits, batch)
    by_hand = -sum(logits.log_softmax(-1)[n, label] for n, label in enumerate(batch.labels))
    assert batch.labels.tolist() == [2, 0, 0, 0, 1], "labels are numbered by name"
    assert loss.total == pytest.approx(by_hand.item())
    assert loss.count == 5


def test_several_labels_are_as_many_questions(tmp_path):
    job = classifier(tmp_path, MULTI)
    logits, batch = drawn(job)
    assert batch.labels.tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 0, 1], [0, 1, 0]]
    loss = job.loss(logits, batch)
    sure = torch.where(batch.labels == 1, logits.sigmoid(), 1 - logits.sigmoid())
    assert loss.total == pytest.approx(-sure.log().sum().item(), rel=1e-5)
    assert loss.count == 5


def test_class_weights_make_all_labels_count_alike(tmp_path):
    job = classifier(tmp_path, SINGLE, class_weights=True)
    logits, batch = drawn(job)
    weights = {"common": 5 / (3 * 3), "other": 5 / 3, "rare": 5 / 3}
    assert dict(zip(job.labels.names, job.labels.weights, strict=True)) == pytest.approx(weights)
    loss = job.loss(logits, batch)
    wrong = F.cross_entropy(logits, batch.labels, reduction="none")
    means = [wrong[batch.labels == label].mean() for label in range(3)]
    assert loss.total / loss.count == pytest.approx(np.mean(means), rel=1e-5)
    other = job.loss(logits, batch)
    assert job.divergence(logits, -logits, batch).count == other.count


def test_class_weights_count_having_a_rare_label_as_much_as_lacking_it(tmp_path):
    job = classifier(tmp_path, MULTI, class_weights=True)
    logits, batch = drawn(job)
    plain = F.binary_cross_entropy_with_logits(logits, batch.labels, reduction="none")
    have = torch.tensor([3.0, 2.0, 1.0])
    by_hand = torch.where(batch.labels == 1, plain * (5 - have) / have, plain)
    loss = job.loss(logits, batch)
    assert loss.total == pytest.approx(by_hand.sum().item(), rel=1e-5)
    assert loss.count == 5


def test_label_smoothing_is_torchs(tmp_path):
    job = classifier(tmp_path, SINGLE, label_smoothing=0.2)
    logits, batch = drawn(job)
    theirs = torch.nn.CrossEntropyLoss(label_smoothing=0.2, reduction="sum")(logits, batch.labels)
    assert job.loss(logits, batch).total == pytest.approx(theirs.item(), rel=1e-6)


def test_label_smoothing_moves_each_of_several_labels_towards_a_half(tmp_path):
    job = classifier(tmp_path, MULTI, label_smoothing=0.2)
    logits, batch = drawn(job)
    target = torch.where(batch.labels == 1, 0.9, 0.1)
    theirs = F.binary_cross_entropy_with_logits(logits, target, reduction="sum")
    assert job.loss(logits, batch).total == pytest.approx(theirs.item(), rel=1e-6)


@pytest.mark.parametrize("rows", [SINGLE, MULTI], ids=["single", "multi"])
def test_the_divergence_is_kullback_and_leiblers(tmp_path, rows):
    job = classifier(tmp_path, rows)
    (a, batch), (b, _) = drawn(job, 1), drawn(job, 2)
    kind = Bernoulli if rows is MULTI else Categorical
    theirs = kl_divergence(kind(logits=a), kind(logits=b)).sum()
    ours = job.divergence(a, b, batch)
    assert ours.total == pytest.approx(theirs.item(), rel=1e-5)
    assert ours.count == 5
    assert job.divergence(a, a, batch).total == 0
    assert job.divergence(b, a, batch).total != pytest.approx(theirs.item(), rel=1e-3)


@pytest.mark.parametrize("weights", [False, True], ids=["alike", "weighted"])
@pytest.mark.parametrize("rows", [SINGLE, MULTI], ids=["single", "multi"])
def test_an_ensemble_is_as_wrong_as_its_members_on_average(tmp_path, rows, weights):
    job = classifier(tmp_path, rows, label_smoothing=0.2, class_weights=weights)
    (a, batch), (b, _), (c, _) = (drawn(job, seed) for seed in range(3))
    together, turned = torch.stack([a, b, c], 1), torch.stack([b, c, a], 1)  # (B, members, C)
    losses = [job.loss(one, batch) for one in (a, b, c)]
    apart = [job.divergence(*pair, batch) for pair in ((a, b), (b, c), (c, a))]
    for found, each in (
        (job.loss(together, batch), losses),
        (job.divergence(together, turned, batch), apart),
    ):
        mean = sum(one.total.item() for one in each) / 3
        assert found.total == pytest.approx(mean, rel=1e-5)
        assert found.count == each[0].count


@pytest.mark.parametrize("rows", [SINGLE, MULTI], ids=["single", "multi"])
def test_extreme_answers_stay_finite(tmp_path, rows):
    job = classifier(tmp_path, rows)
    logits, batch = drawn(job)
    sure = (1e4 * logits).requires_grad_()
    total = job.loss(sure, batch).total + job.divergence(sure, -sure.detach(), batch).total
    total.backward()
    assert total.isfinite()
    assert sure.grad.isfinite().all()
