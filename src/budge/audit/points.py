"""The points of one person, drawn or listed again exactly as the audit asked about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from budge.audit.ask import Answers, Asker
from budge.audit.sources import Chunk, stack
from budge.errors import InputError

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["answers_of", "points_of"]


def points_of(audit: Audit, label: Any, model: str | None = None, *, most: int | None = None) -> Chunk:
    """Return the points of a person that the counts rest on: all where they were listed, else the draws that were used (the first `most`)."""
    name = audit._named(model)
    rows, at = audit.rows[name], audit._at(label, name)
    source, n = audit._context().source, int(rows.counts.n[at])
    if not n:
        raise InputError("there are no reachable points", where="label", got=f"{label}: status {rows.counts.words('status')[at]}")
    place = int(rows.place[at])
    if rows.counts.is_law("exact")[at]:
        return next(iter(source.exact([place])))
    return _joined(list(source.draws([place], n if most is None else min(n, most), audit.design)))


def _joined(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    moved = None if chunks[0].moved is None else np.concatenate([c.moved for c in chunks if c.moved is not None], axis=1)
    weights = None if chunks[0].weights is None else np.concatenate([c.weights for c in chunks if c.weights is not None])
    return Chunk(chunks[0].people, np.array([sum(int(c.counts[0]) for c in chunks)]), stack([c.rows for c in chunks]), moved, weights, chunks[0].tops)


def answers_of(audit: Audit, label: Any, model: str | None, chunk: Chunk) -> Answers:
    """Return what the model answers about these points of a person."""
    name = audit._named(model)
    rows, at = audit.rows[name], audit._at(label, name)
    ask = Asker.of(name, audit._context().predictors[name], audit.design.target, rows.prediction)
    return ask(chunk.rows, np.repeat(rows.prediction[[at]], int(chunk.counts.sum())))
