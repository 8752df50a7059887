"""The three tasks (Table of validation tasks): falsify, estimate, verify, on one person or on a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack

import numpy as np
import pandas as pd

from budge.audit import More, audit
from budge.audit.design import Design, Execution, designed, given
from budge.audit.result import Audit
from budge.audit.summary import HOW, between
from budge.errors import DesignError, InputError, nearest
from budge.frames import one_row
from budge.interaction import InteractionModel
from budge.stats._checks import percent

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["Estimate", "Falsified", "Verification", "estimate", "falsify", "people_of", "verify"]

WIDTH = 0.1  # of the interval of an estimate, unless something else sets the number of draws


def _column_of(name: str, about: str) -> Any:
    """Return a property that reads a column of the audit: a number for one person, the column for a table."""
    return property(lambda self: self._column(name), doc=about)


@dataclass(frozen=True)
class _Answer:
    """The audit behind a task; attributes are numbers for one person and columns for a table."""

    audit: Audit
    single: bool

    shown: ClassVar[tuple[str, ...]] = ()

    @property
    def table(self) -> pd.DataFrame:
        """One row per person."""
        return self.audit.table

    def _column(self, name: str) -> Any:
        column = self.audit.table[name]
        if not self.single:
            return column
        if not len(column):
            raise InputError("this person already has the target", where="population", remedy="population='all' answers about everybody")
        return column.iloc[0].item() if hasattr(column.iloc[0], "item") else column.iloc[0]

    status = _column_of("status", "ok, fixed, empty or invalid_start.")
    method = _column_of("method", "exact, sample, sequential, weighted, proved or none.")
    n = _column_of("n", "Points that were asked about, or counted.")
    hits = _column_of("hits", "How many of them attain the target.")

    @property
    def witness(self) -> Any:
        """The nearest point found that attains the target; for a table, by label."""
        found = {label: self.audit.witness(label) for label in self.audit.table.index}
        return next(iter(found.values())) if self.single else found

    def _by_proof(self) -> str:
        """Return what is proved about one person, without the full stop."""
        extreme, rho, low, high = (self._column(name) for name in ("extreme", "rho", "low", "high"))
        if extreme:
            return f"{'No' if extreme == 'none' else 'Every'} reachable point attains the target: {HOW['proved']}"
        if rho != rho:
            return f"Responsiveness lies {between(low, high)}: {HOW['proved']}"
        if self.n:
            return f"{self.hits:,} of all {self.n:,} reachable points attain the target: responsiveness is exactly {rho:.4g}, {HOW['proved']}"
        return f"Responsiveness is exactly {rho:.4g}: {HOW['proved']}"

    def plot(self) -> Figure:
        """Return a figure of one person's reachable points; for a table, of how responsiveness is distributed."""
        return self.audit.plot("person", label=self.audit.table.index[0]) if self.single else self.audit.plot()

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.table, figure=self.plot)

    def to_dict(self) -> dict[str, Any]:
        """Return the record."""
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

    rho = _column_of("rho", "The estimate, or the exact value.")
    low = _column_of("low", "Lower end of the interval.")
    high = _column_of("high", "Upper end of the interval.")

    def __str__(self) -> str:
        if not self.single:
            return f"{len(self.table):,} people, {_mean_in_words(self.audit)}"
        if self.method == "none":
            return f"No responsiveness: {self.status}."
        if self.method == "proved":
            return f"{self._by_proof()}."
        lost, ends = int(self._column("unresolved")), f"between {self.low:.4g} and {self.high:.4g}"
        if self.method == "exact" and lost:
            gap = f"{lost} of them have no answer: responsiveness lies {ends}"
            return f"{self.hits} of all {self.n} reachable points attain the target, {gap}."
        if self.method == "exact" and abs(self.rho - self.hits / self.n) > 1e-12:
            return f"Over all {self.n} reachable points, weighted as declared, responsiveness is exactly {self.rho:.4g}."
        if self.method == "exact":
            return f"{self.hits} of all {self.n} reachable points attain the target: responsiveness is exactly {self.rho:.4g}."
        answered = f", {lost} have no answer: of the answered" if lost else ": responsiveness"
        how = " of the proposal, weighted back," if self.method == "weighted" else ""
        found = f"{self.hits} of {self.n} draws{how} attain the target{answered} {self.rho:.4g}"
        if self._column("exactness") == "approximate":
            return f"{found}, about {self.low:.4g} to {self.high:.4g}. The draws come from a chain: no error rate is guaranteed."
        return f"{found}, {ends} with confidence {percent(1 - self.audit.design.alpha)}."


