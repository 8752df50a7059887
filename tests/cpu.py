"""Limits of CPU time that hold on any machine.

A limit is stated for an ordinary machine that is not busy. It is multiplied by how slow this one is, and, except in a heavy run
(`pytest -m heavy`), by four: in every run these limits find what stalls, and other programs on the machine do not fail a test.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

REFERENCE = 0.015
"""CPU seconds of one loop of `_slowness` on an ordinary machine."""
ROOM = "BUDGE_TEST_CPU_ROOM"
"""Environment variable with the factor; a heavy run sets it to 1."""


def _slowness() -> float:
    """Return how many times slower than an ordinary machine this one is now, from 1 to 4."""
    taken = []
    for _ in range(5):
        began = time.process_time()
        sum(i * i for i in range(300_000))
        taken.append(time.process_time() - began)
    return min(max(sorted(taken)[2] / REFERENCE, 1.0), 4.0)


_SLOWNESS = _slowness()


def allowed(seconds: float) -> float:
    """Return what a stated limit of CPU seconds is here."""
    return seconds * _SLOWNESS * float(os.environ.get(ROOM, "4"))


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Assert that the block takes at most these CPU seconds, as stated for an ordinary machine."""
    began = time.process_time()
    yield
    taken = time.process_time() - began
    assert taken < allowed(seconds), f"took {taken:.1f} s of CPU; {seconds} s are stated, {allowed(seconds):.1f} s are allowed here"
