"""One block of people: their points are drawn or listed, every model is asked, and only counts come back.

Pure: what a person's record says depends on her, the design and the models alone, never on who shares her block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.audit.design import Design
from budge.audit.sources import Chunk, Source, TableSource
from budge.models import Predictor

__all__ = ["Block", "Record", "Work"]

Record = dict[str, Any]
FloatArray = npt.NDArray[np.float64]
FIRST_ROUND = 32  # draws of a sequential test before its first look; then as many again as there were


@dataclass(frozen=True)
class Block:
    """Some people, what each model says of them now, and which of them each model's audit asks about."""

    people: tuple[int, ...]  # positions in the whole table
    source: Source
    before: Mapping[str, Any]
    asked: Mapping[str, npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class Work:
    """What is done with every block."""

    predictors: Mapping[str, Predictor]
    design: Design

    def __call__(self, block: Block) -> dict[int, dict[str, Record]]:
        """A record for each person and model, by position in the whole table."""
        source, design = block.source, self.design
        anyone = np.any(list(block.asked.values()), axis=0)
        records: dict[int, dict[str, Record]] = {}
        listed: list[int] = []
        drawn: list[int] = []
        for i in np.flatnonzero(anyone).tolist():
            status = source.status(i)
            records[block.people[i]] = {
                name: {"status": status, "method": "none", "n": 0, "hits": 0, "unresolved": 0}
                for name in self.predictors
                if block.asked[name][i]
            }
            if status in ("empty", "invalid_start"):
                continue
            size = source.size(i) if design.method != "sample" else None
            if size is not None and (size <= design.exact_limit or design.method == "exact"):
                listed.append(i)
            else:
                drawn.append(i)
        if drawn and design.method == "exact":
            for i in drawn:
                for record in records[block.people[i]].values():
                    record["status"] = "not_exact"
            drawn = []
        for chunk in source.exact(listed):
            self._count(block, chunk, records, "exact")
        if design.rule is not None:
            self._rounds(block, drawn, records)
        else:
            for chunk in source.draws(drawn, design.n, design.seed, design.purpose, design.proposal):
                self._count(block, chunk, records, "sample" if design.proposal is None else "weighted")
        return records

    def _count(self, block: Block, chunk: Chunk, records: dict[int, dict[str, Record]], method: str) -> None:
        starts = np.cumsum([0, *chunk.counts])
        for name, predictor in self.predictors.items():
            outputs, good, hit = self._ask(predictor, block, name, chunk)
            nearest = self._nearest(block, chunk, hit, starts)
            confirmed = self._confirm(predictor, block, name, chunk, nearest)
            for k, i in enumerate(chunk.people):
                if not block.asked[name][i]:
                    continue
                part = slice(int(starts[k]), int(starts[k + 1]))
                record = records[block.people[i]][name]
                record |= {
                    "method": method,
                    "n": int(chunk.counts[k]),
                    "hits": int(hit[part].sum()),
                    "unresolved": int((~good[part]).sum()),
                }
                if method == "exact" and chunk.weights is not None:
                    record["rho"] = float(chunk.weights[part][hit[part]].sum())
                elif method == "weighted":
                    assert chunk.weights is not None
                    record |= _weighted(hit[part], chunk.weights[part], chunk.weight_bound, self.design.alpha)
                if k in confirmed:
                    record["witness"] = confirmed[k]
                if self.design.how_much and outputs.dtype.kind in "biuf":
                    moved = outputs[part][good[part]].astype(float) - float(block.before[name][i])
                    record["change"] = _change(moved, method == "exact", self.design.alpha)

    def _ask(
        self, predictor: Predictor, block: Block, name: str, chunk: Chunk
    ) -> tuple[Any, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        outputs, good = predictor.predict_resolved(chunk.rows)
        outputs, good = np.asarray(outputs), np.asarray(good, dtype=bool)
        before = np.repeat(np.asarray(block.before[name])[chunk.people], chunk.counts)
        if good.all():
            return outputs, good, np.asarray(self.design.target.hits(outputs, before), dtype=bool)
        hit = np.zeros(len(good), dtype=bool)
        if good.any():
            answered = outputs[good]
            if answered.dtype == object:  # what is left is of one kind again
                answered = np.array(answered.tolist())
            hit[good] = self.design.target.hits(answered, before[good])
        return outputs, good, hit

    def _nearest(self, block: Block, chunk: Chunk, hit: npt.NDArray[np.bool_], starts: npt.NDArray[np.intp]) -> dict[int, int]:
        """For each person with a hit, the row of the nearest one: the first among equals."""
        places = np.flatnonzero(hit)
        if not len(places):
            return {}
        owner = np.searchsorted(starts, places, side="right") - 1
        firsts, begin = np.unique(owner, return_index=True)
        if chunk.values is None or not isinstance(block.source, TableSource):
            return {int(k): int(places[j]) for k, j in zip(firsts, begin)}
        distance = _far(block.source, chunk.values, places, np.array(chunk.people)[owner])
        least = np.repeat(np.minimum.reduceat(distance, begin), np.diff(np.r_[begin, len(places)]))
        candidates = np.flatnonzero(distance == least)
        chosen = candidates[np.searchsorted(candidates, begin)]  # the first of the nearest in each person's run
        return {int(k): int(places[j]) for k, j in zip(firsts, chosen)}

    def _confirm(
        self, predictor: Predictor, block: Block, name: str, chunk: Chunk, nearest: Mapping[int, int]
    ) -> dict[int, list[float] | int]:
        """Ask the model again about every witness; keep those that hit again."""
        if not nearest:
            return {}
        rows = list(nearest.values())
        again = Chunk([chunk.people[k] for k in nearest], [1] * len(rows), _rows(chunk.rows, rows))
        _, _, hit = self._ask(predictor, block, name, again)
        kept: dict[int, list[float] | int] = {}
        for (k, row), good in zip(nearest.items(), hit):
            if good:
                kept[k] = chunk.values[row].tolist() if chunk.values is not None else int(row - sum(chunk.counts[:k]))
        return kept

    def _rounds(self, block: Block, people: Sequence[int], records: dict[int, dict[str, Record]]) -> None:
        """A sequential test: draw in rounds, and stop for each person and model as soon as the rule says so."""
        rule, design = self.design.rule, self.design
        assert rule is not None
        seen: dict[tuple[int, str], list[npt.NDArray[np.bool_]]] = {
            (i, name): [] for i in people for name in self.predictors if block.asked[name][i]
        }
        open_pairs, spent, turn = set(seen), 0, 0
        while open_pairs and spent < rule.max_n:
            size = min(FIRST_ROUND if spent == 0 else spent, rule.max_n - spent)
            still = sorted({i for i, _ in open_pairs})
            for chunk in block.source.draws(still, size, design.seed, f"{design.purpose}#{turn}"):
                starts = np.cumsum([0, *chunk.counts])
                for name, predictor in self.predictors.items():
                    if not any((i, name) in open_pairs for i in chunk.people):
                        continue
                    _, good, hit = self._ask(predictor, block, name, chunk)
                    confirmed = self._confirm(predictor, block, name, chunk, self._nearest(block, chunk, hit, starts))
                    for k, i in enumerate(chunk.people):
                        if (i, name) not in open_pairs:
                            continue
                        part = slice(int(starts[k]), int(starts[k + 1]))
                        record = records[block.people[i]][name]
                        if k in confirmed and "witness" not in record:
                            record["witness"] = confirmed[k]
                        record["unresolved"] += int((~good[part]).sum())
                        against = hit[part] if rule.claim == "above" else hit[part] | ~good[part]
                        seen[i, name].append(against)
                        if self._settled(record, np.concatenate(seen[i, name])):
                            open_pairs.discard((i, name))
            spent, turn = spent + size, turn + 1

    def _settled(self, record: Record, draws: npt.NDArray[np.bool_]) -> bool:
        rule = self.design.rule
        assert rule is not None
        t, hits = np.arange(1, len(draws) + 1), np.cumsum(draws)
        j = hits if rule.claim == "below" else t - hits
        shown = j <= rule.accept[t]
        stop = shown | (j >= rule.give_up[t]) | (t == rule.max_n)
        if not stop.any():
            return False
        at = int(np.argmax(stop))
        record |= {
            "method": "sequential",
            "n": at + 1,
            "hits": int(hits[at]),
            "verdict": rule.claim if shown[at] else "inconclusive",
        }
        return True


def _far(source: TableSource, values: FloatArray, places: npt.NDArray[np.intp], people: npt.NDArray[np.intp]) -> FloatArray:
    """How far each point is from its start: moves in units of the feature's range, one for another level."""
    total = np.zeros(len(places))
    for j, f in enumerate(source.model.features):
        if f.name not in source.model.moving:
            continue
        moved = values[places, j] - source.values[people, j]
        if f.type == "category" and not f.ordered:
            total += moved != 0
            continue
        low, high = f.range
        span = high - low if np.isfinite(high - low) and high > low else 1.0
        np.abs(moved, out=moved)
        if f.missing == "fixed":
            moved = np.nan_to_num(moved)
        total += moved / span if span != 1.0 else moved
    return total


def _rows(rows: Any, places: list[int]) -> Any:
    if hasattr(rows, "iloc"):
        return rows.iloc[places].reset_index(drop=True)
    return rows[places] if isinstance(rows, np.ndarray) else [rows[i] for i in places]


def _weighted(hit: npt.NDArray[np.bool_], weights: FloatArray, bound: float, alpha: float) -> Record:
    from budge.stats import effective_sample_size, weighted

    found = weighted(hit.astype(float), weights, largest=max(bound, float(weights.max())), normalised=True, alpha=alpha)
    return {
        "rho": float(found.estimate),
        "low": float(found.low),
        "high": float(found.high),
        "ess": float(effective_sample_size(weights)),
    }


def _change(moved: FloatArray, exact: bool, alpha: float) -> Record:
    """Quantiles of the output's change, with distribution-free intervals where they were drawn."""
    from budge.stats import quantile_interval

    if not len(moved):
        return {}
    record: Record = {"mean": float(moved.mean()), "least": float(moved.min()), "most": float(moved.max())}
    for q in (0.05, 0.5, 0.95):
        if exact:
            record[f"q{q:g}"] = [float(np.quantile(moved, q, method="inverted_cdf"))] * 3
        else:
            found = quantile_interval(moved, q, alpha=alpha)
            record[f"q{q:g}"] = [float(found.estimate), float(found.low), float(found.high)]
    return record
