"""Models that change the process, change their input, or go bad under way."""

from __future__ import annotations

import decimal
import functools
import gc
import itertools
import locale
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

Make = Callable[[], Callable[[pd.DataFrame], Any]]


def _first_warning() -> None:
    warnings.simplefilter("error")


def _handlers() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _alarm() -> None:
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.2)


def _traps() -> None:
    decimal.getcontext().traps[decimal.Inexact] = True
    decimal.getcontext().prec = 2


def _locale() -> None:
    for name in ("C", "POSIX", "C.UTF-8"):
        locale.setlocale(locale.LC_ALL, name)


#: What is done before each honest answer.
MEDDLING: dict[str, Callable[[], Any]] = {
    "changes the folder": lambda: os.chdir("/"), "makes NumPy raise": lambda: np.seterr(all="raise"), "makes warnings errors": _first_warning,
    "ignores warnings": lambda: warnings.filterwarnings("ignore"), "sets the locale": _locale, "sets decimals": _traps,
    "sets pandas options": lambda: pd.set_option("display.max_rows", 3, "display.precision", 1),
    "changes how pandas stores texts": lambda: pd.set_option("mode.string_storage", "python"),
    "takes signal handlers": _handlers, "sets an alarm": _alarm, "seeds NumPy": lambda: np.random.seed(0), "seeds random": lambda: random.seed(0),
    "draws from NumPy": lambda: np.random.rand(), "starts threads": lambda: threading.Thread(target=time.sleep, args=(0.01,)).start(),
    "closes standard output": lambda: sys.stdout.close(), "closes standard error": lambda: sys.stderr.close(),
    "replaces standard output": lambda: setattr(sys, "stdout", None), "prints a megabyte": lambda: print("x" * 1_000_000),
    "limits recursion": lambda: sys.setrecursionlimit(200), "turns the collector off": gc.disable,
    "prints numbers otherwise": lambda: np.set_printoptions(precision=1),
    "warns": lambda: warnings.warn("again", stacklevel=2), "leaves a warning hook": lambda: setattr(warnings, "showwarning", None),
}  # fmt: skip


def _spoil(honest: Callable[[pd.DataFrame], np.ndarray]) -> dict[str, tuple[Callable[[pd.DataFrame], Any], str]]:
    def first(t: pd.DataFrame, act: Callable[[pd.DataFrame], Any]) -> Any:
        answer = honest(t)
        act(t)
        return answer

    def memory(cells: np.ndarray) -> None:
        cells.flags.writeable = True
        cells[:] = 0

    def column(t: pd.DataFrame, at: Any) -> None:
        t.iloc[at, t.columns.get_loc("a")] = 0

    return {
        "writes into a column": (lambda t: first(t, lambda t: t.__setitem__("a", 0)), "refused"),
        "writes into every cell": (lambda t: first(t, lambda t: column(t, slice(None))), "refused"),
        "writes into the last row": (lambda t: first(t, lambda t: column(t, -1)), "either"),
        "writes into one row of many": (lambda t: first(t, lambda t: column(t, min(1, len(t) - 1))), "either"),
        "writes into the memory": (lambda t: first(t, lambda t: memory(t["a"].to_numpy())), "either"),
        "adds a column": (lambda t: first(t, lambda t: t.__setitem__("new", 1)), "refused"),
        "drops a column": (lambda t: first(t, lambda t: t.drop(columns="b", inplace=True)), "refused"),
        "drops rows": (lambda t: first(t, lambda t: t.drop(index=t.index[:1], inplace=True)), "refused"),
        "sorts the table": (lambda t: first(t, lambda t: t.sort_values("a", inplace=True)), "either"),
        "renames the columns": (lambda t: first(t, lambda t: setattr(t, "columns", list(t.columns)[::-1])), "refused"),
        "changes the index": (lambda t: first(t, lambda t: setattr(t, "index", t.index[::-1])), "either"),
        "changes types": (lambda t: first(t, lambda t: t.__setitem__("a", t["a"].astype(float))), "refused"),
    }  # fmt: skip


class Turning:
    """Honest until `when`, another model from then on."""

    def __init__(self, honest: Any, other: Callable[[np.ndarray, pd.DataFrame], Any], when: Callable[[int, pd.DataFrame], bool]):
        self.honest, self.other, self.when, self.calls = honest, other, when, itertools.count(1)

    def __call__(self, table: pd.DataFrame) -> Any:
        answer = self.honest(table)
        return self.other(answer, table) if self.when(next(self.calls), table) else answer


