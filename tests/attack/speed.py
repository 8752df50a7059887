"""How fast this machine is: limits of CPU time are stated for an ordinary one that is not busy."""

from __future__ import annotations

import time

REFERENCE = 0.015
"""CPU seconds of one loop of `_slowness` there."""


def _slowness() -> float:
    """Return how many times slower than that machine this one is now, from 1 to 4."""
    taken = []
    for _ in range(5):
        began = time.process_time()
        sum(i * i for i in range(300_000))
        taken.append(time.process_time() - began)
    return min(max(sorted(taken)[2] / REFERENCE, 1.0), 4.0)


SLOWNESS = _slowness()
