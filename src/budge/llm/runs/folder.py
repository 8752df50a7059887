"""What a run keeps: the journal while it works, and the table of answers that tests read.

The journal (`budge.journal`) holds every answer and judgement from the instant it is there. When a call of `llm.run` ends, for
whatever reason, the table and its description are written beside it, each whole or not at all.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any

from budge.errors import InputError, StorageError
from budge.journal import NAME, Journal
from budge.journal.file import make_folder
from budge.journal.records import decode
from budge.llm.answers import Answers
from budge.llm.runs.meter import ENDED, STARTED

__all__ = ["ANSWERS", "LOGS", "RECORD", "Store", "begin", "holds_run", "load", "open_journal", "save"]

ANSWERS, RECORD, LOGS = "answers.jsonl", "run.json", "logs"
_FORMAT = 1
_PLAN = "plan"


class Store:
    """Records by key: in memory, and in the journal if there is one."""

    def __init__(self, journal: Journal | None = None):
        self._journal = journal
        self._records: dict[str, dict[str, Any]] = {}
        self.calls: dict[str, dict[str, dict[str, Any]]] = {STARTED: {}, ENDED: {}}
        for key, record in journal.items() if journal is not None else ():
            kind, _, number = key.partition(" ")
            self.calls.get(kind, self._records)[number if kind in self.calls else key] = record

    def get(self, key: str) -> dict[str, Any] | None:
        """What is kept under the key."""
        return self._records.get(key)

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Keep it for good."""
        if self._journal is not None:
            self._journal.write({key: record})
        self._records[key] = record

    def note(self, key: str, record: dict[str, Any]) -> None:
        """Keep that a call was started or has ended, for who goes on after a kill; it is no record of a draw."""
        if self._journal is not None:
            self._journal.write({key: record})

    def items(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """All records."""
        yield from self._records.items()

    def __len__(self) -> int:
        return len(self._records)


def holds_run(folder: Path) -> bool:
    """Whether a journal is in the folder."""
    return (folder / NAME).exists()


def open_journal(folder: Path, identity: Mapping[str, Any], *, overwrite: bool = False) -> Journal:
    """The journal of the run. One of another run in which nothing was answered is replaced: it was refused, and this is the mended call."""
    try:
        return Journal.open(folder, identity, overwrite=overwrite)
    except InputError:
        there = _peek(folder)
        if there is None or there[0].get("kind") != "llm run" or there[1]:
            raise
        return Journal.open(folder, identity, overwrite=True)


def begin(folder: Path, store: Store, info: dict[str, Any], categories: Mapping[str, str]) -> None:
    """Before anything is asked: the table of an earlier call is out of date from now on, and what reads the journal needs to know."""
    if store.get(_PLAN) is None:
        identity = info["identity"]
        order = {"model": list(identity["models"]), "interaction": list(identity["interactions"])}
        told = {"info": json.loads(json.dumps(info, default=str)), "categories": list(categories.items()), "order": order}
        store.put(_PLAN, told)
    (folder / RECORD).unlink(missing_ok=True)


def _peek(folder: Path) -> tuple[dict[str, Any], int] | None:
    """Whose journal it is, and how many answers are in it; None where it cannot be read."""
    try:
        with closing(sqlite3.connect(folder / NAME)) as connection:
            (identity,) = connection.execute("SELECT value FROM meta WHERE key = 'identity'").fetchone()
            (answers,) = connection.execute("SELECT count(*) FROM done WHERE key LIKE 'answer %'").fetchone()
            return dict(decode(identity)), int(answers)
    except (sqlite3.Error, TypeError, ValueError):
        return None


def _unfinished(folder: Path) -> Answers | None:
    """The answers in the journal of a run that was killed; the draws that it had not come to count as unresolved in tests."""
    there = _peek(folder) if holds_run(folder) else None
    if there is None or not there[1]:
        return None
    with Journal.open(folder, there[0]) as journal:
        store = Store(journal)
    plan = store.get(_PLAN)
    if plan is None or plan["info"]["identity"].get("sequential"):
        return None  # where its rule stops is for the run itself to say
    categories = dict(plan["categories"])
    place = {prompt: i for i, prompt in enumerate(categories)}
    rows = []
    for key, answer in store.items():
        verdict = store.get("judge" + key.removeprefix("answer"))
        if key.startswith("answer ") and verdict is not None:
            model, interaction, prompt, index = _parts(key.removeprefix("answer "))
            rows.append(
                {
                    "model": model, "interaction": interaction, "prompt": prompt, "category": categories.get(prompt, ""),
                    "draw": index, "hit": verdict["hit"], "why": verdict["why"], "sent": answer["sent"], "answer": answer["text"],
                }
            )  # fmt: skip
    at = {name: {word: i for i, word in enumerate(plan["order"][name])} for name in plan["order"]}
    joint = plan["info"]["scheme"] == "joint"
    rows.sort(key=lambda row: (*(at[name][row[name]] for name in at), 0 if joint else place[row["prompt"]], row["draw"]))
    return Answers.of(rows, plan["info"])


def _parts(key: str) -> tuple[str, str, str, int]:
    """The parts of the key of a draw; see `Draw.key`."""
    parts = []
    for _ in range(3):
        size, _, rest = key.partition(":")
        parts.append(rest[: int(size)])
        key = rest[int(size) + 1 :]
    return parts[0], parts[1], parts[2], int(key)


def save(answers: Answers, folder: str | Path, *, record: Mapping[str, Any] | None = None) -> None:
    """Write the answers and what is known of them into a folder, for `load` and ``budge llm test``."""
    folder = Path(folder)
    make_folder(folder)
    answers.write(folder / ANSWERS, overwrite=True)
    told = {"format": _FORMAT, "rows": len(answers), "digest": _digest(_read(folder / ANSWERS)), **dict(record or {})}
    _replace(folder / RECORD, (json.dumps(told, indent=2, default=str) + "\n").encode())


def load(folder: str | Path) -> Answers:
    """The answers of a run folder, or of a file of answers.

    Raises
    ------
    StorageError
        There are none, or they are not as they were written.
    """
    folder = Path(folder)
    if folder.is_file():
        return Answers.read(folder)
    if not (folder / RECORD).exists() and (found := _unfinished(folder)) is not None:
        return found
    told, lines = _read(folder / RECORD), _read(folder / ANSWERS)
    try:
        record = json.loads(told)
        rows, digest, version = record["rows"], record["digest"], record["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(folder / RECORD, f"it is no record of a run ({type(error).__name__}: {error})") from error
    if version != _FORMAT:
        raise _damaged(folder / RECORD, f"its format is {version!r}, this version reads {_FORMAT}")
    if _digest(lines) != digest:
        there = max(lines.count(b"\n") - 1, 0)
        raise _damaged(folder / ANSWERS, f"{rows} rows were written, {there} are there, or some were changed")
    return Answers.read(folder / ANSWERS)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        remedy = "run `budge llm run … -o` with this folder first; an interrupted run goes on by the same call"
        raise StorageError("there are no answers here", where=str(path), remedy=remedy) from None
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", where=str(path)) from error


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        remedy = "make room or choose another folder; what was answered is kept, and the same call goes on from there"
        raise StorageError(f"cannot be written: {error.strerror}", where=str(path), remedy=remedy) from error


def _damaged(path: Path, what: str) -> StorageError:
    return StorageError(
        f"this part of the run is damaged: {what}", where=str(path), remedy="run again: the journal has the answers"
    )


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
