"""How often each of several action sets attains the target, for each person: no point is asked twice where sets are listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.blocks import Block, Work
from budge.audit.design import Design
from budge.audit.sources import Chunk, TableSource
from budge.interaction import InteractionModel
from budge.models import Predictor
from budge.reach.streams import content_keys
from budge.stress.listing import Canvas, Listing, plan_listing
from budge.stress.pool import Changes, Pool, listed_size

__all__ = ["Tally", "tally"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
BLOCK_ROWS = 50_000


@dataclass(frozen=True)
class Tally:
    """One entry for each set and person; `rho` only where points weigh differently, `size` where points can be counted."""

    status: npt.NDArray[Any]
    method: npt.NDArray[Any]
    n: npt.NDArray[np.int64]
    hits: npt.NDArray[np.int64]
    unresolved: npt.NDArray[np.int64]
    rho: FloatArray
    size: FloatArray
    asked: int

    @classmethod
    def blank(cls, sets: int, people: int) -> Tally:
        """Nothing known yet."""
        shape = (sets, people)
        return cls(
            np.full(shape, "", dtype=object), np.full(shape, "none", dtype=object), np.zeros(shape, dtype=np.int64),
            np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64), np.full(shape, np.nan), np.full(shape, np.nan), 0,
        )  # fmt: skip


def tally(
    predictor: Predictor,
    models: Sequence[InteractionModel],
    source: TableSource,
    design: Design,
    before: npt.NDArray[Any],
    chosen: BoolArray,
    *,
    purposes: Sequence[str],
    wanted: BoolArray | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Tally:
    """Ask the model about every set of every chosen person.

    Parameters
    ----------
    models
        The original first. All declare the same columns with the same types.
    purposes
        The stream of each set's draws.
    wanted
        Which sets are wanted for which person (sets, people); all unless given. The first is always made.
    """
    pool = Pool(models, design.exact_limit)
    work = Work({"model": predictor}, design)
    block = Block(tuple(range(len(source))), source, {"model": before}, {"model": chosen})
    found = Tally.blank(len(models), len(source))
    canvas = Canvas.of(pool, source.frame, source.values)
    people = np.flatnonzero(chosen)
    able = _able(pool, source, design)
    stuck = np.array([maker.stuck(source.values) for maker in pool.makers])
    moves = _free_moves(pool, source.values)
    keys = content_keys(pool.names, source.values[people]) if len(people) else []
    key_of = dict(zip(people.tolist(), keys))
    asked = 0
    drawn: list[list[int]] = [[] for _ in models]
    batch: list[Listing] = []
    rows = done = 0
    everything = set(range(len(models)))
    for i in people.tolist():
        row = source.values[i]
        if source.invalid[i]:
            found.status[:, i] = "invalid_start"
            continue
        every = [pool.changes(b, row) for b in range(len(pool.bundles))]
        listing = None if design.method == "sample" else plan_listing(pool, i, row, every, able[:, i].tolist())
        _statuses(pool, i, row, every, stuck, moves, found)
        listed = set() if listing is None else listing.listed()
        for s in everything - listed:
            if found.status[s, i] == "empty" or (wanted is not None and s > 0 and not wanted[s, i]):
                continue
            drawn[s].append(i)
        if listing is not None and found.status[0, i] != "empty":
            batch.append(listing)
            rows += listing.points
        if rows >= BLOCK_ROWS:
            asked += _ask(work, block, canvas, batch, found)
            done += len(batch)
            batch, rows = [], 0
            if progress is not None:
                progress(done, len(people))
    if batch:
        asked += _ask(work, block, canvas, batch, found)
    for s, some in enumerate(drawn):
        if design.method == "exact":
            found.status[s, some] = "not_exact"
            continue
        for chunk in _draws(pool, s, source, some, [key_of[i] for i in some], design, purposes[s]):
            asked += _count(work, block, chunk, found, s)
    if progress is not None:
        progress(len(people), len(people))
    return Tally(found.status, found.method, found.n, found.hits, found.unresolved, found.rho, found.size, asked)


def _able(pool: Pool, source: TableSource, design: Design) -> BoolArray:
    """Which sets have nothing endless besides what is prepared: no effects, no free real feature that can move."""
    able = ~_free_moves(pool, source.values)
    for s, model in enumerate(pool.models):
        if model.effects:
            able[s] = False
    return able


def _free_moves(pool: Pool, values: FloatArray) -> BoolArray:
    moves = np.zeros((len(pool.models), len(values)), dtype=bool)
    for s, maker in enumerate(pool.makers):
        for f, j in zip(maker.free, maker.free_columns):
            low, high = f.moves(values[:, j])
            moves[s] |= low < high
    return moves


def _statuses(
    pool: Pool, i: int, row: FloatArray, every: Sequence[Changes], stuck: BoolArray, moves: BoolArray, found: Tally
) -> None:
    """Status and size of every set for one person, from the parts that they share and those that they do not."""
    base = {number: pool.prepared(number, row) for number in pool.ids[0]}
    empty = [number for number, p in base.items() if p.empty]
    movers = {number for number, p in base.items() if not p.only_stays}
    size = listed_size(list(base.values()))
    found.status[:, i] = "ok"
    found.size[0, i] = np.nan if size is None else size
    if empty:
        found.status[0, i] = "empty"
    elif not movers:
        found.status[0, i] = "fixed"
    for bundle, changes in zip(pool.bundles, every):
        inside = bundle.base_parts
        if empty or changes.some_empty:
            hopeless = any(number not in inside for number in empty)
            for s, own in zip(bundle.sets, changes.empty):
                if own or hopeless:
                    found.status[s, i] = "empty"
        if len(movers) <= len(inside) and not movers.difference(inside):
            for s, stays in zip(bundle.sets, changes.stays):
                if stays and found.status[s, i] == "ok":
                    found.status[s, i] = "fixed"
    if size and len(pool.order):
        others = size / np.array([changes.base_size for changes in every])
        found.size[pool.order, i] = np.concatenate([changes.sizes for changes in every]) * others[pool.owner]
    else:  # the original is empty or endless: a relaxed set need not be
        for bundle, changes in zip(pool.bundles, every):
            rest = listed_size([p for number, p in base.items() if number not in bundle.base_parts])
            found.size[list(bundle.sets), i] = changes.sizes * (np.nan if rest is None else rest)
    acts = moves[:, i].copy()
    for s, model in enumerate(pool.models):
        acts[s] |= bool(model.effects)
    if acts.any():
        found.size[acts, i] = np.nan
        found.status[acts & (found.status[:, i] == "fixed"), i] = "ok"
    if stuck[:, i].any():
        found.status[stuck[:, i], i] = "empty"
    gone = found.status[:, i] == "empty"
    if gone.any():
        found.size[gone, i] = np.nan


def _ask(work: Work, block: Block, canvas: Canvas, batch: Sequence[Listing], found: Tally) -> int:
    """One query for the distinct points of some people, counted for every set."""
    counts = [listing.points for listing in batch]
    ends = np.cumsum(counts)
    out = canvas.blank(int(ends[-1]))
    for listing, past in zip(batch, ends.tolist()):
        listing.write(canvas, out[past - listing.points : past])
    people = [listing.person for listing in batch]
    rows = canvas.table(out, people, counts)
    _, good, hit = work._ask(work.predictors["model"], block, "model", Chunk(people, counts, rows))
    for listing, past in zip(batch, ends.tolist()):
        own = slice(past - listing.points, past)
        counted, i = listing.count(hit[own], good[own]), listing.person
        sets = list(counted)
        found.method[sets, i] = "exact"
        found.n[sets, i], found.hits[sets, i], found.unresolved[sets, i] = np.array([c[:3] for c in counted.values()]).T
        for s, (_, _, _, rho) in counted.items():
            if rho is not None:
                found.rho[s, i] = rho
    return int(ends[-1])


def _draws(
    pool: Pool, s: int, source: TableSource, people: Sequence[int], keys: Sequence[int], design: Design, purpose: str
) -> Iterator[Chunk]:
    maker, model, n = pool.makers[s], pool.models[s], design.n
    names = [pool.names[j] for j in maker.moved]
    step = max(1, BLOCK_ROWS // n)
    for at in range(0, len(people), step):
        some = list(people[at : at + step])
        values = source.values[some]
        moved, _ = maker.draw_moved(values, [pool.plan(s, row) for row in values], keys[at : at + step], n, design.seed, purpose)
        rows: pd.DataFrame = model.coding.write(dict(zip(names, moved)), source.frame, np.array(some, dtype=np.intp), n)
        yield Chunk(some, [n] * len(some), rows)


def _count(work: Work, block: Block, chunk: Chunk, found: Tally, s: int) -> int:
    _, good, hit = work._ask(work.predictors["model"], block, "model", chunk)
    n = chunk.counts[0]
    found.method[s, chunk.people] = "sample"
    found.n[s, chunk.people] = n
    found.hits[s, chunk.people] = hit.reshape(-1, n).sum(axis=1)
    found.unresolved[s, chunk.people] = (~good).reshape(-1, n).sum(axis=1)
    return len(hit)
