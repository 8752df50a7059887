"""The first screen of a report, and the first lines of a terminal: one sentence, how many people stand where, what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.audit.design import Design
from budge.audit.result import Audit
from budge.audit.summary import Summary
from budge.audit.tally import Tally
from budge.errors import BudgeError
from budge.report.figures.strip import CATEGORIES, WIDTHS, Marks, mark, strip, unit_of
from budge.report.words import count, percent
from budge.stats import Claims
from budge.stats.claims import EXTREMES
from budge.stats.counts import STATUSES, Counts
from budge.wording import Wording

__all__ = ["MORE", "Answer", "Told", "answer", "category_words", "claim_words", "harmed_of", "marks_of", "told_of", "undecided_by_draws"]

DRAWN = ("sample", "sequential", "weighted")
MORE = 4  # times as many draws as there were, where more are advised
LONG_GOAL = 40  # characters of the target's name beyond which an axis leaves it out


def _empty(counts: Counts) -> npt.NDArray[np.bool_]:
    """Return whose draws all miss the target, all of them answered, without a way that a proof has found."""
    return np.asarray(~counts.is_law("exact", "proved") & ~counts.way & (counts.unresolved == 0))


def _categories(counts: Counts, claims: Claims) -> npt.NDArray[np.int8]:
    """Return the category of each row, as codes.

    No way at all is known only where points were listed or a proof was found; draws without a hit are a category of their own.
    """
    tests = {
        "none": claims.extreme_code == EXTREMES.index("none"), "nohit": _empty(counts), "below": claims.has("below"),
        "at": claims.has("at the threshold"), "above": claims.has("above"),
    }  # fmt: skip
    names = np.select([np.asarray(test, dtype=bool) for test in tests.values()], [CATEGORIES.index(name) for name in tests], CATEGORIES.index("open"))
    return names.astype(np.int8)


def marks_of(audit: Audit, model: str) -> Marks:
    """Return the people of one model who were judged, as marks: in which category, and where."""
    counts, claims = audit.rows[model].counts, audit.claims(model)
    judged = ~counts.is_law("none")
    none, every = claims.extreme == "none", claims.extreme == "every"
    middle = np.where(np.isnan(claims.rho), (claims.low + claims.high) / 2, claims.rho)
    codes = _categories(counts, claims)
    left, right = none | (codes == CATEGORIES.index("nohit")), np.asarray(every, dtype=bool)
    return Marks(np.clip(middle, 0, 1)[judged], codes[judged], left[judged], right[judged])


@dataclass(frozen=True)
class Told:
    """What is told of one model, from how many people have the same counts: also of a stream of people."""

    summary: Summary
    numbers: Mapping[str, int]  # people by category: these add up to everybody who was judged
    harmed: int  # people on the side of the design's claim
    headline: str
    share: str
    left_out: str
    how: str
    lost: str

    @property
    def judged(self) -> int:
        """How many people were judged."""
        return sum(self.numbers.values())


def told_of(audit: Audit, model: str, nouns: Wording, *, brief: bool = False) -> Told:
    """Return what is told of one model; with `brief` the share and the threshold stand in the first sentence."""
    found, tally = audit.summary(model), audit.tally(model)
    codes = _categories(tally.counts, tally.claims)
    numbers = {name: tally.number(tally.judged & (codes == k)) for k, name in enumerate(CATEGORIES)}
    judged, harmed = sum(numbers.values()), harmed_of(tally, audit.design)
    listed = tally.counts.is_law("exact")
    points = sum(int(n) * int(k) for n, k in zip(tally.counts.n[listed].tolist(), tally.people[listed].tolist()))
    facts = (_left_out(found, judged, nouns), _how(found, judged, points), _lost(found)) if judged else ("", "", "")
    return Told(
        found, numbers, harmed, _headline(audit, model, numbers, found, nouns, harmed, brief=brief),
        _share(found, harmed, judged, model) if judged and not brief else "", *facts,
    )  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What the first screen shows of one model."""

    kicker: str
    headline: str
    lede: list[str]
    legend: list[dict[str, Any]]
    strips: dict[str, str]  # SVG by medium
    caption: str
    harmed: int  # people on the side of the design's claim
    people: int


def answer(audit: Audit, model: str, nouns: Wording, *, groups: str = "") -> Answer:
    """Return the answer for one model; `groups` is a sentence about groups that is added to it."""
    told, marks = told_of(audit, model, nouns), marks_of(audit, model)
    judged, tau = told.judged, audit.design.threshold
    lede = [line for line in (told.share, told.left_out, _having(audit, model, nouns), told.how, told.lost, groups) if line] if judged else []
    return Answer(
        kicker=" · ".join(part for part in (str(audit.info["name"] or ""), _under(model, "model {}"), f"audited on {_day(audit.info['when'])}") if part),
        headline=told.headline, lede=lede, legend=_legend(marks, tau, audit.design.claim, judged) if judged else [],
        strips={medium: strip(marks, tau, medium, axis=_axis(medium, nouns)) for medium in WIDTHS} if judged > 1 else {},
        caption=_caption(audit, told, marks, nouns), harmed=told.harmed, people=judged,
    )  # fmt: skip


