"""The least plans: the cheapest reachable points that attain the target, each with another set of features moved.

The joint program with a price per feature is solved to a proved optimum where the budget allows. A plan is feasible by the definition, was asked of the
model, and no single feature of it can be reverted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from budge.errors import SolverError
from budge.proof.additive import Addends
from budge.proof.case import Case
from budge.proof.costs import Cost
from budge.proof.goals import Condition, Goal
from budge.proof.joint import Joint, Place, combined
from budge.proof.polish import put_back
from budge.proof.prices import objective, prices

__all__ = ["Plan", "Plans", "least_plans"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Ask = Callable[[FloatArray], BoolArray]
Moved = frozenset[int]
MOST_ASKED = 100  # candidates that the model may refuse before one plan is given up
MOST_IDLE = 30  # points that do no more than an earlier plan, before the set of features that they move is given up
EQUAL = 1e-9  # costs that differ by less, relative to the larger, are the same
CLEAR = 1000.0  # times the rounding of scores: plans are told apart from the bound by so much, for within it the answer may hang on the size of a batch
FINEST = 1e-14  # shares of a line are told apart down to here: the bound on what rounding decides may be less
TOLERATED = 1e-7  # the same where the solver's tolerance on a row of real numbers decides


@dataclass(frozen=True)
class Plan:
    """A coded row that attains the target, its cost (features changed and distance, or the weighted sum), and whether no cheaper one exists.

    After the first plan: no cheaper one that moves another set of features than the plans before and is minimal.
    """

    point: FloatArray
    cost: tuple[float, ...]
    optimal: bool


@dataclass(frozen=True)
class Plans:
    """The plans of one person, the cheapest first. Without any, `status` and `reason` state why, as in a `Proof`."""

    plans: tuple[Plan, ...]
    status: Literal["possible", "impossible", "unresolved"]
    reason: str | None = None
    nodes: int = 0


@dataclass
class _Search:
    """The search for the cheapest plan of one alternative; what it learns about cells is kept for the next plan."""

    case: Case
    conditions: Sequence[Condition]
    cost: Cost
    ask: Ask
    nodes: int
    used: int = 0
    excluded: list[Place] = field(default_factory=list)
    refused: str = ""
    last: Place | None = None  # where the point lies that was returned last

    def cheapest(self, banned: Sequence[Moved], known: tuple[float, ...] | None) -> tuple[FloatArray | None, bool, str]:
        """Return the cheapest point found, whether that is proved, and why there is none (``impossible`` where that is proved).

        Points that cost more than `known` are not looked for.
        """
        person = self.case.person
        weights = np.array([c.weights for c in self.conditions], dtype=float).reshape(len(self.conditions), len(self.case.terms.const))
        floors = self.case.floors(self.conditions)
        try:
            joint = Joint(person, self.case.terms, weights)
            guard = 4.0 * joint.program.tolerance
            for form, floor in zip(joint.scores, floors):
                joint.require(form, floor - guard * max(1.0, abs(floor)))
            priced = prices(joint, self.cost, apart=bool(banned))
            for moved in banned:
                if moved <= priced.keys():  # one of these features stays, or another one moves
                    others = combined([p.moved for p in priced.values()], [-1.0 if j in moved else 1.0 for j in priced])
                    joint.program.row(others.terms, lower=1.0 - len(moved) - others.const)
            for place in self.excluded:
                joint.exclude(place)
            goal, each = objective(priced, self.cost)
            if known is not None:
                most = each * known[0] + known[1] if self.cost.first == "features" else known[0]
                joint.program.row(goal.terms, upper=most + EQUAL * max(1.0, abs(most)) - goal.const)
            return self._solved(joint, dict(goal.terms), floors)
        except SolverError:
            return None, False, "unbounded" if person.unbounded else "rounding"

    def _solved(self, joint: Joint, goal: dict[int, float], floors: FloatArray) -> tuple[FloatArray | None, bool, str]:
        person = self.case.person
        while True:
            outcome = joint.program.search(goal, nodes=max(self.nodes - self.used, 1), seconds=self.case.left)
            self.used += outcome.nodes
            if outcome.status == "infeasible":
                open_ended = self.refused or ("unbounded" if person.unbounded else "rounding" if person.strict else "")
                return None, False, open_ended or "impossible"
            if outcome.values is None:
                return None, False, "time" if outcome.status == "time" else "budget"
            place = self.last = joint.place(outcome.values)
            proved = outcome.status == "optimal" and not self.refused and not person.unbounded
            if place.inside and person.feasible(place.point[None])[0]:
                if self.ask(place.point[None])[0]:
                    return place.point, proved, ""
                if isinstance(joint.terms, Addends) and not all(axis.step for axis in joint.terms.sloped):
                    return self._beyond(joint, goal, floors, place, proved)
            else:
                for other in joint.inward(outcome.values, (1e-8, 1e-6, 1e-4, 1e-2, 1.0)):
                    if other.inside and self._good(other.point[None])[0]:
                        return other.point, proved and self._alike(place.point, other.point), ""
                self.refused = "constraint" if person.unsolved else "rounding"
            if len(self.excluded) >= MOST_ASKED or self.used >= self.nodes or not joint.exclude(place):
                return None, False, self.refused or ("budget" if self.used >= self.nodes else "rounding")
            self.excluded.append(place)

    def _beyond(self, joint: Joint, goal: dict[int, float], floors: FloatArray, near: Place, proved: bool) -> tuple[FloatArray | None, bool, str]:
        """Return the point where real columns just pass the bound, between one that does not and one that clearly does."""
        for form, condition, floor in zip(joint.scores, self.conditions, floors):
            clear = 2.0 * condition.bound - floor + 8.0 * joint.program.tolerance * max(1.0, abs(condition.bound))
            joint.require(form, clear)
        outcome = joint.program.search(goal, nodes=max(self.nodes - self.used, 1), seconds=self.case.left)
        self.used += outcome.nodes
        if outcome.values is None:
            return None, False, "rounding"
        far = joint.place(outcome.values).point
        if not self._good(far[None])[0]:
            return None, False, "rounding"
        assert isinstance(joint.terms, Addends)
        free = [axis.column for axis in joint.terms.sloped if not axis.step]
        low, high = near.point, far
        if np.array_equal(np.delete(low, free), np.delete(high, free), equal_nan=True):
            rise = np.array([[float(c.weights @ slope) * (high - low)[axis.column] for axis, slope in zip(joint.terms.sloped, joint.terms.slopes)]
                             for c in self.conditions]).sum(axis=1)  # fmt: skip
            off = np.array([c.bound for c in self.conditions]) - floors
            blur = float(np.max(off / np.maximum(np.abs(rise), off), initial=0.0))  # the share of the line within which rounding decides
            begin, end = 0.0, 1.0
            while end - begin > max(CLEAR * blur, FINEST):
                shares = begin + np.linspace(0.0, 1.0, 11)[1:-1] * (end - begin)
                good = self._good(near.point + shares[:, None] * (far - near.point))
                at = int(np.argmax(good)) if good.any() else len(shares)
                begin, end = shares[at - 1] if at else begin, shares[at] if at < len(shares) else end
            beyond = near.point + min(end + 2.0 * blur, 1.0) * (far - near.point)
            high = beyond if end < 1.0 and self._good(beyond[None])[0] else far
        return high, proved and outcome.status == "optimal" and self._alike(near.point, high), ""

    def _alike(self, *points: FloatArray) -> bool:
        """Return whether points cost the same but for the solver's tolerance."""
        first, last = self.cost.values(np.array(points), self.case.person.start).tolist()
        return all(math.isclose(a, b, rel_tol=TOLERATED, abs_tol=TOLERATED) for a, b in zip(first, last))

    def _good(self, points: FloatArray) -> BoolArray:
        return np.asarray(self.case.person.feasible(points) & np.asarray(self.ask(points)))


