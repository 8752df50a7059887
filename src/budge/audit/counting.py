"""One block of people: their points are listed or drawn, every model is asked, and columns of counts come back.

Pure: what is counted for a row depends on the row, the design and the models alone, never on the rest of its block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from budge.audit.ask import Answers, Asker, Few, turned
from budge.audit.design import Design
from budge.audit.sources import BoolArray, Chunk, FloatArray, IntArray, Source, TableSource, choose, stack
from budge.errors import Problem
from budge.stats.counts import LAWS, STATUSES, Counts
from budge.stats.weights import Heavy

if TYPE_CHECKING:
    from budge.audit.proving import Settler

__all__ = ["Block", "Counted", "Remembered", "Work"]

FIRST_ROUND = 8  # draws of the first round of a sequential audit, and the least of any; the most of a round doubles
EVEN = 1 + 1e-12  # weights up to this are 1: the proposal draws as the model declares
MOST_REMEMBERED = 200_000_000  # bytes of a model's answers that are kept for audits of other targets
RARE = 100  # one in so many witnesses may miss when it is asked about again: scores at a threshold differ in the last bit


@dataclass(frozen=True)
class Block:
    """Some rows, what each model answers about them as they are, and which of them each model's audit is about."""

    people: IntArray  # positions in the whole table
    source: Source
    before: Mapping[str, npt.NDArray[Any]]
    asked: Mapping[str, BoolArray]
    told: Callable[[int], None] | None = None  # called with the number of rows of each chunk that is counted, where somebody waits for the block


@dataclass(frozen=True)
class Counted:
    """The counts of one block: for each model, those of the rows that it was asked about, and why points have no answer."""

    people: IntArray
    counts: Mapping[str, Counts]
    asked: Mapping[str, BoolArray]
    causes: Mapping[str, tuple[str, ...]]
    down: frozenset[str] = frozenset()  # models that failed on everything that they were asked about, from some point on or throughout
    drift: tuple[Problem, ...] = ()  # models that answered otherwise about the same points


class Remembered:
    """Answers of one model, by person and the place of a point among theirs: an audit of another target of the same people takes them from here.

    Neither lists nor draws depend on the target. What had no answer is asked about again, and so is what there was no room for.
    """

    def __init__(self, before: npt.NDArray[Any]):
        """`before`: the answers about the people as they are."""
        self.begins = np.full(len(before), -1, np.int64)  # where the answers about each person begin
        self.ends = np.zeros(len(before), np.int64)
        room = MOST_REMEMBERED // (before.dtype.itemsize + 1)
        self.known = np.zeros(room + 1, dtype=bool)  # the last place, -1, never holds an answer
        self.outputs: npt.NDArray[Any] | None = None
        self.free = 0

    def places(self, people: IntArray, first: IntArray, chunk: Chunk, most: IntArray) -> IntArray:
        """Return where the answers about the points of a chunk stand, -1 where there is no room; `most` is how many points each person has in all."""
        new = self.begins[people] < 0
        ends = self.free + np.cumsum(np.where(new, most, 0))
        fits = new & (ends < len(self.known))
        self.begins[people[fits]], self.ends[people[fits]] = (ends - most)[fits], ends[fits]
        self.free = int(ends[fits].max(initial=self.free))
        begins, until = (np.repeat(ends_[people], chunk.counts) for ends_ in (self.begins, self.ends))
        found = begins + np.arange(len(begins)) - np.repeat(chunk.starts - first, chunk.counts)
        return np.asarray(np.where((begins < 0) | (found >= until), -1, found), np.int64)

    def knows(self, places: IntArray) -> BoolArray:
        """Return which points have an answer here."""
        return self.known[places]

    def keep(self, places: IntArray, found: Answers) -> None:
        """Keep answers; a model whose answers are of several types is asked again about everything."""
        some = found.good & (places >= 0)
        if not some.any():
            return
        if self.outputs is None:
            self.outputs = np.empty(len(self.known), found.outputs.dtype)
        kind = self.outputs.dtype
        if kind != found.outputs.dtype:
            if kind.kind not in "US" or found.outputs.dtype.kind != kind.kind:
                self.known, self.begins[:], self.free = np.zeros(1, dtype=bool), -1, 0  # no room for anything
                return
            if found.outputs.dtype.itemsize > kind.itemsize:
                wider = np.empty(len(self.known), found.outputs.dtype)
                wider[: self.free] = self.outputs[: self.free]  # the rest takes no memory before it is written
                self.outputs = wider
        self.outputs[places[some]], self.known[places[some]] = found.outputs[some], True


