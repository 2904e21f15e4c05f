"""Memory-mapped numpy files; a damaged file is refused in one line."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import GlassformerError


def map_array(path: Path, axes: int = 1) -> NDArray[Any]:
    """Map the array in a file; pickled objects are refused."""
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise GlassformerError(
            f"{path}: cannot be read ({error.strerror or error}); check the path"
        ) from None
    except Exception as error:  # numpy raises many kinds for a bad header
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise GlassformerError(
            f"{path}: not a valid numpy file ({reason}); it was truncated or is something else, "
            f"write it again"
        ) from None
    if not isinstance(mapped, np.ndarray) or mapped.ndim != axes:
        kind = "a one-dimensional array" if axes == 1 else "a table of numbers"
        raise GlassformerError(f"{path}: not {kind}; write it again")
    return mapped.view(np.ndarray)  # slices of a memmap cost more than those of an array


def map_numbers(path: Path, shape: tuple[int, ...], below: int) -> NDArray[Any]:
    """Map an array of this shape with integers from 0 to `below` - 1."""
    found = map_array(path, axes=len(shape))
    if found.shape != shape:
        raise GlassformerError(
            f"{path}: does not match the samples next to it, its shape is {found.shape} instead "
            f"of {shape}; copy the run again"
        )
    refuse_outside(found, below, path)
    return found


def refuse_outside(values: NDArray[Any], below: int, path: Path) -> None:
    """Refuse anything but integers from 0 to `below` - 1, in one pass."""
    dtype = values.dtype
    if dtype.kind not in "iu" or not dtype.isnative:
        raise GlassformerError(f"{path}: holds {dtype} instead of integers; copy the run again")
    if not values.size:
        return
    largest = int(values.view(f"u{dtype.itemsize}").max())  # negative numbers become very large
    if largest >= below:
        raise GlassformerError(
            f"{path}: holds numbers outside 0 to {below - 1}; copy the run again"
        )
