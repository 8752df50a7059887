"""Ablation: which constraint is to blame? Each is relaxed in turn, and responsiveness compared before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from budge.audit.design import Design, Execution, Progress, designed, given, population_name
from budge.audit.run import check_answered, drifted
from budge.audit.sources import TableSource, make_source
from budge.errors import DesignError, InputError
from budge.interaction import InteractionModel
from budge.stats.counts import STATUSES
from budge.stress.ablation_result import Ablation, compared, rank
from budge.stress.common import Asked, allowed, without_journal
from budge.stress.paired import probe
from budge.stress.relaxations import Relaxation, resolve
from budge.stress.tally import Tally, tally

__all__ = ["ablate"]


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
    progress: Progress | None = None,
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
        Called with (people done, people in all).

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
    progress = progress or carried.progress
    about = Asked.of(model, X, im, question, check=bool(carried.check))
    question, source = about.design, about.source
    chosen, left_out = resolve(im, relaxations, source.frame)

    def again(changes: Mapping[str, Any]) -> Ablation:
        return ablate(model, X, im, relaxations, method=method, design=question.but(**changes), execution=Execution(check=False))

    _check_supersets(about, im, chosen)
    if method == "paired":
        found = probe(about, im, chosen)
    else:
        found = compared(about, _tallies(about, im, chosen, progress), chosen)
    info = {
        "name": im.name, "target": question.target.describe(), "threshold": question.threshold, "alpha": question.alpha, "n": question.draws,
        "seed": question.seed, "purpose": question.purpose, "method": method, "measure": im.measure, "people": int(about.chosen.sum()),
        "asked": found.asked, "spec_digest": im.digest, "population": population_name(question.population), "data_digest": source.digest(),
        "model_digest": about.predictor.digest(),
    }  # fmt: skip
    made = Ablation(pd.concat(found.tables), rank(found.ranked), info, (*left_out, *found.refused), again)
    check_answered(found.counts, question, (), made)
    notes = drifted({"model": about.predictor}, source.starts(), {"model": about.before}, carried.check, made)
    return replace(made, info={**info, "notes": [str(note) for note in notes]}) if notes else made


def _tallies(about: Asked, im: InteractionModel, chosen: tuple[Relaxation, ...], progress: Progress | None) -> Tally:
    """Count all sets: relaxations that keep the features' types share their points; the others are asked about by themselves."""
    models = [r.model(im) for r in chosen]
    kinds = [(f.type, f.levels) for f in im.features]
    alike = [k for k, m in enumerate(models) if [(f.type, f.levels) for f in m.features] == kinds]
    relaxed = f"{about.design.purpose}, relaxed"
    purposes = [about.design.purpose, *(relaxed for _ in alike)]
    shared = tally(about, [im, *(models[k] for k in alike)], purposes=purposes, progress=progress)
    if len(alike) == len(models):
        return shared
    counts = {0: (shared.counts[0], shared.size[0])} | {k + 1: (shared.counts[s], shared.size[s]) for s, k in enumerate(alike, start=1)}
    queries = shared.asked
    for k in set(range(len(models))) - set(alike):
        other = make_source(models[k], about.source.frame, "keep")
        assert isinstance(other, TableSource)
        lone = tally(replace(about, source=other, chosen=about.chosen & ~about.source.invalid), [models[k]], purposes=[relaxed])
        counts[k + 1] = (lone.counts[0], lone.size[0])
        queries += lone.asked
    order = [counts[s] for s in range(len(models) + 1)]
    return Tally(tuple(c for c, _ in order), np.stack([size for _, size in order]), queries)


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
                good = allowed(relaxed, source.values[i], own)
                if not good.all():
                    raise DesignError(
                        "the relaxed set is not a superset of the original one, so this is no relaxation",
                        where=r.name,
                        got=f"{int((~good).sum())} of {len(good)} draws from the original are not allowed (row {source.labels[i]})",
                        remedy="remove or loosen a constraint and add none; or declare Relaxation(..., superset=False)",
                    )
