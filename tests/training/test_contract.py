"""What training asks of a job is enough for any: an encoder-decoder, CTC, and one answer a row."""

from dataclasses import replace

import jobs
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from jobs import NAMES, Ctc, fresh, make, setup_for, train_on
from torch import nn

from glassformer.config import OptimiserConfig, RegulariserConfig, VirtualAdversaryConfig
from glassformer.core.layout import Layout, pack
from glassformer.errors import GlassformerError
from glassformer.training.objective import (
    InputRecorder,
    Perturbation,
    adversarial_divergence,
    detached,
    normalised,
    objective,
    reseeding,
    row_norms,
)

PLAIN = RegulariserConfig()
VAT = VirtualAdversaryConfig(weight=1.0, distance=0.3, probe=0.01)

every_job = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def task(name, tmp_path):
    return make(name, tmp_path)


def one_batch(task, rows=range(5), epoch=None):
    return task.batch("train", np.array(rows), epoch)


def gradients(task, model, config, seed=7):
    model.zero_grad()
    total, loss = objective(model, task, one_batch(task), config, reseeding(seed))
    total.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters()}, loss


def dropping(name, folder, share=0.5):
    """A job whose model drops out, ready to learn."""
    task = make(name, folder, dropout=share)
    torch.manual_seed(0)
    return task, task.model().train()


@every_job
def test_every_job_is_learned_by_heart_through_the_one_loop(task):
    setup = setup_for(
        task, steps=120, validate_every=60, optimiser=OptimiserConfig(lr=1e-2), ema=0.8
    )
    state, events = train_on(task, setup)
    perfect = 1.0 if task.higher_is_better else 0.0
    assert events[-1].scores == {task.goal: perfect}
    assert events[-2].loss < 0.1 * events[0].loss
    assert not state.model.training


@every_job
def test_a_batch_costs_what_its_rows_cost_one_by_one(task):
    """So padding changes nothing, neither in the sum nor in the count."""
    model = fresh(task, setup_for(task, steps=1)).model
    together = one_batch(task)
    assert together.reads.lengths.unique().numel() > 1  # there is padding
    whole = task.loss(task.forward(model, together), together)
    alone = [one_batch(task, [row]) for row in range(5)]
    parts = [task.loss(task.forward(model, batch), batch) for batch in alone]
    assert whole.total.isclose(sum(part.total for part in parts), rtol=1e-5)
    assert whole.count == sum(part.count for part in parts)


@every_job
def test_what_lies_in_the_padding_changes_nothing(task):
    model, batch = fresh(task, setup_for(task, steps=1)).model, one_batch(task)
    junk = torch.ones_like(batch.source)
    real = batch.reads.real.reshape(*batch.reads.real.shape, *[1] * (junk.ndim - 2))
    other = replace(batch, source=torch.where(real, batch.source, junk))
    assert not other.source.equal(batch.source)
    losses = [task.loss(task.forward(model, one), one).total for one in (batch, other)]
    assert losses[0].isclose(losses[1], rtol=1e-6)


@every_job
def test_what_is_random_follows_from_the_seed_the_epoch_and_the_row(name, tmp_path):
    task = make(name, tmp_path / "a", token_dropout=0.5)
    alone = one_batch(task, [3], epoch=2).source
    in_company = one_batch(task, [1, 3, 0], epoch=2).source[1:2, : alone.shape[1]]
    assert in_company.equal(alone)
    long = range(8)
    source = one_batch(task, long, epoch=2).source
    assert not one_batch(task, long, epoch=3).source.equal(source)
    assert not one_batch(task, long, epoch=None).source.equal(source)
    other = make(name, tmp_path / "b", token_dropout=0.5, seed=1)
    assert not one_batch(other, long, epoch=2).source.equal(source)


@every_job
def test_divergence_is_the_sum_of_kullback_and_leibler_over_real_places(task):
    model, batch = fresh(task, setup_for(task, steps=1)).model, one_batch(task)
    a = task.forward(model, batch).detach()
    b = a + torch.randn_like(a)
    layout = {"copy": batch.writes, "ctc": batch.reads, "first": None}[task.name]
    real = slice(None) if layout is None else layout.real
    expected = F.kl_div(
        b[real].log_softmax(-1), a[real].log_softmax(-1), log_target=True, reduction="sum"
    )
    found = task.divergence(a, b, batch)
    assert found.total.isclose(expected, rtol=1e-5)
    assert found.count == task.loss(a, batch).count
    assert task.divergence(a, a, batch).total == 0


@every_job
def test_r_drop_is_the_mean_of_two_losses_and_half_of_both_divergences(name, tmp_path):
    task, model = dropping(name, tmp_path)
    batch = one_batch(task)
    total, loss = objective(model, task, batch, RegulariserConfig(r_drop=3.0), reseeding(7))
    torch.manual_seed(7)
    first, second = task.forward(model, batch), task.forward(model, batch)
    assert not first.equal(second)
    losses = [task.loss(said, batch).total for said in (first, second)]
    apart = (
        task.divergence(first, second, batch).total + task.divergence(second, first, batch).total
    )
    assert total.isclose((losses[0] + losses[1]) / 2 + 3.0 * apart / 2)
    assert loss.total.isclose(losses[0])


@every_job
def test_r_drop_and_vat_change_the_gradients_of_every_job(name, tmp_path):
    task, model = dropping(name, tmp_path)
    plain, plain_loss = gradients(task, model, PLAIN)
    for config in (RegulariserConfig(r_drop=1.0), RegulariserConfig(vat=VAT)):
        changed, loss = gradients(task, model, config)
        assert all(gradient.isfinite().all() for gradient in changed.values())
        assert not any(changed[key].equal(plain[key]) for key in plain if key.endswith("weight"))
        assert loss.total.equal(plain_loss.total)  # the job's own loss is what is reported


