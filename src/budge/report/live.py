"""The draws that a report carries, counted: how many points of each bank break which masks, and how many of these hit.

Draws of one person are exchangeable, so that these counts are all there is to know of them. Small sets are listed instead of
drawn, and then every number that the switches lead to is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.result import Audit
from budge.audit.sources import TableSource
from budge.errors import BudgeError, InputError
from budge.reach.reacher import Reacher, reacher
from budge.reach.streams import content_keys
from budge.report.switches import Bank, Board, breaks, find_bank, part_key

__all__ = ["LEAST", "Counts", "Live", "frame_of", "live_record", "make_live", "why_not"]

LEAST = 30  # draws left below which no number is shown
DRAWS = 1000  # of each person and bank
LISTED = 4096  # points that are listed rather than drawn
KEPT = 0.15  # the share of draws that satisfy every mask, at least, for most people
PROBED = 6  # people on whom that is tried
BATCH = 100_000  # points that are asked at once
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Counts:
    """One person and bank: for each combination of masks broken, how many points and how many hits of each model."""

    exact: bool
    masks: npt.NDArray[np.int64]
    n: FloatArray  # points, or their probabilities where these differ
    hits: FloatArray  # (combinations, models)
    weighted: bool = False

    def at(self, bank: Bank, off: Sequence[int], model: int = 0) -> tuple[float, float]:
        """(hits, points) among those that break no mask that is on; the page in the file computes the same."""
        on = sum(1 << k for k, t in enumerate(bank.masks) if t not in off)
        kept = (self.masks & on) == 0
        return float(self.hits[kept, model].sum()), float(self.n[kept].sum())


@dataclass(frozen=True)
class Live:
    """What the switches of a report work on."""

    board: Board
    models: tuple[str, ...]
    people: tuple[int, ...]  # positions among the people of the audit's source
    labels: tuple[Any, ...]
    meant: tuple[bool, ...]  # whether the person belongs to the random sample over which means are taken
    counts: tuple[tuple[Counts | None, ...], ...]  # person by bank
    draws: int
    notes: tuple[str, ...] = ()

    def rho(self, person: int, off: Sequence[int], model: int = 0) -> tuple[float, float, bool] | None:
        """(hits, points, exact) of one person with these switches off; None where nothing is carried for that."""
        b = find_bank(self.board, off)
        if b is None:
            return None
        found = self.counts[person][b]
        if found is None:
            return None
        return (*found.at(self.board.banks[b], off, model), found.exact)


def why_not(audit: Audit) -> str:
    """Why an audit cannot be live; nothing if it can."""
    if audit.context is None:
        return "the model and the people were not at hand when the report was written"
    if not isinstance(audit.context.source, TableSource):
        return "there is no interaction model over a table"
    if audit.context.target is None:
        return "the target is not known"
    return ""


def make_live(
    audit: Audit, *, people: int = 40, also: Sequence[Any] = (), draws: int = DRAWS, progress: Callable[[int, int], None] | None = None
) -> Live:
    """Draw and count for some people at random, and for those named in `also`."""
    reason = why_not(audit)
    if reason:
        raise InputError(reason, where="live", remedy="write the report from budge.audit's result, or replay the run first")
    assert audit.context is not None
    source = audit.context.source
    assert isinstance(source, TableSource)
    board = Board.of(source.model, source.frame)
    chosen, meant = _people(audit, source, people, also)
    maker = _Counter(audit, source, board, draws)
    board = maker.fit(chosen[:PROBED])
    counts: list[tuple[Counts | None, ...]] = [() for _ in chosen]
    notes: list[str] = []
    banks = board.banks
    for b, bank in enumerate(banks):
        try:
            found = maker.count(bank, chosen)
        except BudgeError as error:
            found = [None] * len(chosen)
            notes.append(f"{' and '.join(board.toggles[t].name for t in bank.off) or 'the switches'}: {error}")
        counts = [(*had, new) for had, new in zip(counts, found)]
        if progress is not None:
            progress(b + 1, len(banks))
    labels = source.labels
    if maker.lost:
        notes.append(f"{maker.lost:,} points have no answer from the model; people with such points are left out where they matter.")
    return Live(
        board, tuple(audit.models), tuple(chosen), tuple(labels[i] for i in chosen), tuple(meant), tuple(counts), draws, tuple(notes)
    )


def _people(audit: Audit, source: TableSource, most: int, also: Sequence[Any]) -> tuple[list[int], list[bool]]:
    """Positions of a random sample of those who were audited and can be judged, and of those named; nobody twice, twins once."""
    audited = set(audit.table.index[audit.table["status"] != "invalid_start"])
    place: dict[Any, int] = {}
    for i, label in enumerate(source.labels):
        if label in audited:
            place.setdefault(label, i)
    pool = np.array(sorted(place.values()), dtype=np.intp)
    keys = source.keys()
    order = np.random.default_rng([audit.info["design"]["seed"], len(pool)]).permutation(pool).tolist()
    seen: set[int] = set()
    drawn: list[int] = []
    for i in order:
        if len(drawn) < most and keys[i] not in seen:
            seen.add(keys[i])
            drawn.append(i)
    drawn.sort()
    named = [place[label] for label in also if label in place and place[label] not in set(drawn)]
    return [*drawn, *dict.fromkeys(named)], [True] * len(drawn) + [False] * len(dict.fromkeys(named))


class _Counter:
    """Lists or draws the points of a bank and counts them."""

    def __init__(self, audit: Audit, source: TableSource, board: Board, draws: int) -> None:
        assert audit.context is not None
        self.source, self.board, self.draws = source, board, draws
        self.predictors = audit.context.predictors
        self.target = audit.context.target
        self.design = audit.info["design"]
        self.place = {f.name: j for j, f in enumerate(source.model.features)}
        self.keys = content_keys(tuple(self.place), source.values)
        self.before = {name: _before(audit, name, predictor, source) for name, predictor in self.predictors.items()}
        self.lost = 0

    def fit(self, people: Sequence[int]) -> Board:
        """Masks that keep too few draws, or whose draws cannot be told apart, get banks of their own."""
        while self.board.which("mask"):
            masks = self.board.which("mask")
            bank = Bank((), masks)
            relaxed, deciding = self.board.checks(bank)
            strict = self._stricter(bank, relaxed)
            kept, broken, wrong = [], [], np.zeros(len(masks), dtype=bool)
            for i in people:
                _, changes, _, exact = self._points(reacher(relaxed), i, f"live probe {len(masks)}")
                row = self.source.values[i]
                each = np.array([breaks(deciding[t], self.place, row, changes) for t in masks])
                wrong |= np.array([self._differs(strict, t, each, k, row, changes) for k, t in enumerate(masks)])
                kept.append(1.0 if exact else float((~each.any(axis=0)).mean()))
                broken.append(np.zeros(len(masks)) if exact else each.mean(axis=1))
            if wrong.any():
                k = int(np.argmax(wrong))
                self.board = self.board.moved(masks[k], "apart", "what it allows cannot be told apart from the other switches")
            elif kept and np.median(kept) < KEPT:
                k = int(np.argmax(np.mean(broken, axis=0)))
                self.board = self.board.moved(masks[k], "apart", "with the others it would keep too few of the draws")
            else:
                break
        return self.board

    def _stricter(self, bank: Bank, relaxed: Any) -> dict[int | None, list[Any]]:
        """Everything on (None), and everything but one: the parts that the bank's own model does not have."""
        known = set(map(part_key, relaxed.parts))
        models = {None: self.board.model(bank.off)} | {t: self.board.model((*bank.off, t)) for t in bank.masks}
        return {t: [part for part in model.parts if part_key(part) not in known] for t, model in models.items()}

    def _differs(
        self, strict: Mapping[int | None, list[Any]], t: int, each: npt.NDArray[np.bool_], k: int, row: FloatArray, changes: FloatArray
    ) -> bool:
        """Whether "breaks one of the masks" is not what the definition says, with all on or with this one off."""
        others = np.delete(each, k, axis=0).any(axis=0)
        if not np.array_equal(breaks(strict[t], self.place, row, changes), others):
            return True
        # With all on the fault may lie with any of them: blame this one where leaving it out mends it.
        return not np.array_equal(breaks(strict[None], self.place, row, changes), others | each[k])

    def count(self, bank: Bank, people: Sequence[int]) -> list[Counts | None]:
        """Everybody's counts in this bank."""
        relaxed, deciding = self.board.checks(bank)
        maker = reacher(relaxed)
        purpose = "live, off: " + ", ".join(sorted(self.board.toggles[t].name for t in (*bank.off, *bank.masks)))
        result: list[Counts | None] = [None] * len(people)
        waiting: list[tuple[int, FloatArray, FloatArray, FloatArray | None, bool]] = []
        rows = 0
        for at, i in enumerate(people):
            values, changes, weights, exact = self._points(maker, i, purpose)
            waiting.append((at, values, changes, weights, exact))
            rows += len(values)
            if waiting and (rows >= BATCH or at == len(people) - 1):
                self._ask(waiting, people, relaxed, deciding, bank, result)
                waiting, rows = [], 0
        return result

    def _points(self, maker: Reacher, i: int, purpose: str) -> tuple[FloatArray, FloatArray, FloatArray | None, bool]:
        """The points of one person as numbers, what she changed, their probabilities where they differ, whether they are all."""
        row = self.source.values[i]
        plan = maker.plan(row)
        if maker.status(row, plan) == "empty":
            return np.zeros((0, len(row))), np.zeros((0, len(row))), None, True
        free = any(np.ptp(f.moves(row[j])) > 0 for f, j in zip(maker.free, maker.free_columns))
        size = None if maker.model.effects or free else (plan.size if plan.size is not None else (1 if plan.only_stays else None))
        if size is not None and size <= LISTED:
            values, weights = maker.expand(row, plan)
            return values, np.nan_to_num(values - row), weights, True
        values = np.empty((self.draws, len(row)))
        effects = maker.draw(row, plan, self.keys[i], self.draws, self.design["seed"], purpose, values)
        changes = values - row
        for name, epsilon in effects.items():
            changes[:, self.place[name]] -= epsilon
        return values, np.nan_to_num(changes), None, False

    def _ask(
        self, waiting: Sequence[tuple[int, FloatArray, FloatArray, FloatArray | None, bool]], people: Sequence[int], relaxed: Any,
        deciding: Mapping[int, tuple[Any, ...]], bank: Bank, result: list[Counts | None],
    ) -> None:  # fmt: skip
        sizes = [len(values) for _, values, _, _, _ in waiting]
        owner = np.repeat(np.array([people[at] for at, *_ in waiting], dtype=np.intp), sizes)
        if not len(owner):
            for at, *_ in waiting:
                result[at] = Counts(True, np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, len(self.predictors))))
            return
        table = relaxed.coding.decode(np.concatenate([values for _, values, *_ in waiting]), self.source.frame, owner)
        hit, good = [], np.ones(len(owner), dtype=bool)
        for name, predictor in self.predictors.items():
            outputs, answered = predictor.predict_resolved(table)
            good &= np.asarray(answered, dtype=bool)
            found = np.zeros(len(owner), dtype=bool)
            if good.any():
                told = np.asarray(outputs)[good]
                told = np.array(told.tolist()) if told.dtype == object else told
                found[good] = self.target.hits(told, self.before[name][owner][good])
            hit.append(found)
        self.lost += int((~good).sum())
        ends = np.cumsum([0, *sizes])
        for (at, _, changes, weights, exact), start, stop in zip(waiting, ends, ends[1:]):
            if not good[start:stop].all():
                continue
            row = self.source.values[people[at]]
            mask = np.zeros(stop - start, dtype=np.int64)
            for k, t in enumerate(bank.masks):
                mask |= breaks(deciding[t], self.place, row, changes).astype(np.int64) << k
            mass = np.ones(stop - start) if weights is None else weights
            kinds, inverse = np.unique(mask, return_inverse=True)
            n = np.bincount(inverse, weights=mass, minlength=len(kinds))
            hits = np.stack([np.bincount(inverse, weights=mass * h[start:stop], minlength=len(kinds)) for h in hit], axis=1)
            result[at] = Counts(exact, kinds, n.astype(float), hits.astype(float), weights is not None)


