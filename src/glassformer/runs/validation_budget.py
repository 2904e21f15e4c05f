"""How often, and on how many rows, a run validates: for at most a tenth of its time.

The cost of a validation is estimated in training tokens, not measured, so that a run is the same on
every machine.
"""

from dataclasses import replace

from glassformer.config.run import Config
from glassformer.tasks.job import AnyTask
from glassformer.training.setup import VALIDATIONS

VALIDATION_SHARE = 0.1  # of the training time
FEWEST_ROWS, FEWEST_VALIDATIONS = 200, 2  # for scores that mean something


def resolve_validation(config: Config, task: AnyTask) -> Config:
    """The settings, with validations that fit their share of the time unless they are set."""
    train, lengths = config.train, task.lengths("valid")
    if train.steps is None or train.validate_every is not None or len(lengths) <= FEWEST_ROWS:
        return config
    batch = min(config.data.batch_tokens, int(task.lengths("train").sum()))
    trained_tokens = train.steps * train.accumulate * batch
    row_cost = task.scoring_work * float(lengths.mean())  # in training tokens
    rows = train.validate_rows or len(lengths)
    affordable = VALIDATION_SHARE * trained_tokens / row_cost  # rows, over all validations
    if train.validate_rows is None:
        rows = min(rows, max(FEWEST_ROWS, int(affordable / VALIDATIONS)))
    times = min(VALIDATIONS, max(FEWEST_VALIDATIONS, int(affordable / rows)))
    if times < VALIDATIONS:
        train = replace(train, validate_every=-(-train.steps // times))
    if rows < len(lengths):
        train = replace(train, validate_rows=rows)
    return replace(config, train=train)


def validation_line(config: Config, task: AnyTask) -> str | None:
    """A message that validation uses a sample; None if it uses all rows."""
    rows, sampled = len(task.lengths("valid")), config.train.validate_rows
    if sampled is None or sampled >= rows:
        return None
    return (
        f"validating on a sample of {sampled:,} of {rows:,} rows; to use all of them, "
        f"--set train.validate_rows={rows}"
    )
