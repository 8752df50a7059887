"""Two hundred models that fail, lie, drift or meddle: each by name, with what may become of an audit of it.

`same`: the counts of the honest model. `refused`: an error of budge. `either`: one of the two. `gaps`: the honest counts but for points without an answer.
`another model`: any counts, since its labels are others.
"""

from __future__ import annotations

import array
import asyncio
import collections
import datetime
import decimal
import enum
import fractions
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import meddling_models
import numpy as np
import pandas as pd
import scipy.sparse

Model = Callable[[pd.DataFrame], Any]


def honest(table: pd.DataFrame) -> np.ndarray:
    """1 from five points on."""
    return (table["a"].to_numpy() + table["b"].to_numpy() >= 5).astype(int)


@dataclass(frozen=True)
class Hostile:
    make: Callable[[], Model]
    expected: str


# -- what a model raises ------------------------------------------------------------------------------------------------


class SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Final(BaseException):
    pass


class WordyError(Exception):
    def __str__(self) -> str:
        return "x" * 10_000_000


def recurse(depth: int = 0) -> int:
    return recurse(depth + 1) + 1


def raiser(error: Any) -> Callable[[], Any]:
    def act() -> None:
        raise error

    return act


RAISED: dict[str, Callable[[], Any]] = {
    "ValueError": raiser(ValueError("bad value")), "KeyError": raiser(KeyError("column")), "MemoryError": raiser(MemoryError("no room")),
    "SystemExit": raiser(SystemExit(3)), "sys.exit": sys.exit, "sys.exit text": lambda: sys.exit("done"), "GeneratorExit": raiser(GeneratorExit()),
    "StopIteration": raiser(StopIteration(4)), "StopAsyncIteration": raiser(StopAsyncIteration()), "RecursionError": recurse,
    "CancelledError": raiser(asyncio.CancelledError()), "BaseException": raiser(Final("final")), "unprintable": raiser(SilentError()),
    "endless text": raiser(WordyError()), "escapes": raiser(ValueError("\x1b[2J\x07 api_key=abcdefghijkl\nsecond line")),
    "group": raiser(ExceptionGroup("several", [ValueError("one"), KeyError("two")])), "OSError": raiser(OSError(28, "No space left on device")),
    "AssertionError": raiser(AssertionError()), "UnicodeError": raiser(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")),
    "Warning": raiser(UserWarning("a warning")), "EOFError": raiser(EOFError()), "ArithmeticError": lambda: 1 // 0,
}  # fmt: skip


def fails(act: Callable[[], Any], when: str) -> Callable[[], Model]:
    def make() -> Model:
        calls = itertools.count(1)

        def model(table: pd.DataFrame) -> np.ndarray:
            call = next(calls)
            moved = bool((table["a"].to_numpy() != table["from_a"].to_numpy()).any())
            if when == "always" or (when == "points" and moved) or (when == "once" and call == 9) or (when == "rows" and (table["a"] == 4).any()):
                act()
            return honest(table)

        return model

    return make


def failing() -> dict[str, Hostile]:
    found = {}
    for name, act in RAISED.items():
        found[f"raises {name} always"] = Hostile(fails(act, "always"), "refused")
        found[f"raises {name} on points"] = Hostile(fails(act, "points"), "refused")
        found[f"raises {name} once"] = Hostile(fails(act, "once"), "either")  # where it falls on a start, that is an error
    for name in ("ValueError", "SystemExit", "StopIteration", "BaseException", "RecursionError", "unprintable"):
        found[f"raises {name} on some rows"] = Hostile(fails(RAISED[name], "rows"), "gaps")
    return found


# -- what a model returns -----------------------------------------------------------------------------------------------


class Equal:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


class Raising:
    """Raises wherever it is touched."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not compared")

    def __hash__(self) -> int:
        raise RuntimeError("not hashed")

    def __repr__(self) -> str:
        raise RuntimeError("not shown")

    def __bool__(self) -> bool:
        raise RuntimeError("not judged")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise SystemExit("no array")

    def __len__(self) -> int:
        raise RuntimeError("no length")


class Text(str):
    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0


class Number(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __int__(self) -> int:
        return 1


class Endless:
    """A sequence without an end."""

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, at: int) -> int:
        return 1

    def __iter__(self) -> Any:
        return itertools.repeat(1)


class Listed(list):  # type: ignore[type-arg]
    """A list that shows other items than it holds."""

    def __iter__(self) -> Any:
        return itertools.repeat(1)

    def __len__(self) -> int:
        return 3


class Arrayed:
    """Gives an array by the protocol."""

    def __init__(self, values: Any):
        self.values = values

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.values


class Twisted(np.ndarray):  # type: ignore[type-arg]
    def __eq__(self, other: object) -> Any:
        return np.ones(self.shape, bool)

    def __len__(self) -> int:
        return 0


class Grade(enum.Enum):
    LOW = 0
    HIGH = 1


class Mark(enum.IntEnum):
    LOW = 0
    HIGH = 1


def objects(values: Any, kind: Callable[[int], Any]) -> np.ndarray:
    found = np.empty(len(values), dtype=object)
    for i, value in enumerate(values.tolist()):
        found[i] = kind(value)
    return found


def masked(y: np.ndarray, t: pd.DataFrame) -> Any:
    return np.ma.masked_array(y, mask=(t["a"] == 4).to_numpy())


#: From the honest answer and the table to what is returned.
RETURNED: dict[str, tuple[Callable[[np.ndarray, pd.DataFrame], Any], str]] = {
    "None": (lambda y, t: None, "refused"), "a scalar": (lambda y, t: 1, "refused"), "a text": (lambda y, t: "yes", "refused"),
    "a generator": (lambda y, t: (v for v in y), "refused"), "an iterator": (lambda y, t: iter(y.tolist()), "refused"),
    "an endless iterator": (lambda y, t: itertools.repeat(1), "refused"), "an endless sequence": (lambda y, t: Endless(), "refused"),
    "a map": (lambda y, t: map(int, y), "refused"), "a dict": (lambda y, t: dict(enumerate(y)), "refused"), "a set": (lambda y, t: set(y.tolist()), "refused"),
    "a range": (lambda y, t: range(len(y)), "either"), "a deque": (lambda y, t: collections.deque(y.tolist()), "same"),
    "a list": (lambda y, t: y.tolist(), "same"), "a tuple": (lambda y, t: tuple(y.tolist()), "same"), "bytes": (lambda y, t: bytes(y.tolist()), "refused"),
    "a packed array": (lambda y, t: array.array("b", y.tolist()), "same"), "a memoryview": (lambda y, t: memoryview(y), "same"),
    "a bytearray": (lambda y, t: bytearray(y.tolist()), "either"), "a list that lies": (lambda y, t: Listed(y.tolist()), "same"),
    "a column": (lambda y, t: y[:, None], "refused"), "two columns": (lambda y, t: np.c_[1 - y, y], "refused"),
    "three dimensions": (lambda y, t: y[:, None, None], "refused"), "too few": (lambda y, t: y[:-1], "refused"),
    "too many": (lambda y, t: np.r_[y, 1], "refused"), "nothing": (lambda y, t: [], "refused"),
    "a thousand million rows": (lambda y, t: np.broadcast_to(np.int8(1), (10**9,)), "refused"),
    "a million items": (lambda y, t: [1] * 10**6, "refused"), "an endless count": (lambda y, t: itertools.count(), "refused"),
    "nested lists": (lambda y, t: [[v] for v in y.tolist()], "refused"), "ragged lists": (lambda y, t: [[1] * (i % 3) for i in range(len(y))], "refused"),
    "deeply nested lists": (lambda y, t: [[[[[v]]]] for v in y.tolist()], "refused"), "a sparse column": (lambda y, t: scipy.sparse.csr_matrix(y), "refused"),
    "a sparse array": (lambda y, t: scipy.sparse.coo_array(y), "refused"), "a masked array": (masked, "gaps"),
    "a masked array of texts": (lambda y, t: np.ma.masked_array(np.where(y, 1, 0).astype(object), mask=(t["a"] == 4).to_numpy()), "gaps"),
    "a masked array without masks": (lambda y, t: np.ma.masked_array(y), "same"), "a matrix": (lambda y, t: np.asmatrix(y), "refused"),
    "an array that lies": (lambda y, t: y.view(Twisted), "same"), "a record array": (lambda y, t: np.rec.fromarrays([y]), "refused"),
    "structured": (lambda y, t: np.array([(v,) for v in y.tolist()], dtype=[("v", int)]), "refused"),
    "a table of one column": (lambda y, t: pd.DataFrame({"y": y}), "refused"), "a series": (lambda y, t: pd.Series(y, index=t.index), "same"),
    "a series of other labels": (lambda y, t: pd.Series(y, index=[f"p{i}" for i in range(len(y))]), "same"),
    "a series of one label": (lambda y, t: pd.Series(y, index=[0] * len(y)), "same"),
    "a series in another order": (lambda y, t: pd.Series(y, index=t.index).sort_values(kind="stable"), "either"),
    "a series upside down": (lambda y, t: pd.Series(y, index=t.index)[::-1], "either"),
    "a categorical": (lambda y, t: pd.Categorical(y), "same"), "nullable integers": (lambda y, t: pd.array(y, dtype="Int64"), "same"),
    "nullable with gaps": (lambda y, t: pd.array(y, dtype="Int64").__class__(y, (t["a"] == 4).to_numpy()), "gaps"),
    "an index": (lambda y, t: pd.Index(y), "same"), "Arrow numbers": (lambda y, t: pd.array(y, dtype="int64[pyarrow]"), "same"),
    "None for some": (lambda y, t: [None if a == 4 else v for v, a in zip(y.tolist(), t["a"])], "gaps"),
    "NaN for some": (lambda y, t: np.where(t["a"] == 4, np.nan, y), "gaps"), "NaN for all": (lambda y, t: y * np.nan, "refused"),
    "pd.NA for some": (lambda y, t: objects(np.where(t["a"] == 4, 9, y), lambda v: pd.NA if v == 9 else v), "gaps"),
    "infinities": (lambda y, t: np.where(y, 1.0, -np.inf), "same"), "minus zero": (lambda y, t: np.where(y, 1.0, -0.0), "same"),
    "big-endian": (lambda y, t: y.astype(">i4"), "same"), "half floats": (lambda y, t: y.astype(np.float16), "same"),
    "long doubles": (lambda y, t: y.astype(np.longdouble), "same"), "unsigned": (lambda y, t: y.astype(np.uint64), "same"),
    "one byte": (lambda y, t: y.astype(np.int8), "same"), "strided": (lambda y, t: np.repeat(y, 2)[::2], "same"),
    "read-only": (lambda y, t: np.frombuffer(y.tobytes(), dtype=y.dtype), "same"), "booleans": (lambda y, t: y.astype(bool), "refused"),
    "complex": (lambda y, t: y.astype(complex), "refused"), "complex items": (lambda y, t: [complex(v) for v in y], "refused"),
    "dates": (lambda y, t: y.astype("datetime64[D]"), "refused"), "durations": (lambda y, t: y.astype("timedelta64[s]"), "refused"),
    "date items": (lambda y, t: [datetime.date(2020, 1, 1 + int(v)) for v in y], "refused"), "byte texts": (lambda y, t: y.astype("S1"), "refused"),
    "texts": (lambda y, t: y.astype(str), "refused"), "void": (lambda y, t: y.astype(np.int64).view("V8"), "refused"),
    "Decimals": (lambda y, t: objects(y, decimal.Decimal), "refused"), "Fractions": (lambda y, t: objects(y, fractions.Fraction), "refused"),
    "an Enum": (lambda y, t: objects(y, Grade), "refused"), "an IntEnum": (lambda y, t: objects(y, Mark), "same"),
    "tuples": (lambda y, t: objects(y, lambda v: (v,)), "refused"), "lists as labels": (lambda y, t: objects(y, lambda v: [v]), "refused"),
    "sets as labels": (lambda y, t: objects(y, lambda v: {v}), "refused"), "dicts as labels": (lambda y, t: objects(y, lambda v: {"v": v}), "refused"),
    "equal to everything": (lambda y, t: objects(y, lambda v: Equal()), "refused"), "raising labels": (lambda y, t: objects(y, lambda v: Raising()), "refused"),
    "a list of raising labels": (lambda y, t: [Raising()] * len(y), "refused"), "texts that lie": (lambda y, t: [Text(v) for v in y.tolist()], "refused"),
    "numbers that lie": (lambda y, t: objects(y, Number), "same"), "a list of numbers that lie": (lambda y, t: [Number(v) for v in y.tolist()], "same"),
    "itself raising": (lambda y, t: Raising(), "refused"), "by protocol": (lambda y, t: Arrayed(y), "same"),
    "by a protocol that lies": (lambda y, t: Arrayed("no array"), "refused"), "by a protocol of one value": (lambda y, t: Arrayed(np.array(1)), "refused"),
    "the table": (lambda y, t: t, "refused"), "the table's memory": (lambda y, t: t["from_a"].to_numpy(), "another model"),
    "a class": (lambda y, t: int, "refused"), "a function": (lambda y, t: honest, "refused"), "NotImplemented": (lambda y, t: NotImplemented, "refused"),
    "Ellipsis": (lambda y, t: ..., "refused"), "an exception": (lambda y, t: ValueError("returned"), "refused"),
    "shares": (lambda y, t: y * 0.7, "refused"), "mixed kinds": (lambda y, t: [str(v) if i % 2 else v for i, v in enumerate(y.tolist())], "refused"),
    "numbers as numpy scalars": (lambda y, t: [np.int64(v) for v in y], "same"),
    "large integers": (lambda y, t: objects(y, lambda v: v * 10**30 or 0), "another model"),
}  # fmt: skip


def returning() -> dict[str, Hostile]:
    def made(turn: Callable[[np.ndarray, pd.DataFrame], Any]) -> Callable[[], Model]:
        return lambda: lambda table: turn(honest(table), table)

    return {f"returns {name}": Hostile(made(turn), expected) for name, (turn, expected) in RETURNED.items()}


def everything() -> dict[str, Hostile]:
    """Return all hostile models by name."""
    meddling = {name: Hostile(make, expected) for name, (make, expected) in meddling_models.of(honest).items()}
    return failing() | returning() | meddling
