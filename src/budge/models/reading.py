"""How a model's answer is read: as labels, as scores, as the probability of a class.

Labels keep their type: 1, "1" and True are three labels. What cannot be read raises; rows without an answer (None, NaN) are
marked, never guessed.
"""

from __future__ import annotations

from array import array as packed
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.errors import ModelError
from budge.models.rows import Array

__all__ = ["Ask", "Output", "Reading", "UnfitError", "as_array", "check_order", "kind_of", "list_classes", "plain", "same_label", "show_label"]

Output = Literal["label", "score"]
Ask = Literal["label", "probability", "score"]


def plain(value: object) -> object:
    """A NumPy scalar as the Python value that it stands for; anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


class UnfitError(ModelError):
    """The model as a whole cannot answer: asking row by row would not help."""


def kind_of(value: object) -> str:
    """The kind of a label: labels of different kinds are never equal.

    Examples
    --------
    >>> [kind_of(v) for v in (1, 1.0, True, "1", None)]
    ['number', 'number', 'bool', 'str', 'NoneType']
    """
    value = plain(value)
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return type(value).__name__


def same_label(a: object, b: object) -> bool:
    """Whether two labels are the same: equal, and of one kind."""
    return kind_of(a) == kind_of(b) and bool(plain(a) == plain(b))


def show_label(value: object) -> str:
    """The label with its type, so that 1 and "1" can be told apart in a message."""
    value = plain(value)
    return f"{value!r} ({type(value).__name__})"


def list_classes(classes: Iterable[object]) -> str:
    """The classes with their types, cut to a readable length."""
    shown = [show_label(c) for c in classes]
    return ", ".join(shown[:12]) + (f", … ({len(shown)} in all)" if len(shown) > 12 else "")


def as_array(answer: object, n: int | None = None) -> Array:
    """The answer as an array in which no label has changed its type.

    ``np.asarray([1, "1"])`` would turn both into text; here a mixed list stays a list of objects. No more than `n` items of a list are read.

    Examples
    --------
    >>> as_array([1, "1", True]).tolist()
    [1, '1', True]
    """
    if isinstance(answer, np.ma.MaskedArray):  # a masked answer is a missing one
        hidden, whole = np.ma.getmaskarray(answer), np.array(np.ma.getdata(answer))
        if hidden.any():  # not `filled`: what it fills in for None is a value
            whole = whole if whole.dtype.kind == "f" else whole.astype(object)
            whole[hidden] = np.nan if whole.dtype.kind == "f" else None
        return _labels(whole)
    if isinstance(answer, np.ndarray):
        return _labels(np.asarray(answer))
    if isinstance(answer, pd.Series | pd.Index | pd.DataFrame | pd.api.extensions.ExtensionArray):
        return _labels(np.asarray(answer.to_numpy()))
    if answer is None:
        raise ModelError("the model answered None", where="answer", remedy="return one output a row")
    if isinstance(answer, list | tuple):
        items = list(islice(_items(answer), n))
    elif isinstance(answer, Sequence) and not isinstance(answer, str | bytes | memoryview):
        items = list(islice(answer, n))
    elif hasattr(answer, "to_numpy"):  # a polars Series
        return _labels(np.asarray(answer.to_numpy()))
    else:
        known = hasattr(type(answer), "__array__") or isinstance(answer, packed | memoryview)
        found = np.asarray(answer) if known else np.asarray(None)  # no other protocol is tried: a length or an iterator may be endless
        if found.ndim == 0:
            what = "the model answered one value for the whole table"
            raise ModelError(what, where="answer", got=answer, remedy="return one output a row")
        return _labels(found)
    items = [None if item is np.ma.masked else item for item in items]
    if any(isinstance(item, Sequence | np.ndarray) and not isinstance(item, str | bytes) for item in items):
        try:
            return _labels(np.asarray(items))
        except ValueError as error:
            raise ModelError("rows of the answer differ in length", where="answer", got=items) from error
    if items and {kind_of(item) for item in items} in ({"number"}, {"bool"}):
        return _labels(np.asarray([item if type(item) in _PLAIN else _exact(item) for item in items]))
    outputs = np.empty(len(items), dtype=object)
    outputs[:] = [plain(item) for item in items]
    return _labels(outputs)


def check_order(answered: pd.Index, asked: pd.Index) -> None:
    """Raise an error where an answer has the labels of the table in another order: it is not known which output belongs to which row."""
    if len(answered) != len(asked) or answered.equals(asked) or answered.equals(pd.RangeIndex(len(asked))):
        return
    if answered.isin(asked).all() and answered.is_unique:
        what = "the index of the answer holds the labels of the table in another order"
        raise UnfitError(what, where="answer", got=answered[:3].tolist(), remedy="return the outputs in the order of the table")


def _items(answer: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
    """Return what a list or a tuple holds, whatever a class that is derived from them says."""
    return list.__iter__(answer) if isinstance(answer, list) else tuple.__iter__(answer)


def _labels(outputs: Array) -> Array:
    """Return outputs that are numbers, truth values, texts or missing, as values of these very types; raise an error for others."""
    if outputs.dtype.kind == "f" and outputs.dtype.itemsize > 8:  # no file format keeps a long double
        return outputs.astype(np.float64)
    if outputs.dtype.kind in "biufU":
        return outputs if outputs.dtype.isnative else outputs.astype(outputs.dtype.newbyteorder("="))
    if outputs.dtype.kind == "T":  # NumPy's texts of any length
        outputs = outputs.astype(object)
    if outputs.dtype.kind == "O":
        values = outputs.ravel().tolist()
        kinds = set(map(type, values))
        if kinds <= _PLAIN:
            return outputs
        strange = [kind for kind in kinds if not issubclass(kind, (*_PLAIN, np.integer, np.floating, np.bool_))]
        if not strange:
            exact = np.empty(len(values), dtype=object)
            exact[:] = [_exact(value) for value in values]
            return exact.reshape(outputs.shape)
        got = sorted(kind.__name__ for kind in strange)[0]
    else:
        got = str(outputs.dtype)
    raise UnfitError("outputs must be numbers, truth values or texts", where="answer", got=got, remedy="convert them in the model")


_PLAIN = {bool, int, float, str, type(None), type(pd.NA), type(pd.NaT)}


def _exact(value: Any) -> Any:
    """Return the number or text that a value of a derived class stands for: such a class may compare as it likes."""
    if isinstance(value, np.generic):
        value = value.item()
    readers: tuple[tuple[type, Any], ...] = ((bool, bool), (int, int.__int__), (float, float.__float__), (str, str.__str__))
    return next((read(value) for kind, read in readers if isinstance(value, kind)), value)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is asked of a model and what becomes of its answer.

    Parameters
    ----------
    output
        ``label`` or ``score``: what comes out.
    ask
        What the engine is asked for: its own labels, probabilities, or scores.
    classes
        The labels that the model knows, in the order of its columns.
    column
        The class whose column or probability is read.
    threshold
        At or above it the answer is the class at `column`, below it the other one of two.

    Examples
    --------
    >>> Reading(output="label", ask="probability", classes=("no", "yes"), column=1, threshold=0.7).read([0.2, 0.7], 2)[0].tolist()
    ['no', 'yes']
    """

    output: Output
    ask: Ask
    classes: tuple[Any, ...] | None = None
    column: int = 1
    threshold: float | None = None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Where outputs must lie, if that is known."""
        return (0.0, 1.0) if self.output == "score" and self.ask == "probability" else None

    def read(self, answer: object, n: int) -> tuple[Array, npt.NDArray[np.bool_] | None]:
        """The outputs, and a mask of the rows that got none (None if all did)."""
        array = as_array(answer, n + 1)
        if array.ndim == 0 or len(array) != n:
            raise UnfitError(f"the model must answer one output per row: {n} rows were asked", where="answer", got=array.shape)
        if array.ndim == 2:
            width = None if self.classes is None else len(self.classes)
            if (self.ask == "label" and width is None) or (width not in (None, array.shape[1]) and array.shape[1] != 1):
                raise UnfitError(
                    f"the answer is two-dimensional where {n} outputs are expected",
                    where="answer",
                    got=array.shape,
                    remedy="return one output a row, or give classes=[...], one a column",
                )
        elif array.ndim > 2:
            raise UnfitError("the answer has more than two dimensions", where="answer", got=array.shape)
        missing = _missing(array)
        if self.ask == "label" and array.ndim == 1:
            if self.output == "score" and missing is None:
                _numeric(array)
            return array, missing
        safe = array if missing is None else np.where(missing if array.ndim == 1 else missing[:, None], 0, array)
        safe = _numeric(safe)
        if self.ask == "probability":
            _within_unit(safe)
        if self.output == "label" and self.threshold is None and self.classes is not None:
            return _pick(self.classes, self._index(safe)), missing
        scores = self._column(safe)
        if self.output == "score":
            return (scores if missing is None else np.where(missing, np.nan, scores)), missing
        assert self.classes is not None
        assert self.threshold is not None
        one, other = self.classes[self.column], self.classes[1 - self.column]
        return _pick((other, one), (scores >= self.threshold).astype(np.intp)), missing

    def _index(self, array: Array) -> npt.NDArray[np.intp]:
        """The number of the class with the largest value; of two, the first one if they tie."""
        assert self.classes is not None
        if array.ndim == 2:
            return np.asarray(array.argmax(axis=1), dtype=np.intp)
        if array.dtype.kind in "iu" and self.ask == "score":
            if array.size and (array.min() < 0 or array.max() >= len(self.classes)):
                got = (int(array.min()), int(array.max()))
                raise ModelError(f"the answer's integers do not number the {len(self.classes)} classes", where="answer", got=got)
            return array.astype(np.intp)
        if self.ask == "score":
            what = f"the model answers one score a row, which does not say which of {len(self.classes)} classes is meant"
            raise ModelError(what, where="answer", remedy="give threshold=...")
        return (array > 0.5).astype(np.intp)

    def _column(self, array: Array) -> Array:
        if array.ndim == 2:
            if array.shape[1] == 1:
                return array[:, 0]
            if self.classes is None:
                remedy = "give classes=[...] and of=<class>"
                raise ModelError("the answer has a column a class", where="answer", got=array.shape, remedy=remedy)
            return array[:, self.column]
        if self.ask == "probability" and self.column == 0 and self.classes is not None and len(self.classes) == 2:
            return np.asarray(1 - array)
        if self.ask == "score" and self.column == 0 and self.classes is not None:
            what = "the model answers one score a row, and it speaks for its second class"
            raise ModelError(what, where="answer", got=self.classes, remedy="leave of= out")
        return array


def _pick(classes: tuple[Any, ...], index: npt.NDArray[np.intp]) -> Array:
    return as_array(list(classes))[index]


def _missing(array: Array) -> npt.NDArray[np.bool_] | None:
    if array.dtype.kind == "f":
        # A sum of finite numbers is finite: one pass tells that nothing is missing.
        with np.errstate(invalid="ignore", over="ignore"):
            if array.size == 0 or np.isfinite(array.sum(dtype=np.float64)):
                return None
        mask = np.isnan(array)
    elif array.dtype.kind == "O":
        mask = np.asarray(pd.isna(array))
    else:
        return None
    rows: npt.NDArray[np.bool_] = np.asarray(mask.any(axis=1) if mask.ndim == 2 else mask, dtype=np.bool_)
    return rows if rows.any() else None


def _numeric(array: Array) -> Array:
    if array.dtype.kind in "biuf":
        return array
    try:
        if any(isinstance(value, str | bytes) for value in array.ravel()[:1000].tolist()):
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        got = array.ravel()[:1].tolist()
        raise ModelError("scores must be numbers", where="answer", got=got, remedy="use output='label' for labels") from error


def _within_unit(array: Array) -> None:
    if array.size and (array.min() < -1e-6 or array.max() > 1 + 1e-6):
        got = (float(array.min()), float(array.max()))
        raise ModelError("probabilities must lie between 0 and 1", where="answer", got=got, remedy="use output='score'")
