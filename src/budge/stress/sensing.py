"""Sensitivity: does the verdict survive other interaction models, and where does it break?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd

from budge import stats
from budge.audit.design import Design, Execution, Progress, designed, given
from budge.audit.drift import confirmed_audits
from budge.audit.result import Audit
from budge.audit.run import run_audit, warn
from budge.audit.summary import heads, records
from budge.audit.tally import mean_rho
from budge.errors import DesignError, IncompleteError, InputError, ModelError, in_lines, nearest
from budge.models import as_predictor
from budge.progress import noting, share_of
from budge.stats._checks import percent, plain
from budge.stats.claims import JUDGED
from budge.stress.common import Stressed, distribution, noted, notes_of, without_journal
from budge.stress.families import as_family

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["Sensitivity", "sensitivity"]

NOISE = 1e-12  # of means: what differs by less is equal
SHOWN = ("below", "above", "at the threshold", "none")


@dataclass(frozen=True, repr=False)
class Sensitivity(Stressed):
    """Responsiveness under every member of a family.

    `table` has one row per person and member. `people` has one row per person: `rho_min` and `rho_max` over the members, `flag`
    (some member rejects: smallest adjusted p-value), `certify` (all members reject: largest raw p-value), and with a
    declared harm `consensus` (harm shown under every member) and `possibility` (shown under some). Exact rows count with
    p-value 0 or 1. Claims cover the members evaluated, nothing between them.
    """

    shown: ClassVar[str] = "by_member"

    table: pd.DataFrame
    people: pd.DataFrame
    info: Mapping[str, Any]
    axes: tuple[str, ...] = ()
    settings: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    audits: Mapping[str, Audit] = field(default_factory=dict, repr=False, compare=False)
    rerun: Callable[[Mapping[str, Any]], Sensitivity] | None = field(default=None, repr=False, compare=False)

    @property
    def members(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.info["members"])

    @property
    def by_member(self) -> pd.DataFrame:
        """One row a member: mean ρ and the number of each verdict."""
        seen = set(self.table["verdict"])
        shown = [v for v in JUDGED if v in ("below", "above", "inconclusive") or v in seen]
        rows = []
        for name in self.members:
            part = self.of(name)
            counts = part["verdict"].value_counts()
            rows.append({"member": name, "mean_rho": _mean(part), **{v: int(counts.get(v, 0)) for v in shown}})
        return pd.DataFrame(rows)

    def of(self, member: str) -> pd.DataFrame:
        """The rows of one member."""
        if member not in self.members:
            raise InputError("no such member", got=member, remedy=nearest(member, self.members))
        return self.table[self.table["member"] == member]

    def breaks(self) -> pd.DataFrame:
        """Return where along each axis of the grid a person's verdict changes, the other axes held: between which two values.

        `shown` tells whether both verdicts are shown; from or to `inconclusive` is no change of responsiveness that was shown.
        """
        if not self.axes:
            raise InputError(
                "these members lie on no grid, so there is no order along which a verdict could break",
                remedy="use grid or toggles",
            )
        verdicts = {name: self.of(name)["verdict"] for name in self.members}
        rows: list[dict[str, Any]] = []
        for axis, path in enumerate(self.axes):
            lines: dict[tuple[Any, ...], list[str]] = {}
            for name in self.members:
                setting = self.settings[name]
                lines.setdefault((*setting[:axis], *setting[axis + 1 :]), []).append(name)
            for others, line in lines.items():
                for one, two in pairwise(line):
                    changed = (verdicts[one] != verdicts[two]).to_numpy()
                    for person in verdicts[one].index[changed]:
                        rows.append(
                            {
                                "person": person, "axis": path, "others": ", ".join(map(str, others)), "from": self.settings[one][axis],
                                "to": self.settings[two][axis], "verdict_from": verdicts[one][person], "verdict_to": verdicts[two][person],
                                "shown": verdicts[one][person] in SHOWN and verdicts[two][person] in SHOWN,
                            }
                        )  # fmt: skip
        return pd.DataFrame(rows, columns=["person", "axis", "others", "from", "to", "verdict_from", "verdict_to", "shown"])

    def tornado(self) -> pd.DataFrame:
        """For each axis (or member), how far mean ρ swings: the data of a tornado chart, the widest first."""
        means = {name: _mean(self.of(name)) for name in self.members}  # NaN where answers are missing: other people would be averaged
        first = means[self.members[0]]
        if not self.axes:
            rows = [
                {"what": name, "low": np.min([first, m]), "high": np.max([first, m]), "reference": first}
                for name, m in means.items()
                if name != self.members[0]
            ]
        else:
            rows = []
            for axis, path in enumerate(self.axes):
                base = self.settings[self.members[0]]
                line = [
                    name for name in self.members if all(v == base[k] for k, v in enumerate(self.settings[name]) if k != axis)
                ]
                values = [means[name] for name in line]
                rows.append({"what": path, "low": np.min(values), "high": np.max(values), "reference": first})
        table = pd.DataFrame(rows, columns=["what", "low", "high", "reference"])
        return table.iloc[np.argsort(-(table["high"] - table["low"]).to_numpy(), kind="stable")].reset_index(drop=True)

    def cdf(self, member: str) -> pd.DataFrame:
        """The share of people with responsiveness up to each value, under one member."""
        return distribution(self.of(member)["rho"])

    def __str__(self) -> str:
        info, people = self.info, self.people
        claim, tau, many = info["claim"], info["threshold"], len(self.members)
        models = "1 interaction model" if many == 1 else f"{many:,} interaction models"
        lines = [f"{heads(len(people))} under {models}; target: the output {info['target']}; {info['asked']:,} points asked."]
        drawn = not self.table["method"].isin(("exact", "proved", "none")).all()
        sure = f"each claim at {percent(1 - info['alpha'])}; {info['adjust'].capitalize()} over the members" if drawn else "known, since nothing was drawn"
        lines.append(
            f"Responsiveness is {claim} {tau:g} under every member for {heads(int(people['certify'].sum()))}, and under at least one for "
            f"{int(people['flag'].sum()):,} ({sure})."
        )
        moved = int(people["disagree"].sum())
        lines.append(f"Members are shown to disagree (below under one, above under another) for {heads(moved)}.")
        if people["approximate"].any():
            lines.append(f"For {heads(int(people['approximate'].sum()))} some draws come from a chain: no error rate is guaranteed for them.")
        if info["harm"]:
            lines.append(
                f"Harm ({info['harm']} the threshold): consensus of all members for {heads(int(people['consensus'].sum()))}, "
                f"possible under some for {int(people['possibility'].sum()):,}."
            )
        wide = self.tornado()
        if len(wide) and np.isfinite(wide["high"][0]) and wide["high"][0] - wide["low"][0] > NOISE:
            low, high, first = (float(wide[name][0]) for name in ("low", "high", "reference"))
            ends = f"between {low:.3g} and {high:.3g}" if self.axes else f"from {first:.3g} to {low if first == high else high:.3g}"
            lines.append(f"Mean responsiveness moves most with “{wide['what'][0]}”: {ends}.")
        lines.append("These claims cover the members evaluated, nothing between them.")
        return in_lines([*lines, *notes_of(self.info)])

    def to_dict(self) -> dict[str, Any]:
        """The record: how it was made, one row a person and member, one row a person."""
        return {
            "info": plain(dict(self.info)), "by_member": records(self.by_member), "people": records(self.people.reset_index(names="person")),
            "table": records(self.table.reset_index(names="person")), "breaks": records(self.breaks()) if self.axes else None,
        }  # fmt: skip

    def plot(self, kind: Literal["tornado", "cdf"] = "tornado") -> Figure:
        """A figure: how far mean responsiveness swings, or its distribution under each member."""
        from budge.report.figures import cdf, chosen, tornado

        return chosen(kind, {"tornado": tornado, "cdf": cdf})(self)


@noting("people")
def sensitivity(
    model: Any,
    X: Any,
    family: Any,
    *,
    target: Any = None,
    threshold: float | None = None,
    alpha: float | None = None,
    claim: Literal["below", "above"] | None = None,
    n: int | None = None,
    seed: int | None = None,
    population: Any = None,
    method: Literal["auto", "exact", "sample"] | None = None,
    adjust: Literal["holm", "bonferroni"] = "holm",
    harm: Literal["below", "above"] | None = None,
    progress: Progress | bool | None = None,
    design: Design | None = None,
    execution: Execution | None = None,
) -> Sensitivity:
    """Audit a family of interaction models on the same people, with common random numbers.

    Parameters
    ----------
    model, X, target, threshold, alpha, claim, n, seed, population, method, design, execution
        As in `budge.audit`, for every member.
    family
        A mapping of names to interaction models, `grid` or `toggles`. Claims cover these members and no others.
    adjust
        How *flag* allows for the number of members; *certify* needs no correction.
    harm
        Which verdict is harm; with it, consensus (harm under every member) and possibility (under some) are reported.
    progress
        Called with (people done, people in all), for each member. As in `budge.audit` a line is shown without it.

    Returns
    -------
    Sensitivity

    Examples
    --------
    >>> import pandas as pd, budge
    >>> from budge.stress import grid
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9), max_increase=2)])
    >>> family = grid(im, {"features.income.max_increase": [2, 5]})
    >>> X = pd.DataFrame({"income": [1, 2, 4]})
    >>> result = sensitivity(lambda t: (t["income"] > 4).astype(int), X, family, target=1, harm="below")
    >>> result.people[["rho_min", "rho_max", "flag", "certify"]].round(2).values.tolist()
    [[0.0, 0.29, True, False], [0.0, 0.38, True, False], [0.29, 0.5, False, False]]
    """
    members = as_family(family)
    if adjust not in ("holm", "bonferroni"):
        raise DesignError("must be holm or bonferroni", where="adjust", got=adjust)
    wishes = given(target=target, threshold=threshold, alpha=alpha, claim=claim, n=n, seed=seed, population=population, method=method, harm=harm)
    question = designed(design, wishes).but(adjust="none")
    if question.sequential:
        raise DesignError("members are compared on the same draws, so that none may stop early", where="sequential", got=True, remedy="leave it out")
    carried = without_journal(execution)
    predictor = as_predictor(model)
    audits: dict[str, Audit] = {}

    def again(changes: Mapping[str, Any]) -> Sensitivity:
        return sensitivity(model, X, family, adjust=adjust, design=question.but(**changes), execution=Execution(check=False))

    def gathered(done: Mapping[str, Audit]) -> Sensitivity:
        """Return the result of the members that are done."""
        first = next(iter(done.values()))
        table, people = _tables(done, first.design, adjust)
        info = {
            "target": first.info["target"], "threshold": question.threshold, "alpha": question.alpha, "claim": question.claim,
            "adjust": adjust, "harm": question.harm, "n": question.draws, "seed": question.seed, "purpose": question.purpose, "members": list(done),
            "people": len(people), "asked": sum(int(rows.counts.asked.sum()) for a in done.values() for rows in a.rows.values()),
            "digests": {name: a.info["spec_digest"] for name, a in done.items()}, "population": first.info["population"],
            "data_digest": first.info["data_digest"], "model_digest": next(iter(first.info["model_digests"].values())),
        }  # fmt: skip
        notes = [replace(note, where=f"{name}: {note.where}", remedy="") for name, a in done.items() for note in a.notes if note.where != "population"]
        return Sensitivity(table, people, noted(info, notes), members.axes, dict(members.settings), dict(done), again)

    assert callable(progress)
    for k, (name, im) in enumerate(members.items()):
        try:
            audits[name] = run_audit(predictor, X, im, question, replace(carried, progress=share_of(progress, k, 1, len(members))))
        except (IncompleteError, ModelError) as error:
            part = getattr(error, "result", None)
            if isinstance(part, Audit) and _same_people({**audits, name: part}):
                audits[name] = part
            if audits:
                error.result = gathered(audits)  # type: ignore[union-attr]
            raise
    warn(note for note in next(iter(audits.values())).notes if note.where == "population")
    if not _same_people(audits):  # who has the target already follows from the model's answers
        what = "the model answers otherwise than at the start: other people have the target as they are under another member"
        raise ModelError(what, where="model", remedy="fix its seed and its version")
    made = gathered(audits)
    more = confirmed_audits(list(audits.values()) if len(audits) > 1 else [], carried.check, made)
    return replace(made, info=noted(made.info, [*made.info.get("notes", ()), *more]))


def _same_people(audits: Mapping[str, Audit]) -> bool:
    """Return whether all audits are about the same people."""
    first, *others = [next(iter(found.rows.values())).place.tolist() for found in audits.values()]
    return all(first == places for places in others)


def _tables(audits: Mapping[str, Audit], design: Design, adjust: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one row per person and member, and one row per person."""
    long = []
    for name, found in audits.items():
        part = found.table.drop(columns=["p_adjusted"])
        part.insert(0, "member", name)
        long.append(part)
    claims = [found.claims() for found in audits.values()]
    sides = {"below": np.stack([c.evidence("below") for c in claims], axis=1), "above": np.stack([c.evidence("above") for c in claims], axis=1)}
    rho = np.stack([c.rho for c in claims], axis=1)
    some, every = stats.flag(sides[design.claim], design.alpha, method=adjust), stats.certify(sides[design.claim], design.alpha)
    known = ~np.isnan(rho)
    seen = [found.rows[found.models[0]].counts for found in audits.values()]
    gaps = np.stack([(c.unresolved > 0) | (c.is_law("proved") & ~known[:, k]) for k, c in enumerate(seen)], axis=1)
    lowest, highest = np.where(known, rho, np.inf).min(axis=1), np.where(known, rho, -np.inf).max(axis=1)
    lowest, highest = (np.where(gaps.any(axis=1), np.nan, ends) for ends in (lowest, highest))  # with a missing answer, or ends, neither is known
    people = pd.DataFrame(
        {
            "rho_min": np.where(np.isfinite(lowest), lowest, np.nan), "rho_max": np.where(np.isfinite(highest), highest, np.nan),
            "flag": np.atleast_1d(some.rejected), "p_flag": np.atleast_1d(some.p_value), "certify": np.atleast_1d(every.rejected),
            "p_certify": np.atleast_1d(every.p_value), "verdicts": _verdicts(long),
            "approximate": np.any([part["exactness"] == "approximate" for part in long], axis=0),
            "disagree": np.all([np.atleast_1d(stats.flag(p, design.alpha, method=adjust).rejected) for p in sides.values()], axis=0),
        },
        index=long[0].index,
    )  # fmt: skip
    if design.harm is not None:
        p = sides[design.harm]
        people["consensus"] = np.atleast_1d(stats.certify(p, design.alpha).rejected)
        people["possibility"] = np.atleast_1d(stats.flag(p, design.alpha, method=adjust).rejected)
    return pd.concat(long), people


def _mean(part: pd.DataFrame) -> float:
    """Return the mean of rho over people who were judged; NaN where it is not known."""
    judged = part[part["method"] != "none"]
    found = mean_rho(judged["rho"], judged["unresolved"])
    return np.nan if found is None else found


def _verdicts(long: list[pd.DataFrame]) -> list[str]:
    """Return the distinct verdicts of each person over the members."""
    words = np.stack([part["verdict"].to_numpy(dtype=object) for part in long], axis=1)
    return [", ".join(dict.fromkeys(str(w) for w in row)) for row in words]
