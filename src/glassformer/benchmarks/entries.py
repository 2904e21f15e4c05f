"""What a command measures, by name, and on which kind of device."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

OURS = "glassformer"


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to measure on a kind of device."""

    device: str
    contests: Callable[[Any], Iterator[Any]]


def measured_here(
    only: Sequence[str], entries: Mapping[str, Entry], device: torch.device, *, small: bool
) -> tuple[list[str], list[str]]:
    """The names of what is measured on this device, and notes on what was asked for besides.

    Args:
        only: What was asked for; nothing for all that belongs here.
        small: Whether models are miniatures, which are measured anywhere.
    """
    here = [name for name, entry in entries.items() if small or entry.device == device.type]
    elsewhere = [
        f"{name}: left out, it is measured on {entries[name].device}"
        for name in only
        if name not in here
    ]
    return [name for name in only or here if name in here], elsewhere


def clear(device: torch.device) -> None:
    """Forget compiled models and free memory, so that contests do not affect one another."""
    gc.collect()
    if device.type == "cuda":
        torch.compiler.reset()
        torch.cuda.empty_cache()
