"""Full runs: every figure that data and draws determine is pinned, and the docs carry what the run says.

Figures that depend on a trained forest or booster are given the room that another version of its library may need.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from cpu import within

ROOT = Path(__file__).resolve().parents[2]
Program = Callable[[str], ModuleType]
pytestmark = [pytest.mark.heavy, pytest.mark.usefixtures("data_folder")]


def full(program: Program, name: str) -> Any:
    """Return the study; its comparison is the one in the docs."""
    with within(60):
        study = program(name).run()
    kept = pd.read_csv(ROOT / "docs" / "studies" / f"{name}.csv", keep_default_na=False)
    assert kept.astype(str).equals(study.comparison.astype(str)), "budge study all --out docs/studies"
    return study


def test_german(program: Program) -> None:
    numbers = full(program, "german").numbers
    assert numbers["points"] == {"table": 182_956, "two years per step": 106_752}
    assert 0.039 <= numbers["n30"]["error"] <= 0.049, "the paper's 4.4%, refused applicants"
    assert numbers["n30"]["false_alarms"] < 0.01
    assert numbers["n30"]["detection"] == pytest.approx(0.88, abs=0.03)
    assert numbers["public"]["all"]["error"] == pytest.approx(0.044, abs=0.001), "the authors' split and search, all applicants"


def test_twitterbot(program: Program) -> None:
    study = full(program, "twitterbot")
    variant = study.tables["variant"].set_index(["procedure", "sample"])
    assert 0.55 <= variant.loc[("Baseline", "test"), "actual"] <= 0.66
    assert variant.loc[("Convex", "test"), "reported"] == 0.0
    assert variant.loc[("Convex", "test"), "actual"] > 0.55
    assert variant.loc[("Exact", "test"), "actual"] <= 0.13
    assert study.numbers["audited"]["Exact"] == variant.loc[("Exact", "test"), "actual"], "the product and the audit count the same draws"


@pytest.mark.parametrize("name", ["overview", "recidivism", "transplant", "sorrybench", "moderation"])
def test_the_docs_carry_what_the_run_gives(program: Program, name: str) -> None:
    if name == "moderation":
        pytest.importorskip("profanity_check", reason="alt-profanity-check is in the `text` extra")
    full(program, name)
