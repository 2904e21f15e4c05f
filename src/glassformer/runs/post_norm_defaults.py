"""Optimiser defaults for post-norm models. Xiong et al., 2020.

With the norm after each sublayer, gradients near the output are large at first: at a learning rate
that suits a pre-norm model, 6 + 6 layers forget their input within 50 steps and never recover
(docs/log.md). So by default the learning rate is lower, scaled by the width, and warms up longer.
"""

from glassformer.config.run import Config
from glassformer.config.values import Values

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
