"""Who is drawn how: decided here, for one part and many people at once.

Configurations are listed (or counted, where wide whole numbers are an interval or a polygon given the rest); real coordinates are drawn from intervals,
boxes or polytopes; what is not linear is checked by evaluation; a part with too many configurations to list is counted by a diagram. What cannot be
decided for several people together is decided for each alone, so that nobody's draws depend on who else is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import AdditiveLinkage, Constraint, LinearConstraint, OneHot, Rule
from budge.errors import DrawError
from budge.expressions import Formula, Some, Total
from budge.features import Feature
from budge.parts import PART_CONDITIONS, Part
from budge.reach.axes import is_weighed
from budge.reach.cells import Cell, Coordinate, TooManyCellsError, both, cells_of, has_room, joined, resolve, tightened
from budge.reach.core import MOST_ROWS, Core, TooManyError, build_core, change_interval, has_gaps, is_computed, listed_values
from budge.reach.fibres import not_positive
from budge.reach.forms import ApartError, forms_of, holding
from budge.reach.ladder import Ladder, MustListError
from budge.reach.large import counted, projected
from budge.reach.piece import Checks, Piece
from budge.reach.proposed import proposed
from budge.reach.starts import Starts, alike
from budge.reach.viable import possible_at
from budge.reach.view import View

__all__ = ["prepare"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
MOST_CELLS = 64
MOST_TRIED, WIDE = 30_000, 16  # rows of the cells that are tried; with more coordinates than so many, fewer are
AT_ONCE = 4096  # people who are prepared together
FEW_ROWS = 20_000  # configurations of one person that are listed; more are counted where they can be, and listed where not


def prepare(part: Part, x: Mapping[str, npt.ArrayLike], measure: str = "configuration") -> list[tuple[IntArray, Any]]:
    """Return what is needed to draw or list the part's changes: pieces, each with the places of its people."""
    pieces: list[tuple[IntArray, Any]] = []
    for people, starts in alike(Starts.of(part, x)):
        for at in range(0, len(people), AT_ONCE):
            some = slice(at, at + AT_ONCE)
            pieces += [(people[some][places], piece) for places, piece in _pieces(starts.take(some), measure)]
    return pieces


def _pieces(starts: Starts, measure: str) -> list[tuple[IntArray, Any]]:
    """Return the pieces of people who stand alike; in halves where they cannot be prepared together."""
    everybody = np.arange(len(starts))
    try:
        piece = _assembled(starts, measure)
    except (TooManyError, ApartError):
        if len(starts) == 1:
            return [(everybody, _alone(starts, measure))]
        half = len(starts) // 2
        first, second = (_pieces(starts.take(some), measure) for some in (slice(0, half), slice(half, None)))
        return first + [(places + half, piece) for places, piece in second]
    bare = piece.empty if piece.weights is not None else np.zeros(len(starts), dtype=bool)
    if not bare.any():
        return [(everybody, piece)]
    # nothing left is not yet empty: it may be feasible and without weight, which is another error
    kept, lost = np.flatnonzero(~bare), np.flatnonzero(bare)
    rest = [(kept, _assembled(starts.take(kept), measure))] if len(kept) else []
    return [*rest, *((lost[[i]], _weightless(starts.take(lost[[i]]), measure)) for i in range(len(lost)))]


def _weightless(starts: Starts, measure: str) -> Any:
    """Return one person's part of which nothing has weight: whether something is feasible is told all the same."""
    try:
        return _assembled(starts, measure, weighed=False)
    except TooManyError:
        return counted(starts) or _assembled(starts, measure, weighed=False, each=MOST_ROWS)


def _alone(starts: Starts, measure: str) -> Any:
    """Return one person's part that has more configurations than are listed with others: counted, else listed, else proposed."""
    real = _real(starts)

    def beside_reals(inner: Callable[[Starts], Any]) -> Any:
        if not real or measure != "configuration":
            return None
        return projected(starts, real, lambda core: _opened(core, None, real, (), real, measure), inner)

    found = counted(starts) or beside_reals(counted)
    if found is not None:
        return found
    try:
        return _assembled(starts, measure, each=MOST_ROWS)
    except TooManyError:
        return beside_reals(lambda others: proposed(others, measure)) or proposed(starts, measure)


