"""`glassformer explain`: what a prediction is based on."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.options import AsJson, Device, RunFolder
from glassformer.terminal import Terminal, print_json, print_line


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
    layer: Annotated[
        str | None, typer.Option(help="Layer of attention to show, from 0, such as 1 or encoder.1.")
    ] = None,
    head: Annotated[int | None, typer.Option(help="Head of attention to show, from 0.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page (.html), picture (.png, .svg) or .json."),
    ] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Show what a prediction is based on.

    Example: glassformer explain runs/reviews "What a film"
    """
    from glassformer.explaining.views.output import check_out, write_explanation
    from glassformer.explaining.views.terminal import ExplanationView
    from glassformer.runs.run import Run

    if out is not None:
        check_out(out)
    loaded = Run(run, device=device)
    parsed = loaded.predictor.parse(given)
    found = loaded.explain(parsed, method=method, target=target, unit=unit)
    if out is not None:
        write_explanation(found, out, layer=layer, head=head)
        print_line(f"wrote {out}", stderr=True)
    if as_json:
        print_json(found.as_values())
    elif out is None:
        Terminal().print(ExplanationView(explanation=found, layer=layer, head=head))
