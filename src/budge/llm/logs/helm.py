"""Runs of HELM (a folder with ``scenario_state.json`` and ``per_instance_stats.json``): a perturbation is an interaction, its seeds are draws."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from budge.errors import DataError
from budge.llm.logs.opening import json_document
from budge.llm.logs.rows import Log, LogRow, digest_of

__all__ = ["STATE", "STATS", "read_helm"]

STATE, STATS = "scenario_state.json", "per_instance_stats.json"
_NOT_THE_LAW = ("name", "seed", "robustness", "fairness", "computed_on")  # of a perturbation: the rest are its parameters


def read_helm(folder: Path) -> Log:
    """Return the draws of one run: per instance, perturbation, seed and trial."""
    state, stats = (json_document(folder / name) for name in (STATE, STATS))
    states = state.get("request_states") if isinstance(state, dict) else None
    if not isinstance(states, list) or not states or not isinstance(stats, list):
        raise DataError("holds no requests and statistics of HELM", where=str(folder), remedy=f"give a run's folder with {STATE} and {STATS}")
    scores: dict[tuple[Any, ...], dict[str, Any]] = defaultdict(dict)
    for entry in stats:
        key = (str(entry["instance_id"]), digest_of(entry.get("perturbation")), entry["train_trial_index"])
        scores[key] |= {stat["name"]["name"]: stat.get("mean") for stat in entry["stats"]}
    laws: dict[str, set[str]] = defaultdict(set)
    for one in states:
        change = one["instance"].get("perturbation") or {}
        laws[str(change.get("name", ""))].add(_parameters(change))
    originals = {str(one["instance"]["id"]): _input(one) for one in states if not one["instance"].get("perturbation")}
    task = re.sub(r"[,:]model(_deployment)?=[^,]*", "", folder.name)  # a run is named by its scenario and its model
    seen: Counter[tuple[str, str]] = Counter()
    rows = []
    for one in states:
        instance, result, change = one["instance"], one.get("result") or {}, one["instance"].get("perturbation") or {}
        prompt, name = str(instance["id"]), str(change.get("name", ""))
        way = f"{name}({_parameters(change)})" if len(laws[name]) > 1 else name
        texts = [str(part.get("text", "")) for part in result.get("completions") or []]
        right = [str(part["output"]["text"]) for part in instance.get("references") or [] if "correct" in (part.get("tags") or [])]
        original = originals.get(prompt, "")
        failed = bool(result) and not result.get("success", True)
        rows.append(
            LogRow(
                prompt=prompt, model=str(one["request"]["model"]), task=task, interaction=way, draw=seen[prompt, way],
                scores=scores.get((prompt, digest_of(instance.get("perturbation")), one["train_trial_index"]), {}),
                why=f"failed: {str(result.get('error'))[:200]}" if failed else "" if texts else "no completion is in the log",
                sent=str(one["request"].get("prompt") or ""), answer=texts[0] if texts else "", original=original, expected="|".join(right),
                digest=digest_of(original) if original else "", fields=instance,
            )
        )  # fmt: skip
        seen[prompt, way] += 1
    adapter = state.get("adapter_spec") or {}
    kept = {key: adapter[key] for key in ("model_deployment", "temperature", "max_tokens", "instructions", "max_train_instances") if key in adapter}
    return Log(rows=rows, source=folder.name, settings={str(states[0]["request"]["model"]): kept})


def _parameters(change: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(change.items()) if key not in _NOT_THE_LAW)


def _input(one: dict[str, Any]) -> str:
    return str((one["instance"].get("input") or {}).get("text") or "")