@dataclass(frozen=True)
class Verification(_Answer):
    """Whether responsiveness is below (above) the threshold (Prop. Testing)."""

    shown: ClassVar[tuple[str, ...]] = ("rho", "low", "high", "p_value", "verdict")

    verdict = _column_of("verdict", "below, above, inconclusive, or at the threshold.")
    p_value = _column_of("p_value", "Of the claim; NaN where the answer is exact or proved.")
    rho = _column_of("rho", "The estimate, or the exact value.")

    def __str__(self) -> str:
        design = self.audit.design
        if not self.single:
            return str(self.audit)
        if self.method == "none":
            return f"No verdict: {self.status}."
        tau, lost = f"{design.threshold:g}", int(self._column("unresolved"))
        if self.method == "proved":
            side = {"at the threshold": f"Equal to the threshold {tau}", "inconclusive": f"Inconclusive at the threshold {tau}"}
            said = side.get(self.verdict, f"{str(self.verdict).capitalize()} the threshold {tau}")
            return f"{self._by_proof()}." + ("" if self._column("extreme") else f" {said}.")
        if self._column("extreme"):
            which = "No" if self._column("extreme") == "none" else "Every"
            return f"{which} reachable point attains the target: all {self.n} were listed."
        if self.method == "exact" and lost:
            ends = f"between {self._column('low'):.4g} and {self._column('high'):.4g}"
            return f"Responsiveness lies {ends} ({lost} points have no answer): {self.verdict} at the threshold {tau}."
        if self.method == "exact":
            how = "equal to" if self.verdict == "at the threshold" else self.verdict
            return f"Responsiveness is exactly {self.rho:.4g}: {how} the threshold {tau}."
        seen = f"{self.hits} hits in {self.n} draws" + (f", {lost} without an answer" if lost else "")
        if self._column("exactness") == "approximate":
            word = {"below": "appears to be below", "above": "appears to be above"}.get(self.verdict, "is not separated from")
            return f"Responsiveness {word} the threshold {tau} ({seen} of a chain; no error rate is guaranteed)."
        if self.verdict == "below":
            return f"Below the threshold {tau}: responsiveness is at most {self._column('upper'):.4g} ({seen}; error at most {percent(design.alpha)})."
        if self.verdict == "above":
            return f"Above the threshold {tau}: responsiveness is at least {self._column('lower'):.4g} ({seen}; error at most {percent(design.alpha)})."
        return f"Inconclusive (threshold {tau}; {seen}): responsiveness lies between {self._column('low'):.4g} and {self._column('high'):.4g}."


@dataclass(frozen=True)
class Falsified(_Answer):
    """Whether some reachable point attains the target: one hit is a certificate."""

    shown: ClassVar[tuple[str, ...]] = ("high",)

    @property
    def found(self) -> Any:
        """Whether a reachable point is known to attain the target: by a hit, by a proof, or by a counted share."""
        found = pd.Series(np.concatenate([rows.counts.way for rows in self.audit.rows.values()]), index=self.table.index, name="found")
        return bool(found.iloc[0]) if self.single else found

    @property
    def impossible(self) -> Any:
        """Whether it is proved that no reachable point attains the target."""
        proved = self.table["extreme"] == "none"
        return bool(proved.iloc[0]) if self.single else proved

    @property
    def bound(self) -> Any:
        """With no hit: what responsiveness is at most, with confidence 1 - alpha; 0 where proved."""
        bound = self.table["upper"]
        return float(bound.iloc[0]) if self.single else bound

    def __str__(self) -> str:
        if not self.single:
            return f"{int(self.found.sum()):,} of {len(self.table):,} people can attain the target; for {int(self.impossible.sum()):,} it is proved impossible"
        if self.method == "none":
            return f"No answer: {self.status}."
        if self.method == "proved":
            said, way = self._by_proof(), "can be attained" if self.found else "cannot be attained" if self.impossible else "may be out of reach"
            return f"The target {way}: {said[0].lower()}{said[1:]}."
        if self.found and not self.hits:
            return f"The target can be attained: none of {self.n:,} draws does, but a proof found a point that does."
        if self.found:
            return f"The target can be attained: {self.hits} of {self.n} points do."
        if self.impossible:
            return f"The target cannot be attained: none of all {self.n} reachable points does."
        if self.method == "exact":
            return f"No hit among {self.n} reachable points, but {self._column('unresolved')} have no answer: responsiveness is at most {self.bound:.3g}."
        lost = int(self._column("unresolved"))
        gap = f", but {lost} have no answer and may be hits" if lost else ""
        if self._column("exactness") == "approximate":
            return f"No hit in {self.n} draws of a chain{gap}: responsiveness is about {self.bound:.3g} or less; no error rate is guaranteed."
        return f"No hit in {self.n} draws{gap}: responsiveness is at most {self.bound:.3g} with confidence {percent(1 - self.audit.design.alpha)}."


