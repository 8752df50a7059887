"""Files for others: results for spreadsheets, programs and papers, and points for the owner of a model, who returns predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from budge.audit.design import Design
from budge.audit.sources import choose, make_source
from budge.audit.summary import differences
from budge.errors import InputError, OutputExistsError
from budge.files import write_whole
from budge.models import point_keys
from budge.progress import Portion
from budge.table_files import latex_table, write_rows, write_workbook
from budge.wording import percent

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["KINDS", "export", "points_to_ask", "write_points"]

KINDS = (".csv", ".parquet", ".tex", ".xlsx")


def export(audit: Audit, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write an audit to a file of the kind that its name ends in; whole or not at all, and a part of a stream at a time.

    ``.csv`` and ``.parquet`` hold one row per person and model: label, groups, and the columns of `Audit.table`. ``.tex`` is the table of shares by model and
    group for a paper (with booktabs). ``.xlsx`` has sheets of shares, people, differences between groups, and of the run itself.

    Examples
    --------
    >>> import pandas as pd, budge, tempfile, pathlib
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9))])
    >>> audit = budge.audit(lambda t: (t["income"] > 4) * 1, pd.DataFrame({"income": [1, 7]}), im, target=1)
    >>> place = export(audit, pathlib.Path(tempfile.mkdtemp()) / "people.csv")
    >>> pd.read_csv(place)[["person", "n", "hits", "verdict"]].values.tolist()
    [[0, 10, 5, 'above']]
    """
    place = Path(path)
    kind = place.suffix.lower()
    if kind not in KINDS:
        raise InputError("results are written as one of " + ", ".join(KINDS), where=str(place), got=kind)
    if place.exists() and not overwrite:
        raise OutputExistsError("exists already", where=str(place), remedy="choose another name, or overwrite")
    if kind == ".tex":
        write_whole(place, latex_table(_for_paper(audit)), overwrite=overwrite)
    elif kind == ".xlsx":
        sheets = {"shares": [_shares(audit)], "people": _people(audit), "differences": [_gaps(audit)], "run": [_facts(audit)]}
        write_workbook(sheets, place, overwrite=overwrite)
    else:
        write_rows(_people(audit), place, overwrite=overwrite)
    return place


def _people(audit: Audit) -> Iterator[pd.DataFrame]:
    """Yield the rows of all models, labels and groups first."""
    for name in audit.models:
        for piece in audit.in_memory(name):
            table, groups = piece.of_model(name), piece.rows[name].groups
            named = "" if table.index.name is None else str(table.index.name)
            label = named if named and named not in (*table.columns, "model") else "person"
            columns = [c if c not in (*table.columns, label, "model") else f"{c} (group)" for c in map(str, groups.columns)]
            front = pd.DataFrame({label: table.index, **({"model": name} if len(audit.models) > 1 else {})})
            own = groups.set_axis(columns, axis=1).reset_index(drop=True)
            yield pd.concat([front, own, table.reset_index(drop=True)], axis=1)


def _shares(audit: Audit) -> pd.DataFrame:
    """Return shares by model and group: all people first; `low` and `high` bound the share of people who are on the side of the claim."""
    found, side = [], audit.design.claim
    for name in audit.models:
        summary, tally = audit.summary(name), audit.tally(name)
        judged, share = tally.number(tally.judged), summary.share
        made = tally.number(tally.claims.has("none" if side == "below" and audit.design.threshold == 0 else side) & tally.judged)
        ends = (np.nan, np.nan) if share is None else (share.low, share.high)
        found.append((name, "", "all", judged, made, made / judged if judged else np.nan, *ends, summary.mean_rho))
        for column, table in summary.groups.items():
            rows = table[table.index.get_level_values("verdict") == side].droplevel("verdict")  # none where nobody is audited
            found += [(name, column, str(group), *row) for group, row in zip(rows.index, rows.itertuples(index=False, name=None))]
    return pd.DataFrame(found, columns=["model", "column", "group", "people", side, "verdicts", "low", "high", "mean_rho"]).astype({"mean_rho": float})


