"""A spec against a table: rows that break it, constraints that clash or never bind, parts and how they will be computed."""

from __future__ import annotations

from dataclasses import replace
from statistics import median_low
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.constraints import Constraint, DirectionalLinkage
from budge.errors import BudgeError, DrawError
from budge.frames import table
from budge.interaction import InteractionModel
from budge.parts import Part
from budge.spec.findings import EXACT_LIMIT, Broken, CheckReport, Clash, PartReport

__all__ = ["check", "impossible"]

FloatArray = npt.NDArray[np.float64]
IDLE_STARTS = 12  # unlike starts at which a constraint is tried
SECONDS = 10.0  # of CPU time in which idle constraints are looked for
PROVED_WITHIN = 2.0  # seconds in which a part is proved to be impossible for all
TRIES = 400  # draws for each constraint and start, where configurations cannot be counted


def check(im: InteractionModel, X: Any, *, starts: int = 25, examples: int = 3, seconds: float = SECONDS) -> CheckReport:
    """Check a model against a table.

    Every row is asked whether it breaks a bound or a value constraint. Sizes, clashes and idle constraints are looked
    for at `starts` typical rows, spread evenly over those that break nothing. Whether a constraint is idle is found by preparing its part
    without it; after so many `seconds` of CPU time the others are not tried, and are counted in the report.

    Examples
    --------
    >>> import budge, pandas as pd
    >>> im = budge.InteractionModel(
    ...     {"a": {"type": "binary"}, "b": {"type": "binary"}}, [budge.constraints.OneHot(("a", "b"), name="one of two")]
    ... )
    >>> report = check(im, pd.DataFrame({"a": [1, 0, 1], "b": [0, 1, 1]}, index=["ann", "bob", "cy"]))
    >>> report.ok, report.broken_rows
    (False, 1)
    >>> print(report.broken[0])
    one of two: 1 row. Exactly 1 of a, b is on. (row cy: a = 1, b = 1)
    """
    from budge.reach.status import broken_people

    frame = table(X)
    values = im.coding.encode(frame)
    found = broken_people(im, values)
    bad = np.zeros(len(values), dtype=bool)
    for _, who in found:
        bad |= who
    good = np.flatnonzero(~bad)
    chosen = np.unique(good[np.linspace(0, len(good) - 1, min(starts, len(good))).astype(int)]) if len(good) else good
    idle, untried = _idle(im, values[good], seconds)
    parts, clashes, sizes = _parts(im, values[chosen], [frame.index[int(i)] for i in chosen])
    return CheckReport(
        name=im.name,
        rows=len(frame),
        broken_rows=int(bad.sum()),
        broken=tuple(_broken(im, label, who, frame, examples) for label, who in found),
        clashes=clashes,
        idle=idle,
        untried=untried,
        parts=parts,
        starts=len(chosen),
        exact_starts=0 if im.effects else sum(size is not None and size <= EXACT_LIMIT for size in sizes),
        points=median_low(listed) if (listed := [s for s in sizes if s is not None]) else None,
        effects=bool(im.effects),
        measure=im.measure,
        warnings=im.warnings,
    )


def impossible(im: InteractionModel) -> tuple[tuple[str, ...], ...]:
    """Return constraints that no values within the bounds of their features meet together, for each part in which that is proved.

    Examples
    --------
    >>> import budge
    >>> features = {"a": {"type": "binary"}, "b": {"type": "binary"}}
    >>> impossible(budge.InteractionModel(features, [budge.constraints.Rule("a + b >= 3", name="three")]))
    (('three',),)
    """
    from budge.program.milp import PartProgram
    from budge.reach.forms import ignores_x

    found = []
    for part in im.parts:
        known = {f.name for f in part.features if f.type != "fixed"}
        told = [c for c in part.constraints if ignores_x(c) and set(c.scope) <= known and all(layer == "value" for layer, _ in c.reads)]
        free = {
            f.name: f.but(actionable=True, direction=None, max_increase=None, max_decrease=None, distribution=None)
            for f in part.features
            if any(f.name in c.scope for c in told)
        }
        start = {name: low if np.isfinite(low := f.range[0]) else 0.0 for name, f in free.items()}
        try:
            if told and PartProgram(Part(tuple(free.values()), tuple(c.bind(free) for c in told)), start, time_limit=PROVED_WITHIN).is_empty():
                found.append(tuple(c.label for c in told))
        except BudgeError:  # what is not linear, or takes too long, is not decided here
            continue
    return tuple(found)


def _broken(im: InteractionModel, label: str, who: npt.NDArray[np.bool_], frame: pd.DataFrame, most: int) -> Broken:
    constraint = next((c for c in im.constraints if c.label == label), None)
    if constraint is not None:
        names, what = constraint.scope, constraint.describe()
    else:
        name = label.removeprefix("bounds of ")
        low, high = im.by_name[name].range
        names, what = (name,), f"{name} lies between {low:g} and {high:g}."
    rows = np.flatnonzero(who)
    shown = tuple((frame.index[i], {name: _plain(frame[name].iloc[i]) for name in names}) for i in rows[:most])
    return Broken(label, what, len(rows), shown)


