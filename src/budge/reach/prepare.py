"""Who is drawn how: decided here, for one part at one start.

In this order: configurations are listed (or counted, where a whole-numbered coordinate is an interval given the
rest); real coordinates are drawn from boxes or polytopes; what is not linear is checked by evaluation; and a part
with too many configurations to list is drawn by rejection from its box.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint
from budge.errors import DrawError
from budge.expressions import Formula, Some
from budge.features import Feature
from budge.parts import Part
from budge.reach.cells import Cell, TooManyCellsError, both, boxes, cells_of, resolve
from budge.reach.core import Core, TooManyError, build_core, change_interval, has_gaps, is_computed, listed_values
from budge.reach.fibre import Mixed
from budge.reach.forms import forms_of, limits
from budge.reach.listed import Counted, Listed
from budge.reach.rejection import Rejection
from budge.reach.shapes import Coordinate, not_positive
from budge.reach.shave import possible_at
from budge.reach.view import View

__all__ = ["Prepared", "prepare_part"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Prepared = Listed | Mixed | Rejection
COUNT_FROM = 512  # a whole-numbered feature with more values than this is counted where it can be, not listed
MOST_CELLS = 64


def prepare_part(part: Part, x: Mapping[str, float], measure: str = "configuration") -> Prepared:
    """Everything needed to draw or enumerate the part's changes from x."""
    here = {name: float(x[name]) for name in part.names}
    lone = part.features[0]
    if len(part.features) == 1 and lone.discrete and lone.distribution is None and not part.constraints and _span(lone, here) <= COUNT_FROM:
        low, high = limits(lone, here[lone.name])
        return Listed(part.names, np.arange(low, high + 1.0)[:, None])
    real = _real(part, here)
    stairs = {} if real else _stairs(part, here)
    for counted in (_countable(part, here, real, stairs), ()):
        try:
            return _assemble(part, here, real, tuple(counted), {s: t for s, t in stairs.items() if s in counted}, measure)
        except _NotCountableError:
            continue
        except TooManyError:
            if not counted:
                break
    return Rejection.of(part, here, measure)


def _span(feature: Feature, x: Mapping[str, float]) -> float:
    low, high = limits(feature, x[feature.name])
    return high - low


class _NotCountableError(Exception):
    """A coordinate is not an interval given the rest after all."""


def _real(part: Part, x: Mapping[str, float]) -> list[str]:
    """The real features that are left to the fibre: those that can move and do not follow from what is listed."""
    found: list[str] = []
    for name in part.order:
        feature = part.by_name[name]
        if feature.type != "real" or listed_values(feature) is not None:
            continue
        if name in part.links:
            hangs = any(link.source in found for link in part.links[name])
            if hangs or not is_computed(part, name, x):
                found.append(name)
        elif _span(feature, x) > 0:
            found.append(name)
    return found


def _stairs(part: Part, x: Mapping[str, float]) -> dict[str, tuple[str, int]]:
    """Sources with one target that can be counted together: the source moves one way, ``<=``, and nobody reads the target."""
    found: dict[str, tuple[str, int]] = {}
    for link in part.linkages:
        source, target = part.by_name[link.source], next(iter(link.targets))
        scale = float(link.targets[target])
        down, up = limits(source, x[link.source])
        alone = len(link.targets) == 1 and len(part.links[target]) == 1 and sum(other.source == link.source for other in part.linkages) == 1
        read = target in {name for c in part.constraints for name in forms_of(part).scope(c)} | {other.source for other in part.linkages}
        plain = link.relation == "<=" and link.on_exceed == "allow" and scale == round(scale) and abs(scale) < 1e6
        still = _span(part.by_name[target], x) == 0 and not np.isnan(x[target])
        whole = all(f.type == "integer" and f.distribution is None for f in (source, part.by_name[target]))
        if alone and plain and still and whole and not read and link.source not in part.links and (down == 0 or up == 0):
            found[link.source] = (target, round(scale))
    return found


def _countable(part: Part, x: Mapping[str, float], real: Sequence[str], stairs: Mapping[str, tuple[str, int]]) -> list[str]:
    """Whole-numbered features that may be counted: an interval once the others are known."""
    forms = forms_of(part)
    scopes = [forms.scope(c) for c in part.constraints]
    climbed = {source for source in stairs if _span(part.by_name[source], x) >= COUNT_FROM}
    sources = {link.source for link in part.linkages} - climbed
    targets = {stairs[source][0] for source in climbed}
    width = {}
    for f in part.features:
        if f.name in targets:
            continue
        plain = f.type == "integer" and (f.distribution is None or f.distribution.kind == "uniform")
        if not plain or f.name in sources or part.split(f.name) == "guess" or (f.name in part.links and has_gaps(part, f.name, x)):
            continue
        links = part.links.get(f.name, ())
        if links and (any(link.source in real for link in links) or all(link.relation == "==" and link.on_exceed != "clip" for link in links)):
            continue
        low, high = change_interval(part, f.name, x, {}, part.names)
        width[f.name] = float(high - low) + 1
    chosen: list[str] = []
    for name in sorted(width, key=lambda name: -width[name]):
        read = [scope for scope in scopes if name in scope]
        if width[name] <= COUNT_FROM and (read or name not in part.links):
            continue
        near = set().union(*read)
        if not near & (set(chosen) | set(real)):
            chosen.append(name)
    return chosen


