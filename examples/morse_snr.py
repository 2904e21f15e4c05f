"""How noise spoils Morse code: character errors of the test texts from +10 to -12 dB.

    python examples/morse_snr.py                         the decoder that learns nothing
    python examples/morse_snr.py runs/morse              beside a run trained on the set `morse`
    python examples/morse_snr.py runs/morse curve.png    and drawn, which needs matplotlib

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
Curves = dict[str, list[float]]


def decoded(sounds: list[np.ndarray]) -> list[str]:
    """The texts by the decoder."""
    return [decode(sound, RATE) for sound in sounds]


def trained(folder: str) -> Reader:
    """The texts by a run."""
    run = load(folder)
    return lambda sounds: [one.text.upper() for one in run.predict(sounds)]


def errors(reader: Reader, some: list[Clip]) -> float:
    """The share of wrong characters, in percent."""
    sounds = [clip.samples().astype(np.float32) / 2**15 for clip in some]
    references = [[clip.text] for clip in some]
    return 100 * character_error_rate(reader(sounds), references).score().value


def print_table(curves: Curves) -> None:
    """A row for each SNR."""
    table = Table("SNR, dB", *(f"{name}, CER %" for name in curves))
    for snr, *rates in zip(SNRS, *curves.values(), strict=True):
        table.add_row(f"{snr:+g}", *(f"{rate:.1f}" for rate in rates))
    Console().print(table)


def draw(curves: Curves, path: str) -> None:
    """A line for each reader."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name, rates in curves.items():
        axes.plot(SNRS, rates, marker="o", label=name)
    axes.axhline(5, color="grey", linewidth=0.8, linestyle="--")
    axes.set(xlabel="SNR in 500 Hz, dB", ylabel="character errors, %", ylim=(0, None))
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print a table, and draw it if a picture is named."""
    pictures = [name for name in sys.argv[1:] if name.endswith(".png")]
    folders = [name for name in sys.argv[1:] if name not in pictures]
    readers = {"decoder": decoded} | {folder: trained(folder) for folder in folders}
    test = [clip for clip in clips() if clip.split == "test"]
    curves: Curves = {name: [] for name in readers}
    for snr in SNRS:
        some = [replace(clip, keying=replace(clip.keying, snr=snr)) for clip in test]
        for name, reader in readers.items():
            curves[name].append(errors(reader, some))
    print_table(curves)
    for path in pictures:
        draw(curves, path)


if __name__ == "__main__":
    main()
