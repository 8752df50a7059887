"""The metric `budge/responsiveness`: per interaction the rate, its interval, and a p-value adjusted over the interactions, as `budge llm test` gives them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from budge.errors import DataError
from budge.llm.answers import BASE, Answers
from budge.llm.claims.verdicts import test
from budge.llm.inspect_record import Record
from budge.llm.scores import meaning_of

__all__ = ["responsiveness"]


@metric(scores="unreduced")  # every epoch is a draw; a mean over epochs is no count
def responsiveness(
    threshold: float = 0.5, claim: str = "below", alpha: float = 0.05, adjust: str = "bh", cutoff: float | None = None,
    planned: dict[str, int] | None = None,
) -> Metric:  # fmt: skip
    """Test per interaction whether the share of hits among these prompts lies below (above) the threshold.

    Parameters
    ----------
    cutoff
        A score from here on is a hit; needed where scores are numbers other than 0 and 1.
    planned
        Draws per interaction: Inspect passes no failed sample to a metric, so that missing ones are counted as unresolved here.
    """
    meaning = meaning_of(None, cutoff)

    def hit(one: SampleScore) -> bool | None:
        if isinstance(one.score.value, dict | list):
            raise DataError("a score with several values needs a metric per key", remedy="metrics={'key': [responsiveness()]}")
        # Inspect scores a draw that met a limit before it was asked as a miss, with this reason.
        return None if getattr(one.score, "reason", None) == "no_response" else meaning(one.score.value)[0]

    def compute(scores: list[SampleScore]) -> Value:
        records = [Record.of(one.sample_metadata) for one in scores]
        names = {record.interaction for record in records if record is not None}
        if None in records and len(names) > 1:
            raise DataError("some samples carry no record of their interaction", where="responsiveness", got=sorted(names), remedy="score one log at a time")
        # The solver's record is not in the metadata of a fresh eval, and is in that of samples that a retry took over: they are one group.
        only = next(iter(names), "draws")
        seen: Counter[tuple[str, str]] = Counter()
        rows: list[dict[str, Any]] = []
        for one, record in zip(scores, records):
            key = (only, str(one.sample_id)) if record is None else (record.interaction, record.prompt)
            rows.append({"model": "m", "interaction": key[0], "prompt": key[1], "draw": seen[key], "hit": hit(one)})
            seen[key] += 1
        there = Counter(row["interaction"] for row in rows)
        for name, count in (planned or {}).items():
            lost = range(count - there[name])
            rows += [{"model": "m", "interaction": name, "prompt": f"not answered {i}", "draw": 0, "hit": None} for i in lost]
        if not rows:
            return {}
        found = test(Answers.of(rows, {"scheme": "per_prompt"}), threshold=threshold, over="these", claim=claim, alpha=alpha, adjust=adjust)
        cells: dict[str, Any] = {}
        for row in found.table.to_dict("records"):
            shown = {"rate": "rate", "low": "low", "high": "high", "p": "p_adjusted", "n": "n", "hits": "hits", "unresolved": "unresolved", "delta": "delta"}
            cells |= {f"{row['interaction']} {key}": float(row[column]) for key, column in shown.items() if row.get(column) is not None}
        base = [row["hit"] for row in rows if row["interaction"] == BASE and row["hit"] is not None]
        return {**cells, **({"base rate": sum(base) / len(base)} if base and "base rate" not in cells else {})}

    return compute
