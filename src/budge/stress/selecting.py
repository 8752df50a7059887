"""Model selection under gaming: accuracy against certified gaming, chosen on some draws and certified on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from budge.audit.design import Design, Execution, Progress, designed, given
from budge.audit.drift import confirmed_audits
from budge.audit.result import Audit
from budge.audit.run import run_audit
from budge.audit.summary import heads, records
from budge.errors import DesignError, InputError, ModelError, Problem, in_lines, nearest, one_line
from budge.interaction import InteractionModel
from budge.models.contract import differ
from budge.progress import noting, share_of
from budge.stats import true_claims
from budge.stats._checks import fraction, number, percent, plain
from budge.stress.common import noted, notes_of, without_journal

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["Selection", "best", "gaming", "pareto", "select"]


@dataclass(frozen=True)
class Selection:
    """The models, what each costs in gaming, and the one that was chosen and certified.

    `table` has one row per model: `accuracy`; `people` (those who could gain by gaming); `gaming`, the share of them with responsiveness
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
        models = "1 model" if len(self.table) == 1 else f"{len(self.table):,} models"
        lines = [f"{models}; target: the output {info['target']}; {int(self.table['front'].sum())} on the Pareto front."]
        if self.chosen is None:
            more = "; more draws may show it for one" if (self.table["gaming"] <= info["limit"]).any() else ""
            lines.append(f"No model is shown to keep the share of people with {what} within {limit}{more}.")
        else:
            row = self.table.set_index("model").loc[self.chosen]
            best = self.table["accuracy"].max()
            end = f"at most {percent(round(self.certified or 0.0, 4))} of {heads(int(row['people']))} with {what} at {percent(1 - info['alpha'])}"
            lines.append(
                f"Chosen: {self.chosen}, accuracy {row['accuracy']:.4g} ({row['accuracy'] - best:+.4g} against the most accurate)."
            )
            word = ("Certified" if self.ok else f"Not certified within {limit}") + (" on fresh draws" if info["drawn"] else "")
            if info["approximate"]:
                word, end = "On fresh draws, some of them of a chain, so that no error rate is guaranteed", end.replace("at most", "about", 1)
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
        return in_lines([*lines, *notes_of(info)])

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

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.table, figure=self.plot)


