"""Ablation: which constraint is to blame? Each is relaxed in turn, and responsiveness compared before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from budge.audit.ask import ask_starts
from budge.audit.design import Design, Execution, Progress, designed, executed, given, population_name
from budge.audit.run import check_answered, chosen_people
from budge.audit.sources import BoolArray, TableSource, make_source
from budge.errors import DesignError, InputError
from budge.interaction import InteractionModel
from budge.models import Predictor, as_predictor
from budge.stats.counts import STATUSES
from budge.stress.ablation_result import Ablation, compared, unchanged
from budge.stress.paired import probe
from budge.stress.relaxations import Relaxation, resolve
from budge.stress.tally import Tally, tally

__all__ = ["ablate", "asked_about", "without_journal"]


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
    source, predictor, question, outputs, asked = asked_about(model, X, im, question, check=bool(carried.check))
    chosen, left_out = resolve(im, relaxations, source.frame)

    def again(changes: Mapping[str, Any]) -> Ablation:
        return ablate(model, X, im, relaxations, method=method, design=question.but(**changes), execution=Execution(check=False))

    _check_supersets(im, chosen, source, question, asked)
    if method == "paired":
        made, seen = probe(predictor, source, im, chosen, left_out, question, outputs, asked, again)
    else:
        found = _tallies(predictor, im, chosen, source, question, outputs, asked, progress)
        seen = found.counts
        made = compared(found, chosen, left_out, source, question, im, asked, again)
    whom = {"population": population_name(question.population), "data_digest": source.digest(), "model_digest": predictor.digest()}
    made.info.update(whom)
    check_answered(seen, question, (), made)
    checked: Ablation = unchanged(made, predictor, source.starts(), outputs, carried.check)
    return checked


def without_journal(execution: Execution | None) -> Execution:
    """Return the execution of a stress test, which keeps no journal."""
    found = executed(execution, {})
    if found.journal is not None:
        raise DesignError("a stress test keeps no journal", where="journal", got=found.journal, remedy="leave it out; audits keep one")
    return found


def asked_about(
    model: Any, X: Any, im: InteractionModel, design: Design, *, check: bool
) -> tuple[TableSource, Predictor, Design, Any, BoolArray]:
    """Return the people, the model, the design with its target read, the model's answers about the people, and who is asked about."""
    if design.sequential or design.proposal is not None:
        got = "sequential" if design.sequential else "proposal"
        raise DesignError("sets are compared by a fixed number of draws from each", where=got, got=getattr(design, got), remedy=f"leave {got} out")
    source = make_source(im, X, design.on_invalid)
    assert isinstance(source, TableSource)
    predictor = as_predictor(model)
    design = design.aimed(predictor.classes if predictor.output == "label" else None)
    before, _ = ask_starts({"model": predictor}, source.starts(), design.target, seed=design.seed, table=True, check=check)
    return source, predictor, design, before["model"], chosen_people(design, source, before["model"])


def _tallies(
    predictor: Predictor, im: InteractionModel, chosen: tuple[Relaxation, ...], source: TableSource, design: Design, outputs: Any, asked: BoolArray,
    progress: Progress | None,
) -> Tally:  # fmt: skip
    """Count all sets: relaxations that keep the features' types share their points; the others are asked about by themselves."""
    models = [r.model(im) for r in chosen]
    kinds = [(f.type, f.levels) for f in im.features]
    alike = [k for k, m in enumerate(models) if [(f.type, f.levels) for f in m.features] == kinds]
    relaxed = f"{design.purpose}, relaxed"
    purposes = [design.purpose, *(relaxed for _ in alike)]
    shared = tally(
        predictor, [im, *(models[k] for k in alike)], source, design, outputs, asked, purposes=purposes, progress=progress,
    )  # fmt: skip
    if len(alike) == len(models):
        return shared
    counts = {0: (shared.counts[0], shared.size[0])} | {k + 1: (shared.counts[s], shared.size[s]) for s, k in enumerate(alike, start=1)}
    queries = shared.asked
    for k in set(range(len(models))) - set(alike):
        other = make_source(models[k], source.frame, "keep")
        assert isinstance(other, TableSource)
        lone = tally(predictor, [models[k]], other, design, outputs, asked & ~source.invalid, purposes=[relaxed])
        counts[k + 1] = (lone.counts[0], lone.size[0])
        queries += lone.asked
    order = [counts[s] for s in range(len(models) + 1)]
    return Tally(tuple(c for c, _ in order), np.stack([size for _, size in order]), queries)


def _check_supersets(im: InteractionModel, chosen: tuple[Relaxation, ...], source: TableSource, design: Design, asked: BoolArray) -> None:
    """Check on draws from the original set that a relaxation which promises to allow all of it does."""
    custom = [(r, r.model(im)) for r in chosen if r.kind == "custom" and r.superset]
    some = np.flatnonzero(asked & ~source.invalid)
    if not custom or not len(some) or im.effects:
        return
    some = some[source.take(some).status != STATUSES.index("empty")][:20]
    probed = design.but(n=200, purpose=f"{design.purpose}, superset", proposal=None, sequential=False)
    place = {f.name: j for j, f in enumerate(source.model.features)}
    for chunk in source.draws(some, 200, probed):
        points = source.values_of(chunk)
        for k, i in enumerate(chunk.people.tolist()):
            row = source.values[i]
            moved = points[chunk.starts[k] : chunk.starts[k] + chunk.counts[k]] - row
            for r, relaxed in custom:
                good = np.ones(len(moved), dtype=bool)
                for part in relaxed.parts:
                    x = {name: float(row[place[name]]) for name in part.names}
                    good &= part.feasible(x, {name: np.nan_to_num(moved[:, place[name]]) for name in part.names})
                if not good.all():
                    raise DesignError(
                        "the relaxed set is not a superset of the original one, so this is no relaxation",
                        where=r.name,
                        got=f"{int((~good).sum())} of {len(good)} draws from the original are not allowed (row {source.labels[i]})",
                        remedy="remove or loosen a constraint and add none; or declare Relaxation(..., superset=False)",
                    )
