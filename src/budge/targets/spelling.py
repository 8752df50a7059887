"""Targets from plain values, from texts of the command line, and from their records."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from budge.errors import InputError, ModelError, nearest
from budge.models.reading import list_classes, plain, same_label
from budge.targets.kinds import Closed, Complement, Different, Function, Interval, Labels, Relative, Target

__all__ = ["as_target", "from_dict", "parse_target"]

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_SCORE = r"(?:score|probability|output)"
_RELATIVE = re.compile(rf"(lower|higher)(?:\s+by\s+({_NUMBER}))?")
_ONE_SIDED = re.compile(rf"{_SCORE}\s*(<=|>=|<|>)\s*({_NUMBER})")
_TWO_SIDED = re.compile(rf"({_NUMBER})\s*(<=|<)\s*{_SCORE}\s*(<=|<)\s*({_NUMBER})")


def as_target(value: object, *, classes: Iterable[object] | None = None) -> Target:
    """A target from a plain value.

    Parameters
    ----------
    value
        A target; a label; a list of labels; a function; or one of the texts ``lower``, ``lower by 0.1``, ``higher``,
        ``different``, ``score >= 0.7``, ``0.3 <= score < 0.7``, and ``not`` before one of these
        (``not lower``) or, with `classes`, before what `parse_target` reads (``not 1``). Any other text is a label, and so is
        one of the `classes`.
    classes
        The labels that the model knows.

    Examples
    --------
    >>> print(as_target(1), "/", as_target("approved"), "/", as_target("score >= 0.7"), "/", as_target([1, 2]))
    is 1 / is 'approved' / is at least 0.7 / is one of 1, 2
    """
    if isinstance(value, Target):
        return value
    if isinstance(value, str):
        known = list(classes or ())
        if any(same_label(value, c) for c in known):
            return Labels((value,))
        if known and value.startswith("not "):
            return parse_target(value, classes=known)
        return _spelled(value) or Labels((value,))
    if isinstance(value, list | tuple | set | frozenset | np.ndarray | pd.Series | range):
        return Labels(tuple(sorted(value, key=repr) if isinstance(value, set | frozenset) else value))
    if callable(value):
        return Function(value)
    if isinstance(value, Mapping):
        raise InputError("a mapping is no target", where="target", got=dict(value), remedy="budge.audit_targets takes several targets by name")
    return Labels((value,))


def parse_target(text: str, *, classes: Iterable[object] | None = None) -> Target:
    """A target from a text of the command line, where 1 and "1" are written alike.

    With `classes`, a text stands for the class that is written so. Without, a whole text that is a JSON number or ``true`` or
    ``false`` is that value, one in quotes is the text inside, and any other is a label as it is. Commas separate several. With
    `classes`, ``not 1`` and ``not 1, 2`` are every other class.

    Examples
    --------
    >>> parse_target("1"), parse_target("1", classes=["0", "1"])
    (Labels(values=(1,)), Labels(values=('1',)))
    """
    text = text.strip()
    known = None if classes is None else [plain(c) for c in classes]
    if not text:
        raise InputError("the target is empty", where="target", got=text)
    if known is None or not any(str(c) == text for c in known):
        spelled = _spelled(text)
        if spelled is not None:
            return spelled
        if known is not None and text.startswith("not ") and not any(str(c) == text.split(",")[0].strip() for c in known):
            return ~parse_target(text[4:], classes=known)
    pieces = [text] if known is not None and any(str(c) == text for c in known) else [piece.strip() for piece in text.split(",")]
    return Labels(tuple(_label(piece, known) for piece in pieces))


def from_dict(record: Mapping[str, Any]) -> Target:
    """A target from its record.

    Examples
    --------
    >>> from_dict(Interval(low=0.7).to_dict()) == Interval(low=0.7)
    True
    """
    makers: dict[str, Callable[..., Target]] = {
        "labels": lambda values: Labels(tuple(values)),
        "interval": lambda low=None, high=None, closed="both": Interval(
            -math.inf if low is None else low, math.inf if high is None else high, closed
        ),
        "relative": Relative,
        "different": Different,
        "complement": lambda of: Complement(from_dict(of)),
    }
    kind = record.get("kind")
    if kind not in makers:
        raise InputError("unknown kind of target", where="target.kind", got=kind, remedy=nearest(kind, makers))
    try:
        return makers[kind](**{name: value for name, value in record.items() if name != "kind"})
    except TypeError as error:
        raise InputError(f"the record of a target does not fit its kind: {error}", where="target", got=dict(record)) from error


def _spelled(text: str) -> Target | None:
    """The target that a text spells out, or None if it is no more than a text."""
    text = text.strip()
    if text.startswith("not ") and (inner := _spelled(text[4:])) is not None:
        return ~inner
    if text == "different":
        return Different()
    if found := _RELATIVE.fullmatch(text):
        return Relative("lower" if found[1] == "lower" else "higher", float(found[2] or 0))
    if found := _ONE_SIDED.fullmatch(text):
        bound = float(found[2])
        closed: Closed = "both" if "=" in found[1] else "neither"
        return Interval(low=bound, closed=closed) if ">" in found[1] else Interval(high=bound, closed=closed)
    if found := _TWO_SIDED.fullmatch(text):
        ends: dict[tuple[bool, bool], Closed] = {
            (True, True): "both",
            (True, False): "left",
            (False, True): "right",
            (False, False): "neither",
        }
        return Interval(float(found[1]), float(found[4]), ends["=" in found[2], "=" in found[3]])
    if re.match(rf"{_SCORE}\s*[<>=!]", text) or re.match(rf"{_NUMBER}\s*[<>]", text):
        remedy = "write 'score >= 0.7', 'score < 0.3' or '0.3 <= score < 0.7'"
        raise InputError("the condition on the score cannot be read", where="target", got=text, remedy=remedy)
    return None


def _label(text: str, known: list[object] | None) -> object:
    if known is not None:
        quoted = len(text) >= 2 and text[0] == text[-1] and text[0] in "'\""
        matches = [c for c in known if str(c) == text or (quoted and c == text[1:-1])]
        if not matches and text in ("true", "false"):
            matches = [c for c in known if isinstance(c, bool) and str(c).lower() == text]
        if len(matches) == 1:
            return matches[0]
        what = "two classes of the model are written so" if matches else "the model does not know the label"
        raise ModelError(what, where="target", got=text, remedy=f"its classes are {list_classes(known)}")
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if re.fullmatch(_NUMBER, text) or text in ("true", "false"):
        try:
            return json.loads(text)
        except ValueError:
            return float(text)
    return text