def _plain(value: Any) -> Any:
    if pd.isna(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def _parts(
    im: InteractionModel, rows: FloatArray, labels: list[Any]
) -> tuple[tuple[PartReport, ...], tuple[Clash, ...], list[int | None]]:
    """The parts as typical rows see them, what clashes, and how many points each row can reach (None: not to be listed)."""
    from budge.program.clash import clash
    from budge.reach.prepare import prepare

    place = {f.name: j for j, f in enumerate(im.features)}
    reports, totals = [], [1 if not im.effects else None] * len(rows)
    clashing: dict[tuple[str, ...], list[Any]] = {}
    for part in im.parts:
        report = PartReport(part.names, effects=bool(part.effects))
        if any(f.actionable for f in part.features):
            known: dict[bytes, Any] = {}
            for i, row in enumerate(rows):
                start = row[[place[name] for name in part.names]]
                x = dict(zip(part.names, start.tolist()))
                try:
                    if start.tobytes() not in known:
                        known[start.tobytes()] = prepare(part, x, im.measure)[0][1]
                    prepared = known[start.tobytes()]
                    report = _seen(report, prepared, _measures_differ(part, x, im.measure, prepared))
                    if prepared.empty[0]:
                        clashing.setdefault(clash(part, x) or (f"part {', '.join(part.names)}",), []).append(labels[i])
                    size = None if prepared.endless[0] else prepared.sizes[0]
                except BudgeError as error:
                    report, size = replace(report, problem=str(error)), None
                before = totals[i]
                totals[i] = None if size is None or before is None else before * size
        reports.append(report)
    clashes = tuple(Clash(names, len(who), who[0]) for names, who in clashing.items())
    return tuple(reports), clashes, totals


def _measures_differ(part: Part, x: dict[str, float], measure: str, prepared: Any) -> bool | None:
    """Return whether the two measures differ at this start; None where that needs a volume which is not known.

    A part that cannot be drawn without that volume raises. The other measure is advised only if the part can be drawn under it.
    """
    from budge.reach.prepare import prepare
    from budge.reach.streams import Stream, keys_of

    try:
        return bool(prepared.measures_differ[0])
    except DrawError as error:
        volume = measure == "volume"
        try:
            one = prepare(part, x, "configuration")[0][1] if volume else prepared
            one.draw(np.zeros(1, dtype=np.intp), Stream(keys_of(("check",), np.zeros((1, 1)))), 0, 1)
        except DrawError:
            raise error from None
        if not volume:
            return None
        (problem,) = error.problems
        raise DrawError(problem.what, where=problem.where, got=problem.got, remedy=f"{problem.remedy}, or use measure: configuration") from None


def _seen(report: PartReport, prepared: Any, differ: bool | None) -> PartReport:
    size = prepared.sizes[0]
    return replace(
        report,
        sizes=(*report.sizes, size) if size is not None else report.sizes,
        methods=tuple(dict.fromkeys((*report.methods, prepared.method))),
        continuous=report.continuous or bool(prepared.endless[0]),
        exact=report.exact and not prepared.approximate[0],
        measures_differ=report.measures_differ or bool(differ),
        measures_unknown=report.measures_unknown or differ is None,
    )


def _idle(im: InteractionModel, values: FloatArray, seconds: float) -> tuple[tuple[str, ...], int]:
    """Return the labels of constraints that exclude nothing, and how many were not tried."""
    found, known, until = list[str](), dict[bytes, int | None](), process_time() + seconds
    for k, constraint in enumerate(im.constraints if len(values) else ()):
        if process_time() > until:
            return tuple(found), len(im.constraints) - k
        if not _restricts(im, constraint, values, known):
            found.append(constraint.label)
    return tuple(found), 0


def _restricts(im: InteractionModel, constraint: Constraint, values: FloatArray, sizes: dict[bytes, int | None]) -> bool:
    """Whether the constraint excludes anything that the rest of its part allows: by counting, or by draws; in doubt, yes."""
    from budge.reach.prepare import prepare
    from budge.reach.streams import Stream, keys_of

    place = {f.name: j for j, f in enumerate(im.features)}
    if isinstance(constraint, DirectionalLinkage):  # it excludes nothing: it moves its targets, if its source moves
        low, high = im.by_name[constraint.source].moves(values[:, place[constraint.source]])
        return bool((high > low).any())
    part = next(p for p in im.parts if constraint.scope[0] in p.names)
    if not any(f.actionable for f in part.features):
        return True  # nothing moves, so that nothing can be told
    rest = Part(part.features, tuple(c for c in part.constraints if c is not constraint), part.links)
    unlike = np.unique(values[:, [place[name] for name in part.names]], axis=0)
    for start in unlike[np.linspace(0, len(unlike) - 1, min(IDLE_STARTS, len(unlike))).astype(int)]:
        x = dict(zip(part.names, start.tolist()))
        try:
            loose = prepare(rest, x, "configuration")[0][1]
            if loose.empty[0]:
                continue
            if loose.sizes[0] is not None and not loose.endless[0]:
                key = repr(part.names).encode() + start.tobytes()
                if key not in sizes:
                    sizes[key] = prepare(part, x, "configuration")[0][1].sizes[0]
                if sizes[key] != loose.sizes[0]:
                    return True
            else:
                drawn = loose.draw(np.zeros(1, dtype=np.intp), Stream(keys_of(part.names, start[None, :])), 0, TRIES)
                if not part.feasible(x, dict(zip(part.names, drawn))).all():
                    return True
        except BudgeError:
            return True
    return False
