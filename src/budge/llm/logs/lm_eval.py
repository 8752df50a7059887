"""Samples of lm-evaluation-harness (``--log_samples``): one JSON object a document and filter, its metrics among its keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from budge.errors import DataError, InputError, StorageError, nearest
from budge.llm.answers import Answers
from budge.llm.logs.values import hit_of, ready

__all__ = ["read_lm_eval"]

#: What a sample holds besides its metrics.
_OWN = {
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
    "doc_hash",
    "prompt_hash",
    "target_hash",
}


def read_lm_eval(
    path: Path,
    *,
    interaction: str,
    model: str | None,
    score: str | None,
    values: Mapping[Any, bool] | None,
    category: str | None,
    filter: str | None,
) -> Answers:
    """The answers in one file of samples: a draw for each document."""
    meaning = ready(values)
    if model is None:
        raise InputError("a file of samples does not say which model answered", where="model", remedy='name it: model="…", on the shell --model')
    samples = _samples(path)
    samples = _filtered(samples, filter, path)
    name = _metric(samples, score, path)
    rows = []
    for _, sample in samples:
        hit, why = hit_of(sample[name], meaning) if name in sample else (None, f"has no {name!r}")
        doc = sample.get("doc")
        kind = str(doc.get(category, "")) if category is not None and isinstance(doc, dict) else ""
        rows.append(
            {
                "model": model, "interaction": interaction, "prompt": str(sample["doc_id"]), "category": kind, "draw": 0, "hit": hit, "why": why,
                "sent": _sent(sample.get("arguments")), "answer": _first(sample.get("filtered_resps") or sample.get("resps")),
            }
        )  # fmt: skip
    seen: set[object] = set()
    for (line, _), row in zip(samples, rows):
        if row["prompt"] in seen:
            raise DataError(
                "the document is there twice", where=f"{path}, line {line}", got=row["prompt"], remedy="are two runs in one file?"
            )
        seen.add(row["prompt"])
    return Answers.of(rows, {"scheme": "per_prompt", "judge": name, "source": path.name})


def _samples(path: Path) -> list[tuple[int, dict[str, Any]]]:
    found = []
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for i, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    sample = json.loads(line)
                except (ValueError, RecursionError):
                    raise DataError(
                        "is not whole JSON", where=f"{path}, line {i}", got=line[:80], remedy="was the file cut off?"
                    ) from None
                if not isinstance(sample, dict) or "doc_id" not in sample:
                    raise DataError(
                        "is no sample of lm-evaluation-harness: it has no doc_id",
                        where=f"{path}, line {i}",
                        got=line[:80],
                        remedy="give a samples_*.jsonl file, written with --log_samples",
                    )
                found.append((i, sample))
    except UnicodeDecodeError as error:
        raise DataError(f"is not text in UTF-8: {error.reason}", where=str(path)) from None
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if not found:
        raise DataError("is empty", where=str(path), remedy="give a samples_*.jsonl file, written with --log_samples")
    return found


def _filtered(samples: list[tuple[int, dict[str, Any]]], filter: str | None, path: Path) -> list[tuple[int, dict[str, Any]]]:
    names = list(dict.fromkeys(str(sample.get("filter", "none")) for _, sample in samples))
    if filter is None and len(names) > 1:
        raise InputError(
            "samples of several filters are in this file",
            where="filter",
            got=names,
            remedy=f"choose one: filter={names[0]!r}, on the shell --filter {names[0]}",
        )
    wanted = names[0] if filter is None else filter
    if wanted not in names:
        raise InputError("no such filter in this file", where="filter", got=filter, remedy=nearest(filter, names))
    return [(i, sample) for i, sample in samples if str(sample.get("filter", "none")) == wanted]


def _metric(samples: list[tuple[int, dict[str, Any]]], score: str | None, path: Path) -> str:
    told = [
        str(name) for _, sample in samples for name in (sample.get("metrics") or []) if isinstance(sample.get("metrics"), list)
    ]
    names = list(dict.fromkeys(told)) or list(dict.fromkeys(key for _, sample in samples for key in sample if key not in _OWN))
    if not names:
        raise DataError(
            "no metric is in these samples", where=str(path), remedy="give a samples_*.jsonl file, written with --log_samples"
        )
    if score is None and len(names) > 1:
        remedy = f"choose one: score={names[0]!r}, on the shell --score {names[0]}"
        raise InputError("several metrics are in this file", where="score", got=names, remedy=remedy)
    wanted = names[0] if score is None else score
    if wanted not in names:
        raise InputError("no such metric in this file", where="score", got=score, remedy=nearest(score, names))
    return wanted


def _sent(arguments: Any) -> str:
    """The context that was sent: the first argument of the first request, in the older and in the newer spelling."""
    if isinstance(arguments, dict):
        first = next(iter(arguments.values()), None)
        arguments = next(iter(first.values()), None) if isinstance(first, dict) else first
    return _first(arguments)


def _first(value: Any) -> str:
    while isinstance(value, list | tuple):
        value = value[0] if value else ""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, default=str)
