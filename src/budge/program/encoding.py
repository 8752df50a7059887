"""A part at one start written as an integer program: its variables, its linkages, and the rows of its constraints.

The paper's encodings (appendix "Description of the Mixed Integer Program") with signed bounds. Every feature has an own
action; a linkage's target has a change of its own, and each linkage that leaves room an induced change. What has no linear
rows stays `unsolved`: whoever asks the program checks it at the solutions. So does what the solver's tolerance leaves open,
because a row over very large numbers is switched off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint, DirectionalLinkage
from budge.constraints.links import whole_scale
from budge.errors import SolverError
from budge.expressions import TOLERANCE, All, Formula, Linear, Row, Some, Var
from budge.expressions.tolerance import round_down, round_up
from budge.features import Feature
from budge.parts import Part
from budge.program.compiler import Affine, Compiler
from budge.program.solver import TIME_LIMIT, Program

__all__ = ["EncodedPart"]

FloatArray = npt.NDArray[np.float64]


class EncodedPart:
    """The program of one part at a start x; `PartProgram` asks it.

    With `program`, variables and rows are added to that program, which other parts may share. `closed` is passed on to `Compiler`.
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
        program: Program | None = None,
        closed: bool = False,
    ) -> None:
        self.part = part
        self.x: dict[str, float] = {name: float(x[name]) for name in part.names}
        self.program = Program(solver=solver, time_limit=time_limit) if program is None else program
        self._settings = {"solver": solver, "time_limit": time_limit}
        self._extra = tuple(extra)
        self._forms: dict[Var, Affine] = {}
        self._columns: dict[Var, int] = {}
        self.box: dict[str, tuple[float, float]] = {}  #: separable bounds of each change, widened by linkages
        self._cut: dict[str, bool] = {}
        self._compiler = Compiler(self.program, self._forms, closed=closed)
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

    def form(self, layer: str, name: str) -> Affine:
        """Return a feature's own action, change or value in columns of the program."""
        return self._forms[layer, name]

    def require(self, formula: Formula) -> None:
        """Make a formula over this part hold as well."""
        self._compiler.add(formula)

    @property
    def strict(self) -> bool:
        """Whether a strict relation over real numbers came up: with a margin some feasible points are left out."""
        return self._compiler.strict

    @property
    def cut_off(self) -> bool:
        """Whether a feature without bounds was narrowed to the values that it is drawn from."""
        return any(self._cut.values())

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
            low, high = float(round_up(low)), float(round_down(high))
        self.box[name] = low, high
        changed = Linear({("change", name): 1.0})
        self._forms["change", name] = self._variable(("change", name), low, high, target.discrete)
        self._forms["value", name] = Affine({}, self.x[name]).plus(self._forms["change", name])
        scale = whole_scale(target, links) if whole or not loose else None  # beside a real induced change the row stays as it is
        exact, gap = scale is not None, (changed - total) * float(scale or 1)
        follows: Formula = Row(gap, "==", whole=exact)
        if policy == "clip":
            top = All((Row(changed - ceiling, "==", whole=target.discrete), Row(gap, "<=", whole=exact)))
            bottom = All((Row(changed - floor, "==", whole=target.discrete), Row(gap, ">=", whole=exact)))
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
        # a missing value is known: a comparison with it is not true, and neither is its opposite
        known: dict[Var, FloatArray | float] = {("value", name): value for name, value in self.x.items() if math.isnan(value)}
        for (layer, name), value in self._known.items():
            known["value" if layer == "change" else layer, name] = value + self.x[name] if layer == "change" else value
        left = []
        for constraint in self.part.constraints:
            rows = constraint.rows(self.x, known or None)
            self._compiler.leaks = False
            if rows is not None:
                self._compiler.add(rows)
            if rows is None or self._compiler.leaks:
                left.append(constraint)
        for formula in self._extra:
            self._compiler.add(formula)
        return tuple(left)
