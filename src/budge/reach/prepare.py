"""Who is drawn how: decided here, for one part at one start.

In this order: configurations are listed (or counted, where a whole-numbered coordinate is an interval given the
rest); real coordinates are drawn from boxes or polytopes; what is not linear is checked by evaluation; and a part
with too many configurations to list is drawn by rejection from its box.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint
from budge.expressions import All, Formula, Linear, Row, Some, Truth, Var
from budge.features import Feature
from budge.parts import Part
from budge.reach.cells import Cell, TooManyCellsError, cells_of, resolve
from budge.reach.core import Core, TooManyError, build_core, change_interval, listed_values
from budge.reach.fibre import Coordinate, Mixed
from budge.reach.listed import Counted, Listed
from budge.reach.rejection import Rejection

__all__ = ["Prepared", "prepare_part"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Prepared = Listed | Mixed | Rejection
COUNT_FROM = 4096  # a lone whole-numbered feature with more values than this is counted, not listed
CROWDED = 200_000  # a product of domains beyond this looks for a coordinate that can be counted


def prepare_part(part: Part, x: Mapping[str, float], measure: str = "configuration") -> Prepared:
    """Everything needed to draw or enumerate the part's changes from x."""
    here = {name: float(x[name]) for name in part.names}
    real = [f.name for f in part.features if f.type == "real" and listed_values(f) is None and _can_move(part, f, here)]
    for counted in (_countable(part, here, real), ()):
        try:
            return _assemble(part, here, real, tuple(counted), measure)
        except _NotCountableError:
            continue
        except TooManyError:
            if not counted:
                return Rejection.of(part, here, measure)
    return Rejection.of(part, here, measure)


class _NotCountableError(Exception):
    """A coordinate is not an interval given the rest after all."""


def _can_move(part: Part, feature: Feature, x: Mapping[str, float]) -> bool:
    low, high = feature.moves(x[feature.name])
    return bool(high > low) or feature.name in part.links


def _countable(part: Part, x: Mapping[str, float], real: Sequence[str]) -> list[str]:
    """Whole-numbered features that may be counted: an interval once the others are known."""
    scopes = [set(c.scope) for c in part.constraints]
    sources = {link.source for link in part.linkages}
    crowd = 1.0
    width = {}
    for f in part.features:
        if f.name in real:
            continue
        low, high = change_interval(part, f.name, x, {}, part.names)
        width[f.name] = float(high - low) + 1
        crowd *= width[f.name]
    chosen: list[str] = []
    for f in sorted(part.features, key=lambda f: -width.get(f.name, 0.0)):
        name = f.name
        plain = f.type == "integer" and (f.distribution is None or f.distribution.kind == "uniform")
        if not plain or name in sources or part.split(name) == "guess":
            continue
        links = part.links.get(name, ())
        if any(link.source in real for link in links) or all(link.relation == "==" and link.on_exceed != "clip" for link in links) and links:
            continue
        read = any(name in scope for scope in scopes)
        if (not read and (links or width[name] > COUNT_FROM)) or (read and crowd > CROWDED and width[name] > 64):
            near = set().union(*(scope for scope in scopes if name in scope)) if read else set()
            if not near & (set(chosen) | set(real)):
                chosen.append(name)
    return chosen