def _before(audit: Audit, name: str, predictor: Any, source: TableSource) -> npt.NDArray[Any]:
    """What the model says of everybody as they are."""
    return np.asarray(predictor.predict(source.frame))


def live_record(live: Live, rows: Sequence[Mapping[Any, int]], shown: Callable[[Any], str]) -> dict[str, Any]:
    """As the file carries it: counts as flat lists of whole numbers. `rows` tells where a person stands in each model's table."""
    people = []
    for label, meant, counts in zip(live.labels, live.meant, live.counts):
        banks: list[Any] = []
        for found in counts:
            if found is None:
                banks.append(0)
                continue
            cells = np.column_stack([found.masks, found.n, found.hits])
            flat = [_small(v) for v in cells.ravel().tolist()]
            banks.append([1 if not found.exact else 3 if found.weighted else 2, *flat])
        people.append({"label": shown(label), "rows": [places.get(label, -1) for places in rows], "mean": int(meant), "banks": banks})
    toggles = [
        {"name": t.name, "kind": t.kind, "says": t.says, "how": t.how, "why": t.why, **({} if t.within is None else {"within": t.within})}
        for t in live.board.toggles
    ]
    banks = [{"off": list(bank.off), "masks": list(bank.masks)} for bank in live.board.banks]
    return {"toggles": toggles, "banks": banks, "people": people, "least": LEAST, "draws": live.draws, "models": list(live.models)}


def _small(value: float) -> float | int:
    return int(value) if float(value).is_integer() else float(f"{value:.12g}")


def frame_of(live: Live) -> pd.DataFrame:
    """One row a person, switch and model: responsiveness with that switch alone off (for tests and tables)."""
    rows = []
    for p, label in enumerate(live.labels):
        for t, toggle in enumerate(live.board.toggles):
            for m, name in enumerate(live.models):
                found = live.rho(p, [t], m)
                if found is not None and found[1]:
                    rows.append({"person": label, "off": toggle.name, "model": name, "rho": found[0] / found[1], "n": found[1], "exact": found[2]})
    return pd.DataFrame(rows)
