"""From logits to the next token, as the operator `sample` chooses it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oic import arguments
from oic.diagnostics import fail
from oic.operators.sampling import drawn, shares


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen.

    temperature  logits are divided by it; 0: always the most likely token
    top_k        only so many of the most likely (ties kept); 0: all
    top_p        only the smallest set of the most likely whose probabilities reach it, at least one
    seed         of the numbers drawn; equal seeds give equal tokens
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for check, names in ((arguments.number, ("temperature", "top_p")), (arguments.integer, ("top_k", "seed"))):
            for name in names:
                check(name, getattr(self, name))
        if not 0 <= self.temperature < np.inf:
            raise fail("sampling", f"a temperature is 0 or more, not {self.temperature}")
        if self.top_k < 0:
            raise fail("sampling", f"top_k is 0 (all) or more, not {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise fail("sampling", f"top_p is above 0 and at most 1, not {self.top_p}")
        if self.temperature == 0 and (self.top_k or self.top_p < 1):
            message = "top_k and top_p choose among several tokens, and a temperature of 0 takes the likeliest"
            raise fail("sampling", message, hint="a temperature above 0, or neither of them")
        if self.seed < 0:
            raise fail("sampling", f"a seed is 0 or more, not {self.seed}")

    def choose(self, logits: NDArray[np.float32], draw: np.random.Generator) -> int:
        """The next token; one number is drawn, whatever the settings."""
        return drawn(*shares(logits, self.temperature, self.top_k, self.top_p), draw.random())


def log_probability(logits: NDArray[np.float32], token: int) -> float:
    """ln of the probability that the model itself gives a token."""
    wide = logits.astype(np.float64)
    wide -= wide.max()
    own = wide[token]
    return float(own - np.log(np.exp(wide, out=wide).sum()))
