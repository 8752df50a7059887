"""A few people of an audit, chosen by rule, with their points and what came of each: what a report shows in full and a saved run keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from budge.audit.ask import Answers, answers_of, points_at, points_of
from budge.audit.sources import Chunk, TableSource
from budge.errors import BudgeError, InputError, StorageError
from budge.features import Feature
from budge.interaction import InteractionModel
from budge.reach.reacher import reacher
from budge.stats import Claims, Counts
from budge.stored import Arrays

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["Case", "Kept", "Reached", "as_given", "cases_of", "chosen", "kept_cases", "reached", "read_cases"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
MOST_POINTS = 2000  # of one person
_COUNTED = ("exact", "sample", "sequential", "weighted")  # laws whose hits are hits among the points themselves


@dataclass(frozen=True)
class Reached:
    """The points that the audit asked about for one person, and what came of each."""

    features: tuple[Feature, ...]
    values: FloatArray  # the features as numbers, one row per point
    start: FloatArray
    hit: BoolArray
    weights: FloatArray  # they add up to one
    points: int  # how many there are; more than rows where only some are shown
    exact: bool
    lost: int = 0  # points without an answer, which count as misses here
    asked: tuple[Chunk, Answers] | None = None  # what was asked and answered, where the model is at hand

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(f.name for f in self.features)

    def given(self, j: int, value: float) -> Any:
        """Return a value of the j-th feature as the caller knows it."""
        return as_given(self.features[j], value)


@dataclass(frozen=True)
class Case:
    """One person: why they were chosen, where they stand in the rows, their points, and the least change as a point where it is known to be that."""

    kind: str
    at: int
    points: Reached | None = None
    least: FloatArray | None = None
    method: str = ""  # how the least change is known

    def moves(self) -> list[tuple[str, Any, Any]]:
        """Return what the least change moves: (feature, from, to)."""
        if self.points is None or self.least is None:
            return []
        differ = np.flatnonzero(~_same(self.least, self.points.start))
        return [(self.points.names[j], self.points.given(j, self.points.start[j]), self.points.given(j, self.least[j])) for j in differ.tolist()]


@dataclass(frozen=True)
class Kept:
    """The points of a case as a saved run has them: columns that move, their values, and the row of the least change (-1 where it is not known)."""

    start: FloatArray
    columns: npt.NDArray[np.int64]
    values: FloatArray
    hit: BoolArray
    weights: FloatArray
    least: int


def as_given(feature: Feature, value: float) -> Any:
    """Return a number inside budge as the caller knows it."""
    if feature.levels is not None and not np.isnan(value):
        return feature.levels[int(value)]
    return int(value) if feature.discrete and not np.isnan(value) else float(value)


def chosen(counts: Counts, claims: Claims, closest: Callable[[IntArray], int | None] = lambda _: None) -> dict[str, int]:
    """Return rows by kind, from no way to almost every way; nobody twice.

    Of those without a way it is the one that `closest` returns, if any, otherwise the one with the most points.
    """
    judged, rho = ~counts.is_law("none"), claims.rho
    none = np.flatnonzero(judged & (claims.extreme == "none"))
    missed = np.flatnonzero(judged & (claims.extreme == "") & ~counts.way & (rho == 0))
    inner = np.flatnonzero(judged & (counts.way | (rho > 0)) & (rho < 1))  # a way may be proved where no draw is a hit
    inner = inner[np.argsort(rho[inner], kind="stable")]
    every = np.flatnonzero(judged & (rho == 1))
    found: dict[str, int] = {}
    stuck = none if len(none) else missed
    if len(stuck):
        one = closest(stuck)
        found["No way at all" if len(none) else "No hit among the draws"] = int(stuck[np.argmax(counts.n[stuck])]) if one is None else one
    places = {"The narrowest way": 0, "In the middle": len(inner) // 2, "The widest way": -1}
    if len(inner) < 3:
        places = {} if not len(inner) else {"Some way": 0} if len(inner) == 1 else {"The narrowest way": 0, "The widest way": -1}
    found |= {kind: int(inner[k]) for kind, k in places.items()}
    if len(every) and len(found) < 4:
        known = every[claims.extreme[every] == "every"]
        found["Every way" if len(known) else "Nothing but hits among the draws"] = int((known if len(known) else every)[0])
    return found


def cases_of(audit: Audit, model: str, im: InteractionModel | None) -> list[Case]:
    """Return the chosen people of one model: with their points where model and people are at hand, else as they were saved."""
    rows = _chosen(audit, model)
    if audit.context is None:
        kept = audit.cases.get(model, {})
        return [_unpacked(audit, model, kind, at, kept.get(at), im) for kind, at in rows.items()]
    return [_asked(audit, model, kind, at) for kind, at in rows.items()]


def _chosen(audit: Audit, model: str) -> dict[str, int]:
    """Return the rows of a report: without a way the person who comes closest to the target, or who came closest when the run was saved."""
    from budge.report.outputs import compared, nearest

    def closest(stuck: IntArray) -> int | None:
        if audit.context is None:
            return next((at for at in audit.cases.get(model, ()) if at in stuck), None)
        stuck = compared(audit, model, stuck)
        made = nearest(audit, model, stuck)
        return None if made is None else int(stuck[np.argmax(made.sign * made.values)])

    return chosen(audit.rows[model].counts, audit.claims(model), closest)


def _asked(audit: Audit, model: str, kind: str, at: int, *, listed_only: bool = False) -> Case:
    """Return a case whose points are asked about again; `listed_only` looks for the least change only where it is a matter of listing."""
    assert audit.context is not None
    label, source = audit.rows[model].index[at], audit.context.source
    if not isinstance(source, TableSource) or not isinstance(audit.context.im, InteractionModel):
        return Case(kind, at)
    try:
        points = reached(audit, label, model)
    except BudgeError:  # a case without its points is still a case
        return Case(kind, at)
    counts = audit.rows[model].counts
    if counts.is_law(*_COUNTED)[at] and not (_fits(points.hit, counts, at) and points.lost <= counts.unresolved[at]):  # the model answers otherwise now
        return Case(kind, at)
    if audit.why_not(label, model=model) or (listed_only and not points.exact):
        return Case(kind, at, points)
    try:
        found = audit.recourse(label, model=model)
    except BudgeError:  # a plan that is not confirmed is none
        return Case(kind, at, points)
    known = len(found) > 0 and found.optimal and len(found.values) > 0
    return Case(kind, at, points, found.values[0], found.method) if known else Case(kind, at, points)


def reached(audit: Audit, label: Any, model: str | None = None, *, most: int = MOST_POINTS) -> Reached:
    """Return the points that the audit drew or listed for a person, asked again; at most so many of them."""
    name = audit._named(model)
    rows, at, source = audit.rows[name], audit._at(label, name), audit._context().source
    if not isinstance(source, TableSource):
        raise InputError("only rows of a table can be shown feature by feature", where="person", got=type(source).__name__)
    total = points_at(rows.counts, at, audit.design)
    if not total:
        raise InputError("there are no reachable points to show", where="person", got=f"{label}: status {rows.counts.words('status')[at]}")
    chunk = _some(points_of(audit, label, name, most=most), most, audit.design.seed)
    found = answers_of(audit, label, name, chunk)
    start = source.values[int(rows.place[at])]
    values = np.repeat(start[None, :], len(found.hit), axis=0)
    assert chunk.moved is not None
    values[:, reacher(source.model).moved] = chunk.moved.T
    weights = np.ones(len(values)) if chunk.weights is None else chunk.weights
    share = weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1 / len(weights))
    exact, lost = bool(rows.counts.is_law("exact")[at]), int((~found.good).sum())
    return Reached(tuple(source.model.features), values, start, found.hit, share, total, exact, lost, (chunk, found))


def _some(chunk: Chunk, most: int, seed: int) -> Chunk:
    """Return a chunk of one person with at most so many points: of a listed set, some that are chosen evenly."""
    if len(chunk.rows) <= most:
        return chunk
    keep = np.sort(np.random.default_rng(seed).choice(len(chunk.rows), most, replace=False))
    moved = None if chunk.moved is None else chunk.moved[:, keep]
    weights = None if chunk.weights is None else chunk.weights[keep]
    return Chunk(chunk.people, np.array([most]), chunk.rows.iloc[keep].reset_index(drop=True), moved, weights, chunk.tops)


def _same(one: FloatArray, two: FloatArray) -> BoolArray:
    return np.asarray((one == two) | (np.isnan(one) & np.isnan(two)))


# -- in a saved run -----------------------------------------------------------------------------------------------------


def kept_cases(audit: Audit, model: str) -> dict[int, Kept]:
    """Return the points of the chosen people of one model, by row, for a saved run: asked about now, or as they were read."""
    if audit.context is None:
        return dict(audit.cases.get(model, {}))
    counts, found = audit.rows[model].counts, {}
    for kind, at in _chosen(audit, model).items():
        case = _asked(audit, model, kind, at, listed_only=True)
        if case.points is not None and counts.is_law(*_COUNTED)[at]:
            found[at] = _packed(case, case.points)
    return found


def _packed(case: Case, points: Reached) -> Kept:
    values, hit, weights, least = points.values, points.hit, points.weights, -1
    if case.least is not None:
        equal = np.flatnonzero(_same(values, case.least).all(axis=1) & hit)
        if len(equal):
            least = int(equal[0])
        elif len(hit) < points.points:  # not among those that were chosen of a large set: one more, without a weight
            values, hit, weights, least = np.vstack([values, case.least]), np.append(hit, True), np.append(weights, 0.0), len(hit)
    columns = np.flatnonzero(~_same(values, points.start).all(axis=0))
    return Kept(points.start, columns, np.ascontiguousarray(values[:, columns]), hit, weights, least)


def _fits(hit: BoolArray, counts: Counts, at: int) -> bool:
    """Return whether points can be among those that were counted of a person: in full where all are there."""
    n, hits, own = int(counts.n[at]), int(counts.hits[at]), int(hit.sum())
    return own <= hits and len(hit) - own <= n - hits


def _unpacked(audit: Audit, model: str, kind: str, at: int, kept: Kept | None, im: InteractionModel | None) -> Case:
    """Return a saved case with the features of the run's interaction model; an error where they do not fit."""
    if kept is None or im is None:
        return Case(kind, at)
    features, counts = tuple(im.features), audit.rows[model].counts
    if len(features) != len(kept.start):
        raise StorageError("the points of a case have other features than the interaction model", where="cases", got=len(kept.start))
    values = np.repeat(kept.start[None, :], len(kept.hit), axis=0)
    values[:, kept.columns] = kept.values
    for feature, column in zip(features, np.vstack([values, kept.start]).T):
        levels = len(feature.levels) if feature.levels is not None else None
        column = column[~np.isnan(column)]
        if (feature.discrete and (column != np.round(column)).any()) or (levels is not None and ((column < 0) | (column >= levels)).any()):
            raise StorageError("a point of a case has a value that its feature cannot have", where=f"cases: {feature.name}")
    of = slice(None) if kept.least < 0 or kept.weights[kept.least] else np.arange(len(kept.hit)) != kept.least
    points = Reached(features, values[of], kept.start, kept.hit[of], kept.weights[of], int(counts.n[at]), bool(counts.is_law("exact")[at]))
    return Case(kind, at, points, values[kept.least], "listed") if kept.least >= 0 else Case(kind, at, points)


