"""Optimisers.

    adamw   a step size per weight                                     Loshchilov and Hutter, 2017
    muon    orthogonal updates for the matrices inside blocks, AdamW for the rest   Jordan, 2024

Weight decay applies to matrices only, not to biases, norms and embeddings. A module with biases or
tables that have the shape of a matrix names them in `no_weight_decay`.
"""

from collections.abc import Iterable

import torch
from torch import nn
from torch.optim import AdamW, Optimizer

from glassformer.config import OptimiserConfig
from glassformer.training.fsdp import sharded_like
from glassformer.training.muon import Muon


class Optimisers:
    """One or two optimisers that step together; the learning rate is given at every step."""

    def __init__(self, model: nn.Module, config: OptimiserConfig) -> None:
        trainable = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.names: dict[torch.Tensor, str] = {
            parameter: name for name, parameter in trainable.items()
        }
        inside, matrices, others = group_parameters(model, trainable.values())
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
        """Update the weights at this learning rate and clear the gradients."""
        for optimiser in self.parts:
            for group in optimiser.param_groups:
                group["lr"] = lr
            optimiser.step()
        self.zero_grad()

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for optimiser in self.parts:
            optimiser.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The optimiser state, by parameter name and key: `encoder.norm.weight/exp_avg`."""
        return {
            f"{self.names[parameter]}/{key}": value
            for optimiser in self.parts
            for parameter, state in optimiser.state.items()
            for key, value in state.items()
        }

    def load(self, tensors: dict[str, torch.Tensor]) -> None:
        """Restore the state that `tensors` returned."""
        for optimiser in self.parts:
            for group in optimiser.param_groups:
                for parameter in group["params"]:
                    prefix = f"{self.names[parameter]}/"
                    optimiser.state[parameter] = {
                        name.removeprefix(prefix): placed_like(parameter, value)
                        for name, value in tensors.items()
                        if name.startswith(prefix)
                    }


def placed_like(parameter: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Saved optimiser state on its parameter's device, sharded like it if it has its shape."""
    value = value.to(parameter.device, copy=True)
    return sharded_like(parameter, value) if value.shape == parameter.shape else value


def group_parameters(
    model: nn.Module, trainable: Iterable[nn.Parameter]
) -> tuple[list[nn.Parameter], list[nn.Parameter], list[nn.Parameter]]:
    """Matrices inside blocks, other matrices, and parameters without weight decay."""
    exempt = {p for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    for module in model.modules():
        exempt.update(getattr(module, name) for name in getattr(module, "no_weight_decay", ()))
    blocks = {
        p
        for name, p in model.named_parameters()
        if ".blocks." in name or name.startswith("blocks.")
    }
    inside, matrices, others = [], [], []
    for parameter in trainable:
        if parameter.ndim < 2 or parameter in exempt:
            others.append(parameter)
        elif parameter in blocks and parameter.ndim == 2:
            inside.append(parameter)
        else:
            matrices.append(parameter)
    return inside, matrices, others
