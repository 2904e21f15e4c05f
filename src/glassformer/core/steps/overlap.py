"""Kernels that begin before the one before them has ended, on GPUs from Hopper on.

A kernel launched so loads its weights first, and waits before it reads what the one before it
writes (CUDA's programmatic dependent launch). For a single sequence, this hides most of a launch.
"""

from functools import cache

import torch

HOPPER = 9  # compute capability


@cache
def can_overlap(device: torch.device) -> bool:
    """Whether kernels on this device can."""
    return torch.cuda.get_device_capability(device)[0] >= HOPPER
