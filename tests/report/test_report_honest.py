"""What a report says of numbers: one rounding, what is exact, what an interval is about, and what includes chance."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_kit import Page, approve, audited, loans

import budge
from budge import Effect, Feature, InteractionModel, constraints
from budge.report.document import render
from budge.report.people import notable, number
from budge.stress import ablate

IM = InteractionModel([Feature("a", "integer", bounds=(0, 9))], name="\x1b[31mred")


def at(cut: int, threshold: float) -> Any:
    return budge.audit(lambda t: (t["a"] >= cut).astype(int), pd.DataFrame({"a": [0]}, index=["x"]), IM, target=1, threshold=threshold)


def test_numbers_read_alike_with_and_without_the_script() -> None:
    assert [number(v) for v in (0.03125, 0.5, 0.1005, 1.0, 12345, 1234.5678, -0.03125)] == ["0.0313", "0.5", "0.101", "1", "12,345", "1,235", "−0.0313"]
    node = shutil.which("node")
    if node is None:  # Playwright brings one
        driver = pytest.importorskip("playwright._impl._driver", reason="neither node nor playwright is here to run the page's own rule")
        node = driver.compute_driver_executable()[0]
    script = (files("budge.report") / "assets" / "report.js").read_text(encoding="utf-8")
    found = re.search(r"const shown = \(v\) => \{.*?\n  \};", script, re.S)
    assert found is not None
    rng = np.random.default_rng(0)
    values = [k / n for n in (7, 32, 64, 128, 224, 1000, 4096) for k in range(0, n, max(1, n // 60))]
    values += [*rng.uniform(0, 1, 500), *(10.0 ** rng.uniform(-12, 0, 500)), *rng.uniform(-1, 1, 100), *rng.integers(0, 10**7, 50).tolist()]
    values = [int(v) if float(f"{v:.6g}").is_integer() and abs(v) < 1e6 else v if isinstance(v, int) else float(f"{v:.6g}") for v in values]
    code = f"{found[0]} console.log(JSON.stringify({json.dumps(values)}.map(shown)))"
    said = json.loads(subprocess.run([node, "-e", code], capture_output=True, text=True, check=True).stdout)
    assert said == [number(v) for v in values]


def test_close_to_the_threshold_is_close() -> None:
    def why(audit: Any) -> list[str]:
        return [p.why for p in notable(audit, {})]

    assert not any("Close" in w for w in why(at(1, 0.1)))  # ρ = 0.9
    assert any("Close" in w for w in why(at(5, 0.55)))
    (equal,) = why(at(9, 0.1))
    assert "equals the threshold τ = 0.1 exactly" in equal
    text = Page(render(at(9, 0.1))).text
    assert "For 1 person ρ equals the threshold exactly: neither below nor above" in text
    assert "equals the threshold exactly" not in Page(render(at(1, 0.1))).text


def test_names_cannot_steer_a_terminal() -> None:
    audit = at(5, 0.1)
    gone = ablate(lambda t: (t["a"] > 5).astype(int), pd.DataFrame({"a": [0]}), InteractionModel(
        [Feature("a", "integer", bounds=(0, 9), max_increase=2)], name="\x1b[31mred"), target=1)  # fmt: skip
    for result in (audit, audit.summary(), gone):
        assert "\x1b" not in str(result)
        assert "red" in str(result)
    assert "1 people (100 %)" not in str(audit)
    exact = budge.audit(lambda t: (t["a"] > 8).astype(int), pd.DataFrame({"a": range(5)}), IM, target=1, threshold=0.2)
    assert "Exactly 5 of these 5 people (100 %) are below the threshold." in str(exact)


def test_groups_are_in_one_order_and_say_what_intervals_are_about() -> None:
    audit = audited()
    group = pd.Series(np.where(np.arange(40) % 3 == 0, "b", "a"), index=audit.table.index, name="letter")
    assert list(dict.fromkeys(audit.by(group).index.get_level_values("group"))) == ["a", "b"]
    figure = audit.plot("verdicts", by=group)
    assert figure.title.endswith("by letter")
    assert [t.split(" ")[0] for t in next(t for t in figure.ticks if t.axis == "y").titles] == ["a", "b"]
    assert "random sample of a larger population" in figure.note
    sizes = pd.Series(pd.Categorical(np.where(np.arange(40) % 3 == 0, "small", "large"), ["small", "large"]), index=audit.table.index)
    assert list(dict.fromkeys(audit.by(sizes).index.get_level_values("group"))) == ["small", "large"]
    page = Page(render(audit, by=[group]))
    assert "were these people a random sample of it" in page.text
    order = [row[0] for row in page.rows if len(row) == 7 and row[0] in ("a", "b")]
    assert order == ["a", "b"]


def test_the_largest_changes_are_shown_up_or_down() -> None:
    X, im = loans()
    found = ablate(approve, X, im, target=1)
    gains = found.ranking["gain"].abs()
    for most in range(1, len(gains) + 1):
        some = found.largest(most)
        assert some.index.is_monotonic_increasing
        assert some["gain"].abs().min() >= gains.drop(some.index).max() or most == len(gains)
    assert (found.ranking["gain"] < 0).any()  # else the test shows nothing
    figure = found.plot()
    assert "−" in figure.about
    assert "+-" not in figure.about
    page = Page(render(audited(), ablation=found))
    rows = {row[0]: row for row in page.rows if row and row[0] in set(found.relaxations) and len(row) == 6}
    for _, row in found.ranking.iterrows():
        shown = rows[row["relaxation"]]
        assert (shown[2] == "exact") == (row["low"] == row["high"])
        assert shown[1].startswith("−") == (row["gain"] < 0)


def test_what_chance_adds_is_said() -> None:
    im = InteractionModel(
        [Feature("study", "integer", bounds=(0, 3)), Feature("mark", "integer", bounds=(0, 20), actionable=False)], [],
        [Effect("mark", add="normal(2 * action.study, 1)", round=True, clip=(0, 20), name="luck of the day")], name="school",
    )  # fmt: skip
    audit = budge.audit(lambda t: (t["mark"] > 6).astype(int), pd.DataFrame({"study": [0, 1], "mark": [3, 4]}), im, target=1, seed=2)
    page = Page(render(audit))
    assert "(luck of the day)" in page.text
    assert "includes a draw of chance" in page.text
    marks = [row for row in page.rows if row and row[0] == "mark" and len(row) == 3]
    assert marks
    assert all("includes a draw of chance" in row[2] for row in marks)
    assert "draw of chance" not in Page(render(audited())).text


def test_a_thermometer_is_told_the_right_way_round() -> None:
    text = constraints.Thermometer(("CheckingAcct_exists", "CheckingAcct>=0"), direction="increase").describe()
    assert text == "CheckingAcct_exists, CheckingAcct>=0 stay a thermometer (a dummy is on only if all before it are), and can only increase."
