"""What new ways need: of people whom a relaxation gives a way, which values of the freed features their hits share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from budge.constraints import OneHot, Ordinal, Reachability, Thermometer
from budge.features import Feature
from budge.interaction import InteractionModel
from budge.stress.relaxations import Relaxation

__all__ = ["Need", "freed_columns", "needs_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
_CODES = (OneHot, Ordinal, Thermometer, Reachability)
Kind = Literal["only", "higher", "lower", "some"]


@dataclass(frozen=True)
class Need:
    """One statement about the hits of people who newly have a way.

    `kind` is ``only`` (all hits have the value `new`, and the person has another), ``higher`` or ``lower`` (all hits lie on that side of the person's
    value), or ``some`` (among the hits is one with `new`). `people` counts those of whom it holds, among `able`; `listed` tells whether all points of
    all of them were listed, so that it is about every hit, not only about those that were drawn.
    """

    relaxation: str
    features: tuple[str, ...]
    kind: Kind
    old: tuple[Any, ...] | None  # where all these people stand; None where they differ
    new: tuple[Any, ...] | None
    people: int
    able: int
    listed: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the record."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Need:
        """Return what `to_dict` wrote."""
        known: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
        return cls(**known)


def freed_columns(im: InteractionModel, relaxed: InteractionModel) -> IntArray:
    """Return the columns of features that are declared otherwise, or that stand in a constraint which only one of the two has."""
    named = {f.name for f, other in zip(im.features, relaxed.features) if f != other}
    named |= {n for one, two in ((im, relaxed), (relaxed, im)) for c in one.constraints if c not in two.constraints for n in c.scope}
    return np.array([j for j, f in enumerate(im.features) if f.name in named], dtype=np.intp)


def needs_of(r: Relaxation, im: InteractionModel, columns: IntArray, hits: Mapping[int, FloatArray], starts: FloatArray, *, listed: bool) -> list[Need]:
    """Return what the hits of newly able people share, one statement per axis: `hits` by person, `starts` by row; the most common statement first."""
    names = [im.features[j].name for j in columns]
    found = []
    for axis in _axes(names, (im, r.model(im))):
        features = [im.features[columns[k]] for k in axis]
        told = _axis(features, [(values[:, axis], starts[i, columns[axis]]) for i, values in hits.items()])
        if told is not None:
            kind, old, new, people = told
            found.append(Need(r.name, tuple(f.name for f in features), kind, old, new, people, len(hits), listed))
    return sorted(found, key=lambda need: (need.kind == "some", -need.people))


def _axes(names: Sequence[str], models: Sequence[InteractionModel]) -> Iterator[list[int]]:
    """Yield columns that are one thing: dummies of one group together, others one by one."""
    left = list(names)
    for c in (c for model in models for c in model.constraints if isinstance(c, _CODES)):
        own = [n for n in c.features if n in left]
        if len(own) > 1:
            yield [names.index(n) for n in own]
            left = [n for n in left if n not in own]
    yield from ([names.index(n)] for n in left)


def _axis(features: Sequence[Feature], people: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[Kind, Any, Any, int] | None:
    """Return the statement that holds of most people: kind, from, to, of how many; None where no level stands out."""
    many = len(features) == 1 and features[0].type in ("integer", "real") and features[0].range[1] - features[0].range[0] > 1
    only: Counter[tuple[Kind, Hashable]] = Counter()
    some: Counter[Hashable] = Counter()
    olds: dict[tuple[Kind, Hashable], set[Hashable]] = {}
    for values, start in people:
        old = tuple(start.tolist())
        if many:
            kinds: list[tuple[Kind, Hashable]] = [("higher", None)] if (values > start).all() else [("lower", None)] if (values < start).all() else []
        else:
            levels = {tuple(row) for row in values.tolist()}
            kinds = [("only", next(iter(levels)))] if len(levels) == 1 and old not in levels else []
            some.update(levels - {old})
        only.update(kinds)
        for key in kinds:
            olds.setdefault(key, set()).add(old)
    if only:
        (kind, new), count = only.most_common(1)[0]
        if 2 * count >= len(people):
            before = olds[kind, new]
            return kind, _read(features, next(iter(before))) if len(before) == 1 else None, _read(features, new), count
    if some:
        new, count = some.most_common(1)[0]
        return "some", None, _read(features, new), count
    return None


def _read(features: Sequence[Feature], values: Any) -> tuple[Any, ...] | None:
    """Return values as the user's table holds them."""
    if values is None:
        return None
    return tuple(f.levels[int(v)] if f.levels is not None else int(v) if float(v).is_integer() else float(v) for f, v in zip(features, values))
