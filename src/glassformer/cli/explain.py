"""`glassformer explain`: what a prediction is based on."""

from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.options import AsJson, Device, RunFolder
from glassformer.terminal import print_json, print_line

if TYPE_CHECKING:
    from glassformer.explaining.explanation import Explanation


def explain(
    run: RunFolder,
    given: Annotated[str, typer.Argument(metavar="INPUT", help="An input, such as a text.")],
    method: Annotated[
        str | None, typer.Option(help="Method; by default, the most faithful fast one.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Explain this label or text instead of the prediction.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="What is explained: word or token.")] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Show what a prediction is based on.

    Example: glassformer explain runs/reviews "What a film"
    """
    from glassformer.runs.run import Run

    loaded = Run(run, device=device)
    parsed = loaded.predictor.parse(given)
    found = loaded.explain(parsed, method=method, target=target, unit=unit)
    if as_json:
        print_json(found.as_values())
    else:
        _show(found)


def _show(found: "Explanation") -> None:
    """One line per piece: its influence on the first target."""
    print_line(f"{found.answer} ({found.targets[0].probability:.0%})")
    for piece, influence in zip(found.pieces, found.influence[0].tolist(), strict=True):
        print_line(f"{influence:+.3f}", piece)
    print_line(f"method: {found.method}")