def _assemble(
    part: Part,
    x: Mapping[str, float],
    real: Sequence[str],
    counted: tuple[str, ...],
    stairs: Mapping[str, tuple[str, int]],
    measure: str,
    weighed: bool = True,
) -> Prepared:
    """The part made ready. With `weighed`, what the distributions give no weight to is left out: it is never reached."""
    outside = (*real, *counted, *(target for target, _ in stairs.values()))
    core = build_core(part, x, outside, weighed=weighed)
    weights = _weights(part, x, core)
    if weighed and weights is not None:
        core.take(weights > 0)
        weights = weights[weights > 0]
        made = _finished(part, x, real, counted, stairs, measure, core, weights)
        # nothing left is not yet empty: it may be feasible and without weight, which is another error
        return _assemble(part, x, real, counted, stairs, measure, weighed=False) if made.empty else made
    return _finished(part, x, real, counted, stairs, measure, core, weights)


def _finished(
    part: Part,
    x: Mapping[str, float],
    real: Sequence[str],
    counted: tuple[str, ...],
    stairs: Mapping[str, tuple[str, int]],
    measure: str,
    core: Core,
    weights: FloatArray | None,
) -> Prepared:
    """What the configurations leave open, counted or as a fibre."""
    outside = (*real, *counted, *(target for target, _ in stairs.values()))
    if not outside:
        return Listed.of(part.names, core, (), weights)
    view = View.of(part, x, core, real, counted, [target for target, _ in stairs.values()])
    cells, curved, whole = _cells(view, counted)
    hangs = [name for name in outside for link in part.links.get(name, ()) if part.split(link.source) == "guess"]
    if core.folded and hangs:
        if not set(hangs) & set(real):  # whole numbers can be listed instead
            raise _NotCountableError
        raise DrawError(
            "a continuous feature hangs on an own action that its change does not tell",
            where=f"part {', '.join(part.names)}",
            remedy="make the whole-numbered targets of inequality linkages not actionable",
        )
    if counted and (len(cells) > 1 or whole or any(forms_of(part).scope(c) & set(counted) for c in curved)):
        raise _NotCountableError
    if not real:
        return _counted(part, core, view.coordinates, cells[0], weights, stairs)
    uneven = [f for f in part.features if f.name in real and f.distribution is not None and f.distribution.kind == "log"]
    coordinates, thinned = _densities(view.coordinates, uneven, cells, x, part)
    return Mixed(
        names=part.names,
        core_changes=core.change,
        forms={name: view.symbols["change", name] for name in outside},
        coordinates=tuple(coordinates),
        cells=tuple(cells),
        size_rows=core.size,
        measure=measure,
        weights=weights,
        checks=_checks(part, x, core, curved, whole) if curved or whole else None,
        thins=_thinning(thinned, x) if thinned else None,
        possible=possible_at(part, core, view, curved) if curved and not whole else None,
        stops=view.stops,
        label=", ".join(part.names),
    )


def _counted(
    part: Part,
    core: Core,
    coordinates: Sequence[Coordinate],
    cell: Cell,
    weights: FloatArray | None,
    stairs: Mapping[str, tuple[str, int]],
) -> Listed:
    order = [c.name for c in coordinates]
    low, high, exists, coupled = boxes(
        cell, order, np.stack([c.low for c in coordinates], axis=1), np.stack([c.high for c in coordinates], axis=1), [True] * len(order)
    )
    if coupled:
        raise _NotCountableError
    found = []
    for j, name in enumerate(order):
        count = np.where(exists, np.maximum(high[:, j] - low[:, j] + 1, 0), 0).astype(np.int64)
        found.append(Counted(name, low[:, j], count, stairs.get(name)))
    most = np.ones(core.size)
    for c in found:
        furthest = np.maximum(np.abs(c.low), np.abs(c.low + c.count)) if c.stairs else 0.0
        most *= c.count.astype(float) * (1.0 + (abs(c.stairs[1]) if c.stairs else 0) * furthest)
    if most.sum() > 2.0**60:
        raise TooManyError
    return Listed.of(part.names, core, tuple(found), weights)


