"""The paper's mixed-integer program for one part at one start (appendix "Description of the Mixed Integer Program").

Built once (see `encoding`), solved again with changed bounds: is a change feasible (the paper's Rejector), is anything, what
is the nearest action, how far can a feature move, which configurations are there. It is an oracle and the baseline of
benchmarks; drawing does not use it.

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

from budge.constraints import Constraint
from budge.errors import EmptyError, InputError, SolverError, TooLargeError, nearest
from budge.expressions import TOLERANCE, Formula, Linear, Row, Var, some_of
from budge.program.encoding import EncodedPart

__all__ = ["MOST_NODES", "Move", "PartProgram"]

FloatArray = npt.NDArray[np.float64]
MOST_NODES = 10_000  #: boxes that one search may visit


@dataclass(frozen=True)
class Move:
    """A feasible action and the change that it leads to.

    `exact` is False where a shorter one could not be ruled out.
    """

    action: Mapping[str, float]
    change: Mapping[str, float]
    distance: float
    exact: bool = True

class PartProgram(EncodedPart):
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
                if not abs(value - whole) <= TOLERANCE:
                    return False
                value = whole
            slack = 0.0 if discrete else TOLERANCE * max(1.0, abs(value))
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
