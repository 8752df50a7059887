"""Attacks on what an extra brings are skipped, with the reason, where that extra is not installed."""

from __future__ import annotations

import importlib.util

import pytest

NEEDED = dict.fromkeys(("stream", "a_part_that", "honest_runs", "Arrow"), ("pyarrow", "parquet")) | {"-page]": ("starlette", "serve")}


def pytest_runtest_setup(item: pytest.Item) -> None:
    for word, (package, extra) in NEEDED.items():
        if word in item.name and importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is in the `{extra}` extra")
