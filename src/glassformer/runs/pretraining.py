"""Pretraining: a first stage, where a short trial shows that it helps.

A job may declare a first stage: another job over the same samples whose weights it starts from, as
a classifier may first fill gaps in its own texts. The trial gives two models equal compute: one
trains for the job only, the other spends half of it on the first stage. If the second is better on
the validation rows, by more than chance, the run is pretrained. The decision is stored in
config.toml, so a resumed run keeps it.

Compute is counted, not timed, so that the same seed gives the same run; only a run with a time
budget is measured.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from glassformer import processes
from glassformer.config.run import Config
from glassformer.files import write_json
from glassformer.reports.wording import chance
from glassformer.runs.checksums import note_checksums
from glassformer.runs.display import Display
from glassformer.runs.first_stage import first_stage_config, first_stage_of, open_first_stage
from glassformer.runs.fit import answers_on, costs_in, fit
from glassformer.runs.folder import RunFolder, read_json, reporter_of
from glassformer.runs.prepare import Prepared, initial_model, put_initial
from glassformer.runs.timing import TRIED, Budget, step_pace, steps_in, steps_of_flops
from glassformer.runs.warm_start import fresh_model, shared, start_from
from glassformer.tasks.job import AnyTask
from glassformer.training.loop import train
from glassformer.training.machine import training_machine
from glassformer.training.setup import TrainSetup
from glassformer.training.state import State
from glassformer.training.weights import load_weights, weights_of, write_tensors

TRIAL = 0.1  # of the job's steps; the trial takes four times as many in total
TRIAL_OF_TIME = 0.04  # the same of a time budget, most of which is for training
LEAST = 10  # steps of a trial that can show something
TIMES = 3.0  # compute of pretraining, relative to the job itself
SHARE = 0.65  # of the remaining time budget
FEW = 50  # validation rows; fewer cannot decide
CHANCE = 0.1  # gains with a larger p-value do not count


@dataclass(frozen=True, slots=True)
class Trial:
    """Validation scores with and without pretraining, after a short trial."""

    without: float
    pretrained: float
    p_value: float | None

    @property
    def helps(self) -> bool:
        """Whether pretraining is better by more than chance."""
        known = self.p_value is not None and self.p_value < CHANCE
        return known and self.pretrained > self.without


def pretrain_first(run: Prepared, display: Display, budget: Budget) -> None:
    """Decide whether to pretrain, if undecided, and do so if it helps."""
    if run.config.pretrain == "auto":
        decide(run, display, budget)
    if run.config.pretrain == "yes":
        if not run.folder.initial.exists():
            pretrain(run, display, budget)
        put_initial(run.model, run.folder)


def objection_to(config: Config, task: AnyTask) -> str:
    """Why no trial can show that pretraining helps; empty if one might."""
    held_out = len(task.lengths("valid"))
    if not held_out:
        return "there are no validation rows to test it on"
    if held_out < FEW:
        return f"fewer than {FEW} validation rows cannot show whether it helps"
    return first_stage_of(config).objection(config, task)


def decide(run: Prepared, display: Display, budget: Budget) -> None:
    """Run a short trial and store the decision."""
    decision, objection = "no", objection_to(run.config, run.task)
    steps = 0 if objection else trial_steps(run, budget, display)
    if objection:
        sentence = f"No pretraining: {objection}."
        regularise = run.config.train.regularise
        if run.config.data.unlabelled and not (regularise.r_drop or regularise.vat.weight):
            sentence += " The unlabelled texts take no part."
    elif not steps:
        sentence = "No pretraining: the time budget is too short to try whether it helps."
    else:
        trial = try_both(run, display, steps)
        decision = "yes" if trial.helps else "no"
        sentence = (
            f"Pretraining trial, equal compute, validation rows: {run.task.goal} "
            f"{trial.without:.3f} without and {trial.pretrained:.3f} with pretraining "
            f"({chance(trial.p_value)}); the run {'uses' if trial.helps else 'skips'} it."
        )
    display.say(sentence)
    run.config = replace(run.config, pretrain=processes.broadcast(decision))
    if processes.is_first():
        write_json({"said": sentence}, note_of(run.folder))
        run.folder.write_config(run.config)


def trial_steps(run: Prepared, budget: Budget, display: Display) -> int:
    """Steps of the trial; 0 if a time budget has no room for it."""
    config = run.config
    machine = training_machine(config.machine)
    if not budget.limited:
        steps = config.train.steps or steps_of_flops(config, run.task, machine)
        return max(LEAST, round(TRIAL * steps))
    found = steps_in(config, costs_in(run, machine, display, budget), budget)
    steps = round(TRIAL_OF_TIME * int(processes.broadcast(str(found))))
    return steps if steps >= LEAST else 0


def try_both(run: Prepared, display: Display, steps: int) -> Trial:
    """The job alone, against the first stage followed by the job, with equal compute."""
    folder, config, task = run.folder, run.config, run.task
    machine = training_machine(config.machine)
    first = open_first_stage(folder, config, 1)
    setup = short_setup(config, steps)
    gaps = short_setup(first.config, max(1, round(steps * work_of(config, first))))
    display.say(f"testing whether pretraining helps, for {3 * steps + gaps.steps:,} steps")

    def model_of(some: AnyTask) -> nn.Module:
        return initial_model(some, config, folder).to(machine.device)

    alone = model_of(task)
    run_through(task, alone, short_setup(config, 2 * steps))
    before = model_of(first)
    run_through(first, before, gaps)
    after = model_of(task)
    learned = shared(weights_of(before), weights_of(after))
    load_weights(after, weights_of(after) | learned, "the trial")
    run_through(task, after, setup)

    reporter = reporter_of(task)
    answers = [answers_on(task, model, setup, "valid") for model in (after, alone)]
    comparison = reporter.compare(*answers)[task.goal]
    pretrained, without = (reporter.scores(some)[task.goal].value for some in answers)
    return Trial(without=without, pretrained=pretrained, p_value=comparison.p_value)


def pretrain(run: Prepared, display: Display, budget: Budget) -> None:
    """Train the first stage as a run inside the run, and keep its weights."""
    folder, config, inside = run.folder, run.config, run.folder.pretrain
    if processes.broadcast("" if inside.config_file.exists() else "new"):
        steps = int(processes.broadcast(str(pretrain_steps(folder, config, budget))))
        if processes.is_first():
            inside.path.mkdir(exist_ok=True)
            for name in first_stage_of(config).files:
                shutil.copyfile(folder.path / name, inside.path / name)
            inside.write_config(first_stage_config(config, steps))
    processes.wait()
    if not inside.model.exists():
        fit(Prepared.open(inside), display, budget, SHARE)
    if processes.is_first():
        if not note_of(folder).exists():
            write_json({"said": "Pretrained first, as requested."}, note_of(folder))
        model = fresh_model(run.task, config.seed)
        start_from(model, inside, None)
        write_tensors(weights_of(model), folder.initial)
        note_checksums(folder.path, folder.initial.name)
    processes.wait()


def pretrain_steps(folder: RunFolder, config: Config, budget: Budget) -> int:
    """Steps of the first stage, by the time left or by the compute of the job."""
    first = open_first_stage(folder, config, 1)
    if config.train.steps is None and budget.limited:
        step = step_pace(first, short_setup(first.config, TRIED)).step
        return max(1, int(SHARE * budget.left / step))
    return max(1, round(TIMES * (config.train.steps or 1) * work_of(config, first)))


def work_of(config: Config, first: AnyTask) -> float:
    """The steps of the first stage that take as long as one of the job."""
    return config.model.members / first.relative_work  # it trains a single model


def short_setup(config: Config, steps: int) -> TrainSetup:
    """A short training that saves nothing and validates at its end."""
    brief = replace(config.train, steps=steps, validate_every=steps, patience=None, ema=0.0)
    return TrainSetup(brief, config.data, training_machine(config.machine), config.seed)


def run_through(task: AnyTask, model: nn.Module, setup: TrainSetup) -> None:
    """Train to the end of a plan."""
    for _ in train(State(model, setup.train), task, setup):
        pass


def note_of(folder: RunFolder) -> Path:
    """Where the decision is stored."""
    return folder.path / "pretraining.json"


def decision_note(folder: RunFolder) -> list[str]:
    """The decision and its reason, for the report."""
    sentence = read_json(note_of(folder)).get("said")
    return [str(sentence)] if sentence else []
