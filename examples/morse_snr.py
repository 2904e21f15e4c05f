"""How noise spoils Morse code: character errors of the test texts from +10 to -12 dB.

    python examples/morse_snr.py                         an adaptive threshold, which learns nothing
    python examples/morse_snr.py runs/morse              and a run trained on the set `morse`
    python examples/morse_snr.py runs/morse curve.png    and drawn, which needs matplotlib
    python examples/morse_snr.py docs/results/studies.md curve.png    the table of a page, drawn

SNR is the power of the tone over the noise in 500 Hz around it.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from glassformer import load
from glassformer.data.audio.morse_decoder import decode
from glassformer.data.catalog.morse import RATE, Clip, clips
from glassformer.metrics.error_rates import character_error_rate

SNRS = (10.0, 6.0, 3.0, 0.0, -3.0, -6.0, -9.0, -12.0)  # dB
THRESHOLD, TRAINED = "adaptive threshold, CER %", "trained network, CER %"

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


def curves_of(page: str) -> Curves:
    """The rows of the table in a page: those with an error rate for each SNR."""
    row = re.compile(rf"^\| ([^|]+, CER %)((?: \| [\d.]+){{{len(SNRS)}}}) \|$", re.MULTILINE)
    found = row.findall(Path(page).read_text(encoding="utf-8"))
    return {name: [float(rate) for rate in rates.split("|")[1:]] for name, rates in found}


def print_table(curves: Curves) -> None:
    """A row for each reader."""
    table = Table("SNR, dB", *(f"{snr:+g}" for snr in SNRS))
    for name, rates in curves.items():
        table.add_row(name, *(f"{rate:.1f}" for rate in rates))
    Console().print(table)


def draw(curves: Curves, path: str) -> None:
    """A line for each reader, named at its side; above 100 % errors nothing is readable."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for (name, rates), color in zip(curves.items(), ("#8a8a8a", "#0072b2"), strict=False):
        axes.plot(SNRS, rates, marker="o", color=color, label=name.removesuffix(", CER %"))
    axes.set(xlabel="signal-to-noise ratio, dB (noise in 500 Hz)", ylabel="wrong characters, %")
    axes.set(ylim=(0, 100), xticks=SNRS)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def measured(folders: list[str]) -> Curves:
    """The error rates of the threshold and of some runs."""
    names = [TRAINED] if len(folders) == 1 else [f"{folder}, CER %" for folder in folders]
    readers = {THRESHOLD: decoded} | dict(zip(names, map(trained, folders), strict=True))
    test = [clip for clip in clips() if clip.split == "test"]
    curves: Curves = {name: [] for name in readers}
    for snr in SNRS:
        some = [replace(clip, keying=replace(clip.keying, snr=snr)) for clip in test]
        for name, reader in readers.items():
            curves[name].append(errors(reader, some))
    return curves


def main() -> None:
    """Print a table, and draw it if a picture is named."""
    pictures = [name for name in sys.argv[1:] if name.endswith(".png")]
    pages = [name for name in sys.argv[1:] if name.endswith(".md")]
    folders = [name for name in sys.argv[1:] if name not in (*pictures, *pages)]
    curves = curves_of(pages[0]) if pages else measured(folders)
    print_table(curves)
    for path in pictures:
        draw(curves, path)


if __name__ == "__main__":
    main()
