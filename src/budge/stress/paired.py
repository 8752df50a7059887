"""The paper's paired probe (Alg. 2): draw from the relaxed set, and let those draws that the original allows stand for the original.

It needs one set of draws for two rates. Kept draws follow the original's law where every configuration weighs the same with and without the relaxed
rule: where only whole features, or only real ones, move in the parts that change, or under ``measure: volume``. Under ``measure: configuration`` a part
in which both kinds move is refused. Where the relaxation frees a continuous feature, no draw leaves it where it was, and nothing can be said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.ask import Asker
from budge.audit.design import Design
from budge.audit.sources import BoolArray, TableSource
from budge.errors import DesignError
from budge.interaction import InteractionModel
from budge.models import Predictor
from budge.stats.counts import STATUSES, Counts
from budge.stress.ablation_result import Ablation, claims_at, means, rank
from budge.stress.relaxations import Relaxation

__all__ = ["LEAST_ACCEPTED", "probe"]

LEAST_ACCEPTED = 30  # fewer draws that the original allows tell nothing useful about it


def probe(
    predictor: Predictor, source: TableSource, im: InteractionModel, chosen: tuple[Relaxation, ...], left_out: tuple[str, ...],
    design: Design, outputs: Any, asked: BoolArray, again: Callable[[Mapping[str, Any]], Ablation],
) -> tuple[Ablation, tuple[Counts, ...]]:  # fmt: skip
    """Return the ablation by Algorithm 2, and what was counted of the relaxed sets."""
    if im.effects:
        raise DesignError(
            "what an effect added cannot be told from an action", where="method", got="paired", remedy="use method='both'"
        )
    refused = {r.name: why for r in chosen if (why := _why_not(r, im))}
    kept = tuple(r for r in chosen if r.name not in refused)
    if not kept:
        name, why = next(iter(refused.items()))
        raise DesignError(why, where=name, got="paired", remedy="use method='both'")
    ask = Asker.of("model", predictor, design.target, outputs)
    tables, ranked, queries, seen = [], [], 0, []
    for r in kept:
        rows, counted, gain = _one(r, ask, source, im, design, outputs, asked)
        queries += int(counted.n.sum())
        seen.append(counted)
        tables.append(rows)
        few = int((rows["accepted"] < LEAST_ACCEPTED).sum())
        mean = means(rows, design.threshold)
        if few:
            mean["note"] = f"the original allows too few of the {design.draws} draws for {few} of {len(rows)} people; use method='both'"
        rough = bool((rows["exactness"] == "approximate").any())
        accepted = float(rows["accepted"].mean() / design.draws)
        ranked.append({"kind": r.kind, "superset": True, **mean, "low": gain[0], "high": gain[1], "approximate": rough, "acceptance": accepted})
    info = {
        "name": im.name, "target": design.target.describe(), "threshold": design.threshold, "alpha": design.alpha, "n": design.draws,
        "seed": design.seed, "purpose": design.purpose, "method": "paired", "measure": im.measure, "people": int(asked.sum()),
        "asked": queries, "spec_digest": im.digest,
    }  # fmt: skip
    gone = (*left_out, *(f"{name}: {why}; use method='both'" for name, why in refused.items()))
    return Ablation(pd.concat(tables), rank([r.name for r in kept], ranked), info, gone, again), tuple(seen)


def _why_not(r: Relaxation, im: InteractionModel) -> str:
    """Return why kept draws would not follow the original's law; nothing where they do."""
    if not r.superset:
        return "the relaxed set is not a superset of the original one, so the paired probe cannot judge it"
    relaxed = r.model(im)
    if im.measure != "configuration":
        return ""
    parts = [{repr((p.features, p.constraints, p.linkages)): (p, m) for p in m.parts} for m in (im, relaxed)]
    for key in parts[0].keys() ^ parts[1].keys():  # what the relaxation changes, before and after
        part, model = parts[0].get(key) or parts[1][key]
        moving = [f for f in part.features if f.name in model.moving]
        if any(f.discrete for f in moving) and any(not f.discrete for f in moving):
            return "whole and real features move in one part, so that kept draws do not follow the original's law (measure: configuration)"
    return ""


