"""What else holds in every row: implications between conditions, and exact linear relations between numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.expressions import quote
from budge.expressions.tolerance import equal
from budge.spec.groups import Finding

__all__ = ["find_dependencies", "find_followers", "find_implications", "find_linear"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
BY_CHANCE = 1e-6  #: an implication is listed if independent columns would show it less often than this
MOST_IMPLICATIONS = 10
MOST_VALUES = 100  # of a column that may determine others: each becomes a row of a constraint
LEAST_RANKED = 20  # different values from which one order in two columns is no accident
MOST_FACTS = 500  # conditions that are compared with each other
MOST_ROWS = 20_000  # rows on which relations are looked for; all rows are asked before one is listed


def find_dependencies(columns: Mapping[str, Any], categories: Set[str] = frozenset()) -> list[Finding]:
    """Return groups of columns one of which determines the others in every row that has them: they can only change together, to values that occur.

    Fractions, and columns of two values, are compared with `categories` alone: an amount that follows from another one takes values that do not occur.

    Examples
    --------
    >>> import pandas as pd
    >>> school = ["none", "school", "college", "school"] * 10
    >>> years = [0, 9, 13, 9] * 10
    >>> find_dependencies({"school": pd.Series(school), "years": pd.Series(years)})[0].spec
    {'reachability': {'features': ['school', 'years'], 'values': [['none', 0], ['school', 9], ['college', 13]]}}
    """
    coded = {}
    for name, column in columns.items():
        codes, levels = column.factorize()
        if 2 <= len(levels) <= MOST_VALUES:
            shares = np.bincount(codes[codes >= 0]) / max(int((codes >= 0).sum()), 1)
            coded[name] = codes, len(levels), math.log(float(shares @ shares))
    apart = {name for name, (_, many, _) in coded.items() if many == 2 or (columns[name].dtype.kind == "f" and (columns[name] % 1 > 0).any())}
    groups: list[list[str]] = []
    for name, (codes, many, _) in sorted(coded.items(), key=lambda item: -item[1][1]):  # the finest first
        ruled = [
            other for other, (own, levels, alike) in coded.items()
            if other != name and levels <= many and ({name, other}.isdisjoint(apart) or {name, other} & categories)
            and _determines(codes, own, levels, many, alike)
        ]  # fmt: skip
        if ruled and not any({name, *ruled} <= set(group) for group in groups):
            groups.append([name, *ruled])
    found = []
    for group in groups:
        names = [name for name in columns if name in group]
        rows = pd.DataFrame({name: columns[name] for name in names})
        known = rows.dropna()
        listed = known.drop_duplicates().itertuples(index=False, name=None)
        values = [[_plain(cell) for cell in row] for row in listed]
        remark = f"{group[0]} determines {', '.join(n for n in names if n != group[0])}: they change together"
        spec = {"reachability": {"features": names, "values": values}}
        found.append(Finding("reachability", spec, len(known), len(rows), remark, encoding=True, gaps=len(rows) - len(known)))
    return found


def find_followers(numbers: Mapping[str, FloatArray]) -> dict[str, tuple[str, str]]:
    """Return columns that rise or fall with an earlier one, rank by rank: the earlier one, and the formula that gives them, if it is a usual one.

    Examples
    --------
    >>> import numpy as np
    >>> wage = np.arange(2.0, 60.0)
    >>> find_followers({"wage": wage, "lwage": np.log(wage), "rank": -(wage**3)})
    {'lwage': ('wage', 'log(wage)'), 'rank': ('wage', '')}
    """
    first: dict[bytes, str] = {}
    found = {}
    for name, values in numbers.items():
        known = ~np.isnan(values)
        distinct, ranks = np.unique(values[known], return_inverse=True)
        if len(distinct) < LEAST_RANKED:
            continue
        order = np.full(len(values), -1)
        order[known] = ranks
        falling = np.where(known, len(distinct) - 1 - order, -1)
        source = first.get(order.tobytes()) or first.get(falling.tobytes())
        if source is None:
            first[order.tobytes()] = name
        else:
            found[name] = source, _formula(source, numbers[source][known], values[known])
    return found


def _formula(name: str, x: FloatArray, y: FloatArray) -> str:
    """Return the usual formula that gives one column from another, to the digits that a table keeps."""
    x_ = quote(name)
    with np.errstate(all="ignore"):
        tried = (
            (f"log({x_})", np.log(x)), (f"log(1 + {x_})", np.log1p(x)), (f"{x_} ** 2", x**2), (f"sqrt({x_})", np.sqrt(x)), (f"exp({x_})", np.exp(x)),
            (f"1 / {x_}", 1 / x),
        )  # fmt: skip
    nearly = 1e-6 * float(np.abs(y).max(initial=0.0))  # a share of the column's own size: all small numbers lie near each other
    return next((text for text, value in tried if np.allclose(value, y, rtol=1e-4, atol=nearly)), "")


def _plain(cell: Any) -> Any:
    value = cell.item() if isinstance(cell, np.generic) else cell
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _determines(codes: npt.NDArray[np.int64], other: npt.NDArray[np.int64], levels: int, many: int, alike: float) -> bool:
    """Return whether equal codes go with equal ones of the other column, in more rows than chance would have it; -1 is a missing value."""
    for some in (slice(1000), slice(None)):  # most pairs are told apart by few rows
        known = (codes[some] >= 0) & (other[some] >= 0)
        pairs = np.bincount(codes[some][known] * levels + other[some][known])
        if (pairs > 0).sum() > len(np.unique(codes[some][known])):
            return False
    return (int(known.sum()) - many) * alike < math.log(BY_CHANCE)


def find_implications(
    dummies: Mapping[str, FloatArray], counts: Mapping[str, FloatArray], categories: Mapping[str, Any], groups: Sequence[set[str]]
) -> tuple[list[Finding], int]:
    """Conditions that bring another with them in every row, and how many more there are.

    First the flag of an empty count (``none == 1`` where ``count == 0``), then dummies and levels among each other.
    Columns in one of the `groups` are not compared with each other. Columns with missing values are left out: no condition on them holds in every row.

    Examples
    --------
    >>> import numpy as np
    >>> count = np.arange(40.0) % 4
    >>> found, _ = find_implications({"none": (count == 0) * 1.0}, {"count": count}, {}, [])
    >>> [(f.spec["if_then"]["if"], f.spec["if_then"]["then"], f.support) for f in found]
    [('none == 1', 'count == 0', 10), ('none == 0', 'count >= 1', 30)]
    """
    dummies, counts = ({name: values for name, values in some.items() if not np.isnan(values).any()} for some in (dummies, counts))
    categories = {name: column for name, column in categories.items() if not column.isna().any()}
    flags = list(_flags(dummies, counts))
    facts = [_Fact(name, f"{quote(name)} == 1", f"{quote(name)} == 0", values == 1) for name, values in dummies.items()]
    for name, column in categories.items():
        for level in column.unique():
            word = repr(level.item() if isinstance(level, np.generic) else level)
            if len(facts) == MOST_FACTS:
                break
            facts.append(
                _Fact(name, f"{quote(name)} == {word}", f"{quote(name)} != {word}", np.asarray(column == level, dtype=bool))
            )
    ranked = sorted(_between(facts, groups), key=lambda pair: pair[0])
    return [*flags, *(f for _, f in ranked[:MOST_IMPLICATIONS])], max(0, len(ranked) - MOST_IMPLICATIONS)


@dataclass(frozen=True)
class _Fact:
    """A condition on one column, its opposite, and the rows where it holds."""

    name: str
    holds: str
    fails: str
    rows: BoolArray


def _flags(dummies: Mapping[str, FloatArray], counts: Mapping[str, FloatArray]) -> Iterator[Finding]:
    for flag, on in dummies.items():
        for name, count in counts.items():
            if not len(count) or count.min() != 0:
                continue
            zero, up, n = count == 0, on == 1, len(count)
            p, q = float(up.mean()), float(zero.mean())
            for value, same, agree in ((1, up == zero, p * q + (1 - p) * (1 - q)), (0, up != zero, p * (1 - q) + q * (1 - p))):
                if same.all() and 0 < p < 1 and n * math.log(agree) < math.log(BY_CHANCE):
                    whole = bool((count == np.round(count)).all())
                    none = {"if": f"{quote(flag)} == {value}", "then": f"{quote(name)} == 0"}
                    some = {
                        "if": f"{quote(flag)} == {1 - value}",
                        "then": f"{quote(name)} >= 1" if whole else f"{quote(name)} > 0",
                    }
                    yield Finding("if_then", {"if_then": none}, int((up == value).sum()), n)
                    yield Finding("if_then", {"if_then": some}, int((up != value).sum()), n)


def _between(facts: Sequence[_Fact], groups: Sequence[set[str]]) -> Iterator[tuple[float, Finding]]:
    """Implications among conditions that independent columns would hardly show, with how hardly (a log probability)."""
    if not facts:
        return
    table = np.column_stack([fact.rows for fact in facts]).astype(np.float32)
    both, n = table.T @ table, len(table)
    on = np.diag(both)
    for i, a in enumerate(facts):
        sure = {b.name for j, b in enumerate(facts) if j != i and both[i, j] == on[i]}  # b is settled: what it is not goes unsaid
        for j, b in enumerate(facts):
            if a.name == b.name or any(a.name in g and b.name in g for g in groups) or not 0 < on[i] < n or not 0 < on[j] < n:
                continue
            if both[i, j] == on[i] and (on[i] < on[j] or i < j):  # two that always go together are said once
                chance, then = math.log(float(on[j]) / n), b.holds
            elif both[i, j] == 0 and i < j and b.name not in sure:
                chance, then = math.log1p(-float(on[j]) / n), b.fails
            else:
                continue
            if float(on[i]) * chance < math.log(BY_CHANCE):
                yield float(on[i]) * chance, Finding("if_then", {"if_then": {"if": a.holds, "then": then}}, int(on[i]), n)


def find_linear(numbers: Mapping[str, FloatArray]) -> list[Finding]:
    """Exact linear relations with small rational coefficients, each column explained by earlier ones.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.arange(30.0) % 7, np.arange(30.0) % 5
    >>> find_linear({"a": a, "b": b, "total": a + b + 1})[0].spec
    {'linear': {'coefficients': {'total': 1, 'a': -1, 'b': -1}, 'relation': '==', 'constant': 1}}
    """
    names = list(numbers)
    if len(names) < 2:
        return []
    whole = np.column_stack([numbers[n] for n in names])
    table = whole[np.isfinite(whole).all(axis=1)]
    n = len(table)
    if n < len(names) + 10:
        return []
    some = table[np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(int)]
    found, free = [], [np.ones(len(some))]
    kept: list[int] = []
    for j, name in enumerate(names):
        basis, wanted = np.column_stack(free), some[:, j]
        scale = np.abs(basis).max(axis=0)
        weights = np.linalg.lstsq(basis / scale, wanted, rcond=None)[0] / scale
        size = float(np.abs(wanted).max())
        if size == 0 or float(np.abs(basis @ weights - wanted).max()) > 1e-8 * size:
            free.append(wanted)
            kept.append(j)
            continue
        exact = [Fraction(float(w)).limit_denominator(60) for w in weights]
        terms = {names[k]: f for k, f in zip(kept, exact[1:]) if f != 0}
        own = whole[np.isfinite(whole[:, [j, *map(names.index, terms)]]).all(axis=1)]  # all rows that have its columns
        right = sum((float(f) * own[:, names.index(k)] for k, f in terms.items()), np.full(len(own), float(exact[0])))
        if terms and bool(equal(own[:, j], right).all()):
            found.append(_relation(name, terms, exact[0], len(own), len(whole)))
    return found


def _relation(name: str, terms: Mapping[str, Fraction], constant: Fraction, support: int, rows: int) -> Finding:
    common = math.lcm(constant.denominator, *(f.denominator for f in terms.values()))
    coefficients = {name: common, **{k: int(-f * common) for k, f in terms.items()}}
    spec = {"linear": {"coefficients": coefficients, "relation": "==", "constant": int(constant * common)}}
    return Finding("linear", spec, support, rows, gaps=rows - support)