def _assemble(part: Part, x: Mapping[str, float], real: Sequence[str], counted: tuple[str, ...], measure: str) -> Prepared:
    outside = (*real, *counted)
    core = build_core(part, x, outside)
    weights = _weights(part, x, core)
    names = part.names
    if not outside:
        return Listed.of(names, core, (), weights)
    m = core.size
    known, symbols, coordinates, extra = _symbols(part, x, core, real, counted)
    linear, curved = [*extra], []
    for constraint in part.constraints:
        if not set(constraint.scope) & set(outside):
            continue
        formula = constraint.rows({n: x[n] for n in constraint.scope}, {v: k for v, k in known.items() if v[1] in constraint.scope})
        if formula is None:
            curved.append(constraint)
        else:
            linear.append(resolve(formula, known, symbols))
    cells, curved = _cells(linear, curved, part, m, counted, outside)
    if counted and (len(cells) > 1 or any(set(c.scope) & set(counted) for c in curved)):
        raise _NotCountableError
    if not real:
        return _counted(part, core, coordinates, cells[0], weights)
    forms = {name: symbols["change", name] for name in outside}
    uneven = [f for f in part.features if f.name in real and f.distribution is not None and f.distribution.kind == "log"]
    coordinates, thinned = _densities(coordinates, uneven, cells, x, part)
    accepts = _acceptance(part, x, core, curved, thinned) if curved or thinned else None
    return Mixed(
        names=names,
        core_changes=core.change,
        forms=forms,
        coordinates=tuple(coordinates),
        cells=tuple(cells),
        size_rows=m,
        measure=measure,
        weights=weights,
        accepts=accepts,
        label=", ".join(names),
    )


def _counted(part: Part, core: Core, coordinates: Sequence[Coordinate], cell: Cell, weights: FloatArray | None) -> Listed:
    from budge.reach.cells import boxes

    order = [c.name for c in coordinates]
    low, high, exists, coupled = boxes(
        cell, order, np.stack([c.low for c in coordinates], axis=1), np.stack([c.high for c in coordinates], axis=1), [True] * len(order)
    )
    if coupled:
        raise _NotCountableError
    found = []
    for j, name in enumerate(order):
        count = np.where(exists, np.maximum(high[:, j] - low[:, j] + 1, 0), 0).astype(np.int64)
        found.append(Counted(name, low[:, j], count))
    sizes = np.prod([c.count.astype(float) for c in found], axis=0)
    if sizes.sum() > 2.0**62:
        raise TooManyError
    return Listed.of(part.names, core, tuple(found), None if weights is None else weights * sizes)


def _weights(part: Part, x: Mapping[str, float], core: Core) -> FloatArray | None:
    """The product of the densities of the discrete features' distributions."""
    weights = None
    for f in part.features:
        if f.distribution is None or f.distribution.kind == "uniform" or f.name not in core.change:
            continue
        if f.type == "real" and listed_values(f) is None:
            continue
        density = f.distribution.density(x[f.name] + core.change[f.name], f.levels)
        weights = density if weights is None else weights * density
    return weights


def _symbols(
    part: Part, x: Mapping[str, float], core: Core, real: Sequence[str], counted: Sequence[str]
) -> tuple[dict[Var, FloatArray | float], dict[Var, Linear], list[Coordinate], list[Formula]]:
    """Every variable as a known column or as a form in the coordinates; the coordinates; rows of open linkages."""
    m = core.size
    known: dict[Var, FloatArray | float] = {}
    symbols: dict[Var, Linear] = {}
    coordinates: list[Coordinate] = []
    extra: list[Formula] = []
    for name in part.order:
        if name in core.change:
            known["action", name], known["change", name] = core.action[name], core.change[name]
            known["value", name] = x[name] + core.change[name]
            if any(link.source in real for link in part.links.get(name, ())):
                extra.append(resolve(_open_rows(part, name, x), known, symbols))
            continue
        feature, links = part.by_name[name], part.links.get(name, ())
        own = Linear({("coordinate", name): 1.0}, 0.0)
        down, up = feature.moves(x[name])
        told = links and all(link.relation == "==" and link.on_exceed != "clip" for link in links)
        if told:
            induced = Linear({}, 0.0)
            for link in links:
                source = symbols.get(("action", link.source), known.get(("action", link.source), 0.0))
                induced = induced + (source if isinstance(source, Linear) else Linear({}, source)) * float(link.targets[name])
            action = own if feature.actionable and up > down else Linear({}, 0.0)
            change = action + induced
            if action.terms:
                coordinates.append(Coordinate(name, np.full(m, float(down)), np.full(m, float(up))))
            if links[0].on_exceed == "reject":
                floor, ceiling = (float(bound) - x[name] for bound in feature.reach(x[name]))
                extra += [Row(change - ceiling, "<="), Row(floor - change, "<=")]
            symbols["action", name] = action
        else:
            low, high = change_interval(part, name, x, core.action, real) if links else (down, up)
            coordinates.append(
                Coordinate(name, np.array(np.broadcast_to(low, (m,)), dtype=float), np.array(np.broadcast_to(high, (m,)), dtype=float), name in counted)
            )
            change = own
            if not links:
                symbols["action", name] = own
            elif not feature.actionable:
                symbols["action", name] = Linear({}, 0.0)
            symbols["change", name] = change
            if any(link.source in real for link in links):
                extra.append(resolve(_open_rows(part, name, x), known, symbols))
        symbols["change", name] = change
        symbols["value", name] = change + x[name]
    return known, symbols, coordinates, extra


