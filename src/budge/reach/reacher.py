"""Reaching for many people: a part is prepared once for each distinct start and shared by everyone who has it."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from budge.effects import draw_effects
from budge.errors import EmptyError
from budge.parts import Part
from budge.reach.fibre import Mixed
from budge.reach.listed import Listed
from budge.reach.prepare import Prepared, prepare_part
from budge.reach.results import PartDiagnostics
from budge.reach.streams import stream

if TYPE_CHECKING:
    from budge.interaction import InteractionModel

__all__ = ["Plan", "Reacher", "reacher"]

FloatArray = npt.NDArray[np.float64]
CACHE_BYTES = 128 * 2**20
JOINT_ROWS = 4096  # products of parts up to this are gathered at once
MOST_NUMBERS = 2**62  # a product of parts beyond this is drawn in several numbers


class Reacher:
    """Draws and enumerates for one interaction model."""

    def __init__(self, model: InteractionModel) -> None:
        self.model = model
        self.names = tuple(f.name for f in model.features)
        place = {name: j for j, name in enumerate(self.names)}
        moving = [part for part in model.parts if any(f.actionable for f in part.features)]
        self.free = [part.features[0] for part in moving if _is_free(part)]
        self.free_columns = np.array([place[f.name] for f in self.free], dtype=np.intp)
        self.parts = [part for part in moving if not _is_free(part)]
        self.columns = [np.array([place[name] for name in part.names], dtype=np.intp) for part in self.parts]
        self._prepared: OrderedDict[tuple[int, bytes], Prepared] = OrderedDict()
        self._plans: OrderedDict[bytes, Plan] = OrderedDict()
        self._bytes = 0
        self._plan_columns = np.unique(np.concatenate(self.columns)) if self.parts else np.zeros(0, dtype=np.intp)

    def prepared(self, i: int, row: FloatArray) -> Prepared:
        """Part i at the start of this row."""
        start = row[self.columns[i]]
        key = (i, start.tobytes())
        found = self._prepared.get(key)
        if found is None:
            part = self.parts[i]
            found = prepare_part(part, dict(zip(part.names, start.tolist())), self.model.measure)
            self._prepared[key] = found
            self._bytes += _bytes(found)
            while self._bytes > CACHE_BYTES and len(self._prepared) > 1:
                _, old = self._prepared.popitem(last=False)
                self._bytes -= _bytes(old)
        return found

    def plan(self, row: FloatArray) -> Plan:
        """How the person of this row is drawn; shared by all who stand alike."""
        key = row[self._plan_columns].tobytes()
        found = self._plans.get(key)
        if found is None:
            found = Plan([self.prepared(i, row) for i in range(len(self.parts))], self.columns)
            if found.light:
                self._plans[key] = found
                if len(self._plans) > 8192:
                    self._plans.popitem(last=False)
        return found

    def status(self, row: FloatArray, plan: Plan) -> str:
        """``ok``, ``fixed`` or ``empty`` for one start."""
        if plan.empty:
            return "empty"
        if self.model.effects or not plan.only_stays:
            return "ok"
        return "ok" if any(low < high for low, high in (f.moves(row[j]) for f, j in zip(self.free, self.free_columns))) else "fixed"

    def draw(self, row: FloatArray, plan: Plan, key: int, n: int, seed: int, purpose: str, out: FloatArray) -> dict[str, FloatArray]:
        """Fill n rows with reachable points of one person; returns the stochastic effects drawn."""
        rng = stream(seed, key, purpose)
        out[:] = row
        plan.draw(rng, n, row, out)
        if len(self.free):
            spread = rng.random((n, len(self.free)))
            for i, (f, j) in enumerate(zip(self.free, self.free_columns)):
                low, high = (float(m) for m in f.moves(row[j]))
                out[:, j] = row[j] + low + (high - low) * spread[:, i]
        return self._effects(rng, n, row, out) if self.model.effects else {}

    def expand(self, row: FloatArray, plan: Plan) -> tuple[FloatArray, FloatArray | None]:
        """Every point of one person, and their probabilities where they differ."""
        size = math.prod(p.size or 1 for p in plan.parts)
        values = np.tile(row, (size, 1))
        weights: FloatArray | None = None
        number = np.arange(size)
        for part, where in zip(plan.parts, self.columns):
            if not isinstance(part, Listed):  # it only stays
                continue
            changes = part.expand()
            pick = number % len(changes)
            values[:, where] += changes[pick]
            number = number // len(changes)
            shares = part.shares()
            if shares is not None:
                weights = shares[pick] * (1.0 if weights is None else weights)
        return values, None if weights is None else weights / weights.sum()

    def _effects(self, rng: np.random.Generator, n: int, row: FloatArray, out: FloatArray) -> dict[str, FloatArray]:
        model = self.model
        x: dict[str, Any] = dict(zip(self.names, row))
        change = {name: out[:, j] - row[j] for j, name in enumerate(self.names) if name in model.moving}
        action: dict[str, FloatArray] = dict(change)
        read = {name for e in model.effects for layer, name in e.parents if layer == "action"}
        for part in model.parts:
            if part.links and read & set(part.names):
                whole = {name: change.get(name, np.zeros(n)) for name in part.names}
                action |= part.own_actions({name: x[name] for name in part.names}, whole, dict.fromkeys(part.names, 0.0))
        drawn = draw_effects(model.effects, model.latent, model.by_name, x, action, change, rng, n)
        for name, epsilon in drawn.items():
            out[:, self.names.index(name)] += epsilon
        return drawn

    def diagnostics(self, plan: Plan) -> tuple[PartDiagnostics, ...]:
        """How each part was drawn."""
        lone = [PartDiagnostics((f.name,), "box", 1) for f in self.free]
        return (*(PartDiagnostics(p.names, p.method, p.size, p.exact, p.acceptance) for p in plan.parts), *lone)

    def empty_error(self, row: FloatArray, plan: Plan, label: object = None) -> EmptyError:
        """Which constraints clash, where nothing is feasible."""
        from budge.reach.milp import clash

        i = next(i for i, p in enumerate(plan.parts) if p.empty)
        part = self.parts[i]
        blamed = clash(part, dict(zip(part.names, row[self.columns[i]].tolist())))
        who = f"row {label}: " if label is not None else ""
        return EmptyError(
            "no action is feasible, not even staying; these clash: " + "; ".join(blamed),
            where=f"{who}part {', '.join(part.names)}",
            remedy="drop or relax one of them",
        )


class Plan:
    """The prepared parts of one person; parts that are plain lists are drawn by one number together."""

    def __init__(self, parts: Sequence[Prepared], columns: Sequence[npt.NDArray[np.intp]]) -> None:
        self.parts = list(parts)
        self.columns = columns
        self.simple: list[tuple[Listed, npt.NDArray[np.intp]]] = []
        self.others: list[tuple[Prepared, npt.NDArray[np.intp]]] = []
        self.product = 1
        for part, where in zip(parts, columns):
            if isinstance(part, Listed) and part.simple and self.product * max(part.size, 1) <= MOST_NUMBERS:
                self.product *= part.size
                if part.size != 1 or part.changes.any():
                    self.simple.append((part, where))
            else:
                self.others.append((part, where))

    @cached_property
    def light(self) -> bool:
        """Whether it is small enough to be kept."""
        return sum(_bytes(p) for p in self.parts) < 2**16

    @property
    def empty(self) -> bool:
        """Whether some part has nothing feasible."""
        return any(p.empty for p in self.parts)

    @property
    def only_stays(self) -> bool:
        """Whether nothing can move."""
        return all(p.only_stays for p in self.parts)

    @property
    def size(self) -> int | None:
        """Number of configurations in all; None where a part is too large to be counted or has continuous coordinates."""
        if any(p.size is None or p.continuous for p in self.parts):
            return None
        return math.prod(p.size for p in self.parts if p.size is not None)

    @cached_property
    def _joint(self) -> tuple[npt.NDArray[np.intp], FloatArray] | None:
        """The product of the simple parts as one table, where it is small."""
        if not self.simple or self.product > JOINT_ROWS:
            return None
        number = np.arange(self.product)
        blocks = []
        for part, _ in self.simple:
            blocks.append(part.changes[number % part.size])
            number = number // part.size
        return np.concatenate([where for _, where in self.simple]), np.concatenate(blocks, axis=1)

    def draw(self, rng: np.random.Generator, n: int, row: FloatArray, out: FloatArray) -> None:
        """Add n draws of the change to `out`."""
        if self.simple:
            number = rng.integers(0, self.product, n)
            if self._joint is not None:
                where, table = self._joint
                out[:, where] = (row[where] + table)[number]
            else:
                for part, where in self.simple:
                    out[:, where] = (row[where] + part.changes)[number % part.size]
                    number //= part.size
        for other, where in self.others:
            out[:, where] += other.draw(rng, n)


def reacher(model: InteractionModel) -> Reacher:
    """The model's reacher, made once."""
    found = model.__dict__.get("_reacher")
    if found is None:
        found = Reacher(model)
        object.__setattr__(model, "_reacher", found)
    return found  # type: ignore[no-any-return]


def _is_free(part: Part) -> bool:
    """A single real feature with nothing but its own limits."""
    lone = part.features[0]
    return (
        len(part.features) == 1 and lone.type == "real" and not part.constraints and (lone.distribution is None or lone.distribution.kind == "uniform")
    )


def _bytes(prepared: Prepared) -> int:
    if isinstance(prepared, Listed):
        return prepared.changes.nbytes + 200
    if isinstance(prepared, Mixed):
        cells = 3 * len(prepared.cells) * prepared.size_rows * 8 * max(1, len(prepared.coordinates))
        return cells + sum(c.nbytes for c in prepared.core_changes.values()) + 400
    return 1000


