"""A gentler start for models in post order. Xiong et al., 2020.

With the norm after each sublayer, gradients near the output are large at first: at a rate that a
model in pre order takes well, 6 + 6 layers forget their input within 50 steps and never learn
again (docs/log.md). So where nobody says otherwise, the rate is lower, by the width, and rises for
longer.
"""

from glassformer.config.run import Config
from glassformer.config.values import Values

TIMES_WIDTH = 0.15  # the rate times the width: 3e-4 for a width of 512
WARMUP = 0.3


def gentle_start(config: Config) -> Values:
    """What to assume about the optimiser where nothing is said; nothing in pre order."""
    stacks = [stack for stack in (config.model.encoder, config.model.decoder) if stack is not None]
    widths = [stack.dim for stack in stacks if stack.order == "post"]
    if not widths:
        return {}
    lr = min(config.train.optimiser.lr, TIMES_WIDTH / max(widths))
    return {"train": {"optimiser": {"lr": lr, "warmup": WARMUP}}}