@dataclass
class _Sheet:
    """What is counted so far for one model; one entry per row of the block."""

    ask: Asker
    before: npt.NDArray[Any]
    counts: Counts
    nearest: FloatArray  # distance of the nearest hit so far
    hit_at: IntArray  # its number among the points of the row; -1: none
    reached: FloatArray | None = None  # the point itself where it is a row of a table: (rows, features that can move)
    found: dict[int, Any] = field(default_factory=dict)  # and by row where it is not
    weights: dict[int, tuple[FloatArray, BoolArray, BoolArray, float]] = field(default_factory=dict)
    causes: dict[str, None] = field(default_factory=dict)
    failed: bool = False  # a call failed
    answered: bool = False  # some point has an answer
    down: bool = False  # the model failed on everything: nothing more is asked in this block
    few: Few | None = None
    turned: tuple[Problem, ...] = ()  # where witnesses are none when they are asked about again
    memory: Remembered | None = None
    people: IntArray | None = None  # positions of the rows in the whole table, for the memory

    def answers(self, source: Source, chunk: Chunk, most: int | None = None) -> Answers:
        """Ask about a chunk, unless the model is down; `most`: it holds draws behind those that are counted, of so many for each row at most."""
        before = np.repeat(self.before[chunk.people], chunk.counts)
        if self.down:
            return Answers.none(len(before))
        found = self.heard(chunk.rows, before) if self.memory is None else self._remembered(source, chunk, before, most)
        self.counts.asked[chunk.people] += chunk.counts
        if self.few is None and len(before):
            self.few = Few.of(chunk.rows, before, found)
        return found

    def _remembered(self, source: Source, chunk: Chunk, before: npt.NDArray[Any], most: int | None) -> Answers:
        """Return answers that are remembered, and ask about the rows of which some are not."""
        memory = self.memory
        assert memory is not None
        assert self.people is not None
        first = np.zeros_like(chunk.counts) if most is None else self.counts.n[chunk.people]
        places = memory.places(self.people[chunk.people], first, chunk, chunk.counts if most is None else np.full_like(chunk.counts, most))
        new = ~np.logical_and.reduceat(memory.knows(places), chunk.starts)
        if new.all():
            found = self.heard(chunk.rows, before)
            memory.keep(places, found)
            return found
        at = np.repeat(new, chunk.counts)
        assert memory.outputs is not None
        outputs, good = memory.outputs[places], ~at
        found = Answers(outputs, good, self.ask.hits(outputs, good, before))
        if not new.any():
            self.answered = True
            return found
        own = self.heard(_part(source, chunk, new).rows, before[at])
        memory.keep(places[at], own)
        if own.outputs.dtype != outputs.dtype:
            outputs = outputs.astype(np.result_type(outputs, own.outputs) if own.outputs.dtype.kind == outputs.dtype.kind else object)
        outputs[at], good[at], found.hit[at] = own.outputs, own.good, own.hit
        return replace(own, outputs=outputs, good=good, hit=found.hit)

    def heard(self, rows: Any, before: npt.NDArray[Any]) -> Answers:
        """Ask about some points, unless the model is down, and keep what is heard of the model."""
        if self.down:
            return Answers.none(len(before))
        found = self.ask(rows, before)
        self.causes |= dict.fromkeys(found.causes)
        self.failed, self.down, self.answered = self.failed or found.failures > 0, found.down, self.answered or bool(found.good.any())
        return found

    def add(self, chunk: Chunk, found: Answers, law: str) -> None:
        """Count a chunk that holds all points of its rows."""
        c, who, starts = self.counts, chunk.people, chunk.starts
        c.law[who] = LAWS.index(law)
        c.n[who] = chunk.counts
        c.hits[who] = np.add.reduceat(found.hit, starts, dtype=np.int64)
        c.unresolved[who] = np.add.reduceat(~found.good, starts, dtype=np.int64)
        if chunk.weights is None:
            c.hit_mass[who], c.lost_mass[who] = c.hits[who] / chunk.counts, c.unresolved[who] / chunk.counts
        else:
            size = 1.0 if law == "exact" else chunk.counts
            c.hit_mass[who] = np.add.reduceat(chunk.weights * found.hit, starts) / size
            c.lost_mass[who] = np.add.reduceat(chunk.weights * ~found.good, starts) / size

    def weigh(self, chunk: Chunk, found: Answers) -> None:
        """Count a chunk of weighted draws; rows whose weights are all 1 are draws like any other."""
        assert chunk.weights is not None
        assert chunk.tops is not None
        self.add(chunk, found, "weighted")
        for k, (i, a) in enumerate(zip(chunk.people.tolist(), chunk.starts.tolist())):
            own = slice(a, a + int(chunk.counts[k]))
            if chunk.tops[k] <= EVEN:
                self.counts.law[i] = LAWS.index("sample")
                self.counts.hit_mass[i] = self.counts.hits[i] / chunk.counts[k]
                self.counts.lost_mass[i] = self.counts.unresolved[i] / chunk.counts[k]
            else:
                self.weights[i] = (chunk.weights[own], found.hit[own], ~found.good[own], float(chunk.tops[k]))

    def keep_nearest(self, source: Source, chunk: Chunk, hit: BoolArray, seen: IntArray | None = None) -> None:
        """Remember the nearest hit of each row, the first among equals; `seen`: points of the rows in earlier chunks."""
        if not hit.any():
            return
        distance = np.where(hit, source.distance(chunk), np.inf)
        starts = chunk.starts
        least = np.minimum.reduceat(distance, starts)
        better = np.flatnonzero(least < self.nearest[chunk.people])
        candidates = np.flatnonzero(distance == np.repeat(least, chunk.counts))
        at = candidates[np.searchsorted(candidates, starts[better])]  # the first of the nearest of each row
        rows = chunk.people[better]
        self.nearest[rows] = least[better]
        self.hit_at[rows] = at - starts[better] + (0 if seen is None else seen[rows])
        if chunk.moved is not None:
            if self.reached is None:
                self.reached = np.empty((len(self.nearest), len(chunk.moved)))
            self.reached[rows] = chunk.moved[:, at].T
        else:
            points = source.points(rows, chunk, at)
            self.found |= {int(i): points[k : k + 1] if not hasattr(points, "iloc") else points.iloc[[k]] for k, i in enumerate(rows)}

    def prove(self, settler: Settler, source: Source, asked: BoolArray) -> None:
        """Settle by proof what draws leave open; a point that is found becomes the row's witness."""
        assert isinstance(source, TableSource)
        for row, point in settler.settle(source, self.heard, self.before, self.counts, asked).items():
            if self.reached is None:
                self.reached = np.empty((len(self.nearest), len(point)))
            self.reached[row], self.hit_at[row] = point, self.counts.n[row]

    def finish(self, source: Source, asked: BoolArray) -> Counts:
        """Ask about every witness again, leave out those that hit no more, and return the counts of the rows that were asked about."""
        rows = np.flatnonzero(self.hit_at >= 0)
        reached = np.zeros((len(rows), 0)) if self.reached is None else self.reached[rows]
        if len(rows):
            points = source.written(rows, reached) if isinstance(source, TableSource) else stack([self.found[i] for i in rows.tolist()])
            found = Answers.none(len(rows)) if self.down else self.ask(points, self.before[rows])
            again = found.hit | ~found.good  # a hit that has no answer now was a hit
            other = int((~again).sum())
            self.turned = turned(self.ask.name, other, len(rows)) if other > len(rows) // RARE else ()
            self.counts.asked[rows] += 1
            self.counts.witness[rows[again]] = self.hit_at[rows[again]]
            reached = reached[again]
        weighted = [self.weights[i] for i in np.flatnonzero(self.counts.is_law("weighted")).tolist()]
        heavy = Heavy.of([w for w, _, _, _ in weighted], [h for _, h, _, _ in weighted], [u for _, _, u, _ in weighted], np.array([t for *_, t in weighted]))
        drawn = self.counts.is_law("sample", "weighted", "sequential")
        self.counts.approximate[drawn] = source.approximate[drawn]
        return replace(self.counts, reached=reached, heavy=heavy).take(asked)


