"""Self-pretraining: learn the texts first, then the labels, where a short trial shows a gain.

The trial spends equal work on two ways: one model learns labels all the time, the other fills gaps
in the texts for half of it. If that one is better on the validation part, by more than chance, the
whole training begins so. The decision is written into config.toml: a resumed run keeps it.

Work is counted and not timed, so that the same seed gives the same run; only a run that is given by
time is measured.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from glassformer import processes
from glassformer.config.run import Config
from glassformer.config.training import OptimiserConfig, TrainConfig
from glassformer.files import write_json
from glassformer.reports.wording import chance
from glassformer.runs.checksums import note_checksums
from glassformer.runs.display import Display
from glassformer.runs.folder import RunFolder, read_json, reporter_of
from glassformer.runs.foresight.timing import TRIED, Clock, step_seconds, steps_in
from glassformer.runs.parts import begin_from, fresh_model
from glassformer.runs.teaching import answers_on, begin, teach
from glassformer.tasks.job import JobTask
from glassformer.tasks.pretrain.settings import PretrainConfig
from glassformer.tasks.pretrain.task import PretrainTask
from glassformer.training.loop import train
from glassformer.training.machine import training_machine
from glassformer.training.plan import Plan
from glassformer.training.state import State
from glassformer.training.weights import put_weights, weights_of, write_tensors

TRIAL = 0.1  # of the job's steps; the trial takes four times as many in all
TIMES = 3.0  # pretraining takes so many times the work of the job itself
SHARE = 0.65  # of the time left, where time is given
FEW = 50  # validation rows; fewer cannot tell
SHORT = 16  # tokens: names and the like have no context to learn from
CHANCE = 0.1  # a gain that chance explains more often than this does not count


@dataclass(frozen=True, slots=True)
class Trial:
    """What a short try of both ways gave on the validation part."""

    without: float
    pretrained: float
    p_value: float

    @property
    def helps(self) -> bool:
        """Whether learning the texts first is better by more than chance."""
        return self.pretrained > self.without and self.p_value < CHANCE


def learn_texts_first(folder: RunFolder, display: Display, deadline: Clock | None) -> None:
    """Decide whether to pretrain, if that is open, and do so, if that is decided."""
    config = folder.config()
    if config.pretrain == "auto":
        config = decide(folder, config, display, deadline)
    if config.pretrain == "yes" and not folder.initial.exists():
        pretrain(folder, config, display, deadline)


def decide(folder: RunFolder, config: Config, display: Display, deadline: Clock | None) -> Config:
    """Try both ways for a short time, and write down which one is taken."""
    job, decision = folder.job(config, folder.data), "no"
    if not len(job.lengths("valid")):
        said = "Its texts were not learned first: no rows are held out to try whether that helps."
    elif len(job.lengths("valid")) < FEW:
        said = f"Its texts were not learned first: fewer than {FEW} validation rows cannot tell."
    elif config.model.frontend.kind != "tokens":
        said = "Its texts were not learned first: its frontend has no single tokens to fill in."
    elif job.lengths("train").mean() < SHORT:
        said = "Its texts were not learned first: they are too short for it."
    else:
        trial = try_both(folder, config, job, display, deadline)
        decision = "yes" if trial.helps else "no"
        said = (
            f"A short trial on the validation part, of equal work: {job.goal} {trial.without:.3f} "
            f"from labels alone, {trial.pretrained:.3f} after learning the texts first "
            f"({chance(trial.p_value)}); so its texts were {'' if trial.helps else 'not '}"
            f"learned first."
        )
    display.say(said)
    config = replace(config, pretrain=processes.told(decision))
    if processes.is_first():
        write_json({"said": said}, note_of(folder))
        folder.write_config(config)
    return config


def try_both(
    folder: RunFolder,
    config: Config,
    job: JobTask[Any, Any, Any],
    display: Display,
    deadline: Clock | None,
) -> Trial:
    """Labels alone, against texts first and then labels, with the same work."""
    machine = training_machine(config.machine)
    texts = PretrainTask(pretrain_config(config, 1), folder.path, folder.data)
    steps = config.train.steps or steps_in(config, job, machine, deadline or Clock(0.0))
    steps = max(10, round(TRIAL * steps))
    plan = short_plan(config, steps)
    gaps = short_plan(texts.config, max(1, round(work_ratio(texts) * steps)))
    in_all = 3 * steps + gaps.steps
    display.say(f"trying for {in_all:,} steps whether learning the texts first helps")

    alone = begin(job, config, folder).to(machine.device)
    run_through(job, alone, short_plan(config, 2 * steps))
    filler = begin(texts, config, folder).to(machine.device)
    run_through(texts, filler, gaps)
    after = begin(job, config, folder).to(machine.device)
    learned = {name: t for name, t in weights_of(filler).items() if name in weights_of(after)}
    put_weights(after, weights_of(after) | learned, "the trial")
    run_through(job, after, plan)

    answers = [answers_on(job, model, plan, "valid") for model in (after, alone)]
    reporter = reporter_of(job)
    found = reporter.compare(*answers)[job.goal]
    scores = [reporter.scores(some)[job.goal].value for some in answers]
    return Trial(without=scores[1], pretrained=scores[0], p_value=found.p_value)


def pretrain(folder: RunFolder, config: Config, display: Display, deadline: Clock | None) -> None:
    """Learn the texts in a run of its own inside the run, then begin with what it learned."""
    inside = folder.pretrain
    if processes.told("" if inside.config_file.exists() else "new"):
        steps = int(processes.told(str(pretrain_steps(folder, config, deadline))))
        if processes.is_first():
            inside.path.mkdir(exist_ok=True)
            shutil.copyfile(folder.path / "tokenizer.json", inside.path / "tokenizer.json")
            inside.write_config(pretrain_config(config, steps))
    processes.wait()
    if not inside.model.exists():
        teach(inside, display)
    if processes.is_first():
        if not note_of(folder).exists():
            write_json({"said": "Its texts were learned first, as asked for."}, note_of(folder))
        model = fresh_model(folder.job(config, folder.data), config.seed)
        begin_from(model, inside, None)
        write_tensors(weights_of(model), folder.initial)
        note_checksums(folder.path, folder.initial.name)
    processes.wait()


def pretrain_config(config: Config, steps: int) -> Config:
    """The settings of the run that learns the texts: the same model, tokens and batches."""
    train = config.train
    return replace(
        config,
        job="pretrain",
        task=PretrainConfig(max_length=config.task.max_length),
        train=TrainConfig(
            steps=steps,
            clip=train.clip,
            save_every=train.save_every,
            log_every=train.log_every,
            optimiser=OptimiserConfig(kind=train.optimiser.kind, rate=train.optimiser.rate),
        ),
        pretrain="no",
        curve=False,
    )


def pretrain_steps(folder: RunFolder, config: Config, deadline: Clock | None) -> int:
    """How many steps of filling gaps the time allows, or the work of the job."""
    texts = PretrainTask(pretrain_config(config, 1), folder.path, folder.data)
    if config.train.steps is None and deadline is not None:
        step = step_seconds(texts, short_plan(texts.config, TRIED))
        return max(1, int(SHARE * deadline.left / step))
    return max(1, round(TIMES * work_ratio(texts) * (config.train.steps or 1)))


def work_ratio(texts: PretrainTask) -> float:
    """The work of a step of the job, for each of a step of filling gaps.

    Both send as many tokens through the encoder; to fill a gap, every word is scored as well.
    """
    model = texts.model()
    encoder = sum(weight.numel() for weight in model.encoder.parameters())
    gaps = texts.settings.masked * model.frontend.vocabulary * model.frontend.dim
    return encoder / (encoder + gaps)


def short_plan(config: Config, steps: int) -> Plan:
    """A plan of so many steps that keeps nothing and validates at its end."""
    brief = replace(config.train, steps=steps, validate_every=steps, patience=None, ema=0.0)
    return Plan(brief, config.data, training_machine(config.machine), config.seed)


def run_through(job: JobTask[Any, Any, Any], model: nn.Module, plan: Plan) -> None:
    """Train to the end of a plan."""
    for _ in train(State(model, plan.train), job, plan):
        pass


def note_of(folder: RunFolder) -> Path:
    """Where the decision is explained."""
    return folder.path / "pretraining.json"


def decision_note(folder: RunFolder) -> list[str]:
    """What was decided and why, for the report."""
    said = read_json(note_of(folder)).get("said")
    return [str(said)] if said else []
