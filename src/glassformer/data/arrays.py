"""Numpy files, mapped rather than read; what is not as it was written is refused in one line."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import GlassformerError


def map_array(path: Path, axes: int = 1) -> NDArray[Any]:
    """The array in a file, which holds numbers and cannot run code."""
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise GlassformerError(
            f"{path}: cannot be read ({error.strerror or error}); check the path"
        ) from None
    except Exception as error:  # of many kinds, for a header that numpy cannot make out
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise GlassformerError(
            f"{path}: not a whole numpy file ({reason}); it was cut short or is something else, "
            f"write it again"
        ) from None
    if not isinstance(mapped, np.ndarray) or mapped.ndim != axes:
        kind = "one row of numbers after another" if axes == 1 else "a table of numbers"
        raise GlassformerError(f"{path}: not {kind}; write it again")
    return mapped.view(np.ndarray)  # slices of a memmap cost more than those of an array


def map_numbers(path: Path, shape: tuple[int, ...], below: int) -> NDArray[Any]:
    """An array of this shape, of whole numbers from 0 up to `below`, which is none of them."""
    found = map_array(path, axes=len(shape))
    if found.shape != shape:
        raise GlassformerError(
            f"{path}: does not belong to the samples beside it, its shape is {found.shape} instead "
            f"of {shape}; copy the run again"
        )
    refuse_outside(found, below, path)
    return found


def refuse_outside(values: NDArray[Any], below: int, path: Path) -> None:
    """Refuse all but whole numbers from 0 up to `below`, in one pass over them."""
    dtype = values.dtype
    if dtype.kind not in "iu" or not dtype.isnative:
        raise GlassformerError(
            f"{path}: holds {dtype} where whole numbers belong; copy the run again"
        )
    if not values.size:
        return
    largest = int(values.view(f"u{dtype.itemsize}").max())  # what is below 0 is very large there
    if largest >= below:
        raise GlassformerError(
            f"{path}: holds numbers that are not from 0 to {below - 1}; copy the run again"
        )
