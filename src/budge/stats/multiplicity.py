"""Many tests at once: adjusted p-values, and the two verdicts over a family of interaction models.

`flag` and `certify` are the paper's (App. SensAnalysis). The adjustments are a few lines here: SciPy has no Holm, and its Benjamini-Hochberg takes
every p-value by itself, where here one may stand for a million people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budge.errors import DesignError
from budge.stats._checks import Floats, Record, fraction, one_of, percent, refuse_first, unwrap

__all__ = ["FamilyVerdict", "adjust", "certify", "flag", "p_values_of"]

METHODS = ("bh", "by", "holm", "bonferroni", "none")


def p_values_of(values: object, where: str = "p_values") -> Floats:
    """Return p-values in [0, 1] as an array of at least one dimension; missing ones are refused."""
    if isinstance(values, (str, bytes, dict)):
        raise DesignError("p-values must be numbers", where=where, got=values, remedy="pass an array of p-values")
    try:
        raw = np.atleast_1d(np.asarray(values))
        if raw.dtype.kind == "b":
            raise ValueError
        p = raw.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise DesignError("p-values must be numbers", where=where, got=values, remedy="pass an array of p-values") from None
    if p.shape[-1] == 0:
        raise DesignError("an empty family: there is nothing to test", where=where, got=values, remedy="give at least one member")
    refuse_first(~((p >= 0) & (p <= 1)), p, "a p-value must lie between 0 and 1", where, "leave out what was not tested")
    return p


def adjust(p_values: object, method: str = "bh", *, repeats: NDArray[np.int64] | None = None) -> Floats:
    """Return adjusted p-values along the last axis, in the order they came.

    Parameters
    ----------
    p_values : array
        One per test; further leading axes are separate families.
    method : {"bh", "by", "holm", "bonferroni", "none"}
        `bh` bounds the expected share of false claims among those made ("which people"; independent or positively dependent
        tests), `by` does under any dependence; `holm` and `bonferroni` bound the probability of any false claim.
    repeats : array of int, optional
        How many tests each p-value of one family stands for.

    Examples
    --------
    >>> adjust([0.01, 0.02, 0.9], "holm").tolist()
    [0.03, 0.04, 0.9]
    """
    p = p_values_of(p_values)
    how = one_of(method, "method", METHODS)
    if how == "none":
        return p.copy()
    order = np.argsort(p, axis=-1, kind="stable")
    ranked = np.take_along_axis(p, order, -1)
    upto = np.cumsum(np.ones(p.shape[-1], np.int64) if repeats is None else repeats[order], axis=-1)  # tests with this p-value, or an earlier one
    m = int(upto[..., -1:].flat[0])
    if how == "bonferroni":
        stepped = m * ranked
    elif how == "holm":  # equal p-values step together: the first of them counts
        before = np.concatenate([np.zeros_like(upto[..., :1]), upto[..., :-1]], axis=-1)
        stepped = np.maximum.accumulate(ranked * (m - before), axis=-1)
    else:
        more = float((1 / np.arange(1, m + 1)).sum()) if how == "by" else 1.0
        stepped = np.minimum.accumulate((ranked * more * m / upto)[..., ::-1], axis=-1)[..., ::-1]
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.minimum(1.0, np.maximum(ranked, stepped)), -1)  # p * 3 / 3 may be a bit less than p
    return adjusted


@dataclass(frozen=True)
class FamilyVerdict(Record):
    """The verdict over a family of interaction models, for one person or for each of many."""

    question: str
    p_value: Any
    rejected: Any
    members: int
    alpha: float
    method: str

    def __str__(self) -> str:
        what = "some member rejects" if self.question == "flag" else "every member rejects"
        if np.ndim(self.p_value):
            shown = f"{int(np.sum(self.rejected))} of {np.size(self.p_value)}"
            return f"{what} for {shown} people ({self.members} members, alpha {self.alpha:g}, {self.method})"
        yes = what if self.rejected else f"not shown that {what}"
        return f"{yes} (p = {self.p_value:.3g}, {self.members} members, alpha {percent(self.alpha)}, {self.method})"


def flag(p_values: object, alpha: object = 0.05, *, method: str = "holm") -> FamilyVerdict:
    """Return whether some member of the family rejects: the smallest adjusted p-value against alpha (App. SensAnalysis, Flag).

    Members run along the last axis; leading axes are people.

    Examples
    --------
    >>> flag([0.02, 0.3]).rejected, flag([0.03, 0.3]).rejected
    (True, False)
    """
    level, how = fraction(alpha, "alpha"), one_of(method, "method", ("holm", "bonferroni"))
    p = p_values_of(p_values)
    smallest = adjust(p, how).min(axis=-1)
    return FamilyVerdict("flag", unwrap(smallest), unwrap(smallest < level), p.shape[-1], level, how)


def certify(p_values: object, alpha: object = 0.05) -> FamilyVerdict:
    """Return whether every member of the family rejects: the largest raw p-value against alpha (App. SensAnalysis, Certify).

    An intersection-union test: no correction is due, because all members have to reject.

    Examples
    --------
    >>> certify([0.01, 0.04]).rejected, certify([0.01, 0.06]).rejected
    (True, False)
    """
    level, p = fraction(alpha, "alpha"), p_values_of(p_values)
    largest = p.max(axis=-1)
    return FamilyVerdict("certify", unwrap(largest), unwrap(largest < level), p.shape[-1], level, "intersection-union")
