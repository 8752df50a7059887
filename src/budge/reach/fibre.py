"""A part with continuous coordinates: a configuration is drawn, then a point of what it leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.expressions import Linear
from budge.reach.cells import Cell, Half, boxes
from budge.reach.polytope import Polytope

__all__ = ["BUDGET", "Coordinate", "Mixed"]

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

    `forms` writes every feature's change as a form in the coordinates; `accepts` checks what is not linear.
    """

    names: tuple[str, ...]
    core_changes: Mapping[str, FloatArray]
    forms: Mapping[str, Linear]
    coordinates: tuple[Coordinate, ...]
    cells: tuple[Cell, ...]
    size_rows: int
    measure: str = "configuration"
    weights: FloatArray | None = None
    accepts: Callable[[Mapping[str, FloatArray], IntArray, np.random.Generator], BoolArray] | None = None
    label: str = ""
    counters: dict[str, int] = field(default_factory=lambda: {"proposed": 0, "accepted": 0})
    polytopes: dict[bytes, Polytope] = field(default_factory=dict)

    continuous = True

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
            made.append((a, b, exists, coupled))
        return made

    def _coupled_places(self, coupled: Sequence[Half]) -> list[int]:
        names = [c.name for c in self.coordinates]
        return sorted({names.index(name) for row in coupled for name in row.coefficients})

    def _with_polytopes(self, low: FloatArray, high: FloatArray, exists: BoolArray, coupled: Sequence[Half]) -> BoolArray:
        """Which configurations have a point at all: most are decided by their box, the rest by a linear program."""
        names = [c.name for c in self.coordinates]
        sure, out = np.ones(len(exists), dtype=bool), np.zeros(len(exists), dtype=bool)
        for row in coupled:
            least = most = middle = row.constant
            for name, c in row.coefficients.items():
                j = names.index(name)
                ends = np.stack([c * low[:, j], c * high[:, j]])
                least, most, middle = least + ends.min(axis=0), most + ends.max(axis=0), middle + ends.mean(axis=0)
            scale = 1e-9 * np.maximum(1.0, np.abs(row.constant))
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

    def _polytope(self, at: int, low: FloatArray, high: FloatArray, coupled: Sequence[Half]) -> Polytope:
        places = self._coupled_places(coupled)
        names = [self.coordinates[j].name for j in places]
        A, b, E, e = [], [], [], []
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
                counts = counts * (high[:, j] - low[:, j] + 1).astype(np.int64)
        return counts

    @cached_property
    def _extent(self) -> tuple[IntArray, FloatArray]:
        """Dimension and volume of the fibre, for each cell and configuration; volume 0 where there is none."""
        dims = np.full((len(self.cells), self.size_rows), -1, dtype=np.int64)
        volumes = np.zeros((len(self.cells), self.size_rows))
        real = [j for j, c in enumerate(self.coordinates) if not c.whole]
        for i, (low, high, exists, coupled) in enumerate(self._boxes):
            joint = set(self._coupled_places(coupled)) if coupled else set()
            free = [j for j in real if j not in joint]
            wide = high[:, free] - low[:, free]
            open_ = wide > TINY * np.maximum(1.0, np.abs(low[:, free]))
            dims[i] = np.where(exists, open_.sum(axis=1), -1)
            volumes[i] = np.where(exists, np.where(open_, wide, 1.0).prod(axis=1), 0.0)
            if joint:
                for at in np.flatnonzero(exists):
                    shape = self._polytope(int(at), low, high, coupled)
                    dims[i, at] += shape.dimension
                    volumes[i, at] *= shape.volume
        return dims, volumes

    @cached_property
    def exists(self) -> BoolArray:
        """Which configurations have a point at all."""
        return np.asarray(np.any([exists for _, _, exists, _ in self._boxes], axis=0))

    @cached_property
    def row_weights(self) -> tuple[FloatArray | None, IntArray]:
        """Weights of the configurations (None: by their counts alone) and these counts."""
        counts = np.where(self.exists, self._counts, 0)
        if self.measure == "volume":
            dims, volumes = self._extent
            top = dims.max()
            return np.where(dims == top, volumes, 0.0).sum(axis=0) * counts * (1.0 if self.weights is None else self.weights), counts
        return (None if self.weights is None else self.weights * counts), counts

    @cached_property
    def _cell_shares(self) -> FloatArray | None:
        """Cumulative share of each cell, for configurations with several; None with one cell."""
        if len(self.cells) == 1:
            return None
        dims, volumes = self._extent
        largest = np.where(dims == dims.max(axis=0), volumes, 0.0)
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
        if self.size != 1 or len(self.cells) > 1 or self.accepts is not None:
            return False
        dims, _ = self._extent
        if dims.max() > 0:
            return False
        return not np.any(np.abs(self.draw(np.random.default_rng(0), 1)) > 1e-9)

    @property
    def exact(self) -> bool:
        """Whether draws follow their law exactly, and not only in the limit of a chain."""
        return all(p.empty or p.exact for p in self.polytopes.values())

    @property
    def method(self) -> str:
        """How it is drawn."""
        if self.accepts is not None:
            return "rejection"
        if not any(coupled for _, _, _, coupled in self._boxes):
            return "box"
        return "polytope" if self.exact else "hit-and-run (approximate)"

    @property
    def acceptance(self) -> float:
        """Share of proposals accepted so far."""
        return self.counters["accepted"] / self.counters["proposed"] if self.counters["proposed"] else 1.0

    @cached_property
    def measures_differ(self) -> bool:
        """Whether equal configurations and equal volumes are two different laws here."""
        dims, volumes = self._extent
        alive = self.exists
        per_row = np.where(dims == dims.max(), volumes, 0.0).sum(axis=0)[alive]
        return bool(len(per_row) > 1 and np.ptp(per_row) > 1e-9 * per_row.max())

    @property
    def diagnostics(self) -> dict[str, object]:
        """What a reader should know of how it was drawn."""
        return {"acceptance": self.acceptance, **({} if self.exact else {"approximate": "hit-and-run, one draw a chain"})}

    # -- drawing ---------------------------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """n changes, one row each."""
        rows, rest = self._rows(rng, n)
        result = self._propose(rng, rows, rest)
        self.counters["proposed"] += n
        if self.accepts is None:
            self.counters["accepted"] += n
            return self._columns(rows, result)
        pending = np.flatnonzero(~self._accepted(rng, rows, result))
        spent = n
        while len(pending):
            share = max(1.0 - len(pending) / n, 1e-4)
            copies = int(np.clip(np.ceil(1.5 / share), 1, max(1, 400_000 // len(pending))))
            again = np.repeat(pending, copies)
            spent += len(again)
            if spent > BUDGET:
                raise DrawError(
                    f"{len(pending)} of {n} draws were not accepted within {BUDGET:,} proposals (acceptance {self.acceptance:.2g})",
                    where=f"part {self.label}",
                    remedy="tighten the bounds of its features, or write the rule so that it is linear given the discrete features",
                )
            if self.measure == "volume":  # the whole point is proposed again
                tried_rows, tried_rest = self._rows(rng, len(again))
            else:  # the configuration stands, its point is proposed again
                tried_rows, tried_rest = rows[again], rest[again]
            tried = self._propose(rng, tried_rows, tried_rest)
            good = self._accepted(rng, tried_rows, tried)
            self.counters["proposed"] += len(again)
            first = np.full(len(pending), -1)
            for_which = np.repeat(np.arange(len(pending)), copies)
            hits = np.flatnonzero(good)[::-1]
            first[for_which[hits]] = hits
            done = first >= 0
            result[pending[done]] = tried[first[done]]
            rows[pending[done]] = tried_rows[first[done]]
            pending = pending[~done]
        self.counters["accepted"] += n
        return self._columns(rows, result)

    def _rows(self, rng: np.random.Generator, n: int) -> tuple[IntArray, IntArray]:
        weights, counts = self.row_weights
        if weights is not None:
            share = np.cumsum(weights)
            rows = np.minimum(np.searchsorted(share, rng.random(n) * share[-1], side="right"), len(share) - 1)
            return rows, rng.integers(0, counts[rows])
        ends = np.cumsum(counts)
        number = rng.integers(0, ends[-1], n)
        rows = np.searchsorted(ends, number, side="right")
        return rows, number - (ends[rows] - counts[rows])

    def _propose(self, rng: np.random.Generator, rows: IntArray, rest: IntArray) -> FloatArray:
        """A point of the fibre for each row, by coordinate."""
        n, k = len(rows), len(self.coordinates)
        which = np.zeros(n, dtype=np.int64)
        if self._cell_shares is not None:
            which = (rng.random(n)[None, :] > self._cell_shares[:, rows]).sum(axis=0)
            which = np.minimum(which, len(self.cells) - 1)
        uniform = rng.random((n, k))
        low = np.empty((n, k))
        high = np.empty((n, k))
        for i, (a, b, _, _) in enumerate(self._boxes):
            at = which == i
            low[at], high[at] = a[rows[at]], b[rows[at]]
        point = low + (high - low) * uniform
        for j, c in enumerate(self.coordinates):
            if c.whole:
                span = (high[:, j] - low[:, j] + 1).astype(np.int64)
                point[:, j] = low[:, j] + rest % span
                rest = rest // span
            elif c.log_from is not None:
                bottom = np.maximum(c.log_from + low[:, j], TINY)
                point[:, j] = bottom * ((c.log_from + high[:, j]) / bottom) ** uniform[:, j] - c.log_from
        for i, (a, b, _, coupled) in enumerate(self._boxes):
            if not coupled:
                continue
            places = self._coupled_places(coupled)
            mine = np.flatnonzero(which == i)
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
            result[name] = value
        return result

    def _accepted(self, rng: np.random.Generator, rows: IntArray, point: FloatArray) -> BoolArray:
        assert self.accepts is not None
        return self.accepts(self._changes(rows, point), rows, rng)


def _at(value: float | FloatArray, rows: IntArray) -> float | FloatArray:
    return value[rows] if isinstance(value, np.ndarray) and value.ndim else value
