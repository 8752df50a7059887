"""What a run keeps: the journal while it works, and the table of answers that tests read.

The journal (`budge.journal`) holds every answer and judgement from the instant it is there. When a call of `llm.run` ends, for
whatever reason, the table is written beside it, and then the record that names it: a reader sees those of the last call or of the one before it.
A run that overwrites another one leaves that as it is until it is complete itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from budge.errors import InputError, StorageError
from budge.files import make_folder, remove, write_whole
from budge.journal import NAME, Journal
from budge.llm.answer_files import check_info, json_lines
from budge.llm.answers import Answers
from budge.llm.runs.consistency import check_answers
from budge.llm.runs.meter import ENDED, STARTED
from budge.stored import COUNT, MEGABYTE, Rule, check_shape, parse_json, read_bytes, reading

__all__ = ["CUT", "LOGS", "RECORD", "Store", "answer_row", "begin", "holds_run", "load", "open_journal", "save"]

RECORD, LOGS = "run.json", "logs"
_FORMAT = 2
_LEFT = re.compile(r"answers-[0-9a-f]{16}\.jsonl|\.(answers-|run\.json).*\.part")
#: Why a model stopped, as Inspect words it, where its text is not whole.
CUT = ("max_tokens", "model_length")
_PLAN = "plan"
_MOST_RECORD, _MOST_ANSWERS = 64 * MEGABYTE, 4096 * MEGABYTE  # bytes
_TWO = Rule("two counts", lambda v: isinstance(v, list) and len(v) == 2 and all(map(COUNT.holds, v)))
_KEPT = {  # by the first word of the key in the journal
    "answer": {"sent": str, "text": str, "why": str, "stop": str, "unchanged": bool, "original": str, "expected": str, str: Any},
    "judge": {"hit": bool | None, "why": str, "raw": str},
    "rewrite": {"text": str, "id?": str, "category?": str, "expected?": str, "system?": str, "options?": [str], "passages?": [str]},
    "ask": {"question": str, "text": str, "why": str, "stop": str, "usage": list, str: Any}, "failed": {"calls": COUNT, "reason": str},
    STARTED: {"model": str, "most": _TWO},
    ENDED: {"used": _TWO}, _PLAN: {"info": {"scheme": str, "identity": dict, str: Any}, "categories": [list], "order": {"model": [str], "interaction": [str]}},
}  # fmt: skip


class Store:
    """Records by key: in memory, and in the journal if there is one."""

    def __init__(self, journal: Journal | None = None):
        self._journal = journal
        self.replaces = journal is not None and journal.replaces  # another run, which stands in the folder until this one is complete
        self._records: dict[str, dict[str, Any]] = {}
        self.calls: dict[str, dict[str, dict[str, Any]]] = {STARTED: {}, ENDED: {}}
        for key, record in journal.items() if journal is not None else ():
            kind, _, number = key.partition(" ")
            with reading(journal.path, f"the journal of the run is damaged: {key[:100]}"):  # type: ignore[union-attr]
                check_shape(record, _KEPT.get(kind, {str: Any}))
            self.calls.get(kind, self._records)[number if kind in self.calls else key] = record

    def get(self, key: str) -> dict[str, Any] | None:
        """What is kept under the key."""
        return self._records.get(key)

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Keep it for good."""
        if self._journal is not None:
            self._journal.write({key: record})
        self._records[key] = record

    def lend(self, key: str, record: dict[str, Any]) -> None:
        """Hold a record that is kept elsewhere: in memory alone."""
        self._records.setdefault(key, record)

    def note(self, key: str, record: dict[str, Any]) -> None:
        """Keep that a call was started or has ended, for who goes on after a kill; it is no record of a draw."""
        if self._journal is not None:
            self._journal.write({key: record})

    def check_verdicts(self) -> None:
        """Raise an error where the journal of a run has a verdict on a draw that was not answered; an answer is kept before it is judged."""
        for key, record in self._records.items():
            kind, _, draw = key.partition(" ")
            answer = self._records.get(f"answer {draw}") if kind == "judge" else None
            if kind == "judge" and (answer is None or (answer["why"] and record["hit"] is not None)):
                what = "the journal of the run is damaged: there is a verdict without an answer"
                where = None if self._journal is None else str(self._journal.path)
                raise StorageError(what, where=where or "", got=draw[:100], remedy="use another folder")

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
        there, keys = Journal.peek(folder)
        answered = any(key.startswith("answer ") for key in keys)
        if answered and _same_but_longer(there, identity):
            what = "a curtailed rule is the test of its number of draws: draws that are added after its end would make a false claim more likely"
            remedy = "use another folder; rules that can be extended are anytime and sprt"
            raise InputError(what, where=str(folder), got=identity["n"], remedy=remedy) from None
        if answered or there.get("kind") != "llm run":
            raise
        Journal.discard(folder)
        return Journal.open(folder, identity)


