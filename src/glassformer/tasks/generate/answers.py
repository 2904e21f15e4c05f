"""How likely a model finds texts, and the scores that follow: bits per byte, perplexity."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

SPELT_OUT = 21 * math.log(2)  # nats for a character that no token stands for: its code point


@dataclass(frozen=True, eq=False, slots=True)
class Likelihoods:
    """By unit of text: the negative log-likelihood, in nats, of how many tokens and bytes."""

    nll: Float[np.ndarray, " units"]
    tokens: Float[np.ndarray, " units"]
    bytes: Float[np.ndarray, " units"]

    def values(self) -> dict[str, float]:
        """The scores of all units together."""
        nll, tokens, size = self.nll.sum(), self.tokens.sum(), self.bytes.sum()
        loss = float(nll / max(1.0, tokens))
        return {
            "bits_per_byte": float(nll / math.log(2) / max(1.0, size)),
            "loss": loss,
            "perplexity": math.exp(min(loss, 100)),
        }
