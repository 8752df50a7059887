"""The task of proving: who can attain the target, who cannot whatever they do, and for whom that stays open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from budge.audit.design import Design, Execution, designed, executed, given
from budge.audit.result import Audit
from budge.audit.run import run_audit
from budge.audit.summary import HOW, heads, records
from budge.audit.tasks import people_of
from budge.errors import in_lines, one_line
from budge.interaction import InteractionModel
from budge.stats.claims import EXTREMES

__all__ = ["Proofs", "prove"]

DRAWS = 100  # before anything is proved: one hit is a proof


@dataclass(frozen=True)
class Proofs:
    """Per person: whether some reachable point attains the target.

    `table` has one row per person (and model): ``prediction status reason method witness seconds``. ``status`` is ``possible``, ``impossible``, ``certain``
    (every reachable point attains it) or ``unresolved``, or the status of a person who cannot be asked about (``empty``, ``invalid_start``). ``reason`` tells
    why it is unresolved. ``method`` is ``listed`` (every point was asked about), ``drawn`` (a draw attains it) or ``proved`` (from the
    model's structure). ``witness`` tells whether a point that attains the target is in `points`.
    """

    audit: Audit
    single: bool = False

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per person and model."""
        tables = []
        for name in self.audit.models:
            part = self.of_model(name)
            if len(self.audit.models) > 1:
                part.insert(0, "model", name)
            tables.append(part)
        return pd.concat(tables) if len(tables) > 1 else tables[0]

    def of_model(self, name: str) -> pd.DataFrame:
        """Return the rows of one model."""
        rows = self.audit.rows[name]
        counts, claims = rows.counts, self.audit.claims(name)
        extreme, word = claims.extreme_code, counts.words("proof")
        asked = ~counts.is_law("none")
        status = np.select(
            [~asked, extreme == EXTREMES.index("none"), extreme == EXTREMES.index("every"), counts.way],
            [counts.words("status"), "impossible", "certain", "possible"],
            "unresolved",
        )
        lost = (counts.unresolved > 0) & counts.is_law("exact")
        lost |= word == "answers are missing"
        reason = np.where(status == "unresolved", np.where(lost, "answers are missing", np.where(word == "", "model", word)), "")
        method = np.select(
            [~asked | (status == "unresolved"), counts.is_law("exact"), counts.is_law("proved") | (counts.hits == 0)], ["none", "listed", "proved"], "drawn"
        )
        columns = {
            "prediction": rows.prediction, "status": status, "reason": reason, "method": method, "witness": counts.witness >= 0,
            "seconds": np.round(counts.seconds.astype(float), 4),
        }  # fmt: skip
        return pd.DataFrame(columns, index=rows.index)

    @property
    def status(self) -> Any:
        """The status: a word for one person, a column for a table."""
        column = self.table["status"]
        return column.iloc[0] if self.single else column

    @cached_property
    def points(self) -> pd.DataFrame:
        """Return one point per person that attains the target, for people who have one and do not attain it yet, by label."""
        found = {}
        for name in self.audit.models:
            rows = self.audit.rows[name]
            for label in rows.index[rows.counts.witness >= 0]:
                point = self.audit.witness(label, model=name)
                if point is not None:
                    found[label if len(self.audit.models) == 1 else (name, label)] = point
        return pd.DataFrame(found).T.infer_objects()

    def __str__(self) -> str:
        return in_lines(self._sentence(name) for name in self.audit.models)

    def _sentence(self, name: str) -> str:
        table, target = self.of_model(name), self.audit.info["target"]
        if self.single and len(table) == 1:
            return _about_one(table.iloc[0], target)
        tally = table["status"].value_counts()
        words = {
            "possible": "can attain the target", "impossible": "cannot, whatever they do (proved)", "certain": "cannot miss it (proved)",
            "unresolved": "stay open",
        }  # fmt: skip
        said = [f"{int(tally[status]):,} {word}" for status, word in words.items() if tally.get(status, 0)]
        said += [f"{int(count):,} {status}" for status, count in tally.items() if status not in words]
        why = table.loc[table["status"] == "unresolved", "reason"].value_counts()
        reasons = f" Open because of: {', '.join(f'{reason} ({count:,})' for reason, count in why.items())}." if len(why) else ""
        return f"{name}: of {heads(len(table))}, {', '.join(said) or 'nobody was asked about'}; target: the output {target}.{reasons}"

    def to_dict(self) -> dict[str, Any]:
        """Return the record: counts, and the table."""
        table = self.table.reset_index(names="person")
        return {"target": self.audit.info["target"], "counts": self.table["status"].value_counts().to_dict(), "table": records(table)}

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.table)


def _about_one(row: pd.Series, target: str) -> str:
    how = HOW.get(row["method"], "")
    said = {
        "possible": f"The target can be attained ({how}).",
        "impossible": f"No action leads to the target ({how}).",
        "certain": f"Every action leads to the target ({how}).",
        "unresolved": f"Open: neither a way nor a proof that there is none was found ({row['reason']}).",
    }
    return f"{said.get(row['status'], f'No answer: {row.status}.')} Target: the output {target}."


def prove(
    model: Any, X: Any, im: Any, *, target: Any = None, n: int | None = None, seed: int | None = None, population: Any = None, seconds: float | None = None,
    n_jobs: int | None = None, progress: Callable[[int, int], None] | bool | None = None, design: Design | None = None, execution: Execution | None = None,
) -> Proofs:  # fmt: skip
    """Prove for every person whether some action leads to the target.

    A person whose points can be listed is settled by asking about all of them, and so is a person one of whose draws attains the target. All others
    are settled by the model's structure where that can be read (linear models, scorecards, trees, forests, boosting): `impossible` is a proof over every
    reachable point. What is not proved is `unresolved`, never a guess. Distributions of features say how often, not what is possible: they are left out.

    Parameters
    ----------
    model, X, im
        As in `budge.audit`; one person may be given as a row or a mapping.
    target
        A label, labels, or a target of `budge.targets`.
    n, seed
        Draws per person before a proof is tried (100), and their seed.
    population
        Whom to prove about: ``all`` (the default), ``outside``, a condition, or a mask.
    seconds
        Seconds per proof at most. Without it, budgets are counted in steps, so that every run gives the same answer.
    n_jobs, progress, design, execution
        As in `budge.audit`.

    Examples
    --------
    >>> import pandas as pd, budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9), max_increase=3)])
    >>> X = pd.DataFrame({"income": [0, 4]})
    >>> proofs = budge.prove(lambda t: (t["income"] > 4).astype(int), X, im, target=1)
    >>> proofs.table["status"].tolist()
    ['impossible', 'possible']
    """
    people, single = people_of(X, im)
    if isinstance(im, InteractionModel):
        im = im.without_distributions()
    if design is not None and design.method == "exact":  # what cannot be listed is proved
        design = design.but(method="auto")
    asked = {"threshold": 0.0, "testing": False, "prove": True, "n": DRAWS, "population": "all", "max_unresolved": 1.0}
    asked |= given(target=target, n=n, seed=seed, population=population, prove_seconds=seconds)
    found = run_audit(model, people, im, designed(design, asked), executed(execution, given(n_jobs=n_jobs, progress=progress)))
    return Proofs(found, single and len(found.models) == 1)
