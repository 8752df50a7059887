"""How many calls a test of language models takes, before any is made: fixed, sequential, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from budge.errors import DesignError
from budge.plan import StoppingRule, expected_calls, samples_for_power, sprt_rule
from budge.stats._checks import claim_of, fraction, number, one_of, percent, plain, whole

__all__ = ["CallPlan", "plan_calls"]

COLUMNS = ("model", "base_rate", "first", "stable", "n", "calls", "cost", "sequential_calls", "sequential_cost", "note")


@dataclass(frozen=True)
class CallPlan:
    """One row a model in `table`: the draws for each interaction, all calls, what they cost, and the same with stopping early.

    `n` is missing where no number of draws will do. `sequential_calls` is what is expected if the rate under interactions is the base rate.
    """

    table: pd.DataFrame
    info: Mapping[str, Any]

    @property
    def n(self) -> dict[str, int | None]:
        """Draws of each interaction, for each model; None where no number will do."""
        return {str(m): None if pd.isna(n) else int(n) for m, n in zip(self.table["model"], self.table["n"])}

    @property
    def calls(self) -> int:
        """Calls over all models that can be tested."""
        return int(self.table["calls"].sum())

    @property
    def census(self) -> int | None:
        """Calls per model of a census: every prompt once under each interaction; None where the number of prompts was not given."""
        info = self.info
        return None if info["prompts"] is None else info["prompts"] * (len(info["interactions"]) + info["with_base"]) * info["calls_per_draw"]

    def rule(self, model: str | None = None) -> StoppingRule:
        """Return the rule that stops as soon as the verdict is certain (Wald's); `llm.run` divides its alpha by the interactions."""
        rows = self.table if model is None else self.table[self.table["model"] == model]
        if len(rows) != 1 or pd.isna(rows["n"].iloc[0]):
            why = "no number of draws will do" if len(rows) == 1 else "name one model of the plan"
            raise DesignError(
                "there is no stopping rule", where="model", got=model, remedy=f"{why}: {', '.join(self.table['model'])}"
            )
        info = self.info
        return sprt_rule(
            threshold=info["threshold"], rate=float(rows["base_rate"].iloc[0]), alpha=info["alpha"], power=info["power"], claim=info["claim"]
        )  # fmt: skip

    def __str__(self) -> str:
        info = self.info
        many, sign = len(info["interactions"]), info["claim"]
        base = " and the base" if info["with_base"] else ""
        lines = [
            f"To show a rate {sign} {percent(info['threshold'])} at alpha {info['alpha_each']:g} with power {percent(info['power'])}, if interactions leave "
            f"the rate at its base; {many} interaction{'s' * (many != 1)}{base}, {info['calls_per_draw']} call{'s' * (info['calls_per_draw'] != 1)} a draw:"
        ]
        row: Any
        for row in self.table.itertuples():
            if pd.isna(row.n):
                lines.append(f"  {row.model} (base rate {percent(row.base_rate)}): {row.note}.")
                continue
            other = "" if row.first == row.stable else f" (first {row.first:,}, for every larger number from {row.stable:,})"
            cost = "" if pd.isna(row.cost) else f", cost {row.cost:,.2f}"
            less = f"stopping early {row.sequential_calls:,.0f} on average" + (
                "" if pd.isna(row.cost) else f", cost {row.sequential_cost:,.2f}"
            )
            lines.append(
                f"  {row.model} (base rate {percent(row.base_rate)}): {row.n:,} draws each{other}, {row.calls:,} calls{cost}; {less}."
            )
        if info["prompts"]:
            lines.append(
                f"  A census of the {info['prompts']:,} prompts, one rewrite each at temperature 0 (--census, census=True): {self.census:,} calls per model; "
                "rates over these prompts are then known without error, if the model repeats its answers."
            )
        if len(self.table) > 1:
            lines.append(f"  Together {self.calls:,} calls.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The record of the plan."""
        rows = [{k: None if pd.isna(v) else v for k, v in row.items()} for row in self.table.to_dict("records")]
        return {"info": plain(dict(self.info)), "table": plain(rows), "calls": self.calls}

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.table)


def plan_calls(
    base_rate: float | Mapping[str, float],
    *,
    threshold: float,
    alpha: float = 0.05,
    power: float = 0.95,
    claim: str = "below",
    interactions: int | Sequence[str] = 1,
    with_base: bool = True,
    use: str = "stable",
    strict: bool = False,
    calls_per_draw: int = 1,
    price: float | None = None,
    prompts: int | None = None,
) -> CallPlan:
    """Draws and calls for testing models under interactions, planned from their base rates (Eq. PowerAnalysis).

    Parameters
    ----------
    base_rate : float or mapping
        The rate of hits without interaction, of one model or for each.
    power : float
        The probability of showing the claim if interactions leave the rate where it is.
    interactions : int or names
        How many interactions are tested for each model.
    with_base : bool
        Whether the base is drawn too, as often as each interaction, which `llm.run` does unless told otherwise.
    use : {"stable", "first"}
        Power is a saw-tooth in n. `stable`: from here on it holds for every larger n. `first`: the first n at which it holds (the paper's).
    strict : bool
        Plan at alpha divided by the number of interactions, so that each test keeps its power whatever the others give after adjustment.
    calls_per_draw : int
        Calls of a model for one draw: 2 with a model as judge, 3 with another that rewrites.
    price : float, optional
        Of one call, in your currency.
    prompts : int, optional
        The number of prompts of the benchmark. A claim about these prompts needs no draws where each has one rewrite and the model repeats its
        answers: the plan then also has the calls of a census.

    Examples
    --------
    >>> plan = plan_calls({"OLMo": 0.227, "Llama": 0.277, "Phi": 0.424}, threshold=0.4, interactions=4)
    >>> plan.table["first"].tolist()[:2], plan.n
    ([79, 159], {'OLMo': 85, 'Llama': 168, 'Phi': None})
    >>> plan.table["note"].iloc[2]
    'the base rate is not below the threshold, so no number of draws can be planned'
    """
    tau, level, target, side = (
        fraction(threshold, "threshold"),
        fraction(alpha, "alpha"),
        fraction(power, "power"),
        claim_of(claim),
    )
    one_of(use, "use", ("stable", "first"))
    names = (
        [f"interaction {i + 1}" for i in range(whole(interactions, "interactions"))]
        if isinstance(interactions, int)
        else list(interactions)
    )
    if isinstance(interactions, str) or not names:
        raise DesignError(
            "interactions are a number or names", where="interactions", got=interactions, remedy='4, or ["typos", "french"]'
        )
    each = level / len(names) if strict else level
    per_draw = whole(calls_per_draw, "calls_per_draw")
    cost = None if price is None else number(price, "price")
    if cost is not None and cost < 0:
        raise DesignError("a call cannot cost less than nothing", where="price", got=price, remedy="give a price of at least 0")
    rates = dict(base_rate) if isinstance(base_rate, Mapping) else {"the model": base_rate}
    if not rates:
        raise DesignError("no base rates: there is nothing to plan", where="base_rate", got=base_rate, remedy='{"model": 0.2}')
    cells = len(names) + bool(with_base)
    rows = []
    for model, given in rates.items():
        rate = fraction(given, f"base_rate[{model!r}]" if isinstance(base_rate, Mapping) else "base_rate", zero=True, one=True)
        if (rate >= tau) if side == "below" else (rate <= tau):
            rows.append(
                {
                    "model": model,
                    "base_rate": rate,
                    "note": f"the base rate is not {side} the threshold, so no number of draws can be planned",
                }
            )
            continue
        plan = samples_for_power(tau, rate, alpha=each, power=target, claim=side)
        n = plan.stable if use == "stable" else plan.first
        rule = sprt_rule(threshold=tau, rate=rate, alpha=level, power=target, claim=side).shared(len(names))
        less = expected_calls(rate, n, people=cells, rule=rule).sequential
        assert less is not None
        early = less * per_draw
        row: dict[str, Any] = {
            "model": model,
            "base_rate": rate,
            "first": plan.first,
            "stable": plan.stable,
            "n": n,
            "calls": n * cells * per_draw,
            "sequential_calls": early,
            "note": "",
        }
        if cost is not None:
            row |= {"cost": row["calls"] * cost, "sequential_cost": early * cost}
        rows.append(row)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    for name in ("first", "stable", "n", "calls"):
        table[name] = table[name].astype("Int64")
    for name in ("cost", "sequential_calls", "sequential_cost"):
        table[name] = table[name].astype(float)
    info = {
        "threshold": tau, "alpha": level, "alpha_each": each, "power": target, "claim": side, "interactions": names, "with_base": bool(with_base),
        "use": use, "calls_per_draw": per_draw, "price": cost,
        "prompts": None if prompts is None else whole(prompts, "prompts"),
    }  # fmt: skip
    return CallPlan(table, info)
