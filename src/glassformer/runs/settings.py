"""Settings as given: shorthands for stacks, a gentler start for post-norm models, unused ones."""

from collections.abc import Collection
from dataclasses import fields
from pathlib import Path

from glassformer.config import STYLES, ModelConfig, StackConfig, choose, require
from glassformer.config.decoding import DecodeConfig
from glassformer.config.run import Config
from glassformer.config.unused import covers, refuse_unused_of_model, setting_names
from glassformer.config.values import Values, merge_values
from glassformer.errors import GlassformerError, unknown
from glassformer.models.baselines import BASELINE_DECODERS, BASELINE_ENCODERS
from glassformer.tasks import JOBS
from glassformer.tasks.shared.generation import refuse_unused

TIMES_WIDTH = 0.15  # learning rate times width: 3e-4 for a width of 512
WARMUP = 0.3


def post_norm_defaults(config: Config) -> Values:
    """Optimiser defaults for a post-norm model; empty for pre-norm."""
    stacks = [stack for stack in (config.model.encoder, config.model.decoder) if stack is not None]
    widths = [stack.dim for stack in stacks if stack.order == "post"]
    if not widths:
        return {}
    lr = min(config.train.optimiser.lr, TIMES_WIDTH / max(widths))
    return {"train": {"optimiser": {"lr": lr, "warmup": WARMUP}}}


def unused_reasons(config: Config) -> dict[str, str]:
    """The settings, or tables of them, that the job ignores, and why."""
    job = JOBS[config.job]
    unused = (*job.unused, *(() if job.schema.together else ("data.together",)))
    return dict.fromkeys(unused, f"on {job.name}") | dict(job.unused_with(config.task))


def refuse_unused_settings(settings: Values, config: Config, size: str | None = None) -> None:
    """Refuse settings that the job, the model or the decoding method ignores, or the size."""
    job, reasons = JOBS[config.job], unused_reasons(config)
    if size is not None and "model" in reasons:
        raise GlassformerError(f"--size {size} has no effect {reasons['model']}; leave it out")
    for name in setting_names(settings):
        for unused, why in reasons.items():
            if covers((unused,), name):
                raise GlassformerError(f"{name} has no effect {why}; leave it out")
    refuse_unused_of_model(settings.get("model", {}), config.model, job.model)
    decode, resolved = settings.get("task", {}).get("decode"), getattr(config.task, "decode", None)
    if decode and isinstance(resolved, DecodeConfig):
        refuse_unused(decode, resolved.method, "task.decode")


WORDS: dict[str, Values] = {
    "transformer": {"kind": "attention"},
    "attention": {"kind": "attention"},
    "gru": {"kind": "gru"},
    "lstm": {"kind": "lstm"},
    "tcn": {"kind": "tcn", "convolution": {"width": 3}},
    **{style: {"kind": "attention", **settings} for style, settings in STYLES.items()},
}
OF_MODEL = {setting.name for setting in fields(ModelConfig)}
OF_STACK = {setting.name for setting in fields(StackConfig)}
KINDS = {
    "encoder": ("transformer", "attention", *STYLES, *BASELINE_ENCODERS),
    "decoder": ("transformer", "attention", *STYLES, *BASELINE_DECODERS),
}


def expand_shorthands(values: Values, stacks: Collection[str]) -> Values:
    """Replace the words for stacks by the settings they stand for.

    >>> expand_shorthands({"model": {"kind": "gru", "tie": False}}, ["encoder"])
    {'model': {'encoder': {'kind': 'gru'}, 'tie': False}}

    Args:
        stacks: The stacks of the job's model; `model.kind`, and any other setting of a stack right
            under `model`, applies to all of them.
    """
    model = values.get("model")
    if not isinstance(model, dict):
        return values
    for key in model:
        if key not in OF_MODEL | OF_STACK:
            choices = [f"model.{name}" for name in sorted(OF_MODEL | OF_STACK)]
            raise GlassformerError(unknown("setting", f"model.{key}", choices))
    made = {key: value for key, value in model.items() if key in OF_MODEL}
    for stack in KINDS:
        if isinstance(made.get(stack), str) and made[stack] != "none":
            made[stack] = settings_of(f"model.{stack}", stack, made[stack])
    shared = {key: value for key, value in model.items() if key not in made and key != "kind"}
    if "kind" in model or shared:
        each = {stack: dict(shared) for stack in stacks}
        for stack in stacks if "kind" in model else ():
            each[stack] = merge_values(settings_of("model.kind", stack, model["kind"]), shared)
        made = merge_values(each, made)
    return values | {"model": made}


def settings_of(name: str, stack: str, word: object) -> Values:
    """The settings that a word stands for; `name` is the setting that held it."""
    require(isinstance(word, str), f"{name} must be a word such as gru, got {word!r}")
    what = name if name != "model.kind" else f"{name} of the {stack}"
    choose(what, str(word), KINDS[stack])
    return WORDS[str(word)]


def refuse_pretraining(config: Config, origin: Path | None, *, own_model: bool) -> None:
    """Refuse pretraining for a job without such a stage, or with --from or a model of one's own.

    Rows without labels need it, or else the comparison of two views.
    """
    stage, views = JOBS[config.job].first_stage, config.train.regularise
    consistent = stage is not None and bool(views.r_drop or views.vat.weight)
    if config.pretrain == "no" and (consistent or not config.data.unlabelled):
        return
    require(
        not config.data.unlabelled or stage is None or config.pretrain != "no",
        "--unlabelled is for pretraining, which --no-pretrain, --from RUN and a model of your "
        "own rule out; drop one, or set train.regularise.r_drop=1 for consistency training",
    )
    option = "--unlabelled" if config.data.unlabelled else f"pretrain={config.pretrain}"
    if stage is None:
        jobs = ", ".join(name for name in JOBS if JOBS[name].first_stage)
        raise GlassformerError(
            f"{option}: {config.job} has no pretraining stage, only {jobs} does; drop it"
        )
    for given, clash in (
        (origin is not None, f"and --from {origin} both set the initial weights"),
        (own_model, "trains another model first, but model is your own"),
    ):
        require(not given, f"pretrain={config.pretrain} {clash}; drop one")
    objection = stage.objection(config, None)
    require(
        not objection or not (config.data.unlabelled or config.pretrain == "yes"),
        f"{option}: {objection}; leave it out, or change the model",
    )
