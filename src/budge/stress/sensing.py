"""Sensitivity: does the verdict survive other interaction models?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from budge import stats
from budge.audit import audit
from budge.audit.design import EXACT_LIMIT
from budge.audit.result import Audit
from budge.errors import DesignError
from budge.models import as_predictor
from budge.stress.evidence import evidence
from budge.stress.families import as_family
from budge.stress.sensitivity_result import Sensitivity

__all__ = ["sensitivity"]

Progress = Callable[[int, int], None]


def sensitivity(
    model: Any,
    X: Any,
    family: Any,
    *,
    target: Any,
    threshold: float = 0.1,
    alpha: float = 0.05,
    claim: Literal["below", "above"] = "below",
    n: int | None = None,
    width: float | None = None,
    margin: float | None = None,
    power: float = 0.95,
    seed: int = 0,
    population: Any = "all",
    method: Literal["auto", "exact", "sample"] = "auto",
    exact_limit: int = EXACT_LIMIT,
    adjust: Literal["holm", "bonferroni"] = "holm",
    harm: Literal["below", "above"] | None = None,
    on_invalid: Literal["error", "skip", "keep"] = "error",
    check: bool = True,
    n_jobs: int = 1,
    progress: Progress | None = None,
    purpose: str = "draw",
) -> Sensitivity:
    """Audit a family of interaction models on the same people, with common random numbers.

    Parameters
    ----------
    model, X, target, threshold, alpha, claim, n, width, margin, power, seed, population, method, exact_limit, on_invalid, check, n_jobs
        As in `budge.audit`, for every member.
    family
        A mapping of names to interaction models, `grid` or `toggles`. What is claimed covers these members and no others.
    adjust
        How *flag* allows for the number of members; *certify* needs no correction.
    harm
        Which verdict is harm; with it, consensus (harm under every member) and possibility (under some) are told.

    Returns
    -------
    Sensitivity

    Examples
    --------
    >>> import pandas as pd, budge
    >>> from budge.stress import grid
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9), max_increase=2)])
    >>> family = grid(im, {"features.income.max_increase": [2, 5]})
    >>> X = pd.DataFrame({"income": [1, 2, 8]})
    >>> result = sensitivity(lambda t: (t["income"] > 4).astype(int), X, family, target=1, harm="below")
    >>> result.people[["rho_min", "rho_max", "flag", "certify"]].round(2).values.tolist()
    [[0.0, 0.29, True, False], [0.0, 0.38, True, False], [0.5, 0.5, False, False]]
    """
    members = as_family(family)
    if adjust not in ("holm", "bonferroni"):
        raise DesignError("must be holm or bonferroni", where="adjust", got=adjust)
    if harm not in (None, "below", "above"):
        raise DesignError("must be below or above", where="harm", got=harm)
    predictor = as_predictor(model)
    audits: dict[str, Audit] = {}
    for k, (name, im) in enumerate(members.items()):
        audits[name] = audit(
            predictor, X, im, target=target, threshold=threshold, alpha=alpha, claim=claim, n=n, width=width, margin=margin, power=power,
            seed=seed, population=population, method=method, exact_limit=exact_limit, adjust="none", harm=harm, on_invalid=on_invalid,
            check=check and k == 0, n_jobs=n_jobs, purpose=purpose,
        )  # fmt: skip
        if progress is not None:
            progress(k + 1, len(members))
    options: dict[str, Any] = {
        "target": target, "threshold": threshold, "alpha": alpha, "claim": claim, "n": n, "width": width, "margin": margin, "power": power,
        "seed": seed, "population": population, "method": method, "exact_limit": exact_limit, "adjust": adjust, "harm": harm,
        "on_invalid": on_invalid, "check": False, "n_jobs": n_jobs, "purpose": purpose,
    }  # fmt: skip

    def again(changes: Mapping[str, Any]) -> Sensitivity:
        return sensitivity(model, X, family, **{**options, **changes})

    first = next(iter(audits.values())).info
    design = first["design"]
    table, people = _tables(audits, design, alpha, adjust, harm)
    info = {
        "target": first["target"], "threshold": design["threshold"], "alpha": design["alpha"], "claim": claim,
        "adjust": adjust, "harm": harm, "n": design["n"], "seed": design["seed"], "purpose": purpose, "members": list(members),
        "people": len(people), "asked": int(table["n"].sum()), "digests": {name: a.info["spec_digest"] for name, a in audits.items()},
        "population": first["population"], "data_digest": first["data_digest"], "model_digest": next(iter(first["model_digests"].values())),
    }  # fmt: skip
    return Sensitivity(table, people, info, members.axes, dict(members.settings), audits, again)


def _tables(
    audits: Mapping[str, Audit], design: Mapping[str, Any], alpha: float, adjust: str, harm: str | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row a person and member; one row a person."""
    long, sides = [], []
    for name, found in audits.items():
        rows = found.table
        sides.append(evidence(rows, design))
        part = rows[
            ["prediction", "status", "method", "n", "hits", "unresolved", "rho", "low", "high", "p_value", "verdict"]
        ].copy()
        part.insert(0, "member", name)
        long.append(part)
    first = long[0]
    p_claim, p_other = (np.stack([p[k] for p in sides], axis=1) for k in (0, 1))
    rho = np.stack([part["rho"].to_numpy() for part in long], axis=1)
    some, all_of = stats.flag(p_claim, alpha, method=adjust), stats.certify(p_claim, alpha)
    known = ~np.isnan(rho)
    lowest = np.where(known, rho, np.inf).min(axis=1)
    highest = np.where(known, rho, -np.inf).max(axis=1)
    people = pd.DataFrame(
        {
            "rho_min": np.where(np.isfinite(lowest), lowest, np.nan), "rho_max": np.where(np.isfinite(highest), highest, np.nan),
            "flag": np.atleast_1d(some.rejected), "p_flag": np.atleast_1d(some.p_value), "certify": np.atleast_1d(all_of.rejected),
            "p_certify": np.atleast_1d(all_of.p_value), "verdicts": _verdicts(long),
        },
        index=first.index,
    )  # fmt: skip
    if harm is not None:
        p = p_claim if harm == design["claim"] else p_other
        people["consensus"] = np.atleast_1d(stats.certify(p, alpha).rejected)
        people["possibility"] = np.atleast_1d(stats.flag(p, alpha, method=adjust).rejected)
    return pd.concat(long), people


def _verdicts(long: list[pd.DataFrame]) -> list[str]:
    """The distinct verdicts of each person over the members."""
    words = np.stack([part["verdict"].to_numpy(dtype=object) for part in long], axis=1)
    return [", ".join(dict.fromkeys(str(w) for w in row)) for row in words]
