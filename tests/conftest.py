"""What holds for all tests."""

from __future__ import annotations

import os
import signal

import hypothesis
import pytest

import cpu

# No test depends on the wall clock: a busy machine is no failure. Where a change is judged (CI), examples are the same each time: new ones are for those who
# can look at what they find.
hypothesis.settings.register_profile(
    "calm", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], derandomize=bool(os.environ.get("CI"))
)
hypothesis.settings.load_profile("calm")

# A shell that starts the tests in the background tells them to ignore Ctrl-C, and programs that they start inherit that. Tests
# of interruption need the ordinary answer.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Hold a heavy run to the stated limits of CPU time; other runs have four times as much (see cpu.py)."""
    if config.option.markexpr.strip() == "heavy":
        os.environ.setdefault(cpu.ROOM, "1")
