"""The sentences of a report: what was asked, what is assumed, what the claims cover and what they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budge.audit.result import Audit
from budge.audit.run import MASK
from budge.interaction import InteractionModel

__all__ = ["adjustment", "asked", "assumptions", "count", "covers", "guarantees", "leaves_open", "measure", "percent"]

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
    "invalid_start": "the person breaks the interaction model before she moves, and was skipped",
    "not_exact": "the reachable points cannot be listed, and the audit was to list only",
}


def count(n: int, noun: str, plural: str = "") -> str:
    """1 person, 2 people."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def percent(share: float, digits: int = 1) -> str:
    """A share in per cent, never rounded to nothing or all."""
    if share != share:
        return "–"
    shown = f"{100 * share:.{digits}f}"
    if (float(shown) == 0 and share > 0) or (float(shown) == 100 and share < 1):
        return f"{100 * share:.3g} %"
    return f"{shown.rstrip('0').rstrip('.') if '.' in shown else shown} %"


def asked(audit: Audit) -> list[str]:
    """What was asked, in plain words."""
    info, design = audit.info, audit.info["design"]
    models = audit.models
    rows = len(audit.of_model(models[0]))
    whom = {
        "all": "all of them",
        "outside": f"those whose output was not yet in the target: {rows:,} of them" if len(models) == 1 else "those whose output was not yet in the target",
    }.get(info["population"], f"{rows:,} of them" + ("" if info["population"].startswith(MASK) else f", chosen by “{info['population']}”"))
    side = "below" if design["claim"] == "below" else "above"
    said = [
        f"{count(info['people'], 'person', 'people')} were given, and the audit is about {whom}. For each person the question is: of all the points "
        f"that she can reach under the interaction model “{info['name'] or 'unnamed'}”, for what share is it true that the output {info['target']}? "
        "This share is her responsiveness, ρ.",
        f"A responsiveness of 0 means that nothing she can do leads to the target; a responsiveness of 1 means that everything does. The claim that was "
        f"tested for each person is that ρ is {side} the threshold τ = {design['threshold']:g}.",
    ]
    if len(models) > 1:
        said.append(f"{len(models)} models were asked about the very same points: {', '.join(models)}.")
    if info.get("harm"):
        said.append(
            f"It was declared before that the verdict “{info['harm']}” is a harm. Whether a verdict is good or bad is the reader's declaration, "
            "not a finding."
        )
    return said


def measure(audit: Audit, im: InteractionModel | None) -> list[str]:
    """Uniform, over what."""
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
                f"After the action, chance acts on {acted}, as listed above under effects. ρ is the probability of the target over the action and "
                "over chance; no outcome of chance is rejected."
            )
    said.append("To stay as one is counts as a reachable point where the interaction model allows it, and only there.")
    if audit.info["design"].get("proposal"):
        said.append("Points were drawn from another distribution and weighted back, so that the share refers to the measure above.")
    return said


def guarantees(audit: Audit) -> list[str]:
    """What a verdict promises, for those who were listed and those who were drawn."""
    design, table = audit.info["design"], audit.table
    alpha, tau = design["alpha"], design["threshold"]
    methods = set(table["method"])
    said = []
    if "exact" in methods:
        said.append(
            "Exact: every reachable point of the person was listed and the model was asked about each. ρ is known; there is no interval and no "
            "p-value, and the verdict cannot be wrong about this model and this set."
        )
        equal = int(((table["method"] == "exact") & (table["rho"] == tau)).sum())
        if equal:
            said.append(
                f"{'For 1 person' if equal == 1 else f'For {equal:,} people'} ρ equals the threshold exactly: neither below nor above. Such a verdict is "
                "“inconclusive” although nothing is uncertain about it."
            )
    if "sample" in methods:
        said.append(
            f"Sampled: {design['n']:,} points were drawn independently for the person ({design['why_n']}). The interval is that of Clopper and "
            f"Pearson and misses the true ρ with probability at most {alpha:g}. The verdict “below” is given to a person whose ρ is {tau:g} or more "
            f"with probability at most {alpha:g}, and “above” to one whose ρ is {tau:g} or less with probability at most {alpha:g}. “Inconclusive” "
            "says that neither was shown; it does not say that ρ is near the threshold."
        )
    if "sequential" in methods:
        said.append(
            f"Sequential: points were drawn for a person until the verdict was certain, at most {design['n']:,}. The test keeps its error of "
            f"{alpha:g} wherever it stops; intervals and p-values hold at any time."
        )
    if "weighted" in methods:
        said.append(f"Weighted: draws from another distribution, weighted back; the interval misses the true ρ with probability at most {alpha:g}.")
    if methods & {"sample", "sequential"}:
        said.append(adjustment(design["adjust"], alpha))
    for status in ("fixed", "empty", "invalid_start", "not_exact"):
        many = int((table["status"] == status).sum())
        if many:
            said.append(f"{status.replace('_', ' ').capitalize()} ({many:,}): {_STATUSES[status]}.")
    lost = int(table["unresolved"].sum())
    if lost:
        said.append(f"{lost:,} points have no answer from the model. Verdicts hold for every way to fill them in.")
    return said


def adjustment(name: str, alpha: float) -> str:
    """How many tests at once are accounted for."""
    text = _ADJUSTMENTS[name].format(alpha=f"{alpha:g}")
    return f"Each verdict stands by itself: among many people some are wrong by chance. The adjusted p-values account for that ({text})."


def covers(audit: Audit) -> list[str]:
    """What the claims are about."""
    info: Mapping[str, Any] = audit.info
    return [
        "the model as it was when it was asked" + (" (its digest is given at the end)" if any(info.get("model_digests", {}).values()) else ""),
        "the people who were audited, one by one; the share below and above is a share of these people",
        "this interaction model and this measure: another view of what people can do may lead to another verdict",
    ]


def leaves_open(audit: Audit) -> list[str]:
    """What the claims do not say."""
    return [
        "whether the interaction model is right: which features can move, how far, and what follows from what, are the auditor's statements",
        "how hard, costly or likely an action is for a person: every feasible one weighs as the measure says",
        "people who were not audited, and the model after it has been changed or trained again",
        "whether the target is good for the person in truth: it is about what the model answers",
    ]


def assumptions(audit: Audit) -> list[str]:
    """What had to be taken for granted, beyond the interaction model."""
    design = audit.info["design"]
    said = ["the model gives the same answer to the same question; this was tried on some rows before the audit"]
    if design["on_invalid"] == "skip":
        said.append("people who break the interaction model before they move were skipped")
    elif design["on_invalid"] == "keep":
        said.append("people who break the interaction model before they move were kept, and move from where they stand")
    if audit.info.get("twins"):
        said.append(f"{audit.info['twins']:,} people stand exactly as another does and share that person's draws; bounds on shares account for it")
    return said