def _weights(part: Part, x: Mapping[str, float], core: Core) -> FloatArray | None:
    """The product of the densities of the discrete features' distributions."""
    weights = None
    for f in part.features:
        if f.distribution is None or f.distribution.kind == "uniform" or f.name not in core.change:
            continue
        if np.isnan(x[f.name]) or (f.type == "real" and listed_values(f) is None):
            continue
        values = x[f.name] + core.change[f.name]
        if f.distribution.kind == "log" and (values <= 0).any():
            raise not_positive(f.name, float(values.min()))
        density = f.distribution.density(values, f.levels)
        weights = density if weights is None else weights * density
    return weights


def _cells(view: View, counted: Sequence[str]) -> tuple[list[Cell], list[Constraint], bool]:
    """The fibre as disjoint cells; the constraints that must be evaluated; whether the linkages must be, too.

    What splits the fibre into too many cells is evaluated instead.
    """
    part, m = view.part, view.core.size
    forms = forms_of(part)
    cells = [Cell(np.ones(m, dtype=bool))]
    curved: list[Constraint] = []
    whole = False
    outside = {name for name in part.names if name not in view.core.change}
    asked: list[tuple[Formula, Constraint | None]] = [(formula, None) for formula in view.links]
    for constraint in part.constraints:
        if not forms.scope(constraint) & outside:
            continue
        if view.core.folded and any(layer == "action" and part.split(name) == "guess" for layer, name in constraint.reads):
            curved.append(constraint)  # one change stands for several own actions here: any of them will do
            whole = True
            continue
        stopped = any(layer != "action" and name in view.stops for layer, name in constraint.reads)
        formula = None if stopped else forms.formula(constraint, view.x, view.known)
        if formula is None:
            curved.append(constraint)
        else:
            asked.append((resolve(formula, view.known, view.symbols), constraint))
    for formula, source in sorted(asked, key=lambda pair: isinstance(pair[0], Some)):
        try:
            split = [merged for a in cells for b in cells_of(formula, m, counted) if (merged := both(a, b)) is not None]
        except TooManyCellsError:
            split = []
        else:
            split = split or [Cell(np.zeros(m, dtype=bool))]
        if len(split) > 1:
            split = [cell for cell in split if view.has_room(cell)] or split[:1]
        if 0 < len(split) <= MOST_CELLS:
            cells = split
        elif source is None:
            whole = True
        else:
            curved.append(source)
    return cells, curved, whole


def _densities(
    coordinates: Sequence[Coordinate], uneven: Sequence[Feature], cells: Sequence[Cell], x: Mapping[str, float], part: Part
) -> tuple[list[Coordinate], list[Feature]]:
    """Log densities are drawn by inversion where the coordinate stands alone; elsewhere by thinning."""
    joint = {name for cell in cells for row in cell.rows for name in row.coefficients if len(row.coefficients) > 1}
    alone = [f for f in uneven if f.name not in joint and f.name not in part.links and len(cells) == 1]
    placed = [
        Coordinate(c.name, c.low, c.high, c.whole, x[c.name]) if any(f.name == c.name for f in alone) else c for c in coordinates
    ]
    return placed, [f for f in uneven if f not in alone]


def _checks(
    part: Part, x: Mapping[str, float], core: Core, curved: Sequence[Constraint], whole: bool
) -> Callable[[Mapping[str, FloatArray], npt.NDArray[np.int64]], BoolArray]:
    """What decides on a proposed point: the masks of what is not linear, or the definition itself."""
    start = {name: np.asarray(value) for name, value in x.items()}

    def checks(change: Mapping[str, FloatArray], rows: npt.NDArray[np.int64]) -> BoolArray:
        if whole:
            return np.array(np.broadcast_to(part.feasible(x, dict(change)), (len(rows),)))
        action = part.own_actions(x, change, dict.fromkeys(part.names, 0.0))
        for name, column in core.action.items():
            action[name] = column[rows]
        good = np.ones(len(rows), dtype=bool)
        for constraint in curved:
            scope = constraint.scope
            good &= constraint.mask({n: start[n] for n in scope}, {n: action[n] for n in scope}, {n: change[n] for n in scope})
        return good

    return checks


def _thinning(features: Sequence[Feature], x: Mapping[str, float]) -> Callable[[Mapping[str, FloatArray], np.random.Generator], BoolArray]:
    """Accept in proportion to the densities; their highest value is at the lowest value that can be reached."""

    def thins(change: Mapping[str, FloatArray], rng: np.random.Generator) -> BoolArray:
        good = np.ones(len(next(iter(change.values()))), dtype=bool)
        for f in features:
            assert f.distribution is not None
            low = max(float(f.reach(x[f.name])[0]), 1e-12)
            good &= rng.random(len(good)) * f.distribution.density(low, None) <= f.distribution.density(x[f.name] + change[f.name], None)
        return good

    return thins
