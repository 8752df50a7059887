"""Dummies of one group that no constraint declares, found by their names and checked on data.

Freeing one dummy of a group alone describes impossible people, such as someone who rents and owns. So dummies that belong together are freed together,
and only to combinations of values that occur in the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

__all__ = ["DummyGroup", "dummy_groups"]

_SPELLED = re.compile(r"(.+?)\s*(?:==|>=|<=|=|>|<)")  # Housing=Owner, LoanDuration>=12
_BOUNDARY = re.compile(r"[A-Z0-9]|(?<=[_. -]).")
SHORTEST = 4  # characters of a stem that is not marked by a sign


@dataclass(frozen=True)
class DummyGroup:
    """Dummies of one group, and the combinations of their values that occur in the data."""

    stem: str
    features: tuple[str, ...]
    combinations: tuple[tuple[int, ...], ...]


def dummy_groups(names: Sequence[str], X: pd.DataFrame | None) -> tuple[DummyGroup, ...]:
    """Return the groups among binary columns.

    Names with a sign (``Housing=Owner``, ``Amount>=1000``) and one stem are a group. Names that only begin alike (``job_none``, ``LoanForCar``) are one
    where no row of the data has two of them on.

    Examples
    --------
    >>> X = pd.DataFrame({"Home=Own": [1, 0, 0], "Home=Rent": [0, 1, 0], "single": [1, 1, 0]})
    >>> dummy_groups(list(X.columns), X)
    (DummyGroup(stem='Home', features=('Home=Own', 'Home=Rent'), combinations=((0, 0), (0, 1), (1, 0))),)
    """
    if X is None:
        return ()
    found, left = [], [name for name in names if name in X.columns]
    for stem, group, sure in [*_by_sign(left), *_by_beginning(left)]:
        own = tuple(name for name in group if name in left)
        values = X[list(own)].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
        seen = np.unique(values[~np.isnan(values).any(axis=1)], axis=0)
        if len(own) < 2 or len(seen) < 2 or (not sure and (seen.sum(axis=1) > 1).any()):
            continue
        found.append(DummyGroup(stem, own, tuple(tuple(int(v) for v in row) for row in seen)))
        left = [name for name in left if name not in own]
    return tuple(found)


def _by_sign(names: Sequence[str]) -> list[tuple[str, list[str], bool]]:
    stems: dict[str, list[str]] = {}
    for name in names:
        if match := _SPELLED.match(name):
            stems.setdefault(match[1], []).append(name)
    return [(stem, group, True) for stem, group in stems.items() if len(group) > 1]


def _by_beginning(names: Sequence[str]) -> Iterator[tuple[str, list[str], bool]]:
    """Yield names that begin alike up to the start of a word, the longest beginnings first."""
    stems: dict[str, list[str]] = {}
    for name in names:
        for cut in (match.start() for match in _BOUNDARY.finditer(name, 1) if match.start() >= SHORTEST):
            stems.setdefault(name[:cut], []).append(name)
    for stem, group in sorted(stems.items(), key=lambda pair: (-len(pair[0]), pair[0])):
        if len(group) > 1:
            yield stem.rstrip("_. -"), group, False
