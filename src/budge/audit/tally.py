"""How many people have the same counts: what shares, means and sentences are made from, whether people stand in memory or in the files of a run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.design import Design
from budge.audit.rows import Rows
from budge.errors import StorageError
from budge.stats import Claims, Share, claim, share_from_p_values
from budge.stats._checks import Claim
from budge.stats.counts import Counts
from budge.stats.multiplicity import adjust
from budge.stats.shares import Units

__all__ = ["GroupTallies", "Tally", "mean_rho", "tally_pieces"]

Ints = npt.NDArray[np.int64]
SEEN = ("status", "law", "n", "hits", "unresolved", "hit_mass", "lost_mass", "approximate", "proof")  # what claims are made from, with a witness or none
BUCKET, MOST_BUCKETS = 1 << 20, 256  # people among whom those who share draws are found at once, unless that takes too many files
_LINE = np.dtype([("unit", np.int64), ("entry", np.int32), ("group", np.int32)])


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts with their claims, one entry for people who have the same, and who of them share their draws.

    `people` is how many people each entry stands for; `units` a number per entry where each is one person, or `Units`; `asked` the number of rows that
    models were really asked about.
    """

    counts: Counts
    claims: Claims
    people: Ints
    units: Any
    asked: int

    @classmethod
    def of(cls, rows: Rows, claims: Claims, at: npt.NDArray[np.intp] | None = None) -> Tally:
        """Return the tally of people in memory, or of some of them."""
        counts, units = rows.counts, rows.units
        if at is not None:
            bare = replace(counts, reached=np.zeros((len(counts.reached), 0)))  # what witnesses reach is not tallied
            counts, claims, units = bare.take(at), claims.take(at), units[at]
        return cls(counts, claims, np.broadcast_to(np.int64(1), len(counts)), units, int(counts.asked.sum()))

    @property
    def judged(self) -> npt.NDArray[np.bool_]:
        """Which entries were judged."""
        return ~self.counts.is_law("none")

    def _at(self) -> npt.NDArray[np.bool_] | slice | None:
        """Return where people stand who were judged; None where there is nobody."""
        at = self.judged & (self.people > 0)
        return slice(None) if at.all() and len(at) else at if at.any() else None

    def total(self, column: str) -> int:
        """Return the sum of a column of the counts over people."""
        values = getattr(self.counts, column)
        if float(values.max(initial=0)) * float(self.people.sum()) < 2**62:
            return int(values.sum()) if (self.people == 1).all() else int(np.dot(values, self.people))
        return sum(int(v) * int(k) for v, k in zip(values.tolist(), self.people.tolist()))  # counted sets may be huge

    def number(self, which: npt.NDArray[np.bool_]) -> int:
        """Return the number of people of some entries."""
        return int(self.people[which].sum())

    def words(self, names: tuple[str, ...], codes: npt.NDArray[np.int8]) -> dict[str, int]:
        """Return how many people have each word, the most frequent first."""
        found = {names[int(k)]: self.number(codes == k) for k in pd.unique(codes)}
        return dict(sorted(((word, many) for word, many in found.items() if many), key=lambda pair: -pair[1]))

    def share(self, side: Claim, alpha: float) -> Share | None:
        """Return the share of people judged who are on one side of the threshold, whatever their law; people who share their draws count as one unit."""
        at = self._at()
        if at is None:
            return None
        claims, other = self.claims, "above" if side == "below" else "below"
        ties = claims.has("at the threshold") & (claims.threshold > 0)
        p, q = claims.evidence(side), claims.evidence(other)  # type: ignore[arg-type]
        if not isinstance(self.units, Units):
            p, q, ties, units = p[at], q[at], ties[at], self.units[at]
        else:
            units = self.units  # of those who were judged alone
        return share_from_p_values(p, q, known_not=ties, claim=side, alpha=alpha, units=units)

    def mean_rho(self) -> float | None:
        """Return the mean over people who were judged; None where one of their answers is missing."""
        at = self._at()
        return None if at is None else mean_rho(self.claims.rho[at], self.counts.unresolved[at], self.people[at])

    def mean_ends(self) -> tuple[float, float] | None:
        """Return the mean of the estimates if every missing answer is a miss, and if every one is a hit."""
        at = self._at()
        if at is None:
            return None
        least, lost = self.counts.hit_mass[at], self.counts.lost_mass[at]
        return _mean(np.clip(least, 0, 1), self.people[at]), _mean(np.clip(least + lost, 0, 1), self.people[at])

    def adjusted(self, side: Claim, method: str) -> npt.NDArray[np.float64]:
        """Return the p-value of each entry, adjusted over all people who were tested; NaN elsewhere."""
        p = self.claims.p_value(side)
        tested = ~np.isnan(p) & (self.people > 0)
        p[~tested] = np.nan
        if tested.any():
            p[tested] = adjust(p[tested], method, repeats=self.people[tested])
        return p


