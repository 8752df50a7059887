"""The result of an audit: one table, and the sentences, groups and witnesses that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge import stats
from budge.audit.blocks import Record
from budge.audit.sources import Source, TableSource
from budge.audit.summary import Summary, group_table, summarise
from budge.errors import InputError, Problem, nearest
from budge.models import Predictor
from budge.stats.quantiles import how_much_exactly

if TYPE_CHECKING:
    from budge.audit.design import Design
    from budge.report.figures import Figure

__all__ = ["COLUMNS", "Audit", "Context"]

COLUMNS = ("prediction", "status", "method", "n", "hits", "unresolved", "rho", "low", "high", "p_value", "p_adjusted", "verdict")


@dataclass(frozen=True)
class Context:
    """What is at hand in the process that ran the audit and is not saved: models, people, interaction model."""

    predictors: Mapping[str, Predictor]
    X: Any
    im: Any
    source: Source
    target: Any = None


@dataclass(frozen=True)
class Audit:
    """Per person: how often the prediction attains the target, and what may be claimed.

    `table` has one row a person (and model): ``prediction status method n hits unresolved rho low high p_value
    p_adjusted verdict``. An exact row has no p-value: nothing is uncertain about it. ``verdict`` is ``below``, ``above`` or
    ``inconclusive``, or the status where there is nothing to judge; ``below`` and ``above`` are each wrong with probability
    at most alpha.
    """

    table: pd.DataFrame
    info: Mapping[str, Any]
    witnesses: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict, repr=False)
    changes: Mapping[str, Mapping[Any, Record]] = field(default_factory=dict, repr=False)
    notes: tuple[Problem, ...] = ()
    context: Context | None = field(default=None, repr=False, compare=False)
    moved: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls, records: Mapping[int, Mapping[str, Record]], before: Mapping[str, Any], source: Source, design: Design,
        info: Mapping[str, Any], context: Context, notes: tuple[Problem, ...],
    ) -> Audit:  # fmt: skip
        """From everybody's records."""
        labels = list(source.labels)
        tables, witnesses, changes = [], {}, {}
        for name, outputs in before.items():
            places = [i for i in sorted(records) if name in records[i]]
            rows = [records[i][name] for i in places]
            part = _make_table(rows, [labels[i] for i in places], np.asarray(outputs)[places], design)
            if len(before) > 1:
                part.insert(0, "model", name)
            tables.append(part)
            witnesses[name] = {labels[i]: row["witness"] for i, row in zip(places, rows) if "witness" in row}
            changes[name] = {labels[i]: row["change"] for i, row in zip(places, rows) if row.get("change")}
        joined = pd.concat(tables) if len(tables) > 1 else tables[0]
        joined.index.name = source.frame.index.name if isinstance(source, TableSource) else "input"
        return cls(joined, dict(info), witnesses, changes, notes, context)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(self.info["models"])

    def of_model(self, model: str | None = None) -> pd.DataFrame:
        """The table of one model."""
        if "model" not in self.table.columns:
            return self.table
        return self.table[self.table["model"] == self._named(model)].drop(columns="model")

    def summary(self, model: str | None = None) -> Summary:
        """What share of people is below and above, in sentences with guarantees."""
        return summarise(self.of_model(model), self.info, self._named(model))

    def by(self, group: Any, *, model: str | None = None, alpha: float | None = None) -> pd.DataFrame:
        """The share of verdicts by group, with intervals that hold for all groups together.

        The shares are those of these people. The intervals are about a larger population, were these people a random sample of it.
        """
        rows = self.of_model(model)
        return group_table(rows, self._group(group, rows.index), self.info["design"]["alpha"] if alpha is None else alpha)

    def _group(self, group: Any, index: pd.Index) -> pd.Series:
        if isinstance(group, str):
            frame = self._frame()
            if group not in frame.columns:
                raise InputError("no such column", where="by", got=group, remedy=nearest(group, map(str, frame.columns)))
            group = frame[group]
        values = group if isinstance(group, pd.Series) else pd.Series(group, index=index)
        return values.loc[index]

    def people(self, verdict: str, *, adjusted: bool = True, model: str | None = None) -> pd.DataFrame:
        """Those with a verdict; adjusted: only those whose claim survives the adjustment for many tests."""
        rows = self.of_model(model)
        chosen = rows["verdict"] == verdict
        if adjusted and verdict == self.info["design"]["claim"]:
            chosen &= rows["p_adjusted"].isna() | (rows["p_adjusted"] < self.info["design"]["alpha"])
        return rows[chosen]

    def witness(self, label: Any, *, model: str | None = None) -> Any:
        """The nearest reachable point found that attains the target, as the model was asked about it; None if none was found.

        Each was asked again before it was kept.
        """
        name = self._named(model)
        self._row(label, name)
        found = self.witnesses.get(name, {}).get(label)
        if found is None:
            return None
        context = self._context()
        i = list(context.source.labels).index(label)
        if isinstance(context.source, TableSource):
            values = np.asarray([found], dtype=float)
            return context.source.model.coding.decode(values, context.source.frame.iloc[[i]], np.zeros(1, dtype=np.intp)).iloc[0]
        design = self.info["design"]
        chunk = next(iter(context.source.draws([i], design["n"], design["seed"], design["purpose"])))
        return chunk.rows[found]

    def change(self, label: Any, *, model: str | None = None) -> pd.DataFrame:
        """What the witness changes: feature, from, to."""
        if self.context is None and self.moved:  # a loaded run keeps what its witnesses changed
            name = self._named(model)
            self._row(label, name)
            return pd.DataFrame(self.moved.get(name, {}).get(label, []), columns=["feature", "from", "to"])
        point = self.witness(label, model=model)
        if point is None:
            return pd.DataFrame(columns=["feature", "from", "to"])
        if not isinstance(point, pd.Series):
            raise InputError("only rows of a table can be compared feature by feature", where="change", got=type(point).__name__)
        start = self._frame().loc[label]
        moved = [name for name in point.index if not _same(start[name], point[name])]
        return pd.DataFrame({"feature": moved, "from": [start[m] for m in moved], "to": [point[m] for m in moved]})

    def how_much(self, label: Any, *, model: str | None = None) -> stats.HowMuch:
        """The distribution of the change of a score for one person, from the very points that were drawn; exactly where all were listed."""
        name = self._named(model)
        row = self._row(label, name)
        context = self._context()
        predictor, remedy = context.predictors[name], "audit with output='score'"
        if predictor.output == "label":
            raise InputError("how much needs a score: class labels have no distance", where="how_much", got="labels", remedy=remedy)
        if row["method"] == "none":
            raise InputError("nothing was asked about this person", where="how_much", got=f"{label}: {row['status']}")
        i = list(context.source.labels).index(label)
        design = self.info["design"]
        if row["method"] == "exact":
            chunk = next(iter(context.source.exact([i])))
        else:
            chunk = next(iter(context.source.draws([i], int(row["n"]), design["seed"], design["purpose"])))
        outputs, good = predictor.predict_resolved(chunk.rows)
        if np.asarray(outputs).dtype.kind not in "biuf":
            raise InputError("how much needs a numeric output", where="how_much", got=str(np.asarray(outputs).dtype), remedy=remedy)
        moved = np.asarray(outputs, dtype=float)[good] - float(row["prediction"])
        if row["method"] != "exact":
            return stats.how_much(moved, alpha=design["alpha"])
        if not len(moved):
            raise InputError("no reachable point has an answer", where="how_much", got=label)
        weights = np.full(len(good), 1 / len(good)) if chunk.weights is None else chunk.weights / chunk.weights.sum()
        lost = int((~good).sum())
        gap = float(weights[~good].sum()) if lost else 0.0
        return how_much_exactly(moved, weights=weights[good], unresolved=gap, lost=lost, alpha=design["alpha"])

    def to_dict(self) -> dict[str, Any]:
        """The record: design, digests, summaries and the table."""
        rows = self.table.reset_index(names="person").astype(object)
        return {
            "info": dict(self.info),
            "summary": {name: self.summary(name).to_dict() for name in self.models},
            "table": rows.where(rows.notna(), None).to_dict(orient="records"),
        }

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run to a folder: the table, and a JSON file with the spec, digests, versions and seed."""
        from budge.audit.storage import save_audit

        return save_audit(self, folder, overwrite=overwrite)

    def to_html(
        self, path: str | Path, *, by: Any = (), ablation: Any = None, sensitivity: Any = None, title: str = "", overwrite: bool = False
    ) -> Path:
        """Write a report that a regulator can read and print: one file, no network.

        Parameters
        ----------
        path
            The file; one that exists is refused unless `overwrite`.
        by
            Columns of the people by which verdicts are shown.
        ablation, sensitivity
            Results of `budge.ablate` and `budge.sensitivity` to show. They must answer the question of this audit.
        title
            What the report is called.

        Examples
        --------
        >>> import pandas as pd, budge, tempfile, pathlib
        >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9), max_increase=3)])
        >>> X = pd.DataFrame({"income": [1, 2, 5]})
        >>> audit = budge.audit(lambda t: (t["income"] > 4).astype(int), X, im, target=1)
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> audit.to_html(folder / "report.html").name
        'report.html'
        """
        from budge.report.document import write_report

        return write_report(self, path, by=by, ablation=ablation, sensitivity=sensitivity, title=title, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> Audit:
        """Read a run; what was changed on disk since is an error that names the file."""
        from budge.audit.storage import load_audit

        return load_audit(folder)

    def replay(self, model: Any = None, X: Any = None, im: Any = None) -> Audit:
        """Run the same audit again (on what is at hand unless given) and check that the table is the same."""
        from budge.audit.storage import replay

        return replay(self, model, X, im)

    def __str__(self) -> str:
        return "\n".join(str(self.summary(name)) for name in self.models)

    def plot(
        self, kind: Literal["cdf", "verdicts", "person", "how_much"] = "cdf", *, by: Any = None, label: Any = None, model: str | None = None,
        most: int = 2000,
    ) -> Figure:  # fmt: skip
        """A figure: SVG in notebooks and files, matplotlib on request.

        Parameters
        ----------
        kind
            ``cdf``: how responsiveness is distributed; ``verdicts``: their shares, by group with `by`; ``person``: the reachable points
            of the person of that `label`; ``how_much``: how far her output moves.
        by
            A column of the people, or one value a person.
        label, model
            Which person, and which model where there are several.
        most
            Points of a person that are shown, at most.

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

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.table, figure=self.plot)

    def _named(self, model: str | None) -> str:
        if model is None:
            if len(self.models) > 1:
                raise InputError(
                    "several models were audited", where="model", got=None, remedy=f"name one of {', '.join(self.models)}"
                )
            return self.models[0]
        if model not in self.models:
            raise InputError("no such model", where="model", got=model, remedy=nearest(model, self.models))
        return model

    def _row(self, label: Any, name: str) -> Any:
        rows = self.of_model(name)
        if label not in rows.index:
            raise InputError(
                "nobody of that label was audited", where="label", got=label, remedy="labels are those of the table's index"
            )
        return rows.loc[label]

    def _context(self) -> Context:
        if self.context is None:
            raise InputError("a loaded run has no model and no people at hand", remedy="use replay(model, X) first")
        return self.context

    def _frame(self) -> pd.DataFrame:
        source = self._context().source
        if not isinstance(source, TableSource):
            raise InputError("there is no table of people here", got=type(source).__name__)
        return source.frame


