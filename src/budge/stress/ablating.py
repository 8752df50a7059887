"""Ablation: which constraint is to blame? Each is relaxed in turn, and responsiveness compared before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from budge.audit.design import EXACT_LIMIT, Design, make_design
from budge.audit.run import _before, _population, data_digest, make_source, population_name
from budge.audit.sources import TableSource
from budge.errors import DesignError, InputError
from budge.interaction import InteractionModel
from budge.models import as_predictor
from budge.stress.ablation_result import Ablation, make_ablation
from budge.stress.paired import probe
from budge.stress.relaxations import Relaxation, resolve
from budge.stress.tally import Tally, tally

__all__ = ["ablate"]

Progress = Callable[[int, int], None]


def ablate(
    model: Any,
    X: Any,
    im: InteractionModel,
    relaxations: Any = None,
    *,
    target: Any,
    threshold: float = 0.1,
    alpha: float = 0.05,
    n: int | None = None,
    width: float | None = None,
    margin: float | None = None,
    seed: int = 0,
    population: Any = "all",
    method: Literal["both", "paired"] = "both",
    exact_limit: int = EXACT_LIMIT,
    on_invalid: Literal["error", "skip", "keep"] = "error",
    check: bool = True,
    purpose: str = "draw",
    progress: Progress | None = None,
) -> Ablation:
    """Relax each constraint in turn and see how responsiveness changes.

    Parameters
    ----------
    model, X, im, target
        As in `budge.audit`.
    relaxations
        All of `default_relaxations` unless given: names among these, `Relaxation` values, or a mapping of names to relaxed
        models or `Relaxation` values.
    threshold, alpha
        Intervals hold with probability 1 - alpha each; the threshold counts people below it before and after.
    n, width, margin, seed, purpose
        The draws for those sets that are not listed; the relaxed sets are drawn independently of the original ones.
    population
        ``all``, ``outside``, a query or a mask.
    method
        ``both``: both sets are listed or drawn. ``paired``: the paper's probe (Alg. 2): the relaxed set is drawn, and what the
        original would have allowed is judged on those very draws; where too few are, it says so and estimates nothing.
    exact_limit
        Sets of at most so many points are listed; no point of listed sets is asked twice.

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
    [['lift steps of income', 0.3333333333333333, 2], ['free home', 0.0, 0]]
    """
    if method not in ("both", "paired"):
        raise DesignError("must be both or paired", where="method", got=method)
    if not isinstance(im, InteractionModel):
        raise InputError("an interaction model is needed, for something has to be relaxed", where="im", got=type(im).__name__)
    source = make_source(im, X, on_invalid)
    assert isinstance(source, TableSource)
    chosen, left_out = resolve(im, relaxations, source.frame)
    predictor = as_predictor(model)
    design = make_design(
        target, classes=predictor.classes if predictor.output == "label" else None, threshold=threshold, alpha=alpha, n=n, width=width,
        margin=margin, seed=seed, purpose=purpose, exact_limit=exact_limit, on_invalid=on_invalid, testing=False,
    )  # fmt: skip
    before, _ = _before({"model": predictor}, design, source, check)
    outputs = before["model"]
    asked = _population(population, source, outputs, design)
    options: dict[str, Any] = {
        "relaxations": relaxations, "target": target, "threshold": threshold, "alpha": alpha, "n": n, "width": width, "margin": margin,
        "seed": seed, "population": population, "method": method, "exact_limit": exact_limit, "on_invalid": on_invalid, "check": False,
        "purpose": purpose,
    }  # fmt: skip

    def again(changes: Mapping[str, Any]) -> Ablation:
        return ablate(model, X, im, **{**options, **changes})

    if method == "paired":
        made = probe(predictor, source, im, chosen, left_out, design, outputs, asked, again)
    else:
        found = _tallies(predictor, im, chosen, source, design, outputs, asked, progress)
        _check_supersets(im, chosen, source, design, asked)
        made = make_ablation(found, chosen, left_out, source, design, im, asked, again)
    whom = {"population": population_name(population), "data_digest": data_digest(source), "model_digest": predictor.digest()}
    return replace(made, info={**made.info, **whom})


def _tallies(
    predictor: Any, im: InteractionModel, chosen: tuple[Relaxation, ...], source: TableSource, design: Design, outputs: Any, asked: Any,
    progress: Progress | None,
) -> Tally:  # fmt: skip
    """Relaxations that keep the features' types share their points; the others are asked about by themselves."""
    models = [r.model(im) for r in chosen]
    kinds = [(f.type, f.levels) for f in im.features]
    alike = [k for k, m in enumerate(models) if [(f.type, f.levels) for f in m.features] == kinds]
    purposes = [design.purpose] + [f"{design.purpose}, relaxed"] * len(models)
    shared = tally(
        predictor, [im, *(models[k] for k in alike)], source, design, outputs, asked, purposes=[purposes[0], *(purposes[1] for _ in alike)],
        progress=progress,
    )  # fmt: skip
    if len(alike) == len(models):
        return shared
    total = Tally.blank(len(models) + 1, len(source))
    queries = shared.asked
    for k, s in [(-1, 0), *zip(alike, range(1, len(alike) + 1))]:
        _copy(shared, s, total, k + 1)
    for k in set(range(len(models))) - set(alike):
        other = make_source(models[k], source.frame, "keep")
        assert isinstance(other, TableSource)
        lone = tally(predictor, [models[k]], other, design, outputs, asked & ~source.invalid, purposes=purposes[1:2])
        _copy(lone, 0, total, k + 1)
        queries += lone.asked
    return Tally(total.status, total.method, total.n, total.hits, total.unresolved, total.rho, total.size, queries)


def _copy(source: Tally, s: int, to: Tally, at: int) -> None:
    for name in ("status", "method", "n", "hits", "unresolved", "rho", "size"):
        getattr(to, name)[at] = getattr(source, name)[s]


def _check_supersets(
    im: InteractionModel, chosen: tuple[Relaxation, ...], source: TableSource, design: Design, asked: Any
) -> None:
    """A relaxation that promises to allow all that was allowed is held to it, on draws from the original set."""
    custom = [(r, r.model(im)) for r in chosen if r.kind == "custom" and r.superset]
    some = [int(i) for i in np.flatnonzero(asked & ~source.invalid) if source.status(int(i)) != "empty"][:20]
    if not custom or not some:
        return
    for chunk in source.draws(some, 200, design.seed, f"{design.purpose}, superset"):
        starts = np.cumsum([0, *chunk.counts])
        for k, i in enumerate(chunk.people):
            row = source.values[i]
            assert chunk.values is not None
            moved = chunk.values[starts[k] : starts[k + 1]] - row
            for r, relaxed in custom:
                good = np.ones(len(moved), dtype=bool)
                for part in relaxed.parts:
                    at = [source.model.features.index(source.model.by_name[name]) for name in part.names]
                    x = dict(zip(part.names, row[at].tolist()))
                    good &= part.feasible(x, {name: np.nan_to_num(moved[:, j]) for name, j in zip(part.names, at)})
                if not good.all() and not im.effects:
                    raise DesignError(
                        "the relaxed set is not a superset of the original one, so this is no relaxation",
                        where=r.name,
                        got=f"{int((~good).sum())} of {len(good)} draws from the original are not allowed (row {source.labels[i]})",
                        remedy="remove or loosen a constraint and add none; or declare Relaxation(..., superset=False)",
                    )
