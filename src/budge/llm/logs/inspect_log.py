"""Logs of Inspect AI: samples are prompts, epochs are draws, a scorer gives hit or miss. Retries of one task are one run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from budge.errors import DataError
from budge.llm.answer_files import MOST_DRAWS
from budge.llm.inspect_record import BETWEEN, Record, digest_of_sample, label_of, texts_of
from budge.llm.logs.opening import inspect_log
from budge.llm.logs.rows import Log, LogRow, joined
from budge.llm.runs.folder import CUT

__all__ = ["read_inspect"]

OWN = "budge_llm"  # the task that our own runs give to Inspect
#: What the answers depend on, of the settings of a model; the rest (connections, retries, time-outs, the seed) is left out.
_SETTINGS = (
    "temperature", "top_p", "top_k", "max_tokens", "system_message", "reasoning_effort", "reasoning_tokens", "frequency_penalty", "presence_penalty",
    "stop_seqs", "num_choices", "response_schema", "effort",
)  # fmt: skip


def read_inspect(places: Sequence[Path], source: str) -> Log:
    """Return the draws of logs of Inspect: of a task that was retried each draw once, as its newest log has it."""
    runs: dict[tuple[str, str], list[tuple[str, Path]]] = defaultdict(list)
    for place in places:
        head = inspect_log(place, header=True)
        if str(head.eval.task) == OWN:
            folder = place.resolve().parent.parent
            raise DataError(
                "is a log of one of budge's own runs: it has neither the rule by which the run stopped nor what other calls of it answered",
                where=str(place),
                remedy=f"test the run itself: llm.load({str(folder)!r}), on the shell: budge llm test {folder}",
            )
        runs[str(head.eval.task_id), str(head.eval.model)].append((str(head.eval.created), place))
    return joined([_run([place for _, place in sorted(tries, reverse=True)], source) for tries in runs.values()], source)


def _run(places: Sequence[Path], source: str) -> Log:
    """Return one task with its retries, the newest log first."""
    logs = [inspect_log(place) for place in places]
    head = logs[0].eval
    for place, log in zip(places, logs):
        stopping = getattr(log.results, "early_stopping", None) if log.results is not None else None
        if stopping is not None and stopping.early_stops:
            raise DataError(
                f"{len(stopping.early_stops)} draws were not made because a stopping rule had ended ({stopping.manager}), and a test for a fixed number "
                "of draws does not hold for what remains",
                where=str(place),
                remedy="the rule's own evidence is in the log: results.early_stopping.metadata",
            )
    samples: dict[tuple[str, int], Any] = {}
    for place, log in zip(places, logs):
        mine: set[tuple[str, int]] = set()
        for sample in log.samples or []:
            key = (str(sample.id), int(sample.epoch))
            if key in mine:
                raise DataError("a sample is there twice in one epoch", where=str(place), got=key, remedy="is the log damaged?")
            mine.add(key)
            samples.setdefault(key, sample)
    if not samples:
        remedy = "give a log of a run that answered something"
        raise DataError(f"holds no samples (its status is {logs[0].status!r})", where=str(places[0]), remedy=remedy)
    records = {key: Record.of(sample.metadata) for key, sample in samples.items()}
    names = {record.interaction for record in records.values() if record is not None}
    # A sample that failed before it was rewritten has no record: it belongs to the only interaction of the log, or to the solver's.
    way = next(iter(names)) if len(names) == 1 else label_of(head.solver, head.solver_args)
    if not way and names and None in records.values():
        what = "some samples carry no record of their interaction, and others do"
        raise DataError(what, where=str(places[0]), got=sorted(names), remedy="is the log damaged?")
    rows = [_row(head, sample, records[key], way) for key, sample in samples.items()]
    names_planned, epochs = head.dataset.sample_ids or [], int(head.config.epochs or 1)
    if len(names_planned) * epochs > MOST_DRAWS:
        raise DataError(f"more than {MOST_DRAWS:,} draws are planned", where=str(places[0]), got=epochs, remedy="is the log damaged?")
    planned = [(str(one), epoch) for one in names_planned for epoch in range(1, epochs + 1)]
    rows += [_missing(head, key, way, bool(names)) for key in planned if key not in samples]
    config = head.model_generate_config.model_dump(exclude_none=True)
    made = {} if str(head.model).startswith("mockllm/") else head.model_args  # a mock's arguments are its answers
    settings = {key: config[key] for key in _SETTINGS if key in config} | {"base_url": head.model_base_url, "model_args": made}
    kept = {key: value for key, value in settings.items() if value is not None and value != {}}
    return Log(rows=rows, source=source, status=str(logs[0].status), runs=(str(head.task_id),), settings={str(head.model): kept})


def _row(head: Any, sample: Any, record: Record | None, way: str) -> LogRow:
    answer = str(sample.output.completion or "") if sample.output is not None else ""
    original, expected = (record.original, record.expected) if record is not None else texts_of(sample.input, sample.target)
    scores: dict[str, Any] = {}
    said: dict[str, str] = {}
    for name, score in (sample.scores or {}).items():
        parts = {f"{name}/{key}": value for key, value in score.value.items()} if isinstance(score.value, dict) else {name: score.value}
        scores |= parts
        # Scorers that only match give the answer itself as their explanation, which is no word of a judge.
        told = str(score.explanation or "")
        said |= dict.fromkeys(parts, "" if told.strip() == answer.strip() else told)
    return LogRow(
        prompt=record.prompt if record is not None else str(sample.id), model=str(head.model), task=str(head.task),
        interaction=record.interaction if record is not None else way, draw=record.draw if record is not None else int(sample.epoch) - 1,
        scores=scores, said=said, why=_unresolved(sample), sent=_sent(sample), answer=answer, original=original, expected=expected,
        digest=record.digest if record is not None else digest_of_sample(sample), unchanged=record is not None and record.unchanged,
        cut=bool(answer) and any(str(choice.stop_reason) in CUT for choice in sample.output.choices[:1]), fields=sample.metadata or {},
    )  # fmt: skip


def _unresolved(sample: Any) -> str:
    """Return why the draw has no verdict whatever its scores are. A sample that met a limit is scored by Inspect all the same, as a miss."""
    if sample.error is not None:
        return f"failed: {str(sample.error.message)[:200]}"
    if sample.limit is not None:
        return f"met a limit: {sample.limit.type}"
    silent = [getattr(score, "reason", None) == "no_response" for score in (sample.scores or {}).values()]
    return "no response" if silent and all(silent) else ""


def _sent(sample: Any) -> str:
    """Return the user's last message before the first answer: solvers rewrite the messages and leave the input as it was."""
    before: list[Any] = []
    for message in sample.messages or []:
        if message.role == "assistant" and getattr(message, "source", None) != "input":
            break
        before.append(message)
    return _last(before) or texts_of(sample.input, "")[0]


def _last(messages: Iterable[Any]) -> str:
    users = [message for message in messages if message.role == "user"]
    return str(users[-1].text) if users else ""


def _missing(head: Any, key: tuple[str, int], way: str, recorded: bool) -> LogRow:
    prompt, interaction, draw = key[0], way, key[1] - 1
    parts = key[0].rsplit(BETWEEN, 2)
    if recorded and len(parts) == 3 and parts[2].isdecimal():  # a draw that is a sample of its own
        prompt, interaction, draw = parts[0], parts[1], int(parts[2])
    return LogRow(
        prompt=prompt, model=str(head.model), task=str(head.task), interaction=interaction, draw=draw, scores={}, why="planned, but not in the log"
    )  # fmt: skip
