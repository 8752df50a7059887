"""The loop over people: blocks → points → outputs → counts → table; engines, journal and resume.

This file holds the main job, `audit`, and nothing that takes long to import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["audit"]


def audit(
    model: Any,
    X: Any,
    im: Any,
    *,
    target: Any,
    threshold: float = 0.1,
    alpha: float = 0.05,
    claim: Literal["below", "above"] = "below",
    n: int | None = None,
    width: float | None = None,
    margin: float | None = None,
    power: float = 0.95,
    seed: int = 0,
    population: Any = "all",
    method: Literal["auto", "exact", "sample"] = "auto",
    exact_limit: int = 10_000,
    sequential: bool = False,
    proposal: Mapping[str, Any] | None = None,
    adjust: Literal["bh", "holm", "bonferroni", "none"] = "bh",
    how_much: bool = False,
    harm: Literal["below", "above"] | None = None,
    on_invalid: Literal["error", "skip", "keep"] = "error",
    max_unresolved: float = 0.1,
    check: bool = True,
    n_jobs: int = 1,
    engine: Any = None,
    block_people: int | None = None,
    journal: str | Path | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    purpose: str = "draw",
    testing: bool = True,
) -> Audit:
    """Audit how predictions respond: for every person, how often an interaction attains the target.

    Parameters
    ----------
    model
        Anything that predicts (see `budge.models.as_predictor`), or a mapping of names to such: then each person's points
        are drawn once and every model is asked.
    X
        The people: a table; or inputs of any kind where `im` only draws.
    im
        An `InteractionModel`, or anything with ``draw(x, n, rng)``.
    target
        A label, labels, or a target of `budge.targets`.
    threshold, alpha, claim
        The claim "ρ is below (above) the threshold" is made with error at most alpha for a person.
    n, width, margin, power
        At most one of the first three; the default is the n that finds, with the power, those who are below the threshold by
        half of it.
    population
        ``all``, ``outside`` (only those not yet in the target), a query over the table's columns, or a mask.
    method, exact_limit
        ``auto``: computed exactly where no effect acts and at most `exact_limit` points are reachable, drawn otherwise.
    sequential
        Stop for each person as soon as the verdict is certain (SPRT at the same alpha and power).
    proposal
        Distributions to draw from instead of uniformly; results are weighted.
    adjust
        How `p_adjusted` accounts for the number of people.
    how_much
        Also keep the quantiles of the change of a numeric output.
    harm
        Which verdict is harm; the library does not guess.
    on_invalid
        What to do with people who break the interaction model before they move.
    max_unresolved
        The largest share of unanswered draws that is accepted.
    check
        Ask a few rows again first: is the model random, does it change its input, does it depend on the batch?
    n_jobs, engine, block_people
        Where the work is done; the result is the same to the bit.
    journal, overwrite
        A folder in which finished people are kept as the work goes on; the same call resumes.
    progress
        Called with (people done, people in all).
    purpose
        Names the stream of draws: another purpose, other draws from the same seed.
    testing
        False: no claim is wanted, so that an n too small to reject anything is accepted.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import pandas as pd, budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9)), budge.Feature("age", "integer", actionable=False)])
    >>> X = pd.DataFrame({"income": [1, 2], "age": [20, 70]})
    >>> result = budge.audit(lambda t: (t["income"] > 4) & (t["age"] < 60), X, im, target=True, threshold=0.1)
    >>> result.table[["rho", "verdict"]].values.tolist()
    [[0.5, 'above'], [0.0, 'below']]
    """
    from budge.audit.design import make_design
    from budge.audit.run import make_source, predictors_of, run_audit

    source = make_source(im, X, on_invalid)
    predictors = predictors_of(model, source)
    classes = next((p.classes for p in predictors.values() if p.classes is not None and p.output == "label"), None)
    design = make_design(
        target, classes=classes, threshold=threshold, alpha=alpha, claim=claim, n=n, width=width, margin=margin, power=power, seed=seed,
        purpose=purpose, method=method, exact_limit=exact_limit, adjust=adjust, on_invalid=on_invalid, sequential=sequential,
        proposal=proposal, how_much=how_much, max_unresolved=max_unresolved, testing=testing,
    )  # fmt: skip
    return run_audit(
        source, predictors, design, X, im, population=population, harm=harm, check=check, n_jobs=n_jobs, engine=engine,
        block_people=block_people, journal=journal, overwrite=overwrite, progress=progress,
    )  # fmt: skip
