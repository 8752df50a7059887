"""Model selection under gaming: accuracy against certified gaming, chosen on some draws and certified on others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from budge import stats
from budge.audit import audit
from budge.audit.design import EXACT_LIMIT
from budge.audit.result import Audit
from budge.errors import DesignError, InputError, nearest
from budge.interaction import InteractionModel
from budge.stats._checks import fraction, number, percent, plain
from budge.stress.ablation_result import heads, records
from budge.stress.evidence import JUDGED, evidence

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["Selection", "best", "gaming", "pareto", "select"]


@dataclass(frozen=True)
class Selection:
    """The models, what each costs in gaming, and the one that was chosen and certified.

    `table` has one row a model: `accuracy`; `people` (those who could gain by gaming); `gaming`, the share of them with responsiveness
    at or above the threshold as estimated; `gaming_high`, the share that can be excluded at alpha, from the draws for choosing;
    `front` (no model is better in both); `allowed` (`gaming_high` within the limit). Further interaction models add a column each
    with the gaming that they would report. `certified` is the bound for the chosen model from draws that had no part in the choice.
    """

    table: pd.DataFrame
    chosen: str | None
    certified: float | None
    reported: Mapping[str, str | None]
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether a model was chosen and its gaming is certified to be within the limit."""
        return self.chosen is not None and self.certified is not None and self.certified <= self.info["limit"]

    def __str__(self) -> str:
        info = self.info
        limit, tau = percent(info["limit"]), info["threshold"]
        what = f"responsiveness at or above {tau:g}"
        row: Any
        lines = [
            f"{len(self.table)} models; target: the output {info['target']}; {int(self.table['front'].sum())} on the Pareto front."
        ]
        if self.chosen is None:
            lines.append(f"No model keeps the share of people with {what} within {limit}.")
        else:
            row = self.table.set_index("model").loc[self.chosen]
            best = self.table["accuracy"].max()
            end = f"at most {percent(round(self.certified or 0.0, 4))} of {heads(int(row['people']))} with {what} at {percent(1 - info['alpha'])}"
            lines.append(
                f"Chosen: {self.chosen}, accuracy {row['accuracy']:.4g} ({row['accuracy'] - best:+.4g} against the most accurate)."
            )
            word = "Certified on fresh draws" if self.ok else f"Not certified within {limit} on fresh draws"
            lines.append(f"{word}: {end}.")
        for name, pick in self.reported.items():
            if pick is None:
                lines.append(f"Under {name!r} no model would be chosen.")
                continue
            row = self.table.set_index("model").loc[pick]
            lines.append(
                f"Under {name!r} the choice would be {pick}, reported gaming {percent(round(row[f'gaming ({name})'], 4))}; "
                f"it is {percent(round(row['gaming'], 4))}."
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The record."""
        return {
            "info": plain(dict(self.info)), "table": records(self.table), "chosen": self.chosen, "certified": self.certified, "ok": self.ok,
            "reported": dict(self.reported),
        }  # fmt: skip

    def plot(self) -> Figure:
        """A figure: accuracy against certified gaming."""
        from budge.report.figures import pareto

        return pareto(self)

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.table, figure=self.plot)


def select(
    models: Mapping[str, Any],
    X: Any,
    im: InteractionModel,
    *,
    accuracy: Mapping[str, float],
    target: Any,
    limit: float = 0.1,
    threshold: float = 0.05,
    alpha: float = 0.05,
    n: int | None = None,
    margin: float | None = None,
    seed: int = 0,
    population: Any = "outside",
    compare: Mapping[str, InteractionModel] | None = None,
    choose: str = "choose",
    certify: str = "certify",
    exact_limit: int = EXACT_LIMIT,
    on_invalid: Literal["error", "skip", "keep"] = "error",
    check: bool = True,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Selection:
    """The most accurate model whose gaming is certified to be within a limit.

    Parameters
    ----------
    models, accuracy
        Models by name, and the accuracy of each on held-out data (larger is better).
    target
        What a person would game for.
    limit, threshold, alpha
        At most a share `limit` of people may have responsiveness at or above `threshold`, with error at most alpha.
    population
        ``outside``: those whom the model does not give the target already.
    compare
        Other interaction models by name, such as ``{"convex": convex(im)}``: what gaming they would report, and which model they
        would have us choose.
    choose, certify
        The streams of draws for choosing and for certifying. They must differ: a model chosen for its luck on a sample looks better on
        that sample than it is. All models are asked about the same draws.
    progress
        Called with (steps done, steps in all).

    Returns
    -------
    Selection

    Examples
    --------
    >>> import pandas as pd, budge
    >>> im = budge.InteractionModel([budge.Feature("posts", "integer", bounds=(0, 9)), budge.Feature("age", "integer", actionable=False)])
    >>> X = pd.DataFrame({"posts": [0, 1, 2], "age": [1, 2, 3]})
    >>> models = {"all": lambda t: (t["posts"] + t["age"] > 6).astype(int), "safe": lambda t: (t["age"] > 3).astype(int)}
    >>> found = select(models, X, im, accuracy={"all": 0.9, "safe": 0.7}, target=1)
    >>> found.chosen, found.ok
    ('safe', True)
    """
    if choose == certify:
        raise DesignError(
            "a model chosen and certified on the same draws is selection: its luck is counted as merit",
            where="certify", got=certify, remedy="give the two streams different names",
        )  # fmt: skip
    if not isinstance(models, Mapping) or not models:
        raise InputError(
            "models are given by name", where="models", got=models if isinstance(models, Mapping) else type(models).__name__
        )
    bound = fraction(limit, "limit", zero=True)
    missing = [name for name in models if name not in accuracy]
    if missing:
        raise InputError(
            "its accuracy is not given", where=f"accuracy[{missing[0]!r}]", remedy=nearest(missing[0], map(str, accuracy))
        )
    merit = {name: number(accuracy[name], f"accuracy[{name!r}]") for name in models}
    options: dict[str, Any] = {
        "target": target, "threshold": threshold, "alpha": alpha, "claim": "below", "n": n, "margin": margin, "seed": seed,
        "population": population, "exact_limit": exact_limit, "adjust": "none", "on_invalid": on_invalid, "n_jobs": n_jobs,
    }  # fmt: skip
    stages = 2 + len(compare or ())

    def stage(k: int) -> Callable[[int, int], None] | None:
        """Audit k of several, as steps of the whole: they may be of different people."""
        return None if progress is None else lambda done, total: progress(1000 * k + 1000 * done // max(total, 1), 1000 * stages)

    first = audit(dict(models), X, im, purpose=choose, check=check, progress=stage(0), **options)
    table = pd.DataFrame({"model": list(models), "accuracy": [merit[m] for m in models]})
    shares = [gaming(first, m, alpha) for m in models]
    table["people"], table["gaming"], table["gaming_high"] = zip(*shares)
    table["front"] = pareto(table["accuracy"].to_numpy(), table["gaming_high"].to_numpy())
    table["allowed"] = table["gaming_high"] <= bound
    reported: dict[str, str | None] = {}
    for k, (name, other) in enumerate((compare or {}).items(), 1):
        seen = audit(dict(models), X, other, purpose=choose, check=False, progress=stage(k), **options)
        table[f"gaming ({name})"] = [gaming(seen, m, alpha)[1] for m in models]
        reported[name] = best(table, table[f"gaming ({name})"] <= bound)
    chosen = best(table, table["allowed"])
    certified = None
    if chosen is not None:
        again = audit({chosen: models[chosen]}, X, im, purpose=certify, check=False, progress=stage(stages - 1), **options)
        certified = gaming(again, chosen, alpha)[2]
    info = {
        "target": first.info["target"], "limit": bound, "threshold": first.info["design"]["threshold"], "alpha": first.info["design"]["alpha"],
        "n": first.info["design"]["n"], "seed": seed, "choose": choose, "certify": certify, "spec_digest": im.digest,
    }  # fmt: skip
    return Selection(table, chosen, certified, reported, info)


def gaming(found: Audit, model: str, alpha: float) -> tuple[int, float, float]:
    """People asked about; the share of them estimated at or above the threshold; the share that can be excluded at alpha.

    A person of whom nothing is known counts as gaming.
    """
    rows = found.of_model(model)
    design = found.info["design"]
    asked = rows[~rows["verdict"].isin(["invalid_start"])]
    judged = asked[asked["verdict"].isin(JUDGED)]
    lost = int((asked["verdict"] != "empty").sum()) - len(judged)  # empty: nothing can be done, so nothing can be gamed
    people = len(asked)
    if not people:
        return 0, 0.0, 0.0
    if not len(judged):
        return people, lost / people, lost / people
    p_claim, p_other = evidence(judged, design)
    # A one-sided bound is wanted: the two-sided one at 2 alpha has just that on its side.
    known = stats.share_from_p_values(
        p_claim,
        p_other,
        claim="below",
        alpha=min(2 * alpha, 0.999),
        level=alpha,
        over="these",
        independent=found.info.get("twins", 0) == 0,
    )
    exact = (judged["method"] == "exact").all()
    above = float((judged["rho"] >= design["threshold"]).sum())
    high = above if exact and not judged["unresolved"].any() else (1.0 - known.low) * len(judged)
    return people, (above + lost) / people, (high + lost) / people


def pareto(accuracy: Any, cost: Any) -> Any:
    """Which models no other beats: at least as accurate at less cost, or more accurate at the same.

    Examples
    --------
    >>> pareto([0.9, 0.8, 0.7], [0.5, 0.1, 0.2]).tolist()
    [True, True, False]
    """
    a, c = np.asarray(accuracy, dtype=float), np.asarray(cost, dtype=float)
    better = (a[None, :] >= a[:, None]) & (c[None, :] <= c[:, None]) & ((a[None, :] > a[:, None]) | (c[None, :] < c[:, None]))
    return ~better.any(axis=1)


def best(table: pd.DataFrame, allowed: Any) -> str | None:
    """The most accurate of those allowed, with the least gaming among equals."""
    some = table[np.asarray(allowed, dtype=bool)]
    if not len(some):
        return None
    return str(some.sort_values(["accuracy", "gaming_high"], ascending=[False, True], kind="stable")["model"].iloc[0])
