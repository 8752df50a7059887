"""What a report shows, gathered from an audit: values for the template, and the data that its script works on."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from budge.audit.design import EXACT_LIMIT, MASK
from budge.audit.recourse import in_full
from budge.audit.result import Audit
from budge.audit.sources import TableSource
from budge.audit.storage import moved_of
from budge.audit.summary import HOW, between
from budge.errors import BudgeError
from budge.interaction import InteractionModel
from budge.report import figures, words
from budge.report.figures.verdicts import claimed
from budge.report.people import columns_of, notable, number, shown, steps
from budge.report.same import same_question

__all__ = ["contents"]

FIRST_ROWS = 200  # that are there without JavaScript
MOST_PAIRS = 45  # pairs of groups whose difference is shown


def contents(audit: Audit, *, by: Sequence[Any], ablation: Any, sensitivity: Any, title: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (values for the template, data for the script)."""
    columns = list(by) or [column for column, _ in audit.design.groups]
    for where, test in (("ablation", ablation), ("sensitivity", sensitivity)):
        if test is not None:
            same_question(audit, test, where=where)
    im = _model(audit)
    moved = moved_of(audit)
    some = notable(audit, moved)
    data = {"table": columns_of(audit, moved), "threshold": audit.design.threshold}
    notes = [str(p) for p in audit.notes] + ([str(p) for p in im.warnings] if im is not None else [])
    view = {
        "title": title or f"Responsiveness: {audit.info['name'] or 'an audit'}",
        "info": audit.info,
        "design": audit.info["design"],
        "asked": words.asked(audit),
        "models": [_findings(audit, name) for name in audit.models],
        "cdf": _drawn(lambda: figures.cdf(audit)),
        "spread": _drawn(lambda: figures.verdicts(audit)),
        "description": None if im is None else _description(im),
        "partition": None if im is None else _drawn(lambda: figures.partition(im)),
        "measure": words.measure(audit, im),
        "guarantees": words.guarantees(audit),
        "covers": words.covers(audit),
        "open": words.leaves_open(audit),
        "assumptions": words.assumptions(audit),
        "claimed": claimed(audit)[1],
        "level": words.percent(1 - audit.design.alpha),
        "rough": bool((audit.table["exactness"] == "approximate").any()),
        "groups": [_group(audit, column, audit.design.alpha / len(columns)) for column in columns if len(audit.table)],
        "notable": [_person(audit, person) for person in some],
        "rows": _rows(audit, moved),
        "total": len(audit.of_model(audit.models[0])),
        "first": FIRST_ROWS,
        "stress": _stress(ablation, sensitivity),
        "notes": notes,
        "facts": _facts(audit),
        "command": _command(audit),
        "code": _code(audit),
        "spec": _spec(im),
        "percent": words.percent,
        "chance": [] if im is None else list(dict.fromkeys(shown(e.feature) for e in im.effects)),
        "number": number,
        "shown": shown,
    }
    return view, data


def _model(audit: Audit) -> InteractionModel | None:
    if audit.context is not None:
        return audit.context.im if isinstance(audit.context.im, InteractionModel) else None
    spec = audit.info.get("spec")
    return None if spec is None else InteractionModel.from_spec(spec)


def _drawn(make: Callable[[], Any]) -> Any:
    """Return a figure as inline SVG, or None: a report without a figure is still a report."""
    from markupsafe import Markup

    try:
        return Markup(make().svg(standalone=False))
    except BudgeError:
        return None


def _findings(audit: Audit, name: str) -> dict[str, Any]:
    found = audit.summary(name)
    side = claimed(audit)[0]
    order = (*(("none",) if audit.design.threshold == 0 else ("below",)), "above", "inconclusive")
    others = [v for v in found.verdicts if v not in order]
    total = max(found.people, 1)
    return {
        "name": name,
        "people": found.people,
        "cards": [
            {"verdict": v, "count": found.verdicts.get(v, 0), "share": words.percent(found.verdicts.get(v, 0) / total)} for v in (*order, *others)
        ],
        "ways": _ways(found.no_way, found.every_way, found.people),
        "sentences": found.sentences(),
        "mean": found.mean_rho,
        "ends": found.mean_ends,
        "unresolved": found.unresolved,
        "methods": dict(found.methods),
        "tested": any(how in found.methods for how in ("sample", "sequential", "weighted")) and audit.design.adjust != "none",
        "drawn": any(how in found.methods for how in ("sample", "sequential", "weighted")),
        "adjusted": len(audit.people(side, adjusted=True, model=name)),
        "describe": audit.info["models"].get(name, ""),
    }


def _ways(none: int, every: int, people: int) -> str:
    """Return how many are known to have no way at all, and how many cannot miss the target."""
    if not people:
        return "Nobody was audited."
    return f"{none:,} of {people:,} are known to have no way at all" + (f", {every:,} cannot miss the target." if every else ".")


