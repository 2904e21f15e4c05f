"""Compare: variants of a run, trained under the same budget with the same seeds, side by side.

A comparison is a folder with one ordinary run for every variant and seed:

compare.json         what is compared; a comparison goes on only with the same
rotary-seed-0/ ...   the runs
comparison.html      the result, also as .md and .json

All runs are prepared before the first is trained, so a variant that cannot be trained is refused at
once. The runs of one variant share their rows, whatever the seed, and so do variants that read the
same data. After a kill, the same command continues: finished runs are kept, the others resumed.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from glassformer import processes
from glassformer.config import choose, require
from glassformer.config.run import Config
from glassformer.errors import GlassformerError
from glassformer.files import read_json, write_json
from glassformer.reports.variants import VariantComparison
from glassformer.reports.variants_page import write_comparison
from glassformer.runs.arguments import Data
from glassformer.runs.comparing import results_of
from glassformer.runs.display import Display, clock
from glassformer.runs.folder import RunFolder
from glassformer.runs.lock import run_lock
from glassformer.runs.measuring import MeasuredRun, measure
from glassformer.runs.model_size import predicted_bytes
from glassformer.runs.new_folder import HOME, free_name, refuse_existing, under_temporary_name
from glassformer.runs.parallel import fitting_at_once, train_all
from glassformer.runs.prepare import prepare
from glassformer.runs.request import HOW_LONG, TrainRequest, seconds
from glassformer.runs.run import Run
from glassformer.runs.variants import (
    Choices,
    Variant,
    base_request,
    choices_of,
    resolve_all,
    variants_of,
)
from glassformer.training.machine import choose_machine

PLAN = "compare.json"
SPLITS = {"valid": "validation", "test": "test"}
LONGEST_NAME = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareRequest:
    """A comparison as requested.

    Attributes:
        base: What all variants share: the job, the data, the budget, other settings.
        choices: The values of each setting that varies.
        seeds: How many seeds, from 0.
        on: The split that is scored.
        longer: More rows to score, such as longer ones than in training.
        at_once: Runs trained at the same time; None for as many as the machine allows.
    """

    base: TrainRequest
    choices: Choices
    seeds: int = 3
    one_at_a_time: bool = False
    on: str = "valid"
    longer: tuple[Data, ...] = ()
    at_once: int | None = None

    def __post_init__(self) -> None:
        require(self.seeds >= 1, f"--seeds must be 1 or more, got {self.seeds}")
        require(
            self.at_once is None or self.at_once >= 1,
            f"--at-once must be 1 or more, got {self.at_once}",
        )
        choose("split in --on", self.on, tuple(SPLITS))

    @property
    def variants(self) -> list[Variant]:
        """Every variant, in the order given."""
        return variants_of(self.choices, one_at_a_time=self.one_at_a_time)

    def plan(self) -> dict[str, Any]:
        """What makes it the same comparison, as plain values."""
        usual = TrainRequest(job=self.base.job, data=())
        given = {
            one.name: _plain(getattr(self.base, one.name))
            for one in fields(self.base)
            if one.name != "run" and getattr(self.base, one.name) != getattr(usual, one.name)
        }
        return {
            "request": given,
            "vary": {key: list(values) for key, values in self.choices.items()},
            "one_at_a_time": self.one_at_a_time,
            "seeds": self.seeds,
        }

    def command(self) -> str:
        """The equivalent command line."""
        words = self.base.command().split(" ")
        words[1] = "compare"
        more = [("--vary", f"{key}={','.join(some)}") for key, some in self.choices.items()]
        more += [("--seeds", str(self.seeds))]
        more += [("--on", self.on)] if self.on != "valid" else []
        more += [("--longer", str(name)) for name in self.longer]
        line = " ".join(words) + "".join(f" {key} {shlex.quote(value)}" for key, value in more)
        return line + (" --one-at-a-time" if self.one_at_a_time else "")


def _plain(value: object) -> Any:
    """A value of a request for JSON; rows held in memory by their name."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, bool | int | float) else str(value)


def run_comparison(request: CompareRequest, display: Display) -> VariantComparison:
    """Train what is missing of a comparison, measure all runs, and write the result."""
    if processes.world_size() > 1:
        raise GlassformerError("compare starts processes of its own; drop torchrun")
    base = base_request(request.base)
    variants = request.variants
    configs = dict(zip(variants, resolve_all(variants, base), strict=True))
    refuse_no_budget(configs[variants[0]])
    target = folder_of(request)
    is_new = not (target / PLAN).exists()
    target.mkdir(parents=True, exist_ok=True)
    try:
        with run_lock(target):
            return Comparing(request, base, configs, target, display).run()
    except GlassformerError:
        if is_new and not any(target.glob("*/checkpoints")):  # nothing trained is lost
            shutil.rmtree(target, ignore_errors=True)
        raise


def refuse_no_budget(config: Config) -> None:
    """Without a budget, the variants could not be compared."""
    require(
        any(getattr(config.train, name) is not None for name in HOW_LONG),
        "a comparison needs a budget, the same for every variant; add --time, --steps, --epochs or "
        "--flops",
    )