def _open_rows(part: Part, name: str, x: Mapping[str, float]) -> Formula:
    """The interval of a linked target's change as rows, its own action anywhere within its moves."""
    feature, links = part.by_name[name], part.links[name]
    down, up = (float(m) for m in feature.moves(x[name]))
    floor, ceiling = (float(b) - x[name] for b in feature.reach(x[name]))
    moved = Linear({("change", name): 1.0}, 0.0)
    options: list[Formula] = []
    for branches in product(*(link.branches(name, x) for link in links)):
        low, high = Linear({}, down), Linear({}, up)
        guards: list[Formula] = []
        for guard, least, most in branches:
            guards += guard
            low, high = low + least, high + most
        between: Formula = All((Row(low - moved, "<="), Row(moved - high, "<=")))
        if links[0].on_exceed == "clip":
            at_top = All((Row(moved - ceiling, "=="), Row(moved - high, "<=")))
            at_bottom = All((Row(moved - floor, "=="), Row(low - moved, "<=")))
            between = Some((between, at_top, at_bottom))
        options.append(All((*guards, between)))
    return options[0] if len(options) == 1 else Some(tuple(options))


def _cells(
    linear: Sequence[Formula], curved: list[Constraint], part: Part, m: int, counted: Sequence[str], outside: Sequence[str]
) -> tuple[list[Cell], list[Constraint]]:
    try:
        return cells_of(All(tuple(linear)) if linear else Truth(True), m, counted), curved
    except TooManyCellsError:
        return [Cell(np.ones(m, dtype=bool))], [c for c in part.constraints if set(c.scope) & set(outside)]


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


def _acceptance(
    part: Part, x: Mapping[str, float], core: Core, curved: Sequence[Constraint], thinned: Sequence[Feature]
) -> Callable[[Mapping[str, FloatArray], npt.NDArray[np.int64], np.random.Generator], BoolArray]:
    """What decides on a proposed point: the masks of what is not linear, and thinning by density."""
    start = {name: np.asarray(value) for name, value in x.items()}

    def accepts(change: Mapping[str, FloatArray], rows: npt.NDArray[np.int64], rng: np.random.Generator) -> BoolArray:
        action = part.own_actions(x, change, {n: 0.0 for n in part.names})
        for name, column in core.action.items():
            action[name] = column[rows]
        good = np.ones(len(rows), dtype=bool)
        for constraint in curved:
            scope = constraint.scope
            good &= constraint.mask({n: start[n] for n in scope}, {n: action[n] for n in scope}, {n: change[n] for n in scope})
        for f in thinned:
            assert f.distribution is not None
            low = max(f.reach(x[f.name])[0], 1e-12)
            good &= rng.random(len(rows)) * f.distribution.density(low, None) <= f.distribution.density(x[f.name] + change[f.name], None)
        return good

    return accepts
