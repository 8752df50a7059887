"""What a report shows, gathered from an audit: values for the template, and the data that its script works on."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from budge.audit.design import EXACT_LIMIT, MASK, Progress
from budge.audit.result import Audit
from budge.audit.storage import moved_of
from budge.errors import BudgeError
from budge.interaction import InteractionModel
from budge.models.reading import same_label
from budge.report import figures, words
from budge.report.answer import answer, marks_of, undecided_by_draws
from budge.report.cases import cases, rule
from budge.report.compared import compared
from budge.report.figures.verdicts import claimed
from budge.report.people import EXTREME_WORDS, breakable, columns_of, decimals, joined, number, steps
from budge.report.same import same_question
from budge.report.who import groups_of
from budge.report.why import ablated, why
from budge.targets import Labels, parse_target
from budge.wording import Wording, shown

__all__ = ["contents", "model_of"]

FIRST_ROWS = 200  # that are there without JavaScript


def contents(
    audit: Audit, *, by: Sequence[Any], ablation: Any, sensitivity: Any, title: str, nouns: Wording, ask_why: bool, progress: Progress | bool | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (values for the template, data for the script). The answer is about the first model that judges anybody."""
    columns = list(by) or [column for column, _ in audit.design.groups]
    for where, test in (("ablation", ablation), ("sensitivity", sensitivity)):
        if test is not None:
            same_question(audit, test, where=where)
    im, moved, main = model_of(audit), moved_of(audit), _main(audit)
    given, nouns = nouns, nouns.of_model(im)
    about = ""
    if ablation is None and ask_why:
        ablation, about = ablated(audit, main, progress)
    groups = [
        groups_of(audit, column, name, audit.design.alpha / len(columns), nouns)
        for column in columns for name in audit.models if not audit.rows[name].counts.is_law("none").all()
    ]  # fmt: skip
    first = answer(audit, main, nouns, groups=next((g.sentence for g in groups if g.model == main), ""))
    meeting, reasons = compared(audit, nouns), why(audit, main, ablation, about, nouns)
    some = cases(audit, main, moved.get(main, {}), nouns, im)
    data = {"table": columns_of(audit, moved, nouns), "threshold": audit.design.threshold, "main": audit.models.index(main)}
    view = {
        "title": title or (f"Responsiveness: {audit.info['name']}" if audit.info["name"] else "Responsiveness"),
        "info": audit.info,
        "design": audit.info["design"],
        "answer": first,
        "main": main,
        "next": _next(audit, main, reasons, meeting, some),
        "groups": groups,
        "why": reasons,
        "cases": some,
        "rule": rule(audit, main, some),
        "compared": meeting,
        "asked": words.asked(audit),
        "models": [_findings(audit, name, nouns) for name in audit.models],
        "cdf": _drawn(lambda: figures.cdf(audit)) if len(audit.models) > 1 else None,
        "description": None if im is None else _description(im),
        "partition": None if im is None else _drawn(lambda: figures.partition(im)),
        "measure": words.measure(audit, im),
        "guarantees": words.guarantees(audit),
        "covers": words.covers(audit),
        "open": words.leaves_open(audit),
        "assumptions": words.assumptions(audit),
        "glossary": words.GLOSSARY,
        "claimed": claimed(audit)[1],
        "rough": bool((audit.table["exactness"] == "approximate").any()),
        "rows": _rows(audit, main, moved.get(main, {}), nouns),
        "total": len(audit.of_model(main)),
        "first": FIRST_ROWS,
        "stress": _stress(ablation, sensitivity),
        "notes": list(dict.fromkeys(str(p) for p in (*audit.notes, *(im.warnings if im is not None else ())))),  # a draft is in both
        "facts": _facts(audit, nouns),
        "command": _command(audit, columns, given),
        "code": _code(audit),
        "spec": _spec(im),
        "percent": words.percent,
        "chance": [] if im is None else list(dict.fromkeys(shown(e.feature) for e in im.effects)),
        "number": number,
        "decimals": decimals,
        "breakable": breakable,
        "joined": joined,
        "shown": shown,
    }
    return view, data


def _main(audit: Audit) -> str:
    """Return the model that the answer is about: the first that judges anybody, else the first."""
    return next((name for name in audit.models if not audit.rows[name].counts.is_law("none").all()), audit.models[0])