def _description(im: InteractionModel) -> dict[str, Any]:
    told = im.describe()
    many = len(told.effects) - len(im.effects)  # latent draws come first
    effects = [*told.effects[:many], *(text + (f" ({e.name})" if e.name else "") for text, e in zip(told.effects[many:], im.effects))]
    return {
        "title": told.title, "rows": told.rows, "constraints": told.constraints, "effects": effects, "sizes": len(im.features),
        "parts": len(im.parts),
    }  # fmt: skip


def _group(audit: Audit, column: Any, alpha: float) -> dict[str, Any]:
    """Return verdicts, shares and differences by one column, for every model that has people; the intervals hold together at this alpha."""
    models = [name for name in audit.models if len(audit.rows[name].index)]
    return {
        "name": str(column if isinstance(column, str) else getattr(column, "name", None) or "group"),
        "tables": {name: _wide(_counted(audit, column, name, alpha)) for name in models},
        "differences": {name: _pairs(audit.differences(column, model=name, alpha=alpha)) for name in models},
        "figures": {name: _drawn(lambda name=name: figures.verdicts(audit, by=column, model=name, alpha=alpha)) for name in models},  # type: ignore[misc]
    }


def _counted(audit: Audit, column: Any, name: str, alpha: float) -> pd.DataFrame:
    """Return `Audit.by`; for the threshold 0 the verdicts counted as "below" are those of no way at all."""
    table = audit.by(column, model=name, alpha=alpha)
    if audit.design.threshold > 0:
        return table
    values = audit.group(column, model=name)
    groups = values.astype(object).where(values.notna(), "missing")
    none = pd.Series(audit.claims(name).verdict == "none", index=groups.index).groupby(groups.to_numpy()).sum()
    for group in none.index:
        people = table.loc[(group, "below"), "people"]
        table.loc[(group, "below"), ["count", "verdicts"]] = [int(none[group]), int(none[group]) / people if people else float("nan")]
    return table


