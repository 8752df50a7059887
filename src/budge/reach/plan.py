"""How one person is drawn: her prepared parts, packed so that few random numbers and few look-ups are needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.reach.fibre import Mixed
from budge.reach.listed import Listed
from budge.reach.prepare import Prepared

__all__ = ["Pack", "Plan", "weight_in_bytes"]

FloatArray = npt.NDArray[np.float64]
Columns = npt.NDArray[np.intp]
LARGE = 2**16  # bytes of a part that count for the plan too
PACK_ROWS = 4096  # listed parts are packed together up to this many joint configurations


@dataclass(frozen=True)
class Pack:
    """Listed parts that are drawn by one number together: a row of the table is a joint configuration."""

    columns: Columns
    table: FloatArray  # (columns, rows): changes

    @property
    def size(self) -> int:
        """Number of joint configurations."""
        return int(self.table.shape[1])


class Plan:
    """The prepared parts of one person. It depends on where she stands in them, and on nothing else."""

    def __init__(self, parts: Sequence[Prepared], columns: Sequence[Columns]) -> None:
        self.parts = list(parts)
        self.columns = columns
        self.others: list[tuple[Prepared, Columns]] = []
        simple: list[tuple[Listed, Columns]] = []
        for part, where in zip(parts, columns):
            if isinstance(part, Listed) and part.simple:
                simple.append((part, where))
            else:
                self.others.append((part, where))
        self.packs = _packed(simple) if not self.empty else []

    @cached_property
    def nbytes(self) -> int:
        """Memory that it holds, roughly: its parts too where they are large, since these are hardly shared."""
        large = sum(size for part in self.parts if (size := weight_in_bytes(part)) > LARGE)
        return sum(pack.table.nbytes for pack in self.packs) + large + 1000 + 200 * len(self.parts)

    @cached_property
    def empty(self) -> bool:
        """Whether some part has nothing feasible."""
        return any(p.empty for p in self.parts)

    @cached_property
    def only_stays(self) -> bool:
        """Whether nothing can move."""
        return all(p.only_stays for p in self.parts)

    @cached_property
    def size(self) -> int | None:
        """Number of configurations in all; None where a part is too large to be counted or has continuous coordinates."""
        if any(p.size is None or (p.continuous and not p.only_stays) for p in self.parts):
            return None
        return math.prod(p.size for p in self.parts if p.size is not None)


def _packed(parts: Sequence[tuple[Listed, Columns]]) -> list[Pack]:
    groups: list[list[tuple[Listed, Columns]]] = []
    room = 0
    for part, where in parts:
        if groups and part.size <= room:
            groups[-1].append((part, where))
            room //= part.size
        else:
            groups.append([(part, where)])
            room = PACK_ROWS // part.size
    packs = []
    for group in groups:
        where = np.concatenate([where for _, where in group])
        table = np.empty((len(where), math.prod(part.size for part, _ in group)))
        row, inner = 0, 1
        for part, columns in group:  # each part counts on where the one before has come round
            outer = table.shape[1] // (part.size * inner)
            block = table[row : row + len(columns)].reshape(len(columns), outer, part.size, inner)
            block[:] = part.changes.T[:, None, :, None]
            row, inner = row + len(columns), inner * part.size
        packs.append(Pack(where, table))
    return packs


def weight_in_bytes(prepared: Prepared) -> int:
    """Memory that a prepared part holds, roughly."""
    if isinstance(prepared, Listed):
        counted = sum(c.low.nbytes + 3 * c.count.nbytes for c in prepared.counted)
        return prepared.changes.nbytes + counted + 500
    if isinstance(prepared, Mixed):
        cells = 12 * len(prepared.cells) * prepared.size_rows * 8 * max(1, len(prepared.coordinates))  # drawing adds to it
        return cells + sum(c.nbytes for c in prepared.core_changes.values()) + 2000
    return 2000