def _next(audit: Audit, main: str, reasons: Any, meeting: Any, some: Sequence[Any]) -> list[dict[str, str]]:
    """Return what to do next, at most three things, the most useful first."""
    found = audit.summary(main)
    steps_: list[tuple[str, str, str]] = []
    best: dict[str, Any] = reasons["rows"][0] if reasons is not None and reasons["rows"] else {"people": 0, "seen": 0}
    if best["people"] or best["seen"]:
        whom, needs = words.count(best["people"] or best["seen"], "person", "people"), f" ({best['needs'][0]})" if best["needs"] else ""
        able = f"{whom} would newly have a way" if best["people"] else f"a way is found for {whom} without a hit"
        steps_.append(("Question the rule that holds most people back.", f"If {best['if']}, {able}{needs}.", "why"))
    if meeting is not None and meeting["people"]:
        steps_.append(("Compare the models.", meeting["heading"], "models"))
    if some:
        steps_.append(("Read the cases in full", f"before deciding anything: {words.count(len(some), 'person', 'people')}, chosen by rule.", "cases"))
    if found.unresolved:
        steps_.append(("Get the answers that are missing.", f"{words.count(found.unresolved, 'point has', 'points have')} none.", "trust"))
    missed = marks_of(audit, main).count("nohit")
    if missed and not audit.design.prove:
        whom = f"For {words.count(missed, 'person', 'people')} no draw attained the target"
        steps_.append(("Prove it where draws found no way.", f"{whom}; prove=True, on the shell --prove, can settle it for a model that can be read.", "trust"))
    undecided = undecided_by_draws(audit, main)
    if undecided > found.people / 10 and audit.design.threshold > 0:
        whom = f"{words.count(undecided, 'person is', 'people are')} undecided with {audit.design.draws:,} draws at most"
        steps_.append(("Draw more points.", f"{whom}; a larger n, on the shell -n, decides more.", "trust"))
    if reasons is not None and reasons["missing"]:
        steps_.append(("Find the rule that holds them back.", "It is not in this report; the section tells how to get it.", "why"))
    return [{"do": do, "text": text, "see": see} for do, text, see in steps_[:3]]


def model_of(audit: Audit) -> InteractionModel | None:
    """Return the interaction model of an audit, at hand or as it was saved; None where it only draws."""
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


def _findings(audit: Audit, name: str, nouns: Wording) -> dict[str, Any]:
    found = audit.summary(name)
    drawn = any(how in found.methods for how in ("sample", "sequential", "weighted"))
    return {
        "name": name, "people": found.people, "sentences": found.sentences(nouns), "mean": found.mean_rho, "ends": found.mean_ends,
        "unresolved": found.unresolved, "tested": drawn and audit.design.adjust != "none" and audit.design.threshold > 0, "drawn": drawn,
        "adjusted": len(audit.people(claimed(audit)[0], adjusted=True, model=name)),
        "describe": audit.info["models"].get(name, ""),
    }  # fmt: skip


def _description(im: InteractionModel) -> dict[str, Any]:
    told = im.describe()
    many = len(told.effects) - len(im.effects)  # latent draws come first
    effects = [*told.effects[:many], *(text + (f" ({e.name})" if e.name else "") for text, e in zip(told.effects[many:], im.effects))]
    return {
        "title": told.title, "rows": told.rows, "constraints": told.constraints, "effects": effects, "sizes": len(im.features),
        "parts": len(im.parts),
    }  # fmt: skip