def _wide(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one row per group with both sides in it."""
    found: dict[Any, dict[str, Any]] = {}
    for row in rows.reset_index().to_dict(orient="records"):
        group = found.setdefault(str(row["group"]), {"group": row["group"], "people": row["people"], "mean_rho": row["mean_rho"]})
        group[str(row["verdict"])] = row
    return list(found.values())


def _pairs(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the differences between groups, those that are shown first, then the largest."""
    apart = (rows["low"] > 0) | (rows["high"] < 0)
    order = rows.assign(apart=apart, size=rows["verdicts"].abs()).sort_values(["apart", "size"], ascending=False, kind="stable")
    return {"rows": order.head(MOST_PAIRS).to_dict(orient="records"), "more": max(len(rows) - MOST_PAIRS, 0)}


def _person(audit: Audit, person: Any) -> dict[str, Any]:
    row = person.row
    able = audit.context is not None and isinstance(audit.context.source, TableSource) and row["method"] != "none"
    return {
        "figure": _drawn(lambda: figures.person(audit, person.label, model=person.model)) if able else None,
        "label": shown(person.label), "model": person.model if len(audit.models) > 1 else "", "why": person.why, "verdict": row["verdict"],
        "prediction": shown(row["prediction"]), "rho": number(row["rho"]), "said": _said(row), "moves": person.moves,
        "plan": _plan(audit, person) if able and person.moves else None,
    }  # fmt: skip


def _plan(audit: Audit, person: Any) -> dict[str, Any] | None:
    """Return the least change that attains the target, where it is proved to be that."""
    found = audit.recourse(person.label, model=person.model)
    if not (len(found) and found.optimal):
        return None
    moves = found.actions[["feature", "from", "to"]].itertuples(index=False, name=None)
    return {"moves": [(str(f), in_full(a), in_full(b)) for f, a, b in moves], "how": HOW[found.method]}


def _said(row: Mapping[str, Any]) -> str:
    """Return one person's numbers in words."""
    if row["method"] == "none":
        return f"status {row['status']}"
    lost = f", {row['unresolved']:,} have no answer" if row["unresolved"] else ""
    ends = f"between {number(row['low'])} and {number(row['high'])}"
    if row["method"] == "proved":
        known = number(row["rho"]) if row["rho"] == row["rho"] else between(row["low"], row["high"])
        said = f"responsiveness is {known}, proved from the model's structure over every reachable point"
        return said + (". It equals the threshold: neither below nor above" if row["verdict"] == "at the threshold" else "")
    if row["method"] == "exact":
        said = f"{row['hits']:,} of {row['n']:,} reachable points attain the target{lost}: ρ "
        said += f"= {number(row['rho'])}, exactly" if row["rho"] == row["rho"] else f"is {ends}"
        return said + (". It equals the threshold: neither below nor above" if row["verdict"] == "at the threshold" else "")
    seen = f"{row['hits']:,} of {row['n']:,} draws attain the target{lost}: ρ is "
    return seen + (f"about {ends}; the draws come from a chain, and no error rate is guaranteed" if row["exactness"] == "approximate" else ends)


def _rows(audit: Audit, moved: Mapping[str, Mapping[int, Any]]) -> list[dict[str, Any]]:
    """Return the first people, for readers without JavaScript and for print."""
    name = audit.models[0]
    found = moved.get(name, {})
    rows = audit.of_model(name).head(FIRST_ROWS)
    return [
        {
            "label": shown(label), "prediction": shown(row["prediction"]), "rho": number(row["rho"]), "low": number(row["low"]),
            "high": number(row["high"]), "hits": number(row["hits"]), "n": number(row["n"]), "verdict": row["verdict"],
            "known": row["method"] if row["method"] in ("exact", "proved") and row["rho"] == row["rho"] else "",
            "p": number(row["p_adjusted"]), "moves": "; ".join(f"{f}: {a} → {b}" for f, a, b in steps(found.get(at, ()))),
        }
        for at, (label, row) in enumerate(rows.iterrows())
    ]  # fmt: skip


def _stress(ablation: Any, sensitivity: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"ablation": None, "sensitivity": None}
    if ablation is not None:
        found["ablation"] = {
            "sentences": str(ablation).split("\n"), "figure": _drawn(lambda: figures.gains(ablation)),
            "rows": ablation.largest(40).astype(object).to_dict(orient="records"), "more": max(len(ablation.ranking) - 40, 0),
        }  # fmt: skip
    if sensitivity is not None:
        found["sensitivity"] = {
            "sentences": str(sensitivity).split("\n"), "figure": _drawn(lambda: figures.tornado(sensitivity)),
            "rows": sensitivity.by_member.head(60).astype(object).to_dict(orient="records"),
        }  # fmt: skip
    return found


def _facts(audit: Audit) -> list[tuple[str, str]]:
    """Return what identifies the run."""
    info, design = audit.info, audit.info["design"]
    facts = [("Audited", info["when"]), ("budge", info["version"])]
    facts += [(label, info[key]) for label, key in (("Python", "python"), ("NumPy", "numpy"), ("pandas", "pandas")) if info.get(key)]
    facts += [("Digest of the interaction model", info["spec_digest"] or "not known"), ("Digest of the people", info["data_digest"])]
    for name, digest in info.get("model_digests", {}).items():
        facts.append((f"Digest of {name}", digest or "not known: the model is a Python function or gives none"))
    facts += [("Seed", str(design["seed"])), ("Stream", design["purpose"]), ("Draws per person who is not listed", f"{design['n']:,} ({design['why_n']})")]
    facts.append(("Listed up to", f"{design['exact_limit']:,} points" if design["method"] != "sample" else "never: all were drawn"))
    return [(str(a), str(b)) for a, b in facts]


def _command(audit: Audit) -> str:
    """Return the command that repeats the run: as it was typed, or as it would be; empty where the shell has no way to spell it."""
    if audit.info.get("command"):
        return str(audit.info["command"])
    design, chosen = audit.design, audit.info["population"]
    target = _target(audit.info["design"]["target"])
    own = (design.exact_limit, design.purpose, design.least_share, design.testing) != (EXACT_LIMIT, "draw", 0.1, True)
    if target is None or len(audit.models) > 1 or chosen.startswith(MASK) or design.proposal is not None or own or any(labels for _, labels in design.groups):
        return ""
    parts = ["budge", "audit", "SPEC.yaml", "PEOPLE.csv", "--model", "MODEL", "--target", target, "--threshold", f"{design.threshold:g}"]
    parts += ["--alpha", f"{design.alpha:g}", "--claim", design.claim, "-n", str(design.draws)]
    parts += ["--sequential"] if design.sequential else []
    parts += ["--margin", f"{design.margin:g}"] if design.sequential and design.margin is not None else []
    parts += ["--seed", str(design.seed), "--method", design.method, "--on-invalid", design.on_invalid, "--population", chosen, "--adjust", design.adjust]
    parts += ["--harm", design.harm] if design.harm else []
    parts += ["--prove"] if design.prove else []
    parts += ["--prove-seconds", f"{design.prove_seconds:g}"] if design.prove and design.prove_seconds is not None else []
    return shlex.join([*parts, *(part for column, _ in design.groups for part in ("--by", column))])


def _target(record: Mapping[str, Any]) -> str | None:
    """Return the target as the command line spells it, where it can."""
    if record.get("kind") == "labels" and len(record["values"]) == 1:
        return str(record["values"][0])
    return None


def _code(audit: Audit) -> str:
    """Return the same in Python: replaying checks that every number comes out again."""
    names = "model" if len(audit.models) == 1 else "{" + ", ".join(f"{n!r}: …" for n in audit.models) + "}"
    lines = ["import budge", "", 'run = budge.Audit.load("run/")  # the folder of the saved run']
    return "\n".join([*lines, f"run.replay({names}, X)  # the same audit again; an error if any number differs"])


def _spec(im: InteractionModel | None) -> str:
    from budge.spec import to_text

    if im is None:
        return ""
    try:
        return to_text(im, "yaml")
    except BudgeError:
        return ""
