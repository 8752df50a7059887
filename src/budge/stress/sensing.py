"""Sensitivity: does the verdict survive other interaction models?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from budge import stats
from budge.audit.design import Design, Execution, Progress, designed, given
from budge.audit.result import Audit
from budge.audit.run import drifted, run_audit
from budge.errors import DesignError
from budge.models import as_predictor
from budge.stress.common import without_journal
from budge.stress.families import as_family
from budge.stress.sensitivity_result import Sensitivity

__all__ = ["sensitivity"]


def sensitivity(
    model: Any,
    X: Any,
    family: Any,
    *,
    target: Any = None,
    threshold: float | None = None,
    alpha: float | None = None,
    claim: Literal["below", "above"] | None = None,
    n: int | None = None,
    seed: int | None = None,
    population: Any = None,
    method: Literal["auto", "exact", "sample"] | None = None,
    adjust: Literal["holm", "bonferroni"] = "holm",
    harm: Literal["below", "above"] | None = None,
    progress: Progress | None = None,
    design: Design | None = None,
    execution: Execution | None = None,
) -> Sensitivity:
    """Audit a family of interaction models on the same people, with common random numbers.

    Parameters
    ----------
    model, X, target, threshold, alpha, claim, n, seed, population, method, design, execution
        As in `budge.audit`, for every member.
    family
        A mapping of names to interaction models, `grid` or `toggles`. Claims cover these members and no others.
    adjust
        How *flag* allows for the number of members; *certify* needs no correction.
    harm
        Which verdict is harm; with it, consensus (harm under every member) and possibility (under some) are reported.
    progress
        Called with (members done, members in all).

    Returns
    -------
    Sensitivity

    Examples
    --------
    >>> import pandas as pd, budge
    >>> from budge.stress import grid
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9), max_increase=2)])
    >>> family = grid(im, {"features.income.max_increase": [2, 5]})
    >>> X = pd.DataFrame({"income": [1, 2, 4]})
    >>> result = sensitivity(lambda t: (t["income"] > 4).astype(int), X, family, target=1, harm="below")
    >>> result.people[["rho_min", "rho_max", "flag", "certify"]].round(2).values.tolist()
    [[0.0, 0.29, True, False], [0.0, 0.38, True, False], [0.29, 0.5, False, False]]
    """
    members = as_family(family)
    if adjust not in ("holm", "bonferroni"):
        raise DesignError("must be holm or bonferroni", where="adjust", got=adjust)
    wishes = given(target=target, threshold=threshold, alpha=alpha, claim=claim, n=n, seed=seed, population=population, method=method, harm=harm)
    question = designed(design, wishes).but(adjust="none")
    if question.sequential:
        raise DesignError("members are compared on the same draws, so that none may stop early", where="sequential", got=True, remedy="leave it out")
    carried = without_journal(execution)
    predictor = as_predictor(model)
    audits: dict[str, Audit] = {}
    for k, (name, im) in enumerate(members.items()):
        audits[name] = run_audit(predictor, X, im, question, replace(carried, progress=None, check=carried.check if k == 0 else False))
        if progress is not None:
            progress(k + 1, len(members))

    def again(changes: Mapping[str, Any]) -> Sensitivity:
        return sensitivity(model, X, family, adjust=adjust, design=question.but(**changes), execution=Execution(check=False))

    first = next(iter(audits.values()))
    table, people = _tables(audits, first.design, adjust)
    info = {
        "target": first.info["target"], "threshold": question.threshold, "alpha": question.alpha, "claim": question.claim,
        "adjust": adjust, "harm": question.harm, "n": question.draws, "seed": question.seed, "purpose": question.purpose, "members": list(members),
        "people": len(people), "asked": sum(int(rows.counts.asked.sum()) for a in audits.values() for rows in a.rows.values()),
        "digests": {name: a.info["spec_digest"] for name, a in audits.items()}, "population": first.info["population"],
        "data_digest": first.info["data_digest"], "model_digest": next(iter(first.info["model_digests"].values())),
    }  # fmt: skip
    made = Sensitivity(table, people, info, members.axes, dict(members.settings), audits, again)
    if len(members) == 1 or first.context is None:  # the audit of the first has asked about the people again
        return made
    rows = next(iter(first.rows.values()))
    starts = first.context.source.take(rows.place).starts()
    notes = drifted({"model": predictor}, starts, {"model": rows.prediction}, carried.check, made)
    return replace(made, info={**info, "notes": [str(note) for note in notes]}) if notes else made


def _tables(audits: Mapping[str, Audit], design: Design, adjust: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one row per person and member, and one row per person."""
    long = []
    for name, found in audits.items():
        part = found.table.drop(columns=["p_adjusted"])
        part.insert(0, "member", name)
        long.append(part)
    claims = [found.claims() for found in audits.values()]
    sides = {"below": np.stack([c.evidence("below") for c in claims], axis=1), "above": np.stack([c.evidence("above") for c in claims], axis=1)}
    rho = np.stack([c.rho for c in claims], axis=1)
    some, every = stats.flag(sides[design.claim], design.alpha, method=adjust), stats.certify(sides[design.claim], design.alpha)
    known = ~np.isnan(rho)
    lowest, highest = np.where(known, rho, np.inf).min(axis=1), np.where(known, rho, -np.inf).max(axis=1)
    people = pd.DataFrame(
        {
            "rho_min": np.where(np.isfinite(lowest), lowest, np.nan), "rho_max": np.where(np.isfinite(highest), highest, np.nan),
            "flag": np.atleast_1d(some.rejected), "p_flag": np.atleast_1d(some.p_value), "certify": np.atleast_1d(every.rejected),
            "p_certify": np.atleast_1d(every.p_value), "verdicts": _verdicts(long), "approximate": _rough(long),
            "disagree": np.all([np.atleast_1d(stats.flag(p, design.alpha, method=adjust).rejected) for p in sides.values()], axis=0),
        },
        index=long[0].index,
    )  # fmt: skip
    if design.harm is not None:
        p = sides[design.harm]
        people["consensus"] = np.atleast_1d(stats.certify(p, design.alpha).rejected)
        people["possibility"] = np.atleast_1d(stats.flag(p, design.alpha, method=adjust).rejected)
    return pd.concat(long), people


def _verdicts(long: list[pd.DataFrame]) -> list[str]:
    """Return the distinct verdicts of each person over the members."""
    words = np.stack([part["verdict"].to_numpy(dtype=object) for part in long], axis=1)
    return [", ".join(dict.fromkeys(str(w) for w in row)) for row in words]


def _rough(long: list[pd.DataFrame]) -> Any:
    return np.stack([(part["exactness"] == "approximate").to_numpy() for part in long], axis=1).any(axis=1)
