"""Logs of Inspect AI: samples are prompts, epochs are draws, a scorer says hit or miss."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from budge.errors import DataError, InputError, MissingDependencyError, nearest
from budge.llm.answers import Answers
from budge.llm.logs.values import hit_of, ready

__all__ = ["read_inspect"]

OWN = "budge_llm"  # the task that our own runs give to Inspect
_MOST = 8 * 2**30  # bytes that a packed log may unfold to


def read_inspect(
    path: Path, *, interaction: str, model: str | None, score: str | None, values: Mapping[Any, bool] | None, category: str | None
) -> Answers:
    """The answers in one log; samples that failed, and those that are planned and not there, are unresolved."""
    meaning = ready(values)
    log = _log(path)
    samples = list(log.samples or [])
    if not samples:
        raise DataError(
            f"holds no samples (its status is {log.status!r})",
            where=str(path),
            remedy="give a log of a run that answered something",
        )
    if str(log.eval.task) == OWN:
        folder = path.resolve().parent.parent
        raise DataError(
            "is a log of one of budge's own runs: it has neither the rule by which the run stopped nor what other calls of it answered",
            where=str(path),
            remedy=f"test the run itself: llm.load({str(folder)!r}), on the shell: budge llm test {folder}",
        )
    name = _scorer(samples, score, path, str(log.status))
    label = model if model is not None else str(log.eval.model)
    rows, seen = [], set()
    for sample in samples:
        key = (str(sample.id), int(sample.epoch))
        if key in seen:
            raise DataError("a sample is there twice in one epoch", where=str(path), got=key, remedy="is the log damaged?")
        seen.add(key)
        hit, why = _judged(sample, name, meaning)
        kind = "" if category is None else str((sample.metadata or {}).get(category, ""))
        rows.append(
            {
                "model": label, "interaction": interaction, "prompt": key[0], "category": kind, "draw": key[1] - 1, "hit": hit, "why": why,
                "sent": _text(sample.input), "answer": str(sample.output.completion or "") if sample.output is not None else "",
            }
        )  # fmt: skip
    planned = [str(one) for one in log.eval.dataset.sample_ids or []]
    for lost in planned:
        for epoch in range(1, int(log.eval.config.epochs or 1) + 1):
            if (lost, epoch) not in seen:
                rows.append(
                    {"model": label, "interaction": interaction, "prompt": lost, "draw": epoch - 1, "hit": None, "why": "planned, but not in the log"}
                )  # fmt: skip
    info = {
        "scheme": "per_prompt",
        "judge": name,
        "source": str(path.name),
        "task": str(log.eval.task),
        "status": str(log.status),
    }
    return Answers.of(rows, info)


def _log(path: Path) -> Any:
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise MissingDependencyError(
            "logs of Inspect need inspect-ai", where=str(path), remedy="pip install 'budge[llm]'"
        ) from None
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            size = sum(part.file_size for part in packed.infolist())
        if size > _MOST:
            raise DataError(
                "unfolds to more than 8 GiB", where=str(path), got=size, remedy="read it with Inspect and keep what is needed"
            )
    try:
        return read_eval_log(str(path), resolve_attachments=True, exclude_fields={"events", "store"})
    except Exception as error:  # whatever a foreign or damaged file provokes in the reader
        raise DataError(
            f"is not a whole log of Inspect ({type(error).__name__}: {str(error)[:200]})",
            where=str(path),
            remedy="give a .eval or .json log",
        ) from error


def _scorer(samples: list[Any], score: str | None, path: Path, status: str) -> str:
    names = list(dict.fromkeys(name for sample in samples for name in (sample.scores or {})))
    if not names:
        raise DataError(
            f"nothing in this log is scored (its status is {status!r})", where=str(path), remedy="score it first (`inspect score`)"
        )
    if score is not None and score not in names:
        raise InputError("no such scorer in this log", where="score", got=score, remedy=nearest(score, names))
    if score is None and len(names) > 1:
        remedy = f"choose one: score={names[0]!r}, on the shell --score {names[0]}"
        raise InputError("several scorers are in this log", where="score", got=names, remedy=remedy)
    return names[0] if score is None else score


def _judged(sample: Any, name: str, meaning: Mapping[Any, bool]) -> tuple[bool | None, str]:
    if sample.error is not None:
        return None, f"failed: {str(sample.error.message)[:200]}"
    found = (sample.scores or {}).get(name)
    if found is None:
        return None, "not scored"
    hit, why = hit_of(found.value, meaning)
    said = str(found.explanation or "")[:200]
    return hit, f"{why}: {said}" if hit is None and said else why


def _text(asked: Any) -> str:
    """What was asked: the text itself, or the last message of the user."""
    if isinstance(asked, str):
        return asked
    users = [message for message in asked if message.role == "user"] or list(asked)
    return str(users[-1].text) if users else ""
