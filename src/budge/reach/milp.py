"""The paper's mixed-integer program for one part at one start (appendix "Description of the Mixed Integer Program").

Built once, solved again with changed bounds: is a change feasible (the paper's Rejector), is anything, what is the
nearest action, how far can a feature move, which configurations are there, what clashes. It is an oracle and the
baseline of benchmarks; drawing does not use it.

Constraints without linear rows (curved rules, predicates) are left out of the program and checked at its solutions. So
"no" stays a proof, and "yes" is only said of a point that passed the check. A solution that fails it is cut off by
splitting the whole numbers that the constraint reads; what cannot be decided that way is a `SolverError`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint, DirectionalLinkage
from budge.errors import DrawError, EmptyError, InputError, SolverError, TooLargeError, nearest
from budge.expressions import TOLERANCE, All, Formula, Linear, Row, Some, Var, some_of
from budge.features import Feature
from budge.parts import Part
from budge.reach.compiler import Affine, Compiler
from budge.reach.solver import TIME_LIMIT, Program

__all__ = ["MOST_NODES", "Move", "PartProgram", "clash", "rejection_sample"]

FloatArray = npt.NDArray[np.float64]
MOST_NODES = 10_000  #: boxes that one search may visit
NOTHING = Affine({})


@dataclass(frozen=True)
class Move:
    """A feasible action and the change that it leads to.

    `exact` is False where a shorter one could not be ruled out.
    """

    action: Mapping[str, float]
    change: Mapping[str, float]
    distance: float
    exact: bool = True


class PartProgram:
    """One part's program at a start x.

    Parameters
    ----------
    part
        The features that move together and what binds them.
    x
        Where the person stands, as numbers.
    extra
        More conditions, over ``("value", name)``, ``("action", name)`` and ``("change", name)``.
    limits
        Narrower bounds on some of these variables.
    solver, time_limit
        Passed on to `Program`.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel(
    ...     [budge.Feature(name, "binary") for name in ("rent", "own", "free")],
    ...     [budge.constraints.OneHot(("rent", "own", "free"))],
    ... )
    >>> program = PartProgram(im.parts[0], {"rent": 1.0, "own": 0.0, "free": 0.0})
    >>> program.feasible({"rent": -1, "own": 1, "free": 0}), program.feasible({"rent": -1, "own": 0, "free": 0})
    (True, False)
    >>> [dict(change) for change in program.enumerate(10)][0]
    {'rent': -1.0, 'own': 0.0, 'free': 1.0}
    """

    def __init__(
        self,
        part: Part,
        x: Mapping[str, float],
        *,
        extra: Sequence[Formula] = (),
        limits: Mapping[Var, tuple[float, float]] | None = None,
        solver: str | None = None,
        time_limit: float = TIME_LIMIT,
    ) -> None:
        self.part = part
        self.x: dict[str, float] = {name: float(x[name]) for name in part.names}
        self.program = Program(solver=solver, time_limit=time_limit)
        self._settings = {"solver": solver, "time_limit": time_limit}
        self._extra = tuple(extra)
        self._forms: dict[Var, Affine] = {}
        self._columns: dict[Var, int] = {}
        self.box: dict[str, tuple[float, float]] = {}  #: separable bounds of each change, widened by linkages
        self._cut: dict[str, bool] = {}
        self._compiler = Compiler(self.program, self._forms)
        for feature in part.features:
            self._own(feature)
        for name in part.order:
            if name in part.links:
                self._linked(part.by_name[name])
        self._known = {var: low for var, (low, high) in (limits or {}).items() if low == high}
        for var, (low, high) in (limits or {}).items():
            self._narrow(var, low, high)
        self.unsolved: tuple[Constraint, ...] = self._constrain()  #: constraints that are checked by evaluation
        self._start = {name: np.asarray(value) for name, value in self.x.items()}
        base_low, base_high = self.program.bounds
        self._base = base_low.copy(), base_high.copy()
        self._pins = [
            (f.name, self._columns.get(("change", f.name), -1), f.discrete, *self.box[f.name], self._cut[f.name])
            for f in part.features
        ]

    # -- building -----------------------------------------------------------------------------------------------------

    def _own(self, feature: Feature) -> None:
        """The variable of a feature's own action; none where it cannot move."""
        name = feature.name
        low, high = (float(end) for end in feature.moves(self.x[name]))
        self._cut[name] = not (math.isfinite(low) and math.isfinite(high))
        if self._cut[name]:
            low, high = self._support(feature, low, high)
        self.box[name] = low, high
        self._forms["before", name] = Affine({}, self.x[name])
        self._forms["action", name] = self._variable(("action", name), low, high, feature.discrete)
        self._forms["change", name] = self._forms["action", name]
        if low < high and name not in self.part.links:
            self._columns["change", name] = self._columns["action", name]
        self._forms["value", name] = Affine({}, self.x[name]).plus(self._forms["change", name])

    def _support(self, feature: Feature, low: float, high: float) -> tuple[float, float]:
        """Where a feature without bounds is drawn from a list of values: the span of that list."""
        spread = feature.distribution
        if spread is None or not spread.bounded:
            raise SolverError(
                "a feature without finite bounds cannot be written as rows", where=feature.name, remedy="give it bounds"
            )
        values = spread.table(feature.levels)[0] - self.x[feature.name]
        return max(low, min(0.0, float(values.min()))), min(high, max(0.0, float(values.max())))

    def _variable(self, var: Var, low: float, high: float, integer: bool) -> Affine:
        if low == high:
            return Affine({}, low)
        self._columns[var] = self.program.variable(low, high, integer=integer)
        return Affine({self._columns[var]: 1.0})

    def _linked(self, target: Feature) -> None:
        """The change of a linkage target: its own action plus what each linkage induces."""
        name, links = target.name, self.part.links[target.name]
        total = Linear({("action", name): 1.0})
        loose = [link for link in links if link.relation != "=="]
        # A lone induced change is whole because the rest is, unless it is clipped; several are if their ends are.
        even = all(self.part.by_name[k.source].discrete and float(k.targets[name]).is_integer() for k in loose)
        whole = target.discrete and (even or (len(loose) == 1 and links[0].on_exceed != "clip"))
        for i, link in enumerate(links):
            total = total + self._induced(name, i, link, whole)
        low, high = self._compiler.range(self._compiler.affine(total))
        floor, ceiling = (float(end) - self.x[name] for end in target.reach(self.x[name]))
        policy = links[0].on_exceed if math.isfinite(self.x[name]) else "allow"  # a missing value has no bounds to pass
        if policy == "clip":  # what passes a bound stops at it
            low, high = min(max(low, floor), ceiling), max(min(high, ceiling), floor)
        elif policy == "reject":
            low, high = max(low, floor), min(high, ceiling)
        if target.discrete:
            low, high = math.ceil(low - TOLERANCE), math.floor(high + TOLERANCE)
        self.box[name] = low, high
        changed = Linear({("change", name): 1.0})
        self._forms["change", name] = self._variable(("change", name), low, high, target.discrete)
        self._forms["value", name] = Affine({}, self.x[name]).plus(self._forms["change", name])
        follows: Formula = Row(changed - total, "==")
        if policy == "clip":
            top = All((Row(changed - ceiling, "=="), Row(changed - total, "<=")))
            bottom = All((Row(changed - floor, "=="), Row(changed - total, ">=")))
            follows = Some((follows, top, bottom))
        self._compiler.add(follows)

    def _induced(self, target: str, i: int, link: DirectionalLinkage, whole: bool) -> Linear:
        """What one linkage induces: a multiple of the source's action, or a variable between two such."""
        branches = link.branches(target, self.x)
        if len(branches) == 1 and not branches[0][0] and branches[0][1] == branches[0][2]:
            return branches[0][1]
        ends = [self._compiler.range(self._compiler.affine(side)) for _, least, most in branches for side in (least, most)]
        var: Var = ("induced", f"{i}:{target}")
        self._forms[var] = self._variable(var, min(low for low, _ in ends), max(high for _, high in ends), whole)
        moved = Linear.of(var)
        self._compiler.add(
            Some(tuple(All((*guards, Row(least - moved, "<="), Row(moved - most, "<="))) for guards, least, most in branches))
        )
        return moved

    def _narrow(self, var: Var, low: float, high: float) -> None:
        layer, name = var
        if layer == "value":
            var, low, high = ("change", name), low - self.x[name], high - self.x[name]
        if var in self._columns:
            self.program.tighten(self._columns[var], low, high)
        elif not low - TOLERANCE <= self._forms[var].const <= high + TOLERANCE:
            self.program.row({}, lower=1.0)

    def _constrain(self) -> tuple[Constraint, ...]:
        known: dict[Var, FloatArray | float] = {}
        for (layer, name), value in self._known.items():
            known["value" if layer == "change" else layer, name] = value + self.x[name] if layer == "change" else value
        left = []
        for constraint in self.part.constraints:
            rows = constraint.rows(self.x, known or None)
            if rows is None:
                left.append(constraint)
            else:
                self._compiler.add(rows)
        for formula in self._extra:
            self._compiler.add(formula)
        return tuple(left)

    # -- questions ----------------------------------------------------------------------------------------------------

    @property
    def exact(self) -> bool:
        """Whether every constraint is in the program, so that its answers need no check."""
        return not self.unsolved

    def feasible(self, change: Mapping[str, float]) -> bool:
        """Whether some action leads to this change (the paper's Rejector; features that are not named stay)."""
        low, high = self._base[0].copy(), self._base[1].copy()
        for name, column, discrete, least, most, cut in self._pins:
            value = float(change.get(name, 0.0))
            if discrete:
                whole = float(np.round(value))
                if not abs(value - whole) <= TOLERANCE * max(1.0, abs(value)):
                    return False
                value = whole
            slack = TOLERANCE * max(1.0, abs(value))
            if not least - slack <= value <= most + slack:
                if cut and not math.isnan(value):
                    raise SolverError(
                        "beyond the values that the program covers", where=name, got=value, remedy="give the feature bounds"
                    )
                return False
            if column >= 0:
                edge_low, edge_high = low[column], high[column]
                if not edge_low - slack <= value <= edge_high + slack:
                    return False
                low[column] = high[column] = min(max(value, edge_low), edge_high)
        return self._search(low, high)[0] is not None

    def is_empty(self) -> bool:
        """Whether no action is feasible, not even staying."""
        return self._any is None

    @cached_property
    def _any(self) -> Move | None:
        return self._search(*self._base)[0]

    def nearest(self, target: Formula | None = None, *, moved: bool = False) -> Move | None:
        """The feasible action of least ‖a‖₁, or None where there is none.

        Parameters
        ----------
        target
            A condition that it must meet, over ``("value", name)``, ``("action", name)`` or ``("change", name)``.
        moved
            Whether to leave staying out.
        """
        wanted = [] if target is None else [target]
        if moved:
            wanted.append(some_of(Row(Linear.of(("change", name)), "!=") for name in self.part.names))
        if wanted:
            return PartProgram(self.part, self.x, extra=(*self._extra, *wanted), **self._settings).nearest()  # type: ignore[arg-type]
        cost: dict[int, float] = {}
        columns = [column for (layer, _), column in self._columns.items() if layer == "action"]
        for column in columns:
            low, high = self.program.limits(column)
            if low >= 0.0 or high <= 0.0:
                cost[column] = 1.0 if low >= 0.0 else -1.0
            else:
                cost |= dict.fromkeys(self._compiler.halves(column), 1.0)
        if self.program.size != len(self._base[0]):  # the halves are new
            low_all, high_all = self.program.bounds
            self._base = low_all.copy(), high_all.copy()
        found, exact = self._search(*self._base, cost=cost)
        return None if found is None else Move(found.action, found.change, found.distance, exact)

    def bounds(self, name: str) -> tuple[float, float]:
        """The tightest range of a feature's change; where a curved constraint is undecided, one that is wide enough."""
        if name not in self.x:
            raise InputError("no such feature in this part", got=name, remedy=nearest(name, self.x))
        ends = []
        column = self._columns.get(("change", name))
        for sign in (1.0, -1.0):
            cost = {} if column is None else {column: sign}
            outer = self.program.solve(cost, lower=self._base[0], upper=self._base[1])
            value = None if outer is None else float(self._move(outer.values).change[name])
            if outer is not None and not self.exact:
                try:
                    found, decided = self._search(*self._base, cost=cost)
                    value = (None if found is None else found.change[name]) if decided else value
                except SolverError:
                    pass  # the outer bound stands
            if value is None:
                raise EmptyError("no action is feasible", where=f"part {', '.join(self.part.names)}")
            ends.append(value)
        return ends[0], ends[1]

    def enumerate(self, limit: int) -> Iterator[dict[str, float]]:
        """Every distinct change of the discrete features that some feasible action leads to, in ascending order.

        Depth first: a box without a solution is dropped whole. More than `limit` raise `TooLargeError`, so that what
        ends without one is complete.
        """
        listed = [f.name for f in self.part.features if f.discrete]
        columns = [self._columns[var] for name in listed if (var := ("change", name)) in self._columns]
        for count, move in enumerate(self._walk(columns, *self._base)):
            if count == limit:
                where = f"part {', '.join(self.part.names)}"
                raise TooLargeError(f"more than {limit} configurations", where=where, remedy="raise the limit, or draw")
            yield {name: move.change[name] for name in listed}

    # -- searching ----------------------------------------------------------------------------------------------------

    def _walk(self, columns: Sequence[int], low: FloatArray, high: FloatArray) -> Iterator[Move]:
        stack: list[tuple[FloatArray, FloatArray, FloatArray | None]] = [(low, high, None)]
        while stack:
            low, high, known = stack.pop()
            if known is None:
                solution = self.program.solve(lower=low, upper=high)
                if solution is None:
                    continue
                known = solution.values
            split = next((c for c in columns if low[c] < high[c]), None)
            if split is None:
                found = self._move(known) if self.exact else self._search(low, high)[0]
                if found is not None:
                    yield found
                continue
            value = float(np.round(known[split]))
            for least, most, kept in ((value + 1.0, high[split], None), (value, value, known), (low[split], value - 1.0, None)):
                if least <= most:
                    stack.append((*_narrowed(low, high, split, least, most), kept))

    def _search(self, low: FloatArray, high: FloatArray, cost: Mapping[int, float] | None = None) -> tuple[Move | None, bool]:
        """A feasible action (the cheapest, if there is a cost) within the bounds, and whether that is decided.

        No action and not decided is a `SolverError`.
        """
        best: Move | None = None
        open_ended, nodes = False, 0
        stack = [(low, high)]
        while stack:
            low, high = stack.pop()
            nodes += 1
            if nodes > MOST_NODES:
                open_ended = True
                break
            solution = self.program.solve(cost, lower=low, upper=high)
            if solution is None or (best is not None and solution.objective >= best.distance - TOLERANCE):
                continue
            found = self._move(solution.values, solution.objective)
            failed = [c for c in self.unsolved if not self._passes(c, found)]
            if not failed:
                if cost is None:
                    return found, True
                best = found
                continue
            read = [self._columns[var] for c in failed for var in _columns_read(c) if var in self._columns]
            split = next((c for c in read if self.program.is_whole(c) and low[c] < high[c]), None)
            if split is not None:
                value = float(np.round(solution.values[split]))
                sides = ((value + 1.0, high[split]), (low[split], value - 1.0), (value, value))
                stack += [_narrowed(low, high, split, least, most) for least, most in sides if least <= most]
            elif any(low[c] < high[c] for c in read):  # real numbers are left: known whole ones may make it linear
                inner, decided = self._cell(low, high, cost)
                open_ended |= not decided
                if inner is not None and (best is None or inner.distance < best.distance):
                    best = inner
                    if cost is None:
                        return best, True
        if open_ended and best is None:
            names = ", ".join(c.label for c in self.unsolved)
            remedy = "draw by rejection, or write it as linear rules"
            raise SolverError(
                "the solver cannot decide constraints that are not linear",
                where=f"part {', '.join(self.part.names)}",
                got=names,
                remedy=remedy,
            )
        return best, not open_ended

    def _cell(self, low: FloatArray, high: FloatArray, cost: Mapping[int, float] | None) -> tuple[Move | None, bool]:
        """The same question where all whole numbers that matter are known, with the rows that follow from that."""
        limits = {var: (float(low[c]), float(high[c])) for var, c in self._columns.items() if var[0] in ("action", "change")}
        inner = PartProgram(self.part, self.x, extra=self._extra, limits=limits, **self._settings)  # type: ignore[arg-type]
        if len(inner.unsolved) >= len(self.unsolved):
            return None, False
        priced = None
        if cost is not None:
            back = {c: var for var, c in self._columns.items()}
            if not set(cost) <= set(back):
                found = inner.nearest()
                return found, found is None or found.exact
            priced = {inner._columns[back[c]]: value for c, value in cost.items() if back[c] in inner._columns}
        try:
            return inner._search(*inner._base, cost=priced)
        except SolverError:
            return None, False

    def _move(self, values: FloatArray, objective: float = 0.0) -> Move:
        action: dict[str, float] = {}
        change: dict[str, float] = {}
        for feature in self.part.features:
            for layer, into in (("action", action), ("change", change)):
                form = self._forms[layer, feature.name]
                value = form.const + sum(k * float(values[c]) for c, k in form.terms.items())
                into[feature.name] = (float(np.round(value)) if feature.discrete else value) + 0.0
        return Move(action, change, objective)

    def _passes(self, constraint: Constraint, move: Move) -> bool:
        action = {name: np.asarray(value) for name, value in move.action.items()}
        change = {name: np.asarray(value) for name, value in move.change.items()}
        return bool(np.all(constraint.mask(self._start, action, change)))


