"""Pretraining: a first stage, where a short trial shows that it helps.

A job may declare a first stage: another job over the same samples whose weights it starts with, as
a classifier may first fill gaps in its own texts. The trial spends equal work on two ways: one
model trains for the job all the time, the other spends half of it on the first stage. If that one
is better on the validation rows, by more than chance, the whole training starts so. The decision is
written into config.toml: a resumed run keeps it.

Work is counted and not timed, so that the same seed gives the same run; only a run that is given by
time is measured.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from glassformer import processes
from glassformer.config import build
from glassformer.config.run import Config
from glassformer.config.training import OptimiserConfig, TrainConfig
from glassformer.files import write_json
from glassformer.reports.wording import chance
from glassformer.runs.checksums import note_checksums
from glassformer.runs.display import Display
from glassformer.runs.fit import answers_on, fit
from glassformer.runs.folder import RunFolder, read_json, reporter_of
from glassformer.runs.prepared import Prepared, initial_model, put_initial
from glassformer.runs.timing import TRIED, Clock, step_seconds, steps_in
from glassformer.runs.warm_start import fresh_model, start_from
from glassformer.tasks import JOBS
from glassformer.tasks.first_stage import FirstStage
from glassformer.tasks.job import JobTask
from glassformer.training.loop import train
from glassformer.training.machine import training_machine
from glassformer.training.setup import TrainSetup
from glassformer.training.state import State
from glassformer.training.weights import put_weights, weights_of, write_tensors

TRIAL = 0.1  # of the job's steps; the trial takes four times as many in all
TIMES = 3.0  # pretraining takes so many times the work of the job itself
SHARE = 0.65  # of the time left, where time is given
FEW = 50  # validation rows; fewer cannot tell
CHANCE = 0.1  # a gain that chance explains more often than this does not count


@dataclass(frozen=True, slots=True)
class Trial:
    """Scores of both ways on the validation rows, after a short trial."""

    without: float
    pretrained: float
    p_value: float

    @property
    def helps(self) -> bool:
        """Whether pretraining is better by more than chance."""
        return self.pretrained > self.without and self.p_value < CHANCE


def pretrain_first(run: Prepared, display: Display, deadline: Clock | None) -> None:
    """Decide whether to pretrain, if that is open, and do so, if that is decided."""
    if run.config.pretrain == "auto":
        decide(run, display, deadline)
    if run.config.pretrain == "yes":
        if not run.folder.initial.exists():
            pretrain(run, display, deadline)
        put_initial(run.model, run.folder)


def first_stage_of(config: Config) -> FirstStage:
    """The first stage that the job declares."""
    stage = JOBS[config.job].first_stage
    assert stage is not None  # checked when the request was resolved
    return stage


def objection_to(config: Config, task: JobTask[Any, Any, Any]) -> str:
    """Why no trial can show that pretraining helps; nothing where one might."""
    held_out = len(task.lengths("valid"))
    if not held_out:
        return "no validation rows are there to try it on"
    if held_out < FEW:
        return f"fewer than {FEW} validation rows cannot show whether it helps"
    return first_stage_of(config).objection(config, task)


def decide(run: Prepared, display: Display, deadline: Clock | None) -> None:
    """Try both ways for a short time, and write down which one is taken."""
    decision, objection = "no", objection_to(run.config, run.task)
    if objection:
        sentence = f"No pretraining: {objection}."
    else:
        trial = try_both(run, display, deadline)
        decision = "yes" if trial.helps else "no"
        sentence = (
            f"Pretraining trial, equal work, validation rows: {run.task.goal} {trial.without:.3f} "
            f"without and {trial.pretrained:.3f} with pretraining ({chance(trial.p_value)}); the "
            f"run {'starts with' if trial.helps else 'does without'} it."
        )
    display.say(sentence)
    run.config = replace(run.config, pretrain=processes.broadcast(decision))
    if processes.is_first():
        write_json({"said": sentence}, note_of(run.folder))
        run.folder.write_config(run.config)


def try_both(run: Prepared, display: Display, deadline: Clock | None) -> Trial:
    """The job alone, against the first stage and then the job, with the same work."""
    folder, config, task = run.folder, run.config, run.task
    machine = training_machine(config.machine)
    first = open_first_stage(folder, config, 1)
    steps = config.train.steps or steps_in(config, task, machine, deadline or Clock(0.0))
    steps = max(10, round(TRIAL * steps))
    setup = short_setup(config, steps)
    gaps = short_setup(first.config, max(1, round(steps / first.relative_work)))
    display.say(f"trying whether pretraining helps, for {3 * steps + gaps.steps:,} steps")

    def model_of(some: JobTask[Any, Any, Any]) -> nn.Module:
        return initial_model(some, config, folder).to(machine.device)

    alone = model_of(task)
    run_through(task, alone, short_setup(config, 2 * steps))
    before = model_of(first)
    run_through(first, before, gaps)
    after = model_of(task)
    learned = {name: t for name, t in weights_of(before).items() if name in weights_of(after)}
    put_weights(after, weights_of(after) | learned, "the trial")
    run_through(task, after, setup)

    reporter = reporter_of(task)
    answers = [answers_on(task, model, setup, "valid") for model in (after, alone)]
    found = reporter.compare(*answers)[task.goal]
    pretrained, without = (reporter.scores(some)[task.goal].value for some in answers)
    return Trial(without=without, pretrained=pretrained, p_value=found.p_value)


def pretrain(run: Prepared, display: Display, deadline: Clock | None) -> None:
    """Train the first stage in a run of its own inside the run, and keep what it learned."""
    folder, config, inside = run.folder, run.config, run.folder.pretrain
    if processes.broadcast("" if inside.config_file.exists() else "new"):
        steps = int(processes.broadcast(str(pretrain_steps(folder, config, deadline))))
        if processes.is_first():
            inside.path.mkdir(exist_ok=True)
            for name in first_stage_of(config).files:
                shutil.copyfile(folder.path / name, inside.path / name)
            inside.write_config(first_stage_config(config, steps))
    processes.wait()
    if not inside.model.exists():
        fit(Prepared.open(inside), display)
    if processes.is_first():
        if not note_of(folder).exists():
            write_json({"said": "Pretrained first, as requested."}, note_of(folder))
        model = fresh_model(run.task, config.seed)
        start_from(model, inside, None)
        write_tensors(weights_of(model), folder.initial)
        note_checksums(folder.path, folder.initial.name)
    processes.wait()


def first_stage_config(config: Config, steps: int) -> Config:
    """The settings of the first stage: the same model, tokens and batches."""
    stage, train = first_stage_of(config), config.train
    return replace(
        config,
        job=stage.job,
        task=build(JOBS[stage.job].settings, stage.settings(config), "task."),
        train=TrainConfig(
            steps=steps,
            clip=train.clip,
            save_every=train.save_every,
            log_every=train.log_every,
            optimiser=OptimiserConfig(kind=train.optimiser.kind, lr=train.optimiser.lr),
        ),
        pretrain="no",
        curve=False,
    )


def open_first_stage(folder: RunFolder, config: Config, steps: int) -> Any:
    """The task of the first stage, over the samples of the run."""
    return folder.open_task(first_stage_config(config, steps), folder.data)


def pretrain_steps(folder: RunFolder, config: Config, deadline: Clock | None) -> int:
    """How many steps of the first stage the time allows, or the work of the job."""
    first = open_first_stage(folder, config, 1)
    if config.train.steps is None and deadline is not None:
        step = step_seconds(first, short_setup(first.config, TRIED))
        return max(1, int(SHARE * deadline.left / step))
    return max(1, round(TIMES * (config.train.steps or 1) / first.relative_work))


def short_setup(config: Config, steps: int) -> TrainSetup:
    """A plan of so many steps that keeps nothing and validates at its end."""
    brief = replace(config.train, steps=steps, validate_every=steps, patience=None, ema=0.0)
    return TrainSetup(brief, config.data, training_machine(config.machine), config.seed)


def run_through(task: JobTask[Any, Any, Any], model: nn.Module, setup: TrainSetup) -> None:
    """Train to the end of a plan."""
    for _ in train(State(model, setup.train), task, setup):
        pass


def note_of(folder: RunFolder) -> Path:
    """Where the decision is explained."""
    return folder.path / "pretraining.json"


def decision_note(folder: RunFolder) -> list[str]:
    """What was decided and why, for the report."""
    sentence = read_json(note_of(folder)).get("said")
    return [str(sentence)] if sentence else []
