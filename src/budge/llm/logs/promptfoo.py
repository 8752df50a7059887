"""Results of promptfoo (``promptfoo eval -o out.json``): a test case is a prompt, a prompt template is an interaction, a repeat is a draw."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from budge.errors import DataError
from budge.llm.logs.opening import json_document
from budge.llm.logs.rows import Log, LogRow, digest_of, plain

__all__ = ["read_promptfoo"]

_ERROR = 2  # `failureReason`: 0 none, 1 an assertion, 2 an error


def read_promptfoo(place: Path) -> Log:
    """Return the draws of one results file. Scores: `success` (all assertions hold), `score`, and one per named metric."""
    document = json_document(place)
    found = document.get("results") if isinstance(document, dict) else None
    results = found.get("results") if isinstance(found, dict) else None
    if not isinstance(results, list) or not results:
        raise DataError("holds no results", where=str(place), remedy="write them with `promptfoo eval -o out.json`")
    templates = {result["promptIdx"] for result in results}
    seen: Counter[tuple[Any, ...]] = Counter()
    rows = []
    for result in results:
        # `testIdx` is a position, and a repeat has another one: the test case is identified by its variables and assertions.
        variables = {key: value for key, value in (result.get("vars") or {}).items() if key != "sessionId"}
        case = digest_of(variables, (result.get("testCase") or {}).get("assert"))
        provider = str((result.get("provider") or {}).get("label") or (result.get("provider") or {}).get("id"))
        response = result.get("response") or {}
        key = (result["promptIdx"], provider, case)
        if seen[key] and response.get("cached"):
            continue  # the answer of an earlier draw from promptfoo's cache is not a new draw
        prompt = result.get("prompt") or {}
        rows.append(
            LogRow(
                prompt=case, model=provider, interaction=str(prompt.get("label") or result["promptIdx"]) if len(templates) > 1 else "",
                draw=seen[key], scores={"success": result.get("success")} | _named(result),
                why=f"failed: {str(result.get('error'))[:200]}" if result.get("failureReason") == _ERROR else "", sent=str(prompt.get("raw") or ""),
                answer=plain(response.get("output")), digest=case, said={"success": str((result.get("gradingResult") or {}).get("reason") or "")},
                fields={**variables, **(result.get("metadata") or {}), "description": (result.get("testCase") or {}).get("description", "")},
            )
        )  # fmt: skip
        seen[key] += 1
    return Log(rows=rows, source=place.name)


def _named(result: dict[str, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in (result.get("namedScores") or {}).items()}