def _columns_read(constraint: Constraint) -> list[Var]:
    return sorted(("change" if layer == "value" else layer, name) for layer, name in constraint.reads)


def _narrowed(low: FloatArray, high: FloatArray, column: int, least: float, most: float) -> tuple[FloatArray, FloatArray]:
    low, high = low.copy(), high.copy()
    low[column], high[column] = least, most
    return low, high


def clash(part: Part, x: Mapping[str, float]) -> tuple[str, ...]:
    """A minimal set of constraints and feature limits that cannot hold together; nothing if the part is not empty.

    Each is left out in turn and stays out if the rest still clashes (a deletion filter), so that leaving out any one of
    those returned makes an action feasible. Limits are left out first, then constraints, and once more the other way
    round; the shorter set is returned. A feature's limits (bounds, direction, steps, being actionable) are called
    ``limits of <name>``.
    """
    if not PartProgram(part, x).is_empty():
        return ()
    limits: list[Feature | Constraint] = [f for f in part.features if f.type != "fixed"]
    rules: list[Feature | Constraint] = [*part.linkages, *part.constraints]
    found = [_filtered(part, x, limits + rules), _filtered(part, x, rules + limits)]
    kept = {id(item) for item in min(found, key=len)}
    return tuple(
        f"limits of {item.name}" if isinstance(item, Feature) else item.label for item in limits + rules if id(item) in kept
    )


