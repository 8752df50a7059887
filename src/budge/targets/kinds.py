"""The kinds of targets, one frozen class each; `hits` is the definition."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pandas as pd

from budge.errors import InputError, ModelError, Problem, nearest
from budge.models.predictor import Predictor
from budge.models.reading import as_array, kind_of, list_classes, plain, same_label, show_label
from budge.targets.outputs import Array, Hits, kinds_of, number, scores_of, start_of, takes_two, tolerance

__all__ = ["Closed", "Complement", "Different", "Function", "Interval", "Labels", "Relative", "Target"]

Closed = Literal["both", "left", "right", "neither"]


class Target(ABC):
    """A set of outputs; each kind is one frozen class, made by the function of its name."""

    kind: ClassVar[str]

    @abstractmethod
    def hits(self, outputs: Array, before: Array | None = None) -> Hits:
        """Which outputs lie in the target; `before` is f(x), repeated for each point of x."""

    @abstractmethod
    def describe(self) -> str:
        """The target as the end of the sentence "The output …"."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A record that JSON can hold; `from_dict` reads it."""

    def check(self, predictor: Predictor) -> list[Problem]:
        """What keeps a model from ever being judged by this target."""
        return []

    def __invert__(self) -> Target:
        """Return the complement: every output that is not in this target."""
        return Complement(self)

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True)
class Complement(Target):
    """The output is not in the other target; a tie that the other leaves out is in this one."""

    of: Target
    kind: ClassVar[str] = "complement"

    def __post_init__(self) -> None:
        if not isinstance(self.of, Target) or isinstance(self.of, Complement):
            raise InputError("a complement is made of a plain target", where="target", got=self.of, remedy="write ~target")

    def __invert__(self) -> Target:
        """Return the target itself: the complement of a complement."""
        return self.of

    def hits(self, outputs: Array, before: Array | None = None) -> Hits:
        """Which outputs the other target leaves out; a missing output is in neither, nor is one that is compared with a missing one."""
        missing = pd.isna(outputs)
        if before is not None and isinstance(self.of, Relative | Different):
            missing = missing | pd.isna(start_of(outputs, before))
        return np.asarray(~self.of.hits(outputs, before) & ~missing, dtype=np.bool_)

    def describe(self) -> str:
        """The sentence, negated."""
        of = self.of
        if isinstance(of, Interval) and math.isfinite(of.low) and math.isfinite(of.high):  # "not" before "and" would read as half of it
            low = f"below {of.low:g}" if of.closed in ("both", "left") else f"at most {of.low:g}"
            high = f"above {of.high:g}" if of.closed in ("both", "right") else f"at least {of.high:g}"
            return f"is {low} or {high}"
        verb, rest = self.of.describe().split(" ", 1)
        return f"is not {rest}" if verb == "is" else f"does not satisfy {rest}"

    def to_dict(self) -> dict[str, Any]:
        """The record."""
        return {"kind": self.kind, "of": self.of.to_dict()}

    def check(self, predictor: Predictor) -> list[Problem]:
        """What keeps the other target from a judgement keeps its complement from one, but for what no output can attain: all attain its complement."""
        known, ends = predictor.classes, predictor.bounds
        if isinstance(self.of, Labels) and known and all(any(same_label(c, v) for v in self.of.values) for c in known):
            what = f"no output of {predictor.name} can lie in the target: it leaves out every class"
            return [Problem("target", what, remedy=f"its classes are {list_classes(known)}")]
        if isinstance(self.of, Interval) and predictor.output != "label" and ends is not None:
            if self.of.hits(np.array(ends, dtype=float)).all():
                what = f"no score of {predictor.name} can lie in the target: they lie between {ends[0]:g} and {ends[1]:g}"
                return [Problem("target", what, got=self.describe())]
            return []
        return self.of.check(predictor)


