"""Four people in full: chosen by rule, each with a table of what decides, one sentence, and the least change that works."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.audit.cases import Case, Reached, cases_of, chosen
from budge.audit.recourse import in_full
from budge.audit.result import Audit
from budge.audit.summary import HOW, between
from budge.constraints import OneHot, Ordinal, Thermometer
from budge.interaction import InteractionModel
from budge.report.mosaic import MOST_CELLS, Axis, Mosaic, axes_of, mosaic
from budge.report.outputs import Scores, chart, compared, numbers_behind
from budge.report.people import at_most, number, steps
from budge.report.words import percent
from budge.wording import Wording, amount, shown

__all__ = ["Arranged", "Words", "arranged", "axes_in", "cases", "rho_shown", "rule"]

MOST_LEVELS = 4  # merged levels that are named one by one

_BLANK = {"cls": "", "scope": "", "across": 1, "down": 1, "title": "", "small": "", "key": ""}


def cases(audit: Audit, model: str, moved: Mapping[int, Any], nouns: Wording, im: InteractionModel | None = None) -> list[dict[str, Any]]:
    """Return what the report shows of the chosen people of one model; `moved` is what witnesses change, by row, and `im` that of a saved run."""
    if audit.context is not None:
        im = audit.context.im if isinstance(audit.context.im, InteractionModel) else None
    return [_case(audit, model, case, im, moved, nouns) for case in cases_of(audit, model, im)]


def rule(audit: Audit, model: str, found: Sequence[Mapping[str, Any]]) -> str:
    """Return the rule by which the cases of a model were chosen; in a saved run, who stands among them tells which one it was."""
    stuck: list[Any] = []
    usual = chosen(audit.rows[model].counts, audit.claims(model), stuck.append).values()
    first = "with the most points"
    if not all(case["at"] in usual for case in found):
        many = len(compared(audit, model, stuck[0]))
        first = "whose best output is closest to the target" + (f", of {many:,} who were compared" if many < len(stuck[0]) else "")
    return f"without a way (or without a hit), the person {first}; the lowest ρ between 0 and 1, the median, the highest; ρ = 1 if there is room."


def _case(audit: Audit, model: str, case: Case, im: InteractionModel | None, moved: Mapping[int, Any], nouns: Wording) -> dict[str, Any]:
    row, moves = {str(k): v for k, v in audit.of_model(model).iloc[case.at].items()}, steps(moved.get(case.at, ()), nouns)
    plan = [(nouns.feature(f), nouns.level(f, a) or in_full(a), nouns.level(f, b) or in_full(b)) for f, a, b in case.moves()]
    view: dict[str, Any] = {
        "kind": case.kind, "at": case.at, "label": shown(audit.rows[model].index[case.at]), "model": model,
        "prediction": shown(row["prediction"]), "say": _said(row, audit.design.alpha),
        "plan": {"moves": plan, "how": HOW[case.method] + _left_out(im)} if plan else None, "moves": moves,
        "changed": [str(f) for f, _, _ in moved.get(case.at, ())], "proof": _proof(row), "table": None, "caption": "", "needed": "",
        "chart": None, "best": "", "close": False,
    }  # fmt: skip
    points = case.points
    if points is None or im is None:
        return view
    scores = _scores(audit, model, case.at, points)
    if scores is not None:
        view |= {"chart": _chart(scores, points, nouns), "best": "" if points.hit.any() else _best(scores, points, nouns)}
    made = arranged(points, im, nouns, case.least, unanswered=bool(row["unresolved"]), scores=scores)
    if made is None:
        return view
    marks = {tag for line in made.table or () for cell in line for tag in ("now", "least") if tag in cell["cls"].split()}
    told = {"table": made.table, "caption": made.caption, "needed": made.needed, "now": "now" in marks, "least": "least" in marks}
    return view | told | {"close": made.close}


def _scores(audit: Audit, model: str, at: int, points: Reached) -> Scores | None:
    """Return the numbers behind a model's answers about points; None where it is not at hand or answers labels alone."""
    numbers = numbers_behind(audit, model)
    if points.asked is None or numbers is None:
        return None
    chunk, found = points.asked
    made = numbers.of(chunk.rows, found, audit.rows[model].prediction[at])
    return None if made is None or np.isnan(made.values).all() else made


def _chart(scores: Scores, points: Reached, nouns: Wording) -> dict[str, str] | None:
    """Return the outputs of all points as bars, with what they show in words."""
    now = np.flatnonzero((points.values == points.start).all(axis=1) & ~np.isnan(scores.values))
    here = None if not len(now) else float(scores.values[now[0]])
    every = "" if points.points == len(points.hit) else f" of {points.points:,}"
    kind = "points" if points.exact else "draws"
    told = f"{len(points.hit):,}{every} {kind} by the model's output"
    told += "" if scores.cut is None else f"; shaded: what {nouns.goal()} needs, {scores.needs()}"
    told += "" if here is None else f"; line: now, {scores.text(here)}"
    drawn = chart(scores, points.hit, told, here)
    return None if drawn is None else {"svg": drawn["svg"], "low": number(drawn["low"]), "high": number(drawn["high"]), "words": f"{told}."}


