"""Which rows a model answers: a failing batch is halved until only the failing rows are left out."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from budge.errors import BudgeError, ModelError
from budge.models.contained import reason
from budge.models.reading import UnfitError, as_array
from budge.models.rows import Array, Rows, count, take

__all__ = ["Resolved", "UnfitError", "all_or_raise", "fatal", "resolve"]

#: At most so many distinct reasons are kept.
KEPT_REASONS = 10
#: Single rows that are asked about where a whole batch fails; failures in a row after which a row that had an answer is asked about again.
PROBES, IN_A_ROW = 8, 16

Read = Callable[[Rows], tuple[Array, npt.NDArray[np.bool_] | None]]


@dataclass(frozen=True)
class Resolved:
    """Outputs, which rows have one, and why others have none. Unpacks into the first two.

    Attributes
    ----------
    outputs
        One entry a row; NaN (scores) or None (labels) where there is no answer.
    resolved
        True where there is an answer.
    errors
        The distinct reasons, first one first, at most ten.
    failures
        The number of calls that failed.
    down
        True where the model failed on everything, so that rows were left out without a call.
    """

    outputs: Array
    resolved: npt.NDArray[np.bool_]
    errors: tuple[str, ...] = ()
    failures: int = 0
    down: bool = False

    def __iter__(self) -> Iterator[Array]:
        return iter((self.outputs, self.resolved))

    @property
    def error(self) -> str:
        """The first reason, or an empty text."""
        return self.errors[0] if self.errors else ""


def resolve(read: Read, rows: Rows, *, batch_rows: int, max_calls: int, label: bool) -> Resolved:
    """Ask for all rows, batch by batch; halve a batch that fails, the largest first, and stop where the model fails on everything.

    A model that fails on everything is told from one that fails on some rows by few calls: after the first failure up to `PROBES` single rows, spread
    over the batch, are asked about until one has an answer. Where none has, nothing more is asked. After `IN_A_ROW` further failures in a row, a row that
    had an answer is asked about again; where it fails now, nothing more is asked. So a model that is down costs at most 1 + `PROBES` calls, one that
    goes down under way 2 + `IN_A_ROW`, and k failing rows among n about 2 k log2(n).

    At most `max_calls` calls are made after the first failure. Rows that are not asked about count as unresolved: too many rows may be left out, never a
    row without an answer let in.

    Examples
    --------
    >>> def odd(rows):
    ...     if (rows == 3).any():
    ...         raise ValueError("3 is odd")
    ...     return rows * 2.0, None
    >>> done = resolve(odd, np.arange(5), batch_rows=100, max_calls=50, label=False)
    >>> done.resolved.tolist(), done.error
    ([True, True, True, False, True], 'ValueError: 3 is odd')
    """
    search = _Search(read, rows, max_calls)
    n = count(rows)
    waiting = [(-min(batch_rows, n - start), start, True) for start in range(0, n, batch_rows)]
    heapq.heapify(waiting)
    while waiting and not search.down:
        less, start, whole = heapq.heappop(waiting)
        size = -less
        if not (whole or search.spare > 0) or search.ask(start, size):
            continue
        if search.answered is None and size > 1:
            search.probe(start, size)
            if size <= PROBES:  # each of them was asked about
                continue
        elif search.in_a_row >= IN_A_ROW:
            search.ask_known()
        if size > 1 and search.spare > 0:
            half = size // 2
            heapq.heappush(waiting, (-half, start, False))
            heapq.heappush(waiting, (half - size, start + half, False))
    found = sorted(search.found.items())
    pieces = [(start, *piece) for start, piece in found]
    return Resolved(*_assemble(pieces, n, label=label), tuple(search.reasons), search.failures, search.down)


class _Search:
    """The calls of one search: what was found, why calls failed, and how many more may be made."""

    def __init__(self, read: Read, rows: Rows, max_calls: int) -> None:
        self.read, self.rows, self.spare = read, rows, max_calls
        self.found: dict[int, tuple[Array, npt.NDArray[np.bool_] | None]] = {}
        self.reasons: list[str] = []
        self.failures = self.in_a_row = 0
        self.answered: int | None = None  # a row that has an answer
        self.down = False

    def ask(self, start: int, size: int, *, keep: bool = True) -> bool:
        """Ask about some rows; return whether the call came back."""
        self.spare -= bool(self.failures)
        try:
            outputs, missing = self.read(take(self.rows, start, start + size))
        except (MemoryError, UnfitError):
            raise
        except Exception as error:
            if fatal(error):
                raise
            _keep(self.reasons, reason(error))
            self.failures, self.in_a_row = self.failures + 1, self.in_a_row + 1
            return False
        if missing is not None and keep:
            _keep(self.reasons, "no answer (None or NaN)")
        if keep:
            self.found[start] = (outputs, missing)
        self.in_a_row, self.answered = 0, start
        return True

    def probe(self, start: int, size: int) -> None:
        """Ask about single rows of a failing batch: of a small one about each, else until one has an answer."""
        if size <= PROBES:
            answers = [self.ask(start + k, 1) for k in range(size) if self.spare > 0]
            self.down = size == PROBES == answers.count(False)
        elif self.spare >= PROBES:
            places = (start + (2 * k + 1) * size // (2 * PROBES) for k in range(PROBES))
            self.down = not any(self.ask(place, 1, keep=False) for place in places)

    def ask_known(self) -> None:
        """Ask again about a row that had an answer."""
        assert self.answered is not None
        self.down = self.spare > 0 and not self.ask(self.answered, 1, keep=False)
        self.in_a_row = 0


def fatal(error: Exception) -> bool:
    """Whether an exception speaks of the model as a whole or of this machine, not of rows."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return "NotFittedError" in names or (isinstance(error, BudgeError) and not isinstance(error, ModelError))


def all_or_raise(done: Resolved, name: str) -> Array:
    """The outputs, if every row has one."""
    if not done.resolved.all():
        lost = np.flatnonzero(~done.resolved)
        raise ModelError(
            f"{len(lost)} of {len(done.resolved)} rows got no answer, row {lost[0]} first: {done.error}",
            where=name,
            remedy="predict_resolved() gives the others" if done.resolved.any() else "see that the model is there and answers",
        )
    return done.outputs


def _assemble(found: list[tuple[int, Array, npt.NDArray[np.bool_] | None]], n: int, *, label: bool) -> tuple[Array, Array]:
    if len(found) == 1 and len(found[0][1]) == n:
        _, outputs, missing = found[0]
        return outputs, np.ones(n, dtype=bool) if missing is None else ~missing
    resolved = np.zeros(n, dtype=bool)
    kinds = {piece.dtype.kind for _, piece, _ in found}
    complete = sum(len(piece) for _, piece, _ in found) == n
    numeric = kinds <= set("iuf")
    if complete and (len(kinds) == 1 or numeric):
        outputs = np.concatenate([piece for _, piece, _ in found])
    elif numeric and not label:
        outputs = np.full(n, np.nan)
    else:  # labels keep their types beside the None of rows without one
        outputs = np.full(n, None, dtype=object)
    for start, piece, missing in found:
        outputs[start : start + len(piece)] = piece if outputs.dtype.kind != "O" else as_array(piece.tolist())
        resolved[start : start + len(piece)] = True if missing is None else ~missing
    return outputs, resolved


def _keep(reasons: list[str], text: str) -> None:
    if text not in reasons and len(reasons) < KEPT_REASONS:
        reasons.append(text)
