"""What is asked: the target, the claim and its errors, and how many draws that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from budge.errors import DesignError
from budge.reach.streams import check_seed
from budge.stats import StoppingRule, planning
from budge.stats._checks import fraction, one_of, whole
from budge.targets import Target, as_target

__all__ = ["Design", "make_design"]

Claim = Literal["below", "above"]
EXACT_LIMIT = 10_000


@dataclass(frozen=True)
class Design:
    """Everything that decides the result besides the model, the people and the interaction model.

    `n` is the number of draws for a person who is not computed exactly; with `rule`, the most there can be.
    """

    target: Target
    threshold: float
    alpha: float
    claim: Claim
    n: int
    why_n: str
    seed: int
    purpose: str
    method: Literal["auto", "exact", "sample"]
    exact_limit: int
    adjust: str
    on_invalid: Literal["error", "skip", "keep"]
    rule: StoppingRule | None = None
    proposal: Any = None
    how_much: bool = False
    max_unresolved: float = 0.1

    def record(self) -> dict[str, Any]:
        """What a journal and a saved run keep of it."""
        kept = (
            "threshold",
            "alpha",
            "claim",
            "n",
            "why_n",
            "seed",
            "purpose",
            "method",
            "exact_limit",
            "adjust",
            "on_invalid",
            "how_much",
        )
        record: dict[str, Any] = {name: getattr(self, name) for name in kept}
        try:
            record["target"] = self.target.to_dict()
        except Exception:
            record["target"] = {"function": self.target.describe()}
        record["sequential"] = None if self.rule is None else {"kind": self.rule.kind, "max_n": self.rule.max_n}
        record["proposal"] = self.proposal
        return record


def make_design(
    target: Any,
    *,
    classes: Any = None,
    threshold: object = 0.1,
    alpha: object = 0.05,
    claim: str = "below",
    n: object = None,
    width: object = None,
    margin: object = None,
    power: object = 0.95,
    seed: object = 0,
    purpose: str = "draw",
    method: str = "auto",
    exact_limit: object = EXACT_LIMIT,
    adjust: str = "bh",
    on_invalid: str = "error",
    sequential: bool = False,
    proposal: Any = None,
    how_much: bool = False,
    max_unresolved: object = 0.1,
    testing: bool = True,
) -> Design:
    """Check the wishes and turn them into numbers: the caller names errors, the plan names n."""
    tau, level = fraction(threshold, "threshold"), fraction(alpha, "alpha")
    side = one_of(claim, "claim", ("below", "above"))
    given = [name for name, value in (("n", n), ("width", width), ("margin", margin)) if value is not None]
    if len(given) > 1:
        raise DesignError("give one of n, width and margin", got=given, remedy="the others follow from it")
    if n is not None:
        size = planning.check_n(n, threshold=tau, alpha=level, claim=side) if testing else whole(n, "n")
        why = "as given"
    elif width is not None:
        size = planning.samples_for_width(width, level)
        why = f"so that an interval is at most {width} wide"
    else:
        half = tau / 2 if side == "below" else (1 - tau) / 2
        gap = half if margin is None else fraction(margin, "margin")
        strength = fraction(power, "power")
        size = planning.samples_for_power(threshold=tau, margin=gap, alpha=level, power=strength, claim=side).stable
        why = f"so that {strength:.0%} of those who are {side} {tau:g} by {gap:g} or more are found"
    rule = None
    if sequential:
        from budge.stats import sprt_rule

        gap = tau / 2 if side == "below" else (1 - tau) / 2
        rule = sprt_rule(threshold=tau, margin=gap if margin is None else margin, alpha=level, power=power, claim=side)
        size, why = rule.max_n, "at most; each person stops as soon as the verdict is certain"
    if sequential and proposal is not None:
        raise DesignError(
            "a sequential test of weighted draws is not offered", got="sequential and proposal", remedy="drop one of them"
        )
    return Design(
        target=as_target(target, classes=classes),
        threshold=tau,
        alpha=level,
        claim=side,  # type: ignore[arg-type]
        n=int(size),
        why_n=why,
        seed=check_seed(seed),
        purpose=purpose,
        method=one_of(method, "method", ("auto", "exact", "sample")),  # type: ignore[arg-type]
        exact_limit=whole(exact_limit, "exact_limit"),
        adjust=one_of(adjust, "adjust", ("bh", "holm", "bonferroni", "none")),
        on_invalid=one_of(on_invalid, "on_invalid", ("error", "skip", "keep")),  # type: ignore[arg-type]
        rule=rule,
        proposal=proposal,
        how_much=bool(how_much),
        max_unresolved=fraction(max_unresolved, "max_unresolved", zero=True, one=True),
    )
