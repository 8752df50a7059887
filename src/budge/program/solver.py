"""A small interface to mixed-integer solvers: build a program once, solve it again and again with changed bounds.

HiGHS through highspy is the default, SciPy's own HiGHS the fallback; another solver is plugged in by `register`.
A solver answers with a solution or with a proof that there is none. Anything else (out of time, numerical trouble,
not installed) is a `SolverError`: nothing may be concluded from it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from budge.errors import SolverError, nearest
from budge.expressions.tolerance import round_up

__all__ = ["TIME_LIMIT", "Engine", "Outcome", "Program", "Solution", "register", "solvers"]

FloatArray = npt.NDArray[np.float64]
TIME_LIMIT = 60.0  #: seconds for one solve, unless told otherwise
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Solution:
    """One optimal point: the value of every variable, and of the objective."""

    values: FloatArray
    objective: float


@dataclass(frozen=True)
class Outcome:
    """What a search within limits came to.

    `values` is the best point found, None if there is none. No point is cheaper than `bound`. `status`: ``optimal``, ``infeasible`` (a proof that there is no
    point), ``target`` (a point as cheap as asked for), ``nodes`` or ``time`` (a limit was reached first).
    """

    status: Literal["optimal", "infeasible", "target", "nodes", "time"]
    values: FloatArray | None = None
    objective: float = math.inf
    bound: float = -math.inf
    nodes: int = 0


class Engine(Protocol):
    """A solver that holds one program and solves it under changed bounds and costs."""

    def solve(self, lower: FloatArray, upper: FloatArray, cost: FloatArray) -> Solution | None:
        """The cheapest point within the bounds; None is a proof that there is none; else a `SolverError`."""
        ...  # pragma: no cover


Factory = Callable[["Program"], Engine]


class Program:
    """Variables with bounds, rows, and an objective to be minimised.

    Parameters
    ----------
    solver
        A registered name; if not given, the first that can be imported.
    time_limit
        Seconds for one solve.

    Examples
    --------
    >>> program = Program()
    >>> x, y = program.variable(0, 9, integer=True), program.variable(0, 9)
    >>> program.row({x: 1.0, y: 1.0}, lower=2.5)
    >>> program.solve({x: 2.0, y: 1.0}).objective
    2.5
    >>> program.pin(y, 1.0)
    >>> program.solve({x: 2.0, y: 1.0}).values.tolist()
    [2.0, 1.0]
    >>> program.bound(x, 0, 1)
    >>> print(program.solve())
    None
    """

    def __init__(self, *, solver: str | None = None, time_limit: float = TIME_LIMIT) -> None:
        self.solver, self._factory, self.tolerance = _choose(solver)
        self.time_limit = float(time_limit)
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._integer: list[bool] = []
        self._starts: list[int] = [0]
        self._columns: list[int] = []
        self._values: list[float] = []
        self._row_lower: list[float] = []
        self._row_upper: list[float] = []
        self._engine: Engine | None = None
        self._bounds: tuple[FloatArray, FloatArray] | None = None
        self.solves = 0  #: how often the solver was called

    @property
    def size(self) -> int:
        """The number of variables."""
        return len(self._lower)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self._row_lower)

    @property
    def integer(self) -> npt.NDArray[np.bool_]:
        """Which variables are whole numbers."""
        return np.array(self._integer, dtype=bool)

    def variable(self, lower: float, upper: float, *, integer: bool = False) -> int:
        """Add a variable and return its number."""
        self._changed()
        self._integer.append(integer)
        self._lower.append(_up(lower) if integer else float(lower))
        self._upper.append(_down(upper) if integer else float(upper))
        return len(self._lower) - 1

    def row(self, terms: Mapping[int, float], *, lower: float = -math.inf, upper: float = math.inf) -> None:
        """Add the row ``lower <= Σ coefficient · variable <= upper``."""
        self._changed()
        for column, value in terms.items():
            self._columns.append(column)
            self._values.append(float(value))
        self._starts.append(len(self._columns))
        self._row_lower.append(float(lower))
        self._row_upper.append(float(upper))

    def is_whole(self, column: int) -> bool:
        """Whether a variable is a whole number."""
        return self._integer[column]

    def tighten(self, column: int, lower: float, upper: float) -> None:
        """Narrow the declared bounds of a variable."""
        self._changed()
        if self._integer[column]:
            lower, upper = _up(lower), _down(upper)
        self._lower[column] = max(self._lower[column], float(lower))
        self._upper[column] = min(self._upper[column], float(upper))

    def limits(self, column: int) -> tuple[float, float]:
        """The declared bounds of a variable."""
        return self._lower[column], self._upper[column]

    @property
    def matrix(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], FloatArray, FloatArray, FloatArray]:
        """Row starts, columns, values, lower and upper sides of the rows."""
        return (
            np.array(self._starts, dtype=np.int32),
            np.array(self._columns, dtype=np.int32),
            np.array(self._values, dtype=float),
            np.array(self._row_lower, dtype=float),
            np.array(self._row_upper, dtype=float),
        )

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The bounds in force, as two arrays that may be written to."""
        if self._bounds is None:
            self._bounds = np.array(self._lower, dtype=float), np.array(self._upper, dtype=float)
        return self._bounds

    def bound(self, column: int, lower: float, upper: float) -> None:
        """Change the bounds in force of one variable."""
        low, high = self.bounds
        low[column], high[column] = lower, upper

    def pin(self, column: int, value: float) -> None:
        """Fix one variable."""
        self.bound(column, value, value)

    def reset(self) -> None:
        """Go back to the declared bounds."""
        self._bounds = None

    def solve(
        self, cost: Mapping[int, float] | None = None, *, lower: FloatArray | None = None, upper: FloatArray | None = None
    ) -> Solution | None:
        """The cheapest point (any point without a cost), or None where it is proved that there is none.

        `lower` and `upper` replace the bounds in force for this call.
        """
        if lower is None or upper is None:
            lower, upper = self.bounds
        if bool(np.any(lower > upper)):
            return None
        costs = self._costs(cost)
        if not self.rows and np.all(np.isfinite(lower) & np.isfinite(upper)):  # every variable by itself
            values = np.where(costs > 0, lower, np.where(costs < 0, upper, np.clip(0.0, lower, upper)))
            return Solution(values, float(costs @ values))
        if not self.size:
            met = all(low <= 0.0 <= high for low, high in zip(self._row_lower, self._row_upper))
            return Solution(np.zeros(0), 0.0) if met else None
        if self._engine is None:
            self._engine = self._factory(self)
        self.solves += 1
        return self._engine.solve(lower, upper, costs)

    def search(
        self, cost: Mapping[int, float] | None = None, *, nodes: int | None = None, seconds: float | None = None, target: float = -math.inf
    ) -> Outcome:
        """Return the cheapest point within the bounds in force, or what is known of it when a limit is reached.

        Nodes of the search tree are counted alike on every run; seconds are not. A point that costs at most `target` ends the search.
        A solver that was plugged in and has no `search` ignores the limits.
        """
        lower, upper = self.bounds
        if bool(np.any(lower > upper)):
            return Outcome("infeasible")
        if not self.size or (not self.rows and np.all(np.isfinite(lower) & np.isfinite(upper))):
            return _outcome(self.solve(cost))
        if self._engine is None:
            self._engine = self._factory(self)
        within = getattr(self._engine, "search", None)
        if within is None:
            return _outcome(self.solve(cost))
        self.solves += 1
        found: Outcome = within(lower, upper, self._costs(cost), nodes, seconds, target)
        return found

    def _costs(self, cost: Mapping[int, float] | None) -> FloatArray:
        costs = np.zeros(self.size)
        for column, value in (cost or {}).items():
            costs[column] = value
        return costs

    def _changed(self) -> None:
        self._engine, self._bounds = None, None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_engine": None, "_factory": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.solver, self._factory, self.tolerance = _choose(self.solver)