def harmed_of(tally: Tally, design: Design) -> int:
    """Return how many people have the verdict that the design's claim leads to; those without any way are below every threshold."""
    claims = tally.claims
    if design.claim == "above":
        return tally.number(claims.has("above"))
    return tally.number(claims.has("below") | (claims.extreme_code == EXTREMES.index("none")))


def undecided_by_draws(audit: Audit, model: str) -> int:
    """Return how many people more draws may decide: nobody whose points are listed, or who stays open for missing answers or under a rule for more draws."""
    tally, design = audit.tally(model), audit.design
    counts = tally.counts
    lost = (counts.unresolved > 0) & (counts.hit_mass <= design.threshold) & (counts.hit_mass + counts.lost_mass >= design.threshold)
    open_ = tally.claims.has("inconclusive") & ~lost  # draws without an answer may lie on either side
    drawn, stopped = open_ & counts.is_law("sample", "weighted"), open_ & counts.is_law("sequential")
    if not stopped.any():
        return tally.number(drawn)
    rule = design.but(n=MORE * design.draws).rule
    assert rule is not None
    hits = counts.hits + (counts.unresolved if design.claim == "below" else 0)  # draws without an answer count against the claim
    drawn[stopped] = np.asarray(rule.decide(hits[stopped], counts.n[stopped])) == "continue"
    return tally.number(drawn)


def _under(model: str, words: str) -> str:
    """Return words with the model's name; nothing where it has none of its own."""
    return "" if model == "model" else words.format(model)


def _day(when: str) -> str:
    """Return a date in words: 17 November 2026."""
    day = datetime.fromisoformat(when)
    return f"{day.day} {day:%B %Y}"


def _axis(medium: str, nouns: Wording) -> str:
    goal = nouns.goal() if len(nouns.goal()) <= LONG_GOAL else "the target"
    return "ρ: share of reachable points" if medium == "phone" else f"ρ: share of the points within a person's reach that lead to {goal}"


def _known(found: Summary) -> bool:
    """Return whether nothing rests on draws."""
    return not any(found.methods.get(how) for how in DRAWN)


def _sure(found: Summary) -> bool:
    """Return whether everybody's verdict is known: nothing was drawn, and nobody is open for missing answers or between proved ends."""
    return _known(found) and not found.verdicts.get("inconclusive")


def _headline(audit: Audit, model: str, numbers: Mapping[str, int], found: Summary, nouns: Wording, harmed: int, *, brief: bool) -> str:
    judged, design, target = sum(numbers.values()), audit.design, nouns.target(audit.info)
    if not judged:
        return _nobody(found, nouns)
    if judged == 1:
        return _one(audit, model, nouns)
    whom, none = f"{judged:,} {nouns.people(judged)}", numbers["none"]
    have = _have(harmed) if _sure(found) else f"{'was' if harmed == 1 else 'were'} found to have"
    if brief and (harmed or none):
        whom += f" ({percent((none if design.threshold == 0 and design.claim == 'below' else harmed) / judged)})"
    still = f"; for {found.open_ways:,} it is not known whether they have one" if found.open_ways else ""
    if design.claim == "above":
        every = f"; {found.every_way:,} cannot miss it" if found.every_way else ""
        way = "a way" if design.threshold == 0 else f"more than {percent(design.threshold)} of their points at"
        return f"{harmed:,} of {whom} {have} {way} {'to ' if design.threshold == 0 else ''}{target}{every}."
    if none and (none == harmed or design.threshold == 0):
        has = have if none == harmed and _known(found) else _have(none)
        return f"{none:,} of {whom} {has} no way at all to {target}{still if design.threshold == 0 else ''}."
    if harmed:
        rest = f"; {none:,} {_have(none)} none at all" if none else "; each has at least one" if found.open_ways == 0 else ""
        return f"{harmed:,} of {whom} {have} almost no way to {_with_tau(target, design, brief=brief)}{rest}."
    if numbers["open"] == judged and design.threshold:
        return f"All {whom} are undecided: of nobody is it shown whether they have almost no way to {_with_tau(target, design, brief=brief)}."
    if found.open_ways:
        return f"None of the {whom} was found to have {'no' if design.threshold == 0 else 'almost no'} way to {_with_tau(target, design, brief=brief)}{still}."
    open_ = numbers["open"]
    undecided = f"; {open_:,} {'is' if open_ == 1 else 'are'} undecided" if open_ and design.threshold else ""
    return f"All {whom} have a way to {target}{undecided}."


