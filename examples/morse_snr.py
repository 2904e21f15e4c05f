"""How noise spoils Morse code: character errors of the test texts from +10 to -12 dB.

    python examples/morse_snr.py               the decoder that learns nothing
    python examples/morse_snr.py runs/morse    beside a run trained on the set `morse`

SNR is the power of the tone over the noise in 500 Hz around it.
"""

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table

from glassformer import load
from glassformer.data.audio.morse_decoder import decode
from glassformer.data.catalog.morse import RATE, Clip, clips
from glassformer.metrics.error_rates import character_error_rate

SNRS = (10.0, 6.0, 3.0, 0.0, -3.0, -6.0, -9.0, -12.0)  # dB

Reader = Callable[[list[np.ndarray]], list[str]]


def decoded(sounds: list[np.ndarray]) -> list[str]:
    """The texts by the decoder."""
    return [decode(sound, RATE) for sound in sounds]


def trained(folder: str) -> Reader:
    """The texts by a run."""
    run = load(folder)
    return lambda sounds: [one.text.upper() for one in run.predict(sounds)]


def errors(reader: Reader, some: list[Clip]) -> float:
    """The share of wrong characters."""
    sounds = [clip.samples().astype(np.float32) / 2**15 for clip in some]
    references = [[clip.text] for clip in some]
    return character_error_rate(reader(sounds), references).score().value


def main() -> None:
    """Print a table, a row for each SNR."""
    readers = {"decoder": decoded} | {folder: trained(folder) for folder in sys.argv[1:]}
    test = [clip for clip in clips() if clip.split == "test"]
    table = Table("SNR, dB", *(f"{name}, CER %" for name in readers))
    for snr in SNRS:
        some = [replace(clip, keying=replace(clip.keying, snr=snr)) for clip in test]
        rates = (errors(reader, some) for reader in readers.values())
        table.add_row(f"{snr:+g}", *(f"{100 * rate:.1f}" for rate in rates))
    Console().print(table)


if __name__ == "__main__":
    main()
