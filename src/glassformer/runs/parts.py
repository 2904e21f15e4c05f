"""Parts of a model that another run has learned."""

from torch import nn

from glassformer.errors import GlassformerError
from glassformer.runs.folder import RunFolder
from glassformer.training.weights import put_weights, read_tensors, weights_of


def begin_from(model: nn.Module, origin: RunFolder, part: str | None) -> list[str]:
    """Put what another run learned into a model: a part of it, or all that both have.

    Returns the names of the parts.
    """
    if not origin.model.exists():
        raise GlassformerError(
            f"{origin.path}: has no trained model; finish it with `glassformer resume "
            f"{origin.path}`"
        )
    learned, own = read_tensors(origin.model), weights_of(model)
    chosen = {
        name: tensor
        for name, tensor in learned.items()
        if name in own and (part is None or f"{name}.".startswith(f"{part}."))
    }
    parts = sorted({name.split(".")[0] for name in chosen})
    if not chosen:
        has = sorted({name.split(".")[0] for name in learned})
        raise GlassformerError(
            f"{origin.path}: nothing there fits {part or 'this model'}; its parts are "
            f"{', '.join(has)}"
        )
    put_weights(model, own | chosen, str(origin.path))
    return parts
