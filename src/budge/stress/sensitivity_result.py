"""The result of a sensitivity analysis: every member, the extremes, flag and certify, and where the verdict breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd

from budge.audit.result import Audit
from budge.audit.summary import heads, records
from budge.errors import InputError, nearest, printable
from budge.stats._checks import percent, plain
from budge.stats.claims import JUDGED
from budge.stress.common import Stressed, distribution

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["Sensitivity"]

SHOWN = ("below", "above", "at the threshold", "none")


@dataclass(frozen=True)
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
        rows = []
        for name in self.members:
            part = self.of(name)
            counts = part["verdict"].value_counts()
            rows.append(
                {
                    "member": name,
                    "mean_rho": float(part["rho"].mean()),
                    **{v: int(counts.get(v, 0)) for v in JUDGED if v in ("below", "above", "inconclusive") or v in counts},
                }
            )
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
        means = {name: float(self.of(name)["rho"].mean()) for name in self.members}
        first = means[self.members[0]]
        if not self.axes:
            rows = [
                {"what": name, "low": min(first, m), "high": max(first, m), "reference": first}
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
                rows.append({"what": path, "low": min(values), "high": max(values), "reference": first})
        table = pd.DataFrame(rows, columns=["what", "low", "high", "reference"])
        return table.iloc[np.argsort(-(table["high"] - table["low"]).to_numpy(), kind="stable")].reset_index(drop=True)

    def cdf(self, member: str) -> pd.DataFrame:
        """The share of people with responsiveness up to each value, under one member."""
        return distribution(self.of(member)["rho"])

    def __str__(self) -> str:
        info, people = self.info, self.people
        claim, tau, many = info["claim"], info["threshold"], len(self.members)
        lines = [
            f"{heads(len(people))} under {many} interaction models; target: the output {info['target']}; {info['asked']:,} points asked."
        ]
        lines.append(
            f"Responsiveness is {claim} {tau:g} under every member for {heads(int(people['certify'].sum()))}, and under at least one for "
            f"{int(people['flag'].sum()):,} (each claim at {percent(1 - info['alpha'])}; {info['adjust'].capitalize()} over the members)."
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
        if len(wide):
            lines.append(
                f"Mean responsiveness moves most with {wide['what'][0]}: from {wide['low'][0]:.4g} to {wide['high'][0]:.4g}."
            )
        lines.append("These claims cover the members evaluated, nothing between them.")
        return printable("\n".join(lines))

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
