"""The sentences of a report: what was asked, what is assumed, what the claims cover and what they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from budge.audit.design import MASK
from budge.audit.result import Audit
from budge.interaction import InteractionModel
from budge.wording import percent

__all__ = ["GLOSSARY", "adjustment", "asked", "assumptions", "count", "covers", "guarantees", "leaves_open", "measure", "percent", "whom"]

#: What the words of a report mean.
GLOSSARY = (
    ("Point", "one combination of feature values that a person can reach under the interaction model, chance included"),
    ("Target", "the outputs of the model that count as a change"),
    ("ρ (responsiveness)", "the share of the points that a person can reach at which the model gives the target"),
    ("No way at all", "ρ = 0, known because all points were listed or because it is proved; draws alone never show it"),
    ("Threshold τ", "the responsiveness against which people are judged; below it they have almost no way"),
    ("Witness", "a point that a person can reach and that attains the target; the model was asked about it twice"),
    ("Interaction model", "the features that can move, the limits and rules for them, and what follows from what"),
)
_ADJUSTMENTS = {
    "bh": (
        "Benjamini and Hochberg: among the people whose claim has an adjusted p-value below {alpha}, the expected share of wrong claims is at "
        "most {alpha}"
    ),
    "holm": "Holm: the probability that even one of the claims with an adjusted p-value below {alpha} is wrong is at most {alpha}",
    "bonferroni": "Bonferroni: the probability that even one of the claims with an adjusted p-value below {alpha} is wrong is at most {alpha}",
    "none": "no adjustment was made: the adjusted p-values are the plain ones, and each claim stands by itself",
}
_STATUSES = {
    "fixed": "the only feasible action is to stay, so that responsiveness is exactly 0 or 1",
    "empty": "no action is feasible, not even to stay: there is no responsiveness to report, and none is",
    "invalid_start": "the person breaks the interaction model before they move, and was skipped",
    "not_exact": "the reachable points cannot be listed, and the audit was to list only",
}


def count(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: 1 person, 2 people."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def asked(audit: Audit) -> list[str]:
    """Return what was asked, in plain words."""
    info, design = audit.info, audit.design
    name = f" “{info['name']}”" if info["name"] else ""
    said = [
        f"{count(info['people'], 'person', 'people')} {'was' if info['people'] == 1 else 'were'} given, and the audit is about {whom(audit)}. For each "
        f"person the question is: of all the points that they can reach under the interaction model{name}, for what share is it "
        f"true that the output {info['target']}? This share is the person's responsiveness, ρ.",
        "A responsiveness of 0 means that nothing a person can do leads to the target (no way at all); a responsiveness of 1 means that everything does. "
        + _claim(design.threshold, design.claim),
    ]
    if len(audit.models) > 1:
        said.append(_models(audit))
    if info.get("harm"):
        said.append(
            f"It was declared before that the verdict “{info['harm']}” is a harm. Whether a verdict is good or bad is the reader's declaration, "
            "not a finding."
        )
    return said


def whom(audit: Audit) -> str:
    """Return which of the people the audit is about."""
    population, models = audit.info["population"], audit.models
    rows = len(audit.rows[models[0]].index)
    already = audit.info.get("already", {}).get(models[0], 0)
    if population == "all":
        return "all of them"
    if population == "outside":
        who = "those who do not have the target yet"
        return f"{who}: {rows:,} of them ({already:,} already {'has' if already == 1 else 'have'} it)" if len(models) == 1 else who
    return f"{rows:,} of them" + ("" if population.startswith(MASK) else f", chosen by “{population}”")


def _claim(threshold: float, claim: str) -> str:
    if threshold == 0:
        return "The question for each person is whether they have any way at all (τ = 0)."
    return f"The claim that was tested for each person is that ρ is {claim} the threshold τ = {threshold:g}."


def _models(audit: Audit) -> str:
    """Return whom the models were asked about: only models of the same people were asked about the same points."""
    rows = [audit.rows[name] for name in audit.models]
    if all(np.array_equal(rows[0].place, other.place) for other in rows[1:]):
        points = "draws of each person, each model until a rule had decided" if audit.design.sequential else "points of the same people"
        return f"{len(rows)} models were asked about the same {points}: {', '.join(audit.models)}."
    each = ", ".join(f"{name} about {count(len(own.index), 'person', 'people')}" for name, own in audit.rows.items())
    both = set.intersection(*(set(own.place.tolist()) for own in rows))
    return (
        f"{len(rows)} models were asked: {each}; {len(both):,} are the same people for all models. Where models were asked about the same person, "
        "they were asked about the same points."
    )


def measure(audit: Audit, im: InteractionModel | None) -> list[str]:
    """Return what responsiveness is a share of."""
    if audit.info.get("measure") is None:
        return ["Points were drawn by the caller's own procedure; responsiveness is the probability of the target under it."]
    if audit.info["measure"] == "volume":
        said = [
            "Responsiveness is a share of the reachable set by volume: every feasible action weighs the same, and continuous features count by "
            "length, area or volume."
        ]
    else:
        said = [
            "Responsiveness is a share of the reachable set. The features fall into parts that move independently of each other. In each part every feasible "
            "configuration of the discrete features weighs the same; then the continuous features are uniform over what that configuration leaves open."
        ]
    if im is not None:
        odd = [f.name for f in im.features if f.distribution is not None and f.distribution.kind != "uniform"]
        if odd:
            said.append(f"Not uniform, but with the weights that the interaction model declares: {', '.join(odd)}.")
        if im.effects:
            acted = ", ".join(dict.fromkeys(e.feature for e in im.effects))
            said.append(
                f"After the action, chance acts on {acted}, as listed in the appendix under effects of chance. ρ is the probability of the target over the "
                "action and over chance; no outcome of chance is rejected."
            )
    said.append("To stay as one is counts as a reachable point where the interaction model allows it, and only there.")
    if audit.info["design"].get("proposal"):
        said.append("Points were drawn from another distribution and weighted back, so that the share refers to the measure above.")
    return said


def guarantees(audit: Audit) -> list[str]:
    """Return what a verdict promises: one paragraph per way in which points came about."""
    design, table = audit.design, audit.table
    drawn = table["method"].isin(("sample", "sequential", "weighted"))
    rough = drawn & (table["exactness"] == "approximate")
    counts = table["method"][~rough].value_counts()
    said = [_law(name, int(counts[name]), audit) for name in ("exact", "proved", "sample", "sequential", "weighted") if counts.get(name, 0)]
    if rough.any():
        said.append(
            f"Approximate ({_rows(audit, int(rough.sum()))}): a part of what these people can reach was drawn by a chain, whose draws follow their law only "
            "approximately. Intervals, p-values and verdicts are computed as for independent draws, and no error rate is guaranteed."
        )
    if drawn.any() and design.threshold > 0:
        said.append("“Inconclusive” states that neither side was shown; it does not state that ρ is near the threshold.")
    if (drawn & ~rough).any() and design.threshold > 0:
        said.append(adjustment(design.adjust, design.alpha))
    for status in ("fixed", "empty", "invalid_start", "not_exact"):
        many = int((table["status"] == status).sum())
        if many:
            said.append(f"{status.replace('_', ' ').capitalize()} ({many:,}): {_STATUSES[status]}.")
    lost = int(table["unresolved"].sum())
    if lost:
        said.append(f"{lost:,} points have no answer from the model. They are counted against every claim: verdicts hold for every way to fill them in.")
    return said


def _rows(audit: Audit, many: int) -> str:
    """Return a number of people, or of rows of people and models where there are several."""
    return count(many, "person", "people") if len(audit.models) == 1 else count(many, "row of a person and a model", "rows of a person and a model")


def _law(name: str, many: int, audit: Audit) -> str:
    design, whom = audit.design, _rows(audit, many)
    tau, alpha = design.threshold, percent(design.alpha)
    if name == "exact":
        lost = bool(((audit.table["method"] == "exact") & (audit.table["unresolved"] > 0)).any())
        known = "ρ is known where every point has an answer, and lies between known ends elsewhere" if lost else "ρ is known"
        equal = int(((audit.table["verdict"] == "at the threshold") & (audit.table["method"] == "exact")).sum())
        ties = f" For {_rows(audit, equal)} ρ equals the threshold exactly: at the threshold, neither below nor above." if equal else ""
        return (
            f"Exact ({whom}): every reachable point was listed and the model was asked about each. {known}; there is no p-value, and the "
            f"verdict cannot be wrong about this model and this set.{ties}"
        )
    if name == "proved":
        return (
            f"Proved ({whom}): it follows from the model's structure, over every reachable point, that none attains the target, that all do, how many do, or "
            "between which ends ρ lies. "
            "The structure was compared with the model's own answers before it was used; there is no p-value, and the verdict cannot be wrong about this model."
        )
    if tau == 0:
        return (
            f"Drawn ({whom}): a draw that attains the target proves that there is a way (“above”). No number of draws proves that there is none, so that "
            "people without such a draw stay inconclusive; their interval bounds ρ."
        )
    errors = (
        f"A false “below” (given to a person whose ρ is {tau:g} or more) has probability at most {alpha} per person, and so has a false “above” (given to "
        f"one whose ρ is {tau:g} or less). The interval misses the true ρ with probability at most {alpha}."
    )
    if name == "sequential":
        rule = f" The rule stops at the level {design.level:.3g}, so that its verdicts survive the adjustment for many people."
        held = " This holds wherever the test stopped." + ("" if design.level == design.alpha else rule)
        return f"Sequential ({whom}): points were drawn until a rule had decided for or against the claim, at most {design.draws:,}. {errors}{held}"
    if name == "weighted":
        return f"Weighted ({whom}): {design.draws:,} points were drawn per person from another distribution and weighted back. {errors}"
    return f"Sampled ({whom}): {design.draws:,} points were drawn independently per person ({design.why_n}). {errors}"


def adjustment(name: str, alpha: float) -> str:
    """Return how many tests at once are accounted for."""
    text = _ADJUSTMENTS[name].format(alpha=f"{alpha:g}")
    if name == "none":
        return f"Each verdict stands by itself: among many people some are wrong by chance ({text})."
    return f"Each verdict stands by itself: among many people some are wrong by chance. The adjusted p-values account for that ({text})."


def covers(audit: Audit) -> list[str]:
    """Return what the claims are about."""
    info: Mapping[str, Any] = audit.info
    return [
        "the model as it was when it was asked" + (" (its digest is given at the end)" if any(info.get("model_digests", {}).values()) else ""),
        "the people who were audited, one by one; shares are shares of these people, not of a larger population",
        "this interaction model and this measure: another view of what people can do may lead to another verdict",
    ]


def leaves_open(audit: Audit) -> list[str]:
    """Return what the claims leave open."""
    return [
        "whether the interaction model is right: which features can move, how far, and what follows from what, are the auditor's statements",
        "how hard, costly or likely an action is for a person: every feasible one weighs as the measure says",
        "people who were not audited, and the model after it has been changed or trained again",
        "whether the target is good for the person in truth: it is about what the model answers",
    ]


def assumptions(audit: Audit) -> list[str]:
    """Return what is taken for granted, beyond the interaction model."""
    design = audit.info["design"]
    said = [
        "the model gives the same answer to the same question; unless checks were switched off, this was tried on some rows before the audit and on "
        "people as they are after it"
    ]
    if design["on_invalid"] == "skip":
        said.append("people who break the interaction model before they move were skipped")
    elif design["on_invalid"] == "keep":
        said.append("people who break the interaction model before they move were kept, and move from where they stand")
    if audit.info.get("twins"):
        stand = "person stands exactly as another does and shares" if audit.info["twins"] == 1 else "people stand exactly as another does and share"
        said.append(f"{audit.info['twins']:,} {stand} that person's draws; bounds on shares account for it")
    return said
