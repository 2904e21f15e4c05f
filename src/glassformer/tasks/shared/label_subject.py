"""What is explained of any input with labels: their log-odds, and what they are read off."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.core.shapes import Vectors
from glassformer.errors import GlassformerError, unknown
from glassformer.explaining.copies import eager_copy
from glassformer.explaining.parts import Target
from glassformer.explaining.subject import Subject, log_odds
from glassformer.models.ensemble import Ensemble
from glassformer.models.pooling import AttentionPool, in_rows
from glassformer.models.transformer import Classifier
from glassformer.models.word_level import WordPool, word_ends, words_of
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.label_task import LabelTask
from glassformer.tasks.shared.labels import Labels

MOST = 5  # labels that are explained


class LabelSubject(Subject):
    """An input and the labels that it may have.

    Attributes:
        chosen: The numbers of the labels that are explained.
    """

    task: LabelTask
    chosen: Int[Tensor, " targets"]

    def _settle(self, answers: ClassAnswers, target: str | None) -> None:
        """The prediction, and which labels are explained."""
        self.targets, self.chosen = chosen_labels(self.task.labels, answers, target)
        [prediction] = self.task.labels.predictions(answers.probabilities())
        self.answer = prediction.best

    @torch.no_grad()
    def _readers(self, model: Classifier) -> Float[Tensor, "members targets rows Q"]:
        """The weights of the vectors that the labels are read off, the same for all labels."""
        given: list[tuple[Vectors, Layout]] = []
        copy = eager_copy(model)
        copy.pool.register_forward_pre_hook(lambda _, args: given.append(args))
        self.scores(copy)
        [(x, layout)] = given
        pools = model.pool.shares(x) if isinstance(model.pool, Ensemble) else [(model.pool, x)]
        weights = torch.stack([pool_weights(*one, layout) for one in pools])
        return (weights / weights.shape[1])[:, None].expand(-1, len(self.targets), -1, -1)

    def _log_odds(self, logits: Float[Tensor, "variants C"]) -> Float[Tensor, "variants targets"]:
        """The log-odds of the labels that are explained, from calibrated logits."""
        chosen = self.chosen.to(logits.device)
        if self.task.labels.multi:
            return logits[:, chosen]
        shape = len(logits), len(chosen)
        return log_odds(logits[:, None].expand(*shape, -1), chosen.expand(shape))


def pool_weights(pool: nn.Module, x: Vectors, layout: Layout) -> Float[Tensor, "rows Q"]:
    """The weight of each vector in a pool, or of each word; of a maximum, the share of channels."""
    if isinstance(pool, WordPool):
        words = word_ends(layout)
        of_words = pool_weights(pool.inside, words_of(x, layout), words.layout)
        return words.scatter(of_words[..., None], layout.longest)[..., 0]
    rows, real = in_rows(x, layout)
    if isinstance(pool, AttentionPool):
        return pool.weigh(rows, real)[..., 0]
    with torch.enable_grad():
        rows = rows.detach().requires_grad_()
        [by] = torch.autograd.grad(pool(rows, layout.as_padded()).mean(-1).sum(), [rows])
    return by.sum(-1)


def combined(logits: Float[Tensor, "copies rows C"], *, multi: bool) -> Float[Tensor, "copies C"]:
    """Logits that give the mean probability of the rows of a text, as `ClassAnswers` does."""
    if logits.shape[1] == 1:
        return logits[:, 0]
    if not multi:
        return logits.log_softmax(-1).logsumexp(1)
    return logits.sigmoid().mean(1).logit(eps=1e-7)


def chosen_labels(
    labels: Labels, answers: ClassAnswers, target: str | None
) -> tuple[tuple[Target, ...], Int[Tensor, " targets"]]:
    """The labels that are explained, the most likely first, and their numbers."""
    [found] = answers.probabilities().tolist()
    if target is not None and target not in labels.names:
        raise GlassformerError(unknown("label", target, labels.names))
    ranked = sorted(range(len(found)), key=lambda label: -found[label])
    chosen = ranked[:MOST] if target is None else [labels.names.index(target)]
    targets = tuple(Target(text=labels.names[n], probability=found[n]) for n in chosen)
    return targets, torch.tensor(chosen)
