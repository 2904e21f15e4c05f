"""Warm starts: modules of a model that another run has trained."""

import re
import shlex

import torch
from torch import nn

from glassformer.config import require
from glassformer.errors import GlassformerError
from glassformer.runs.checksums import refuse_changed
from glassformer.runs.folder import RunFolder
from glassformer.tasks.job import AnyTask
from glassformer.training.weights import Weights, load_weights, read_tensors, weights_of

BODY = ("frontend", "encoder", "decoder")  # a model whose body does not fit is another model
MEMBER = re.compile(r"\.members\.(\d+)")
HASHED = ".grams."  # a table by hashes
NETWORK_NOT_KEPT = (
    "n-grams alone make its predictions, so its network was not kept; to keep one, train with "
    "--set model.ngrams=no"
)
READING = {"tokens": "frontend", "decoder": "encoder"}  # a language model, used to read


def start_from(model: nn.Module, origin: RunFolder, module: str | None) -> list[str]:
    """Copy the weights of another run into a model: one module, or all that both have.

    The decoder of a language model becomes an encoder, which also looks ahead, if one is needed.
    The weights of a single model go to all members of an ensemble.
    An output layer of a different shape, as for other labels, stays freshly initialised. Returns
    the names of the copied modules.
    """
    refuse_untrained(origin)
    learned, own = read_tensors(origin.model), weights_of(model)
    require(bool(learned), f"{origin.path}: {NETWORK_NOT_KEPT}; start from another run")
    if not {module_of(name) for name in learned} & {module_of(name) for name in own}:
        learned = {renamed(name): tensor for name, tensor in learned.items()}
    theirs, ours = members_in(learned), members_in(own)
    require(
        theirs in (1, ours),
        f"{origin.path}: an ensemble of {theirs} members cannot start one of {ours}; use "
        f"model.members={theirs}",
    )
    require(
        theirs == ours or not any(HASHED in name for name in own),
        f"{origin.path}: one network cannot start an ensemble that reads n-grams, which each "
        f"member hashes in its own way; use model.members=1",
    )
    found = shared(learned, own)
    require(
        parts_of(found) >= {part for part in parts_of(own) if part[0] in map(module_of, found)},
        f"{origin.path}: its members read other units than those of this model; leave "
        f"model.frontend.word_grams as it is there",
    )
    chosen = {
        name: tensor
        for name, tensor in found.items()
        if module is None or f"{name}.".startswith(f"{module}.")
    }
    if module is None:
        mismatched = {module_of(name) for name in chosen if chosen[name].shape != own[name].shape}
        skipped = mismatched.difference(BODY)
        chosen = {name: t for name, t in chosen.items() if module_of(name) not in skipped}
    if not chosen:
        has = sorted({module_of(name) for name in learned})
        raise GlassformerError(
            f"{origin.path}: has nothing that fits {module or 'this model'}; its modules are "
            f"{', '.join(has)}"
        )
    load_weights(model, own | chosen, str(origin.path))
    return sorted({module or module_of(name) for name in chosen})


def fresh_model(task: AnyTask, seed: int) -> nn.Module:
    """The task's model with fresh weights; incompatible settings are refused."""
    torch.manual_seed(seed)
    try:
        return task.build()
    except ValueError as error:
        raise GlassformerError(f"this model cannot be built: {error}") from None


def refuse_untrained(origin: RunFolder) -> None:
    """Refuse a run without a trained model, or with one that changed since it was written."""
    origin.config()
    if not origin.model.exists():
        raise GlassformerError(
            f"{origin.path}: has no trained model; finish it with `glassformer resume "
            f"{shlex.quote(str(origin.path))}`"
        )
    refuse_changed(origin.path, data=False)


def module_of(name: str) -> str:
    """The module of a weight: the first component of its name."""
    return name.split(".")[0]


def shared(learned: Weights, own: Weights) -> Weights:
    """The learned weights by the names of a model's own; those of one go to all members."""
    sources = {name: name if name in learned else without_member(name) for name in own}
    return {name: learned[source] for name, source in sources.items() if source in learned}


def members_in(weights: Weights) -> int:
    """The number of members of the model that has these weights."""
    return len({found[1] for name in weights if (found := MEMBER.search(name))}) or 1


def parts_of(weights: Weights) -> set[tuple[str, str]]:
    """The modules of the body that have these weights, each with the number of its member."""
    found = ((module_of(name), MEMBER.search(name)) for name in weights)
    return {(module, member[1]) for module, member in found if member and module in BODY}


def without_member(name: str) -> str:
    """The name of an ensemble's weight in a single model.

    >>> without_member("encoder.members.2.norm.weight")
    'encoder.norm.weight'
    """
    return MEMBER.sub("", name, count=1)


def renamed(name: str) -> str:
    """The name of a language model's weight where the model only reads.

    >>> renamed("decoder.norm.weight")
    'encoder.norm.weight'
    """
    module, _, rest = name.partition(".")
    return f"{READING.get(module, module)}.{rest}"
