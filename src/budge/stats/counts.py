"""What was seen of many rows (a person and a model each), as columns: the only thing that claims are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from budge.stats._checks import Floats
from budge.stats.weights import Heavy

__all__ = ["LAWS", "PROOFS", "STATUSES", "Counts", "spelled"]

STATUSES = ("ok", "fixed", "empty", "invalid_start", "not_exact")
UNASKED = ("empty", "invalid_start", "not_exact")  # statuses of rows that have no points
#: How the points of a row came about: none, all listed, a fixed number of draws, weighted draws, draws ended by a rule, ends that were proved.
LAWS = ("none", "exact", "sample", "weighted", "sequential", "proved")
#: What an attempt to prove something about a row came to: nothing was tried, the target is impossible, possible or certain, the share was counted, or
#: the reason why it stays open.
PROOFS = (
    "", "impossible", "possible", "certain", "counted", "model", "target", "effects", "constraint", "unbounded", "rounding", "budget", "time",
    "answers are missing",
)  # fmt: skip

Ints = NDArray[np.int64]
Codes = NDArray[np.int8]


def spelled(names: Sequence[str], codes: Codes) -> NDArray[Any]:
    """Return the word of each code."""
    found: NDArray[Any] = np.array(names, dtype=object)[codes]
    return found


def _within(codes: Codes, names: Sequence[str]) -> NDArray[np.bool_]:
    return np.asarray((codes >= 0) & (codes < len(names)))


@dataclass(frozen=True, eq=False)
class Counts:
    """One entry per row in every column.

    Parameters
    ----------
    status, law
        Codes into `STATUSES` and `LAWS`.
    n, hits, unresolved
        Points that count, those among them that attain the target, and those without an answer.
    hit_mass, lost_mass
        The same as shares of the law: of the probability for listed points, of the draws (with their weights) otherwise.
    asked
        Rows that the model was really asked about: more than `n` where draws of a round came after the stop.
    witness
        The number of the nearest hit among the row's points, asked twice; -1 where there is none.
    approximate
        Whether the points are draws of a chain, so that nothing said of them is guaranteed.
    proof, seconds
        Code into `PROOFS`, and the CPU time that the proof took.
    reached
        For each row with a witness, in order, the values reached (one column per feature that can move); may have no columns.
    heavy
        The weights behind the rows whose law is `weighted`, in order.
    """

    status: Codes
    law: Codes
    n: Ints
    hits: Ints
    unresolved: Ints
    hit_mass: Floats
    lost_mass: Floats
    asked: Ints
    witness: NDArray[np.int32]
    approximate: NDArray[np.bool_]
    proof: Codes
    seconds: NDArray[np.float32]
    reached: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    heavy: Heavy = field(default_factory=lambda: Heavy.join([]))

    @classmethod
    def blank(cls, rows: int) -> Counts:
        """Return counts of rows of which nothing is known."""
        whole = [np.zeros(rows, dtype=np.int64) for _ in range(4)]
        return cls(
            np.zeros(rows, np.int8), np.zeros(rows, np.int8), whole[0], whole[1], whole[2], np.zeros(rows), np.zeros(rows), whole[3],
            np.full(rows, -1, np.int32), np.zeros(rows, bool), np.zeros(rows, np.int8), np.zeros(rows, np.float32),
        )  # fmt: skip

    @classmethod
    def of(
        cls, hits: object, n: object, unresolved: object = 0, *, law: str = "sample", hit_mass: object = None, lost_mass: object = None,
        approximate: bool = False, heavy: Heavy | None = None,
    ) -> Counts:  # fmt: skip
        """Return counts from columns of hits, draws and unresolved answers, all of one law.

        Examples
        --------
        >>> Counts.of([0, 3], [60, 60], [1, 0]).hit_mass.tolist()
        [0.0, 0.05]
        """
        k, size, lost = (np.atleast_1d(np.asarray(v, dtype=np.int64)) for v in (hits, n, unresolved))
        k, size, lost = (np.array(v) for v in np.broadcast_arrays(k, size, lost))
        made = cls.blank(len(k))
        share = [
            np.asarray(given, float) if given is not None else seen / np.maximum(size, 1)
            for given, seen in ((hit_mass, k), (lost_mass, lost))
        ]
        return replace(
            made, law=np.full(len(k), LAWS.index(law), np.int8), n=size, hits=k, unresolved=lost, asked=size.copy(), hit_mass=np.atleast_1d(share[0]),
            lost_mass=np.atleast_1d(share[1]), approximate=np.full(len(k), approximate), heavy=Heavy.join([]) if heavy is None else heavy,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.n)

    def is_law(self, *names: str) -> NDArray[np.bool_]:
        """Return which rows have one of these laws."""
        return np.isin(self.law, [LAWS.index(name) for name in names])

    @property
    def unsettled(self) -> NDArray[np.bool_]:
        """Which rows have a point without an answer: one that counts, or one that a proof needed."""
        return np.asarray((self.unresolved > 0) | (self.proof == PROOFS.index("answers are missing")))

    @property
    def way(self) -> NDArray[np.bool_]:
        """Which rows have a point that attains the target: a hit, a point that a proof found, or a counted share."""
        return np.asarray((self.hits > 0) | (self.witness >= 0) | (self.hit_mass > 0))

    def words(self, column: str) -> NDArray[Any]:
        """Return the column `status`, `law` or `proof` in words."""
        return spelled({"status": STATUSES, "law": LAWS, "proof": PROOFS}[column], getattr(self, column))

    def take(self, rows: Any) -> Counts:
        """Return some rows, in the order given (a mask or positions)."""
        at = np.asarray(rows)
        if at.dtype == bool:
            if at.all():
                return self
            at = np.flatnonzero(at)
        at = at.astype(np.intp, copy=False)
        place = np.cumsum(self.witness >= 0) - 1  # where the values of a row's witness stand
        heavy = np.cumsum(self.is_law("weighted")) - 1
        columns = {f.name: getattr(self, f.name)[at] for f in fields(self) if f.name not in ("reached", "heavy")}
        found = at[self.witness[at] >= 0]
        return Counts(
            **columns,
            reached=self.reached[place[found]] if self.reached.shape[1] else np.zeros((len(found), 0)),
            heavy=self.heavy.take(heavy[at[self.is_law("weighted")[at]]]),
        )

    @classmethod
    def join(cls, parts: Sequence[Counts]) -> Counts:
        """Return all rows, one part after the other."""
        if not parts:
            return cls.blank(0)
        columns: dict[str, Any] = {f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls) if f.name not in ("reached", "heavy")}
        wide = max(p.reached.shape[1] for p in parts)
        reached = [p.reached for p in parts if len(p.reached) and p.reached.shape[1] == wide]
        return cls(
            **columns, reached=np.concatenate(reached) if reached else np.zeros((int((columns["witness"] >= 0).sum()), wide)),
            heavy=Heavy.join([p.heavy for p in parts]),
        )  # fmt: skip

    def reached_at(self, row: int) -> Floats | None:
        """Return the values that the witness of a row has reached, or None."""
        if self.witness[row] < 0 or not self.reached.shape[1]:
            return None
        found: Floats = self.reached[int((self.witness[:row] >= 0).sum())]
        return found

    def check(self) -> None:
        """Raise a `ValueError` where columns do not belong together or contradict each other, as they may in a file that budge did not write."""
        rows, blank = len(self.n), Counts.blank(0)
        for f in fields(self):
            column = getattr(self, f.name)
            if f.name not in ("reached", "heavy") and (column.dtype != getattr(blank, f.name).dtype or column.shape != (rows,)):
                raise ValueError(f"the counts have a column {f.name} of {column.dtype} and shape {column.shape}")
        found = self.witness >= 0
        if self.reached.dtype != np.float64 or self.reached.ndim != 2 or (self.reached.shape[1] and len(self.reached) != int(found.sum())):
            raise ValueError(f"{int(found.sum())} rows have a witness, and the values reached have the shape {self.reached.shape}")
        listed, drawn, proved = self.is_law("exact"), self.is_law("sample", "weighted", "sequential"), self.is_law("proved")
        even, none, some = self.is_law("sample", "sequential"), self.is_law("none"), self.n > 0
        mass, lost, close = self.hit_mass, self.lost_mass, 1e-6  # sums of probabilities carry rounding
        size, tried = np.maximum(self.n, 1), {name: self.proof == PROOFS.index(name) for name in PROOFS}
        rules = {
            "codes must be known": _within(self.status, STATUSES) & _within(self.law, LAWS) & _within(self.proof, PROOFS),
            "counts must not be negative": (self.n >= 0) & (self.hits >= 0) & (self.unresolved >= 0) & (self.asked >= 0) & (self.n <= 2**62),
            "hits and unresolved points are some of n": (self.hits <= self.n) & (self.unresolved <= self.n - self.hits),
            "points that have an answer were asked about": (self.asked >= self.n - self.unresolved) | ~(listed | drawn),  # a model that is down is left alone
            "a row that was asked about has points": some | ~(listed | drawn),
            "a row that was not asked about has none": ~none | (~some & (mass == 0) & (lost == 0) & ~found),
            "shares are numbers of at least 0": (mass >= 0) & (lost >= 0) & np.isfinite(mass) & np.isfinite(lost) & (self.seconds >= 0),
            "shares are at most 1": (mass + lost <= 1 + close) | self.is_law("weighted"),
            "shares of draws are those of the counts": ~even | ((np.abs(mass - self.hits / size) <= close) & (np.abs(lost - self.unresolved / size) <= close)),
            "a share is that of hits": ~(listed | drawn | (proved & some)) | ((self.hits > 0) == (mass > 0)),
            "no unresolved point has no share": ~((self.unresolved == 0) & (listed | drawn)) | (lost == 0),
            "all hits have the whole share": ~((self.hits == self.n) & some & (listed | proved)) | (mass >= 1 - close),
            "a witness is one of the points, or of a proof": (self.witness >= -1) & (self.witness <= self.n) & (~found | (self.hits > 0) | (self.proof > 0)),
            "draws of a chain are draws": ~self.approximate | drawn,
            "a row that was not asked about has a status that tells why": none == np.isin(self.status, [STATUSES.index(s) for s in UNASKED]),
            "a row that cannot move has one point": (self.status != STATUSES.index("fixed")) | ~listed | (self.n == 1),
            "what is proved has a proof": proved == (tried["impossible"] | tried["certain"] | tried["counted"]),
            "a target that is impossible is not attained": ~tried["impossible"] | ((self.hits == 0) & (mass == 0) & (lost == 0) & ~found),
            "a target that is certain is attained": ~tried["certain"] | ((self.hits == self.n) & (mass == 1) & (lost == 0)),
            "a proof is tried where all draws are alike": (self.proof == 0) | proved | (drawn & ((self.hits == 0) | (self.hits == self.n)))
            | (tried["answers are missing"] & (self.status == STATUSES.index("not_exact"))),
            "points are asked about once, and a witness twice": (self.asked <= self.n + 1) | self.is_law("sequential") | tried["counted"],
        }
        for rule, holds in rules.items():
            if not holds.all():
                raise ValueError(f"the counts contradict each other: {rule} (row {int(np.argmin(holds))})")
        self._check_heavy(self.is_law("weighted"))

    def _check_heavy(self, weighted: NDArray[np.bool_]) -> None:
        heavy, rows = self.heavy, int(weighted.sum())
        heavy.check(rows)
        size = np.maximum(heavy.n, 1)
        sums: dict[str, NDArray[Any]] = {name: np.bincount(heavy.row, weights, rows) for name, weights in (("hits", heavy.hits), ("unresolved", heavy.lost))}
        sums |= {name: np.bincount(heavy.row, heavy.weight * own, rows) / size for name, own in (("hit_mass", heavy.hits), ("lost_mass", heavy.lost))}
        if not all(np.allclose(value, getattr(self, name)[weighted], rtol=1e-6, atol=1e-9) for name, value in (sums | {"n": heavy.n}).items()):
            raise ValueError("the counts contradict each other: weights give other hits than the counts")

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, one per column: what a journal and a saved run keep."""
        record = {f.name: getattr(self, f.name).tolist() for f in fields(self) if f.name != "heavy"}
        return record | {"heavy": {f.name: getattr(self.heavy, f.name).tolist() for f in fields(self.heavy)}}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Return what `to_dict` was made from."""
        kinds = {f.name: getattr(cls.blank(0), f.name).dtype for f in fields(cls) if f.name != "heavy"}
        columns = {name: np.array(record[name], dtype=kind) for name, kind in kinds.items()}
        rows, found = len(columns["n"]), int((columns["witness"] >= 0).sum())
        if any(len(v) != rows for name, v in columns.items() if name != "reached"):
            raise ValueError("the columns of the counts differ in length")
        columns["reached"] = columns["reached"].reshape(found, -1) if found else np.zeros((0, 0))
        whole = ("row", "hits", "lost")
        heavy = Heavy(**{f.name: np.array(record["heavy"][f.name], dtype=np.int64 if f.name in whole else float) for f in fields(Heavy)})
        return cls(**columns, heavy=heavy)