def _moved(table: pd.DataFrame) -> bool:
    return bool((table["a"].to_numpy() != table["from_a"].to_numpy()).any())


_rng = np.random.default_rng(0)
_memory = np.zeros(100_000, dtype=int)


def _reused(y: np.ndarray, t: pd.DataFrame) -> np.ndarray:
    _memory[: len(y)] = y
    return _memory[: len(y)]


TURNING: dict[str, tuple[Callable[[np.ndarray, pd.DataFrame], Any], Callable[[int, pd.DataFrame], bool], str]] = {
    "flips after ten calls": (lambda y, t: 1 - y, lambda k, t: k > 10, "either"),
    "flips every answer": (lambda y, t: 1 - y, lambda k, t: k % 2 == 0, "refused"),
    "flips at points from the second look on": (lambda y, t: 1 - y, lambda k, t: _moved(t) and k > 8, "either"),
    "is random": (lambda y, t: _rng.integers(0, 2, len(y)), lambda k, t: True, "refused"),
    "is random at points": (lambda y, t: _rng.integers(0, 2, len(y)), lambda k, t: _moved(t), "refused"),
    "draws from the global generator": (lambda y, t: np.random.randint(0, 2, len(y)), lambda k, t: True, "refused"),
    "texts at points": (lambda y, t: np.where(y, "yes", "no"), lambda k, t: _moved(t), "refused"),
    "truth values at points": (lambda y, t: y.astype(bool), lambda k, t: _moved(t), "refused"),
    "shares at points": (lambda y, t: y * 0.7, lambda k, t: _moved(t), "refused"),
    "scores at points": (lambda y, t: y + 0.3, lambda k, t: _moved(t), "refused"),
    "masks hits at points": (lambda y, t: np.ma.masked_array(y, mask=y == 1), lambda k, t: _moved(t), "gaps"),
    "None at points": (lambda y, t: [None] * len(y), lambda k, t: _moved(t), "refused"),
    "texts after ten calls": (lambda y, t: y.astype(str), lambda k, t: k > 10, "either"),
    "depends on the number of rows": (lambda y, t: (y + len(y)) % 2, lambda k, t: True, "refused"),
    "depends on the other rows": (lambda y, t: (t["a"] > t["a"].mean()).astype(int).to_numpy(), lambda k, t: True, "refused"),
    "depends on the place": (lambda y, t: np.arange(len(y)) % 2, lambda k, t: True, "refused"),
    "sorts its answers": (lambda y, t: np.sort(y), lambda k, t: True, "refused"),
    "answers in another order": (lambda y, t: y[::-1], lambda k, t: True, "refused"),
    "uses its memory again": (_reused, lambda k, t: True, "same"),
    "fills its memory with others later": (lambda y, t: _reused(y, t).view(), lambda k, t: True, "same"),
    "depends on the index": (lambda y, t: (y + t.index.to_numpy().astype(int)) % 2, lambda k, t: True, "refused"),
    "goes bad slowly": (lambda y, t: np.where(np.arange(len(y)) < 3, 1 - y, y), lambda k, t: k > 12, "either"),
    "wrong length at points": (lambda y, t: y[:-1], lambda k, t: _moved(t), "refused"),
    "a column at points": (lambda y, t: y[:, None], lambda k, t: _moved(t), "refused"),
}  # fmt: skip


def of(honest: Callable[[pd.DataFrame], np.ndarray]) -> dict[str, tuple[Make, str]]:
    """Return all models of this file by name, and what may become of an audit of each."""

    def meddler(act: Callable[[], Any]) -> Callable[[pd.DataFrame], Any]:
        def model(table: pd.DataFrame) -> np.ndarray:
            act()
            return honest(table)

        return model

    found: dict[str, tuple[Make, str]] = {name: (functools.partial(meddler, act), "same") for name, act in MEDDLING.items()}
    found |= {name: ((lambda model=model: model), expected) for name, (model, expected) in _spoil(honest).items()}  # type: ignore[misc]
    return found | {name: (functools.partial(Turning, honest, other, when), expected) for name, (other, when, expected) in TURNING.items()}
