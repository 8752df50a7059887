"""What the configurations of a part leave open to its continuous coordinates: a box or a polytope each, its dimension and volume."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.expressions import Linear, compare
from budge.reach.cells import Cell, Half, boxes, strict_rows
from budge.reach.polytope import Polytope
from budge.reach.shave import shaved

__all__ = ["Coordinate", "Open", "not_positive"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
MOST_POLYTOPES = 20_000
TINY = 1e-12
OFTEN = 0.1  # acceptance below which boxes are narrowed
MOST_SHAVED = 200  # configurations whose boxes are narrowed


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of the fibre: its box for each configuration, whether it counts in whole numbers, its density."""

    name: str
    low: FloatArray  # (m,)
    high: FloatArray
    whole: bool = False
    log_from: float | None = None  # start value x where the density is 1/value over x + coordinate


@dataclass(frozen=True)
class Open:
    """Configurations and what each leaves open.

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
    possible: Callable[[int, FloatArray, FloatArray], bool] | None = None  # whether the checks might hold somewhere in a box
    stops: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    label: str = ""
    counters: dict[str, int] = field(default_factory=lambda: {"proposed": 0, "accepted": 0})
    polytopes: dict[bytes, Polytope] = field(default_factory=dict)

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
        made = [(a, b, self._checked(a, b, exists, coupled), coupled) for a, b, exists, coupled in made]
        return made if self.possible is None or self._often_accepted(made) else [self._narrowed(*one) for one in made]

    def _often_accepted(self, made: Sequence[tuple[FloatArray, FloatArray, BoolArray, list[Half]]]) -> bool:
        """Whether rejection is cheap as it is, by a few proposals for each configuration: always the same ones."""
        assert self.checks is not None
        rng = np.random.default_rng(0)
        for low, high, exists, _ in made:
            rows = np.repeat(np.flatnonzero(exists), max(8, 512 // max(1, int(exists.sum()))))
            point = low[rows] + (high - low)[rows] * rng.random((len(rows), low.shape[1]))
            good = self.checks(self._changes(rows, point), rows)
            if (np.bincount(rows, good, minlength=len(exists))[exists] < OFTEN * np.bincount(rows, minlength=len(exists))[exists]).any():
                return False
        return True

    def _narrowed(
        self, low: FloatArray, high: FloatArray, exists: BoolArray, coupled: list[Half]
    ) -> tuple[FloatArray, FloatArray, BoolArray, list[Half]]:
        """Boxes without the slices in which the checks cannot hold (of the first so many configurations)."""
        assert self.possible is not None
        if coupled or any(c.whole for c in self.coordinates):
            return low, high, exists, coupled
        low, high, exists = low.copy(), high.copy(), exists.copy()
        for at in np.flatnonzero(exists)[:MOST_SHAVED]:
            box = shaved(partial(self.possible, int(at)), low[at], high[at])
            if box is None:
                exists[at] = False
            else:
                low[at], high[at] = box
        return low, high, exists, coupled

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


def not_positive(name: str, least: float) -> DrawError:
    """The error where a log distribution meets a value that has no logarithm."""
    return DrawError(
        "a log distribution needs values above 0", where=f"feature {name}", got=f"values from {least:g} on", remedy="raise its lower bound above 0"
    )


def _at(value: float | FloatArray, rows: IntArray) -> float | FloatArray:
    return value[rows] if isinstance(value, np.ndarray) and value.ndim else value
