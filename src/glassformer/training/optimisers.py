"""Optimisers: from gradients to steps.

    adamw   a rate of its own for every weight                         Loshchilov and Hutter, 2017
    muon    orthogonal steps for the matrices inside blocks, AdamW for the rest     Jordan, 2024

Weight decay is for matrices alone: it does not pull at biases, norms and embeddings. A module whose
biases or tables look like matrices names them in `no_weight_decay`.
"""

from collections.abc import Iterable

import torch
from torch import nn
from torch.optim import AdamW, Optimizer

from glassformer.config import OptimiserConfig
from glassformer.training.fsdp import dealt_as
from glassformer.training.muon import Muon


class Optimisers:
    """One or two optimisers that move together, their rates set for every step."""

    def __init__(self, model: nn.Module, config: OptimiserConfig) -> None:
        learning = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.names: dict[torch.Tensor, str] = {
            parameter: name for name, parameter in learning.items()
        }
        inside, matrices, others = sorted_out(model, learning.values())
        betas = (config.beta1, config.beta2)
        self.parts: list[Optimizer] = []
        if config.kind == "muon" and inside:
            self.parts.append(Muon(inside, lr=config.lr, weight_decay=config.weight_decay))
        else:
            matrices = [*inside, *matrices]
        groups = [
            {"params": matrices, "weight_decay": config.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        if groups:
            self.parts.append(AdamW(groups, lr=config.lr, betas=betas, eps=1e-9, fused=True))

    def step(self, lr: float) -> None:
        """Move the weights at this learning rate and forget the gradients."""
        for optimiser in self.parts:
            for group in optimiser.param_groups:
                group["lr"] = lr
            optimiser.step()
        self.forget()

    def forget(self) -> None:
        """Forget the gradients."""
        for optimiser in self.parts:
            optimiser.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, torch.Tensor]:
        """All that the optimisers remember, by the name of the weight and of the memory."""
        return {
            f"{self.names[parameter]}/{key}": value
            for optimiser in self.parts
            for parameter, memory in optimiser.state.items()
            for key, value in memory.items()
        }

    def put(self, tensors: dict[str, torch.Tensor]) -> None:
        """Remember what `tensors` once said."""
        for optimiser in self.parts:
            for group in optimiser.param_groups:
                for parameter in group["params"]:
                    start = f"{self.names[parameter]}/"
                    optimiser.state[parameter] = {
                        name.removeprefix(start): remembered(parameter, value)
                        for name, value in tensors.items()
                        if name.startswith(start)
                    }


def remembered(parameter: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Something that was saved, where its weight is; dealt out if that is, and as large."""
    value = value.to(parameter.device, copy=True)
    return dealt_as(parameter, value) if value.shape == parameter.shape else value


def sorted_out(
    model: nn.Module, learning: Iterable[nn.Parameter]
) -> tuple[list[nn.Parameter], list[nn.Parameter], list[nn.Parameter]]:
    """Matrices inside blocks, other matrices, and what weight decay spares."""
    spared = {p for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    for module in model.modules():
        spared.update(getattr(module, name) for name in getattr(module, "no_weight_decay", ()))
    blocks = {
        p
        for name, p in model.named_parameters()
        if ".blocks." in name or name.startswith("blocks.")
    }
    inside, matrices, others = [], [], []
    for parameter in learning:
        if parameter.ndim < 2 or parameter in spared:
            others.append(parameter)
        elif parameter in blocks and parameter.ndim == 2:
            inside.append(parameter)
        else:
            matrices.append(parameter)
    return inside, matrices, others