def _filtered(part: Part, x: Mapping[str, float], items: Sequence[Feature | Constraint]) -> list[Feature | Constraint]:
    kept = list(items)
    for item in items:
        fewer = [other for other in kept if other is not item]
        if _clashes(part, x, fewer):
            kept = fewer
    return kept


def _clashes(part: Part, x: Mapping[str, float], kept: Sequence[Feature | Constraint]) -> bool:
    """Whether the part is empty with only these limits and constraints."""
    ids = {id(item) for item in kept}
    ends = [end for f in part.features if f.numeric for end in (*f.range, float(x[f.name])) if math.isfinite(end)]
    wide = 100.0 * max([10.0, *map(abs, ends)])
    features = tuple(f if id(f) in ids or f.type == "fixed" else _unlimited(f, float(x[f.name]), wide) for f in part.features)
    by_name = {f.name: f for f in features}
    links: dict[str, tuple[DirectionalLinkage, ...]] = {}
    bound = {id(link): link.bind(by_name) for link in part.linkages}
    for name, linked in part.links.items():
        remaining = tuple(bound[id(link)] for link in linked if id(link) in ids)
        if remaining:
            links[name] = remaining
    constraints = tuple(c.bind(by_name) for c in part.constraints if id(c) in ids)
    try:
        return PartProgram(Part(features, constraints, links), x).is_empty()
    except SolverError:
        return False  # not proved


