"""Where points come from: an interaction model over a table, or anything that can draw.

A source holds some people. It tells their statuses and how many points each has in all, and yields their points in
chunks of bounded size, every person whole. What follows (querying, counting) does not know the difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.errors import DataError
from budge.interaction import InteractionModel
from budge.reach.proposal import Proposal
from budge.reach.reacher import Plan, reacher
from budge.reach.streams import content_keys, stream

__all__ = ["Chunk", "Drawer", "DrawerSource", "Source", "TableSource"]

FloatArray = npt.NDArray[np.float64]
CHUNK_ROWS = 100_000


@dataclass(frozen=True)
class Chunk:
    """The points of some people, one after the other."""

    people: list[int]  # positions in the source
    counts: list[int]  # points of each
    rows: Any  # what the model is asked: a DataFrame, an array or a list
    values: FloatArray | None = None  # the same as numbers, where there are such
    weights: FloatArray | None = None  # probabilities of an exact set, or importance weights of draws
    weight_bound: float = 1.0


class Source(Protocol):
    """Some people and the points that they can reach."""

    @property
    def labels(self) -> Sequence[Any]:
        """What the people are called."""

    def __len__(self) -> int:
        """Number of people."""

    def starts(self) -> Any:
        """What the model is asked about the people as they are."""

    def status(self, i: int) -> str:
        """ok, fixed, empty or invalid_start."""

    def size(self, i: int) -> int | None:
        """How many points person i can reach; None where they cannot be listed."""

    def exact(self, people: Sequence[int]) -> Iterator[Chunk]:
        """All points of these people."""

    def draws(self, people: Sequence[int], n: int, seed: int, purpose: str, proposal: Any = None) -> Iterator[Chunk]:
        """n draws for each of these people."""

    def take(self, people: Sequence[int]) -> Source:
        """Some of the people."""

    def keys(self) -> list[int]:
        """One number a person for her content."""


@dataclass
class TableSource:
    """An interaction model over the rows of a table."""

    model: InteractionModel
    frame: pd.DataFrame
    values: FloatArray
    invalid: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def labels(self) -> Sequence[Any]:
        """The index of the table."""
        return list(self.frame.index)

    def starts(self) -> pd.DataFrame:
        """The table as it is."""
        return self.frame

    def keys(self) -> list[int]:
        """One number a person for the content of the declared features."""
        return content_keys(tuple(f.name for f in self.model.features), self.values)

    def take(self, people: Sequence[int]) -> TableSource:
        """Some of the people."""
        some = list(people)
        return TableSource(self.model, self.frame.iloc[some], self.values[some], self.invalid[some])

    @cached_property
    def _statuses(self) -> list[str]:
        """Everybody's status at once."""
        maker = reacher(self.model)
        found: list[str] = []
        for at in range(0, len(self.values), 64):  # few plans at a time: one may hold megabytes
            rows = self.values[at : at + 64]
            found += maker.statuses(rows, [maker.plan(row) for row in rows])
        return ["invalid_start" if bad else status for bad, status in zip(self.invalid, found)]

    @cached_property
    def _free_to_move(self) -> npt.NDArray[np.bool_]:
        """Who has a continuous feature that moves by itself."""
        maker = reacher(self.model)
        moves = np.zeros(len(self), dtype=bool)
        for f, j in zip(maker.free, maker.free_columns):
            low, high = f.moves(self.values[:, j])
            moves |= low < high
        return moves

    def _plan(self, i: int) -> Plan:
        return reacher(self.model).plan(self.values[i])

    def status(self, i: int) -> str:
        """ok, fixed, empty or invalid_start."""
        return self._statuses[i]

    def size(self, i: int) -> int | None:
        """The number of reachable points, where they can be listed."""
        if self.model.effects or self._free_to_move[i]:
            return None
        plan = self._plan(i)
        return plan.size if plan.size is not None else (1 if plan.only_stays else None)

    def exact(self, people: Sequence[int]) -> Iterator[Chunk]:
        """All points of these people."""
        maker = reacher(self.model)
        batch: list[int] = []
        rows = 0
        for at, i in enumerate(people):
            batch.append(i)
            rows += self._plan(i).size or 0
            if rows >= CHUNK_ROWS or at == len(people) - 1:
                values, counts, weights = maker.expand_many(self.values[batch], [self._plan(k) for k in batch])
                yield Chunk(batch, counts, self._decode(values, batch, counts), values, weights)
                batch, rows = [], 0

    def draws(self, people: Sequence[int], n: int, seed: int, purpose: str, proposal: Any = None) -> Iterator[Chunk]:
        """n draws for each of these people."""
        maker = reacher(self.model)
        keys = content_keys(maker.names, self.values[list(people)]) if len(people) else []
        step = max(1, CHUNK_ROWS // n)
        for at in range(0, len(people), step):
            some = list(people[at : at + step])
            some_keys, weights, bound = keys[at : at + step], None, 1.0
            if proposal is None:
                values = maker.draw_many(self.values[some], [self._plan(i) for i in some], some_keys, n, seed, purpose)
            else:
                values, weights = np.empty((len(some) * n, self.values.shape[1])), np.empty(len(some) * n)
                for k, (i, key) in enumerate(zip(some, some_keys)):
                    part = slice(k * n, (k + 1) * n)
                    plan, weigh = Proposal.of(self.model, proposal).applied(self._plan(i), maker, self.values[i])
                    effects = maker.draw(self.values[i], plan, key, n, seed, purpose, values[part])
                    weights[part], bound = weigh(values[part], effects), max(bound, weigh.bound)
            yield Chunk(some, [n] * len(some), self._decode(values, some, [n] * len(some)), values, weights, bound)

    def _decode(self, values: FloatArray, people: list[int], counts: list[int]) -> pd.DataFrame:
        return self.model.coding.decode(values, self.frame, np.repeat(np.array(people, dtype=np.intp), counts))


class Drawer(Protocol):
    """Anything that can draw: stands in for an interaction model where inputs are no table."""

    def draw(self, x: Any, n: int, rng: np.random.Generator) -> Any:
        """n inputs that can be reached from x, as an array with n entries or a list."""


@dataclass
class DrawerSource:
    """Inputs of any kind (images, series, texts) and something that draws from each."""

    drawer: Drawer
    inputs: Sequence[Any]
    labels: Sequence[Any]

    @classmethod
    def of(cls, drawer: Drawer, X: Any) -> DrawerSource:
        """From an array (first axis: people), a list, or a Series of inputs."""
        if isinstance(X, pd.Series):
            return cls(drawer, list(X), list(X.index))
        if isinstance(X, pd.DataFrame):
            return cls(drawer, [X.iloc[[i]] for i in range(len(X))], list(X.index))
        if isinstance(X, np.ndarray | list | tuple) and len(X):
            return cls(drawer, X, list(range(len(X))))  # type: ignore[arg-type]  # an array is a sequence of inputs here
        raise DataError("inputs are an array, a list or a Series with at least one entry", got=type(X).__name__)

    def __len__(self) -> int:
        return len(self.inputs)

    def starts(self) -> Any:
        """The inputs as they are."""
        return _stack(
            [self.inputs[i : i + 1] if isinstance(self.inputs, np.ndarray) else [self.inputs[i]] for i in range(len(self))]
        )

    def keys(self) -> list[int]:
        """One number an input for its content."""
        return [_content(x) for x in self.inputs]

    def take(self, people: Sequence[int]) -> DrawerSource:
        """Some of the inputs."""
        some = list(people)
        chosen = self.inputs[some] if isinstance(self.inputs, np.ndarray) else [self.inputs[i] for i in some]
        return DrawerSource(self.drawer, chosen, [self.labels[i] for i in some])

    def status(self, i: int) -> str:
        """Always ok: what can be reached is the drawer's business."""
        return "ok"

    def size(self, i: int) -> int | None:
        """Not known."""
        return None

    def exact(self, people: Sequence[int]) -> Iterator[Chunk]:
        """Nothing is listed here."""
        yield from ()

    def draws(self, people: Sequence[int], n: int, seed: int, purpose: str, proposal: Any = None) -> Iterator[Chunk]:
        """n draws for each of these inputs."""
        step = max(1, CHUNK_ROWS // (10 * n))
        for at in range(0, len(people), step):
            some, drawn = list(people[at : at + step]), []
            for i in some:
                points = self.drawer.draw(self.inputs[i], n, stream(seed, _content(self.inputs[i]), purpose))
                if len(points) != n:
                    raise DataError(f"draw must return {n} inputs", where=f"input {self.labels[i]}", got=len(points))
                drawn.append(points)
            yield Chunk(some, [n] * len(some), _stack(drawn))


def _stack(pieces: Sequence[Any]) -> Any:
    if isinstance(pieces[0], pd.DataFrame):
        return pd.concat(pieces, ignore_index=True)
    if isinstance(pieces[0], list) and isinstance(pieces[0][0], pd.DataFrame):
        return pd.concat([frame for piece in pieces for frame in piece], ignore_index=True)
    if isinstance(pieces[0], np.ndarray):
        return np.concatenate(pieces)
    return [item for piece in pieces for item in piece]


def _content(x: Any) -> int:
    if isinstance(x, pd.DataFrame):
        x = x.to_json(orient="split", index=False)
    if isinstance(x, np.ndarray | np.generic):
        array = np.ascontiguousarray(x)
        if array.dtype.kind == "f":
            array = array + 0.0
        body = (
            f"{array.shape}{array.dtype.kind}".encode()
            + (array.astype("<f8") if array.dtype.kind in "biuf" else array.astype(str)).tobytes()
        )
    elif x is None or isinstance(x, Mapping | list | tuple | str | int | float):
        body = json.dumps(x, sort_keys=True, default=repr).encode()
    else:
        body = repr(x).encode()
    return int.from_bytes(blake2b(body, digest_size=16).digest(), "little")
