"""Train Transformers from scratch on your own data, run them fast, and see inside.

The names in PUBLIC are the public interface; anything else may change. They are imported when they
are first used, so that `import glassformer` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glassformer.config import (
        ModelConfig as ModelConfig,
        StackConfig as StackConfig,
        encoder_decoder_of_size as encoder_decoder_of_size,
        stack_of_size as stack_of_size,
    )
    from glassformer.config.own_code import allow_code as allow_code
    from glassformer.core.attention import (
        MultiHeadAttention as MultiHeadAttention,
        attend as attend,
        weigh as weigh,
    )
    from glassformer.core.caches import (
        Cache as Cache,
        FixedCache as FixedCache,
        GrowingCache as GrowingCache,
        KeyCache as KeyCache,
        Memory as Memory,
        PagePool as PagePool,
        StateCache as StateCache,
    )
    from glassformer.core.heads import Heads as Heads
    from glassformer.core.kernels import KERNELS as KERNELS
    from glassformer.core.layout import Layout as Layout, pack as pack, pad as pad
    from glassformer.core.masks import (
        Mask as Mask,
        causal as causal,
        documents as documents,
        everything as everything,
        prefix as prefix,
        valid_lengths as valid_lengths,
        window as window,
    )
    from glassformer.core.positions import (
        POSITIONS as POSITIONS,
        Position as Position,
        make_position as make_position,
    )
    from glassformer.errors import GlassformerError as GlassformerError
    from glassformer.explaining.watching import watching as watching
    from glassformer.models.build import (
        build_classifier as build_classifier,
        build_language_model as build_language_model,
        build_masked_model as build_masked_model,
        build_transformer as build_transformer,
    )
    from glassformer.runs.api import (
        align as align,
        load as load,
        resume as resume,
        train as train,
    )
    from glassformer.runs.compare import compare as compare
    from glassformer.runs.doctor import doctor as doctor
    from glassformer.runs.estimate import Estimate as Estimate
    from glassformer.runs.plan import plan as plan
    from glassformer.runs.run import Run as Run

__version__ = "0.1.0"

PUBLIC: dict[str, tuple[str, ...]] = {
    "glassformer.config": (
        "ModelConfig",
        "StackConfig",
        "encoder_decoder_of_size",
        "stack_of_size",
    ),
    "glassformer.config.own_code": ("allow_code",),
    "glassformer.core.attention": ("MultiHeadAttention", "attend", "weigh"),
    "glassformer.core.caches": (
        "Cache",
        "FixedCache",
        "GrowingCache",
        "KeyCache",
        "Memory",
        "PagePool",
        "StateCache",
    ),
    "glassformer.core.heads": ("Heads",),
    "glassformer.core.kernels": ("KERNELS",),
    "glassformer.core.layout": ("Layout", "pack", "pad"),
    "glassformer.core.masks": (
        "Mask",
        "causal",
        "documents",
        "everything",
        "prefix",
        "valid_lengths",
        "window",
    ),
    "glassformer.core.positions": ("POSITIONS", "Position", "make_position"),
    "glassformer.errors": ("GlassformerError",),
    "glassformer.explaining.watching": ("watching",),
    "glassformer.models.build": (
        "build_classifier",
        "build_language_model",
        "build_masked_model",
        "build_transformer",
    ),
    "glassformer.runs.estimate": ("Estimate",),
    "glassformer.runs.compare": ("compare",),
    "glassformer.runs.doctor": ("doctor",),
    "glassformer.runs.plan": ("plan",),
    "glassformer.runs.run": ("Run",),
    "glassformer.runs.api": ("align", "load", "resume", "train"),
}


def __getattr__(name: str) -> Any:
    for module, names in PUBLIC.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'glassformer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(["__version__", *(name for names in PUBLIC.values() for name in names)])
