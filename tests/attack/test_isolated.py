"""The measure itself: crashes, hangs, greed and raw errors of an attempt are told apart."""

from __future__ import annotations

import ctypes
import time

import isolated
import pytest
from isolated import attempt

from budge.errors import InputError


def crash():
    ctypes.string_at(0)


def refuse():
    raise InputError("no", where="here")


def allocate():
    return len(bytearray(400 << 20))


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@pytest.mark.parametrize(
    ("action", "arguments", "kind", "safe"),
    [(crash, (), "crashed", False), (refuse, (), "refused", True), (allocate, (), "done", False), (spin, (1.1,), "done", False),
     (spin, (0.1,), "done", True), (time.sleep, (90,), "hung", False), (int, ("x",), "raw error", False)],
)  # fmt: skip
def test_outcomes_are_told_apart(action, arguments, kind, safe, monkeypatch):
    monkeypatch.setattr(isolated, "SECONDS", 1.0)
    outcome = attempt(action, *arguments, hung=3.0 if action is time.sleep else 60.0)
    assert (outcome.kind, outcome.safe) == (kind, safe), str(outcome)
