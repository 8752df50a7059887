"""Who is proved how: by a bound, by boxes of cells where columns move freely, by an integer program where parts are coupled.

A proof is made on a superset of what can be reached and against the bound of each condition less a margin for rounding. A point that is claimed is feasible
by the definition and was asked of the model. What is neither is unresolved, with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Literal

import numpy as np
import numpy.typing as npt

from budge.errors import InputError, SolverError
from budge.interaction import InteractionModel
from budge.proof.additive import Addends, addends
from budge.proof.boxes import Box, Judgement, search_boxes
from budge.proof.case import Case, nearest_point
from budge.proof.costs import Cost
from budge.proof.goals import Condition, Goal
from budge.proof.joint import Joint, Place
from budge.proof.least import Plans, least_plans
from budge.proof.leaves import KeptLeaves, Leaves
from budge.proof.person import Person
from budge.proof.structure import Additive, Structure, Trees

__all__ = ["Ask", "Proof", "Prover", "Reason"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Ask = Callable[[FloatArray], BoolArray]
Status = Literal["possible", "impossible", "unresolved"]
Method = Literal["bound", "boxes", "program"]
Reason = Literal["model", "target", "effects", "constraint", "unbounded", "rounding", "budget", "time", "answers are missing"]
METHODS: tuple[Method, ...] = ("bound", "boxes", "program")
MOST_ASKED = 100  # candidates of one alternative that the model may refuse
MOST_REFUSED = 10  # candidates that may turn out not to be feasible
GUARD = 4.0  # multiples of the solver's tolerance by which its rows are opened
CLEAR = 1e-6  # share of a bound by which a score passes it clearly


@dataclass(frozen=True)
class Proof:
    """What is known about one person.

    `point` is the coded row that attains the target, where it is ``possible``. `reason` is given where it is ``unresolved``: a limit on ``budget`` or
    ``time``, ``rounding`` too near to a bound, ``effects`` that decide, a ``constraint`` without rows, a feature that is ``unbounded``, a point about
    which the model gave no answer.
    """

    status: Status
    method: Method = "bound"
    point: FloatArray | None = None
    reason: Reason | None = None
    boxes: int = 0
    nodes: int = 0


class Prover:
    """Proves about people under one model and one interaction model.

    Parameters
    ----------
    structure, im
        What the model is, and what people can do. Every feature must be a column of the structure.
    boxes, nodes
        Budgets for one person: boxes of the box search, nodes of the solver's tree. They give the same answer on every run.
    seconds
        One more limit, on wall-clock time.
    """

    def __init__(
        self, structure: Structure, im: InteractionModel, *, boxes: int = 2000, nodes: int = 300, seconds: float | None = None
    ) -> None:
        names = {column.name for column in structure.columns}
        lost = [f.name for f in im.features if f.name not in names]
        if lost:
            raise InputError("a feature is not a column of the model's structure", got=lost[0], remedy="read the structure with every column")
        self.structure, self.im, self.boxes, self.nodes, self.seconds = structure, im, boxes, nodes, seconds
        self._leaves = Leaves(structure) if isinstance(structure, Trees) else None
        self._used = self._leaves.used if self._leaves is not None else _read(structure)

    def prove(self, start: FloatArray, goal: Goal, ask: Ask) -> Proof:
        """Return whether some reachable point attains the target.

        Parameters
        ----------
        start
            A coded row over the columns of the structure.
        goal
            What the target means for the scores.
        ask
            Returns which coded rows attain the target, from the model itself.
        """
        if not goal:
            return Proof("impossible")
        case = self.case(start)
        found: list[Proof] = []
        for conditions in goal:
            found.append(self._alternative(case, conditions, ask))
            if found[-1].status == "possible":
                break
        boxes, nodes = sum(p.boxes for p in found), sum(p.nodes for p in found)
        for status in ("possible", "unresolved"):
            for proof in found:
                if proof.status == status:
                    return replace(proof, boxes=boxes, nodes=nodes)
        return Proof("impossible", max((p.method for p in found), key=METHODS.index), boxes=boxes, nodes=nodes)

    def least(self, start: FloatArray, goal: Goal, ask: Ask, cost: Cost, k: int = 1, best: Sequence[FloatArray] = ()) -> Plans:
        """Return the k cheapest plans that differ in the set of features they move.

        Parameters
        ----------
        start, goal, ask
            As in `prove`.
        cost
            What to minimise.
        k
            How many plans at most.
        best
            Coded rows that are known to attain the target and to be feasible: no plan is dearer than the best of them.
        """
        if not goal:
            return Plans((), "impossible")
        case = self.case(start)
        if case.person.effects:
            proof = self.prove(start, goal, ask)
            return Plans((), "impossible") if proof.status == "impossible" else Plans((), "unresolved", proof.reason or "effects", proof.nodes)
        if not len(best) and not case.person.coupled:  # a first plan is found in no time, and bounds the cost of others
            proof = self.prove(start, goal, ask)
            if proof.status == "impossible":
                return Plans((), "impossible", nodes=proof.nodes)
            best = () if proof.point is None else (proof.point,)
        return least_plans(case, goal, ask, cost, k, best, self.nodes)

    def case(self, start: FloatArray) -> Case:
        """Return one person and what the structure is within their reach."""
        start = np.asarray(start, dtype=float)
        person = Person(self.im, self.structure.columns, start, set(self._used))
        terms: KeptLeaves | Addends
        if self._leaves is not None:
            terms = self._leaves.within(start, person.axes)
        else:
            assert isinstance(self.structure, Additive)
            terms = addends(self.structure, start, person.axes)
        until = math.inf if self.seconds is None else perf_counter() + self.seconds
        return Case(person, terms, self.structure.precision, until)

    def _alternative(self, case: Case, conditions: Sequence[Condition], ask: Ask) -> Proof:
        person, terms = case.person, case.terms
        weights = np.array([c.weights for c in conditions], dtype=float).reshape(len(conditions), len(terms.const))
        floors = case.floors(conditions)
        if not person.unbounded and any(terms.top(w) < floor for w, floor in zip(weights, floors)):
            return Proof("impossible")
        if isinstance(terms, Addends) and any(not (math.isfinite(a.low) and math.isfinite(a.high)) for a in terms.sloped):
            return Proof("unresolved", reason="effects" if any(a.acted for a in terms.sloped) else "unbounded")
        proof: Proof | None = None
        if isinstance(terms, Addends):
            if len(weights) == 1 and not person.effects:  # where parts are coupled too: what couples them may leave the best point feasible
                proof = self._corner(case, terms, weights[0], ask)
        elif not person.coupled:
            proof = self._boxes(case, terms, weights, floors, ask)
        if proof is None or proof.reason == "budget":
            later = self._program(case, conditions, weights, floors, ask)
            proof = replace(later, boxes=proof.boxes if proof is not None else 0)
        return proof

    def _corner(self, case: Case, terms: Addends, weights: FloatArray, ask: Ask) -> Proof | None:
        """Return the proof where every column at its best attains the target."""
        point = terms.best(weights, case.person.start)
        if point is None or not case.person.feasible(point[None])[0] or not ask(point[None])[0]:
            return None
        return Proof("possible", "bound", point)

    def _boxes(self, case: Case, terms: KeptLeaves, weights: FloatArray, floors: FloatArray, ask: Ask) -> Proof:
        witness: list[FloatArray] = []
        reasons: list[Reason] = []
        asked = 0

        def judge(box: Box) -> Judgement:
            nonlocal asked
            if case.person.effects:
                reasons.append("effects")
                return "stop"
            point = nearest_point(case.person, terms, box)
            if point is None or not case.person.feasible(point[None])[0]:
                reasons.append("rounding")
                return "no"
            if ask(point[None])[0]:
                witness.append(point)
                return "yes"
            asked += 1
            if asked > MOST_ASKED:
                reasons.append("rounding")
            return "stop" if asked > MOST_ASKED else "no"

        status, visited = search_boxes(terms, weights, floors, judge, self.boxes, case.until)
        if status == "possible":
            return Proof("possible", "boxes", witness[0], boxes=visited)
        if status in ("budget", "time"):
            return Proof("unresolved", "boxes", reason="budget" if status == "budget" else "time", boxes=visited)
        return Proof("unresolved" if reasons else "impossible", "boxes", reason=reasons[0] if reasons else None, boxes=visited)

    def _program(self, case: Case, conditions: Sequence[Condition], weights: FloatArray, floors: FloatArray, ask: Ask) -> Proof:
        person, nodes = case.person, 0
        excluded: list[Place] = []
        refused: list[Reason] = []

        def unresolved(reason: Reason) -> Proof:
            return Proof("unresolved", "program", reason=reason, nodes=nodes)

        try:
            joint, cost, target = self._joint(case, conditions, weights, floors)
            while True:
                outcome = joint.program.search(cost, nodes=max(self.nodes - nodes, 1), seconds=case.left, target=target)
                nodes += outcome.nodes
                if outcome.status == "infeasible":
                    break
                if outcome.values is None:
                    return unresolved("time" if outcome.status == "time" else "budget")
                if person.effects:
                    return unresolved("effects")
                place = joint.place(outcome.values)
                if place.inside and person.feasible(place.point[None])[0]:
                    if ask(place.point[None])[0]:
                        return Proof("possible", "program", place.point, nodes=nodes)
                else:
                    for other in joint.inward(outcome.values, (1.0, 0.01)):
                        if other.inside and person.feasible(other.point[None])[0] and ask(other.point[None])[0]:
                            return Proof("possible", "program", other.point, nodes=nodes)
                    refused.append("constraint" if person.unsolved else "rounding")
                if len(excluded) >= MOST_ASKED or len(refused) > MOST_REFUSED:
                    return unresolved(refused[0] if refused else "rounding")
                if nodes >= self.nodes:
                    return unresolved("budget")
                if not joint.exclude(place):
                    return unresolved("rounding")
                excluded.append(place)
            if refused:
                return unresolved(refused[0])
            if person.unbounded:
                return unresolved("unbounded")
            if person.strict:  # the same program with every strict relation closed: a superset
                joint, cost, target = self._joint(case, conditions, weights, floors, closed=True)
                for place in excluded:
                    joint.exclude(place)
                outcome = joint.program.search(cost, nodes=max(self.nodes - nodes, 1), seconds=case.left, target=target)
                nodes += outcome.nodes
                if outcome.status != "infeasible":
                    return unresolved("rounding")
        except SolverError:
            return unresolved("unbounded" if person.unbounded else "rounding")
        return Proof("impossible", "program", nodes=nodes)

    def _joint(
        self, case: Case, conditions: Sequence[Condition], weights: FloatArray, floors: FloatArray, closed: bool = False
    ) -> tuple[Joint, dict[int, float], float]:
        """Return the program with a row per condition, what to minimise, and from where on a point is good enough."""
        joint = Joint(case.person, case.terms, weights, closed=closed)
        guard = GUARD * joint.program.tolerance
        for form, floor in zip(joint.scores, floors):
            joint.require(form, floor - guard * max(1.0, abs(floor)))
        if not conditions:
            return joint, {}, math.inf
        if len(conditions) == 1:
            clear = 2.0 * conditions[0].bound - floors[0] + CLEAR * max(1.0, abs(conditions[0].bound))
            return joint, {c: -v for c, v in joint.scores[0].terms.items()}, joint.scores[0].const - clear
        # the least room above any floor is made large
        margin = float((np.array([c.bound for c in conditions]) - floors).max())
        room = joint.program.variable(-2.0 * margin - 1.0, 1e6)
        for form, condition in zip(joint.scores, conditions):
            joint.program.row({**form.terms, room: -1.0}, lower=condition.bound - form.const)
        return joint, {room: -1.0}, -margin - CLEAR * max(1.0, *(abs(c.bound) for c in conditions))


def _read(structure: Structure) -> list[int]:
    """Return the columns that an additive structure reads."""
    assert isinstance(structure, Additive)
    known = {*structure.slopes, *structure.steps, *structure.tables}
    return [j for j, column in enumerate(structure.columns) if column.name in known]
