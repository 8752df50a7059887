"""Reaching for many people: a part is prepared once for each distinct start and shared by everyone who has it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from budge.effects import draw_effects
from budge.errors import EmptyError
from budge.features import Feature
from budge.parts import Part
from budge.reach.blame import blame
from budge.reach.forms import limits, nothing
from budge.reach.plan import Plan, weight_in_bytes
from budge.reach.prepare import Prepared, prepare_part
from budge.reach.results import PartDiagnostics
from budge.reach.streams import stream

if TYPE_CHECKING:
    from budge.interaction import InteractionModel

__all__ = ["Plan", "Reacher", "reacher"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
K = TypeVar("K")
V = TypeVar("V")
PART_BYTES = 64 * 2**20  # of prepared parts that are kept
PLAN_BYTES = 256 * 2**20  # of plans: those of a block of people, where each has large parts of her own


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
        self.inert = [part for part in model.parts if part.constraints and not any(f.actionable for f in part.features)]
        self.moved = np.array([j for j, name in enumerate(self.names) if name in model.moving], dtype=np.intp)
        self._prepared: _Cache[tuple[int, bytes], Prepared] = _Cache(weight_in_bytes, PART_BYTES)
        self._plans: _Cache[bytes, Plan] = _Cache(lambda plan: plan.nbytes, PLAN_BYTES)
        self._asked = [np.array([place[n] for n in _asked(part)], dtype=np.intp) for part in self.parts]
        self.plan_columns = np.unique(np.concatenate(self._asked)) if self.parts else np.zeros(0, dtype=np.intp)

    def __reduce__(self) -> tuple[Any, ...]:
        return (nothing, ())  # a copy of the model makes its own

    # -- how people are drawn ---------------------------------------------------------------------------------------

    def prepared(self, i: int, row: FloatArray) -> Prepared:
        """Part i at the start of this row."""
        part, columns = self.parts[i], self.columns[i]
        return self._prepared.get(
            (i, row[self._asked[i]].tobytes()),
            lambda: prepare_part(part, dict(zip(part.names, row[columns].tolist())), self.model.measure),
        )

    def plan(self, row: FloatArray) -> Plan:
        """How the person of this row is drawn; shared by all who stand alike."""
        return self._plans.get(
            row[self.plan_columns].tobytes(), lambda: Plan([self.prepared(i, row) for i in range(len(self.parts))], self.columns)
        )

    def status(self, row: FloatArray, plan: Plan) -> str:
        """``ok``, ``fixed`` or ``empty`` for one start."""
        return self.statuses(row[None, :], [plan])[0]

    def statuses(self, rows: FloatArray, plans: Sequence[Plan]) -> list[str]:
        """``ok``, ``fixed`` or ``empty`` for each of many starts."""
        stuck = self.stuck(rows)
        moves = np.zeros(len(rows), dtype=bool)
        for f, j in zip(self.free, self.free_columns):
            low, high = f.moves(rows[:, j])
            moves |= low < high
        moves |= bool(self.model.effects)
        return ["empty" if stuck[i] or plan.empty else ("ok" if moves[i] or not plan.only_stays else "fixed") for i, plan in enumerate(plans)]

    def stuck(self, rows: FloatArray) -> BoolArray:
        """Who stands in a part that nobody can move and that does not allow to stay: nothing is feasible there."""
        result = np.zeros(len(rows), dtype=bool)
        for part in self.inert:
            result |= ~np.asarray(self._stays(part, rows))
        return result

    def _stays(self, part: Part, rows: FloatArray) -> BoolArray:
        x = {name: rows[:, self.names.index(name)] for name in part.names}
        return np.broadcast_to(part.feasible(x, dict.fromkeys(part.names, np.zeros(len(rows)))), (len(rows),))

    # -- drawing ------------------------------------------------------------------------------------------------------

    def draw(self, row: FloatArray, plan: Plan, key: int, n: int, seed: int, purpose: str, out: FloatArray) -> dict[str, FloatArray]:
        """Fill n rows with reachable points of one person; returns the stochastic effects drawn."""
        moved, effects = self.draw_moved(row[None, :], [plan], [key], n, seed, purpose)
        out[:] = row
        out[:, self.moved] = moved.T
        return {name: drawn[0] for name, drawn in effects.items()}

    def draw_many(self, rows: FloatArray, plans: Sequence[Plan], keys: Sequence[int], n: int, seed: int, purpose: str) -> FloatArray:
        """n reachable points for each of many people, person by person: (people · n, features)."""
        moved, _ = self.draw_moved(rows, plans, keys, n, seed, purpose)
        out = np.empty((len(self.names), len(rows) * n))
        out[self.moved] = moved
        for j in sorted(set(range(len(self.names))) - set(self.moved.tolist())):
            out[j] = np.repeat(rows[:, j], n)
        return out.T

    def draw_moved(
        self, rows: FloatArray, plans: Sequence[Plan], keys: Sequence[int], n: int, seed: int, purpose: str
    ) -> tuple[FloatArray, dict[str, list[FloatArray]]]:
        """The columns that can move, (columns, people · n), and the effects of each person.

        Every person has a stream of her own, read in one order: packs, other parts, free features, effects.
        """
        people = len(rows)
        spot = np.full(len(self.names), -1)
        spot[self.moved] = np.arange(len(self.moved))
        out = np.empty((len(self.moved) + 1, people, n))  # the last row takes what the parts' still features say
        spread = np.empty((people, n, len(self.free)))
        streams = []
        for i, (plan, key) in enumerate(zip(plans, keys)):
            rng = stream(seed, key, purpose)
            for pack in plan.packs:
                values = pack.table + rows[i, pack.columns][:, None]
                moved = values.take(rng.integers(0, pack.size, n), axis=1) if pack.size > 1 else values
                out[spot[pack.columns], i] = moved
            for other, where in plan.others:
                out[spot[where], i] = other.draw(rng, n).T + rows[i, where][:, None]
            if len(self.free):
                rng.random(out=spread[i])
            if self.model.effects:
                streams.append(rng)
        for lone in self._acted(spot):  # an effect alone moves it
            out[spot[lone]] = rows[:, lone, None]
        for column, (f, j) in enumerate(zip(self.free, self.free_columns)):
            low, high = f.moves(rows[:, j])
            out[spot[j]] = (rows[:, j] + low)[:, None] + (high - low)[:, None] * spread[:, :, column]
        effects: dict[str, list[FloatArray]] = {}
        for i, rng in enumerate(streams):
            for name, drawn in self.effects(rng, n, rows[i], out[:-1, i]).items():
                effects.setdefault(name, []).append(drawn)
        return out[: len(self.moved)].reshape(len(self.moved), people * n), effects

    def _acted(self, spot: npt.NDArray[np.int64]) -> list[int]:
        drawn = {int(j) for where in self.columns for j in where} | {int(j) for j in self.free_columns}
        return [j for j in range(len(self.names)) if spot[j] >= 0 and j not in drawn]

    def effects(self, rng: np.random.Generator, n: int, row: FloatArray, moved: FloatArray) -> dict[str, FloatArray]:
        """Draw the effects of one person and add them to the columns that can move, (columns, n)."""
        model = self.model
        x: dict[str, Any] = dict(zip(self.names, row))
        columns = {self.names[j]: moved[i] for i, j in enumerate(self.moved)}
        change = {name: np.where(np.isnan(x[name]), 0.0, column - x[name]) for name, column in columns.items()}
        action: dict[str, FloatArray] = dict(change)
        read = {name for e in model.effects for layer, name in e.parents if layer == "action"}
        for part in model.parts:
            if part.links and read & set(part.names):
                whole = {name: change.get(name, np.zeros(n)) for name in part.names}
                action |= _own_actions(part, {name: x[name] for name in part.names}, whole)
        drawn = draw_effects(model.effects, model.latent, model.by_name, x, action, change, rng, n)
        for name, epsilon in drawn.items():
            columns[name] += epsilon
        return drawn

    # -- listing ------------------------------------------------------------------------------------------------------

    def expand(self, row: FloatArray, plan: Plan) -> tuple[FloatArray, FloatArray | None]:
        """Every reachable point once, and their probabilities where these differ; the plan's size must be known."""
        assert plan.size is not None
        values = np.tile(row, (plan.size, 1))
        weights: FloatArray | None = None
        number = np.arange(plan.size)
        for part, where in zip(plan.parts, self.columns):
            if part.continuous:  # it only stays
                continue
            changes, shares = part.expand(), part.shares()  # type: ignore[union-attr]
            pick = number % len(changes)
            values[:, where] += changes[pick]
            number = number // len(changes)
            if shares is not None:
                weights = shares[pick] * (1.0 if weights is None else weights)
        return values, None if weights is None else weights * (1.0 / weights.sum())

    def expand_many(self, rows: FloatArray, plans: Sequence[Plan]) -> tuple[FloatArray, list[int], FloatArray | None]:
        """Every reachable point of many people, person by person; how many each has; probabilities where they differ."""
        sizes = [plan.size or 0 for plan in plans]
        out = np.empty((len(self.names), sum(sizes)))
        for j in range(len(self.names)):
            out[j] = np.repeat(rows[:, j], sizes)
        weights: FloatArray | None = None
        end = np.cumsum(sizes)
        for row, plan, size, stop in zip(rows, plans, sizes, end):
            part = slice(stop - size, stop)
            if not plan.others and len(plan.packs) == 1:  # the pack is the list
                out[plan.packs[0].columns, part] += plan.packs[0].table
                continue
            points, shares = self.expand(row, plan)
            out[:, part] = points.T
            if shares is not None:
                if weights is None:
                    weights = np.repeat(1.0 / np.array(sizes), sizes)
                weights[part] = shares
        return out.T, sizes, weights

    def diagnostics(self, plan: Plan) -> tuple[PartDiagnostics, ...]:
        """How each part was drawn."""
        lone = [PartDiagnostics((f.name,), "box", 1) for f in self.free]
        told = (PartDiagnostics(p.names, p.method, p.size, p.exact, p.acceptance, getattr(p, "note", "")) for p in plan.parts)
        return (*told, *lone)

    def empty_error(self, row: FloatArray, plan: Plan, label: object = None) -> EmptyError:
        """Which constraints clash, where nothing is feasible."""
        guilty = [part for part, p in zip(self.parts, plan.parts) if p.empty]
        guilty += [part for part in self.inert if not self._stays(part, row[None, :])[0]]
        part = guilty[0]
        blamed = blame(part, {name: float(row[self.names.index(name)]) for name in part.names})
        who = f"row {label}: " if label is not None else ""
        return EmptyError(
            "no action is feasible, not even staying; these clash: " + "; ".join(blamed),
            where=f"{who}part {', '.join(part.names)}",
            remedy="drop or relax one of them",
        )

    @cached_property
    def position(self) -> dict[str, int]:
        """Column of each feature."""
        return {name: j for j, name in enumerate(self.names)}


