"""`glassformer explain`: what a prediction is based on."""

from pathlib import Path
from typing import Annotated, Any

import typer

from glassformer.cli.heads import refuse_idle, study_heads
from glassformer.cli.options import AsJson, Device, RunFolder
from glassformer.errors import GlassformerError
from glassformer.terminal import Terminal, print_json, print_line


def explain(
    run: RunFolder,
    given: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT",
            help="An input, such as a text. With --heads, --ablate and --prune, a file of rows; "
            "by default, the validation rows.",
        ),
    ] = None,
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
    heads: Annotated[
        bool, typer.Option("--heads", help="Show where each attention head looks.")
    ] = False,
    ablate: Annotated[
        list[str],
        typer.Option(
            metavar="L.H",
            help="Score without a head (3.5: head 5 of layer 3), a layer (3), or each of them in "
            "turn (heads, layers); repeatable.",
        ),
    ] = [],  # noqa: B006
    prune: Annotated[
        bool, typer.Option("--prune", help="Find how many heads can go before the score falls.")
    ] = False,
    settings: Annotated[
        list[str],
        typer.Option("--set", metavar="key=value", help="Change a decoding setting; repeatable."),
    ] = [],  # noqa: B006
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
    if heads or ablate or prune:
        idle = {"method": method, "target": target, "unit": unit, "layer": layer, "head": head}
        refuse_idle({**idle, "out": out, "set": settings or None})
        rows = [] if given is None else [given]
        study_heads(loaded, rows, heads=heads, ablate=ablate, prune=prune, as_json=as_json)
        return
    if given is None:
        raise GlassformerError(
            f"nothing to explain; give a {loaded.predictor.noun}, or --heads, --ablate or --prune"
        )
    parsed = loaded.predictor.parse(given)
    options: dict[str, Any] = {"set": settings} if settings else {}
    found = loaded.explain(parsed, method=method, target=target, unit=unit, **options)
    if out is not None:
        write_explanation(found, out, layer=layer, head=head)
        print_line(f"wrote {out}", stderr=True)
    if as_json:
        print_json(found.as_values())
    elif out is None:
        Terminal().print(ExplanationView(explanation=found, layer=layer, head=head))