@dataclass(frozen=True)
class Labels(Target):
    """The output is one of the labels, in value and in kind."""

    values: tuple[Any, ...]
    kinds: tuple[str, ...] = field(init=False, repr=False)  # so that Labels((1,)) and Labels((True,)) differ
    kind: ClassVar[str] = "labels"

    def __post_init__(self) -> None:
        values = tuple(plain(value) for value in self.values)
        if not values:
            raise InputError("a target needs a label", where="target", got=self.values)
        for value in values:
            if not isinstance(value, bool | int | float | str) or value != value:
                raise InputError("a label is a number, a text or a truth value", where="target", got=value)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "kinds", tuple(kind_of(value) for value in values))

    def hits(self, outputs: Array, before: Array | None = None) -> Hits:
        """Which outputs are one of the labels."""
        kinds = kinds_of(outputs)
        wanted = [value for value, kind in zip(self.values, self.kinds) if kind in kinds]
        if not wanted and kinds:
            seen = list_classes(pd.unique(outputs[:1000]).tolist()[:5])
            what = f"the target is {list_classes(self.values)}, the model answers {seen}: labels of another type are never equal"
            raise ModelError(what, where="target", remedy="give the label with the model's type")
        found = np.zeros(len(outputs), dtype=np.bool_)
        if len(kinds) <= 1:
            for value in wanted:
                found |= np.asarray(outputs == value, dtype=np.bool_)
            return found
        return np.array([any(same_label(output, value) for value in wanted) for output in outputs.tolist()], dtype=np.bool_)

    def describe(self) -> str:
        """The sentence."""
        shown = [repr(value) for value in self.values]
        return f"is {shown[0]}" if len(shown) == 1 else f"is one of {', '.join(shown)}"

    def to_dict(self) -> dict[str, Any]:
        """The record."""
        return {"kind": self.kind, "values": list(self.values)}

    def check(self, predictor: Predictor) -> list[Problem]:
        """A label must be one that the model knows."""
        if predictor.output == "score":
            what = f"the target is the label {list_classes(self.values)}, and {predictor.name} answers scores"
            return [Problem("target", what, remedy="use output='label' or threshold=..., or a target such as 'score >= 0.5'")]
        problems = []
        for value in self.values if predictor.classes is not None else ():
            if not any(same_label(value, known) for known in predictor.classes or ()):
                what = f"the model does not know the label {show_label(value)}"
                problems.append(Problem("target", what, remedy=f"its classes are {list_classes(predictor.classes or ())}"))
        return problems


@dataclass(frozen=True)
class Interval(Target):
    """The output is a score between two numbers."""

    low: float = -math.inf
    high: float = math.inf
    closed: Closed = "both"
    kind: ClassVar[str] = "interval"

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, number(getattr(self, name), f"target.{name}", infinite=True))
        if self.closed not in get_args(Closed):
            raise InputError(
                "unknown ends", where="target.closed", got=self.closed, remedy=nearest(self.closed, get_args(Closed))
            )
        if self.low > self.high or (self.low == self.high and self.closed != "both"):
            raise InputError("the interval is empty", where="target", got=(self.low, self.high, self.closed))
        if math.isinf(self.low) and math.isinf(self.high):
            raise InputError("the interval holds every number", where="target", got=(self.low, self.high))

    def hits(self, outputs: Array, before: Array | None = None) -> Hits:
        """Which scores lie inside."""
        scores = scores_of(outputs)
        above_low = scores >= self.low if self.closed in ("both", "left") else scores > self.low
        below_high = scores <= self.high if self.closed in ("both", "right") else scores < self.high
        return np.asarray(above_low & below_high, dtype=np.bool_)

    def describe(self) -> str:
        """The sentence."""
        low = f"at least {self.low:g}" if self.closed in ("both", "left") else f"above {self.low:g}"
        high = f"at most {self.high:g}" if self.closed in ("both", "right") else f"below {self.high:g}"
        ends = [text for text, bound in ((low, self.low), (high, self.high)) if math.isfinite(bound)]
        return f"is {' and '.join(ends)}"

    def to_dict(self) -> dict[str, Any]:
        """The record; an open end is null."""
        ends = {name: value if math.isfinite(value) else None for name, value in (("low", self.low), ("high", self.high))}
        return {"kind": self.kind, **ends, "closed": self.closed}

    def check(self, predictor: Predictor) -> list[Problem]:
        """An interval needs scores, and scores that can lie in it and outside it."""
        if predictor.output == "label":
            what = f"the target is an interval of scores, and {predictor.name} answers labels"
            return [Problem("target", what, remedy="use output='probability' or output='score'")]
        if predictor.bounds is not None:
            low, high = predictor.bounds
            if self.low > high or self.high < low:
                what = f"no score of {predictor.name} can lie in the target: they lie between {low:g} and {high:g}"
                return [Problem("target", what, got=(self.low, self.high))]
        return []


