"""Compare: variants of a run, trained under the same budget with the same seeds, side by side.

A comparison is a folder with one ordinary run for every variant and seed:

compare.json         what is compared; a comparison goes on only with the same
rotary-seed-0/ ...   the runs
comparison.html      the result, also as .md and .json

All runs are prepared before the first is trained, so a variant that cannot be trained is refused at
once. The runs of one variant share their rows, whatever the seed, and so do variants that read the
same data. After a kill, the same command continues: finished runs are kept, the others resumed.
"""

import inspect
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from glassformer import processes
from glassformer.config import require
from glassformer.config.run import Config
from glassformer.errors import GlassformerError, unknown
from glassformer.files import write_json
from glassformer.reports.variants import VariantComparison
from glassformer.reports.variants_page import write_comparison
from glassformer.runs.arguments import Data, training_arguments
from glassformer.runs.compare_request import (
    PLAN,
    SPLITS,
    CompareRequest,
    budget_of,
    comparison_request,
    folder_of,
)
from glassformer.runs.comparing import failure_notes, notes_on, results_of, units_notes
from glassformer.runs.display import Display
from glassformer.runs.folder import RunFolder
from glassformer.runs.lock import run_lock
from glassformer.runs.measuring import MeasuredRun, measure
from glassformer.runs.model_size import predicted_bytes
from glassformer.runs.new_folder import cannot_create, remove_empty, under_temporary_name
from glassformer.runs.parallel import fitting_at_once, train_all
from glassformer.runs.prepare import Prepared, prepare
from glassformer.runs.request import TrainRequest
from glassformer.runs.rows import opened_rows
from glassformer.runs.run import Run
from glassformer.runs.variants import Variant, base_request, resolve_all
from glassformer.training.machine import choose_machine
from glassformer.training.setup import TrainSetup
from glassformer.wording import counted

LONGEST_NAME = 80  # of a folder
OWN = ("vary", "seeds", "one_at_a_time", "on", "longer", "at_once", "quiet")
LEFT_OUT = ("seed", "pretrain", "curve", "model", "quiet")  # arguments of train


def compare(
    job: str,
    *data: Data,
    vary: Mapping[str, Sequence[Any]] | Sequence[str] | str,
    seeds: int = 3,
    one_at_a_time: bool = False,
    on: str = "valid",
    longer: Sequence[Data] = (),
    at_once: int | None = None,
    quiet: bool = False,
    **options: Any,
) -> VariantComparison:
    """Compare variants: `compare("classify", "a.csv", vary={"model.norm": ["rms", "layer"]}, ...)`.

    Args:
        vary: The values of each setting that varies.
        seeds: How many runs of each variant.
        one_at_a_time: Whether to change one setting at a time instead of all combinations.
        on: The split to compare on, valid or test.
        longer: More rows to score, such as longer ones than in training.
        at_once: How many runs to train at once; by default what the machine allows.
        quiet: Whether to suppress progress output.
        options: Those of `train`, the budget among them: time, steps, epochs or flops.
    """
    known = [name for name in train_names() if name not in LEFT_OUT]
    for name in options:
        if name not in known:
            raise GlassformerError(unknown("argument of compare", name, [*OWN, *known]))
    base, display = training_arguments(job, *data, quiet=quiet, **options)
    request = comparison_request(
        base,
        vary,
        seeds=seeds,
        one_at_a_time=one_at_a_time,
        on=on,
        longer=longer,
        at_once=at_once,
    )
    return run_comparison(request, display)


def train_names() -> list[str]:
    """The names of the optional arguments of `train`."""
    found = inspect.signature(training_arguments).parameters.values()
    return [one.name for one in found if one.kind is one.KEYWORD_ONLY]


def run_comparison(request: CompareRequest, display: Display) -> VariantComparison:
    """Train what is missing of a comparison, measure all runs, and write the result."""
    if processes.world_size() > 1:
        raise GlassformerError("compare starts processes of its own; drop torchrun")
    base = base_request(request.base)
    variants = request.variants
    configs = dict(zip(variants, resolve_all(variants, base, request.on), strict=True))
    budget_of(configs[variants[0]])  # refuses to begin without one
    target = folder_of(request)
    is_new, missing = not target.exists(), [one for one in target.parents if not one.exists()]
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_create(target, error) from None
    try:
        with run_lock(target):
            return Comparing(request, base, configs, target, display).run()
    except GlassformerError:
        if is_new and not any(target.glob("*/checkpoints")):  # nothing trained is lost
            shutil.rmtree(target, ignore_errors=True)
            remove_empty(missing)
        raise
    except BaseException as error:
        if not isinstance(error, Exception):  # Ctrl-C or SIGTERM
            display.say("to continue the comparison, give the same command again")
        raise


