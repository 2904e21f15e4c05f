"""Self-pretraining: a classifier may first predict masked words in its own texts.

On small labelled data this improves accuracy (Devlin et al., 2018; Krishna et al., 2022), if texts
are long enough to give context.
"""

from typing import Any

from glassformer.config.run import Config
from glassformer.tasks.extension import FirstStage

SHORT = 16  # tokens: names and the like have no context to learn from


def objection(config: Config, task: Any) -> str:
    """Why pretraining cannot help."""
    if config.model.frontend.kind != "tokens":
        kind = config.model.frontend.kind
        if kind == "ngrams":
            return "the default CPU model reads n-grams, which cannot be masked"
        return f"a frontend of {kind} has no single tokens to mask"
    if config.task.vectors != "random":
        return "it and task.vectors both set the initial weights"
    if task is not None and task.lengths("train").mean() < SHORT:
        return "the texts are too short for it"
    return ""


PRETRAIN_FIRST = FirstStage(
    job="pretrain",
    files=("tokenizer.json",),
    settings=lambda config: {"max_length": config.task.max_length},
    objection=objection,
)
