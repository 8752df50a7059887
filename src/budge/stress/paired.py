"""The paper's paired probe (Alg. 2): draw from the relaxed set, and let those draws that the original allows stand for the original.

It needs one set of draws for two rates. Kept draws follow the original's law where every configuration weighs the same with and without the relaxed
rule: where only whole features, or only real ones, move in the parts that change, or under ``measure: volume``. Under ``measure: configuration`` a part
in which both kinds move is refused. Where the relaxation frees a continuous feature, no draw leaves it where it was, and nothing can be said.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.sources import BoolArray, TableSource
from budge.errors import DesignError
from budge.interaction import InteractionModel
from budge.stats.counts import STATUSES, Counts
from budge.stress.ablation_result import Compared
from budge.stress.common import Asked, allowed, claims_at
from budge.stress.relaxations import Relaxation

__all__ = ["LEAST_ACCEPTED", "probe"]

LEAST_ACCEPTED = 30  # fewer draws that the original allows tell nothing useful about it


def probe(about: Asked, im: InteractionModel, chosen: tuple[Relaxation, ...]) -> Compared:
    """Compare by Algorithm 2."""
    if im.effects:
        raise DesignError(
            "what an effect added cannot be told from an action", where="method", got="paired", remedy="use method='both'"
        )
    refused = {r.name: why for r in chosen if (why := _why_not(r, im))}
    if len(refused) == len(chosen):
        name, why = next(iter(refused.items()))
        raise DesignError(why, where=name, got="paired", remedy="use method='both'")
    draws, found = about.design.draws, Compared(refused=tuple(f"{name}: {why}; use method='both'" for name, why in refused.items()))
    for r in (r for r in chosen if r.name not in refused):
        rows, counted, ends = _one(about, im, r)
        found.add(r, rows, ends, about.design.threshold, acceptance=float(rows["accepted"].mean() / draws))
        found.counts.append(counted)
        found.asked += int(counted.n.sum())
        few = int((rows["accepted"] < LEAST_ACCEPTED).sum())
        if few:
            found.ranked[-1]["note"] = f"the original allows too few of the {draws} draws for {few} of {len(rows)} people; use method='both'"
    return found


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


def _one(about: Asked, im: InteractionModel, r: Relaxation) -> tuple[pd.DataFrame, Counts, tuple[float, float]]:
    """Return one relaxation's rows, one per person, the counts of the relaxed set, and an interval for the mean gain."""
    base, design, ask = about.source, about.design, about.ask
    relaxed = TableSource(r.model(im), base.frame, base.values, base.invalid)
    people = np.flatnonzero(about.chosen)
    status = relaxed.status[people]
    able = people[~np.isin(status, [STATUSES.index(word) for word in ("empty", "invalid_start")])]
    place = {int(i): k for k, i in enumerate(people)}
    after, before = np.zeros((len(people), 3), np.int64), np.zeros((len(people), 3), np.int64)  # draws, hits, unresolved
    drawing = design.but(purpose=f"{design.purpose}, paired")
    for chunk in relaxed.draws(able, design.draws, drawing):
        found = ask(chunk.rows, np.repeat(about.before[chunk.people], chunk.counts))
        points = relaxed.values_of(chunk)
        for i, first, n in zip(chunk.people.tolist(), chunk.starts.tolist(), chunk.counts.tolist()):
            own = slice(first, first + n)
            kept, hit, lost = allowed(im, base.values[i], points[own]), found.hit[own], ~found.good[own]
            after[place[i]] = n, hit.sum(), lost.sum()
            before[place[i]] = kept.sum(), (hit & kept).sum(), (lost & kept).sum()
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
