"""From what the caller asks and what the model can answer to a `Reading`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

from budge.errors import ModelError, nearest
from budge.models.reading import Ask, Reading, list_classes, plain, same_label, show_label

__all__ = ["Wanted", "check_batch_rows", "choose_reading", "class_index"]

Wanted = Literal["auto", "label", "score", "probability"]


def choose_reading(
    name: str,
    asks: Sequence[Ask],
    own: tuple[Any, ...] | None,
    *,
    output: Wanted = "auto",
    threshold: float | None = None,
    classes: Iterable[object] | None = None,
    of: object = None,
) -> Reading:
    """Decide what to ask a model for and how to read it.

    Parameters
    ----------
    name
        The model's name, for messages.
    asks
        What the model can be asked for; the first is its default.
    own
        The classes that the model recorded.
    output, threshold, classes, of
        As in `as_predictor`.

    Examples
    --------
    >>> choose_reading("m", ["label", "probability"], ("no", "yes"), threshold=0.3).ask
    'probability'
    """
    if output not in get_args(Wanted):
        raise ModelError("unknown output", where="output", got=output, remedy=nearest(output, get_args(Wanted)))
    known, renamed = _classes(name, own, classes)
    if output in ("score", "probability"):
        if threshold is not None:
            remedy = f"leave it out, or use output='label' instead of {output!r}"
            raise ModelError("a threshold turns scores into labels", where="threshold", got=threshold, remedy=remedy)
        return _score(name, asks, known, output, of)
    if threshold is not None:
        return _thresholded(name, asks, known, threshold, of)
    if of is not None:
        raise ModelError("of= names the class of a score", where="of", got=of, remedy="add output='probability' or threshold=...")
    if output == "auto" and asks[0] == "score" and known is None:
        return Reading(output="score", ask="score")
    if "label" in asks and not renamed:
        return Reading(output="label", ask="label", classes=known)
    ask = _numeric_ask(asks)
    if ask is None or known is None:
        remedy = "give classes=[...] or threshold=..." if ask else "leave classes= out"
        raise ModelError("labels cannot be told from what the model answers", where=name, got=tuple(asks), remedy=remedy)
    return Reading(output="label", ask=ask, classes=known)


def class_index(value: object, classes: Sequence[object], where: str) -> int:
    """The place of a class, compared with its type."""
    for i, known in enumerate(classes):
        if same_label(value, known):
            return i
    raise ModelError(
        f"{show_label(value)} is not a class of the model", where=where, remedy=f"its classes are {list_classes(classes)}"
    )


def check_batch_rows(batch_rows: object) -> int:
    """The number of rows a call, if it is one."""
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
        raise ModelError("rows a call must be a whole number from 1", where="batch_rows", got=batch_rows)
    return batch_rows


def _classes(name: str, own: tuple[Any, ...] | None, given: Iterable[object] | None) -> tuple[tuple[Any, ...] | None, bool]:
    """The classes to speak of, and whether they rename the model's own."""
    if given is None:
        return own, False
    if isinstance(given, str):
        raise ModelError("a list of labels is expected", where="classes", got=given)
    wanted = tuple(plain(c) for c in given)
    for i, one in enumerate(wanted):
        if any(same_label(one, other) for other in wanted[:i]):
            raise ModelError("a class is listed twice", where="classes", got=one)
    if len(wanted) < 2:
        raise ModelError("at least two classes are needed", where="classes", got=wanted)
    if own is None:
        return wanted, False
    if len(own) == len(wanted) and all(any(same_label(c, w) for w in wanted) for c in own):
        return own, False
    if len(own) == len(wanted) and all(same_label(c, i) for i, c in enumerate(own)):
        return wanted, True  # the model knows numbers only: the caller's labels name them, in order
    raise ModelError(
        f"the classes differ from those of {name}", where="classes", got=wanted, remedy=f"its classes are {list_classes(own)}"
    )


def _numeric_ask(asks: Sequence[Ask]) -> Ask | None:
    return next((ask for ask in asks if ask != "label"), None)


def _column(known: tuple[Any, ...] | None, of: object) -> int:
    if of is not None:
        if known is None:
            raise ModelError("the model's classes are not known", where="of", got=of, remedy="give classes=[...]")
        return class_index(of, known, "of")
    if known is not None and len(known) > 2:
        raise ModelError("which class's score is meant?", where="of", remedy=f"give of=<class>, one of {list_classes(known)}")
    return 1


def _score(name: str, asks: Sequence[Ask], known: tuple[Any, ...] | None, output: Wanted, of: object) -> Reading:
    ask: Ask | None = "probability" if output == "probability" else _numeric_ask(asks)
    if ask is None or ask not in asks:
        what = "the model gives no probabilities" if output == "probability" else "the model gives no scores"
        raise ModelError(
            what, where=name, got=tuple(asks), remedy="use output='score'" if "score" in asks else "use output='label'"
        )
    return Reading(output="score", ask=ask, classes=known, column=_column(known, of))


def _thresholded(name: str, asks: Sequence[Ask], known: tuple[Any, ...] | None, threshold: float, of: object) -> Reading:
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not math.isfinite(threshold):
        raise ModelError("a threshold is a number", where="threshold", got=threshold)
    ask = _numeric_ask(asks)
    if ask is None:
        raise ModelError("a threshold needs scores, and the model gives none", where=name, got=tuple(asks))
    if ask == "probability" and not 0 <= threshold <= 1:
        raise ModelError("a threshold on probabilities lies between 0 and 1", where="threshold", got=threshold)
    pair = (0, 1) if known is None else known
    if len(pair) != 2:
        remedy = "use output='probability', of=<class> and an interval"
        raise ModelError("a threshold needs two classes", where="threshold", got=pair, remedy=remedy)
    return Reading(output="label", ask=ask, classes=pair, column=_column(pair, of), threshold=float(threshold))