def _outcome(found: Solution | None) -> Outcome:
    return Outcome("infeasible") if found is None else Outcome("optimal", found.values, found.objective, found.objective)


def _up(bound: float) -> float:
    """The lowest whole number from a bound on (HiGHS does not round the bounds of whole numbers itself)."""
    return float(round_up(bound)) if math.isfinite(bound) else float(bound)


def _down(bound: float) -> float:
    return -_up(-bound)


class _Highs:
    """HiGHS through highspy: loaded once, then only what changed is sent."""

    def __init__(self, program: Program) -> None:
        import highspy

        self._api = highspy
        self._program = program
        self._limit = program.time_limit
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._columns = np.arange(program.size, dtype=np.int32)
        self._cost = np.zeros(program.size)
        self._lower, self._upper = (a.copy() for a in program.bounds)
        options: dict[str, Any] = {
            "output_flag": False,
            "threads": 1,  # with more, a forked child hangs
            "presolve": "on",
            "time_limit": program.time_limit,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": program.tolerance,
            "primal_feasibility_tolerance": program.tolerance,
            "dual_feasibility_tolerance": program.tolerance,
            "mip_feasibility_tolerance": program.tolerance,
        }
        for name, value in options.items():
            self._expect(self._highs.setOptionValue(name, value), f"option {name}")
        lp = highspy.HighsLp()
        starts, columns, values, row_lower, row_upper = program.matrix
        lp.num_col_, lp.num_row_ = program.size, program.rows
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = self._cost, self._lower, self._upper
        lp.row_lower_, lp.row_upper_ = row_lower, row_upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = starts, columns, values
        whole, free = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        lp.integrality_ = [whole if integer else free for integer in program.integer]
        self._expect(self._highs.passModel(lp), "loading the program")

    def _expect(self, status: Any, what: str) -> None:
        if status == self._api.HighsStatus.kError:
            raise SolverError(f"HiGHS refused: {what}", got=str(status))

    def solve(self, lower: FloatArray, upper: FloatArray, cost: FloatArray) -> Solution | None:
        highs = self._highs
        status = self._asked(lower, upper, cost)
        if status == self._api.HighsModelStatus.kInfeasible:
            return None
        if status == self._api.HighsModelStatus.kOptimal:
            return Solution(np.array(highs.getSolution().col_value), float(highs.getInfo().objective_function_value))
        late = status == self._api.HighsModelStatus.kTimeLimit
        remedy = "raise time_limit" if late else "check the scale of bounds and coefficients"
        raise SolverError("the solver came to no answer", got=highs.modelStatusToString(status), remedy=remedy)

    def search(
        self, lower: FloatArray, upper: FloatArray, cost: FloatArray, nodes: int | None, seconds: float | None, target: float
    ) -> Outcome:
        highs, kinds = self._highs, self._api.HighsModelStatus
        usual = {"mip_max_nodes": 2**31 - 1, "objective_target": -math.inf, "time_limit": self._limit}
        self._limit = math.inf if seconds is None else seconds
        limits = {"mip_max_nodes": 2**31 - 1 if nodes is None else nodes, "objective_target": target, "time_limit": self._limit}
        for name, value in limits.items():
            self._expect(highs.setOptionValue(name, value), f"option {name}")
        doubted = False
        try:
            status = self._asked(lower, upper, cost)
            if status == kinds.kInfeasible and cost.any():
                # HiGHS was seen to call a program infeasible that has a point, with an objective that ties; without one it finds the point
                status = self._asked(lower, upper, np.zeros_like(cost))
                doubted = status != kinds.kInfeasible
        finally:
            for name, value in usual.items():
                highs.setOptionValue(name, value)
            self._limit = usual["time_limit"]
        info = highs.getInfo()
        count = max(int(info.mip_node_count), 0)
        if status == kinds.kInfeasible:
            return Outcome("infeasible", nodes=count)
        ends: dict[Any, Literal["optimal", "target", "nodes", "time"]] = {
            kinds.kOptimal: "optimal", kinds.kObjectiveTarget: "target", kinds.kSolutionLimit: "nodes", kinds.kTimeLimit: "time",
        }  # fmt: skip
        if status not in ends:
            raise SolverError("the solver came to no answer", got=highs.modelStatusToString(status))
        found = info.primal_solution_status == 2  # a feasible point
        objective = float(info.objective_function_value) if found else math.inf
        if doubted:
            values = np.array(highs.getSolution().col_value) if found else None
            return Outcome("nodes", values, math.inf if values is None else float(cost @ values), nodes=count)
        bound = float(info.mip_dual_bound) if self._program.integer.any() else objective
        return Outcome(ends[status], np.array(highs.getSolution().col_value) if found else None, objective, bound, count)

    def _asked(self, lower: FloatArray, upper: FloatArray, cost: FloatArray) -> Any:
        """Send what changed, run, and return the solver's status."""
        highs, size = self._highs, self._program.size
        if not (np.array_equal(lower, self._lower) and np.array_equal(upper, self._upper)):
            self._expect(highs.changeColsBounds(size, self._columns, lower, upper), "changed bounds")
            self._lower, self._upper = lower.copy(), upper.copy()
        if not np.array_equal(cost, self._cost):
            self._expect(highs.changeColsCost(size, self._columns, cost), "changed costs")
            self._cost = cost.copy()
        status = self._run()
        if status == self._api.HighsModelStatus.kUnboundedOrInfeasible:  # presolve cannot tell; the simplex method can
            highs.setOptionValue("presolve", "off")
            status = self._run()
            highs.setOptionValue("presolve", "on")
        return status

    def _run(self) -> Any:
        highs, began = self._highs, perf_counter()
        if highs.run() == self._api.HighsStatus.kError and highs.getModelStatus() == self._api.HighsModelStatus.kNotset:
            self._api.Highs.resetGlobalScheduler(True)  # somebody else in this process asked for more threads
            self._expect(highs.run(), "solving")
        status = highs.getModelStatus()
        if status == self._api.HighsModelStatus.kTimeLimit and perf_counter() - began < 0.9 * self._limit:
            # Older releases add the time of all solves up.
            highs.setOptionValue("time_limit", highs.getRunTime() + self._limit)
            highs.run()
            status = highs.getModelStatus()
        return status


