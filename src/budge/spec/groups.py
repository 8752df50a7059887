"""Dummies that belong together: one-hot groups and thermometers, as far as every row agrees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_PAIRED", "Finding", "find_groups"]

MOST_PAIRED = 200  #: columns of zeros and ones of which any neighbours or pairs may be a group; among more, names that begin alike
_MOST_CUTS = 20  # of one name
_CUT = re.compile(r"[_=.:\-/ <>≤≥]+")


@dataclass(frozen=True)
class Finding:
    """A joint constraint that holds in the data: a suggestion to confirm, never a fact about the world.

    `support` is the number of rows that could have broken it: all rows of a group, the rows where a condition holds.
    """

    kind: str
    spec: Mapping[str, Any]
    support: int
    rows: int
    remark: str = ""
    encoding: bool = False  # a group of dummies: holds by construction, if it holds at all
    gaps: int = 0  # rows that lack one of its values, and would break it

    def to_dict(self) -> dict[str, Any]:
        """The record of the finding, for ``--json``."""
        record = {"kind": self.kind, "constraint": dict(self.spec), "support": self.support, "rows": self.rows}
        return {**record, "remark": self.remark} if self.remark else record

    @property
    def seen(self) -> str:
        """Its support in words."""
        return f"seen in {self.support} of {self.rows} rows"


def find_groups(dummies: Mapping[str, npt.NDArray[np.float64]]) -> list[Finding]:
    """One-hot groups and thermometers among columns of zeros and ones.

    Examples
    --------
    >>> import numpy as np
    >>> [f.kind for f in find_groups({"home_rent": np.array([1.0, 0, 0]), "home_own": np.array([0.0, 1, 1])})]
    ['one_hot']
    """
    names = list(dummies)
    if len(names) < 2:
        return []
    table = np.column_stack([dummies[n] for n in names])
    on = np.nan_to_num(table).astype(np.float32)
    together = on.T @ on  # rows in which both are on
    place = {name: j for j, name in enumerate(names)}
    found: list[Finding] = []
    taken: set[str] = set()
    for group in _candidates(names):
        if not taken.isdisjoint(group):
            continue
        finding = _group([place[n] for n in group], names, table, together, _shared_prefix(group))
        if finding is not None:
            found.append(finding)
            taken |= set(group)
    return found


def _candidates(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Groups worth a look: names with one beginning (the longest groups first), runs of neighbours, pairs."""
    begun: dict[str, list[str]] = {}
    for name in names:
        for head in _heads(name):
            begun.setdefault(head, []).append(name)
    seen: set[tuple[str, ...]] = set()
    for group in sorted((tuple(g) for g in begun.values() if len(g) > 1), key=len, reverse=True):
        if group not in seen:
            seen.add(group)
            yield group
    if len(names) > MOST_PAIRED:
        return
    for i in range(len(names)):
        for j in range(min(i + 30, len(names)), i + 1, -1):
            yield tuple(names[i:j])
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            yield (a, b)


def _heads(name: str) -> list[str]:
    """Return what a name may begin with, up to each of its first signs that separate words."""
    return [name[: cut.start()] for cut in islice(_CUT.finditer(name), _MOST_CUTS) if cut.start()]


def _shared_prefix(group: Sequence[str]) -> bool:
    return bool(set.intersection(*(set(_heads(name)) for name in group)))


def _group(
    columns: list[int],
    names: Sequence[str],
    table: npt.NDArray[np.float64],
    together: npt.NDArray[np.float32],
    related: bool,
) -> Finding | None:
    """What the group is, if anything; neighbours without a shared name need a stronger sign than related ones."""
    both, n = together[np.ix_(columns, columns)], len(table)
    some = table[:, columns]
    gaps = int(np.isnan(some).any(axis=1).sum())
    if gaps:
        own = some[~np.isnan(some).any(axis=1)].astype(np.float32)
        both, n = own.T @ own, len(own)
    on = np.diag(both)

    def made(kind: str, body: dict[str, Any], remark: str) -> Finding:
        return Finding(kind, {kind: body}, n, len(table), remark, encoding=True, gaps=gaps)

    apart = bool((both - np.diag(on) == 0).all())
    if n and apart and on.sum() == n:
        numbered = all(re.search(r"\d", names[j]) for j in columns)
        remark = "the names hold numbers: an ordinal group, if they rank" if numbered and len(columns) > 2 else ""
        return made("one_hot", {"features": [names[j] for j in columns]}, remark)
    if not n or not related:
        return None
    if apart and len(columns) > 2:
        least = {"features": [names[j] for j in columns], "relation": "<="}
        return made("one_hot", least, f"none of them is on in {int(n - on.sum())} rows: a level without a dummy?")
    order = sorted(range(len(columns)), key=lambda k: -on[k])
    nested = all(both[order[k], order[k + 1]] == on[order[k + 1]] for k in range(len(order) - 1))
    if nested and len(set(on.tolist())) == len(on):  # a dummy is on only where all more common ones are
        return made("thermometer", {"features": [names[columns[k]] for k in order]}, "from the most to the least common")
    return None
