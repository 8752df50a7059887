"""Full runs: the docs carry what the run gives, in every file.

Another version of a library of trees, or another processor, may give other figures: then the pages are made anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cpu import within

ROOT = Path(__file__).resolve().parents[2]
Program = Callable[[str], ModuleType]
pytestmark = [pytest.mark.heavy, pytest.mark.usefixtures("data_folder")]


def full(program: Program, name: str, seconds: float = 60) -> Any:
    """Return the study; its page, tables and figures are those in the docs."""
    with within(seconds):
        study = program(name).run()
    kept = {file: (ROOT / "docs" / "studies" / file).read_text(encoding="utf-8") for file in study.files()}
    assert [file for file, text in study.files().items() if kept[file] != text] == [], "budge study all --out docs/studies"
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


@pytest.mark.usefixtures("local_model")
def test_positions(program: Program) -> None:
    """The answers of the real model, and that they follow the position."""
    numbers = full(program, "positions", seconds=180).numbers
    places = {row["place"]: row for row in numbers["places"]}
    assert places["A"]["share_named"] > 0.5
    assert places["A"]["right"] > 3 * places["B"]["right"]
    assert numbers["open"] > numbers["questions"] / 2, "what it does not name it knows"


@pytest.mark.parametrize("name", ["overview", "recidivism", "transplant", "sorrybench", "moderation"])
def test_the_docs_carry_what_the_run_gives(program: Program, name: str) -> None:
    if name == "moderation":
        pytest.importorskip("profanity_check", reason="alt-profanity-check is in the `text` extra")
    full(program, name)
