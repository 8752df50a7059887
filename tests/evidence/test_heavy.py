"""10^5 audited rows per law, at and near the threshold, against the errors that are stated; fixed seeds, five standard errors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from evidence_kit import binomial_limit

import budge
from budge import Design, Execution, Feature, InteractionModel
from budge.distributions import Distribution

pytestmark = pytest.mark.heavy

PEOPLE, TAU, ALPHA, POINTS = 100_000, 0.1, 0.05, 20
QUIET = Execution(check=False)
FIXED = [Feature("hits", "integer", actionable=False), Feature("who", "integer", actionable=False)]
PLAIN = InteractionModel([Feature("a", "integer", bounds=(0, POINTS - 1)), *FIXED])
SEEN: list[tuple[str, ...]] = []


@pytest.fixture(scope="module", autouse=True)
def table_of_what_was_seen(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    lines = [("law", "what", "rows", "seen", "limit"), *SEEN]
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("\n" + "\n".join(f"{a:<32}{b:<40}{c:>9}{d:>10}{e:>10}" for a, b, c, d, e in lines))


def note(law: str, what: str, wrong: Any, rate: float, *, rows: int | None = None) -> None:
    """Write down how often something was wrong, and fail where that is more than five standard errors above the stated rate."""
    wrong = np.asarray(wrong, float)
    size = wrong.size if rows is None else rows
    limit = binomial_limit(size, rate)
    SEEN.append((law, what, f"{size:,}", f"{wrong.mean():.4f}", f"{limit:.4f}"))
    assert wrong.mean() <= limit


def people(count: int, hits: Any, first: int = 0) -> pd.DataFrame:
    """Return people who hit at so many of the 20 points: rho is hits / 20, and the threshold is 2 / 20."""
    return pd.DataFrame({"a": POINTS - 1, "hits": np.resize(hits, count), "who": np.arange(first, first + count)})


def model(table: pd.DataFrame) -> np.ndarray:
    return (table["a"].to_numpy() < table["hits"].to_numpy()).astype(int)


def check_errors(law: str, table: pd.DataFrame, rho: np.ndarray) -> None:
    """Check false verdicts, bounds and intervals, of everybody and of those exactly at the threshold."""
    at = np.abs(rho - TAU) < 1e-12
    note(law, "false below at the threshold", (table["verdict"] == "below")[at], ALPHA)
    note(law, "false above at the threshold", (table["verdict"] == "above")[at], ALPHA)
    high = rho > TAU + 1e-12
    note(law, "false below above the threshold", (table["verdict"] == "below")[high], ALPHA)
    for r in np.unique(rho):
        some = rho == r
        note(law, f"upper too small at rho = {r:g}", (table["upper"] < r - 1e-12)[some], ALPHA)
        note(law, f"lower too large at rho = {r:g}", (table["lower"] > r + 1e-12)[some], ALPHA)
        note(law, f"interval misses rho = {r:g}", ((table["low"] > r + 1e-12) | (table["high"] < r - 1e-12))[some], ALPHA)
    agree = (table["verdict"] == "below") == (table["upper"] < TAU)
    agree &= (table["verdict"] == "above") == (table["lower"] > TAU)
    note(law, "verdict against bound", ~agree, 0.0)


MIX = [0, 1, 2, 2, 2, 2, 3, 4]


@pytest.mark.parametrize("n", [29, 60])
def test_fixed_draws(n: int) -> None:
    X = people(PEOPLE, MIX)
    result = budge.audit(model, X, PLAIN, target=1, n=n, method="sample", population="all", seed=1, execution=QUIET)
    check_errors(f"drawn, n = {n}", result.table, X["hits"].to_numpy() / POINTS)
    share, below = result.summary().share, float((X["hits"] < 2).mean())
    assert share.low <= below <= share.high


@pytest.mark.parametrize("claim", ["below", "above"])
def test_sequential(claim: str) -> None:
    X = people(PEOPLE, MIX)
    design = Design(target=1, claim=claim, sequential=True, method="sample", population="all", seed=2, adjust="none", margin=0.05 if claim == "below" else 0.1)
    result = budge.audit(model, X, PLAIN, design=design, execution=QUIET)
    check_errors(f"sequential, {claim}", result.table, X["hits"].to_numpy() / POINTS)
    share, below = result.summary().share, float((X["hits"] < 2).mean() if claim == "below" else (X["hits"] > 2).mean())
    assert share.low <= below <= share.high


@pytest.mark.parametrize("rare", [True, False])
def test_weighted(rare: bool) -> None:
    """Hits are drawn three times too rarely, or three times too often."""
    X = people(PEOPLE, [1, 2, 2, 4])
    weights = {a: (1 if rare else 3) if a < 4 else (3 if rare else 1) for a in range(POINTS)}
    result = budge.audit(model, X, PLAIN, target=1, n=60, method="sample", population="all", seed=3, proposal={"a": {"weights": weights}}, execution=QUIET)
    check_errors(f"weighted, hits {'rare' if rare else 'often'}", result.table, X["hits"].to_numpy() / POINTS)


def test_listed() -> None:
    weights = dict(enumerate([1, 3, 5, 1, 10, *[2] * 15]))
    law = Distribution.from_spec({"weights": weights})
    im = InteractionModel([Feature("a", "integer", bounds=(0, POINTS - 1), distribution=law), *FIXED])
    X = people(PEOPLE, np.arange(POINTS + 1))
    result = budge.audit(model, X, im, target=1, population="all", execution=QUIET)
    mass = np.r_[0.0, np.cumsum(list(weights.values())) / 50]
    rho, t = mass[X["hits"]], result.table
    wrong = (np.abs(t["rho"] - rho) > 1e-9) | (np.abs(t["low"] - rho) > 1e-9) | (np.abs(t["high"] - rho) > 1e-9)
    note("listed with weights", "rho, low and high are the truth", wrong, 0.0)
    said = np.where(rho < TAU - 1e-12, "below", np.where(rho > TAU + 1e-12, "above", "at the threshold"))
    note("listed with weights", "the verdict is the truth", t["verdict"].to_numpy() != said, 0.0)
    share = result.summary().share
    assert share.low == share.high == pytest.approx((rho < TAU - 1e-12).mean())


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize(("adjust", "families"), [("bh", 500), ("holm", 300), ("bonferroni", 300)])
def test_families(adjust: str, families: int, sequential: bool) -> None:
    """Families of 40 people, 10 of them below and 30 at the threshold: the false discovery rate, or any false name at all."""
    false_share, any_false, found = [], [], 0
    for k in range(families):
        X = people(40, [0, 2, 2, 2], first=40 * k)
        design = Design(target=1, n=None if sequential else 100, sequential=sequential, method="sample", population="all", adjust=adjust, seed=4)
        named = budge.audit(model, X, PLAIN, design=design, execution=QUIET).people("below", adjusted=True).index
        false = int((X.loc[named, "hits"] == 2).sum())
        found += len(named) - false
        false_share.append(false / max(len(named), 1))
        any_false.append(false > 0)
    law = f"family, {'sequential' if sequential else 'drawn'}, {adjust}"
    if adjust == "bh":
        limit = ALPHA + 5 * np.std(false_share) / np.sqrt(families)
        SEEN.append((law, "false discovery rate", f"{families:,}", f"{np.mean(false_share):.4f}", f"{limit:.4f}"))
        assert np.mean(false_share) <= limit
    else:
        note(law, "any false name", any_false, ALPHA)
    assert found >= 0.9 * 10 * families  # a family that names nobody would prove nothing


def test_shares_with_twins_and_groups() -> None:
    """40 people who are 10 distinct ones: shares of all and of two groups, everybody at or near the threshold."""
    runs, missed, groups = 1000, [], []
    rng = np.random.default_rng(5)
    for k in range(runs):
        X = people(40, 2, first=40 * k)
        one = rng.integers(0, 10, 40)
        X["who"], X["hits"] = 40 * k + one, np.array([0, 1, *[2] * 7, 3])[one]
        X["group"] = np.where(one < 5, "x", "y")
        result = budge.audit(model, X, PLAIN, target=1, n=46, method="sample", population="all", seed=6, execution=QUIET)
        share, below = result.summary().share, float((X["hits"] < 2).mean())
        missed.append(not share.low - 1e-9 <= below <= share.high + 1e-9)
        wrong = False
        for (group, side), row in result.by("group").iterrows():
            here = X["hits"][X["group"] == group]
            truth = float((here < 2).mean() if side == "below" else (here > 2).mean())
            wrong |= not row["low"] - 1e-9 <= truth <= row["high"] + 1e-9
        groups.append(wrong)
    note("shares with twins", "the interval misses the share", missed, ALPHA)
    note("shares with twins", "some group's interval misses", groups, ALPHA)


def test_the_whole_takes_minutes() -> None:
    assert time.process_time() < 900
