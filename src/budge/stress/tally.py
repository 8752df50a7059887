"""Counts of several action sets over the same people: no point is asked twice where sets are listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.audit.ask import Asker
from budge.audit.design import Design, Progress
from budge.audit.sources import BoolArray, Chunk, FloatArray, TableSource
from budge.interaction import InteractionModel
from budge.reach.downstream import add_effects
from budge.reach.streams import Stream, keys_of
from budge.stats.counts import LAWS, STATUSES, Counts
from budge.stress.common import Asked, allowed
from budge.stress.listing import Canvas, IntArray, Listing, distinct, plan_listing
from budge.stress.pool import Changes, Pool, listed_size

__all__ = ["Tally", "tally"]

BLOCK_ROWS = 50_000
Ways = dict[tuple[int, int], FloatArray]  # by set and person: the distinct values of hits in the freed columns
EXACT, SAMPLE = LAWS.index("exact"), LAWS.index("sample")
OK, FIXED, EMPTY = (STATUSES.index(word) for word in ("ok", "fixed", "empty"))


@dataclass(frozen=True)
class Tally:
    """The counts of each set, one row per person of the source; `size` where points can be counted; rows that the model was asked about.

    `ways` holds hits that the original set does not allow, of people without a hit there; `known_ways` names the pairs of a set and a person whose hits
    the original set allows, all of them: draws of the original missed what it holds.
    """

    counts: tuple[Counts, ...]
    size: FloatArray  # (sets, people)
    asked: int
    ways: Ways = field(default_factory=dict)
    known_ways: frozenset[tuple[int, int]] = frozenset()


def tally(
    about: Asked, models: Sequence[InteractionModel], *, purposes: Sequence[str], wanted: BoolArray | None = None, progress: Progress | None = None,
    known: Counts | None = None, freed: Sequence[IntArray] | None = None, elsewhere: Callable[[FloatArray, FloatArray], BoolArray] | None = None,
) -> Tally:  # fmt: skip
    """Ask the model about every set of every chosen person.

    Parameters
    ----------
    models
        The original first. All declare the same columns with the same types.
    purposes
        The stream of each set's draws.
    wanted
        Which sets are wanted for which person (sets, people); all unless given. The first is always made.
    known
        What is known of the original set already: rows with a law are not drawn again.
    freed
        For each set, the columns in which it is freer than the original: values of hits that the original does not allow are kept where it has none.
    elsewhere
        Which points the original allows from a start, where it is not among the models: known ways are found by it, and no values of hits are kept.
    """
    source, design, before, ask = about.source, about.design, about.before, about.ask
    pool = Pool(models, design.exact_limit, source.values)
    found = tuple(Counts.blank(len(source)) for _ in models)
    ways: Ways = {}
    known_ways: set[tuple[int, int]] = set()
    counted = np.zeros(len(source), dtype=bool) if known is None else known.law > 0
    size = np.full((len(models), len(source)), np.nan)
    status = np.zeros((len(models), len(source)), dtype=np.int8)
    canvas = Canvas.of(pool, source.frame, source.values)
    people = np.flatnonzero(about.chosen)
    moves = _free_moves(pool, source.values)
    able = ~moves
    able[[s for s, model in enumerate(models) if model.effects]] = False
    stuck = np.array([maker.stuck(source.values) for maker in pool.makers])
    asked, pairs = 0, 0  # pairs of a set and a person that are done

    def told(more: int) -> None:
        nonlocal pairs
        pairs += more
        if progress is not None:
            progress(len(people) * pairs // max(len(models) * len(people), 1), len(people))

    drawn: list[list[int]] = [[] for _ in models]
    batch: list[Listing] = []
    rows = 0
    everything = set(range(len(models)))
    for i in people.tolist():
        if source.invalid[i]:
            status[:, i] = STATUSES.index("invalid_start")
            told(len(models))
            continue
        every = [pool.changes(b, i) for b in range(len(pool.bundles))]
        listing = None if design.method == "sample" else plan_listing(pool, i, every, able[:, i].tolist())
        _statuses(pool, i, every, stuck, moves, status, size)
        listed = set() if listing is None else listing.listed()
        later = [
            s for s in everything - listed
            if status[s, i] != EMPTY and (wanted is None or s == 0 or wanted[s, i]) and not (s == 0 and counted[i])
        ]  # fmt: skip
        for s in later:
            drawn[s].append(i)
        told(len(models) - len(later))
        if listing is not None and status[0, i] != EMPTY:
            batch.append(listing)
            rows += listing.points
        if rows >= BLOCK_ROWS:
            asked += _ask(ask, before, canvas, batch, found, freed, ways)
            batch, rows = [], 0
    if batch:
        asked += _ask(ask, before, canvas, batch, found, freed, ways)
    if known is not None:
        some = counted & ~found[0].is_law("exact")
        for name in ("law", "n", "hits", "unresolved", "hit_mass", "lost_mass", "approximate", "proof"):
            getattr(found[0], name)[some] = getattr(known, name)[some]
    for s, rest in enumerate(drawn):
        if design.method == "exact":
            status[s, rest] = STATUSES.index("not_exact")
            continue
        for chunk, rough, actions in _draws(pool, s, source, rest, design, purposes[s]):
            hit = _count(ask, before, chunk, found[s])
            asked += len(hit)
            found[s].approximate[chunk.people] = rough
            if elsewhere is not None or (freed is not None and s):
                for k in np.flatnonzero(hit.reshape(len(chunk.people), -1).any(axis=1) & (s == 0 or found[0].hits[chunk.people] == 0)).tolist():
                    i, own = int(chunk.people[k]), slice(k * design.draws, (k + 1) * design.draws)
                    points = actions(k, np.flatnonzero(hit[own]))
                    columns = None if freed is None else freed[s]
                    new = ~(allowed(models[0], source.values[i], points, columns) if elsewhere is None else elsewhere(source.values[i], points))
                    if not new.any():
                        known_ways.add((s, i))
                    elif columns is not None:
                        ways[s, i] = distinct(points[new][:, columns])
            told(len(chunk.people))
    for s, counts in enumerate(found):
        counts.status[:] = status[s]
    if progress is not None:
        progress(len(people), len(people))
    return Tally(found, size, asked, ways, frozenset(known_ways))


def _free_moves(pool: Pool, values: FloatArray) -> BoolArray:
    moves = np.zeros((len(pool.models), len(values)), dtype=bool)
    for s, maker in enumerate(pool.makers):
        for f, j in zip(maker.free, maker.free_columns):
            low, high = f.moves(values[:, j])
            moves[s] |= low < high
    return moves


def _statuses(
    pool: Pool, i: int, every: Sequence[Changes], stuck: BoolArray, moves: BoolArray, status: npt.NDArray[np.int8], sizes: FloatArray
) -> None:
    """Fill in status and size of every set for one person, from the parts that they share and those that they do not."""
    base = {number: pool.prepared(number, i) for number in pool.ids[0]}
    empty = [number for number, p in base.items() if p.empty]
    movers = {number for number, p in base.items() if not p.only_stays}
    size = listed_size(list(base.values()))
    status[:, i] = OK
    sizes[0, i] = np.nan if size is None else size
    if empty:
        status[0, i] = EMPTY
    elif not movers:
        status[0, i] = FIXED
    for bundle, changes in zip(pool.bundles, every):
        inside = bundle.base_parts
        if empty or any(changes.empty):
            hopeless = any(number not in inside for number in empty)
            for s, own in zip(bundle.sets, changes.empty):
                if own or hopeless:
                    status[s, i] = EMPTY
        if len(movers) <= len(inside) and not movers.difference(inside):
            for s, stays in zip(bundle.sets, changes.stays):
                if stays and status[s, i] == OK:
                    status[s, i] = FIXED
    if size and len(pool.order):
        others = size / np.array([changes.base_size for changes in every])
        sizes[pool.order, i] = np.concatenate([changes.sizes for changes in every]) * others[pool.owner]
    else:  # the original is empty or endless: a relaxed set need not be
        for bundle, changes in zip(pool.bundles, every):
            rest = listed_size([p for number, p in base.items() if number not in bundle.base_parts])
            sizes[list(bundle.sets), i] = changes.sizes * (np.nan if rest is None else rest)
    acts = moves[:, i].copy()
    for s, model in enumerate(pool.models):
        acts[s] |= bool(model.effects)
    if acts.any():
        sizes[acts, i] = np.nan
        status[acts & (status[:, i] == FIXED), i] = OK
    status[stuck[:, i], i] = EMPTY
    sizes[status[:, i] == EMPTY, i] = np.nan


def _ask(
    ask: Asker, before: npt.NDArray[Any], canvas: Canvas, batch: Sequence[Listing], found: Sequence[Counts], freed: Sequence[IntArray] | None, ways: Ways
) -> int:
    """Ask once about the distinct points of some people and count them for every set."""
    counts = [listing.points for listing in batch]
    ends = np.cumsum(counts)
    out = canvas.blank(int(ends[-1]))
    for listing, past in zip(batch, ends.tolist()):
        listing.write(canvas, out[past - listing.points : past])
    people = [listing.person for listing in batch]
    answers = ask(canvas.table(out, people, counts), np.repeat(before[people], counts))
    for listing, past in zip(batch, ends.tolist()):
        own, i = slice(past - listing.points, past), listing.person
        for s, (n, hits, lost, hit_mass, lost_mass) in listing.count(answers.hit[own], answers.good[own]).items():
            c = found[s]
            c.law[i], c.n[i], c.hits[i], c.unresolved[i], c.hit_mass[i], c.lost_mass[i], c.asked[i] = EXACT, n, hits, lost, hit_mass, lost_mass, n
        if freed is not None and not found[0].hits[i]:
            ways |= {(s, i): values for s, values in listing.ways(answers.hit[own], freed).items()}
    return int(ends[-1])


def _draws(
    pool: Pool, s: int, source: TableSource, people: Sequence[int], design: Design, purpose: str
) -> Iterator[tuple[Chunk, BoolArray, Callable[[int, IntArray], FloatArray]]]:
    """Yield draws of one set, whose of them come from a chain, and what gives the points that some draws of a person reach without effects."""
    maker, model, n = pool.makers[s], pool.models[s], design.draws
    names = [pool.names[j] for j in maker.moved]
    step = max(1, BLOCK_ROWS // n)
    for at in range(0, len(people), step):
        some = np.array(people[at : at + step], dtype=np.intp)
        values = source.values[some]
        block, stream = maker.block(values), Stream(keys_of(maker.names, values, design.seed, purpose))
        own = block.actions(stream, 0, n)
        moved = own.copy() if model.effects else own
        add_effects(block, moved, stream, 0, n)

        def actions(person: int, draws: IntArray, own: FloatArray = own, values: FloatArray = values) -> FloatArray:
            points = np.repeat(values[person][None, :], len(draws), axis=0)
            points[:, maker.moved] = own[:, person * n + draws].T
            return points

        yield Chunk(some, np.full(len(some), n), model.coding.write(dict(zip(names, moved)), source.frame, some, n)), block.approximate, actions


def _count(ask: Asker, before: npt.NDArray[Any], chunk: Chunk, c: Counts) -> BoolArray:
    answers = ask(chunk.rows, np.repeat(before[chunk.people], chunk.counts))
    n, who = int(chunk.counts[0]), chunk.people
    c.law[who], c.n[who], c.asked[who] = SAMPLE, n, n
    c.hits[who] = answers.hit.reshape(-1, n).sum(axis=1)
    c.unresolved[who] = (~answers.good).reshape(-1, n).sum(axis=1)
    c.hit_mass[who], c.lost_mass[who] = c.hits[who] / n, c.unresolved[who] / n
    return answers.hit