def _unlimited(feature: Feature, x: float, wide: float) -> Feature:
    """The feature free to move anywhere in its type."""
    free = feature.but(actionable=True, direction=None, max_increase=None, max_decrease=None, distribution=None)
    if feature.type not in ("integer", "real"):
        return free.but(bounds=None)
    middle = x if math.isfinite(x) else 0.0
    return free.but(bounds=(math.floor(middle - wide), math.ceil(middle + wide)))


def rejection_sample(
    part: Part,
    x: Mapping[str, float],
    n: int,
    rng: np.random.Generator,
    budget: int = 100_000,
    *,
    program: PartProgram | None = None,
) -> dict[str, FloatArray]:
    """Draw n changes as the paper does (Alg. 1): propose from the box, ask the solver, keep what is feasible.

    Parameters
    ----------
    part, x
        What is drawn, from where.
    n
        How many draws.
    rng
        Where randomness comes from.
    budget
        How many proposals at most; past it a `DrawError` tells the acceptance seen.
    program
        A program of this part at x, if there is one already.
    """
    program = PartProgram(part, x) if program is None else program
    kept: dict[str, FloatArray] = {name: np.zeros(n) for name in part.names}
    boxes = [(f.name, *program.box[f.name], f.discrete) for f in part.features]
    if any(low > high for _, low, high, _ in boxes):
        raise EmptyError("no action is feasible", where=f"part {', '.join(part.names)}")
    done = 0
    for tries in range(budget + 1):
        if done == n:
            return kept
        if tries == budget:
            break
        proposal = {
            name: low
            if low == high
            else float(rng.integers(int(low), int(high) + 1))
            if discrete
            else float(rng.uniform(low, high))
            for name, low, high, discrete in boxes
        }
        if program.feasible(proposal):
            for name, value in proposal.items():
                kept[name][done] = value
            done += 1
    raise DrawError(
        "the budget of proposals is spent",
        where=f"part {', '.join(part.names)}",
        got=f"{done} of {budget} accepted, {n} needed",
        remedy="raise the budget, or draw by construction (method auto)",
    )
