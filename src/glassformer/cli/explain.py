"""`glassformer explain`: what a prediction is based on."""

from pathlib import Path
from typing import Annotated, Any

import typer

from glassformer.cli.options import AsJson, Device, RunFolder
from glassformer.cli.studies import Studies, show_study
from glassformer.errors import GlassformerError
from glassformer.terminal import Terminal, print_json, print_line


def explain(
    run: RunFolder,
    given: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT",
            help="The input to explain, such as a text; for a study of many rows, a file of them "
            "(by default, the validation rows).",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="How influence is computed; by default, the most faithful fast method."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Explain this label or text instead of the prediction.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="Explain by word or by token.")] = None,
    layer: Annotated[
        str | None, typer.Option(help="Attention layer to show, from 0: 1, or encoder.1.")
    ] = None,
    head: Annotated[int | None, typer.Option(help="Attention head to show, from 0.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a page (.html), a picture (.png, .svg, .pdf) or .json."
        ),
    ] = None,
    nearest: Annotated[
        int, typer.Option(min=0, metavar="N", help="Show the N nearest training rows.")
    ] = 0,
    summary: Annotated[
        bool, typer.Option("--summary", help="Show which words matter overall, over many rows.")
    ] = False,
    faithfulness: Annotated[
        bool, typer.Option("--faithfulness", help="Measure how faithful every method is.")
    ] = False,
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
        bool,
        typer.Option("--prune", help="Find how many heads can go before the score gets worse."),
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
    from glassformer.explaining.views.output import check_out
    from glassformer.explaining.views.terminal import ExplanationView
    from glassformer.runs.run import Run

    if out is not None:
        check_out(out)
    studies = Studies(
        summary=summary, faithfulness=faithfulness, heads=heads, ablate=ablate, prune=prune
    )
    studies.refuse_several()
    loaded = Run(run, device=device)
    if studies.chosen:
        idle: dict[str, object] = {"target": target, "unit": unit, "layer": layer, "head": head}
        idle |= {"set": settings, "nearest": nearest} | ({} if summary else {"method": method})
        studies.refuse_idle(idle)
        rows = [] if given is None else [given]
        show_study(studies, loaded, rows, method=method, out=out, as_json=as_json)
        return
    if given is None:
        raise GlassformerError(
            f"nothing to explain; give a {loaded.predictor.noun}, or --summary, --faithfulness, "
            f"--heads, --ablate or --prune"
        )
    _refuse_choice(layer, head, shown=not as_json if out is None else out.suffix != ".json")
    parsed = loaded.predictor.parse(given)
    options: dict[str, Any] = {"set": settings} if settings else {}
    found = loaded.explain(
        parsed, method=method, target=target, unit=unit, nearest=nearest, **options
    )
    if out is not None:
        found.save(out, layer=layer, head=head)
        print_line(f"wrote {out}", stderr=True)
    if as_json:
        print_json(found.as_values())
    elif out is None:
        Terminal().print(ExplanationView(explanation=found, layer=layer, head=head))


def _refuse_choice(layer: str | None, head: int | None, *, shown: bool) -> None:
    """Refuse a choice of attention where all of it is written."""
    if not shown and not (layer is None and head is None):
        raise GlassformerError("JSON has every layer and head; leave out --layer and --head")