class Comparing:
    """One comparison at work in its folder."""

    def __init__(
        self,
        request: CompareRequest,
        base: TrainRequest,
        configs: Mapping[Variant, Config],
        folder: Path,
        display: Display,
    ) -> None:
        self.request, self.base, self.configs = request, base, configs
        self.folder, self.display = folder, display
        self.machine = choose_machine(next(iter(configs.values())).machine)
        self.largest = 0  # bytes of the largest model in training

    def run(self) -> VariantComparison:
        """Prepare, train, measure, compare."""
        if not (self.folder / PLAN).exists():
            write_json(self.request.plan(), self.folder / PLAN)
        self.display.say(f"comparison folder: {self.folder}")
        for variant in self.configs:
            self.prepare(variant)
        failures, at_once, kept = self.train()
        measured = self.measure(failures)
        found = self.compare(measured, failures, at_once, kept)
        write_comparison(found, self.folder)
        return found

    def path(self, variant: Variant, seed: int) -> Path:
        """The folder of a run."""
        name = re.sub(r"[^\w.=,-]+", "", variant.name.replace(", ", ","))
        if name != variant.name.replace(", ", ",") or len(name) > LONGEST_NAME:
            digest = blake2b(str(variant).encode(), digest_size=4).hexdigest()
            name = f"{name[:LONGEST_NAME]}-{digest}"
        return self.folder / f"{name}-seed-{seed}"

    def runs(self) -> Iterator[tuple[Variant, int, Path]]:
        """Every run; one seed of all variants comes before the next seed."""
        for seed in range(self.request.seeds):
            for variant in self.configs:
                yield variant, seed, self.path(variant, seed)

    def prepare(self, variant: Variant) -> None:
        """Read the data of a variant once, and make a run folder for each missing seed."""
        paths = {seed: path for one, seed, path in self.runs() if one == variant}
        missing = {seed: path for seed, path in paths.items() if not path.exists()}
        if not missing:
            return
        self.display.say(f"preparing {variant}")
        first = self.folder / ".prepared"
        shutil.rmtree(first, ignore_errors=True)  # of a run that was killed
        request = replace(variant.request(self.base), run=first, seed=0)
        try:
            prepared = prepare(
                request, request.resolve(), self.display, self.request.command(), suits=False
            )
            self.refuse_no_rows(prepared)
        except GlassformerError as error:
            shutil.rmtree(first, ignore_errors=True)
            raise GlassformerError(f"{variant}: {error}") from None
        folder, config = prepared.folder, prepared.config
        for seed, path in missing.items():
            with under_temporary_name(path) as place:
                shutil.copytree(folder.path, place, dirs_exist_ok=True, copy_function=linked)
                RunFolder(place).write_config(replace(config, seed=seed))
        needs = predicted_bytes(config, lambda smaller: folder.open_task(smaller, None))
        self.largest = max(self.largest, needs.total)
        shutil.rmtree(first)

    def refuse_no_rows(self, run: Prepared) -> None:
        """Refuse rows that are not there, or cannot be read, before anything is trained."""
        split = SPLITS[self.request.on]
        require(
            len(run.task.lengths(self.request.on)) > 0,
            f"there are no {split} rows to compare on; give some with --{self.request.on}",
        )
        setup = TrainSetup(run.config.train, run.config.data, self.machine, run.config.seed)
        for name in self.request.longer:
            with opened_rows(run.folder, run.config, run.task, setup, [name], {}):
                pass

    def train(self) -> tuple[dict[Path, str], int, int]:
        """Train what is not finished; returns failures, how many ran at once and were finished."""
        unfinished = {
            path: f"{variant.name}, seed {seed}"
            for variant, seed, path in self.runs()
            if not RunFolder(path).is_finished
        }
        allowed = fitting_at_once(self.machine.device, self.largest)
        at_once = min(self.request.at_once or allowed, max(1, len(unfinished)))
        kept = len(self.configs) * self.request.seeds - len(unfinished)
        finished = f", {kept} already finished" if kept else ""
        line = f"{counted(len(unfinished), 'run')} to train{finished}, {at_once} at once"
        self.display.say(line if unfinished else f"all {kept} runs are already finished")
        failures = train_all(unfinished, at_once, self.machine.device, self.display)
        return failures, at_once if unfinished else 0, kept

    def measure(self, failures: Mapping[Path, str]) -> dict[Variant, list[MeasuredRun]]:
        """What the finished runs are like, for variants of which all are finished."""
        whole = [
            variant
            for variant in self.configs
            if not any(path in failures for one, _, path in self.runs() if one == variant)
        ]
        if len(whole) < 2:
            why = "; ".join(dict.fromkeys(failures.values()))
            raise GlassformerError(f"{self.folder}: fewer than two variants can be trained: {why}")
        found: dict[Variant, list[MeasuredRun]] = {variant: [] for variant in whole}
        device = self.machine.device.type
        with self.display.bar("measuring") as done:
            for count, (variant, _, path) in enumerate(self.runs(), start=1):
                if variant in found:
                    run = Run(path, device=device)
                    found[variant].append(measure(run, self.request.on, self.request.longer))
                done(count, len(self.configs) * self.request.seeds)
        return found

    def compare(
        self,
        measured: Mapping[Variant, list[MeasuredRun]],
        failures: Mapping[Path, str],
        at_once: int,
        kept: int,
    ) -> VariantComparison:
        """The comparison of the measured variants."""
        beside = f", {at_once} at once" if at_once else ""
        first = next(iter(measured.values()))[0]
        goal = first.reporter.task.goal
        results, paired = results_of(measured, goal)
        keys = list(self.request.choices)
        return VariantComparison(
            title=f"{self.base.job} on {', '.join(map(str, self.base.data))}: {', '.join(keys)}",
            varied=keys,
            goal=goal,
            facts={
                "budget": f"{budget_of(next(iter(self.configs.values())))} for each run",
                "seeds": self.request.seeds,
                "scored on": f"{len(first.where):,} rows of the {SPLITS[self.request.on]} split",
                "machine": self.machine.described + beside,
                "command": self.request.command(),
                "folder": str(self.folder),
            },
            variants=results,
            notes=[
                *notes_on(self.request, paired, at_once, kept),
                *units_notes(first.scores[goal], self.request.seeds),
                *failure_notes(failures, self.runs()),
            ],
        )


def linked(source: str, target: str) -> str:
    """The same file under another name, without a copy where the system allows; never a config."""
    if Path(source).parent.name != "data":
        return str(shutil.copy2(source, target))
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
