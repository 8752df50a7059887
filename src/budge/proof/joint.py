"""One integer program for a person: the rows of the coupled parts, the cells of the columns that can move, and the scores of the model.

A column of numbers has one 0/1 variable per cut (the value is above it), tied to the value by the hull of the intervals between cuts: two rows per column. A
listed column has one per level. A leaf has a continuous weight; per tree, column and cut, the leaves that end at or before the cut and those that start after
it exclude each other by nested rows. The program holds every feasible point: cells are closed, and what has no rows is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from budge.expressions import TOLERANCE
from budge.program.compiler import Affine
from budge.program.encoding import EncodedPart
from budge.program.solver import Program
from budge.proof.additive import Addends
from budge.proof.axes import Levels, Numbers
from budge.proof.leaves import KeptLeaves
from budge.proof.person import Person

__all__ = ["Joint", "Place"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Place:
    """A point of the program: the coded row, and its cell per axis. `inside` is False where nothing but rounding leads there."""

    point: FloatArray
    cells: IntArray  # of the columns of numbers
    levels: IntArray  # of the listed columns
    inside: bool = True


class Joint:
    """The program of a person. `scores` are the scores of the model in columns of the program, one per row of `weights`."""

    def __init__(self, person: Person, terms: KeptLeaves | Addends, weights: FloatArray, *, closed: bool = False) -> None:
        self.person, self.terms = person, terms
        self.program: Program
        self.parts: list[EncodedPart]
        self.program, self.parts = person.encoded(closed) if person.coupled else (Program(), [])
        self.values: dict[int, Affine] = {}  #: value of a column that is a variable
        for part in self.parts:
            for name in part.part.names:
                self.values[person.place[name]] = part.form("value", name)
        for axis in person.axes.values():
            if axis.acted:
                self.values.pop(axis.column, None)
        self.cuts = [self._cut(axis) for axis in terms.numbers]
        self.levels = [self._level(axis) for axis in terms.levels]
        if isinstance(terms, KeptLeaves):
            self.scores = self._tree_scores(terms, weights)
        else:
            self.scores = self._sums(terms, weights)

    # -- variables and rows -------------------------------------------------------------------------------------------

    def _cut(self, axis: Numbers) -> list[int]:
        """Add the variables of a column's cuts; variable n is 1 where the value is above cut n."""
        program = self.program
        above = [program.variable(0.0, 1.0, integer=True) for _ in axis.cuts]
        for one, other in pairwise(above):
            program.row({other: 1.0, one: -1.0}, upper=0.0)
        form = self.values.get(axis.column)
        if form is None or not above:
            return above
        low, high = axis.wide
        starts = np.concatenate([[low], axis.cuts + 1.0 if axis.step else axis.cuts])
        ends = np.append(axis.cuts, high)
        slack = 0.0 if axis.step else TOLERANCE * max(1.0, abs(low), abs(high))
        under, over = dict(form.terms), dict(form.terms)
        for n, z in enumerate(above):
            under[z] = -float(starts[n + 1] - starts[n])
            over[z] = -float(ends[n + 1] - ends[n])
        program.row(under, lower=float(starts[0]) - form.const - slack)
        program.row(over, upper=float(ends[0]) - form.const + slack)
        return above

    def _level(self, axis: Levels) -> list[int]:
        """Add one variable per level, exactly one of which is 1."""
        chosen = [self.program.variable(0.0, 1.0, integer=True) for _ in axis.allowed]
        self.program.row(dict.fromkeys(chosen, 1.0), lower=1.0, upper=1.0)
        form = self.values.get(axis.column)
        if form is not None:
            tied = dict(form.terms) | {u: -float(level) for u, level in zip(chosen, axis.allowed)}
            self.program.row(tied, lower=-form.const, upper=-form.const)
        return chosen

    def _tree_scores(self, leaves: KeptLeaves, weights: FloatArray) -> list[Affine]:
        program, gain = self.program, leaves.value @ weights.T
        columns = [program.variable(0.0, 1.0) for _ in leaves.tree]
        for begin, end in zip(leaves.first, [*leaves.first[1:], len(leaves.tree)]):
            own = columns[begin:end]
            program.row(dict.fromkeys(own, 1.0), lower=1.0, upper=1.0)
            for d, above in enumerate(self.cuts):
                lo, hi = leaves.lo[begin:end, d], leaves.hi[begin:end, d]
                for n in np.unique(np.concatenate([hi[hi < len(above)], lo[lo > 0] - 1])).tolist():
                    left = [own[i] for i in np.flatnonzero(hi <= n)]
                    right = [own[i] for i in np.flatnonzero(lo > n)]
                    if left:
                        program.row({**dict.fromkeys(left, 1.0), above[n]: 1.0}, upper=1.0)
                    if right:
                        program.row({**dict.fromkeys(right, 1.0), above[n]: -1.0}, upper=0.0)
            for offset, chosen in zip(leaves.offsets, self.levels):
                mask = leaves.mask[begin:end, offset : offset + len(chosen)]
                for i in np.flatnonzero(~mask.all(axis=0)):
                    without = [own[k] for k in np.flatnonzero(~mask[:, i])]
                    program.row({**dict.fromkeys(without, 1.0), chosen[i]: 1.0}, upper=1.0)
        return [Affine({c: float(v) for c, v in zip(columns, gain[:, k]) if v}, float(leaves.const @ w)) for k, w in enumerate(weights)]

    def _sums(self, addends: Addends, weights: FloatArray) -> list[Affine]:
        for axis in addends.sloped:
            if axis.column not in self.values:
                own = self.program.variable(axis.wide[0] - axis.start, axis.wide[1] - axis.start, integer=axis.step)
                self.values[axis.column] = Affine({own: 1.0}, axis.start)
        scores = []
        for w in weights:
            total = Affine({}, float(addends.const @ w))
            entries = [entry @ w for entry in addends.entries]
            for above, entry in zip(self.cuts, entries):
                total = total.plus(Affine(dict(zip(above, np.diff(entry).tolist())), float(entry[0])))
            for chosen, entry in zip(self.levels, entries[len(self.cuts) :]):
                total = total.plus(Affine(dict(zip(chosen, entry.tolist()))))
            for axis, slope in zip(addends.sloped, addends.slopes):
                total = total.plus(self.values[axis.column], float(slope @ w))
            scores.append(total)
        return scores

    # -- solutions ----------------------------------------------------------------------------------------------------

    def place(self, solution: FloatArray) -> Place:
        """Return the coded row of a solution, moved into its open cells."""
        person, point = self.person, self.person.start.copy()
        for part in self.parts:
            for f in part.part.features:
                j = person.place[f.name]
                form = part.form("change", f.name)
                change = form.const + sum(k * float(solution[c]) for c, k in form.terms.items())
                if not np.isnan(point[j]):
                    point[j] += round(change) if f.discrete else change if abs(change) > TOLERANCE * max(1.0, abs(point[j])) else 0.0
        for j, form in self.values.items():
            if isinstance(axis := person.axes.get(j), Numbers) and not axis.tied:  # a slope of a free column
                value = form.const + sum(k * float(solution[c]) for c, k in form.terms.items())
                point[j] = axis.start + round(value - axis.start) if axis.step else min(max(value, axis.low), axis.high)
        inside, cells = True, []
        for axis, above in zip(self.terms.numbers, self.cuts):
            cell = round(sum(float(solution[z]) for z in above))
            if not axis.tied or not axis.step:
                near = axis.nearest(cell, cell, float(point[axis.column]))
                inside &= near is not None
                point[axis.column] = float(axis.firsts[cell]) if near is None else near
            cells.append(int(np.searchsorted(axis.cuts, point[axis.column], side="left")))  # of the point itself: that is what is asked
        levels = np.array([int(np.argmax(solution[chosen])) for chosen in self.levels], dtype=np.intp)
        for listed, level in zip(self.terms.levels, levels):
            point[listed.column] = float(listed.allowed[level])
        return Place(point, np.array(cells, dtype=np.intp), levels, inside)

    def inward(self, solution: FloatArray, shares: Sequence[float]) -> Iterator[Place]:
        """Yield points between a solution and the middle of what its whole variables leave open.

        A solution may lie beyond a row by the solver's tolerance and the row's own, which together the definition does not allow.
        """
        program = self.program
        lower, upper = (bounds.copy() for bounds in program.bounds)
        whole = program.integer
        lower[whole] = upper[whole] = np.round(solution[whole])
        real = [c for part in self.parts for name in part.part.names for c in part.form("change", name).terms if not whole[c]]
        if not real:
            return
        found = [program.solve(dict.fromkeys(real, sign), lower=lower, upper=upper) for sign in (1.0, -1.0)]
        if found[0] is None or found[1] is None:
            return
        middle = (found[0].values + found[1].values) / 2
        for share in shares:
            yield self.place(solution + share * (middle - solution))

    def exclude(self, place: Place) -> bool:
        """Take out all cells in which the model answers as it does here; return whether that could be written."""
        if isinstance(self.terms, KeptLeaves):
            lo, hi, mask = self.terms.around(place.cells, place.levels)
            offsets = self.terms.offsets
            allowed = [np.flatnonzero(mask[a:b]) for a, b in pairwise(offsets)]
        else:
            lo = hi = place.cells
            allowed = [np.array([level]) for level in place.levels]
            if not all(axis.step for axis in self.terms.sloped):
                return False
        other: dict[int, float] = {}
        least = 1.0
        for above, first, last in zip(self.cuts, lo, hi):
            if first > 0:
                other[above[first - 1]] = other.get(above[first - 1], 0.0) - 1.0
                least -= 1.0
            if last < len(above):
                other[above[last]] = other.get(above[last], 0.0) + 1.0
        for chosen, kept in zip(self.levels, allowed):
            other |= {u: 1.0 for i, u in enumerate(chosen) if i not in kept}
        if isinstance(self.terms, Addends):
            for axis in self.terms.sloped:
                other |= dict.fromkeys(self._apart(self.values[axis.column], float(place.point[axis.column])), 1.0)
        self.program.row({c: v for c, v in other.items() if v}, lower=least)
        return True

    def _apart(self, form: Affine, value: float) -> list[int]:
        """Return indicators, one of which can be 1 only where a whole form is below a value, one only where it is above."""
        found = []
        for sign in (1.0, -1.0):
            terms = {c: sign * k for c, k in form.terms.items()}
            most = sum(max(k * end for end in self.program.limits(c)) for c, k in terms.items()) + sign * form.const
            side = sign * value - 1.0
            most = max(most, side)
            on = self.program.variable(0.0, 1.0, integer=True)
            self.program.row({**terms, on: most - side}, upper=most - sign * form.const)
            found.append(on)
        return found

    def require(self, form: Affine, least: float) -> None:
        """Make a form be at least so large."""
        self.program.row(form.terms, lower=least - form.const)


def combined(forms: Sequence[Affine], factors: Sequence[float]) -> Affine:
    """Return a weighted sum of forms."""
    total = Affine({})
    for form, factor in zip(forms, factors):
        total = total.plus(form, factor)
    return total
