"""A small task for language models: random tokens in full rows.

The model is GPT-2's, as nanoGPT builds it: learned positions, no biases, tied embeddings.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils._pytree import register_dataclass

from glassformer.benchmarks.training.product import Work, endless
from glassformer.benchmarks.training.sizes import Sizes
from glassformer.config import (
    AttentionConfig,
    DataConfig,
    FeedForwardConfig,
    MachineConfig,
    ModelConfig,
    NormConfig,
    OptimiserConfig,
    PositionConfig,
    StackConfig,
    TrainConfig,
)
from glassformer.core.layout import Layout
from glassformer.models.build import build_language_model
from glassformer.models.transformer import LanguageModel, Noise
from glassformer.tasks.task import Loss, Task

BATCHES = 64  # in an epoch
BETAS = (0.9, 0.95)
WEIGHT_DECAY = 0.1


@dataclass(frozen=True, slots=True)
class ContextBatch:
    """Rows of one length, and the token after each. All batches have one shape as they are."""

    ids: Int[Tensor, "B T"]
    labels: Int[Tensor, "B T"]

    @property
    def tokens(self) -> int:
        return self.ids.numel()

    def to(self, device: torch.device) -> "ContextBatch":
        return ContextBatch(
            self.ids.to(device, non_blocking=True), self.labels.to(device, non_blocking=True)
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.ids.shape

    def filled(self, sizes: tuple[int, ...]) -> "ContextBatch":
        return self

    def twice(self) -> "ContextBatch":
        return ContextBatch(*(torch.cat([x, x]) for x in (self.ids, self.labels)))


register_dataclass(ContextBatch)


class ContextTask(Task[ContextBatch, Tensor]):
    """The next token of random ones."""

    name = "next token"
    goal = "loss"
    higher_is_better = False

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        rng = np.random.default_rng(0)
        shape = BATCHES * sizes.contexts, sizes.context + 1
        self.rows = rng.integers(sizes.vocabulary, size=shape)

    def model(self) -> LanguageModel:
        return build_language_model(gpt(self.sizes), vocabulary=self.sizes.vocabulary)

    def lengths(self, split: str) -> Int[np.ndarray, " rows"]:
        return np.full(len(self.rows), self.sizes.context)

    def batch(
        self, split: str, rows: Int[np.ndarray, " chosen"], epoch: int | None
    ) -> ContextBatch:
        drawn = torch.from_numpy(self.rows[rows])
        return ContextBatch(drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous())

    def forward(
        self, model: nn.Module, batch: ContextBatch, *, noise: Noise | None = None
    ) -> Float[Tensor, " *tokens"]:
        """The cross-entropy of every next token."""
        rows, length = batch.ids.shape
        layout = Layout.full(rows, length, batch.ids.device)
        return model(batch.ids, layout=layout, noise=noise, labels=batch.labels)

    def loss(self, output: Float[Tensor, " *tokens"], batch: ContextBatch) -> Loss:
        return Loss(output.sum(), output.new_full((), batch.tokens))

    def divergence(self, a: Tensor, b: Tensor, batch: ContextBatch) -> Loss:
        raise ValueError("language models are compared without regularisers; leave them out")

    def score(self, model: nn.Module, batches: Iterable[ContextBatch]) -> dict[str, float]:
        losses = [self.loss(self.forward(model, batch), batch) for batch in batches]
        return {"loss": float(sum(x.total for x in losses) / sum(x.count for x in losses))}


def gpt(sizes: Sizes) -> ModelConfig:
    """GPT-2's model, without biases."""
    depth, heads, dim = sizes.gpt
    stack = StackConfig(
        dim=dim,
        depth=depth,
        norm=NormConfig(bias=False),
        position=PositionConfig("learned"),
        max_length=sizes.context,
        dropout=0.0,
        attention=AttentionConfig(heads=heads, bias=False),
        feedforward=FeedForwardConfig(kind="gelu", bias=False),
    )
    return ModelConfig(decoder=stack, scale=False)


def context_work(sizes: Sizes, device: torch.device) -> Work:
    """The task, and the training of nanoGPT."""
    optimiser = OptimiserConfig(weight_decay=WEIGHT_DECAY, beta1=BETAS[0], beta2=BETAS[1])
    data = DataConfig(batch_tokens=sizes.contexts * sizes.context)
    machine = MachineConfig(device=device.type)
    return Work(ContextTask(sizes), endless(TrainConfig(optimiser=optimiser), data, machine))
