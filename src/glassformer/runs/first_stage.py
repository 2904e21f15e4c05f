"""The stage before a job's own: its settings, its task, and texts that only it reads.

Rows without labels have nothing to say to a classifier, but much about the language that it reads.
They are stored beside the samples of the run, together with those that the first stage may see.
"""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from glassformer.config import DataConfig, build
from glassformer.config.run import Config
from glassformer.config.training import OptimiserConfig, TrainConfig
from glassformer.data.ingest import ingest
from glassformer.data.samples import Sample, Samples
from glassformer.errors import GlassformerError
from glassformer.runs.display import Display
from glassformer.runs.folder import RunFolder
from glassformer.tasks import JOBS
from glassformer.tasks.extension import FirstStage
from glassformer.wording import counted


def first_stage_of(config: Config) -> FirstStage:
    """The first stage that the job declares."""
    stage = JOBS[config.job].first_stage
    assert stage is not None  # checked when the request was resolved
    return stage


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
    """The task of the first stage, over the samples it reads."""
    return folder.open_task(first_stage_config(config, steps), folder.pretrain.data)


def add_unlabelled(config: Config, samples: Samples, folder: RunFolder, display: Display) -> None:
    """Store what the first stage reads: training and validation rows, and those without labels.

    Rows that are also in the validation or test split are left out, so that no score profits.
    """
    schema = JOBS[first_stage_of(config).job].schema
    for role in schema.roles:
        if role.required and role.name not in samples[0]:
            raise GlassformerError(
                f"--unlabelled: brings rows with a {role.name}, but those of "
                f"{', '.join(config.data.files)} have none; leave it out"
            )
    with display.counting("reading unlabelled rows") as seen:
        data = unlabelled_data(config.data, {role.name for role in schema.roles})
        read, report = ingest(data, schema, folder.unlabelled / "read", seen=seen)
    held_out = {
        schema.content(one, data) for split in ("valid", "test") for one in samples.of(split)
    }
    left_out = {
        n: one["where"] for n, one in enumerate(read) if schema.content(one, data) in held_out
    }

    def stored() -> Iterator[tuple[str, Sample]]:
        for split in ("train", "valid"):
            for one in samples.of(split):
                yield split, one
        yield from (("train", one) for n, one in enumerate(read) if n not in left_out)

    with display.waiting("preparing unlabelled rows"):
        together = Samples.write(folder.unlabelled, stored())
        folder.open_task(first_stage_config(config, 1), None).index(together, folder.unlabelled)
        shutil.rmtree(read.folder)
    display.say(f"unlabelled rows: {len(read) - len(left_out):,}")
    for reason, entry in report.skipped.items():
        display.say(f"left out: {entry.count:,} unlabelled rows with {reason}, first {entry.first}")
    if left_out:
        display.say(
            f"left out: {counted(len(left_out), 'unlabelled row')} that are also in the validation "
            f"or test split, first {next(iter(left_out.values()))}"
        )


def unlabelled_data(data: DataConfig, roles: set[str]) -> DataConfig:
    """How rows without labels are read: as the others, with nothing held out."""
    return DataConfig(
        files=data.unlabelled,
        columns={role: column for role, column in data.columns.items() if role in roles},
        header=data.header,
        encoding=data.encoding,
        tokenizer=data.tokenizer,
        valid_share=0.0,
        test_share=0.0,
    )