def _best(scores: Scores, points: Reached, nouns: Wording) -> str:
    """Return how near the points come to the target that none attains; nothing where the cut is not known."""
    if scores.cut is None:
        return ""
    of = "" if points.exact and points.points == len(points.hit) else " of the points in the table" if points.exact else " of the draws"
    return f"The best output{of} is {scores.text(scores.best)}; {nouns.goal()} needs {scores.needs()}."


def _left_out(im: InteractionModel | None) -> str:
    """Return what a plan leaves out: what happens after a change."""
    acted = ", ".join(dict.fromkeys(shown(e.feature) for e in im.effects)) if im is not None else ""
    return f"; what happens to {acted} afterwards is left out" if acted else ""


@dataclass(frozen=True)
class Arranged:
    """One person's points as a table of cells, with its caption, what every hit has, and the cell of each point (`key` of the table's cells)."""

    table: list[list[dict[str, Any]]] | None
    caption: str
    needed: str
    cell: list[str]
    close: bool  # cells hold outputs in the place of hits


def arranged(
    points: Reached, im: InteractionModel, nouns: Wording, least: npt.NDArray[np.float64] | None = None, *, unanswered: bool,
    scores: Scores | None = None, most: int = MOST_CELLS,
) -> Arranged | None:  # fmt: skip
    """Return the table of what decides; None where nothing moves.

    `least` is the least change, if one is known. `scores` are shown in the place of hits where no point or every point attains the target.
    """
    listed = points.exact and points.points == len(points.hit)
    known = listed and not unanswered
    axes = axes_in(points.values, points.start, im, listed=listed)
    if not axes:
        return None
    best = scores if scores is not None and scores.cut is not None and scores.whole is not None and len(np.unique(points.hit)) == 1 else None
    close = None if best is None else best.sign * best.values
    made = mosaic(axes, points.hit, points.weights, least, listed=known, outputs=close, most=most)
    words, kind = Words(points, axes, nouns, im), "points" if points.exact else "draws"
    table = _table(made, words, kind, weighted=points.weights.min() != points.weights.max(), best=best) if made.columns or made.rows else None
    order = (*made.rows, *made.columns)
    keys = np.stack([axes[k].merged(made.groups[k]) for k in order], axis=1).tolist() if order else [[]] * len(points.hit)
    return Arranged(
        table, _caption(made, words, points, kind, listed=listed, unanswered=unanswered, best=best), _needed(points, axes, words) if known else "",
        ["-".join(map(str, key)) for key in keys], best is not None,
    )  # fmt: skip


def axes_in(values: npt.NDArray[np.float64], start: npt.NDArray[np.float64], im: InteractionModel, *, listed: bool) -> list[Axis]:
    """Return the axes of some points of an interaction model: what people move themselves names one before what follows from it."""
    place = {f.name: j for j, f in enumerate(im.features)}
    parts = [sorted((place[name] for name in part.names), key=lambda j: im.features[j].actionable) for part in im.parts]
    return axes_of(values, start, parts, [f.type != "real" for f in im.features], listed=listed)


def _said(row: Mapping[str, Any], alpha: float) -> str:
    """Return one person's numbers in words; of draws, the bound that the terminal and the page state, and which it is."""
    if row["method"] == "none":
        return f"status {row['status']}"
    lost = f", {row['unresolved']:,} have no answer" if row["unresolved"] else ""
    ends = f"between {number(row['low'])} and {number(row['high'])}"
    equal = ". It equals the threshold: neither below nor above" if row["verdict"] == "at the threshold" else ""
    if row["method"] == "proved":
        known = rho_shown(row["rho"]) if row["rho"] == row["rho"] else between(row["low"], row["high"])
        return f"Responsiveness is {known}, proved from the model's structure over every reachable point{equal}"
    if row["method"] == "exact":
        told = f"{row['hits']:,} of {row['n']:,} reachable points {'attains' if row['hits'] == 1 else 'attain'} the target{lost}: ρ "
        told = told if row["n"] > 1 or lost else f"The only reachable point {'attains' if row['hits'] else 'does not attain'} the target: ρ "
        return told + (f"= {rho_shown(row['rho'])}, exactly" if row["rho"] == row["rho"] else f"is {ends}") + equal
    about = "about " if row["exactness"] == "approximate" else ""
    bound = f"ρ is {about}{ends} (two-sided, {percent(1 - alpha)})" if row["hits"] or lost else at_most(row["upper"], alpha, about)
    seen = f"{row['hits']:,} of {row['n']:,} draws {'attains' if row['hits'] == 1 else 'attain'} the target{lost}: {bound}"
    return f"{seen}; the draws come from a chain, and no error rate is guaranteed" if about else seen