def _mean_in_words(audit: Audit) -> str:
    """Return the mean over people; its ends where answers are missing."""
    found = audit.summary()
    if found.mean_ends is None:
        return "none of whom could be judged"
    if found.mean_rho is not None:
        return f"mean responsiveness {found.mean_rho:.4g}"
    ends = f"mean responsiveness {between(*found.mean_ends)}"
    return f"{ends}, whatever the {found.unresolved:,} missing answers are" if found.unresolved else ends


def people_of(X: Any, im: Any) -> tuple[Any, bool]:
    """Return a table as it is; one person as a table of one row."""
    if isinstance(im, InteractionModel) and (isinstance(X, Mapping | pd.Series) or getattr(X, "ndim", 2) == 1):
        frame = one_row(X, [f.name for f in im.features])
        return frame, True
    return X, isinstance(X, pd.DataFrame) and len(X) == 1


def estimate(
    model: Any, X: Any, im: Any, *, target: Any = None, alpha: float | None = None, width: float | None = None, n: int | None = None,
    seed: int | None = None, population: Any = None, method: Literal["auto", "exact", "sample"] | None = None,
    proposal: Mapping[str, Any] | None = None, design: Design | None = None, execution: Execution | None = None, **more: Unpack[More],
) -> Estimate:  # fmt: skip
    """Estimate how often the prediction attains the target; n follows from the width of the interval (0.1 unless given).

    One person is estimated whether they have the target or not; of a table, those who do not have it yet.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9))])
    >>> print(budge.estimate(lambda t: t["income"] > 4, {"income": 1}, im, target=True))
    5 of all 10 reachable points attain the target: responsiveness is exactly 0.5.
    """
    if width is None and n is None and (design is None or (design.width is None and not design.n_given)):
        width = WIDTH
    wishes = given(alpha=alpha, width=width, n=n)
    found, single = _asked(model, X, im, wishes, design, execution, more, target=target, seed=seed, population=population, method=method, proposal=proposal)
    return Estimate(found, single)


def verify(
    model: Any, X: Any, im: Any, *, target: Any = None, threshold: float | None = None, alpha: float | None = None,
    claim: Literal["below", "above"] | None = None, n: int | None = None, margin: float | None = None, power: float | None = None,
    seed: int | None = None, sequential: bool | None = None, population: Any = None, method: Literal["auto", "exact", "sample"] | None = None,
    design: Design | None = None, execution: Execution | None = None, **more: Unpack[More],
) -> Verification:  # fmt: skip
    """Verify whether responsiveness is below (above) the threshold, with error at most alpha.

    One person is judged whether they have the target or not; of a table, those who do not have it yet.
    """
    wishes = given(testing=True, threshold=threshold, alpha=alpha, claim=claim, n=n, margin=margin, power=power, sequential=sequential)
    found, single = _asked(model, X, im, wishes, design, execution, more, target=target, seed=seed, population=population, method=method)
    return Verification(found, single)


def falsify(
    model: Any, X: Any, im: Any, *, target: Any = None, alpha: float | None = None, n: int | None = None, seed: int | None = None,
    population: Any = None, method: Literal["auto", "exact", "sample"] | None = None, proposal: Mapping[str, Any] | None = None,
    design: Design | None = None, execution: Execution | None = None, **more: Unpack[More],
) -> Falsified:  # fmt: skip
    """Look for a reachable point that attains the target; one hit is a certificate, none gives a bound for the n spent (299 unless given)."""
    wishes = given(alpha=alpha, n=n)
    found, single = _asked(model, X, im, wishes, design, execution, more, target=target, seed=seed, population=population, method=method, proposal=proposal)
    return Falsified(found, single)


def _asked(
    model: Any, X: Any, im: Any, wishes: dict[str, Any], design: Design | None, execution: Execution | None, more: More, **common: Any
) -> tuple[Audit, bool]:
    """Return the audit behind a task, and whether it is about one person."""
    if "threshold" in more:
        raise DesignError("this task has no threshold", where="threshold", got=more["threshold"], remedy="use verify")  # type: ignore[typeddict-item]
    people, single = people_of(X, im)
    asked = {"testing": False} | wishes | given(**common)
    if single:
        asked = {"population": "all"} | asked
    strange = [name for name in more if name not in More.__annotations__]
    if strange:
        raise InputError("no such option of this task", where=strange[0], got=more[strange[0]], remedy=nearest(strange[0], More.__annotations__))  # type: ignore[literal-required]
    question = designed(design, asked)
    found = audit(model, people, im, design=question, execution=execution, **more)
    return found, single and len(found.models) == 1
