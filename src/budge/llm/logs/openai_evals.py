"""Logs of OpenAI's evals (one event per line): a sample's `sampling` events hold what was sent, its `match` event the verdict."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from budge.errors import DataError
from budge.llm.logs.opening import json_lines
from budge.llm.logs.rows import Log, LogRow, digest_of, message_text, plain

__all__ = ["read_openai_evals"]


def read_openai_evals(place: Path) -> Log:
    """Return the draws of one log: one per sample, with `correct` and the numbers of its `metrics` event as scores."""
    spec: dict[str, Any] = {}
    events: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for _, record in json_lines(place):
        if "spec" in record:
            spec = record["spec"]
        elif "sample_id" in record:
            events[str(record["sample_id"])][str(record.get("type"))].append(record.get("data") or {})
    if not events:
        raise DataError("holds no events of samples", where=str(place), remedy="give a log of a run that answered something")
    model = ", ".join(map(str, spec.get("completion_fns") or [])) or "unknown"
    rows = []
    for sample, found in events.items():
        asked, verdicts = found.get("sampling") or [{}], found.get("match") or []
        if len(verdicts) > 1:
            raise DataError("a sample has several verdicts", where=f"{place}, sample {sample}", got=len(verdicts), remedy="are two runs in one file?")
        scores = {key: verdict["correct"] for verdict in verdicts for key in ("correct",) if key in verdict}
        scores |= {key: value for data in found.get("metrics") or [] for key, value in data.items() if isinstance(value, bool | int | float)}
        verdict = verdicts[0] if verdicts else {}
        sent = message_text(asked[-1].get("prompt"))
        rows.append(
            LogRow(
                prompt=sample, model=model, task=str(spec.get("eval_name") or ""), scores=scores,
                why=f"failed: {plain(found['error'][-1])[:200]}" if found.get("error") and not scores else "",
                sent=sent, answer=plain(asked[-1].get("sampled")), original=sent, expected=plain(verdict.get("expected")), digest=digest_of(sent),
            )
        )  # fmt: skip
    return Log(rows=rows, source=place.name, runs=(str(spec.get("run_id") or ""),), settings={})