def mean_rho(rho: Any, unresolved: Any, people: Any = None) -> float | None:
    """Return the mean over people who were judged; None where one of their answers is missing: a mean over the others would be about other people."""
    values = np.asarray(rho, dtype=float)
    if not values.size or np.any(unresolved) or np.isnan(values).any():
        return None
    return _mean(values, np.ones(len(values), np.int64) if people is None else people)


def _mean(values: npt.NDArray[np.float64], people: Ints) -> float:
    return float(values.mean()) if (people == 1).all() else float((values * people).sum() / people.sum())


# -- people in the files of a run ---------------------------------------------------------------------------------------


def tally_pieces(
    pieces: Iterable[Rows], people: int, design: Design, group: Callable[[Rows], pd.Series] | None = None
) -> tuple[Tally, dict[Any, Tally]]:
    """Return the tally of all people and of every group, from pieces of the rows of one model, one in memory at a time.

    `people` is how many rows there are at most. Who shares draws with whom is found bucket by bucket, by files of 16 bytes per person.
    """
    entries, names, kinds, asked = _Entries(), dict[Any, int](), list[pd.Series](), 0
    with ExitStack() as stack, _room():
        buckets = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(min(MOST_BUCKETS, max(1, -(-people // BUCKET))))]
        for rows in pieces:
            judged, asked = ~rows.counts.is_law("none"), asked + int(rows.counts.asked.sum())
            line = np.zeros(len(rows.counts), _LINE)
            line["unit"], line["entry"] = rows.units, entries.codes(rows.counts)
            if group is not None:
                values = _named_groups(group(rows))
                kinds.append(values.iloc[:0])
                own, seen = pd.factorize(values)
                line["group"] = np.array([names.setdefault(v, len(names)) for v in seen], dtype=np.int32)[own] if len(seen) else 0
            line = line[judged]
            for k, file in enumerate(buckets):
                (line if len(buckets) == 1 else line[line["unit"] % len(buckets) == k]).tofile(file)
        counts = entries.counts()
        whole, parts = list[Units](), {name: list[Units]() for name in names}
        for file in buckets:
            file.seek(0)
            found = np.fromfile(file, _LINE)
            whole.append(Units.of(found["entry"], found["unit"]))
            for name, k in names.items():
                own = found["group"] == k
                parts[name].append(Units.of(found["entry"][own], found["unit"][own]))
    claims = claim(counts, design)
    total = Tally(counts, claims, entries.people, Units.join(whole), asked)
    joined = {name: Units.join(parts[name]) for name in _in_order(list(names), kinds)}
    return total, {name: replace(total, people=units.people_of(len(counts)), units=units) for name, units in joined.items()}


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except StorageError:  # of a part of the run
        raise
    except OSError as error:
        remedy = "make room there, or set TMPDIR; what was finished is kept"
        raise StorageError(f"temporary files cannot be written: {error.strerror or error}", where=tempfile.gettempdir(), remedy=remedy) from error


class _Entries:
    """Different rows of counts, each once."""

    def __init__(self) -> None:
        self.known: dict[bytes, int] = {}
        self.parts: list[Counts] = []
        self.many: list[int] = []

    def codes(self, counts: Counts) -> Ints:
        """Return the entry of every row, new ones added."""
        plain = [np.ascontiguousarray(getattr(counts, name)) for name in SEEN] + [counts.witness >= 0]
        alone = counts.is_law("weighted")  # their claims rest on all their weights
        hashed = np.zeros(len(counts), np.uint64)
        for column in plain:
            hashed = (hashed ^ _bits(column)) * np.uint64(0x9E3779B97F4A7C15)
            hashed ^= hashed >> np.uint64(29)
        own, _ = pd.factorize(hashed)
        first = np.full(int(own.max(initial=-1)) + 1, len(own), np.int64)
        np.minimum.at(first, own, np.arange(len(own)))
        if any((column != column[first[own]]).any() for column in plain):  # two different rows with one hash
            own, first = np.arange(len(own)), np.arange(len(own))
        if alone.any():
            own, first = np.arange(len(own)), np.arange(len(own))
        places, fresh = np.zeros(len(first), np.int64), []
        keys = [b"".join(column[i].tobytes() for column in plain) for i in first.tolist()]
        for k, (i, key) in enumerate(zip(first.tolist(), keys)):
            key = key + len(self.many).to_bytes(8) if alone[i] else key
            at = self.known.get(key)
            if at is None:
                at = self.known[key] = len(self.many)
                self.many.append(0)
                fresh.append(i)
            places[k] = at
        if fresh:
            blank = counts.take(np.array(fresh))
            has = blank.witness >= 0
            self.parts.append(replace(blank, witness=np.where(has, 0, -1).astype(np.int32), reached=np.zeros((int(has.sum()), 0))))
        result = places[own]
        for at, many in zip(*(v.tolist() for v in np.unique(result, return_counts=True))):
            self.many[at] += many
        return result

    def counts(self) -> Counts:
        """Return the entries."""
        return Counts.join(self.parts)

    @property
    def people(self) -> Ints:
        """How many people each entry stands for."""
        return np.array(self.many, dtype=np.int64)


def _bits(column: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return the bits of a column as whole numbers."""
    return (column + 0.0).view(np.uint64) if column.dtype.kind == "f" else column.astype(np.int64).view(np.uint64)


# -- groups -------------------------------------------------------------------------------------------------------------


def _named_groups(groups: pd.Series) -> pd.Series:
    """Return the groups with a name for people whose group is missing: they are a group too."""
    if not groups.isna().any():
        return groups
    if isinstance(groups.dtype, pd.CategoricalDtype):
        return groups.cat.add_categories([c for c in ["missing"] if c not in groups.cat.categories]).fillna("missing")
    return groups.astype(object).where(groups.notna(), "missing")


def _in_order(names: list[Any], kinds: Iterable[pd.Series]) -> list[Any]:
    """Return the groups by their own order, or by their text where they have none."""
    ordered = [c for kind in kinds if isinstance(kind.dtype, pd.CategoricalDtype) for c in kind.cat.categories]
    if ordered:
        return [*(c for c in dict.fromkeys(ordered) if c in names), *(n for n in names if n not in ordered)]
    try:
        return sorted(names)
    except TypeError:
        return sorted(names, key=str)


class GroupTallies(Mapping[Any, Tally]):
    """The tally of every group of people in memory, each made when it is asked for."""

    def __init__(self, rows: Rows, claims: Claims, groups: pd.Series):
        values = _named_groups(groups)
        codes, seen = pd.factorize(values)
        self.rows, self.claims, self.codes, self.numbers = rows, claims, codes, {name: k for k, name in enumerate(seen)}
        self.names = _in_order(list(seen), [values])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: Any) -> Tally:
        return Tally.of(self.rows, self.claims, np.flatnonzero(self.codes == self.numbers[name]))