FIELDS = ("start", "columns", "values", "hit", "weights")  # arrays of a case


def read_cases(found: Mapping[str, Sequence[Any]], numbers: Mapping[str, int], counts: Mapping[str, Counts], arrays: Arrays) -> dict[str, dict[int, Kept]]:
    """Return the cases of a record, by model and row; a `ValueError` where they contradict themselves or what was counted."""
    result: dict[str, dict[int, Kept]] = {}
    for name, entries in found.items():
        own = result.setdefault(name, {})
        for at, least in entries:
            prefix = f"{numbers[name]}.case.{at}"
            if not 0 <= at < len(counts[name]) or at in own:
                raise ValueError(f"cases name a row {at} twice, or one that there is not")
            _check_shapes(arrays, prefix)
            kept = Kept(**{part: arrays[f"{prefix}.{part}"] for part in FIELDS}, least=least)
            listed = bool(counts[name].is_law("exact")[at])
            if not -1 <= least < len(kept.hit) or (least >= 0 and not (listed and kept.hit[least])):
                raise ValueError("a least change is no point that was listed and attains the target")
            if (np.diff(kept.columns, prepend=-1) <= 0).any() or (kept.columns >= len(kept.start)).any():
                raise ValueError("columns of a case are not those of its features")
            if np.isinf(kept.start).any() or np.isinf(kept.values).any() or not (kept.weights >= 0).all() or abs(kept.weights.sum() - 1) > 1e-9:
                raise ValueError("points of a case are not finite, or their weights do not add up to one")
            if not counts[name].is_law(*_COUNTED)[at] or not _fits(kept.hit, counts[name], at):
                raise ValueError("points of a case are not those that were counted")
            own[at] = kept
    return result


def _check_shapes(arrays: Arrays, prefix: str) -> None:
    """Raise a `ValueError` where arrays of a case do not fit each other, before they are unfolded."""
    shapes, kinds = zip(*(arrays.headers[f"{prefix}.{part}"] for part in FIELDS))
    start, columns, values, hit, weights = shapes
    fit = len(start) == len(columns) == len(hit) == 1 and values == (*hit, *columns) and weights == hit and 0 < hit[0] <= MOST_POINTS + 1 and columns <= start
    if not fit or [np.dtype(kind) for kind in kinds] != [np.dtype(kind) for kind in (float, np.int64, float, bool, float)]:
        raise ValueError(f"arrays of {prefix} do not fit each other")
