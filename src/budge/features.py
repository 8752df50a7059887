"""A feature: its type, bounds, direction and steps, and the moves that these allow.

Inside budge a person is a row of numbers. Binary and integer features are themselves; a category is the
position of its level. So the moves of every discrete feature from x are a run of whole numbers, the moves of
a real one an interval, and both are two numbers: the lowest and the highest own action.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from budge.distributions import Distribution
from budge.errors import Problem, nearest

__all__ = ["DIRECTIONS", "TYPES", "Direction", "Feature", "FeatureType", "look_alikes"]

FloatArray = npt.NDArray[np.float64]
FeatureType = Literal["binary", "integer", "real", "category", "fixed"]
Direction = Literal["increase", "decrease"]
TYPES: tuple[str, ...] = ("binary", "integer", "real", "category", "fixed")
DIRECTIONS: tuple[str, ...] = ("increase", "decrease")
LARGEST_WHOLE = 2.0**53  # past this a float no longer tells one whole number from the next
LARGEST = 1e300  # of bounds and steps: the length of a range must be a number, too


@dataclass(frozen=True)
class Feature:
    """One column of the table: what it holds and how it may move by itself.

    Parameters
    ----------
    name
        The column's label.
    type
        ``binary``, ``integer``, ``real`` or ``category``; ``fixed`` freezes a column with whatever it holds.
    bounds
        Lowest and highest value. They restrict moves: a start outside may stay or move towards the range.
    actionable
        Whether the subject can move it directly.
    direction
        ``increase`` or ``decrease``; both if not given. A category needs ``ordered`` for it.
    max_increase, max_decrease
        The furthest single move up and down.
    levels, ordered
        A category's levels, and whether they are ranked from low to high.
    distribution
        How the feature's own value is drawn; uniform if not given.
    missing
        ``error``, or ``fixed``: a missing value stays missing and does not move.

    Examples
    --------
    >>> age = Feature("age", "integer", bounds=(18, 100), direction="increase", max_increase=2)
    >>> age.moves(40.0)
    (np.float64(0.0), np.float64(2.0))
    >>> Feature("housing", "category", levels=("rent", "own", "free")).moves(1.0)
    (np.float64(-1.0), np.float64(1.0))
    """

    name: str
    type: FeatureType
    bounds: tuple[float, float] | None = None
    actionable: bool = True
    direction: Direction | None = None
    max_increase: float | None = None
    max_decrease: float | None = None
    levels: tuple[Any, ...] | None = None
    ordered: bool = False
    distribution: Distribution | None = None
    missing: Literal["error", "fixed"] = "error"

    kinds: ClassVar[tuple[str, ...]] = TYPES

    def __post_init__(self) -> None:
        if self.bounds is not None and not isinstance(self.bounds, tuple) and isinstance(self.bounds, Sequence):
            object.__setattr__(self, "bounds", tuple(self.bounds))
        if self.levels is not None and not isinstance(self.levels, tuple) and not isinstance(self.levels, str):
            object.__setattr__(self, "levels", tuple(self.levels))
        if self.type == "fixed":
            object.__setattr__(self, "actionable", False)

    @property
    def discrete(self) -> bool:
        """Whether its values can be listed."""
        return self.type in ("binary", "integer", "category")

    @property
    def numeric(self) -> bool:
        """Whether arithmetic on its value makes sense."""
        return self.type in ("binary", "integer", "real")

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest value (for a category: position of a level)."""
        if self.type == "category":
            return 0.0, float(len(self.levels or ()) - 1)
        if self.bounds is not None:
            return float(self.bounds[0]), float(self.bounds[1])
        return (0.0, 1.0) if self.type == "binary" else (-math.inf, math.inf)

    def reach(self, x: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest value that a start at x may have: its bounds, stretched to the start itself."""
        start = np.asarray(x, dtype=float)
        low, high = self.range
        return np.minimum(low, start), np.maximum(high, start)

    def moves(self, x: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest own action from x, for one start or many (Eq. separable actionability bounds).

        A missing start (NaN) does not move.
        """
        start = np.asarray(x, dtype=float)
        if not self.actionable:
            return np.zeros_like(start), np.zeros_like(start)
        low, high = self.reach(start)
        down, up = low - start, high - start
        if self.direction == "increase":
            down = np.zeros_like(start)
        elif self.direction == "decrease":
            up = np.zeros_like(start)
        if self.max_decrease is not None:
            down = np.maximum(down, -float(self.max_decrease))
        if self.max_increase is not None:
            up = np.minimum(up, float(self.max_increase))
        if self.discrete:  # a step limit of 2.5 allows 2
            down, up = np.ceil(down - 1e-9), np.floor(up + 1e-9)
        still = np.isnan(start)
        if still.any():
            down, up = np.where(still, 0.0, down), np.where(still, 0.0, up)
        return np.minimum(down, 0.0) + 0.0, np.maximum(up, 0.0) + 0.0

    def but(self, **changes: Any) -> Feature:
        """A copy with some fields changed."""
        return replace(self, **changes)

    def to_spec(self) -> dict[str, Any] | str:
        """The feature as a spec file writes it: only what differs from the default."""
        if self == Feature(self.name, "fixed"):
            return "fixed"
        record: dict[str, Any] = {"type": self.type}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("name", "type") or value == field.default or (field.name == "actionable" and self.type == "fixed"):
                continue
            if field.name == "distribution":
                value = cast(Distribution, value).to_spec()
            record[field.name] = list(value) if isinstance(value, tuple) else value
        return record

    def problems(self, where: str | None = None) -> list[Problem]:
        """Everything that is wrong with the declaration, all at once."""
        place = where or f"features.{self.name}"
        found: list[Problem] = []

        def wrong(field: str, what: str, got: object, remedy: str = "") -> None:
            found.append(Problem(f"{place}.{field}" if field else place, what, got, remedy))

        if not isinstance(self.name, str) or not self.name.strip():
            wrong("", "a feature needs a name", self.name, "give it the label of its column")
        if self.type not in TYPES:
            wrong("type", "unknown type", self.type, nearest(self.type, TYPES))
            return found
        for flag in ("actionable", "ordered"):
            if not isinstance(getattr(self, flag), bool):
                wrong(flag, "must be true or false", getattr(self, flag))
        if self.missing not in ("error", "fixed"):
            wrong("missing", "must be 'error' or 'fixed'", self.missing)
        if self.direction is not None and self.direction not in DIRECTIONS:
            wrong("direction", "unknown direction", self.direction, nearest(self.direction, DIRECTIONS))
        found += self._bound_problems(place)
        for limit in ("max_increase", "max_decrease"):
            step = getattr(self, limit)
            if step is None:
                continue
            if not _is_number(step) or math.isnan(step):
                wrong(limit, "a step limit must be a number", step)
            elif LARGEST < step < math.inf:
                wrong(limit, f"a step limit is at most {LARGEST:g}", step, "measure the feature in a larger unit")
            elif step < 0:
                wrong(limit, "a step limit cannot be negative", step, "give the size of the step; the key tells its direction")
        found += self._level_problems(place)
        if self.distribution is not None and not isinstance(self.distribution, Distribution):
            wrong("distribution", "must be a Distribution", self.distribution, "use budge.distributions.Distribution.from_spec(...)")
        elif self.distribution is not None:
            found += self.distribution.problems(self.type, self.levels, f"{place}.distribution")
        if not found and self.distribution is not None:
            found += self._support_problems(f"{place}.distribution")
        if not found and self.actionable and self.type in ("integer", "real"):
            found += self._endless(place)
        return found

    def _support_problems(self, where: str) -> list[Problem]:
        """A distribution must have something to draw within the bounds."""
        assert self.distribution is not None
        low, high = self.range
        if self.distribution.kind == "log" and (high <= 0 or (low <= 0 and self.direction != "increase")):
            return [Problem(where, "a log distribution needs bounds above 0", [low, high], "raise the lower bound")]
        if not self.distribution.bounded or not self.numeric:
            return []
        values = self.distribution.values
        odd = [v for v in values if self.discrete and v != int(v)]
        if odd:
            return [Problem(where, f"the values of a feature of type {self.type} are whole", odd[0])]
        if not any(low <= v <= high for v in values):
            return [
                Problem(where, f"lists no value between {low:g} and {high:g}", list(values[:6]), "list values within the bounds")
            ]
        return []

    def _bound_problems(self, place: str) -> list[Problem]:
        if self.bounds is None:
            return []
        where = f"{place}.bounds"
        if self.type == "category":
            return [Problem(where, "a category has levels, not bounds", self.bounds, "list its levels instead")]
        if self.type == "fixed":
            return [Problem(where, "a fixed column has no bounds", self.bounds, "declare a type to give it bounds")]
        if not isinstance(self.bounds, tuple) or len(self.bounds) != 2 or not all(_is_number(b) for b in self.bounds):
            return [Problem(where, "bounds are two numbers: lowest and highest", self.bounds, "write [0, 10]")]
        low, high = self.bounds
        if math.isnan(low) or math.isnan(high):
            return [Problem(where, "a bound cannot be NaN", self.bounds)]
        if low > high:
            return [Problem(where, "the lower bound is above the upper", [low, high], f"write [{high}, {low}]")]
        if low == math.inf or high == -math.inf:
            return [Problem(where, "nothing lies between these bounds", [low, high])]
        if any(LARGEST < abs(b) < math.inf for b in self.bounds):
            return [Problem(where, f"a bound is at most {LARGEST:g} away from 0", [low, high], "measure the feature in a larger unit")]
        if self.type == "binary" and not {low, high} <= {0, 1}:
            return [Problem(where, "a binary feature has bounds 0 and 1", [low, high], "declare it integer or real")]
        if self.type == "integer":
            odd = [b for b in self.bounds if math.isfinite(b) and b != int(b)]
            if odd:
                return [Problem(where, "an integer feature has whole bounds", [low, high], f"round {odd[0]} or declare it real")]
            if any(math.isfinite(b) and abs(b) > LARGEST_WHOLE for b in self.bounds):
                return [Problem(where, "whole numbers beyond 2^53 cannot be told apart", [low, high], "declare it real")]
        return []

    def _level_problems(self, place: str) -> list[Problem]:
        if self.type != "category":
            found = []
            if self.levels is not None:
                found.append(Problem(f"{place}.levels", "only a category has levels", list(self.levels), "set type: category"))
            if self.ordered:
                found.append(Problem(f"{place}.ordered", "only a category is ordered by declaration", self.ordered))
            return found
        where = f"{place}.levels"
        if self.levels is None:
            return [Problem(where, "a category needs its levels", None, "list them, from low to high if ordered")]
        if isinstance(self.levels, str) or not isinstance(self.levels, tuple):
            return [Problem(where, "levels are a list", self.levels, "write [rent, own]")]
        found = []
        if any(not isinstance(level, str | int | float | bool) for level in self.levels):
            found.append(Problem(where, "a level is a text, a number or a truth value", list(self.levels)))
        elif any(isinstance(level, float) and not math.isfinite(level) for level in self.levels):
            found.append(Problem(where, "a level must be finite", list(self.levels)))
        elif len(set(self.levels)) < len(self.levels):
            found.append(Problem(where, "a level is listed twice", list(self.levels)))
        elif len(self.levels) < 2:
            found.append(
                Problem(
                    where,
                    "a category needs at least two levels",
                    list(self.levels),
                    "write `fixed` for a column that never moves",
                )
            )
        ranked = self.direction or self.max_increase is not None or self.max_decrease is not None
        if ranked and not self.ordered:
            found.append(
                Problem(
                    f"{place}.ordered",
                    "a direction or step limit on a category needs ordered levels",
                    self.ordered,
                    "set ordered: true",
                )
            )
        return found

    def _endless(self, place: str) -> list[Problem]:
        """An actionable feature must have somewhere to stop."""
        low, high = self.range
        endless = []
        if high == math.inf and self.direction != "decrease" and (self.max_increase is None or self.max_increase == math.inf):
            endless.append("upwards")
        if low == -math.inf and self.direction != "increase" and (self.max_decrease is None or self.max_decrease == math.inf):
            endless.append("downwards")
        if not endless or (self.distribution is not None and self.distribution.bounded):
            return []
        got = [low, high] if self.bounds is not None else None
        return [
            Problem(
                f"{place}.bounds",
                f"no uniform draw over an infinite range ({' and '.join(endless)})",
                got,
                "give finite bounds, a step limit, or a distribution; or set actionable: false",
            )
        ]


def look_alikes(names: Iterable[str]) -> list[Problem]:
    """Names that a reader cannot tell apart: they differ by case, blanks or look-alike letters only."""
    seen: dict[str, str] = {}
    found = []
    for name in names:
        if not isinstance(name, str):
            continue
        shape = unicodedata.normalize("NFKC", name).casefold().strip()
        if shape in seen and seen[shape] != name:
            found.append(
                Problem(
                    f"features.{name}", f"looks like {seen[shape]!r}", name, "give the two names that a reader can tell apart"
                )
            )
        seen.setdefault(shape, name)
    return found


def _is_number(value: object) -> bool:
    if isinstance(value, int) and value.bit_length() > 1023:  # beyond every float
        return False
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