def _assembled(starts: Starts, measure: str, weighed: bool = True, each: int = FEW_ROWS) -> Piece:
    """Return configurations and what they leave open; wide whole numbers that cannot be counted are listed, the narrowest first.

    With `weighed`, what the distributions give no weight to is left out.
    """
    part, real = starts.part, _real(starts)
    _refuse_many(part, real)
    wide, told = _countable(starts, real)
    while True:
        outside = (*real, *wide, *told)
        core = build_core(starts, outside, each=each, weighed=weighed)
        weights = _weights(core)
        if weighed and weights is not None:
            core.take(weights > 0)
            weights = weights[weights > 0]
        if not outside or not core.size:
            return Piece(part.names, len(starts), core.who, {**{name: np.zeros(0) for name in outside}, **core.change}, measure, weights)
        try:
            return _opened(core, weights, real, wide, outside, measure)
        except MustListError as error:
            if len(starts) > 1:
                raise ApartError from error
            narrowest = min(error.names, key=lambda name: (starts.up[name][0] - starts.down[name][0], name))
            wide = [name for name in wide if name != narrowest]
            told = [name for name in told if any(link.source in wide for link in part.links[name])]


def _refuse_many(part: Part, real: Sequence[str]) -> None:
    """Raise where more conditions couple continuous features than are drawn together, before any is looked at closely."""
    if not real or len(part.constraints) <= PART_CONDITIONS:
        return
    moving = set(real)
    plain = (LinearConstraint, OneHot, AdditiveLinkage)
    curved = [c for c in part.constraints if not isinstance(c, plain) and moving & set(c.scope) and not (isinstance(c, Rule) and c.parsed.is_row)]
    if len(curved) > PART_CONDITIONS:
        raise DrawError(
            f"{len(curved):,} conditions, functions or products couple continuous features; at most {PART_CONDITIONS} are drawn together",
            where=f"part {', '.join(part.names)}",
            remedy="couple fewer continuous features by them, or write them as linear rows",
        )


def _real(starts: Starts) -> list[str]:
    """Return the real features that stay open: those that can move and do not follow from what is listed."""
    part, found = starts.part, list[str]()
    for name in part.order:
        feature = part.by_name[name]
        if feature.type != "real" or listed_values(feature) is not None:
            continue
        if name in part.links:
            if any(link.source in found for link in part.links[name]) or not is_computed(starts, name):
                found.append(name)
        elif name not in starts.still:
            found.append(name)
    return found


