"""A part with continuous coordinates: a configuration is drawn, then a point of what it leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.expressions import Linear, compare
from budge.reach.cells import Cell, Half, boxes, strict_rows
from budge.reach.core import no_weight
from budge.reach.polytope import Polytope
from budge.reach.walks import walker

__all__ = ["BUDGET", "Coordinate", "Mixed", "not_positive"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
BUDGET = 20_000_000  # proposals for one call
MOST_POLYTOPES = 20_000
TINY = 1e-12


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of the fibre: its box for each configuration, whether it counts in whole numbers, its density."""

    name: str
    low: FloatArray  # (m,)
    high: FloatArray
    whole: bool = False
    log_from: float | None = None  # start value x where the density is 1/value over x + coordinate


@dataclass(frozen=True)
class Mixed:
    """Configurations with a box or polytope each.

    `forms` writes every feature's change as a form in the coordinates, stopped at `stops` where that is given; `checks`
    evaluates what is not linear; `thins` accepts by a density that could not be drawn directly.
    """

    names: tuple[str, ...]
    core_changes: Mapping[str, FloatArray]
    forms: Mapping[str, Linear]
    coordinates: tuple[Coordinate, ...]
    cells: tuple[Cell, ...]
    size_rows: int
    measure: str = "configuration"
    weights: FloatArray | None = None
    checks: Callable[[Mapping[str, FloatArray], IntArray], BoolArray] | None = None
    thins: Callable[[Mapping[str, FloatArray], np.random.Generator], BoolArray] | None = None
    stops: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    label: str = ""
    counters: dict[str, int] = field(default_factory=lambda: {"proposed": 0, "accepted": 0})
    polytopes: dict[bytes, Polytope] = field(default_factory=dict)

    continuous = True

    # -- what each configuration leaves open -------------------------------------------------------------------------

    @cached_property
    def _boxes(self) -> list[tuple[FloatArray, FloatArray, BoolArray, list[Half]]]:
        names = [c.name for c in self.coordinates]
        low = np.stack([c.low for c in self.coordinates], axis=1)
        high = np.stack([c.high for c in self.coordinates], axis=1)
        whole = [c.whole for c in self.coordinates]
        made = []
        for cell in self.cells:
            a, b, exists, coupled = boxes(cell, names, low, high, whole)
            if coupled:
                exists = self._with_polytopes(a, b, exists, coupled)
            for row in strict_rows(cell, names, whole):
                exists = exists & ~self._blocked(row, a, b, exists, coupled)
            made.append((a, b, exists, coupled))
        self._check_logs(made)
        return [(a, b, self._checked(a, b, exists, coupled), coupled) for a, b, exists, coupled in made]

    def _checked(self, low: FloatArray, high: FloatArray, exists: BoolArray, coupled: Sequence[Half]) -> BoolArray:
        """Configurations that leave one point open have none where that point fails a check."""
        if self.checks is None or any(c.whole for c in self.coordinates):
            return exists
        single = exists & (high - low <= TINY * np.maximum(1.0, np.abs(low))).all(axis=1)
        rows = np.flatnonzero(single)
        good = self.checks(self._changes(rows, low[rows]), rows) if len(rows) else np.ones(0, dtype=bool)
        result = exists.copy()
        result[rows[~good]] = False
        return result

    def _check_logs(self, made: Sequence[tuple[FloatArray, FloatArray, BoolArray, list[Half]]]) -> None:
        for j, c in enumerate(self.coordinates):
            for low, high, exists, _ in made:
                if c.log_from is not None and (exists & (high[:, j] > low[:, j]) & (c.log_from + low[:, j] <= 0)).any():
                    raise not_positive(c.name, float(c.log_from + low[exists, j].min()))

    def _coupled_places(self, coupled: Sequence[Half]) -> list[int]:
        names = [c.name for c in self.coordinates]
        return sorted({names.index(name) for row in coupled for name in row.coefficients})

    def _with_polytopes(self, low: FloatArray, high: FloatArray, exists: BoolArray, coupled: Sequence[Half]) -> BoolArray:
        """Which configurations have a point at all: most are decided by their box, the rest by a linear program."""
        names = [c.name for c in self.coordinates]
        sure, out = np.ones(len(exists), dtype=bool), np.zeros(len(exists), dtype=bool)
        for row in coupled:
            least = most = middle = row.constant
            scale = np.maximum(1.0, np.abs(row.constant))
            for name, c in row.coefficients.items():
                j = names.index(name)
                ends = np.stack([c * low[:, j], c * high[:, j]])
                least, most, middle = least + ends.min(axis=0), most + ends.max(axis=0), middle + ends.mean(axis=0)
                scale = np.maximum(scale, np.abs(ends).max(axis=0))
            scale = 1e-9 * scale
            off = ~row.active
            if row.relation == "==":
                out |= row.active & ((least > scale) | (most < -scale))
                sure &= off
            else:
                out |= row.active & (least > scale)
                sure &= off | (middle < -scale)
        exists = exists & ~out
        doubtful = np.flatnonzero(exists & ~sure)
        if len(doubtful) > MOST_POLYTOPES:
            raise DrawError(
                f"{len(doubtful)} configurations each leave a polytope open",
                where=f"part {self.label}",
                remedy="declare some whole-numbered features real, or narrow their bounds",
            )
        for row_index in doubtful:
            if self._polytope(int(row_index), low, high, coupled).empty:
                exists[row_index] = False
        return exists

    def _blocked(self, row: Half, low: FloatArray, high: FloatArray, exists: BoolArray, coupled: Sequence[Half]) -> BoolArray:
        """Where a row that leaves out a boundary leaves out all that there is: nothing in it can vary."""
        names = [c.name for c in self.coordinates]
        joint = set(self._coupled_places(coupled)) if coupled else set()
        value, varies = row.constant.copy(), np.zeros(len(exists), dtype=bool)
        for name, c in row.coefficients.items():
            j = names.index(name)
            value = value + c * (low[:, j] + high[:, j]) / 2
            if j not in joint:
                varies |= (c != 0) & (high[:, j] - low[:, j] > TINY * np.maximum(1.0, np.abs(low[:, j])))
        asked = row.active & exists & ~varies
        places = sorted(joint)
        if joint & {names.index(name) for name in row.coefficients}:
            for at in np.flatnonzero(asked):
                shape = self._polytope(int(at), low, high, coupled)
                slope = np.array([row.coefficients[names[j]][at] if names[j] in row.coefficients else 0.0 for j in places])
                if np.linalg.norm(slope @ shape.basis) > 1e-9 * np.linalg.norm(slope):
                    asked[at] = False
                else:
                    value[at] += slope @ (shape.base - (low[at, places] + high[at, places]) / 2)
        return np.asarray(asked & ~compare(row.relation, value, 0.0))

    def _polytope(self, at: int, low: FloatArray, high: FloatArray, coupled: Sequence[Half]) -> Polytope:
        places = self._coupled_places(coupled)
        names = [self.coordinates[j].name for j in places]
        A: list[list[float]] = []
        b: list[float] = []
        E: list[list[float]] = []
        e: list[float] = []
        for row in coupled:
            if not row.active[at]:
                continue
            slope = [float(row.coefficients[n][at]) if n in row.coefficients else 0.0 for n in names]
            (E if row.relation == "==" else A).append(slope)
            (e if row.relation == "==" else b).append(-float(row.constant[at]))
        k = len(places)
        pieces = [np.array(v, dtype=float) for v in (A, b, E, e)] + [low[at, places], high[at, places]]
        key = b"|".join(p.tobytes() for p in pieces)
        if key not in self.polytopes:
            self.polytopes[key] = Polytope.make(
                pieces[0].reshape(-1, k), pieces[1], pieces[2].reshape(-1, k), pieces[3], low=pieces[4], high=pieces[5]
            )
        return self.polytopes[key]

    @cached_property
    def _counts(self) -> IntArray:
        """Whole-numbered values that each configuration leaves open (there is one cell where there are such coordinates)."""
        counts = np.ones(self.size_rows, dtype=np.int64)
        low, high, _, _ = self._boxes[0]
        for j, c in enumerate(self.coordinates):
            if c.whole:
                counts = counts * np.maximum(high[:, j] - low[:, j] + 1, 0).astype(np.int64)
        return counts

    @cached_property
    def _dimensions(self) -> IntArray:
        """Dimension of the fibre, for each cell and configuration; -1 where there is none."""
        dims = np.full((len(self.cells), self.size_rows), -1, dtype=np.int64)
        real = [j for j, c in enumerate(self.coordinates) if not c.whole]
        for i, (low, high, exists, coupled) in enumerate(self._boxes):
            joint = set(self._coupled_places(coupled)) if coupled else set()
            free = [j for j in real if j not in joint]
            dims[i] = np.where(exists, (high[:, free] - low[:, free] > TINY * np.maximum(1.0, np.abs(low[:, free]))).sum(axis=1), -1)
            for at in np.flatnonzero(exists) if joint else ():
                dims[i, at] += self._polytope(int(at), low, high, coupled).dimension
        return dims

    @cached_property
    def _volumes(self) -> FloatArray:
        """Volume of the fibre in its own dimension, for each cell and configuration; 0 where there is none."""
        volumes = np.zeros((len(self.cells), self.size_rows))
        real = [j for j, c in enumerate(self.coordinates) if not c.whole]
        for i, (low, high, exists, coupled) in enumerate(self._boxes):
            joint = set(self._coupled_places(coupled)) if coupled else set()
            free = [j for j in real if j not in joint]
            wide = high[:, free] - low[:, free]
            open_ = wide > TINY * np.maximum(1.0, np.abs(low[:, free]))
            for column, j in enumerate(free):  # a density of 1/value has the logarithm as its volume
                origin = self.coordinates[j].log_from
                if origin is not None:
                    with np.errstate(divide="ignore", invalid="ignore"):
                        wide[:, column] = np.log((origin + high[:, j]) / (origin + low[:, j]))
            volumes[i] = np.where(exists, np.where(open_, wide, 1.0).prod(axis=1), 0.0)
            for at in np.flatnonzero(exists) if joint else ():
                volumes[i, at] *= self._polytope(int(at), low, high, coupled).volume
        return volumes

    @cached_property
    def exists(self) -> BoolArray:
        """Which configurations have a point at all."""
        return np.asarray(np.any([exists for _, _, exists, _ in self._boxes], axis=0))

    @cached_property
    def row_weights(self) -> tuple[FloatArray | None, IntArray]:
        """Weights of the configurations (None: by their counts alone) and these counts."""
        counts = np.where(self.exists, self._counts, 0)
        if self.measure == "volume" and self.exists.sum() > 1:
            top = np.where(self._dimensions == self._dimensions.max(), self._volumes, 0.0).sum(axis=0)
            return top * counts * (1.0 if self.weights is None else self.weights), counts
        return (None if self.weights is None else self.weights * counts), counts

    @cached_property
    def _row_ends(self) -> FloatArray | IntArray:
        weights, counts = self.row_weights
        ends: FloatArray | IntArray = np.cumsum(counts) if weights is None else np.cumsum(weights)
        if not ends[-1] > 0:
            raise no_weight(self.names)
        return ends

    @cached_property
    def _cell_shares(self) -> FloatArray | None:
        """Cumulative share of each cell, for configurations with several; None with one cell."""
        if len(self.cells) == 1:
            return None
        largest = np.where(self._dimensions == self._dimensions.max(axis=0), self._volumes, 0.0)
        total = largest.sum(axis=0)
        return np.cumsum(np.divide(largest, total, out=np.zeros_like(largest), where=total > 0), axis=0)

    @property
    def size(self) -> int:
        """Number of discrete configurations."""
        return int(self.row_weights[1].sum())

    @property
    def empty(self) -> bool:
        """Whether nothing is feasible."""
        return not self.exists.any()

    @cached_property
    def only_stays(self) -> bool:
        """Whether the only feasible change is none."""
        if self.exists.sum() != 1 or self._counts[self.exists].sum() != 1 or self._dimensions.max() > 0:
            return False
        here = np.flatnonzero(self.exists)
        for low, high, exists, coupled in self._boxes:
            if not exists[here[0]]:
                continue
            point = low[here].copy()
            if coupled:
                point[:, self._coupled_places(coupled)] = self._polytope(int(here[0]), low, high, coupled).base
            if any(np.abs(column).max() > 1e-9 for column in self._changes(here, point).values()):
                return False
        return True

    @property
    def exact(self) -> bool:
        """Whether draws follow their law exactly, and not only in the limit of a chain or by an estimated volume."""
        weighed = self.measure == "volume" or len(self.cells) > 1
        return all(p.empty or (p.exact and (p.measured or not weighed)) for p in self.polytopes.values())

    @property
    def method(self) -> str:
        """How it is drawn."""
        if self.checks is not None or self.thins is not None:
            return "rejection"
        if not any(coupled for _, _, _, coupled in self._boxes):
            return "box"
        return "polytope" if self.exact else f"hit-and-run by {walker()} (approximate)"

    @property
    def note(self) -> str:
        """How chains were seen to mix, of the polytope that took longest; nothing where no chain was walked."""
        walked = [p.mixing for p in self.polytopes.values() if "mixing" in p.__dict__]
        return str(max(walked, key=lambda mixing: mixing.steps)) if walked else ""

    @property
    def acceptance(self) -> float:
        """Share of proposals accepted so far."""
        return self.counters["accepted"] / self.counters["proposed"] if self.counters["proposed"] else 1.0

    @cached_property
    def measures_differ(self) -> bool:
        """Whether equal configurations and equal volumes are two different laws here."""
        per_row = np.where(self._dimensions == self._dimensions.max(), self._volumes, 0.0).sum(axis=0)[self.exists]
        return bool(len(per_row) > 1 and np.ptp(per_row) > 1e-9 * per_row.max())

    # -- drawing ---------------------------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """n changes, one row each."""
        rows, rest = self._rows(rng, n)
        result = self._propose(rng, rows, rest)
        self.counters["proposed"] += n
        if self.checks is None and self.thins is None:
            self.counters["accepted"] += n
            return self._columns(rows, result)
        good = self._accepted(rng, rows, result)
        pending = np.flatnonzero(~good)
        spent, hits = n, n - len(pending)
        while len(pending):
            share = max(1.0 - len(pending) / n, 1e-4)
            copies = int(np.clip(np.ceil(1.5 / share), 1, max(1, 400_000 // len(pending))))
            again = np.repeat(pending, copies)
            if spent + len(again) > BUDGET:
                raise DrawError(
                    f"{len(pending)} of {n} draws were not accepted within {BUDGET:,} proposals (acceptance {hits / spent:.2g})",
                    where=f"part {self.label}",
                    remedy="tighten the bounds of its features, or write the rule so that it is linear given the discrete features",
                )
            if self.measure == "volume":  # the whole point is proposed again
                tried_rows, tried_rest = self._rows(rng, len(again))
            else:  # the configuration stands, its point is proposed again
                tried_rows, tried_rest = rows[again], rest[again]
            tried = self._propose(rng, tried_rows, tried_rest)
            good = self._accepted(rng, tried_rows, tried)
            spent, hits = spent + len(again), hits + int(good.sum())
            self.counters["proposed"] += len(again)
            first = np.full(len(pending), -1)
            for_which = np.repeat(np.arange(len(pending)), copies)
            found = np.flatnonzero(good)[::-1]
            first[for_which[found]] = found
            done = first >= 0
            result[pending[done]] = tried[first[done]]
            rows[pending[done]] = tried_rows[first[done]]
            pending = pending[~done]
        self.counters["accepted"] += hits
        return self._columns(rows, result)

    def _rows(self, rng: np.random.Generator, n: int) -> tuple[IntArray, IntArray]:
        (weights, counts), ends = self.row_weights, self._row_ends
        if weights is not None:
            last = int(np.flatnonzero(weights)[-1])
            rows = np.minimum(np.searchsorted(ends, rng.random(n) * ends[-1], side="right"), last)
            return rows, rng.integers(0, counts[rows])
        number = rng.integers(0, ends[-1], n)
        rows = np.searchsorted(ends, number, side="right")
        return rows, np.asarray(number - (ends[rows] - counts[rows]), dtype=np.int64)

    def _propose(self, rng: np.random.Generator, rows: IntArray, rest: IntArray) -> FloatArray:
        """A point of the fibre for each row, by coordinate."""
        n, k = len(rows), len(self.coordinates)
        uniform = rng.random((n, k + (self._cell_shares is not None)))
        if self._cell_shares is None:
            which = None
            low, high = self._boxes[0][0][rows], self._boxes[0][1][rows]
        else:
            which = np.minimum((uniform[None, :, k] > self._cell_shares[:, rows]).sum(axis=0), len(self.cells) - 1)
            low = np.stack([box[0] for box in self._boxes])[which, rows]
            high = np.stack([box[1] for box in self._boxes])[which, rows]
        point = low + (high - low) * uniform[:, :k]
        for j, c in enumerate(self.coordinates):
            if c.whole:
                span = (high[:, j] - low[:, j] + 1).astype(np.int64)
                point[:, j] = low[:, j] + rest % span
                rest = rest // span
            elif c.log_from is not None:
                wide = high[:, j] > low[:, j]
                bottom = np.where(wide, c.log_from + low[:, j], 1.0)
                ratio = np.where(wide, c.log_from + high[:, j], 1.0) / bottom
                point[:, j] = np.where(wide, bottom * ratio ** uniform[:, j] - c.log_from, low[:, j])
        for i, (a, b, _, coupled) in enumerate(self._boxes):
            if not coupled:
                continue
            places = np.array(self._coupled_places(coupled))
            mine = np.arange(n) if which is None else np.flatnonzero(which == i)
            found, inverse = np.unique(rows[mine], return_inverse=True)
            order = np.argsort(inverse, kind="stable")
            ends = np.cumsum(np.bincount(inverse, minlength=len(found)))
            for start, end, at in zip(np.r_[0, ends[:-1]], ends, found):
                spot = mine[order[start:end]]
                point[np.ix_(spot, places)] = self._polytope(int(at), a, b, coupled).draw(rng, end - start)
        return point

    def _columns(self, rows: IntArray, point: FloatArray) -> FloatArray:
        changes = self._changes(rows, point)
        return np.stack([changes[name] for name in self.names], axis=1)

    def _changes(self, rows: IntArray, point: FloatArray) -> dict[str, FloatArray]:
        place = {c.name: j for j, c in enumerate(self.coordinates)}
        result = {}
        for name in self.names:
            if name in self.core_changes:
                result[name] = self.core_changes[name][rows]
                continue
            form = self.forms[name]
            value = np.broadcast_to(_at(form.const, rows), (len(rows),)).astype(float)
            for (_, coordinate), c in form.terms.items():
                value = value + _at(c, rows) * point[:, place[coordinate]]
            result[name] = np.clip(value, *self.stops[name]) if name in self.stops else value
        return result

    def _accepted(self, rng: np.random.Generator, rows: IntArray, point: FloatArray) -> BoolArray:
        changes = self._changes(rows, point)
        good = np.ones(len(rows), dtype=bool) if self.checks is None else self.checks(changes, rows)
        return good if self.thins is None else good & self.thins(changes, rng)


def not_positive(name: str, least: float) -> DrawError:
    """The error where a log distribution meets a value that has no logarithm."""
    return DrawError(
        "a log distribution needs values above 0", where=f"feature {name}", got=f"values from {least:g} on", remedy="raise its lower bound above 0"
    )


def _at(value: float | FloatArray, rows: IntArray) -> float | FloatArray:
    return value[rows] if isinstance(value, np.ndarray) and value.ndim else value