def _rows(audit: Audit, name: str, found: Mapping[int, Any], nouns: Wording) -> list[dict[str, Any]]:
    """Return the first people of a model, for readers without JavaScript and for print; `found` is what witnesses change, by row."""
    rows = audit.of_model(name).head(FIRST_ROWS)
    return [
        {
            "label": shown(label), "prediction": shown(row["prediction"]), "rho": decimals(row["rho"]), "low": decimals(row["low"]),
            "high": decimals(row["high"]), "hits": number(row["hits"]), "n": number(row["n"]), "verdict": row["verdict"],
            "extreme": EXTREME_WORDS[row["extreme"]],
            "known": row["method"] if row["method"] in ("exact", "proved") and row["rho"] == row["rho"] else "",
            "p": number(row["p_adjusted"]), "moves": "; ".join(f"{f}: {a} → {b}" for f, a, b in steps(found.get(at, ()), nouns)),
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


def _facts(audit: Audit, nouns: Wording) -> list[tuple[str, str]]:
    """Return what identifies the run: who, when, why, and digests with their algorithm."""
    info, design = audit.info, audit.info["design"]
    told = (
        ("Purpose", nouns.purpose), ("Auditor", nouns.auditor), ("Audited", info["when"]), ("Target", f"the output {info['target']}"),
        ("People", f"{info['people']:,} given; {words.whom(audit)}"),
        ("Threshold", f"{design['threshold']:g}, claim “{design['claim']}”, alpha {design['alpha']:g}"), ("Why this threshold", nouns.threshold_reason),
    )  # fmt: skip
    facts = [*(pair for pair in told if pair[1]), ("budge", info["version"])]
    facts += [(label, info[key]) for label, key in (("Python", "python"), ("NumPy", "numpy"), ("pandas", "pandas")) if info.get(key)]
    facts += [(str(name), str(version)) for name, version in info.get("packages", {}).items()]
    facts += [("Digest of the interaction model", _digest(info["spec_digest"])), ("Digest of the people", _digest(info["data_digest"]))]
    for name, digest in info.get("model_digests", {}).items():
        facts.append((f"Digest of {name}", _digest(digest) if digest else "not known: the model is a Python function or gives none"))
    facts += [("Seed", str(design["seed"])), ("Stream", design["purpose"]), ("Draws per person who is not listed", f"{design['n']:,} ({design['why_n']})")]
    facts.append(("Listed up to", f"{design['exact_limit']:,} points" if design["method"] != "sample" else "never: all were drawn"))
    return [(str(a), str(b)) for a, b in facts]


def _digest(digest: str | None) -> str:
    """Return a digest with its algorithm, which its length tells."""
    kind = {32: "BLAKE2b-128 ", 64: "SHA-256 "}.get(len(digest or ""), "")
    return f"{kind}{digest}" if digest else "not known"


def _command(audit: Audit, columns: Sequence[Any] = (), nouns: Wording | None = None) -> str:
    """Return the command that repeats the run: as it was typed, or as it would be; empty where the shell has no way to spell it.

    The columns of the report's groups and its words stand in it besides those of the audit.
    """
    if audit.info.get("command"):
        return str(audit.info["command"])
    design, chosen = audit.design, audit.info["population"]
    target = _target(audit.info["design"]["target"])
    own = (design.exact_limit, design.purpose, design.least_share, design.testing, design.power) != (EXACT_LIMIT, "draw", 0.1, True, 0.95)
    if target is None or chosen.startswith(MASK) or design.proposal is not None or own or any(labels for _, labels in design.groups):
        return ""
    models = [f"{name}=MODEL" for name in audit.models] if len(audit.models) > 1 else ["MODEL"]
    parts = ["budge", "audit", "SPEC.yaml", "PEOPLE.csv", *(part for name in models for part in ("--model", name)), "--target", target]
    parts += ["--threshold", _written(design.threshold), "--alpha", _written(design.alpha), "--claim", design.claim, "-n", str(design.draws)]
    parts += ["--sequential"] if design.sequential else []
    parts += ["--margin", _written(design.margin)] if design.sequential and design.margin is not None else []
    parts += ["--seed", str(design.seed), "--method", design.method, "--on-invalid", design.on_invalid, "--population", chosen, "--adjust", design.adjust]
    parts += ["--max-unresolved", _written(design.max_unresolved)] if design.max_unresolved != 0.1 else []
    parts += ["--harm", design.harm] if design.harm else []
    parts += ["--prove"] if design.prove else []
    parts += ["--prove-seconds", _written(design.prove_seconds)] if design.prove and design.prove_seconds is not None else []
    by = dict.fromkeys([*(column for column, _ in design.groups), *(column for column in columns if isinstance(column, str))])
    parts += [part for column in by for part in ("--by", column)]
    wording = audit.wording if nouns is None else audit.wording.but(**nouns.to_dict())
    words_ = wording.to_dict()
    parts += [part for name, text in words_.items() if isinstance(text, str) for part in (f"--{name.replace('_', '-')}", text)]
    parts += [part for name, text in wording.feature_labels.items() for part in ("--feature-label", f"{name}={text}")]
    for option, given in (("--group-label", wording.group_labels), ("--level-label", wording.level_labels)):
        parts += [part for column, own_ in given.items() for value, text in own_.items() for part in (option, f"{column}:{value}={text}")]
    return shlex.join(parts)


def _target(record: Mapping[str, Any]) -> str | None:
    """Return the target as the command line spells it, where it can."""
    if record.get("kind") != "labels" or len(record["values"]) != 1:
        return None
    (label,) = record["values"]
    for text in (str(label), json.dumps(label, ensure_ascii=False)):  # in quotes where a text alone would be read as something else
        read = parse_target(text) if text.strip() else None
        if isinstance(read, Labels) and len(read.values) == 1 and same_label(read.values[0], label):
            return text
    return None


def _written(value: float) -> str:
    """Return a number so that it is read again as the same."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))


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