class _SciPy:
    """SciPy's `milp`: the program is sent whole each time."""

    def __init__(self, program: Program) -> None:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        starts, columns, values, low, high = program.matrix
        self._program = program
        self._integer = program.integer.astype(int)
        table = csr_array((values, columns, starts), shape=(program.rows, program.size))
        self._rows = [LinearConstraint(table, low, high)] if program.rows else []

    def solve(self, lower: FloatArray, upper: FloatArray, cost: FloatArray) -> Solution | None:
        from scipy.optimize import Bounds, milp

        for presolve in (True, False):
            options: Any = {"time_limit": self._program.time_limit, "presolve": presolve, "mip_rel_gap": 0.0}
            done = milp(cost, integrality=self._integer, bounds=Bounds(lower, upper), constraints=self._rows, options=options)
            if done.status == 0 and done.x is not None:
                return Solution(np.asarray(done.x, dtype=float), float(done.fun))
            if done.status == 2:
                return None
            if done.status == 1:
                break
        raise SolverError("the solver came to no answer", got=done.message, remedy="raise time_limit" if done.status == 1 else "")

    def search(
        self, lower: FloatArray, upper: FloatArray, cost: FloatArray, nodes: int | None, seconds: float | None, target: float
    ) -> Outcome:
        from scipy.optimize import Bounds, milp

        options: Any = {"presolve": True, "mip_rel_gap": 0.0}
        options |= {} if nodes is None else {"node_limit": nodes}
        options |= {} if seconds is None else {"time_limit": seconds}
        done = milp(cost, integrality=self._integer, bounds=Bounds(lower, upper), constraints=self._rows, options=options)
        count = int(getattr(done, "mip_node_count", 0) or 0)
        if done.status == 2:
            return Outcome("infeasible", nodes=count)
        if done.status not in (0, 1) and "olution limit" not in str(done.message):  # SciPy has no status of its own for a node limit
            return _outcome(self.solve(lower, upper, cost))
        known = getattr(done, "mip_dual_bound", None)
        found = None if done.x is None else np.asarray(done.x, dtype=float)
        objective = math.inf if found is None or done.fun is None else float(done.fun)
        late = "time" if "ime limit" in str(done.message) else "nodes"
        bound = float(known) if known is not None else objective if done.status == 0 else -math.inf
        return Outcome("optimal" if done.status == 0 else late, found, objective, bound, count)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Entry:
    factory: Factory
    tolerance: float
    needs: str = ""