def rho_shown(rho: float) -> str:
    """Return responsiveness to three figures, more where that would be 1 and is not.

    Examples
    --------
    >>> rho_shown(0.25), rho_shown(1.0), rho_shown(2999 / 3000)
    ('0.25', '1', '0.9997')
    """
    return number(rho) if rho == 1 or number(rho) != "1" else f"{1 - float(f'{1 - rho:.1g}'):.15g}"


def _proof(row: Mapping[str, Any]) -> str:
    """Return how it is known that there is no way; nothing where there may be one."""
    if row.get("proof") == "possible" and row["hits"] == 0:
        return "No draw attained the target. A point that does was found from the model's structure."
    if row["extreme"] != "none":
        return "No draw attained the target. That is no proof that there is no way." if row["hits"] == 0 and row["method"] not in ("exact", "proved") else ""
    if row["method"] == "exact" and row["n"] == 1:
        return "Proof: this person can reach one point only, and the model was asked about it."
    if row["method"] == "exact":
        return f"Proof: all {row['n']:,} points that this person can reach were listed, and the model was asked about each."
    return "Proved from the model's structure: no point that this person can reach attains the target."


class Words:
    """Names of axes and of their levels."""

    def __init__(self, points: Reached, axes: Sequence[Axis], nouns: Wording, im: InteractionModel) -> None:
        self.points, self.axes, self.nouns = points, axes, nouns
        self.groups = {c.scope: c.name for c in im.constraints if c.name and isinstance(c, OneHot | Ordinal | Thermometer)}

    def axis(self, k: int) -> str:
        """Return the feature's name, or for several the name of the constraint that holds them together."""
        names = [self.points.names[j] for j in self.axes[k].columns]
        named = next((self.nouns.feature(name) for scope, name in self.groups.items() if set(names) <= set(scope)), "")
        return named if named and len(names) > 1 else ": ".join([*([named] if named else []), ", ".join(self.nouns.feature(name) for name in names)])

    def axes_of(self, which: Iterable[int]) -> str:
        return "; ".join(self.axis(k) for k in which)

    def group(self, k: int, levels: Sequence[int]) -> str:
        """Return the name of merged levels: one, a range of numbers, or a list of what has no order."""
        axis = self.axes[k]
        first, last = self.level(k, levels[0]), self.level(k, levels[-1])
        if axis.ranges:
            return f"{number(axis.levels[levels[0], 0])} to {number(axis.levels[levels[-1], 1])}"
        if len(levels) == 1:
            return first
        if len(levels) == len(axis.levels):
            return "any"
        if len(levels) > 2 and len(axis.columns) == 1 and isinstance(self.value(k, levels[0]), Real):
            return f"{first} to {last}"
        if len(levels) > MOST_LEVELS:
            return f"{len(levels):,} {'levels' if len(axis.columns) == 1 else 'combinations'}"
        *rest, last = (self.level(k, level) for level in levels)
        return f"{', '.join(rest)} or {last}"

    def value(self, k: int, level: int) -> Any:
        axis = self.axes[k]
        return self.points.given(axis.columns[0], float(axis.levels[level, 0]))

    def level(self, k: int, level: int) -> str:
        axis = self.axes[k]
        if axis.ranges:
            return f"{number(axis.levels[level, 0])} to {number(axis.levels[level, 1])}"
        names, values = [self.points.names[j] for j in axis.columns], axis.levels[level]
        if len(names) == 1:
            return self.nouns.value(names[0], self.value(k, level))
        if set(np.unique(axis.levels).tolist()) <= {0.0, 1.0}:  # dummies: those that are on
            return ", ".join(self.nouns.feature(name) for name, value in zip(names, values) if value) or "none of them"
        return ", ".join(f"{self.nouns.feature(name)} {amount(self.points.given(j, v))}" for name, j, v in zip(names, axis.columns, values.tolist()))


def _needed(points: Reached, axes: Sequence[Axis], words: Words) -> str:
    """Return what every point that attains the target has, and not every point."""
    if points.hit.sum() < 2 or points.hit.all():
        return ""
    found = []
    for k, axis in enumerate(axes):
        levels = np.unique(axis.at[points.hit])
        if len(levels) == 1 and len(np.unique(axis.at)) > 1:
            found.append(f"{words.axis(k)}: {words.level(k, int(levels[0]))}")
    return f"Every point that attains the target has {' and '.join(found)}." if found else ""


