"""The result of an audit: counts as columns, and the table, sentences, groups and witnesses that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge import stats
from budge.audit.ask import Asker, answers_of, points_of
from budge.audit.design import Design, Progress
from budge.audit.rows import Context, Rows
from budge.audit.sources import TableSource
from budge.audit.summary import HOW, Summary, differences, group_table, heads, summarise
from budge.audit.tally import GroupTallies, Tally
from budge.errors import InputError, Problem, nearest, printable
from budge.stats import Claims, claim
from budge.stats.claims import EXACTNESS, EXTREMES, VERDICTS
from budge.stats.counts import LAWS, PROOFS, STATUSES
from budge.stats.quantiles import how_much_exactly
from budge.wording import Wording

if TYPE_CHECKING:
    from budge.audit.cases import Kept
    from budge.audit.compare import Comparison
    from budge.audit.gate import Gate
    from budge.audit.recourse import Recourse
    from budge.report.figures import Figure

__all__ = ["COLUMNS", "HAS_IT", "Audit", "same_cell"]

HAS_IT = "already has the target"  # why a person has no least change

COLUMNS = (
    "prediction", "status", "method", "n", "hits", "unresolved", "rho", "low", "high", "p_value", "p_adjusted", "verdict", "lower", "upper",
    "exactness", "extreme",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Audit:
    """Per person: how often the prediction attains the target, and what may be claimed.

    `table` has one row per person (and model): ``prediction status method n hits unresolved rho low high p_value p_adjusted verdict``, then
    ``lower upper exactness extreme``. ``low`` and ``high`` are the interval at 1 - alpha, ``lower`` and ``upper`` the one-sided bounds that decide;
    p-values are those of the design's claim. A row whose points were all listed has no p-value: nothing is uncertain about it. ``verdict`` is
    ``below``, ``above``, ``inconclusive``, ``at the threshold`` (known to be equal), ``none`` (no way at all, for the threshold 0), or the status
    where there is nothing to judge. A false ``below`` has probability at most alpha, and so has a false ``above``. ``exactness`` is ``exact``,
    ``guaranteed`` or ``approximate``; ``extreme`` is ``none`` where no reachable point attains the target and ``every`` where all do. With
    ``prove``, ``proof`` tells what a proof came to.
    """

    rows: Mapping[str, Rows] = field(repr=False)
    design: Design
    info: Mapping[str, Any] = field(repr=False)
    notes: tuple[Problem, ...] = ()
    context: Context | None = field(default=None, repr=False, compare=False)
    moved: Mapping[str, Mapping[int, Any]] = field(default_factory=dict, repr=False, compare=False)  # what saved witnesses change, by row
    cases: Mapping[str, Mapping[int, Kept]] = field(default_factory=dict, repr=False, compare=False)  # points of the people whom a saved run shows, by row

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(self.rows)

    @property
    def wording(self) -> Wording:
        """What people, target, groups and features are called."""
        return Wording.of(self.info.get("wording"))

    @cached_property
    def _claims(self) -> dict[str, Claims]:
        return {name: claim(rows.counts, self.design) for name, rows in self.rows.items()}

    def claims(self, model: str | None = None) -> Claims:
        """Return what may be claimed of each row of one model."""
        return self._claims[self._named(model)]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per person and model."""
        tables = []
        for name in self.models:
            part = self._table(name)
            if len(self.models) > 1:
                part.insert(0, "model", name)
            tables.append(part)
        joined = pd.concat(tables) if len(tables) > 1 else tables[0]
        joined.index.name = next(iter(self.rows.values())).index.name
        return joined

    def _table(self, name: str) -> pd.DataFrame:
        rows, claims, design = self.rows[name], self._claims[name], self.design
        counts = rows.counts
        columns = {
            "prediction": rows.prediction, "status": _texts(STATUSES, counts.status), "method": _texts(LAWS, counts.law), "n": counts.n,
            "hits": counts.hits, "unresolved": counts.unresolved, "rho": claims.rho, "low": claims.low, "high": claims.high,
            "p_value": claims.p_value(design.claim), "p_adjusted": claims.adjusted(design.claim, design.adjust),
            "verdict": _texts(VERDICTS, claims.verdict_code), "lower": claims.lower, "upper": claims.upper,
            "exactness": _texts(EXACTNESS, claims.exactness_code), "extreme": _texts(EXTREMES, claims.extreme_code),
        }  # fmt: skip
        if design.prove:
            columns["proof"] = _texts(PROOFS, counts.proof)
        return pd.DataFrame(columns, index=rows.index, copy=False)

    def of_model(self, model: str | None = None) -> pd.DataFrame:
        """Return the table of one model."""
        if len(self.models) == 1:
            self._named(model)
            return self.table
        return self.table[self.table["model"] == self._named(model)].drop(columns="model")

    def whole(self) -> Audit:
        """Return the same audit with all people in memory: this one."""
        return self

    def in_memory(self, model: str | None = None, *, naming: str = "") -> Iterator[Audit]:
        """Yield audits in memory that make up the rows of one model: this one. `naming` is a text in which columns of the people may be named."""
        self._named(model)
        yield self

    def summary(self, model: str | None = None) -> Summary:
        """Return what share of people is below and above, in sentences with guarantees."""
        name = self._named(model)
        return summarise(self.tally(name), {c: self.tallies(c, name) for c, _ in self.design.groups}, self.design, self.info, name)

    def tally(self, model: str | None = None) -> Tally:
        """Return how many people have the same counts."""
        name = self._named(model)
        return Tally.of(self.rows[name], self._claims[name])

    def tallies(self, group: Any, model: str | None = None) -> Mapping[Any, Tally]:
        """Return the same for every group: a column by name, or values."""
        name = self._named(model)
        return GroupTallies(self.rows[name], self._claims[name], self.group(group, model=name))

    def by(self, group: Any, *, model: str | None = None, alpha: float | None = None) -> pd.DataFrame:
        """Return the share of people below and above by group, with intervals that hold for all groups together.

        One row per group and side: `people` judged, `count` of verdicts and their share (`verdicts`), `low` and `high` of the share of people who
        *are* on that side, and the mean of rho.
        """
        return group_table(self.tallies(group, model), self.design.alpha if alpha is None else alpha)

    def differences(self, group: Any, *, side: Literal["below", "above"] | None = None, model: str | None = None, alpha: float | None = None) -> pd.DataFrame:
        """Return the difference of every two groups' shares of people on one side (the claim's), with intervals that hold together."""
        return differences(self.by(group, model=model, alpha=alpha), side or self.design.claim)

    def group(self, group: Any, *, model: str | None = None) -> pd.Series:
        """Return the group of every row of one model: a column by name, or values; labels of the design take the place of values."""
        rows = self.rows[self._named(model)]
        if isinstance(group, str):
            if group in rows.groups.columns:
                return rows.groups[group]
            if self.context is None:
                raise InputError("a saved run keeps the groups of its design only", where="by", got=group, remedy=nearest(group, map(str, rows.groups.columns)))
            frame = self._frame()
            if group not in frame.columns:
                raise InputError("no such column", where="by", got=group, remedy=nearest(group, map(str, frame.columns)))
            return frame[group].iloc[rows.place]
        if isinstance(group, pd.Series):
            return group.loc[rows.index]
        if len(group) != len(rows.index):
            raise InputError("one value per person of the audit is needed", where="by", got=len(group), remedy=f"give {len(rows.index)}, or a Series")
        return pd.Series(np.asarray(group), index=rows.index)

    def people(self, verdict: str, *, adjusted: bool = False, model: str | None = None) -> pd.DataFrame:
        """Return the people with a verdict; with `adjusted`, only those whose claim survives the adjustment for many people."""
        name = self._named(model)
        chosen = self._claims[name].named(verdict, self.design.adjust if adjusted else None)
        return self.of_model(name)[chosen]

    def witness(self, label: Any, *, model: str | None = None) -> Any:
        """Return a near reachable point that attains the target, as the model was asked about it; None if none was found or needed.

        It is the nearest point found, with every move put back that the target does not need. `budge.recourse` finds the least change.
        """
        name = self._named(model)
        at = self._at(label, name)
        rows = self.rows[name]
        if self.why_not(label, model=name):
            return None
        source = self._context().source
        if isinstance(source, TableSource) and rows.counts.reached.shape[1]:
            return source.written([int(rows.place[at])], self.reached(np.array([at]), model=name)).iloc[0]
        points, which = points_of(self, label, name).rows, int(rows.counts.witness[at])
        return points.iloc[which] if isinstance(points, pd.DataFrame) else points[which]

    def reached(self, at: npt.NDArray[np.intp], *, model: str | None = None) -> npt.NDArray[np.float64]:
        """Return the values that the witnesses of rows (by position) reach, moves that the target does not need put back."""
        from budge.audit.witnesses import shortened

        name = self._named(model)
        rows, context = self.rows[name], self._context()
        assert isinstance(context.source, TableSource)
        spot = np.cumsum(rows.counts.witness >= 0) - 1
        ask = Asker.of(name, context.predictors[name], self.design.target, rows.prediction)
        return shortened(context.source, rows.place[at], rows.counts.reached[spot[at]], ask, rows.prediction[at])

    def why_not(self, label: Any, *, model: str | None = None) -> str:
        """Return why a person has no witness; nothing where there is one."""
        name = self._named(model)
        at = self._at(label, name)
        counts, prediction = self.rows[name].counts, self.rows[name].prediction[[at]]
        if self._already(prediction)[0]:
            return HAS_IT
        if counts.witness[at] >= 0:
            return ""
        if counts.is_law("none")[at]:
            return str(counts.words("status")[at])
        if self._claims[name].extreme[at] == "none":
            return f"no way at all: {HOW['listed' if counts.is_law('exact')[at] else 'proved']}"
        if counts.hit_mass[at] > 0:
            return "points that attain the target were counted, not listed: recourse finds one"
        return f"none of {int(counts.n[at]):,} points that were asked about attains the target"

    def _already(self, prediction: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which answers attain the target as they are; none where the target was code and is not at hand."""
        try:
            return np.asarray(self.design.target.hits(prediction, prediction), dtype=bool)
        except InputError:
            return np.zeros(len(prediction), dtype=bool)

    def change(self, label: Any, *, model: str | None = None) -> pd.DataFrame:
        """Return what the witness changes: feature, from, to; where it is empty, ``attrs["reason"]`` says why."""
        name = self._named(model)
        at = self._at(label, name)
        reason = self.why_not(label, model=name)
        if reason or self.context is None:  # a loaded run keeps what its witnesses changed
            found = pd.DataFrame([] if reason else self.moved.get(name, {}).get(at, []), columns=["feature", "from", "to"])
            found.attrs["reason"] = reason
            return found
        point = self.witness(label, model=name)
        if not isinstance(point, pd.Series):
            raise InputError("only rows of a table can be compared feature by feature", where="change", got=type(point).__name__)
        start = self._frame().iloc[int(self.rows[name].place[at])]
        moved = [feature for feature in point.index if not same_cell(start[feature], point[feature])]
        return pd.DataFrame({"feature": moved, "from": [start[m] for m in moved], "to": [point[m] for m in moved]})

    def recourse(self, label: Any, *, model: str | None = None, k: int = 1, cost: Any = None, seconds: float | None = None) -> Recourse:
        """Return the least change that attains the target for one person: see `budge.recourse`."""
        from budge.audit.recourse import plans_of

        name = self._named(model)
        return plans_of(self._context(), name, int(self.rows[name].place[self._at(label, name)]), self.design, k=k, cost=cost, seconds=seconds)

    def how_much(self, label: Any, *, model: str | None = None) -> stats.HowMuch:
        """Return the distribution of the change of a score for one person, from the points that the audit asked about."""
        name = self._named(model)
        row = self._row(label, name)
        predictor, remedy = self._context().predictors[name], "audit with output='score'"
        if predictor.output == "label":
            raise InputError("how much needs a score: class labels have no distance", where="how_much", got="labels", remedy=remedy)
        if row["method"] == "none" or (row["method"] != "exact" and self.design.proposal is not None):
            what = "nothing was asked about this person" if row["method"] == "none" else "weighted draws have no quantiles"
            raise InputError(what, where="how_much", got=f"{label}: {row['status']}", remedy="audit without a proposal")
        chunk = points_of(self, label, name)
        found = answers_of(self, label, name, chunk)
        if found.outputs.dtype.kind not in "biuf":
            raise InputError("how much needs a numeric output", where="how_much", got=str(found.outputs.dtype), remedy=remedy)
        lost = int((~found.good).sum())
        moved = found.outputs.astype(float)[found.good] - float(row["prediction"])
        if not len(moved):
            raise InputError("no reachable point has an answer", where="how_much", got=label)
        if row["method"] != "exact":
            return stats.how_much(moved, unresolved=lost, alpha=self.design.alpha)
        weights = np.full(len(found.good), 1 / len(found.good)) if chunk.weights is None else chunk.weights / chunk.weights.sum()
        gap = float(weights[~found.good].sum()) if lost else 0.0
        return how_much_exactly(moved, weights=weights[found.good], unresolved=gap, lost=lost, alpha=self.design.alpha)

    def to_dict(self) -> dict[str, Any]:
        """Return the record: design, digests, summaries and the table."""
        rows = self.table.reset_index(drop=True).astype(object)
        rows.insert(0, "person", pd.Series(list(self.table.index), dtype=object))
        return {
            "info": dict(self.info),
            "summary": {name: self.summary(name).to_dict() for name in self.models},
            "table": rows.where(rows.notna(), None).to_dict(orient="records"),
        }

    def compare(self, other: Audit, *, model: str | None = None, other_model: str | None = None) -> Comparison:
        """Return who changed verdict between this audit and another of the same people, and differences with intervals: see `budge.audit.compare`."""
        from budge.audit.compare import compare

        return compare(self, other, model=model, other=other_model)

    def gate(self, condition: str, *, model: str | None = None, people: pd.DataFrame | None = None) -> Gate:
        """Return whether a condition holds, such as ``share(no_way) > 0.05``: see `budge.audit.gate`.

        Parameters
        ----------
        model
            Which model, where there are several; all of them together unless given.
        people
            The people with all their columns, where the condition names one that the audit does not hold.

        Examples
        --------
        >>> import pandas as pd, budge
        >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9))])
        >>> audit = budge.audit(lambda t: (t["income"] > 9) * 1, pd.DataFrame({"income": [1, 2]}), im, target=1)
        >>> audit.gate("share(no_way) > 0.05").failed
        True
        """
        from budge.audit.gate import gate

        return gate(self, condition, model=model, people=people)

    def export(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the results to a .csv, .parquet, .tex or .xlsx file: see `budge.audit.export`."""
        from budge.audit.export import export

        return export(self, path, overwrite=overwrite)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run to a folder: counts, and a JSON file with the design, the spec, digests, versions and seed."""
        from budge.audit.storage import save_audit

        return save_audit(self, folder, overwrite=overwrite)

    def to_html(
        self, path: str | Path, *, by: Any = (), why: bool = True, ablation: Any = None, sensitivity: Any = None, title: str = "", target_name: str = "",
        people_name: str = "", group_labels: Mapping[str, Mapping[Any, str]] | None = None, feature_labels: Mapping[str, str] | None = None,
        level_labels: Mapping[str, Mapping[Any, str]] | None = None, threshold_reason: str = "", purpose: str = "", auditor: str = "",
        progress: Progress | bool | None = None, overwrite: bool = False,
    ) -> Path:  # fmt: skip
        """Write a report that a regulator can read and print: one file, no network.

        Parameters
        ----------
        path
            The file; one that exists is refused unless `overwrite`.
        by
            Columns of the people by which shares are shown; those of the design unless given.
        why
            Whether each rule is relaxed in turn to find which holds people back: the model is asked about what they could reach then. Nothing
            is asked where the model is not at hand.
        ablation, sensitivity
            Results of stress tests to show; with an ablation, none is computed.
        progress
            Called with (people done, people in all) while rules are relaxed; without it a line is shown on a terminal or in a notebook, False shows none.
        title
            The title of the report.
        target_name, people_name, group_labels, feature_labels, level_labels, threshold_reason, purpose, auditor
            Words of your own, such as "approval" and "refused applicants", in the place of the audit's own `wording`; see `budge.Wording`.

        Examples
        --------
        >>> import pandas as pd, budge, tempfile, pathlib
        >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9), max_increase=3)])
        >>> X = pd.DataFrame({"income": [1, 2, 4]})
        >>> audit = budge.audit(lambda t: (t["income"] > 4).astype(int), X, im, target=1)
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> audit.to_html(folder / "report.html").name
        'report.html'
        """
        from budge.report.document import worded, write_report

        by = by if isinstance(by, str | pd.Series) else list(by)
        given = Wording(people_name, target_name, threshold_reason, purpose, auditor, group_labels or {}, feature_labels or {}, level_labels or {})
        return write_report(
            self, path, by=by, why=why, ablation=ablation, sensitivity=sensitivity, title=title, nouns=worded(self, given, by), progress=progress,
            overwrite=overwrite,
        )  # fmt: skip

    @classmethod
    def load(cls, folder: str | Path) -> Audit:
        """Read a run; a file that was changed on disk since is an error that names it."""
        from budge.audit.loading import load_audit

        return load_audit(folder)

    def replay(self, model: Any = None, X: Any = None, im: Any = None, *, target: Any = None) -> Audit:
        """Run the same audit again (on what is at hand unless given) and check that every count is the same."""
        from budge.audit.storage import replay

        return replay(self, model, X, im, target=target)

    def __str__(self) -> str:
        return "\n".join(str(self.summary(name)) for name in self.models)

    def plot(
        self, kind: Literal["cdf", "verdicts", "person", "how_much"] = "cdf", *, by: Any = None, label: Any = None, model: str | None = None,
        most: int = 2000,
    ) -> Figure:  # fmt: skip
        """Return a figure: SVG in notebooks and files, matplotlib on request.

        ``cdf`` shows how responsiveness is distributed; ``verdicts`` their shares, by group with `by` (a column, or one value per person); ``person`` the
        reachable points of the person of that `label`, `most` of them; ``how_much`` how far that person's output moves.

        Examples
        --------
        >>> import pandas as pd, budge
        >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9))])
        >>> audit = budge.audit(lambda t: (t["income"] > 4).astype(int), pd.DataFrame({"income": [1, 7]}), im, target=1)
        >>> audit.plot("person", label=0).title
        'Person 0: 5 of 10 reachable points attain the target'
        """
        from budge.report.figures import audit_figure

        return audit_figure(self, kind, by=by, label=label, model=model, most=most)

    def __repr__(self) -> str:  # cheap: nothing is read or counted
        models, target = printable(", ".join(self.models)), printable(str(self.info["target"]))
        return f"<{type(self).__name__} of {heads(int(self.info['people']))} under {models}: the output {target}>"

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.table, figure=self.plot)

    def _named(self, model: str | None) -> str:
        if model is None:
            if len(self.models) > 1:
                raise InputError("several models were audited", where="model", remedy=f"give model=NAME: {', '.join(self.models)}")
            return self.models[0]
        if model not in self.models:
            raise InputError("no such model", where="model", got=model, remedy=nearest(model, self.models))
        return model

    def _at(self, label: Any, name: str) -> int:
        """Return the position of a label among the rows of a model."""
        try:
            found = self.rows[name].index.get_loc(label)
        except (KeyError, TypeError):
            found = None
        if not isinstance(found, int | np.integer):
            raise InputError("nobody of that label was audited", where="label", got=label, remedy="labels are those of the table's index")
        return int(found)

    def _row(self, label: Any, name: str) -> Any:
        return self.of_model(name).iloc[self._at(label, name)]

    def _context(self) -> Context:
        if self.context is None:
            raise InputError("a loaded run has no model and no people at hand", remedy="use replay(model, X) first")
        return self.context

    def _frame(self) -> pd.DataFrame:
        source = self._context().source
        if not isinstance(source, TableSource):
            raise InputError("there is no table of people here", got=type(source).__name__)
        return source.frame


def _texts(names: tuple[str, ...], codes: npt.NDArray[np.int8]) -> Any:
    """Return a column of texts, in the type that pandas gives to texts; never a million Python strings."""
    return pd.Series(names).array.take(codes)


def same_cell(a: Any, b: Any) -> bool:
    """Return whether two cells of a table are equal; two that are missing are."""
    if pd.isna(a) or pd.isna(b):
        return bool(pd.isna(a) and pd.isna(b))
    return bool(a == b)
