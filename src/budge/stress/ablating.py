"""Ablation: which constraint is to blame? Each is relaxed in turn, and responsiveness compared before and after.

The paper's paired probe (Alg. 2) draws from the relaxed set and lets those draws that the original allows stand for the original.
It needs one set of draws for two rates. Kept draws follow the original's law where every configuration weighs the same with and without the relaxed
rule: where only whole features, or only real ones, move in the parts that change, or under ``measure: volume``. Under ``measure: configuration`` a part
in which both kinds move is refused. Where the relaxation frees a continuous feature, no draw leaves it where it was, and nothing can be said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.design import Design, Execution, Progress, designed, given, population_name
from budge.audit.sources import BoolArray, TableSource, make_source
from budge.errors import DesignError, InputError
from budge.frames import level_key
from budge.interaction import InteractionModel
from budge.models.contained import kept_seeds
from budge.progress import noting, share_of
from budge.stats.counts import STATUSES, Counts
from budge.stress.ablation_result import Ablation, Compared, compared, rank
from budge.stress.common import Asked, allowed, claims_at, noted, without_journal
from budge.stress.needs import freed_columns
from budge.stress.relaxations import Relaxation, resolve
from budge.stress.tally import Tally, tally

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["LEAST_ACCEPTED", "ablate", "ablate_audit", "probe"]

FloatArray = npt.NDArray[np.float64]


@noting("people")
@kept_seeds()
def ablate(
    model: Any,
    X: Any,
    im: InteractionModel,
    relaxations: Any = None,
    *,
    target: Any = None,
    threshold: float | None = None,
    alpha: float | None = None,
    n: int | None = None,
    seed: int | None = None,
    population: Any = None,
    method: Literal["both", "paired"] = "both",
    progress: Progress | bool | None = None,
    design: Design | None = None,
    execution: Execution | None = None,
) -> Ablation:
    """Relax each constraint in turn and see how responsiveness changes.

    Parameters
    ----------
    model, X, im, target, population, design, execution
        As in `budge.audit`.
    relaxations
        All of `default_relaxations` unless given: names among these, `Relaxation` values, or a mapping of names to relaxed
        models or `Relaxation` values.
    threshold, alpha
        Intervals hold with probability 1 - alpha each; the threshold counts people below it before and after.
    n, seed
        The draws for those sets that are not listed; the relaxed sets are drawn independently of the original ones.
    method
        ``both``: both sets are listed or drawn. ``paired``: the paper's probe (Alg. 2): the relaxed set is drawn, and those of its draws that
        the original allows stand for the original. It is refused where that is not the original's law (whole and real features that move in one
        part), and gives no estimate where too few draws are allowed.
    progress
        Called with (people done, people in all), for the original and every relaxation. As in `budge.audit` a line is shown without it.

    Returns
    -------
    Ablation

    Examples
    --------
    >>> import pandas as pd, budge
    >>> im = budge.InteractionModel(
    ...     [budge.Feature("income", "integer", bounds=(0, 9), max_increase=2), budge.Feature("home", "binary", actionable=False)]
    ... )
    >>> X = pd.DataFrame({"income": [1, 2, 8], "home": [0, 0, 1]})
    >>> result = ablate(lambda t: (t["income"] > 4).astype(int), X, im, target=1)
    >>> result.ranking[["relaxation", "gain", "newly_reachable"]].values.tolist()
    [['lift steps of income', 0.5, 2], ['free home', 0.0, 0]]
    """
    if method not in ("both", "paired"):
        raise DesignError("must be both or paired", where="method", got=method)
    if not isinstance(im, InteractionModel):
        raise InputError("an interaction model is needed, for something has to be relaxed", where="im", got=type(im).__name__)
    wishes = given(target=target, threshold=threshold, alpha=alpha, n=n, seed=seed, population=population)
    question = designed(design, {"testing": False} | wishes)
    carried = without_journal(execution)
    assert callable(progress)
    about = Asked.of(model, X, im, question, check=bool(carried.check))
    question = about.design
    chosen, left_out = resolve(im, relaxations, about.source.frame)

    def again(changes: Mapping[str, Any]) -> Ablation:
        return ablate(model, X, im, relaxations, method=method, design=question.but(**changes), execution=Execution(check=False))

    _check_supersets(about, im, chosen)
    found = probe(about, im, chosen) if method == "paired" else _compared(about, im, chosen, progress)
    info = _info(about, im, found, method) | {"data_digest": about.source.digest(), "model_digest": about.predictor.digest()}
    made = Ablation(pd.concat(found.tables), rank(found.ranked), info, (*left_out, *found.refused), tuple(found.needs), again)
    return replace(made, info=noted(made.info, about.checked(found.counts, carried.check, made)))


def ablate_audit(
    audit: Audit, model: str, rows: npt.NDArray[np.intp], chosen: tuple[Relaxation, ...], left_out: tuple[str, ...], *, progress: Progress
) -> Ablation:
    """Return the ablation of some rows of an audit whose model is at hand; `chosen` and `left_out` are what `default_relaxations` gives.

    What the audit counted of the original sets is taken from it, but for rows that stopped early or have weights: their sets are drawn anew, from a
    stream of their own. People as they are are not asked about again.
    """
    context, own = audit._context(), audit.rows[model]
    assert isinstance(context.source, TableSource)
    source, counts = context.source.take(own.place[rows]), own.counts.take(rows)
    again = counts.is_law("sequential", "weighted")
    design = audit.design.but(sequential=False, proposal=None, prove=False, groups=(), testing=False, n=audit.design.draws, population="all")
    if again.any():
        design = design.but(n=None, margin=None, purpose=f"{design.purpose}, why")
    about = Asked(source, context.predictors[model], design, own.prediction[rows], np.ones(len(rows), dtype=bool))
    known = replace(counts, law=np.where(again, 0, counts.law).astype(np.int8))
    found = _compared(about, context.im, chosen, progress, known=known, seen=counts)
    digests = {"data_digest": audit.info["data_digest"], "model_digest": audit.info["model_digests"][model]}
    info = _info(about, context.im, found, "both") | digests | {"population": audit.info["population"]}
    made = Ablation(pd.concat(found.tables), rank(found.ranked), info, left_out, tuple(found.needs))
    return replace(made, info=noted(made.info, about.checked(found.counts, "warn", made)))


def _info(about: Asked, im: InteractionModel, found: Compared, method: str) -> dict[str, Any]:
    design = about.design
    return {
        "name": im.name, "target": design.target.describe(), "threshold": design.threshold, "alpha": design.alpha, "n": design.draws,
        "seed": design.seed, "purpose": design.purpose, "method": method, "measure": im.measure, "people": int(about.chosen.sum()),
        "asked": found.asked, "spec_digest": im.digest, "population": population_name(design.population),
    }  # fmt: skip


def _compared(
    about: Asked, im: InteractionModel, chosen: tuple[Relaxation, ...], progress: Progress, *, known: Counts | None = None, seen: Counts | None = None
) -> Compared:
    freed = [np.zeros(0, dtype=np.intp), *(freed_columns(im, r.model(im)) for r in chosen)]
    return compared(about, _tallies(about, im, chosen, progress, freed, known), chosen, freed, seen)


def _tallies(
    about: Asked, im: InteractionModel, chosen: tuple[Relaxation, ...], progress: Progress, freed: Sequence[npt.NDArray[np.intp]], known: Counts | None
) -> Tally:
    """Count all sets: relaxations that keep the features' types share their points; the others are asked about by themselves."""
    models = [r.model(im) for r in chosen]
    kinds = [(f.type, f.levels) for f in im.features]
    alike = [k for k, m in enumerate(models) if [(f.type, f.levels) for f in m.features] == kinds]
    relaxed = f"{about.design.purpose}, relaxed"
    purposes = [about.design.purpose, *(relaxed for _ in alike)]
    stages, columns = len(models) + 1, [freed[0], *(freed[k + 1] for k in alike)]
    people = int(about.chosen.sum())

    def note(done: int, total: int) -> None:
        progress(people * done // max(total, 1), people)

    part = share_of(note, 0, len(alike) + 1, stages)
    shared = tally(about, [im, *(models[k] for k in alike)], purposes=purposes, progress=part, known=known, freed=columns)
    if len(alike) == len(models):
        return shared
    counts = {0: (shared.counts[0], shared.size[0])} | {k + 1: (shared.counts[s], shared.size[s]) for s, k in enumerate(alike, start=1)}
    queries, known_ways = shared.asked, {(alike[s - 1] + 1, i) for s, i in shared.known_ways}
    for at, k in enumerate(sorted(set(range(len(models))) - set(alike)), len(alike) + 1):
        other = make_source(models[k], about.source.frame, "keep")
        assert isinstance(other, TableSource)
        some = replace(about, source=other, chosen=about.chosen & ~about.source.invalid)
        lone = tally(some, [models[k]], purposes=[relaxed], progress=share_of(note, at, 1, stages), elsewhere=partial(_allowed_by, im, models[k]))
        counts[k + 1] = (lone.counts[0], lone.size[0])
        queries += lone.asked
        known_ways |= {(k + 1, i) for _, i in lone.known_ways}
    order = [counts[s] for s in range(len(models) + 1)]
    ways = {(0 if s == 0 else alike[s - 1] + 1, i): values for (s, i), values in shared.ways.items()}
    return Tally(tuple(c for c, _ in order), np.stack([size for _, size in order]), queries, ways, frozenset(known_ways))


def _allowed_by(im: InteractionModel, coded: InteractionModel, start: FloatArray, points: FloatArray) -> BoolArray:
    """Return which points an interaction model allows from a start; both are coded for another one, whose features may have other types or levels."""
    given = np.vstack([start, points])
    own = given.copy()
    for j, (f, other) in enumerate(zip(im.features, coded.features)):
        if f.levels != other.levels:
            cells = given[:, j].tolist() if other.levels is None else [v if np.isnan(v) else other.levels[int(v)] for v in given[:, j]]
            places = None if f.levels is None else {level_key(level): float(k) for k, level in enumerate(f.levels)}
            own[:, j] = pd.to_numeric(pd.Series(cells), errors="coerce") if places is None else [places.get(level_key(cell), np.nan) for cell in cells]
    known = ~(np.isnan(own) & ~np.isnan(given))[1:].any(axis=1)  # else it has a level that the model does not have
    return known & allowed(im, own[0], own[1:])


def _check_supersets(about: Asked, im: InteractionModel, chosen: tuple[Relaxation, ...]) -> None:
    """Check on draws from the original set that a relaxation which promises to allow all of it does."""
    source, design = about.source, about.design
    custom = [(r, r.model(im)) for r in chosen if r.kind == "custom" and r.superset]
    some = np.flatnonzero(about.chosen & ~source.invalid)
    if not custom or not len(some) or im.effects:
        return
    some = some[source.take(some).status != STATUSES.index("empty")][:20]
    probed = design.but(n=200, purpose=f"{design.purpose}, superset", proposal=None, sequential=False)
    for chunk in source.draws(some, 200, probed):
        points = source.values_of(chunk)
        for k, i in enumerate(chunk.people.tolist()):
            own = points[chunk.starts[k] : chunk.starts[k] + chunk.counts[k]]
            for r, relaxed in custom:
                good = _allowed_by(relaxed, im, source.values[i], own)
                if not good.all():
                    raise DesignError(
                        "the relaxed set is not a superset of the original one, so this is no relaxation",
                        where=r.name,
                        got=f"{int((~good).sum())} of {len(good)} draws from the original are not allowed (row {source.labels[i]})",
                        remedy="remove or loosen a constraint and add none; or declare Relaxation(..., superset=False)",
                    )


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
        "way_before": before[:, 1] > 0, "newly_reachable": np.zeros(len(people), bool), "seen_only_after": enough & (after[:, 1] > 0) & (before[:, 1] == 0),
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
