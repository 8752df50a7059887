"""How long a run waits for an endpoint: waits between tries, their cap, the time for one try, and when to stop asking."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from budge.errors import DesignError

__all__ = ["Patience"]


@dataclass(frozen=True, kw_only=True)
class Patience:
    """What is tried again, and how often.

    Parameters
    ----------
    attempts
        Tries of one call before its draw is left for the next run.
    first_wait, max_wait
        Seconds before the second try, doubled each time, drawn at random from the upper half; and their cap. A server that asks
        for a pause (``Retry-After``) gets it, up to the cap.
    timeout
        Whole seconds for one try, to its last byte: a slow drip does not extend it.
    in_a_row
        Draws in a row that got no answer before the run stops: the endpoint is down, and the rest can wait.

    Examples
    --------
    >>> patience = Patience(first_wait=1, max_wait=10)
    >>> 0.5 <= patience.wait(1) <= 1, patience.wait(20) <= 10, patience.wait(1, asked=4) >= 4
    (True, True, True)
    """

    attempts: int = 8
    first_wait: float = 1.0
    max_wait: float = 120.0
    timeout: int = 300
    in_a_row: int = 8

    def __post_init__(self) -> None:
        for name in ("attempts", "timeout", "in_a_row"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise DesignError("a whole number, 1 or more", where=f"patience.{name}", got=value)
        for name in ("first_wait", "max_wait"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
                raise DesignError("seconds, 0 or more", where=f"patience.{name}", got=value)

    def wait(self, attempt: int, asked: float | None = None) -> float:
        """Seconds to wait after a try (the first is 1) that failed; `asked` is what the server said."""
        pause = self.first_wait * 2.0 ** min(attempt - 1, 40) * random.uniform(0.5, 1.0)
        if asked is not None:
            pause = max(pause, asked + random.uniform(0, min(self.first_wait, 1.0)))
        return min(pause, self.max_wait)