def _same(a: Any, b: Any) -> bool:
    if pd.isna(a) or pd.isna(b):
        return bool(pd.isna(a) and pd.isna(b))
    return bool(a == b)


def _make_table(rows: list[Record], labels: list[Any], outputs: npt.NDArray[Any], design: Design) -> pd.DataFrame:
    """Counts → intervals, p-values, verdicts; vectorised over people."""
    n = np.array([r["n"] for r in rows], dtype=np.int64)
    hits = np.array([r["hits"] for r in rows], dtype=np.int64)
    lost = np.array([r["unresolved"] for r in rows], dtype=np.int64)
    method = np.array([r["method"] for r in rows], dtype=object)
    size = len(rows)
    rho, low, high, p = (np.full(size, np.nan) for _ in range(4))
    verdict = np.array([r["status"] for r in rows], dtype=object)
    exact = method == "exact"
    if exact.any():
        given = np.array([r.get("rho", np.nan) for r in rows])[exact]
        k, m, u = hits[exact], n[exact], lost[exact]
        plain = np.isnan(given)
        rho[exact] = np.where(plain, k / np.maximum(m - u, 1), given)
        low[exact] = np.where(plain, k / m, given)
        high[exact] = np.where(plain, (k + u) / m, given + u / m)
        rho[exact] = np.where(u == 0, rho[exact], np.nan)  # with answers missing only its ends are known
        verdict[exact] = np.where(
            high[exact] < design.threshold, "below", np.where(low[exact] > design.threshold, "above", "inconclusive")
        )
    drawn = (method == "sample") | (method == "sequential")
    if drawn.any():
        k, m, u = hits[drawn], n[drawn], np.minimum(lost[drawn], n[drawn] - hits[drawn])
        found = stats.unresolved_interval(k, m, u, design.alpha) if u.any() else stats.interval(k, m, design.alpha)
        rho[drawn], low[drawn], high[drawn] = k / np.maximum(m - u, 1), found.low, found.high
        rho[drawn] = np.where(m > u, rho[drawn], np.nan)
        p_below = np.asarray(stats.p_value(k + u, m, design.threshold, "below"))
        p_above = np.asarray(stats.p_value(k, m, design.threshold, "above"))
        p[drawn] = p_below if design.claim == "below" else p_above
        verdict[drawn] = np.where(p_below < design.alpha, "below", np.where(p_above < design.alpha, "above", "inconclusive"))
    looked = method == "sequential"
    if looked.any():  # counts at a stopping time: the fixed-n numbers do not apply
        rule = design.rule
        assert rule is not None
        k, m = hits[looked], n[looked]
        found = stats.anytime_interval(k, m, design.alpha)
        low[looked], high[looked] = found.low, found.high
        p[looked] = stats.anytime_p_value(k, m, design.threshold, design.claim)
        verdict[looked] = np.array([r["verdict"] for r in rows if r["method"] == "sequential"], dtype=object)
    weighed = method == "weighted"
    if weighed.any():
        some = [r for r in rows if r["method"] == "weighted"]
        rho[weighed] = [r["rho"] for r in some]
        low[weighed], high[weighed] = [r["low"] for r in some], [r["high"] for r in some]
        verdict[weighed] = np.where(
            high[weighed] < design.threshold, "below", np.where(low[weighed] > design.threshold, "above", "inconclusive")
        )
    adjusted = np.full(size, np.nan)
    tested = ~np.isnan(p)
    if tested.any():
        adjusted[tested] = p[tested] if design.adjust == "none" else stats.adjust(p[tested], design.adjust)
    columns = {
        "prediction": outputs, "status": [r["status"] for r in rows], "method": method, "n": n, "hits": hits, "unresolved": lost,
        "rho": rho, "low": low, "high": high, "p_value": p, "p_adjusted": adjusted, "verdict": verdict,
    }  # fmt: skip
    return pd.DataFrame(columns, index=pd.Index(labels, tupleize_cols=False))