def _one(
    r: Relaxation, ask: Asker, base: TableSource, im: InteractionModel, design: Design, outputs: Any, asked: BoolArray
) -> tuple[pd.DataFrame, Counts, tuple[float, float]]:
    """Return one relaxation's rows, one per person, the counts of the relaxed set, and an interval for the mean gain."""
    relaxed = TableSource(r.model(im), base.frame, base.values, base.invalid)
    people = np.flatnonzero(asked)
    status = relaxed.status[people]
    able = people[~np.isin(status, [STATUSES.index(word) for word in ("empty", "invalid_start")])]
    place = {int(i): k for k, i in enumerate(people)}
    after, before = np.zeros((len(people), 3), np.int64), np.zeros((len(people), 3), np.int64)  # draws, hits, unresolved
    drawing = design.but(purpose=f"{design.purpose}, paired")
    for chunk in relaxed.draws(able, design.draws, drawing):
        found = ask(chunk.rows, np.repeat(outputs[chunk.people], chunk.counts))
        points = relaxed.values_of(chunk)
        for i, first, n in zip(chunk.people.tolist(), chunk.starts.tolist(), chunk.counts.tolist()):
            own = slice(first, first + n)
            allowed, hit, lost = _feasible(im, base.values[i], points[own]), found.hit[own], ~found.good[own]
            after[place[i]] = n, hit.sum(), lost.sum()
            before[place[i]] = allowed.sum(), (hit & allowed).sum(), (lost & allowed).sum()
    accepted = before[:, 0]
    enough = accepted >= LEAST_ACCEPTED
    rough = relaxed.approximate[people]

    def counts(seen: npt.NDArray[np.int64], which: BoolArray) -> Counts:
        made = Counts.of(seen[which, 1], seen[which, 0], seen[which, 2])
        made.approximate[:] = rough[which]
        return made

    half = design.alpha / 2  # both rates come from the same draws: each interval gets half of alpha
    some = np.flatnonzero(enough)
    one, two = claims_at(counts(after, enough), design, half), claims_at(counts(before, enough), design, half)
    nothing = np.full(len(people), np.nan)
    words = np.array(STATUSES, dtype=object)[status]
    words[~enough & (after[:, 0] > 0)] = "too_few_accepted"
    rate = np.where(after[:, 0] > after[:, 2], after[:, 1] / np.maximum(after[:, 0] - after[:, 2], 1), np.nan)
    columns: dict[str, Any] = {
        "relaxation": np.full(len(people), r.name, dtype=object), "status": words, "method_before": "paired", "method_after": "sample",
        "before": nothing.copy(), "after": rate, "delta": nothing.copy(), "low": nothing.copy(), "high": nothing.copy(),
        "newly_reachable": np.zeros(len(people), bool), "seen_only_after": enough & (after[:, 1] > 0) & (before[:, 1] == 0),
        "size_ratio": np.where(enough, after[:, 0] / np.maximum(accepted, 1), np.nan), "accepted": accepted,
        "exactness": np.where(enough, np.where(rough, "approximate", "guaranteed"), ""),
    }  # fmt: skip
    columns["before"][some] = two.rho
    columns["delta"][some], columns["low"][some], columns["high"][some] = one.rho - two.rho, one.low - two.high, one.high - two.low
    gain = (np.nan, np.nan)
    if len(some):  # all people's intervals hold together, so that their mean lies between the mean ends
        level = design.alpha / (2 * len(some))
        one, two = claims_at(counts(after, enough), design, level), claims_at(counts(before, enough), design, level)
        gain = float(np.mean(one.low - two.high)), float(np.mean(one.high - two.low))
    return pd.DataFrame(columns, index=base.labels[people]), counts(after, after[:, 0] > 0), gain


def _feasible(im: InteractionModel, start: npt.NDArray[np.float64], points: npt.NDArray[np.float64]) -> BoolArray:
    """Return what the original allows, by the definition."""
    place = {f.name: j for j, f in enumerate(im.features)}
    good = np.ones(len(points), dtype=bool)
    for part in im.parts:
        x = {name: float(start[place[name]]) for name in part.names}
        moved = {name: np.nan_to_num(points[:, place[name]] - start[place[name]]) for name in part.names}
        good &= np.broadcast_to(part.feasible(x, moved), good.shape)
    return good