def _table(made: Mosaic, words: Words, kind: str, *, weighted: bool, best: Scores | None) -> list[list[dict[str, Any]]]:
    """Return the rows of the table: heads of columns, then heads of rows and cells."""
    across, down = made.across, made.down
    lines: list[list[dict[str, Any]]] = []
    for depth, k in enumerate(made.columns):
        span = int(np.prod([len(made.groups[j]) for j in made.columns[depth + 1 :]], initial=1))
        times = int(np.prod([len(made.groups[j]) for j in made.columns[:depth]], initial=1))
        last = depth == len(made.columns) - 1
        corner = [{"tag": "td", "cls": "corner", "text": "", "across": len(made.rows)}] if made.rows else []
        names = [{"tag": "th", "cls": "axis", "text": words.axis(j), "scope": "col"} for j in made.rows]
        lines.append([*corner, {"tag": "th", "cls": "axis", "text": words.axis(k), "across": len(across), "scope": "colgroup"}])
        heads = [{"tag": "th", "text": words.group(k, group), "across": span, "scope": "col"} for _ in range(times) for group in made.groups[k]]
        lines.append([*(names if last else corner), *heads])
    if not made.columns:
        names = [{"tag": "th", "cls": "axis", "text": words.axis(j), "scope": "col"} for j in made.rows]
        lines.append([*names, {"tag": "td", "cls": "corner", "text": ""}])
    for key in down:
        line: list[dict[str, Any]] = []
        for depth, k in enumerate(made.rows):
            if all(v == 0 for v in key[depth + 1 :]):
                high = int(np.prod([len(made.groups[j]) for j in made.rows[depth + 1 :]], initial=1))
                line.append({"tag": "th", "text": words.group(k, made.groups[k][key[depth]]), "down": high, "scope": "row"})
        lines.append(line + [_cell(made, (*key, *other), kind, weighted=weighted, best=best) for other in across])
    return [[{**_BLANK, **cell} for cell in line] for line in lines]


def _cell(made: Mosaic, key: tuple[int, ...], what: str, *, weighted: bool, best: Scores | None) -> dict[str, Any]:
    cell = made.cells.get(key)
    if cell is None:
        return {"tag": "td", "cls": "gone", "text": "–", "title": f"no {what}"}
    hits = round(cell.hits * cell.points)
    kind = "yes" if cell.hits >= 1 - 1e-12 else "no" if cell.hits <= 0 else f"mix f{min(max(round(10 * cell.hits), 1), 9)}"
    share = percent(cell.hits, 0) if weighted else f"{hits:,}/{cell.points:,}"
    text = f"{cell.points:,}" if kind == "yes" else "0" if kind == "no" else share
    tags = [name for name, marked in (("now", cell.now), ("least", cell.least)) if marked]
    told = f"{percent(cell.hits)} of {cell.points:,} {what}" if weighted else f"{hits:,} of {cell.points:,} {what}"
    told += " attain the target"
    if best is not None:
        text = best.text(best.sign * cell.best, large=10)
        told += f", {best.extreme} output {text}"
    return {"tag": "td", "cls": " ".join([kind, *tags]), "text": text, "small": ", ".join(tags), "title": told, "key": "-".join(map(str, key))}


def _caption(
    made: Mosaic, words: Words, points: Reached, kind: str, *, listed: bool, unanswered: bool, best: Scores | None = None
) -> str:
    """Return what the numbers are, and what is not shown; that something changes nothing only where every point is listed and has an answer."""
    known = listed and not unanswered
    moved = words.axes_of(range(len(words.axes)))
    if not made.columns and not made.rows:
        if known and not made.cut:
            return f"Whatever values within reach these take, alone or together, {'every' if points.hit.all() else 'no'} point attains the target: {moved}."
        return f"The {kind} differ in {moved}" + (", with too many values for a table." if points.hit.any() else ".")
    mixed = any(0 < cell.hits < 1 for cell in made.cells.values())
    differ = "; where they differ, their share by weight" if points.weights.min() != points.weights.max() else ", of all in the cell where they differ"
    told = f"Number: {kind} in the cell that attain the target{differ if mixed else ''}."
    told = told if best is None else f"Number: the {best.extreme} output in the cell."
    told += "" if listed or not points.exact else f" {len(points.hit):,} of the {points.points:,} points are in the table, chosen at random."
    told += f" {kind.capitalize()} without an answer are counted as if they did not." if unanswered else ""
    if not known:
        return told + (f" Not shown: {words.axes_of((*made.idle, *made.cut))}." if made.idle or made.cut else "")
    if made.idle:
        why = "it makes no difference once the others are fixed" if best is None else "it changes the output little"
        told += f" Not shown, because {why}: {words.axes_of(made.idle)}."
    if not made.cut:
        return told
    return told + f" {'Decides within a mixed cell' if best is None else 'Changes the output, too'}, not shown for room: {words.axes_of(made.cut)}."