def least_plans(case: Case, goal: Goal, ask: Ask, cost: Cost, k: int, best: Sequence[FloatArray], nodes: int) -> Plans:
    """Return up to k plans; `best` are coded rows that are known to attain the target."""
    person = case.person

    def price(point: FloatArray) -> tuple[float, ...]:
        return tuple(cost.values(point[None], person.start)[0].tolist())

    def taken(point: FloatArray) -> bool:
        return _moved(person.start, point) in banned

    def minimal(point: FloatArray) -> FloatArray:
        """Revert single features as long as that is feasible and still attains the target, the dearest first."""
        return put_back(point, person.start, lambda p: [[j] for j in sorted(_moved(person.start, p))], good, cost)

    def good(points: FloatArray) -> BoolArray:
        return np.asarray(person.feasible(points) & np.asarray(ask(points)))

    known = [minimal(_pulled(case, np.asarray(p, dtype=float), ask, price)) for p in best]
    searches = [_Search(case, conditions, cost, ask, nodes) for conditions in goal]
    answers: list[tuple[FloatArray | None, bool, str] | None] = [None] * len(searches)
    plans: list[Plan] = []
    banned: list[Moved] = []
    reasons: list[str] = []
    idle, sure = 0, True
    while len(plans) < k:
        left = [p for p in known if not taken(p)]
        most = min(map(price, left), default=None)
        for i, search in enumerate(searches):
            answer = answers[i]
            if answer is None or (taken(answer[0]) if answer[0] is not None else bool(known)):
                answers[i] = search.cheapest(banned, most)
        found = [a for a in answers if a is not None]
        proved = all(a[1] or a[2] == "impossible" for a in found)
        reasons = [a[2] for a in found if a[0] is None]
        points = [a[0] for a in found if a[0] is not None]
        idling = [i for i, a in enumerate(answers) if a is not None and a[0] is not None and taken(minimal(a[0]))]
        for i in idling:  # a move that is not needed, on top of an earlier plan: look elsewhere, and give the set up after a while
            point, place = answers[i][0], searches[i].last  # type: ignore[index]
            idle += 1
            answers[i] = None
            if place is not None and idle <= MOST_IDLE:
                searches[i].excluded.append(place)
            else:
                banned.append(_moved(person.start, point))  # type: ignore[arg-type]
                sure = False
        if idling:
            continue
        candidates = [minimal(p) for p in points] + left
        if not candidates:
            break
        chosen = min(candidates, key=price)
        moved = _moved(person.start, chosen)
        plans.append(Plan(chosen, price(chosen), proved and sure))
        banned.append(moved)
        if not moved:  # nothing is cheaper than staying
            break
    used = sum(search.used for search in searches)
    if plans:
        return Plans(tuple(plans), "possible", nodes=used)
    opened = [reason for reason in reasons if reason != "impossible"]
    return Plans((), "unresolved" if opened else "impossible", opened[0] if opened else None, used)


def _pulled(case: Case, point: FloatArray, ask: Ask, price: Callable[[FloatArray], tuple[float, ...]]) -> FloatArray:
    """Return a point whose columns were pulled back to cells nearer to the start, one after the other, as far as the target is still attained."""
    person = case.person
    for _ in range(2):
        before = point
        for axis in sorted(case.terms.numbers, key=lambda axis: -abs(point[axis.column] - axis.start)):
            now = float(point[axis.column])
            near = {axis.nearest(n, n, axis.start) for n in range(axis.size)} | {axis.start}
            values = sorted((v for v in near if v is not None and abs(v - axis.start) < abs(now - axis.start)), key=lambda v: (abs(v - axis.start), v))
            if values:
                tries = np.repeat(point[None], len(values), axis=0)
                tries[:, axis.column] = values
                good = np.flatnonzero(person.feasible(tries) & np.asarray(ask(tries)))
                if len(good) and price(tries[good[0]]) < price(point):
                    point = tries[good[0]]
        if point is before:
            break
    return point


def _moved(start: FloatArray, point: FloatArray) -> Moved:
    return frozenset(np.flatnonzero(~(np.isnan(start) | (start == point))).tolist())