@dataclass(frozen=True)
class Work:
    """What is done with every block."""

    askers: Mapping[str, Asker]
    design: Design
    settlers: Mapping[str, Settler] = field(default_factory=dict)
    check: bool = False  # ask about a few points of each block again
    down: frozenset[str] = frozenset()  # models that fail on everything: they are asked nothing
    memory: Mapping[str, Remembered] = field(default_factory=dict)  # of audits of other targets of the same people

    def __call__(self, block: Block) -> Counted:
        """Count the points of every row of a block."""
        source, design = block.source, self.design
        far, nothing = np.full(len(source), np.inf), np.full(len(source), -1, np.intp)
        sheets = {
            name: _Sheet(
                ask, block.before[name], Counts.blank(len(source)), far.copy(), nothing.copy(), down=name in self.down, memory=self.memory.get(name),
                people=block.people,
            )
            for name, ask in self.askers.items()
        }
        listed, drawn, neither = choose(source, design)
        asked = dict(block.asked)
        for name, sheet in sheets.items():
            sheet.counts.status[:] = np.where(neither, STATUSES.index("not_exact"), source.status)
            if design.method == "exact" and name in self.settlers:  # what is too large to list may follow from the structure
                assert isinstance(source, TableSource)
                large = asked[name] & (neither | (listed & (source.size > design.exact_limit)))
                done = self.settlers[name].count(source, sheet.heard, sheet.before, sheet.counts, large)
                lost = large & sheet.counts.unsettled  # not listed either: an answer may only be missing for a while
                sheet.counts.status[done], sheet.counts.status[lost] = STATUSES.index("ok"), STATUSES.index("not_exact")
                asked[name] = asked[name] & ~done & ~lost
        rest, anyone = replace(block, asked=asked), np.any(list(asked.values()), axis=0)
        for chunk in source.exact(np.flatnonzero(listed & anyone)):
            self._whole(rest, sheets, chunk, "exact")
            del chunk  # its memory is that of the next
        who = np.flatnonzero(drawn & anyone)
        if design.rule is not None:
            self._rounds(block, who, sheets)
        else:
            law = "sample" if design.proposal is None else "weighted"
            for chunk in source.draws(who, design.draws, design):
                self._whole(rest, sheets, chunk, law)
                del chunk
        for name, settler in self.settlers.items():
            sheets[name].prove(settler, source, block.asked[name])
        counts = {name: sheet.finish(source, block.asked[name]) for name, sheet in sheets.items()}
        return Counted(
            block.people, counts, block.asked, {name: tuple(sheet.causes) for name, sheet in sheets.items()},
            frozenset(name for name, sheet in sheets.items() if sheet.down or (sheet.failed and not sheet.answered)),
            tuple(p for s in sheets.values() if self.check and s.few is not None and not s.down for p in s.turned or s.few.drift(s.ask)),
        )  # fmt: skip

    @staticmethod
    def _whole(block: Block, sheets: Mapping[str, _Sheet], whole: Chunk, law: str) -> None:
        """Count a chunk that holds all points of its rows, for each model those that its audit is about."""
        for name, sheet in sheets.items():
            some = block.asked[name][whole.people]
            if not some.any():
                continue
            chunk = whole if some.all() else _part(block.source, whole, some)
            found = sheet.answers(block.source, chunk)
            if law == "weighted":
                sheet.weigh(chunk, found)
            else:
                sheet.add(chunk, found, law)
            sheet.keep_nearest(block.source, chunk, found.hit)
        if block.told is not None:
            block.told(len(whole.people))

    def _rounds(self, block: Block, who: IntArray, sheets: Mapping[str, _Sheet]) -> None:
        """Draw in rounds no longer than the rule can use, and stop for each row and model as soon as the rule allows."""
        source, rule, rows = block.source, self.design.rule, len(block.source)
        assert rule is not None
        running = {name: np.zeros(rows, bool) for name in sheets}
        for name in sheets:
            running[name][who] = block.asked[name][who]
        cap, left = FIRST_ROUND, int(np.any(list(running.values()), axis=0).sum())
        while any(mask.any() for mask in running.values()):
            need = np.zeros(rows, dtype=np.int64)
            seen = np.full(rows, rule.max_n, dtype=np.int64)
            for name, sheet in sheets.items():
                c, at = sheet.counts, np.flatnonzero(running[name])
                against = c.hits[at] + c.unresolved[at] if rule.claim == "below" else c.n[at] - c.hits[at]
                need[at] = np.maximum(need[at], np.clip(rule.until_claim(against, c.n[at]), FIRST_ROUND, cap))
                seen[at] = np.minimum(seen[at], c.n[at])
            open_ = np.flatnonzero(need)
            if block.told is not None:
                block.told(left - len(open_))
                left = len(open_)
            for chunk in source.draws(open_, need[open_], self.design, seen[open_]):
                for name, sheet in sheets.items():
                    some = running[name][chunk.people]
                    if some.any():
                        self._settle(source, sheet, chunk if some.all() else _part(source, chunk, some), running[name])
            cap = min(2 * cap, rule.max_n)

    def _settle(self, source: Source, sheet: _Sheet, chunk: Chunk, running: BoolArray) -> None:
        """Add draws to rows that go on; those past the stop of a row are asked and not used."""
        rule, c, who = self.design.rule, sheet.counts, chunk.people
        assert rule is not None
        found = sheet.answers(source, chunk, rule.max_n)
        starts, owner = chunk.starts, chunk.owner
        t = np.arange(len(owner)) - np.repeat(starts, chunk.counts) + 1 + np.repeat(c.n[who], chunk.counts)
        hits = _running(found.hit, starts, chunk.counts) + np.repeat(c.hits[who], chunk.counts)
        lost = _running(~found.good, starts, chunk.counts) + np.repeat(c.unresolved[who], chunk.counts)
        surprises = hits + lost if rule.claim == "below" else t - hits
        stop = np.flatnonzero((surprises <= rule.accept[t]) | (surprises >= rule.give_up[t]) | (t == rule.max_n))
        stopped, first = np.unique(owner[stop], return_index=True)
        last = starts + chunk.counts - 1
        last[stopped] = stop[first]
        used = np.arange(len(owner)) <= last[owner]
        before = c.n.copy()
        c.law[who] = LAWS.index("sequential")
        c.n[who], c.hits[who], c.unresolved[who] = t[last], hits[last], lost[last]
        c.hit_mass[who], c.lost_mass[who] = hits[last] / t[last], lost[last] / t[last]
        running[who[stopped]] = False
        sheet.keep_nearest(source, chunk, found.hit & used, before)


def _running(values: BoolArray, starts: IntArray, counts: IntArray) -> npt.NDArray[np.int64]:
    """Return running sums that begin anew with every row."""
    total: npt.NDArray[np.int64] = np.cumsum(values, dtype=np.int64)
    ahead = np.r_[0, total][starts]
    return np.asarray(total - np.repeat(ahead, counts), dtype=np.int64)


def _part(source: Source, chunk: Chunk, some: BoolArray) -> Chunk:
    """Return the part of a chunk that belongs to some of its rows."""
    at = np.flatnonzero(some[chunk.owner])
    rows = source.points(chunk.people[chunk.owner[at]], chunk, at)
    return Chunk(
        chunk.people[some], chunk.counts[some], rows, None if chunk.moved is None else chunk.moved[:, at],
        None if chunk.weights is None else chunk.weights[at], None if chunk.tops is None else chunk.tops[some],
    )  # fmt: skip