def _countable(starts: Starts, real: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the wide whole numbers that may be counted instead of listed, and the targets that follow from them.

    At most two that constraints couple, beside at most one real feature; the widest by declaration are kept.
    """
    part, forms = starts.part, forms_of(starts.part)
    scopes = [forms.scope(c) for c in part.constraints]
    read = set().union(*scopes) | {link.source for link in part.linkages}
    follow = {name for name in part.links if name in starts.still and part.adds_up(name)}
    found = []
    for f in part.features:
        links = part.links.get(f.name, ())
        if f.type != "integer" or (f.distribution is not None and f.distribution.kind != "uniform"):
            continue
        if links:  # how far it goes depends on its sources: it is counted where nobody reads it
            if f.name not in read and not part.adds_up(f.name) and not has_gaps(starts, f.name) and not any(link.source in real for link in links):
                found.append(f.name)
        elif f.name in starts.wide and all(set(link.targets) <= follow for link in part.linkages if link.source == f.name):
            found.append(f.name)
    found.sort(key=lambda name: (-np.diff(part.by_name[name].range)[0], name))
    chosen: list[str] = []
    beside: dict[str, set[str]] = {name: set() for name in part.names}  # what is open and in a constraint with each

    def open_up(name: str) -> None:
        for scope in scopes_of.get(name, ()):
            for other in scope:
                beside[other].add(name)

    scopes_of: dict[str, list[frozenset[str]]] = {}
    for scope in scopes:
        for name in scope:
            scopes_of.setdefault(name, []).append(scope)
    for name in real:
        open_up(name)
    for name in found:
        near, todo = {name}, [name]
        while todo:  # what constraints and linkages couple to it, in any number of steps, through what is open
            new = beside[todo.pop()] - near
            near |= new
            todo += new
        if len(near.difference(real)) <= 2 and len(near.intersection(real)) <= 1:
            chosen.append(name)
            open_up(name)
    told = [name for name in part.order if name in follow and any(link.source in chosen for link in part.links[name])]
    return sorted(chosen), told


def _opened(core: Core, weights: FloatArray | None, real: Sequence[str], wide: Sequence[str], outside: Sequence[str], measure: str) -> Piece:
    """Return what configurations leave open."""
    starts, part = core.starts, core.starts.part
    view = View.of(core, real, wide)
    cells, curved, whole = _cells(view, wide)
    _refuse_hanging(core, real, wide)
    if wide and (len(cells) > 1 or whole or curved):
        touched = {name for c in curved for name in forms_of(part).scope(c)} if len(cells) == 1 and not whole else set(wide)
        if touched & set(wide):
            raise MustListError(sorted(touched & set(wide)))
    coordinates, thinned = _densities(view, cells)
    boxes = tuple(tightened(cell, coordinates) for cell in cells)
    ladder = Ladder.of(boxes[0], coordinates) if wide else None
    if ladder is not None and ladder.reals and (measure == "volume" or thinned or curved):
        raise MustListError(wide)
    if ladder is not None and ladder.counts.dtype == object and len(starts) > 1:  # beyond int64 together: each alone
        raise ApartError
    return Piece(
        names=part.names, people=len(starts), who=core.who, changes=core.change, measure=measure, weights=weights,
        forms={name: view.symbols["change", name] for name in outside}, stops=view.stops, coordinates=tuple(coordinates), boxes=boxes, ladder=ladder,
        checks=_checks(core, curved, whole) if curved or whole else None, densities=_thinning(core, thinned, real, measure) if thinned else None,
        possible=possible_at(view, curved) if curved and not whole else None,
    )  # fmt: skip


def _refuse_hanging(core: Core, real: Sequence[str], wide: Sequence[str]) -> None:
    """Nothing open may hang on an own action that its change does not tell."""
    part = core.starts.part
    hangs = [name for name in (*real, *wide) for link in part.links.get(name, ()) if part.split(link.source) == "guess"]
    if not core.folded or not hangs:
        return
    if not set(hangs) & set(real):  # whole numbers can be listed instead
        raise MustListError(hangs)
    raise DrawError(
        "a continuous feature hangs on an own action that its change does not tell",
        where=f"part {', '.join(part.names)}",
        remedy="make the whole-numbered targets of inequality linkages not actionable",
    )


def _weights(core: Core) -> FloatArray | None:
    """Return the product of the densities of the discrete features' distributions."""
    weights = None
    for f in core.starts.part.features:
        if f.name not in core.change or not is_weighed(f, float(core.starts.x[f.name][0])):
            continue
        assert f.distribution is not None
        values = core.x[f.name] + core.change[f.name]
        if f.distribution.kind == "log" and (values <= 0).any():
            raise not_positive(f.name, float(values.min()))
        density = f.distribution.density(values, f.levels)
        weights = density if weights is None else weights * density
    return weights


def _cells(view: View, wide: Sequence[str]) -> tuple[list[Cell], list[Constraint], bool]:
    """Return what is open as disjoint cells; the constraints that must be evaluated; whether the linkages must be, too.

    What splits it into too many cells is evaluated instead.
    """
    core, part, m = view.core, view.core.starts.part, view.core.size
    forms = forms_of(part)
    cells = [Cell(np.ones(m, dtype=bool))]
    curved: list[Constraint] = []
    whole = False
    outside = {name for name in part.names if name not in core.change}
    asked: list[tuple[Formula | Total, Constraint | None]] = [(formula, None) for formula in view.links]
    for constraint in part.constraints:
        if not forms.scope(constraint) & outside:
            continue
        if core.folded and any(layer == "action" and part.split(name) == "guess" for layer, name in constraint.reads):
            curved.append(constraint)  # one change stands for several own actions here: any of them will do
            whole = True
            continue
        stopped = any(layer != "action" and name in view.stops for layer, name in constraint.reads)
        formula = None if stopped else forms.total(constraint, core.x, view.known) or forms.formula(constraint, core.x, view.known)
        if formula is None:
            curved.append(constraint)
        else:
            asked.append((resolve(formula, view.known, view.symbols), constraint))
    tried, there = 0, tightened(cells[0], view.coordinates).exists
    for formula, source in sorted(asked, key=lambda pair: (isinstance(pair[0], Some), "" if pair[1] is None else pair[1].key)):
        try:
            if tried > MOST_TRIED // max(1, 2 * (len(view.coordinates) // WIDE) - 1):
                raise TooManyCellsError
            split, looked = _split(cells, cells_of(formula, m, wide), view, there)
            tried += looked
        except TooManyCellsError:
            split = []
        if 0 < len(split) <= MOST_CELLS:
            cells = split
        elif len(core.starts) > 1:
            raise ApartError
        elif source is None:
            whole = True
        else:
            curved.append(source)
    return cells, curved, whole


def _split(cells: Sequence[Cell], own: Sequence[Cell], view: View, there: BoolArray) -> tuple[list[Cell], int]:
    """Return the cells in which both hold, as far as they are not too many, and how many rows were looked at for that."""
    merged = (cell for a in cells for b in own if (cell := both(a, b)) is not None)
    first = list(islice(merged, 2))
    if len(first) < 2:
        return first or [Cell(np.zeros(view.core.size, dtype=bool))], 0
    looked = 0

    def with_room() -> Iterator[Cell]:
        nonlocal looked
        for cell in chain(first, merged):
            looked += len(cell.rows)
            if has_room(cell, view.coordinates, there):
                yield cell

    return joined(with_room(), MOST_CELLS) or joined(first[:1], 1), looked


def _densities(view: View, cells: Sequence[Cell]) -> tuple[list[Coordinate], list[Feature]]:
    """Log densities are drawn by inversion where the coordinate stands alone; elsewhere by thinning."""
    part = view.core.starts.part
    uneven = [f for f in part.features if f.name in view.real and f.distribution is not None and f.distribution.kind == "log"]
    if len(cells) > 1 and len(view.core.starts) > 1 and uneven:
        raise ApartError
    joint = {name for cell in cells for row in cell.rows for name in row.coefficients if len(row.coefficients) > 1}
    alone = [f.name for f in uneven if f.name not in joint and f.name not in part.links and len(cells) == 1]
    placed = [
        Coordinate(c.name, c.low, c.high, c.whole, view.core.x[c.name]) if c.name in alone else c for c in view.coordinates
    ]
    return placed, [f for f in uneven if f.name not in alone]


def _checks(core: Core, curved: Sequence[Constraint], whole: bool) -> Checks:
    """Return what decides on a proposed point: the masks of what is not linear, or the definition itself."""
    part = core.starts.part

    def checks(change: Mapping[str, FloatArray], rows: IntArray) -> BoolArray:
        x = {name: core.starts.x[name][core.who[rows]] for name in part.names}
        if whole:
            return np.array(np.broadcast_to(part.feasible(x, dict(change)), (len(rows),)))
        action = part.own_actions(x, change, dict.fromkeys(part.names, 0.0))
        for name, column in core.action.items():
            action[name] = column[rows]
        return holding(curved, x, action, change, len(rows))

    return checks


def _thinning(core: Core, features: Sequence[Feature], real: Sequence[str], measure: str) -> Any:
    """Return the share of the highest density that a point has: densities are highest at the lowest value that can be reached.

    Of one configuration where that stands; of all that a person has where configurations are drawn by volume, so that densities compare.
    """
    lowest = {}
    for f in features:
        lowest[f.name] = core.x[f.name] + change_interval(core, f.name, real)[0]
        if measure == "volume":
            least = np.full(len(core.starts), np.inf)
            np.minimum.at(least, core.who, lowest[f.name])
            lowest[f.name] = least[core.who]
        if (lowest[f.name] <= 0).any():
            raise not_positive(f.name, float(lowest[f.name].min()))

    def share(change: Mapping[str, FloatArray], rows: IntArray) -> FloatArray:
        result = np.ones(len(rows))
        for f in features:
            result *= lowest[f.name][rows] / (core.starts.x[f.name][core.who[rows]] + change[f.name])
        return result

    return share
