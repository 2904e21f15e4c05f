"""A gentler start for models in post order. Xiong et al., 2020.

With the norm after each sublayer, gradients near the output are large at first: at a rate that a
model in pre order takes well, 6 + 6 layers forget their input within 50 steps and never learn
again (docs/log.md). So where nobody says otherwise, the rate is lower, by the width, and rises for
longer.
"""

from collections.abc import Mapping
from typing import Any

from glassformer.config import OptimiserConfig
from glassformer.config.values import Values

TIMES_WIDTH = 0.15  # the rate times the width: 3e-4 for a width of 512
WARMUP = 0.3


def gentle_start(values: Mapping[str, Any]) -> Values:
    """What to assume about the optimiser, given all that is known so far; nothing in pre order."""
    model = values.get("model", {})
    stacks = [model[name] for name in ("encoder", "decoder") if model.get(name)]
    widths = [stack["dim"] for stack in stacks if stack.get("order") == "post"]
    if not widths:
        return {}
    usual = values.get("train", {}).get("optimiser", {}).get("rate", OptimiserConfig().rate)
    rate = min(usual, TIMES_WIDTH / max(widths))
    return {"train": {"optimiser": {"rate": rate, "warmup": WARMUP}}}