@dataclass(frozen=True)
class Relative(Target):
    """The score is lower, or higher, than before by more than a margin."""

    direction: Literal["lower", "higher"]
    margin: float = 0.0
    kind: ClassVar[str] = "relative"

    def __post_init__(self) -> None:
        if self.direction not in ("lower", "higher"):
            raise InputError("unknown direction", where="target", got=self.direction, remedy="lower or higher")
        object.__setattr__(self, "margin", number(self.margin, "target.margin"))
        if self.margin < 0:
            raise InputError("a margin is not negative", where="target.margin", got=self.margin)

    def hits(self, outputs: Array, before: Array | None = None) -> Hits:
        """Which scores moved so."""
        after, start = scores_of(outputs), scores_of(start_of(outputs, before))
        moved = start.astype(np.float64) - after if self.direction == "lower" else after.astype(np.float64) - start
        return np.asarray(moved > self.margin + tolerance(after, start), dtype=np.bool_)

    def describe(self) -> str:
        """The sentence."""
        return f"is {self.direction} than before" + (f" by more than {self.margin:g}" if self.margin else "")

    def to_dict(self) -> dict[str, Any]:
        """The record."""
        return {"kind": self.kind, "direction": self.direction, "margin": self.margin}

    def check(self, predictor: Predictor) -> list[Problem]:
        """Only numbers have an order."""
        if predictor.output == "label" and any(kind_of(c) != "number" for c in predictor.classes or ()):
            known = list_classes(predictor.classes or ())
            what = f"{self.direction!r} needs numbers, and {predictor.name} answers the labels {known}"
            return [Problem("target", what, remedy="use output='probability', or the target 'different'")]
        return []


@dataclass(frozen=True)
class Different(Target):
    """The output is not what it was before."""

    kind: ClassVar[str] = "different"

    def hits(self, outputs: Array, before: Array | None = None) -> Hits:
        """Which outputs changed."""
        start = start_of(outputs, before)
        if outputs.dtype.kind == "f" or start.dtype.kind == "f":
            after, first = scores_of(outputs), scores_of(start)
            return np.asarray(np.abs(after.astype(np.float64) - first) > tolerance(after, first), dtype=np.bool_)
        if outputs.dtype.kind == "O" or start.dtype.kind == "O":
            if kinds_of(outputs) == kinds_of(start) and len(kinds_of(start)) == 1:
                return np.asarray(outputs != start, dtype=np.bool_)
            return np.array([not same_label(a, b) for a, b in zip(outputs.tolist(), start.tolist())], dtype=np.bool_)
        if kinds_of(outputs) != kinds_of(start):
            raise ModelError(
                "outputs and the output before are of two types", where="target", got=(outputs.dtype.str, start.dtype.str)
            )
        return np.asarray(outputs != start, dtype=np.bool_)

    def describe(self) -> str:
        """The sentence."""
        return "is different from before"

    def to_dict(self) -> dict[str, Any]:
        """The record."""
        return {"kind": self.kind}


@dataclass(frozen=True)
class Function(Target):
    """The output is in the set that a vectorised function says."""

    f: Callable[..., Any]
    name: str = ""
    kind: ClassVar[str] = "function"

    def __post_init__(self) -> None:
        if not callable(self.f):
            raise InputError("a function is expected", where="target", got=self.f)
        object.__setattr__(self, "name", self.name or str(getattr(self.f, "__name__", type(self.f).__name__)))

    def hits(self, outputs: Array, before: Array | None = None) -> Hits:
        """What the function says: f(outputs), or f(outputs, before) if it takes two."""
        arguments = (outputs, start_of(outputs, before)) if takes_two(self.f) else (outputs,)
        try:
            answer = self.f(*arguments)
        except Exception as error:
            raise InputError(f"the target's function raised {type(error).__name__}: {error}", where=self.name) from error
        found = as_array(answer)
        if found.shape != (len(outputs),) or found.dtype.kind != "b":
            what = f"the target's function must answer {len(outputs)} truth values"
            raise InputError(what, where=self.name, got=(found.dtype.str, found.shape))
        return found

    def describe(self) -> str:
        """The sentence."""
        return f"satisfies {self.name}"

    def to_dict(self) -> dict[str, Any]:
        """A function cannot be stored: no file that is read can name code to run."""
        remedy = "use a label, an interval, 'lower', 'higher' or 'different'"
        raise InputError("a function cannot be stored as a target", where=self.name, remedy=remedy)
