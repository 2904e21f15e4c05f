"""Methods of explanation: formulas against independent ones, and reasons that are known."""

import random

import pytest
import torch
import torch.nn.functional as F
from captum.attr import IntegratedGradients
from planted import learn_planted, planted_text
from quick import quickly, unchecked

from glassformer.config import ModelConfig, stack_of_size
from glassformer.core.layout import Layout
from glassformer.explaining.blank import blank_token
from glassformer.explaining.methods import METHODS, usable_methods
from glassformer.explaining.methods.gradients import along, ends, gradients_at
from glassformer.explaining.methods.rollout import rolled_out
from glassformer.explaining.watching import cross_attentions, watching
from glassformer.models.build import build_transformer
from glassformer.models.frontends.tokens import Tokens


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with quickly(), unchecked():
        return learn_planted(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def texts():
    rng = random.Random(7)
    return [planted_text(rng) for _ in range(20)]


@pytest.fixture
def subject(run, texts):
    return run.explainer.job.subject(run.model, texts[0][0])


def found(run, texts, method):
    """The share of texts whose marked words a method finds."""
    tops = (run.explain(text, method=method).influence[0].topk(2).indices for text, *_ in texts)
    right = [sorted(top.tolist()) == places for top, (*_, places) in zip(tops, texts, strict=True)]
    return sum(right) / len(right)


@pytest.mark.parametrize(
    ("method", "some"),
    [
        ("attention_x_gradient", 10),
        ("occlusion", 20),
        ("integrated_gradients", 4),
        pytest.param("integrated_gradients", 20, marks=pytest.mark.full),
    ],
)
def test_faithful_methods_find_the_words_that_make_the_label(run, texts, method, some):
    assert found(run, texts[:some], method) >= 0.95


def test_attention_alone_does_not_tell_for_from_against(run, texts):
    assert found(run, texts, "attention") < 0.5


def test_integrated_gradients_sum_up_to_the_difference_of_the_scores(run, texts):
    for text, *_ in texts[:3]:
        subject = run.explainer.job.subject(run.model, text)
        total = METHODS["integrated_gradients"].influence(subject).sum(1)
        assert torch.allclose(total, ends(subject), rtol=0.01)


def test_gradients_start_from_the_mean_of_all_tokens_made_as_long_as_one_of_them():
    tokens = Tokens(11, 5)
    blank, x = blank_token(tokens, 11, torch.device("cpu")), tokens.table.weight * tokens.scale
    assert torch.allclose(blank.norm(), x.norm(dim=1).mean())
    assert torch.allclose(F.cosine_similarity(blank, x.mean(0), dim=0), torch.ones(()))


def test_integrated_gradients_agree_with_captum(subject):
    def score(x, label):
        return subject.scores(subject.model, copies=len(x), noise=lambda *_: x)[:, label]

    x, _, _ = gradients_at(subject, 1, lambda x: x)
    ours = along(subject, 128)
    captum = IntegratedGradients(lambda x: score(x, 0))
    theirs = captum.attribute(x[0], subject.baseline(x[0]), n_steps=128, internal_batch_size=16)
    assert torch.allclose(ours[0], theirs.sum(-1), atol=1e-3 * float(ours.abs().max()))


def test_a_gradient_is_what_a_small_change_of_a_vector_does(subject):
    x, gradients, scores = gradients_at(subject, 1, lambda x: x)
    direction = torch.randn_like(x[0])
    step = 1e-3 * direction / direction.norm()
    with torch.no_grad():
        later = subject.scores(subject.model, noise=lambda x, layout: x + step)
    expected = (gradients[:, 0] * step).sum((1, 2, 3))
    assert torch.allclose((later - scores)[0], expected, rtol=0.05, atol=1e-4)


def test_the_shares_of_a_rollout_sum_to_one(run, subject):
    with torch.no_grad(), watching(run.model) as (watched, maps):
        subject.scores(watched)
        shares = rolled_out(maps, ())
    assert torch.allclose(shares.sum(-1), torch.ones(shares.shape[:2]), atol=1e-5)


def test_a_rollout_through_a_decoder_goes_back_to_the_source():
    stack = stack_of_size("tiny", max_length=16)
    config = ModelConfig(encoder=stack, decoder=stack)
    model = build_transformer(config, source=11, vocabulary=13).eval()
    source, target = torch.randint(4, 11, (1, 7)), torch.randint(4, 13, (1, 5))
    with torch.no_grad(), watching(model) as (watched, maps):
        watched(source, target, source=Layout.full(1, 7), target=Layout.full(1, 5))
        shares = rolled_out(maps, cross_attentions(model))
    assert shares.shape == (1, 5, 5 + 7)
    assert torch.allclose(shares.sum(-1), torch.ones(1, 5), atol=1e-5)
    assert shares[0, 0, 1:5].abs().max() == 0  # nothing comes from the future
    assert shares[0, :, 5:].min() > 0


def test_only_methods_with_a_sign_speak_against_a_target(run, texts, subject):
    for name in usable_methods(subject):
        method = METHODS[name]
        assert bool((method.influence(subject) < 0).any()) == method.signed, name
        assert run.explain(texts[0][0], method=name).as_values()["signed"] == method.signed