def folder_of(request: CompareRequest) -> Path:
    """The folder of a comparison: the one given, one begun with the same command, or a new one."""
    plan, given = request.plan(), request.base.run
    if given is not None:
        found = plan_in(given)
        if found is None:
            refuse_existing(given)
        elif found != plan:
            raise GlassformerError(
                f"{given}: was made with other {', '.join(differing(found, plan))}; give the same, "
                f"or name another folder with --run"
            )
        return given
    stem = f"{free_name(request.base.name).name}"
    stem = re.sub(r"-\d+$", "", stem) + "-compare"
    for number in range(1, 10_000):
        path = HOME / (stem if number == 1 else f"{stem}-{number}")
        if not path.exists() or plan_in(path) == plan:
            return path
    raise GlassformerError(f"{HOME / stem}: too many comparisons; name a folder with --run")


def plan_in(folder: Path) -> Any:
    """What the comparison in a folder compares; None if there is none."""
    if not (folder / PLAN).exists():
        return None
    try:
        return read_json(folder / PLAN)
    except (OSError, ValueError) as error:
        raise GlassformerError(
            f"{folder / PLAN}: damaged ({error}); name another folder with --run"
        ) from None


def differing(found: Any, plan: Mapping[str, Any]) -> list[str]:
    """The names of what differs between two plans."""
    if not isinstance(found, dict) or not isinstance(found.get("request"), dict):
        return ["settings"]
    before, now = found["request"], plan["request"]
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return names + [key for key in plan if key != "request" and found.get(key) != plan[key]]


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
        failures, at_once = self.train()
        measured = self.measure(failures)
        found = self.compare(measured, failures, at_once)
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
            prepared = prepare(request, request.resolve(), self.display, self.request.command())
            self.refuse_no_rows(prepared.task.lengths(self.request.on))
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

    def refuse_no_rows(self, lengths: Sequence[int]) -> None:
        """Refuse a comparison on a split without rows before anything is trained."""
        split = SPLITS[self.request.on]
        require(len(lengths) > 0, f"there are no {split} rows to compare on; give some")

    def train(self) -> tuple[dict[Path, str], int]:
        """Train all runs that are not finished; returns the failures and how many ran at once."""
        unfinished = {
            path: f"{variant.name}, seed {seed}"
            for variant, seed, path in self.runs()
            if not RunFolder(path).is_finished
        }
        allowed = fitting_at_once(self.machine.device, self.largest)
        at_once = min(self.request.at_once or allowed, max(1, len(unfinished)))
        kept = len(self.configs) * self.request.seeds - len(unfinished)
        finished = f", {kept} already finished" if kept else ""
        self.display.say(f"{len(unfinished)} runs to train{finished}, {at_once} at once")
        return train_all(unfinished, at_once, self.machine.device, self.display), at_once

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
    ) -> VariantComparison:
        """The comparison of the measured variants."""
        first = next(iter(measured.values()))[0]
        goal = first.reporter.task.goal
        results, paired = results_of(measured, goal)
        keys = list(self.request.choices)
        return VariantComparison(
            title=f"{self.base.job} on {', '.join(map(str, self.base.data))}: {', '.join(keys)}",
            varied=keys,
            goal=goal,
            facts={
                "budget": f"{budget_of(self.base, self.configs)} for each run",
                "seeds": self.request.seeds,
                "scored on": f"{len(first.where):,} rows of the {SPLITS[self.request.on]} split",
                "machine": f"{self.machine.described}, {at_once} at once",
                "command": self.request.command(),
                "folder": str(self.folder),
            },
            variants=results,
            notes=[*self.notes(paired, at_once), *failure_notes(failures, self.runs())],
        )

    def notes(self, paired: bool, at_once: int) -> list[str]:
        """What to know about the numbers."""
        notes = []
        if self.request.seeds == 1:
            notes.append(
                "One seed: the intervals cover the choice of rows only, and a difference may be "
                "that of the seed; use more seeds."
            )
        else:
            notes.append("Intervals are 95 %, over seeds and rows.")
        notes.append(
            "p: the probability of a difference at least this large by chance, corrected for the "
            "number of variants (Holm); above 0.05 it is a tie."
        )
        if self.request.on == "valid":
            notes.append("The validation rows also chose the checkpoint of each run.")
        if not paired:
            notes.append("Some variants read different rows, so their differences are not paired.")
        if at_once > 1:
            notes.append(f"Speed and memory are those of {at_once} runs side by side.")
        return notes


def linked(source: str, target: str) -> str:
    """The same file under another name, without a copy where the system allows; never a config."""
    if Path(source).parent.name != "data":
        return str(shutil.copy2(source, target))
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def budget_of(base: TrainRequest, configs: Mapping[Variant, Config]) -> str:
    """The budget in words."""
    train = next(iter(configs.values())).train
    if train.time is not None:
        return clock(seconds(train.time) or 0.0)
    if train.flops is not None:
        return f"{train.flops:.3g} FLOPs"
    return f"{train.steps:,} steps" if train.steps is not None else f"{train.epochs:g} epochs"


def failure_notes(
    failures: Mapping[Path, str], runs: Iterator[tuple[Variant, int, Path]]
) -> list[str]:
    """Which variants are left out, and why."""
    return [
        f"{variant.name} is left out: seed {seed} failed: {failures[path]}"
        for variant, seed, path in runs
        if path in failures
    ]


def comparison_request(
    base: TrainRequest,
    vary: object,
    *,
    seeds: int = 3,
    one_at_a_time: bool = False,
    on: str = "valid",
    longer: Sequence[Data] = (),
    at_once: int | None = None,
) -> CompareRequest:
    """A comparison as it is given on the command line and in Python."""
    return CompareRequest(
        base=base,
        choices=choices_of(vary),
        seeds=seeds,
        one_at_a_time=one_at_a_time,
        on=on,
        longer=tuple(longer),
        at_once=at_once,
    )