_ENTRIES: dict[str, _Entry] = {
    "highs": _Entry(_Highs, 1e-9, "highspy"),
    "scipy": _Entry(_SciPy, 1e-6, "scipy.optimize"),
}


def solvers() -> tuple[str, ...]:
    """The names of the registered solvers, the preferred one first."""
    return tuple(_ENTRIES)


def register(name: str, factory: Factory, *, tolerance: float = 1e-6, prefer: bool = False) -> None:
    """Plug in another solver.

    Parameters
    ----------
    name
        What `Program` and `PartProgram` take as ``solver``.
    factory
        Gets the `Program` (its `matrix`, `bounds`, `integer`, `time_limit`) and returns an `Engine`.
    tolerance
        How far a row or a whole number may be missed; strict inequalities keep a multiple of it away.
    prefer
        Whether it becomes the default.
    """
    entry = _Entry(factory, tolerance)
    others = {key: value for key, value in _ENTRIES.items() if key != name}
    _ENTRIES.clear()
    _ENTRIES.update({name: entry, **others} if prefer else {**others, name: entry})


def _choose(name: str | None) -> tuple[str, Factory, float]:
    """The named solver, or the first that can be imported."""
    names: Sequence[str] = solvers() if name is None else (name,)
    for candidate in names:
        if candidate not in _ENTRIES:
            raise SolverError("no such solver", got=candidate, remedy=nearest(candidate, _ENTRIES))
        entry = _ENTRIES[candidate]
        if not entry.needs or _importable(entry.needs):
            return candidate, entry.factory, entry.tolerance
        log.info("solver %s is not installed (%s)", candidate, entry.needs)
    raise SolverError("no solver is installed", got=list(names), remedy="pip install highspy")


def _importable(module: str) -> bool:
    from importlib import import_module

    try:
        import_module(module)
    except ImportError:
        return False
    return True
