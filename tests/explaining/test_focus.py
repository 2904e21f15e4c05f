"""Faithfulness is measured on one target: the prediction, or the part that needs its input most."""

import torch
from torch import nn

from glassformer.core.layout import Layout
from glassformer.explaining.focus import focused
from glassformer.explaining.methods import METHODS
from glassformer.explaining.parts import Target
from glassformer.explaining.subject import Subject


class Sums(Subject):
    """Each target's score is a weighted sum of what is read."""

    weights = torch.tensor([[0.1, 0.0], [2.0, -1.0], [5.0, 7.0]])

    def __init__(self, **details):
        self.model, self.given, self.answer = nn.Identity(), "a b", "x"
        self.pieces, self.piece_of = ("a ", "b"), torch.tensor([[0, 1]])
        self.readers = torch.arange(6.0).reshape(1, 3, 1, 2)
        self.targets = tuple(Target(text=text, probability=0.5, **details) for text in "xyz")

    def scores(self, model, *, copies=1, noise=None):
        x = torch.ones(copies, 2, 1)
        x = x if noise is None else noise(x, Layout.full(copies, 2))
        return x[..., 0] @ self.weights.mT

    def scores_of(self, kept):
        return kept.float() @ self.weights.mT

    def attention_of(self, maps):
        return ()


def test_of_a_written_text_it_is_the_part_that_needs_its_input_most():
    subject = focused(Sums(alternatives=(("w", 0.1),)))
    assert [one.text for one in subject.targets] == ["z"]
    assert subject.scores(subject.model, copies=2).tolist() == [[12.0], [12.0]]
    assert subject.readers.tolist() == [[[[4.0, 5.0]]]]
    for name in ("occlusion", "gradient_x_input", "integrated_gradients"):
        assert torch.allclose(METHODS[name].influence(subject), torch.tensor([[5.0, 7.0]]))


def test_of_labels_it_is_the_prediction():
    subject = focused(Sums())
    assert [one.text for one in subject.targets] == ["x"]
    assert subject.scores_of(torch.tensor([[True, False]])).tolist() == [[0.10000000149011612]]
