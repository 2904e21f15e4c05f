"""Contests of a benchmark, one after the other."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from glassformer.cli.bench import progress_bar, shown_if_cut_short
from glassformer.errors import GlassformerError, is_out_of_memory, unknown

if TYPE_CHECKING:
    from glassformer.benchmarks.generation.report import GenerationReport
    from glassformer.benchmarks.training.speed_report import SpeedReport


def refuse_unknown(names: Iterable[str], entries: Collection[str]) -> None:
    """Refuse the name of work that does not exist."""
    for name in names:
        if name not in entries:
            raise GlassformerError(unknown("work", name, entries))


def measure_each(
    report: "SpeedReport | GenerationReport",
    names: Sequence[str],
    measure: Callable[[str], Iterable[Any]],
    *,
    as_json: bool,
) -> None:
    """Measure all of these; what cannot be measured here is left out with a note."""
    with shown_if_cut_short(report, as_json), progress_bar() as progress:
        task = progress.add_task("", total=len(names))
        for name in names:
            progress.update(task, description=name)
            try:
                results = list(measure(name))
                report.sections[name] += results
                remarks = dict.fromkeys(r for one in results for r in one.remarks)
                report.notes += [f"{name}: {remark}" for remark in remarks]
            except GlassformerError as error:
                report.notes.append(f"{name}: left out, {error}")
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                report.notes.append(f"{name}: left out, does not fit in device memory")
            progress.advance(task)