def _for_paper(audit: Audit) -> pd.DataFrame:
    """Return the shares as texts: groups by name, percentages, intervals."""
    rows, design = _shares(audit), audit.design
    side = "No way" if design.threshold == 0 and design.claim == "below" else f"{design.claim.capitalize()} {design.threshold:g}"
    ends = ["" if np.isnan(low) else "exact" if low == high else f"{percent(low)} to {percent(high)}" for low, high in zip(rows["low"], rows["high"])]
    names = [f"{column}: {group}" if column else group for column, group in zip(rows["column"], rows["group"])]
    made = {
        "Model": rows["model"], "People": names, "Number": rows["people"], side: rows[design.claim],
        "Share": ["" if np.isnan(v) else percent(v) for v in rows["verdicts"]],
        f"{percent(1 - design.alpha)} interval": ends, "Mean ρ": rows["mean_rho"].round(3),
    }  # fmt: skip
    return pd.DataFrame(made).drop(columns=[] if len(audit.models) > 1 else ["Model"])


def _gaps(audit: Audit) -> pd.DataFrame:
    """Return the differences between groups, by model and column."""
    found = [pd.DataFrame(columns=["model", "column", "first", "second", "low", "high", "verdicts"])]
    for name in audit.models:
        for column, table in audit.summary(name).groups.items():
            gaps = differences(table, audit.design.claim)
            found.append(gaps.assign(model=name, column=column, first=gaps["first"].astype(str), second=gaps["second"].astype(str)))
    kept = [part for part in found if len(part)] or found[:1]
    return pd.concat(kept)[list(found[0].columns)]


def _facts(audit: Audit) -> pd.DataFrame:
    """Return what the run is: its question, its digests, when and how it was made."""
    info, design = audit.info, audit.design
    facts = {
        "interactions": info["name"], "target": f"the output {info['target']}", "threshold": design.threshold, "alpha": design.alpha, "claim": design.claim,
        "draws": design.n, "why": design.why_n, "seed": design.seed, "population": info["population"], "people": info["people"], "adjustment": design.adjust,
        "made": info["when"], "version": info["version"], "command": info.get("command", ""), "digest of the spec": info["spec_digest"],
        "digest of the people": info["data_digest"], **{f"digest of {name}": digest for name, digest in info["model_digests"].items()},
    }  # fmt: skip
    return pd.DataFrame({"what": list(facts), "value": pd.Series(list(facts.values()), dtype=object)})


def points_to_ask(im: Any, X: Any, design: Design, *, block_people: int = 64) -> Iterator[pd.DataFrame]:
    """Yield every distinct point that the audit of this design will ask about, each with its key, the people themselves included."""
    source = make_source(im, X, design.on_invalid)
    if design.rule is not None:
        raise InputError("a sequential audit decides as it goes what to ask", where="sequential", remedy="export with a fixed n")
    if "key" in source.starts().columns:
        raise InputError("is the name of the column that ties predictions to points", where="column key", remedy="rename the column, or leave it out")
    seen: set[str] = set()
    source.portion = Portion(source.portion.most, steady=True)  # so that equal calls write equal files

    def new(rows: pd.DataFrame) -> pd.DataFrame:
        keys = point_keys(rows)
        fresh = [i for i, key in enumerate(keys) if not (key in seen or seen.add(key))]  # type: ignore[func-returns-value]
        return pd.concat([pd.Series(keys[fresh], name="key"), rows.iloc[fresh].reset_index(drop=True)], axis=1)

    yield new(source.starts())
    for first in range(0, len(source), block_people):
        some = source.take(np.arange(first, min(first + block_people, len(source))))
        listed, drawn, _ = choose(some, design)
        if drawn.any():
            design.check_draws()
        for chunk in some.exact(np.flatnonzero(listed)):
            yield new(chunk.rows)
        for chunk in some.draws(np.flatnonzero(drawn), design.draws, design):
            yield new(chunk.rows)


def write_points(
    im: Any, X: Any, design: Design, path: str | Path, *, overwrite: bool = False, progress: Callable[[int], None] | None = None
) -> int:
    """Write the points to a CSV or Parquet file, whole or not at all; return how many there are."""
    return write_rows(points_to_ask(im, X, design), path, overwrite=overwrite, raw=True, progress=progress)
