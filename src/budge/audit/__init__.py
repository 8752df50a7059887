"""The loop over people: blocks → points → answers → counts → claims → table; engines, journal and resume.

This file holds the main function, `audit`, and nothing that takes long to import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

if TYPE_CHECKING:
    from budge.audit.design import Design, Execution
    from budge.audit.result import Audit
    from budge.wording import Wording

__all__ = ["More", "audit"]


class More(TypedDict, total=False):
    """Further arguments of `audit`: shorthands for fields of its `Design` and its `Execution`."""

    harm: Literal["below", "above"] | None
    adjust: Literal["bh", "holm", "bonferroni", "none"]
    groups: str | Sequence[str] | Mapping[str, Mapping[Any, str] | None]
    prove: bool
    n_jobs: int
    wording: Wording | Mapping[str, Any]


def audit(
    model: Any,
    X: Any,
    im: Any,
    *,
    target: Any = None,
    threshold: float | None = None,
    alpha: float | None = None,
    claim: Literal["below", "above"] | None = None,
    n: int | None = None,
    seed: int | None = None,
    population: Any = None,
    method: Literal["auto", "exact", "sample"] | None = None,
    sequential: bool | None = None,
    proposal: Mapping[str, Any] | None = None,
    journal: str | Path | None = None,
    progress: Callable[[int, int], None] | bool | None = None,
    design: Design | None = None,
    execution: Execution | None = None,
    **more: Unpack[More],
) -> Audit:
    """Audit how predictions respond: for every person, how often an interaction attains the target.

    Parameters
    ----------
    model
        Anything that predicts (see `budge.models.as_predictor`), or a mapping of names to such: then each person's points
        are drawn once and every model is asked.
    X
        The people: a table; a stream of people (a path or pattern of Parquet files, a CSV file, a `pyarrow.dataset`, a Dask DataFrame, an iterator of
        tables, see `budge.people.People`); or inputs of any kind where `im` only draws.
    im
        An `InteractionModel`, or anything with ``draw(x, n, rng)``.
    target
        A label, labels, or a target of `budge.targets`; `budge.audit_targets` takes several.
    threshold, alpha, claim
        The claim "rho is below (above) the threshold" (0.1): false with probability at most alpha (0.05) per person. ``threshold=0`` asks for
        people who have no way at all.
    n
        Draws per person whose points are not listed; planned for the claim unless given.
    seed
        The seed of all draws.
    population
        ``outside`` (the default: those who do not have the target yet), ``all``, a condition on the columns such as ``"age < 30"``, or a mask.
    method
        ``auto``: list points where there are few, draw otherwise; ``exact``: list or leave; ``sample``: draw.
    sequential
        Stop for each person as soon as the claim is shown or given up.
    proposal
        Distributions to draw from instead of uniformly; results are weighted.
    journal
        A folder in which finished blocks are kept as the work goes on; the same call resumes.
    progress
        Called with (people done, people in all). Without it a line is shown on a terminal and in a notebook; False shows none.
    design, execution
        Everything else that an audit can be given: see `budge.Design` and `budge.Execution`. An argument of this function takes the place
        of the field of the same name.
    more
        `harm` (which verdict is harm), `adjust` (how adjusted p-values allow for the number of people), `groups` (columns by which shares are
        reported), `prove` (settle by the model's structure who has no way at all), `n_jobs` (worker processes) and `wording` (what people, target, groups and
        features are called: a `budge.Wording`).

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
    from budge.audit.design import question_of
    from budge.audit.run import run_audit, warn_of

    options: dict[str, Any] = {
        "target": target, "threshold": threshold, "alpha": alpha, "claim": claim, "n": n, "seed": seed, "population": population, "method": method,
        "sequential": sequential, "proposal": proposal, "journal": journal, "progress": progress, **more,
    }  # fmt: skip
    result = run_audit(model, X, im, *question_of(design, execution, options))
    warn_of(result.notes)
    return result
