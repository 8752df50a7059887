"""One person's part that can be neither listed nor counted: proposed along its coordinates, tilted towards its rows, accepted by the definition."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.expressions import Row, Total
from budge.features import Feature
from budge.reach.accept import first_accepted, fixed_words, words_from
from budge.reach.cells import resolve
from budge.reach.core import Core, change_interval, group_moves, groups, is_computed, listed_values, no_weight, supported_values
from budge.reach.fibres import not_positive
from budge.reach.forms import forms_of, holding
from budge.reach.large import Large, rows_of
from budge.reach.starts import Starts
from budge.reach.streams import Stream, WordArray, region_of, unit
from budge.reach.tilted import Axis, Side, Tilted, tilted
from budge.reach.view import View
from budge.reach.written import is_weighed

__all__ = ["Proposed", "proposed"]

FloatArray = npt.NDArray[np.float64]
MOST_JOINT = 2**20  # features times constraints of a part
PILOT, MOST_PILOTS = 2**21, 2**20  # numbers in the proposals of a pilot, and proposals
AT_ONCE = 2**18  # numbers of proposals that are held at once in a pilot
FEWEST = 4  # accepted proposals of a pilot, or nothing is drawn
PATIENCE = 64  # how many times the expected number of proposals are made for a draw
MOST_LISTED = 4096  # values of a whole number that are listed for their weights; with more, proposals are thinned
Listed = tuple[tuple[str, ...], FloatArray]  # names and joint moves


@dataclass(frozen=True)
class Proposed(Large):
    """Exactly as the law says, within a budget of proposals; a draw that finds nothing is an error."""

    starts: Starts
    view: View
    lists: Mapping[str, Listed]  # by axis
    tilted: Tilted
    thinned: tuple[Feature, ...]  # features whose distribution accepts
    tally: dict[str, int] = field(default_factory=lambda: {"proposed": 0, "accepted": 0})

    @property
    def method(self) -> str:
        """How it is drawn."""
        return "tilted" if self.tilted.tilt.any() or self.tilted.solved else "rejection"

    @property
    def endless(self) -> npt.NDArray[np.bool_]:
        """Whether a real feature moves."""
        return np.array([any(f.type == "real" and f.name not in self.starts.still for f in self.starts.part.features)])

    @property
    def note(self) -> str:
        """How many configurations there are at most: the size of the box."""
        return f"up to {math.prod(int(axis.width.sum()) for axis in self.tilted.axes.values() if axis.whole):,}"

    @property
    def acceptance(self) -> float:
        """Share of proposals accepted so far."""
        return self.tally["accepted"] / self.tally["proposed"] if self.tally["proposed"] else 1.0

    @cached_property
    def _pilot(self) -> tuple[int, int]:
        """How many proposals were made with words that are the same for everybody until enough were accepted, and how many of them were accepted."""
        words, width = fixed_words("pilot", *sorted(self.names)), self.tilted.width + len(self.thinned)
        tried = hits = 0
        most = max(1, min(MOST_PILOTS, PILOT // (width + len(self.tilted.sides) + len(self.starts.part.constraints))))
        while hits < FEWEST and tried < most:
            draws = np.arange(tried, min(max(64, 2 * tried), tried + max(64, AT_ONCE // width), most))
            hits += int(self._proposed(words(draws, 0, width))[1].sum())
            tried += len(draws)
        return tried, hits

    def drawn(self, stream: Stream, first: int, n: int) -> FloatArray:
        """Return draws `first` to `first + n - 1` of the person whose stream it is: changes, one row each."""
        tried, hits = self._pilot
        if hits < FEWEST:
            raise self._refused(f"{hits} of {tried:,} proposals were accepted")
        words, width = words_from(stream, region=region_of("proposed", *sorted(self.names))), self.tilted.width + len(self.thinned)
        most = PATIENCE * tried // hits
        made = first_accepted(np.arange(first, first + n), words, width, lambda _, some: self._proposed(some), len(self.names), most)
        self.tally["proposed"] += made.proposed
        self.tally["accepted"] += made.accepted
        if not made.found.all():
            raise self._refused(f"a draw was not accepted within {most:,} proposals")
        return made.points

    def _refused(self, what: str) -> DrawError:
        where = f"part {', '.join(self.names)}"
        return DrawError(what, where=where, remedy="narrow the bounds of its features; budge check tells whether it is empty")

    def _proposed(self, words: WordArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Return one proposal per row of words, and which of them are accepted."""
        part, width = self.starts.part, self.tilted.width
        x = {name: float(column[0]) for name, column in self.starts.x.items()}
        values, good = self.tilted.propose(words[:, :width])
        found = np.zeros((len(words), len(self.names)))
        for step in ("constraints", "definition"):  # the first leaves little to the second
            kept = np.flatnonzero(good)
            if not len(kept):
                break
            change = self._change({name: column[kept] for name, column in values.items()}, len(kept))
            if step == "definition":
                good[kept] = self._thinned(unit(words[kept, width:]), change) & part.feasible(x, change)
                found[kept] = np.stack([change[name] for name in self.names], axis=1)
            elif not part.links:
                good[kept] = holding(part.constraints, x, change, change, len(kept))
        return found, good

    def _change(self, values: Mapping[str, FloatArray], n: int) -> dict[str, FloatArray]:
        """Return the change of every feature, by coordinate."""
        moved = dict(values)
        for axis, (names, moves) in self.lists.items():
            moved |= {name: moves[values[axis].astype(np.intp), j] for j, name in enumerate(names)}
        change = {}
        for name in self.names:
            form = self.view.symbols["change", name]
            total = np.full(n, float(np.ravel(form.const)[0]))
            for (_, coordinate), c in sorted(form.terms.items()):
                total = total + float(np.ravel(c)[0]) * moved[coordinate]
            change[name] = np.clip(total, *(end[0] for end in self.view.stops[name])) if name in self.view.stops else total
        return change

    def _thinned(self, u: FloatArray, change: Mapping[str, FloatArray]) -> npt.NDArray[np.bool_]:
        good = np.ones(len(u), dtype=bool)
        for i, f in enumerate(self.thinned):
            law, start = f.distribution, float(self.starts.x[f.name][0])
            assert law is not None
            if law.kind == "log":
                least = start + float(change_interval(self.view.core, f.name, self.names)[0][0])
                if least <= 0:
                    raise not_positive(f.name, least)
                most = float(law.density(least, f.levels))
            else:
                most = float(law.table(f.levels)[1].max())
            good &= u[:, i] * most < law.density(start + change[f.name], f.levels)
        return good