class _Cache(Generic[K, V]):
    """The values made last, up to a size in bytes. What is in it changes how fast a draw is, never what it is."""

    def __init__(self, weigh: Callable[[V], int], most: int) -> None:
        self._found: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._weigh = weigh
        self._most = most
        self._bytes = 0

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of the key, made if it is not there."""
        found = self._found.get(key)
        if found is not None:
            return found[0]
        value = make()
        size = self._weigh(value)
        self._found[key] = (value, size)
        self._bytes += size
        while self._bytes > self._most and len(self._found) > 1:
            _, (_, old) = self._found.popitem(last=False)
            self._bytes -= old
        return value


def _asked(part: Part) -> list[str]:
    """The features whose start the part's changes depend on: not targets that only follow, wherever they stand."""
    read = {name for c in part.constraints for name in c.scope} | {link.source for link in part.linkages}

    def matters(f: Feature) -> bool:
        if f.actionable or f.name in read or f.distribution is not None or f.missing == "fixed":  # a missing target does not follow
            return True
        return any(link.on_exceed != "allow" for link in part.links.get(f.name, ()))

    return [f.name for f in part.features if matters(f)]


def _own_actions(part: Part, x: dict[str, float], change: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """The own actions behind drawn changes; where the change does not tell, the nearest to none that is feasible."""
    guessed = [name for name in part.order if part.split(name) == "guess"]
    if not guessed:
        return part.own_actions(x, change)
    spans = []
    for name in guessed:
        low, high = limits(part.by_name[name], x[name])
        spans.append(sorted(np.arange(low, high + 1.0), key=abs))
    result: dict[str, FloatArray] = {}
    todo = np.ones(len(next(iter(change.values()))), dtype=bool)
    for guess in product(*spans):
        action = part.own_actions(x, change, dict(zip(guessed, guess)))
        fits = todo & part.holds(x, action, change)
        result = {name: np.where(fits, action[name], result.get(name, action[name])) for name in action}
        todo &= ~fits
        if not todo.any():
            break
    return result


def reacher(model: InteractionModel) -> Reacher:
    """The model's reacher, made once."""
    found: Reacher | None = model.__dict__.get("_reacher")
    if found is None:
        found = Reacher(model)
        object.__setattr__(model, "_reacher", found)
    return found


def _is_free(part: Part) -> bool:
    """A single real feature with nothing but its own limits."""
    lone = part.features[0]
    return (
        len(part.features) == 1 and lone.type == "real" and not part.constraints and (lone.distribution is None or lone.distribution.kind == "uniform")
    )
