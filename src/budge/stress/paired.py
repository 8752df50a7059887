"""The paper's paired probe (Alg. 2): draw from the relaxed set, and judge by the same draws what the original would have allowed.

It needs one set of draws for two rates. Its weakness is acceptance: where the relaxation frees a continuous feature, no draw
leaves that feature where it was, and nothing can be said of the original set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge import stats
from budge.audit.blocks import Block, Work
from budge.audit.design import Design
from budge.audit.sources import TableSource
from budge.errors import DesignError
from budge.interaction import InteractionModel
from budge.models import Predictor
from budge.stress.ablation_result import Ablation, means, rank
from budge.stress.relaxations import Relaxation

__all__ = ["LEAST_ACCEPTED", "probe"]

LEAST_ACCEPTED = 30  # fewer draws that the original allows tell nothing useful about it
BoolArray = npt.NDArray[np.bool_]


def probe(
    predictor: Predictor, source: TableSource, im: InteractionModel, chosen: tuple[Relaxation, ...], left_out: tuple[str, ...],
    design: Design, outputs: Any, asked: BoolArray, again: Callable[[Mapping[str, Any]], Ablation],
) -> Ablation:  # fmt: skip
    """The ablation by Algorithm 2."""
    if im.effects:
        raise DesignError(
            "what an effect added cannot be told from an action", where="method", got="paired", remedy="use method='both'"
        )
    why = "the relaxed set is not a superset of the original one, so the paired probe cannot judge it; use method='both'"
    refused = [r for r in chosen if not r.superset]
    kept = tuple(r for r in chosen if r.superset)
    if not kept:
        raise DesignError(why, where=refused[0].name)
    work = Work({"model": predictor}, design)
    block = Block(tuple(range(len(source))), source, {"model": outputs}, {"model": asked})
    tables, ranked, queries = [], [], 0
    for r in kept:
        rows, used = _one(r, work, block, im, design, asked)
        queries += used
        tables.append(rows)
        few = int((rows["accepted"] < LEAST_ACCEPTED).sum())
        mean = means(rows, design.threshold)
        low, high = _mean_interval(rows, design)
        mean["note"] = (
            f"the original allows too few of the {design.n} draws for {few} of {len(rows)} people; use method='both'"
            if few
            else ""
        )
        ranked.append(
            {
                "kind": r.kind,
                "superset": True,
                **mean,
                "low": low,
                "high": high,
                "acceptance": float(rows["accepted"].mean() / design.n),
            }
        )
    info = {
        "name": im.name, "target": design.target.describe(), "threshold": design.threshold, "alpha": design.alpha, "n": design.n,
        "seed": design.seed, "purpose": design.purpose, "method": "paired", "measure": im.measure, "people": int(asked.sum()),
        "asked": queries, "spec_digest": im.digest,
    }  # fmt: skip
    gone = (*left_out, *(f"{r.name}: {why}" for r in refused))
    return Ablation(pd.concat(tables), rank([r.name for r in kept], ranked), info, gone, again)


def _one(
    r: Relaxation, work: Work, block: Block, im: InteractionModel, design: Design, asked: BoolArray
) -> tuple[pd.DataFrame, int]:
    """One relaxation: a row a person."""
    base = block.source
    assert isinstance(base, TableSource)
    relaxed = TableSource(r.model(im), base.frame, base.values, base.invalid)
    people = np.flatnonzero(asked).tolist()
    status = {i: relaxed.status(i) for i in people}
    able = [i for i in people if status[i] not in ("empty", "invalid_start")]
    count: dict[int, tuple[int, int, int, int]] = {}
    used = 0
    for chunk in relaxed.draws(able, design.n, design.seed, f"{design.purpose}, paired"):
        _, good, hit = work._ask(work.predictors["model"], block, "model", chunk)
        used += len(hit)
        for k, i in enumerate(chunk.people):
            own = slice(k * design.n, (k + 1) * design.n)
            assert chunk.values is not None
            allowed = _feasible(im, base.values[i], chunk.values[own]) & good[own]
            count[i] = (int(hit[own].sum()), int(good[own].sum()), int((hit[own] & allowed).sum()), int(allowed.sum()))
    rows = []
    for i in people:
        hits, n, inside, accepted = count.get(i, (0, 0, 0, 0))
        enough = accepted >= LEAST_ACCEPTED
        row = {
            "relaxation": r.name, "status": status[i] if enough or i not in count else "too_few_accepted", "method_before": "paired",
            "method_after": "sample", "before": inside / accepted if enough else np.nan, "after": hits / n if n else np.nan, "delta": np.nan,
            "low": np.nan, "high": np.nan, "newly_reachable": bool(hits > 0 and inside == 0 and enough), "proven": False,
            "size_ratio": n / accepted if enough else np.nan, "accepted": accepted,
        }  # fmt: skip
        if enough:  # both rates come from the same draws: each gets half of alpha
            one, two = stats.interval(hits, n, design.alpha / 2), stats.interval(inside, accepted, design.alpha / 2)
            row |= {"delta": hits / n - inside / accepted, "low": one.low - two.high, "high": one.high - two.low}
        rows.append(row)
    return pd.DataFrame(rows, index=pd.Index([base.labels[i] for i in people], tupleize_cols=False)), used


def _feasible(im: InteractionModel, start: npt.NDArray[np.float64], points: npt.NDArray[np.float64]) -> BoolArray:
    """What the original allows, by the definition."""
    place = {f.name: j for j, f in enumerate(im.features)}
    good = np.ones(len(points), dtype=bool)
    for part in im.parts:
        x = {name: float(start[place[name]]) for name in part.names}
        moved = {name: np.nan_to_num(points[:, place[name]] - start[place[name]]) for name in part.names}
        good &= np.broadcast_to(part.feasible(x, moved), good.shape)
    return good


def _mean_interval(rows: pd.DataFrame, design: Design) -> tuple[float, float]:
    """All people's intervals hold together (each at alpha over their number), so that their mean lies between their mean ends."""
    known = rows[rows["delta"].notna()]
    if not len(known):
        return np.nan, np.nan
    level = design.alpha / (2 * len(known))
    n = np.full(len(known), design.n)
    hits = np.round(known["after"].to_numpy() * design.n).astype(int)
    inside = np.round(known["before"].to_numpy() * known["accepted"].to_numpy()).astype(int)
    one, two = stats.interval(hits, n, level), stats.interval(inside, known["accepted"].to_numpy(), level)
    return float(np.mean(one.low - two.high)), float(np.mean(one.high - two.low))