def proposed(starts: Starts, measure: str) -> Proposed:
    """Return one person's part, drawn by proposals; equal configurations need a part without moving reals."""
    part = starts.part
    real = [f.name for f in part.features if f.type == "real" and listed_values(f) is None]
    if measure == "configuration" and any(not is_computed(starts, name) if name in part.links else name not in starts.still for name in real):
        raise DrawError(
            "has too many configurations to list beside its continuous features",
            where=f"part {', '.join(part.names)}",
            remedy="narrow the bounds of its whole-numbered features, or declare measure: volume",
        )
    if any(part.split(link.source) == "guess" for link in part.linkages):
        raise DrawError(
            "has too many configurations to list, and linkages that hang on an own action which the change does not tell",
            where=f"part {', '.join(part.names)}",
            remedy="narrow the bounds of its features, or make the targets of inequality linkages not actionable",
        )
    if len(part.names) * len(part.constraints) > MOST_JOINT:
        raise DrawError(
            f"{len(part.constraints):,} constraints couple {len(part.names):,} features, more than are drawn together",
            where=f"part {', '.join(part.names)}",
            remedy="couple fewer features, or narrow them so that they can be listed or counted",
        )
    view = View.of(Core(starts, np.arange(1)), part.names, ())
    lists = _lists(starts, view)
    listed = {name for names, _ in lists.values() for name in names}
    asked = _asked(starts, view)
    kinks = _kinks(asked)
    axes: dict[str, Axis] = {names[0]: Axis.points(_log_weights(starts, names, moves)) for names, moves in lists.values()}
    for c in view.coordinates:
        low, high = float(c.low[0]), float(c.high[0])
        if c.name in listed:
            continue
        if not np.isfinite(high - low):
            raise DrawError("a feature needs bounds to be drawn by rejection", where=f"feature {c.name}", remedy="give it bounds")
        whole = part.by_name[c.name].discrete
        if whole:
            low, high = math.ceil(low - 1e-9), math.floor(high + 1e-9)
        axes[c.name] = Axis.span(low, max(low, high), whole, kinks.get(c.name, ()))
    sides, equal = _sides(asked, lists, axes)
    weighed = (f for f in part.features if f.distribution is not None and f.distribution.kind != "uniform" and f.name not in starts.gone)
    thinned = sorted((f for f in weighed if f.name not in listed), key=lambda f: f.name)
    return Proposed(starts, view, lists, tilted(dict(sorted(axes.items())), sides, equal), tuple(thinned))


