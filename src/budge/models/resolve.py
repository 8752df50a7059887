"""Which rows a model answers: a failing batch is halved until only the failing rows are left out."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from budge.errors import BudgeError, ModelError, printable
from budge.models.reading import UnfitError, as_array
from budge.models.rows import Array, Rows, count, take

__all__ = ["Resolved", "UnfitError", "all_or_raise", "fatal", "resolve"]

#: At most so many distinct reasons are kept.
KEPT_REASONS = 10

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
    """

    outputs: Array
    resolved: npt.NDArray[np.bool_]
    errors: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Array]:
        return iter((self.outputs, self.resolved))

    @property
    def error(self) -> str:
        """The first reason, or an empty text."""
        return self.errors[0] if self.errors else ""


def resolve(read: Read, rows: Rows, *, batch_rows: int, max_calls: int, label: bool) -> Resolved:
    """Ask for all rows, batch by batch; halve a batch that fails, the largest first.

    At most `max_calls` further calls are made after failures. When they are used up, what is left of the failing batches
    counts as unresolved: too many rows may be left out, never a row without an answer let in.

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
    n = count(rows)
    found: list[tuple[int, Array, npt.NDArray[np.bool_] | None]] = []
    reasons: list[str] = []
    waiting = [(-min(batch_rows, n - start), start) for start in range(0, n, batch_rows)]
    heapq.heapify(waiting)
    spare = max_calls
    while waiting:
        size, start = -waiting[0][0], heapq.heappop(waiting)[1]
        try:
            outputs, missing = read(take(rows, start, start + size))
        except (MemoryError, UnfitError):
            raise
        except Exception as error:
            if fatal(error):
                raise
            _keep(reasons, _text(error))
            if size > 1 and spare >= 2:
                spare -= 2
                half = size // 2
                heapq.heappush(waiting, (-half, start))
                heapq.heappush(waiting, (half - size, start + half))
            continue
        if missing is not None:
            _keep(reasons, "no answer (None or NaN)")
        found.append((start, outputs, missing))
    found.sort(key=lambda piece: piece[0])
    return Resolved(*_assemble(found, n, label=label), tuple(reasons))


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
            remedy="predict_resolved() gives the others",
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


def _text(error: Exception) -> str:
    text = str(error) if isinstance(error, BudgeError) else f"{type(error).__name__}: {error}"
    return printable(text if len(text) <= 500 else text[:499] + "…")