def _with_tau(target: str, design: Design, *, brief: bool) -> str:
    """Return the target with what almost no way means, where that is told nowhere else."""
    if not brief or not design.threshold:
        return target
    told = f"ρ below {design.threshold:g}"
    return f"{target[:-1]}; {told})" if target.endswith(")") else f"{target} ({told})"


def _have(n: int) -> str:
    return "has" if n == 1 else "have"


def _nobody(found: Summary, nouns: Wording) -> str:
    """Return why nobody was judged, and what to do."""
    if not found.given:
        return "Nobody was judged: no people were given."
    if found.already == found.given:
        whom = f"all {found.given:,} people who were given have" if found.given > 1 else "the only person has"
        return f"Nobody was judged: {whom} {nouns.goal()} already. The population “all” takes everyone."
    if not found.people:
        return f"Nobody was judged: the population leaves none of {found.given:,} {nouns.people(found.given)}. Choose another population."
    if found.verdicts.get("not_exact") == found.people:
        whom = f"any of {found.people:,} {nouns.people(found.people)}" if found.people > 1 else "the only person"
        return f"Nobody was judged: the points of {whom} cannot be listed, and the audit was to list only. The method “auto” draws them."
    told = ", ".join(f"{count:,} {word.replace('_', ' ')}" for word, count in found.verdicts.items())
    return f"Nobody was judged: of {found.people:,} {nouns.people(found.people)}, {told}. What these words mean is told below, under “What a verdict promises”."


def _one(audit: Audit, model: str, nouns: Wording) -> str:
    (row,) = (row for part in audit.in_memory(model) for row in part.of_model(model).to_dict(orient="records") if row["method"] != "none")
    kind = "reachable points" if row["method"] == "exact" else "points that were drawn"
    if row["method"] == "proved":
        words = {"none": "no way at all", "every": "no way to miss it"}.get(row["extreme"], f"between {row['low']:.3g} and {row['high']:.3g} of all points")
        return f"One person was judged. To {nouns.target(audit.info)} there is, by proof, {words}."
    return f"One person was judged: {row['hits']:,} of {row['n']:,} {kind} {'attains' if row['hits'] == 1 else 'attain'} {nouns.target(audit.info)}."


def _share(found: Summary, harmed: int, judged: int, model: str) -> str:
    return f"That is {percent(harmed / judged)}{_under(model, ', under {}')}." if harmed and judged > 1 else ""


def _left_out(found: Summary, judged: int, nouns: Wording) -> str:
    """Return who is not among the people of the first sentence."""
    told = []
    if found.already and found.info["population"] == "outside":
        told.append(f"{found.already:,} of {found.given:,} {_have(found.already)} {nouns.goal()} already and {'is' if found.already == 1 else 'are'} left out.")
    if found.people > judged:
        why = ", ".join(word.replace("_", " ") for word in found.verdicts if word in STATUSES)
        told.append(f"{found.people - judged:,} more could not be judged ({why}).")
    about = {"all": found.given, "outside": found.given - found.already}.get(str(found.info["population"]), found.people)
    if about > found.people:
        gone = about - found.people
        told.append(f"{gone:,} more {'was' if gone == 1 else 'were'} set aside, since the run did not finish.")
    return " ".join(told)


def _having(audit: Audit, model: str, nouns: Wording) -> str:
    """Return how many of the people who were judged have the target already, and what holds of the others; nothing where none has."""
    rows, claims, design = audit.rows[model], audit.claims(model), audit.design
    try:
        has = np.asarray(design.target.hits(rows.prediction, rows.prediction), dtype=bool) & ~rows.counts.is_law("none")
    except BudgeError:  # the target was Python code
        return ""
    if not has.any():
        return ""
    others = ~has & ~rows.counts.is_law("none")
    side = (claims.verdict == "above") if design.claim == "above" else (claims.verdict == "below") | (claims.extreme == "none")
    harmed, many = int((side & others).sum()), int(others.sum())
    have = _have(harmed) if _sure(audit.summary(model)) else f"{'was' if harmed == 1 else 'were'} found to have"
    rest = f" Of the other {many:,}, {harmed:,} {have} {claim_words(design)}." if many else ""
    if len(rows.index) == 1:
        return f"They have {nouns.goal()} as they are."
    return f"{int(has.sum()):,} of these people {_have(int(has.sum()))} {nouns.goal()} as they are.{rest}"


