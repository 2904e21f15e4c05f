"""Explanations of many rows on the command line: how faithful they are, and a summary."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from glassformer.cli.heads import show_result
from glassformer.terminal import Terminal, print_json

if TYPE_CHECKING:
    from glassformer.explaining.faithfulness import Faithfulness
    from glassformer.explaining.summary import Summary, WordInfluence
    from glassformer.runs.run import Run


def study_methods(run: "Run", data: Sequence[str], *, as_json: bool) -> None:
    """Measure how faithful every method is, and show it."""
    from dataclasses import asdict

    found = run.explainer.measure(*data)
    print_json(asdict(found)) if as_json else show_faithfulness(found)


def summarise_rows(run: "Run", data: Sequence[str], *, method: str | None, as_json: bool) -> None:
    """Show which words matter overall, and where attention goes."""
    from glassformer.explaining.watching import attention_layers
    from glassformer.runs.display import Display

    found, heads = run.explainer.summary(*data, method=method), None
    if attention_layers(run.model):
        with Display().bar("reading rows") as progress:
            heads = run.heads.look(*data, progress=progress)
    if as_json:
        print_json(found.as_values() | ({} if heads is None else {"heads": heads.as_values()}))
        return
    show_summary(found)
    if heads is not None:
        show_result(heads)


def show_faithfulness(found: "Faithfulness") -> None:
    """One line per method: its gain over a random order, its curves, and what it costs."""
    from glassformer.cli.results import print_table
    from glassformer.explaining.faithfulness import CHANCE, SHARES

    first = f"{SHARES[0]:.0%} to {SHARES[-1]:.0%}"
    table = Table("method", "gain over chance", "without its first words", "with them only", "time")
    table.title = f"Faithfulness on {found.rows:,} rows"
    for column in table.columns[1:]:
        column.justify = "right"
    for name in (*found.ranked(), CHANCE):
        one = found.methods[name]
        gain = "" if name == CHANCE else str(one)
        cost = "" if name == CHANCE else f"{one.seconds * 1000:,.0f} ms"
        table.add_row(name, gain, _ends(one.deletion), _ends(one.insertion), cost)
    print_table(table)
    Terminal().say(
        f"Probability of the prediction without, and with only, {first} of the words, those that a "
        f"method names first"
    )


def _ends(curve: Sequence[float]) -> str:
    return f"{curve[0]:.2f} to {curve[-1]:.2f}"


def show_summary(found: "Summary") -> None:
    """The words for and against each target."""
    console = Terminal()
    if not found.supporting:
        console.say("The stretches of one recording are not those of another: none matters overall")
        return
    console.say(f"Words that matter overall, in {found.rows:,} rows")
    for target, words in found.supporting.items():
        against = found.opposing[target]
        if words or against:
            console.say(f"{target}", style="bold")
            console.say(f"  for: {_listed(words) or 'none'}")
            console.say(f"  against: {_listed(against) or 'none'}")
    console.say(f"Words in fewer than {found.least} rows are left out")
    console.say(f"{found.method.replace('_', ' ')}: {found.verdict}")


def _listed(words: "Iterable[WordInfluence]") -> str:
    return ", ".join(f"{one.word} {one.influence:+.2f}" for one in words)
