"""A part with continuous coordinates: a configuration is drawn, then a point of what it leaves open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.reach.core import no_weight
from budge.reach.shapes import Open
from budge.reach.walks import walker

__all__ = ["BUDGET", "Mixed"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
BUDGET = 20_000_000  # proposals for one call


@dataclass(frozen=True)
class Mixed(Open):
    """Draws from configurations with a box or polytope each."""

    continuous = True

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

    def _accepted(self, rng: np.random.Generator, rows: IntArray, point: FloatArray) -> BoolArray:
        changes = self._changes(rows, point)
        good = np.ones(len(rows), dtype=bool) if self.checks is None else self.checks(changes, rows)
        return good if self.thins is None else good & self.thins(changes, rng)