@every_job
def test_r_drop_without_dropout_changes_nothing(task):
    torch.manual_seed(0)
    model = task.model().train()
    plain, _ = gradients(task, model, PLAIN)
    dropped, _ = gradients(task, model, RegulariserConfig(r_drop=5.0))
    for key in plain:
        torch.testing.assert_close(dropped[key], plain[key], rtol=1e-4, atol=1e-5)


@every_job
def test_all_passes_of_vat_drop_the_same(name, tmp_path, monkeypatch):
    """So a change of next to nothing makes next to no difference, in the search as in the end."""
    task, model = dropping(name, tmp_path)
    batch, seen, divergence = one_batch(task), [], task.divergence
    torch.manual_seed(7)
    clean = InputRecorder()
    output = task.forward(model, batch, noise=clean)

    def noted(a, b, batch):
        found = divergence(a, b, batch)
        seen.append(found.total.item())
        return found

    monkeypatch.setattr(task, "divergence", noted)
    tiny = VirtualAdversaryConfig(weight=1.0, distance=1e-5, probe=1e-5)
    adversarial_divergence(model, task, batch, output, clean, tiny, reseeding(7))
    assert len(seen) == 2
    assert max(map(abs, seen)) < 1e-4
    assert divergence(output, task.forward(model, batch), batch).total > 1e-2  # other dice differ


@every_job
def test_the_adversary_finds_a_worse_change_than_chance(task):
    model, batch = fresh(task, setup_for(task, steps=1)).model.eval(), one_batch(task)
    clean = InputRecorder()
    output = task.forward(model, batch, noise=clean)
    found = adversarial_divergence(model, task, batch, output, clean, VAT, reseeding(7)).item()
    torch.manual_seed(1)
    by_chance = []

    def blind(x, layout):
        return Perturbation(VAT.distance, normalised(torch.randn_like(x), layout))(x, layout)

    for _ in range(10):
        changed = task.forward(model, batch, noise=blind)
        by_chance.append(task.divergence(output, changed, batch).total.item())
    assert found > max(by_chance)


@every_job
def test_vat_teaches_the_changed_answer_and_not_the_clean_one(task):
    model, batch = fresh(task, setup_for(task, steps=1)).model, one_batch(task)
    clean = InputRecorder()
    output = task.forward(model, batch, noise=clean)
    apart = adversarial_divergence(model, task, batch, output, clean, VAT, reseeding(7))
    assert all(p.grad is None for p in model.parameters())  # the search leaves nothing behind
    [to_clean] = torch.autograd.grad(apart, output, allow_unused=True, retain_graph=True)
    assert to_clean is None
    apart.backward()
    assert any(p.grad is not None and p.grad.any() for p in model.parameters())


def test_a_change_is_a_share_of_each_rows_length_padded_and_packed():
    lengths = [2, 5, 3]
    layout = Layout.padded(lengths)
    torch.manual_seed(0)
    x, direction = torch.randn(2, 3, 5, 7)
    moved = Perturbation(0.3, normalised(direction, layout))(x, layout)
    for row, length in enumerate(lengths):
        step = (moved - x)[row, :length].norm()
        assert step.isclose(0.3 * x[row, :length].norm(), rtol=1e-5)
    inside = layout.as_packed()
    push = Perturbation(0.3, normalised(pack(direction, inside), inside))
    in_pack = push(pack(x, inside), inside)
    torch.testing.assert_close(in_pack, pack(moved, inside))


def test_rows_without_a_direction_stay_where_they_are():
    layout = Layout.padded([2, 3])
    still = normalised(torch.zeros(2, 3, 5), layout)
    assert not still.any()
    assert row_norms(torch.ones(2, 3, 4), layout)[:, 0, 0].tolist() == pytest.approx(
        [8**0.5, 12**0.5]
    )


def test_an_answer_that_cannot_be_held_fixed_is_refused():
    class Wrapped:
        def __init__(self):
            self.scores = nn.Parameter(torch.ones(3))

    with pytest.raises(TypeError, match=r"^a job's output must be a tensor, .* got Wrapped$"):
        detached(Wrapped())
    pair = detached((torch.ones(2, requires_grad=True), {"b": torch.ones(3, requires_grad=True)}))
    assert not pair[0].requires_grad
    assert not pair[1]["b"].requires_grad


def test_the_ctc_toy_refuses_what_would_be_infinite(tmp_path):
    task = make("ctc", tmp_path)
    with pytest.raises(GlassformerError, match="has 3 frames and needs 4"):
        Ctc.check([1, 1, 2], 3)
    Ctc.check([1, 1, 2], 4)
    output = torch.zeros(1, 4, task.symbols + 1)
    batch = replace(one_batch(task, [0]), reads=Layout.full(1, 4), source=torch.zeros(1, 4, 6))
    batch = replace(batch, target=torch.tensor([[1, 1, 2]]), writes=Layout.full(1, 3))
    assert task.loss(output, batch).total.isfinite()
    short = replace(batch, reads=Layout.full(1, 3))
    assert task.loss(output[:, :3], short).total.isinf()


def test_the_toys_are_the_kinds_of_models_they_stand_for(tmp_path):
    kinds = {name: type(make(name, tmp_path / name).model()).__name__ for name in NAMES}
    assert kinds == {"copy": "Transformer", "ctc": "Hearing", "first": "Classifier"}
    assert jobs.CPU.described.startswith("cpu, fp32, threads ")
