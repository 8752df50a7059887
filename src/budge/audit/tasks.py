"""The three tasks (Table of validation tasks): falsify, estimate, verify, on one person or on a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pandas as pd

from budge import stats
from budge.audit import audit
from budge.audit.result import Audit
from budge.errors import DesignError
from budge.frames import one_row
from budge.interaction import InteractionModel

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["Estimate", "Falsified", "Verification", "estimate", "falsify", "verify"]


@dataclass(frozen=True)
class _Answer:
    """What the tasks share: the audit behind them; attributes are numbers for one person and columns for a table."""

    audit: Audit
    single: bool

    shown: ClassVar[tuple[str, ...]] = ()

    @property
    def table(self) -> pd.DataFrame:
        """One row a person."""
        return self.audit.table

    def _column(self, name: str) -> Any:
        column = self.audit.table[name]
        return (
            column.iloc[0].item()
            if self.single and hasattr(column.iloc[0], "item")
            else column.iloc[0]
            if self.single
            else column
        )

    @property
    def status(self) -> Any:
        """ok, fixed, empty or invalid_start."""
        return self._column("status")

    @property
    def method(self) -> Any:
        """exact, sample, sequential or weighted."""
        return self._column("method")

    @property
    def n(self) -> Any:
        """Points that were asked about."""
        return self._column("n")

    @property
    def hits(self) -> Any:
        """How many of them attain the target."""
        return self._column("hits")

    @property
    def witness(self) -> Any:
        """The nearest point found that attains the target; for a table, by label."""
        found = {label: self.audit.witness(label) for label in self.audit.table.index}
        return next(iter(found.values())) if self.single else found

    def plot(self) -> Figure:
        """One person's reachable points; for a table, how responsiveness is distributed."""
        return self.audit.plot("person", label=self.audit.table.index[0]) if self.single else self.audit.plot()

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.table, figure=self.plot)

    def to_dict(self) -> dict[str, Any]:
        """The record."""
        if not self.single:
            return self.audit.to_dict()
        return {
            name: None if isinstance(v := self._column(name), float) and v != v else v
            for name in ("status", "method", "n", "hits", "unresolved", *self.shown)
        }


@dataclass(frozen=True)
class Estimate(_Answer):
    """How often the prediction attains the target, with an interval (Prop. Certify)."""

    shown: ClassVar[tuple[str, ...]] = ("rho", "low", "high")

    @property
    def rho(self) -> Any:
        """The estimate, or the exact value."""
        return self._column("rho")

    @property
    def low(self) -> Any:
        """Lower end of the interval."""
        return self._column("low")

    @property
    def high(self) -> Any:
        """Upper end of the interval."""
        return self._column("high")

    def __str__(self) -> str:
        if not self.single:
            return f"{len(self.table):,} people, mean responsiveness {self.table['rho'].mean():.4g}"
        if self.status in ("empty", "invalid_start"):
            return f"No responsiveness: {self.status}."
        lost = int(self._column("unresolved"))
        if self.method == "exact" and lost:
            gap = f"{lost} of them have no answer: responsiveness lies between {self.low:.4g} and {self.high:.4g}"
            return f"{self.hits} of all {self.n} reachable points attain the target, {gap}."
        if self.method == "exact" and self.rho != self.hits / self.n:
            return f"Over all {self.n} reachable points, weighted as declared, responsiveness is exactly {self.rho:.4g}."
        if self.method == "exact":
            return f"{self.hits} of all {self.n} reachable points attain the target: responsiveness is exactly {self.rho:.4g}."
        level = 1 - self.audit.info["design"]["alpha"]
        answered = f", {lost} have no answer: of the answered" if lost else ": responsiveness"
        found = f"{self.hits} of {self.n} draws attain the target{answered} {self.rho:.4g}"
        return f"{found}, between {self.low:.4g} and {self.high:.4g} with confidence {level:.0%}."


@dataclass(frozen=True)
class Verification(_Answer):
    """Whether responsiveness is below (above) the threshold (Prop. Testing)."""

    shown: ClassVar[tuple[str, ...]] = ("rho", "low", "high", "p_value", "verdict")

    @property
    def verdict(self) -> Any:
        """below, above or inconclusive."""
        return self._column("verdict")

    @property
    def p_value(self) -> Any:
        """Of the claim; none where the answer is exact."""
        return self._column("p_value")

    @property
    def rho(self) -> Any:
        """The estimate, or the exact value."""
        return self._column("rho")

    def __str__(self) -> str:
        design = self.audit.info["design"]
        tau = design["threshold"]
        if not self.single:
            return str(self.audit)
        if self.method == "exact" and int(self._column("unresolved")):
            ends = f"between {self._column('low'):.4g} and {self._column('high'):.4g}"
            return f"Responsiveness lies {ends} ({self._column('unresolved')} points have no answer): {self.verdict} at the threshold {tau:g}."
        if self.method == "exact":
            how = "equal to" if self.verdict == "inconclusive" else self.verdict
            return f"Responsiveness is exactly {self.rho:.4g}: {how} the threshold {tau:g}."
        if self.status in ("empty", "invalid_start"):
            return f"No verdict: {self.status}."
        return f"{self.verdict.capitalize()} (threshold {tau:g}; {self.hits} hits in {self.n} draws, p = {self.p_value:.3g} for the claim '{design['claim']}')."


