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
#: How the points of a row came about: none, all listed, a fixed number of draws, weighted draws, draws ended by a rule, ends that were proved.
LAWS = ("none", "exact", "sample", "weighted", "sequential", "proved")
#: What an attempt to prove something about a row came to: nothing was tried, the target is impossible, possible or certain, the share was counted, or
#: the reason why it stays open.
PROOFS = ("", "impossible", "possible", "certain", "counted", "model", "target", "effects", "constraint", "unbounded", "rounding", "budget", "time")

Ints = NDArray[np.int64]
Codes = NDArray[np.int8]


def spelled(names: Sequence[str], codes: Codes) -> NDArray[Any]:
    """Return the word of each code."""
    found: NDArray[Any] = np.array(names, dtype=object)[codes]
    return found


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
