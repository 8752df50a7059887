"""What all formats have in common: a row per draw, the choice of a score, and what its values mean."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from budge.errors import DataError, InputError, nearest
from budge.llm.answer_files import MOST_DRAWS
from budge.llm.answers import BASE, Answers
from budge.llm.scores import meaning_of

__all__ = ["Log", "LogRow", "answers_from", "digest_of", "joined", "message_text", "plain"]

@dataclass(frozen=True, kw_only=True)
class LogRow:
    """One draw of a log.

    `why` is not empty where there is no answer to judge: the draw is unresolved whatever its scores are. `digest` identifies the prompt before any
    rewrite. `said` holds what the judge wrote, per score.
    """

    prompt: str
    scores: Mapping[str, Any]
    model: str
    task: str = ""
    interaction: str = ""
    draw: int = 0
    why: str = ""
    category: str = ""
    sent: str = ""
    answer: str = ""
    original: str = ""
    expected: str = ""
    digest: str = ""
    cut: bool = False  # the answer ended by its token limit
    unchanged: bool = False  # an interaction left the prompt as it was
    said: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Log:
    """The draws of one run of an evaluator; `runs` identifies it, `settings` are those of its models, `cutoff` is the format's own."""

    rows: Sequence[LogRow]
    source: str
    status: str = ""
    runs: tuple[str, ...] = ()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cutoff: float | None = None


def answers_from(
    log: Log, *, interaction: str | None, base: str | None, model: str | None, score: str | None, values: Mapping[Any, bool] | None,
    cutoff: float | str | None, category: str | None, match: str,
) -> Answers:  # fmt: skip
    """Return the draws of a log as answers: the score chosen, its values read, the names given."""
    if match not in ("text", "ids"):
        raise InputError("prompts are matched by text or by ids", where="match", got=match, remedy=nearest(match, ("text", "ids")))
    meaning = meaning_of(values, log.cutoff if cutoff is None and values is None else cutoff)
    chosen = _scores(log, score)
    ways = _interactions(log, interaction, base)
    several = len({row.task for row in log.rows}) > 1
    rows = []
    for row in log.rows:
        name = chosen.get(row.task, "")
        hit, why = (None, row.why) if row.why else meaning(row.scores[name]) if name in row.scores else (None, "not scored")
        prompt = f"{row.task}/{row.prompt}" if several and not row.prompt.startswith(f"{row.task}#") else row.prompt
        kind = row.fields.get(category, "") if category is not None else row.category or (row.task if several else "")
        rows.append(
            {
                "model": row.model if model is None else model, "interaction": ways[row.interaction],
                "prompt": prompt, "category": str(kind), "draw": row.draw, "hit": hit, "why": why,
                "sent": row.sent, "answer": row.answer, "judge_text": row.said.get(name, ""), "original": row.original, "expected": row.expected,
                "digest": row.digest if match == "text" else "", "lost": row.why, "cut": row.cut, "unchanged": row.unchanged,
            }
        )  # fmt: skip
    info: dict[str, Any] = {"scheme": "per_prompt", "judge": ", ".join(dict.fromkeys(chosen.values())), "source": log.source}
    told = {"status": log.status, "task": ", ".join(dict.fromkeys(row.task for row in log.rows if row.task))}
    info |= {key: value for key, value in told.items() if value}
    info |= {"runs": list(log.runs), "settings": {model or name: dict(found) for name, found in log.settings.items()}}
    if any(row.draw > MOST_DRAWS for row in log.rows):
        raise DataError(f"draws are numbered from 0 to {MOST_DRAWS:,} at most", where=log.source, got=max(row.draw for row in log.rows))
    try:
        return Answers.of(rows, info)
    except DataError as error:
        raise error.at(log.source) from None