def _lists(starts: Starts, view: View) -> dict[str, Listed]:
    """Return the joint moves of groups that constraints list, and the moves of features whose distribution lists values."""
    part, found = starts.part, dict[str, Listed]()
    open_ = {c.name for c in view.coordinates}
    for f in part.features:
        start, low, high = (float(column[f.name][0]) for column in (starts.x, starts.down, starts.up))
        values = listed_values(f)
        if values is None and f.name not in part.links and is_weighed(f, start):
            values = supported_values(f)
            if values is None and high - low < MOST_LISTED:
                values = start + np.arange(low, high + 1.0)
        if values is not None and f.name in open_ and not np.isnan(start):
            found[f.name] = ((f.name,), (values - start)[:, None])
            view.reach_listed(f.name)
    for constraint in groups(starts, [name for name in part.names if name not in found]):
        names = tuple(sorted(constraint.scope))
        moves = group_moves(starts, constraint, names, 0)
        if len(moves):
            found[names[0]] = (names, moves)
    return found


def _log_weights(starts: Starts, names: tuple[str, ...], moves: FloatArray) -> FloatArray:
    """Return the logarithms of the weights that distributions give to listed moves."""
    total = np.zeros(len(moves))
    for j, name in enumerate(names):
        f, start = starts.part.by_name[name], float(starts.x[name][0])
        if is_weighed(f, start):
            assert f.distribution is not None
            values = start + moves[:, j]
            if f.distribution.kind == "log" and (values <= 0).any():
                raise not_positive(name, float(values.min()))
            with np.errstate(divide="ignore"):
                total += np.log(f.distribution.density(values, f.levels))
    if not (total > -np.inf).any():
        raise no_weight(starts.part.names)
    return total


def _asked(starts: Starts, view: View) -> list[Row | Total]:
    """Return the rows of the part that all must hold, and its totals of absolute values, over coordinates."""
    part, forms, x = starts.part, forms_of(starts.part), {name: column[:1] for name, column in starts.x.items()}
    here = {name: float(column[0]) for name, column in x.items()}
    found: list[Row | Total] = [formula for formula in view.links if isinstance(formula, Row)]
    for constraint in sorted(part.constraints, key=lambda c: c.key):
        if forms.scope(constraint) & (starts.gone | view.stops.keys()):
            continue
        total = forms.total(constraint, x, {})
        if total is not None and {var for form in (total.linear, *total.parts) for var in form.terms} <= view.symbols.keys():
            put = resolve(total, {}, view.symbols)
            if isinstance(put, Total) and all(len(form.terms) <= 1 for form in put.parts):
                found.append(put)
                continue
        rows = [row for row in rows_of(forms.formula(constraint, here)) if row is not None]
        if {var for row in rows for var in row.linear.terms} <= view.symbols.keys():
            found += [put for row in rows if isinstance(put := resolve(row, {}, view.symbols), Row)]
    return found


def _kinks(asked: Sequence[Row | Total]) -> dict[str, list[float]]:
    """Return where totals are bent, by coordinate."""
    found: dict[str, list[float]] = {}
    for total in asked:
        for form in total.parts if isinstance(total, Total) else ():
            for (_, name), c in form.terms.items():
                found.setdefault(name, []).append(-_one(form.const) / _one(c))
    return found


def _sides(asked: Sequence[Row | Total], lists: Mapping[str, Listed], axes: Mapping[str, Axis]) -> tuple[list[Side], list[Side]]:
    """Return rows and totals over axes, a little loosened, and the equalities."""
    columns = {name: (axis, moves[:, j]) for axis, (names, moves) in lists.items() for j, name in enumerate(names)}
    sides: list[Side] = []
    equal: list[Side] = []
    for row in asked:
        if row.relation == "!=":
            continue
        sign = -1.0 if row.relation in (">=", ">") else 1.0
        limit, terms = -sign * _one(row.linear.const), dict[str, FloatArray]()
        for absolute, form in ((False, row.linear * sign), *((True, part) for part in (row.parts if isinstance(row, Total) else ()))):
            limit -= abs(_one(form.const)) if absolute and not form.terms else 0.0
            for (_, name), c in form.terms.items():
                axis, column = columns.get(name, (name, None))
                slope, const = _one(c), _one(form.const)
                if column is not None:
                    added = np.stack([np.zeros_like(column), np.abs(slope * column + const) if absolute else slope * column])
                else:
                    added = axes[axis].term(0.0, [(abs(slope), -const / slope)]) if absolute else axes[axis].term(slope)
                terms[axis] = terms[axis] + added if axis in terms else added
        side = Side(dict(sorted(terms.items())), limit)
        size = max([1.0, abs(side.limit), *(abs(end) for ends in side.ends(axes).values() for end in ends)])
        if row.relation == "==":
            equal.append(side)
        elif np.isfinite(side.limit):  # a bound that is none is no row
            sides.append(Side(side.terms, side.limit + 1e-9 * size))
    return sides, equal


def _one(value: Any) -> float:
    return float(np.ravel(value)[0])