@noting("people")
def select(
    models: Mapping[str, Any],
    X: Any,
    im: InteractionModel,
    *,
    accuracy: Mapping[str, float],
    target: Any = None,
    limit: float = 0.1,
    threshold: float | None = None,
    alpha: float | None = None,
    n: int | None = None,
    seed: int | None = None,
    population: Any = None,
    compare: Mapping[str, InteractionModel] | None = None,
    choose: str = "choose",
    certify: str = "certify",
    progress: Progress | bool | None = None,
    design: Design | None = None,
    execution: Execution | None = None,
) -> Selection:
    """Choose the most accurate model whose gaming is certified to be within a limit.

    Parameters
    ----------
    models, accuracy
        Models by name, and the accuracy of each on held-out data (larger is better).
    target
        What a person would game for.
    limit, threshold, alpha
        At most a share `limit` of people may have responsiveness at or above `threshold` (0.05; the design's where one is given), with error at
        most alpha.
    n, seed, population, design, execution
        As in `budge.audit`.
    compare
        Other interaction models by name, such as ``{"convex": convex(im)}``: what gaming they would report, and which model they
        would have us choose.
    choose, certify
        The streams of draws for choosing and for certifying. They must differ: a model chosen for its luck on a sample looks better on
        that sample than it is. All models are asked about the same draws.
    progress
        Called with (people done, people in all), for each audit of several. As in `budge.audit` a line is shown without it.

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
    models, accuracy = ({str(name): value for name, value in named.items()} for named in (models, accuracy))
    bound = fraction(limit, "limit", zero=True)
    missing = [name for name in models if name not in accuracy]
    if missing:
        raise InputError(
            "its accuracy is not given", where=f"accuracy[{missing[0]!r}]", remedy=nearest(missing[0], map(str, accuracy))
        )
    merit = {name: number(accuracy[name], f"accuracy[{name!r}]") for name in models}
    wishes = given(target=target, threshold=threshold, alpha=alpha, n=n, seed=seed, population=population)
    question = designed(design, ({"threshold": 0.05} if design is None else {}) | wishes)
    if question.sequential:
        raise DesignError("choosing a model needs a fixed number of draws", where="sequential", got=True, remedy="leave sequential out")
    question = question.but(claim="below", adjust="none", sequential=False)
    carried = without_journal(execution)
    stages, made = 2 + len(compare or ()), list[Audit]()

    def asked(some: Mapping[str, Any], other: InteractionModel, purpose: str, k: int) -> Audit:
        """Audit k of several, as steps of the whole: they may be of different people."""
        assert callable(progress)
        made.append(run_audit(dict(some), X, other, question.but(purpose=purpose), replace(carried, progress=share_of(progress, k, 1, stages))))
        return made[-1]

    first = asked(models, im, choose, 0)
    table = pd.DataFrame({"model": list(models), "accuracy": [merit[m] for m in models]})
    shares = [gaming(first, m) for m in models]
    table["people"], table["gaming"], table["gaming_high"] = zip(*shares)
    table["front"] = pareto(table["accuracy"].to_numpy(), table["gaming_high"].to_numpy())
    table["allowed"] = table["gaming_high"] <= bound
    reported: dict[str, str | None] = {}
    for k, (name, other) in enumerate((compare or {}).items(), 1):
        seen = asked(models, other, choose, k)
        table[f"gaming ({name})"] = [gaming(seen, m)[1] for m in models]
        reported[name] = best(table, table[f"gaming ({name})"] <= bound)
    chosen = best(table, table["allowed"])
    certified, rough, drawn, drift = None, False, False, list[Problem]()
    if chosen is not None:
        again = asked({chosen: models[chosen]}, im, certify, stages - 1)
        one, two = first.rows[chosen], again.rows[chosen]
        other = again.info["answers_digests"][chosen] != first.info["answers_digests"][chosen] or one.place.tolist() != two.place.tolist()
        if carried.check is True and (other or differ(one.prediction, two.prediction).any()):
            raise ModelError("the model answers otherwise than when it was chosen", where=chosen, remedy="fix its seed and its version")
        if carried.check == "warn" and other:
            drift.append(Problem(chosen, "the model answers otherwise than when it was chosen", severity="warning"))
        certified, rough = gaming(again, chosen)[2], bool(again.rows[chosen].counts.approximate.any())
        drawn = bool(again.rows[chosen].counts.is_law("sample", "weighted").any())
    info = {
        "target": first.info["target"], "limit": bound, "threshold": question.threshold, "alpha": question.alpha, "n": question.draws,
        "seed": question.seed, "choose": choose, "certify": certify, "spec_digest": im.digest, "approximate": rough, "drawn": drawn,
    }  # fmt: skip
    found = Selection(table, chosen, certified, reported, info)
    notes = [replace(note, remedy="") for audit in made for note in audit.notes if note.where != "population"]
    return replace(found, info=noted(info, [*notes, *drift, *confirmed_audits(made, carried.check, found)]))


def gaming(found: Audit, model: str) -> tuple[int, float, float]:
    """Return the people asked about; the share of them estimated at or above the threshold; the share that cannot be excluded at alpha.

    A person of whom nothing is known counts as gaming; one who can do nothing at all does not.
    """
    rows, claims, design = found.rows[model], found.claims(model), found.design
    status = rows.counts.words("status")
    asked = status != "invalid_start"
    people = int(asked.sum())
    if not people:  # nothing is shown about nobody
        return 0, 0.0, 1.0
    judged = ~rows.counts.is_law("none")
    lost = int((asked & ~judged & (status != "empty")).sum())
    worst = np.where(np.isnan(claims.rho), claims.high, claims.rho)  # of a person with missing answers, or between ends that are proved
    above = int((judged & ~(worst < design.threshold)).sum())
    least = true_claims(claims.p_below[judged], design.alpha, units=rows.units[judged]) if judged.any() else 0.0
    return people, (above + lost) / people, (int(judged.sum()) - least + lost) / people


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