def _same_but_longer(there: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Return whether two runs differ in nothing but the number of draws of a curtailed rule."""
    differ = {key for key in {**there, **here} if there.get(key) != here.get(key)}
    rules = [(run.get("sequential") or {}).get("kind") for run in (there, here)]
    return rules == ["curtailed", "curtailed"] and differ == {"n", "sequential"}


def begin(folder: Path, store: Store, info: dict[str, Any], categories: Mapping[str, str]) -> None:
    """Before anything is asked: the table of an earlier call is out of date from now on, and what reads the journal needs to know."""
    if store.get(_PLAN) is None:
        identity = info["identity"]
        order = {"model": list(identity["models"]), "interaction": list(identity["interactions"])}
        told = {"info": json.loads(json.dumps(info, default=str)), "categories": list(categories.items()), "order": order}
        store.put(_PLAN, told)
    if not store.replaces:
        remove([folder / RECORD])


def _unfinished(folder: Path) -> Answers | None:
    """The answers in the journal of a run that was killed; the draws that it had not come to count as unresolved in tests."""
    if not holds_run(folder):
        return None
    identity, keys = Journal.peek(folder)
    if not any(key.startswith("answer ") for key in keys):
        return None
    with Journal.open(folder, identity) as journal:
        store = Store(journal)
    with reading(folder / NAME, "the journal of the run is damaged"):
        return _answered(store)


def _answered(store: Store) -> Answers | None:
    store.check_verdicts()
    plan = store.get(_PLAN)
    if plan is None or plan["info"]["identity"].get("sequential"):
        return None  # where its rule stops is for the run itself to say
    check_info(plan["info"])
    categories = dict(plan["categories"])
    place = {prompt: i for i, prompt in enumerate(categories)}
    rows = []
    for key, answer in store.items():
        verdict = store.get("judge" + key.removeprefix("answer"))
        if key.startswith("answer ") and verdict is not None:
            model, interaction, prompt, index = _parts(key.removeprefix("answer "))
            rows.append(answer_row(model, interaction, prompt, categories[prompt], index, answer, verdict))
    at = {name: {word: i for i, word in enumerate(plan["order"][name])} for name in plan["order"]}
    joint = plan["info"]["scheme"] == "joint"
    rows.sort(key=lambda row: (*(at[name][row[name]] for name in at), 0 if joint else place[row["prompt"]], row["draw"]))
    found = Answers.of(rows, {**plan["info"], "complete": False})
    check_answers(found)
    return found


def answer_row(
    model: str, interaction: str, prompt: str, category: str, index: int, answer: Mapping[str, Any], verdict: Mapping[str, Any]
) -> dict[str, Any]:  # fmt: skip
    """Return the row of a finished draw in the table of answers, from its two records."""
    return {
        "model": model, "interaction": interaction, "prompt": prompt, "category": category, "draw": index, "hit": verdict["hit"],
        "why": verdict["why"], "sent": answer["sent"], "answer": answer["text"], "judge_text": "" if verdict["raw"] == answer["text"] else verdict["raw"],
        "original": answer["original"], "expected": answer["expected"], "lost": answer["why"], "cut": answer["stop"] in CUT,
        "unchanged": answer["unchanged"],
    }  # fmt: skip


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
    lines = json_lines(answers)
    name = f"answers-{_digest(lines)[:16]}.jsonl"
    remedy = "make room, or choose another folder; what was answered is kept, and the same call goes on from there"
    told = {"format": _FORMAT, "answers": name, "rows": len(answers), "digest": _digest(lines), **dict(record or {})}
    try:
        write_whole(folder / name, lines, remedy=remedy)
        write_whole(folder / RECORD, json.dumps(told, indent=2, default=str) + "\n", remedy=remedy)
    finally:
        _tidy(folder)


def _tidy(folder: Path) -> None:
    """Remove answers that the record does not name: of an earlier call, or of one that failed or was killed."""
    try:
        named = parse_json(_read(folder / RECORD, _MOST_RECORD), constants=True)["answers"] if (folder / RECORD).exists() else None
    except (StorageError, ValueError, KeyError, TypeError):
        return
    remove(path for path in folder.iterdir() if path.name != named and _LEFT.fullmatch(path.name))


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
    with reading(folder / RECORD, "this part of the run is damaged: it is no record of a run"):
        record = parse_json(_read(folder / RECORD, _MOST_RECORD), constants=True)
        check_shape(record, {"rows": COUNT, "digest": str, "format": int, "answers?": str, str: Any})
    rows, digest, version, name = record["rows"], record["digest"], record["format"], str(record.get("answers"))
    if version != _FORMAT:
        raise _damaged(folder / RECORD, f"its format is {version!r}, this version reads {_FORMAT}")
    if not _LEFT.fullmatch(name):
        raise _damaged(folder / RECORD, f"{name!r} is no name of answers")
    lines = _read(folder / name, _MOST_ANSWERS)
    if _digest(lines) != digest:
        there = max(lines.count(b"\n") - 1, 0)
        raise _damaged(folder / name, f"{rows} rows were written, {there} are there, or some were changed")
    with reading(folder / name, "this part of the run is damaged"):
        answers = Answers.read(folder / name)
        if len(answers) != rows:
            raise ValueError(f"{rows} rows were written, {len(answers)} are there")
        check_answers(answers)
    return answers


def _read(path: Path, most: int) -> bytes:
    remedy = "run `budge llm run … -o` with this folder first; an interrupted run goes on by the same call"
    return read_bytes(path, most, missing="there are no answers here", remedy=remedy)


def _damaged(path: Path, what: str) -> StorageError:
    return StorageError(
        f"this part of the run is damaged: {what}", where=str(path), remedy="run again: the journal has the answers"
    )


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