@dataclass(frozen=True)
class Falsified(_Answer):
    """Whether some reachable point attains the target: one hit is a certificate."""

    shown: ClassVar[tuple[str, ...]] = ("high",)

    @property
    def found(self) -> Any:
        """Whether a witness was found."""
        return bool(self._column("hits") > 0) if self.single else self.table["hits"] > 0

    @property
    def impossible(self) -> Any:
        """Whether it is proved that no reachable point attains the target."""
        proved = (self.table["method"] == "exact") & (self.table["hits"] == 0) & (self.table["unresolved"] == 0)
        return bool(proved.iloc[0]) if self.single else proved

    @property
    def bound(self) -> Any:
        """With no hit: what responsiveness is below, with confidence 1 - alpha; 0 where proved."""
        rows = self.table
        alpha = self.audit.info["design"]["alpha"]
        drawn = rows["method"] != "exact"
        bound = rows["high"].where(~drawn, 1.0)
        if drawn.any():
            bound.loc[drawn] = stats.upper_bound(
                (rows["hits"] + rows["unresolved"])[drawn].to_numpy(), rows["n"][drawn].to_numpy(), alpha
            )
        return float(bound.iloc[0]) if self.single else bound

    def __str__(self) -> str:
        if not self.single:
            return f"{int(self.found.sum()):,} of {len(self.table):,} people can attain the target; for {int(self.impossible.sum()):,} it is proved impossible"
        if self.found:
            return f"The target can be attained: {self.hits} of {self.n} points do."
        if self.impossible:
            return f"The target cannot be attained: none of all {self.n} reachable points does."
        if self.status in ("empty", "invalid_start"):
            return f"No answer: {self.status}."
        if self.method == "exact":
            return f"No hit among {self.n} reachable points, but {self._column('unresolved')} have no answer: responsiveness is at most {self.bound:.3g}."
        level = 1 - self.audit.info["design"]["alpha"]
        return f"No hit in {self.n} draws: responsiveness is below {self.bound:.3g} with confidence {level:.0%}."


def _people(X: Any, im: Any) -> tuple[Any, bool]:
    """A table as it is; one person as a table of one row."""
    if isinstance(im, InteractionModel) and (isinstance(X, Mapping | pd.Series) or getattr(X, "ndim", 2) == 1):
        frame = one_row(X, [f.name for f in im.features])
        return frame, True
    return X, isinstance(X, pd.DataFrame) and len(X) == 1


def estimate(
    model: Any, X: Any, im: Any, *, target: Any, alpha: float = 0.05, width: float | None = None, n: int | None = None, seed: int = 0,
    method: Literal["auto", "exact", "sample"] = "auto", **options: Any,
) -> Estimate:  # fmt: skip
    """How often does the prediction attain the target? n from the width of the interval (0.1 unless given).

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9))])
    >>> print(budge.estimate(lambda t: t["income"] > 4, {"income": 1}, im, target=True))
    5 of all 10 reachable points attain the target: responsiveness is exactly 0.5.
    """
    people, single = _people(X, im)
    width = 0.1 if width is None and n is None else width
    size = n if n is not None else stats.planning.samples_for_width(width, alpha)
    found = _audit(model, people, im, target=target, alpha=alpha, n=size, seed=seed, method=method, testing=False, **options)
    return Estimate(found, single)


def verify(
    model: Any, X: Any, im: Any, *, target: Any, threshold: float = 0.1, alpha: float = 0.05, claim: Literal["below", "above"] = "below",
    n: int | None = None, margin: float | None = None, power: float = 0.95, seed: int = 0, sequential: bool = False,
    method: Literal["auto", "exact", "sample"] = "auto", **options: Any,
) -> Verification:  # fmt: skip
    """Is responsiveness below (above) the threshold, with error at most alpha?"""
    people, single = _people(X, im)
    found = audit(
        model, people, im, target=target, threshold=threshold, alpha=alpha, claim=claim, n=n, margin=margin, power=power, seed=seed,
        sequential=sequential, method=method, **options,
    )  # fmt: skip
    return Verification(found, single)


def falsify(
    model: Any, X: Any, im: Any, *, target: Any, alpha: float = 0.05, n: int | None = None, seed: int = 0,
    method: Literal["auto", "exact", "sample"] = "auto", **options: Any,
) -> Falsified:  # fmt: skip
    """Does any reachable point attain the target? One hit is a certificate; with none, a bound for the n spent (299 unless given)."""
    people, single = _people(X, im)
    size = 299 if n is None else n
    found = _audit(model, people, im, target=target, alpha=alpha, n=size, seed=seed, method=method, testing=False, **options)
    return Falsified(found, single)


def _audit(model: Any, X: Any, im: Any, *, n: Any, alpha: float, testing: bool, **options: Any) -> Audit:
    """An audit without a claim: any n will do."""
    if "threshold" in options:
        raise DesignError("this task has no threshold", where="threshold", got=options["threshold"], remedy="use verify")
    return audit(model, X, im, n=n, alpha=alpha, testing=testing, **options)
