"""Results show themselves in notebooks: sentences, the first rows, a figure; whatever is in a name stays text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import Feature, constraints, plan, stats
from budge.report.notebook import show_html

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "audit"))
from audit_kit import approve, loans

EVIL = "<img src=x onerror=alert(1)>\x1b[31m$x$"


class Page(HTMLParser):
    """What a browser would make of it: tags, attributes that could run, and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(key.startswith("on") or key in ("href", "src") for key, _ in attrs), (tag, attrs)
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def evil() -> tuple[pd.DataFrame, budge.InteractionModel]:
    X, im = loans()
    X = X.rename(columns={"balance": EVIL}).set_axis([EVIL, *range(1, len(X))])
    features = [Feature(EVIL, "integer", bounds=(0, 4)) if f.name == "balance" else f for f in im.features]
    kept = [c for c in im.constraints if "balance" not in c.scope]
    rule = constraints.LinearConstraint({EVIL: 1, "years": 1}, "<=", 9, on="action", name=EVIL)
    return X, budge.InteractionModel(features, [*kept, rule], name=EVIL)


def judge(table: pd.DataFrame) -> np.ndarray:
    return approve(table.rename(columns={EVIL: "balance"}))


def results() -> dict[str, Callable[[], Any]]:
    X, im = evil()
    person = X.iloc[[0]]
    common: dict[str, Any] = {"target": 1, "population": "all"}
    audit = budge.audit({EVIL: judge}, X, im, **common)
    two = {"a": im, EVIL: im.without(EVIL)}
    return {
        "audit": lambda: audit,
        "summary": audit.summary,
        "share": lambda: audit.summary().share,
        "ablation": lambda: budge.ablate(judge, X, im, **common),
        "sensitivity": lambda: budge.sensitivity(judge, X, two, **common),
        "selection": lambda: budge.stress.select({EVIL: judge, "b": judge}, X, im, accuracy={EVIL: 0.9, "b": 0.8}, **common),
        "estimate": lambda: budge.estimate(judge, person, im, target=1),
        "estimates": lambda: budge.estimate(judge, X, im, **common),
        "falsified": lambda: budge.falsify(judge, person, im, target=1),
        "verification": lambda: budge.verify(judge, X, im, **common),
        "curve": lambda: plan.power_curve(threshold=0.4, rate=0.227),
        "plan": lambda: plan.samples_for_power(0.4, 0.227),
        "how_much": lambda: stats.how_much(np.arange(30.0)),
        "model": lambda: im,
        "set": lambda: im.enumerate(X.iloc[0]),
        "sample": lambda: im.sample(X.iloc[0], n=30, seed=1),
    }


class Shown(dict[str, Any]):
    """Results, each made when it is first looked at."""

    def __missing__(self, name: str) -> Any:
        self[name] = results()[name]()
        return self[name]


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    return Shown()


NAMES = [
    "audit", "summary", "share", "ablation", "sensitivity", "selection", "estimate", "estimates", "falsified", "verification", "curve", "plan",
    "how_much", "model", "set", "sample",
]  # fmt: skip
FIGURES = {
    "audit",
    "ablation",
    "sensitivity",
    "selection",
    "estimate",
    "estimates",
    "falsified",
    "verification",
    "curve",
    "plan",
    "how_much",
    "model",
}
TABLES = {
    "audit",
    "summary",
    "ablation",
    "sensitivity",
    "selection",
    "estimate",
    "estimates",
    "falsified",
    "verification",
    "model",
    "set",
    "sample",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_result_shows_itself_and_names_are_text(shown: dict[str, Any], name: str) -> None:
    html = shown[name]._repr_html_()
    page = Page(html)
    assert page.open == []
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert ("svg" in page.tags) == (name in FIGURES)
    assert ("table" in page.tags) == (name in TABLES)
    assert "\x1b" not in html
    if name in ("audit", "ablation", "sensitivity", "selection", "model", "set", "sample", "estimates"):
        assert "<img src=x onerror=alert(1)>" in page.words  # shown, as text


@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_is_in_it(shown: dict[str, Any], name: str) -> None:
    words = " ".join(Page(shown[name]._repr_html_()).words.split())
    said = (
        " ".join(str(shown[name]).split("\n")[0].replace("\x1b", "\\x1b").split()) if name != "curve" else "first 79, stable 85"
    )
    assert said in words


def test_as_ipython_would(shown: dict[str, Any]) -> None:
    pytest.importorskip("IPython", reason="IPython is not installed")
    from IPython.core.formatters import DisplayFormatter

    for result in (shown["audit"], shown["summary"], shown["estimate"], shown["curve"], shown["model"], shown["curve"].plot()):
        data, _ = DisplayFormatter().format(result)
        assert data["text/html"] == result._repr_html_()


def test_only_the_first_rows() -> None:
    table = pd.DataFrame({"a": range(50)})
    page = Page(show_html("x", table=table))
    assert page.tags.count("tr") == 21
    assert "30 more rows" in page.words


def test_index_and_columns_are_escaped() -> None:
    table = pd.DataFrame([[EVIL]], index=pd.MultiIndex.from_tuples([(EVIL, 1)], names=[EVIL, "b"]), columns=[EVIL])
    html = show_html(EVIL, table=table)
    page = Page(html)
    assert "img" not in page.tags
    assert page.words.count("onerror") == 5
    assert "\x1b" not in html
    assert "mathjax_ignore" in html  # dollars are no formulas


def test_a_figure_that_cannot_be_drawn_is_left_out() -> None:
    im = budge.InteractionModel([Feature("a", "integer", actionable=False)])
    found = budge.estimate(lambda t: (t["a"] > 1).astype(int), {"a": 1}, im, target=1)
    page = Page(found._repr_html_())
    assert "svg" not in page.tags
    assert "table" in page.tags


def test_a_bug_in_a_figure_is_not_hidden() -> None:
    def broken() -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        show_html("x", figure=broken)


def test_repr_is_one_line_and_numbers_stand_to_the_right() -> None:
    X, im = loans()
    audit = budge.audit(approve, X, im, target=1, population="all")
    from budge.stress import ablate, select, sensitivity

    made = [
        audit, audit.summary(), budge.prove(approve, X, im, target=1), budge.recourse(approve, X.iloc[[4]], im, target=1), ablate(approve, X, im, target=1),
        sensitivity(approve, X, {"a": im}, target=1), select({"a": approve}, X, im, accuracy={"a": 0.5}, target=1),
    ]  # fmt: skip
    for result in made:
        assert "\n" not in repr(result)
        assert len(repr(result)) < 260
        assert repr(result).startswith(f"<{type(result).__name__}")
    html = audit._repr_html_()
    assert '<td class="number">' in html
    assert "<style>.budge-result" in html
    assert '<td class="number">ok' not in html
