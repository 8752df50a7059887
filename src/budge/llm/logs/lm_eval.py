"""Samples of lm-evaluation-harness (``--log_samples``): one JSON object per document and filter, its metrics among its keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from budge.errors import DataError, InputError, nearest
from budge.llm.logs.opening import json_document, json_lines
from budge.llm.logs.rows import Log, LogRow, digest_of, plain

__all__ = ["read_lm_eval"]

#: What a sample holds besides its metrics.
_OWN = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash", "target_hash"}
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")
_REMEDY = "give a samples_*.jsonl file, written with --log_samples"


def read_lm_eval(place: Path, *, model: str | None, filter: str | None) -> Log:
    """Return the draws of one file of samples: one per document. The model's name and settings are in the results file beside it."""
    name = _NAME.fullmatch(place.name)
    beside = place.with_name(f"results_{name['date']}.json") if name else None
    results = json_document(beside) if beside is not None and beside.exists() else {}
    label = model or str(results.get("model_name") or results.get("model_source") or "")
    if not label:
        raise InputError("a file of samples does not say which model answered", where="model", remedy='name it: model="…", on the shell --model')
    samples = _filtered(_samples(place), filter)
    rows: dict[str, LogRow] = {}
    for where, sample in samples:
        prompt, doc = str(sample["doc_id"]), sample.get("doc")
        told = sample.get("metrics")
        metrics = [str(key) for key in told if key in sample] if isinstance(told, list) else [key for key in sample if key not in _OWN]
        if prompt in rows:
            raise DataError("the document is there twice", where=where, got=prompt, remedy="are two runs in one file?")
        rows[prompt] = LogRow(
            prompt=prompt, model=label, task=name["task"] if name else "", scores={key: sample[key] for key in metrics},
            sent=_sent(sample.get("arguments")), answer=plain(sample.get("filtered_resps") or sample.get("resps")), expected=plain(sample.get("target")),
            digest=str(sample.get("doc_hash") or digest_of(doc)), fields=doc if isinstance(doc, dict) else {},
        )  # fmt: skip
    if not any(row.scores for row in rows.values()):
        raise DataError("no metric is in these samples", where=str(place), remedy=_REMEDY)
    config = results.get("config") or {}
    kept = {key: config[key] for key in ("model", "model_args", "gen_kwargs") if config.get(key)}
    return Log(rows=list(rows.values()), source=place.name, settings={label: kept} if results else {})


def _samples(place: Path) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for where, sample in json_lines(place):
        if "doc_id" not in sample:
            raise DataError("is no sample of lm-evaluation-harness: it has no doc_id", where=where, got=list(sample)[:8], remedy=_REMEDY)
        found.append((where, sample))
    if not found:
        raise DataError("is empty", where=str(place), remedy=_REMEDY)
    return found


def _filtered(samples: list[tuple[str, dict[str, Any]]], filter: str | None) -> list[tuple[str, dict[str, Any]]]:
    names = list(dict.fromkeys(str(sample.get("filter", "none")) for _, sample in samples))
    if filter is None and len(names) > 1:
        remedy = f"choose one: filter={names[0]!r}, on the shell --filter {names[0]}"
        raise InputError("samples of several filters are in this file", where="filter", got=names, remedy=remedy)
    if filter is not None and filter not in names:
        raise InputError("no such filter in this file", where="filter", got=filter, remedy=nearest(filter, names))
    return [(i, sample) for i, sample in samples if filter is None or str(sample.get("filter", "none")) == filter]


def _sent(arguments: Any) -> str:
    """Return the context that was sent: the first argument of the first request, in the older and in the newer spelling."""
    if isinstance(arguments, dict):
        first = next(iter(arguments.values()), None)
        arguments = next(iter(first.values()), None) if isinstance(first, dict) else first
    return plain(arguments)