def claim_words(design: Design) -> str:
    """Return what the design's claim states of a person, in words."""
    if design.claim == "above":
        return "some way" if design.threshold == 0 else f"ρ above {design.threshold:g}"
    return "no way at all" if design.threshold == 0 else "almost no way"


def _how(found: Summary, judged: int, listed: int) -> str:
    """Return on what the figure rests: every point (so many were `listed`), a proof, or draws with their error."""
    if _known(found):
        proved = found.methods.get("proved", 0)
        if found.between_ends or found.unresolved:
            return found.sentences()[2] if found.share is not None and judged > 1 else ""
        if proved == judged:
            return "This is proved from the model's structure, over every point that these people can reach."
        some = f"{count(proved, 'person', 'people')} by proof, and for the others " if proved else ""
        whom = "they" if proved else "this person" if judged == 1 else "these people"
        return f"The figure is exact: {some}all {count(listed, 'point')} that {whom} can reach were listed, and the model was asked about each."
    if found.share is None:
        return ""
    share, side = found.share, f"are {found.design.claim} the threshold"
    if found.design.threshold == 0:
        return f"{found.asked:,} points were asked about. One hit shows a way; no number of draws shows that there is none."
    if judged == 1:
        return _one_drawn(found)
    low, high = percent(share.low), percent(share.high)
    ends = f"between {low} and {high} of these people {side}" if low != high else f"{low} of these people {side}"
    open_ = found.verdicts.get("inconclusive", 0)
    undecided = f"; {open_:,} {'is' if open_ == 1 else 'are'} undecided" if open_ else ""
    if found.approximate:
        return f"{found.asked:,} points were asked about. Approximately {ends}{undecided}; no error rate is guaranteed, since points were drawn by a chain."
    return f"{found.asked:,} points were asked about. With the error of every verdict allowed for, {ends} ({percent(1 - share.alpha)} confidence){undecided}."


def _one_drawn(found: Summary) -> str:
    """Return what draws show of the only person who was judged."""
    verdict = next((word for word in ("below", "above") if found.verdicts.get(word)), "")
    error = f"wrong with probability at most {percent(found.design.alpha)}"
    error = "no error rate is guaranteed, since points were drawn by a chain" if found.approximate else error
    told = f"the verdict is that ρ is {verdict} the threshold {found.design.threshold:g} ({error})" if verdict else "no side of the threshold is shown"
    return f"{count(found.asked, 'point was', 'points were')} asked about; {told}."


def _lost(found: Summary) -> str:
    lost = found.unresolved
    return f"{count(lost, 'point has', 'points have')} no answer; {'it is' if lost == 1 else 'they are'} counted against every claim." if lost else ""


def category_words(tau: float, claim: str) -> dict[str, str]:
    """Return what the categories are called."""
    below = f"almost none, ρ under {tau:g}" if claim == "below" else f"less than {tau:g}"
    return {
        "none": "no way at all", "nohit": "no hit, not proved", "below": below, "at": f"exactly {tau:g}", "open": "undecided",
        "above": "some way" if tau == 0 else f"more than {tau:g}",
    }  # fmt: skip


def _legend(marks: Marks, tau: float, claim: str, judged: int) -> list[dict[str, Any]]:
    """Return the categories that have people, with their counts: these add up to everybody."""
    words = category_words(tau, claim)
    shown = [name for name in CATEGORIES if marks.count(name) or (name in ("below", "above") and tau > 0 and judged > 1)]
    return [
        {
            "swatch": f'<svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">{mark(8, 8, name, 5.6)}</svg>', "count": marks.count(name),
            "words": f"{words[name]} ({percent(marks.count(name) / judged, 0)})" if judged > 1 else words[name],
        }
        for name in shown
    ]  # fmt: skip


def _caption(audit: Audit, told: Told, marks: Marks, nouns: Wording) -> str:
    unit, tau = unit_of(marks) if len(marks.rho) else 1, audit.design.threshold
    each = f"One mark is one of {len(marks.rho):,} {nouns.people(len(marks.rho))}." if unit == 1 else f"One mark is {unit:,} people; numbers count everybody."
    model = told.summary.model
    drawn = " It is estimated from draws." if not _known(told.summary) else ""
    rule = f" “Almost no way” means ρ below the threshold {tau:g}." if tau > 0 and audit.design.claim == "below" else ""
    unknown = np.isnan(audit.claims(model).rho) & ~audit.rows[model].counts.is_law("none")
    lost = " A person whose ρ is known only between two ends stands in their middle." if unknown.any() else ""
    who = _under(model, "{}") or "the model"
    return f"{each} ρ (responsiveness) is the share of the points that a person can reach at which {who} gives {nouns.goal()}.{drawn}{rule}{lost}"
