"""Reports of garak (``*.report.jsonl``): attempts are prompts, outputs are draws, a detector at or above the run's threshold is a hit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from budge.errors import DataError
from budge.llm.logs.opening import json_lines
from budge.llm.logs.rows import Log, LogRow, digest_of, message_text

__all__ = ["read_garak"]

_JUDGED = 2  # an attempt is written when it is asked (status 1) and again when it is judged (status 2)


def read_garak(place: Path) -> Log:
    """Return the draws of one report. The task is the probe, and a buff is an interaction on the probe's prompts."""
    setup: dict[str, Any] = {}
    attempts: list[tuple[str, dict[str, Any]]] = []
    ended = False
    for where, record in json_lines(place):
        kind = record.get("entry_type")
        if kind is None and "detector" in record:
            raise DataError(
                "is a hit log of garak: it lists hits alone, so no rate follows from it", where=str(place), remedy="give the .report.jsonl beside it"
            )
        ended = ended or kind == "completion"
        if kind == "start_run setup":
            setup = record
        elif kind == "attempt":
            attempts.append((where, record))
    model = " ".join(str(setup[key]) for key in ("plugins.target_type", "plugins.target_name") if setup.get(key)) or "garak"
    latest: dict[str, dict[str, Any]] = {}
    for _, record in attempts:
        if record["uuid"] not in latest or record.get("status") == _JUDGED:
            latest[record["uuid"]] = record
    texts: dict[tuple[str, Any], list[str]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    rows = [row for record in latest.values() for row in _rows(record, model, texts, seen)]
    settings = {key.partition(".")[2]: setup[key] for key in ("run.system_prompt", "run.generator_params") if setup.get(key)}
    cutoff = setup.get("run.eval_threshold")
    return Log(
        rows=rows, source=place.name, status="success" if ended else "started", settings={model: settings} if setup else {},
        cutoff=0.5 if cutoff is None else float(cutoff),
    )  # fmt: skip


def _rows(record: dict[str, Any], model: str, texts: dict[tuple[str, Any], list[str]], seen: Counter[tuple[str, str]]) -> list[LogRow]:
    probe, notes = str(record["probe_classname"]), record.get("notes") or {}
    given = record["prompt"]
    turns = given.get("turns") if isinstance(given, dict) else None
    sent = message_text(turns[-1].get("content")) if turns else message_text(given)
    buff = str(notes.get("buff_creator") or "")
    seq = notes.get("buff_source_seq", record.get("seq"))
    prompt = f"{probe}#{seq}"
    if not buff:  # probes that make their prompts as they go give several the same number: the text tells them apart
        same = texts.setdefault((probe, seq), [])
        if sent not in same:
            same.append(sent)
        prompt += f".{same.index(sent)}" if same.index(sent) else ""
    results = record.get("detector_results") or {}
    rows = []
    for i, output in enumerate(record.get("outputs") or []):
        scores = {str(detector): found[i] for detector, found in results.items() if i < len(found)}
        why = "the model gave no output" if output is None else ""
        rows.append(
            LogRow(
                prompt=prompt, task=probe, model=model, interaction=buff, draw=seen[prompt, buff], scores=scores, why=why, sent=sent,
                answer=message_text(output), original="" if buff else sent, digest="" if buff else digest_of(sent), fields=record,
            )
        )  # fmt: skip
        seen[prompt, buff] += 1
    return rows