def joined(logs: Iterable[Log], source: str) -> Log:
    """Return several logs as one; models of one name that were asked with different settings are refused."""
    logs = list(logs)
    settings: dict[str, Mapping[str, Any]] = {}
    for log in logs:
        for name, found in log.settings.items():
            refuse_other_settings(name, settings.setdefault(name, found), found)
    cutoffs = {log.cutoff for log in logs}
    if len(cutoffs) > 1:
        raise DataError("the logs were judged at different cut-offs", where=source, got=sorted(map(str, cutoffs)), remedy="read them apart")
    status = ", ".join(dict.fromkeys(log.status for log in logs if log.status))
    runs = tuple(run for log in logs for run in log.runs)
    return Log(rows=[row for log in logs for row in log.rows], source=source, status=status, runs=runs, settings=settings, cutoff=cutoffs.pop())


def refuse_other_settings(model: str, one: Mapping[str, Any], two: Mapping[str, Any]) -> None:
    """Raise where one model was asked with two configurations: answers of two configurations are not those of one model."""
    differ = [key for key in {**one, **two} if one.get(key) != two.get(key)]
    if differ:
        got = {key: [one.get(key), two.get(key)] for key in differ}
        remedy = "import the logs apart, each with a name of its own for the model (model=, on the shell --model)"
        raise DataError("the logs of this model were made with different settings", where=model, got=got, remedy=remedy)


def _scores(log: Log, score: str | None) -> dict[str, str]:
    """Return the score to read per task: the one that is named, or the only one."""
    chosen: dict[str, str] = {}
    for task in dict.fromkeys(row.task for row in log.rows):
        names = list(dict.fromkeys(name for row in log.rows if row.task == task for name in row.scores))
        what = f"task {task}" if task else "log"
        if not names:
            continue
        if score is None and len(names) > 1:
            remedy = f"choose one: score={names[0]!r}, on the shell --score {names[0]}"
            raise InputError(f"several scores are in this {what}", where="score", got=names, remedy=remedy)
        if score is not None and score not in names:
            raise InputError(f"no such score in this {what}", where="score", got=score, remedy=nearest(score, names))
        chosen[task] = names[0] if score is None else score
    if not chosen:
        status = f" (its status is {log.status!r})" if log.status else ""
        raise DataError(f"nothing in this log is scored{status}", where=log.source, remedy="score it first (`inspect score`)")
    return chosen


def _interactions(log: Log, given: str | None, base: str | None) -> dict[str, str]:
    """Return the name in the answers for each name in the log; a log that names none holds the base."""
    names = list(dict.fromkeys(row.interaction for row in log.rows))
    named = [name for name in names if name]
    if base is not None and base not in named:
        raise InputError("no such interaction in the log", where="base", got=base, remedy=nearest(base, named))
    if given is not None and len(names) > 1:
        remedy = "leave the name out: the answers are named as in the log"
        raise InputError("the log holds several interactions, so one name cannot be given", where=log.source, got=named, remedy=remedy)
    renamed = {name: BASE if name == base else name or BASE for name in names}
    return dict.fromkeys(names, given) if given is not None else renamed


def digest_of(*parts: Any) -> str:
    """Return a digest of what identifies a prompt: its text, its options, its expected answer."""
    body = json.dumps(parts, sort_keys=True, default=str)
    return blake2b(body.encode(), digest_size=12).hexdigest()


def message_text(content: Any) -> str:
    """Return the text of a string, of a message in OpenAI's form, or of the user's last message in a list of them."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, Mapping):
        return message_text(content.get("content", content.get("text", "")))
    if isinstance(content, Sequence):
        messages = [part for part in content if isinstance(part, Mapping) and "role" in part]
        users = [part for part in messages if part["role"] == "user"] or messages
        return message_text(users[-1]) if users else "".join(message_text(part) for part in content)
    return str(content)


def plain(value: Any) -> str:
    """Return a text as it is, the first of a list, and anything else as JSON."""
    while isinstance(value, list | tuple):
        value = value[0] if value else ""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, default=str)
