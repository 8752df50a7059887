"""Designs: what decides every number is checked at the door, planned once, and comes back from its record."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_kit import ONCE, PROPOSAL, approve, below_rate, dials, loans
from scipy.stats import binom

import budge
from budge import Design, Execution
from budge.errors import DesignError, InputError, ModelError


def test_the_number_of_draws_is_the_first_with_the_power() -> None:
    assert Design(target=1).draws == 298
    power = [binom.cdf(max(k for k in range(n) if binom.cdf(k, n, 0.1) < 0.05), n, 0.05) for n in range(290, 299)]
    assert power[-1] >= 0.95 > max(power[:-1])
    above = Design(target=1, claim="above", threshold=0.5)
    assert above.draws == Design.from_dict(above.to_dict()).draws
    assert Design(target=1, n=70).but(threshold=0.2).draws == 70
    assert Design(target=1).but(threshold=0.2).draws < 298


def test_a_number_of_draws_that_was_given_is_never_planned_anew() -> None:
    given = Design(target=1, sequential=True, n=100)
    assert given.but(family=5, threshold=0.2).draws == 100
    X, im = dials(40, seed=1)
    result = budge.audit(below_rate, X, im, target=1, sequential=True, n=64, population="all", execution=ONCE)
    assert result.design.draws == 64
    assert 63 <= result.table["n"].max() <= 64
    assert (result.table["verdict"][X["rate"] == 0] == "below").all()
    wide = budge.estimate(below_rate, X, im, target=1, design=Design(width=0.5), execution=ONCE)
    assert (wide.n < 30).all()
    assert (budge.estimate(below_rate, X, im, target=1, design=Design(n=31, testing=False), execution=ONCE).n == 31).all()
    assert (budge.estimate(below_rate, X, im, target=1, width=0.5, design=Design(width=0.01), execution=ONCE).n == wide.n).all()
    with pytest.raises(DesignError, match="width"):
        budge.estimate(below_rate, X, im, target=1, width=0.0)


@pytest.mark.parametrize(("adjust", "least"), [("bh", 63), ("none", 39)])
def test_a_sequential_cap_within_which_nothing_can_be_shown_is_refused(adjust: Any, least: int) -> None:
    """29 draws would show it for one person at a fixed n; the rule needs more, and more still after the adjustment."""
    with pytest.raises(DesignError, match=f"at least {least}"):
        Design(target=1, sequential=True, n=least - 1, adjust=adjust)
    X, im = dials(2)
    X["rate"] = 0.0
    table = budge.audit(below_rate, X, im, target=1, sequential=True, n=least, adjust=adjust, execution=ONCE).table
    assert (table["n"] == least).all()
    assert (table["verdict"] == "below").all()
    with pytest.raises(DesignError, match="survives the adjustment"):  # the family is known only when the people are
        budge.audit(below_rate, dials(500)[0], im, target=1, sequential=True, n=50, adjust="bonferroni", population="all", execution=ONCE)


def test_all_problems_of_a_design_at_once() -> None:
    with pytest.raises(DesignError, match="5 problems") as caught:
        Design(threshold=2, alpha=-1, claim="beside", seed=-1, n=0)  # type: ignore[arg-type]
    assert [problem.where for problem in caught.value.problems] == ["threshold", "alpha", "claim", "seed", "n"]


def test_bad_designs_are_refused() -> None:
    X, im = loans()
    with pytest.raises(DesignError, match="29"):
        budge.audit(approve, X, im, target=1, n=20, method="sample")
    with pytest.raises(DesignError, match="29"):
        budge.audit(below_rate, *dials(3), target=1, n=20, population="all")
    assert len(budge.audit(approve, X, im, target=1, n=20, population="all").table) == len(X)  # all are listed: nothing is drawn
    with pytest.raises(DesignError, match="one of"):
        budge.audit(approve, X, im, target=1, n=50, design=Design(width=0.1))
    with pytest.raises(ModelError):
        budge.audit({}, X, im, target=1)
    with pytest.raises(InputError, match="draw"):
        budge.audit(approve, X, object(), target=1)
    with pytest.raises(DesignError, match="target"):
        budge.audit(approve, X, im)
    with pytest.raises(DesignError, match="labels map values of the column to words"):
        Design(target=1, groups={"sex": ["f", "m"]})
    for name, value in (("harm", "bad"), ("claim", "beside"), ("adjust", "fdr"), ("method", "list"), ("threshold", 1.5), ("alpha", 0.0)):
        with pytest.raises(DesignError, match=name):
            budge.audit(approve, X, im, target=1, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(DesignError, match="stopping rule"):
        budge.audit(approve, X, im, target=1, sequential=True, proposal=PROPOSAL)
    with pytest.raises(InputError, match="fields of Design and Execution"):
        budge.audit(approve, X, im, target=1, block_people=3)  # type: ignore[call-arg]
    for wrong in ({"block_people": -1}, {"n_jobs": 0}, {"check": "maybe"}, {"journal": 3}, {"overwrite": 1}, {"progress": 1}):
        with pytest.raises(DesignError, match=next(iter(wrong))):
            Execution(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [["f", "m"], [0, 1]], ids=str)
def test_groups_are_columns_and_not_their_values(values: list[Any]) -> None:
    with pytest.raises(DesignError, match="must be a column"):
        Design(target=1, groups=pd.Series(values))
    assert Design(target=1, groups=()).groups == ()


@pytest.mark.parametrize(
    "wishes",
    [
        {"target": 1}, {"target": [1, 2], "claim": "above", "threshold": 0.5, "seed": 4}, {"target": "score >= 0.7", "sequential": True, "n": 90},
        {"target": 1, "groups": {"sex": {0: "f", 1: "m"}, "home": None}, "harm": "below"}, {"target": 1, "width": 0.1}, {"target": 1, "margin": 0.02},
        {"target": 1, "proposal": {"balance": {"weights": {0: 1, np.int64(1): 2}}, "home": {"weights": {"rent": 1, "own": 3}}}, "n": 50},
    ],
)  # fmt: skip
def test_a_design_comes_back_from_its_record(wishes: dict[str, Any]) -> None:
    design = Design(**wishes)
    back = Design.from_dict(json.loads(json.dumps(design.to_dict())))
    assert back.digest == design.digest
    assert (back.proposal, back.draws, back.why_n, back.groups) == (design.proposal, design.draws, design.why_n, design.groups)
    assert back.digest != design.but(seed=9).digest
    with pytest.raises(InputError, match="threshold"):
        Design.from_dict(design.to_dict() | {"treshold": 0.1})
    with pytest.raises(InputError, match="did you mean"):
        design.but(treshold=0.1)
