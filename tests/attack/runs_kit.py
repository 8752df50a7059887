"""Honest folders of every kind, and the tools to forge them: digests are computed anew, as whoever forges a run does."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any

import isolated
import numpy as np
import pandas as pd

import budge
from budge.journal import Journal
from budge.llm.answers import Answers
from budge.llm.runs.design import rule_key
from budge.llm.runs.draws import stop_of
from budge.llm.runs.folder import save
from budge.models.cache import AnswerCache
from budge.people import People

# What these attacks import is imported once, before the server forks for the first time: an attempt costs a tenth of a second then, not one.
isolated._server.set_forkserver_preload([*isolated.PRELOADED, "budge.audit.streaming", "budge.llm.runs.folder", "budge.llm.claims", "budge.models.cache"])

MODEL = budge.InteractionModel(
    [
        budge.Feature("income", "integer", bounds=(0, 9), max_increase=3),
        budge.Feature("rent", "real", bounds=(0, 1)),
        budge.Feature("home", "category", levels=["own", "rent"], actionable=False),
    ],
    name="loans",
)
LISTED = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9), max_increase=3), budge.Feature("home", "category", levels=["own", "rent"])])


def people(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    found = pd.DataFrame({"income": rng.integers(0, 9, n), "rent": rng.random(n).round(3), "home": rng.choice(["own", "rent"], n)})
    return found.set_axis(pd.Index([f"id{i}" for i in range(n)], name="who"))


def approve(table: pd.DataFrame) -> Any:
    return ((table["income"] + 3 * (1 - table.get("rent", 0.5))) > 7.5).astype(int).to_numpy()


def audit(**more: Any) -> budge.Audit:
    return budge.audit(approve, people(), MODEL, target=1, seed=3, design=budge.Design(groups=("home",), population="all"), **more)


def make_table(folder: Path) -> None:
    """A table whose rows were drawn."""
    audit(n=60).save(folder)


def make_listed(folder: Path) -> None:
    """A table whose points were listed, with labels and times of its own."""
    X = people().set_axis(pd.date_range("2020-01-01", periods=40, tz="Europe/Vienna"))
    budge.audit(approve, X[["income", "home"]], LISTED, target=1, population="all").save(folder)


def make_weighted(folder: Path) -> None:
    """A table with weighted draws."""
    audit(n=60, proposal={"income": {"weights": {i: 1 + i % 3 for i in range(10)}}}).save(folder)


def make_stopped(folder: Path) -> None:
    """A table whose draws were ended by a rule."""
    audit(sequential=True).save(folder)


def make_stream(folder: Path) -> None:
    """A stream of people, with its journal."""
    X = people(60).reset_index(drop=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    X.to_csv(folder.parent / "people.csv", index=False)
    how = budge.Execution(journal=folder)
    budge.audit(approve, People.of(folder.parent / "people.csv", part=20), MODEL, target=1, n=60, seed=3, population="all", groups=("home",), execution=how)


def make_journal(folder: Path) -> None:
    """The journal of an audit that has finished."""
    audit(n=60, execution=budge.Execution(journal=folder, block_people=10))


def make_cache(folder: Path) -> None:
    """A cache of answers."""
    folder.mkdir(parents=True)
    AnswerCache(folder / "answers.sqlite").put({f"k{i}": i if i % 2 else f"text {i}" for i in range(200)})


def make_llm(folder: Path) -> None:
    """Answers of language models."""
    rows = [
        {"model": m, "interaction": i, "prompt": f"q{k % 8}", "draw": k // 8, "hit": (k * 7 + len(i)) % 3 == 0, "answer": f"answer {k}", "sent": "?"}
        for m in ("m1", "m2") for i in ("base", "shout") for k in range(40)
    ]  # fmt: skip
    told = {"judge": "says", "identity": {"models": ["m1", "m2"]}}
    info = {"scheme": "per_prompt", "n": None, "per_prompt": 5, "complete": True, "prompts": "8 prompts (abc)", **told}
    save(Answers.of(rows, info), folder)


def make_joint(folder: Path) -> None:
    """Answers of a language model that a rule ended early."""
    rule = budge.stats.curtailed_rule(40, threshold=0.6)
    hits = {word: [k % 3 == at for k in range(40)] for at, word in enumerate(("base", "shout"))}
    ends = {word: stop_of(rule, seen) for word, seen in hits.items()}
    rows = [
        {"model": "m", "interaction": word, "prompt": f"q{k % 7}", "draw": k, "hit": hits[word][k], "answer": f"answer {k}", "lost": ""}
        for word in hits for k in range(ends[word][1])
    ]  # fmt: skip
    stops = [
        {"model": "m", "interaction": word, "verdict": verdict, "draws": n, "hits": sum(hits[word][:n]), "unresolved": 0} for word, (verdict, n) in ends.items()
    ]
    told = {"scheme": "joint", "n": 40, "per_prompt": None, "seed": 5, "prompts": "7 prompts, abc", "complete": True}
    asked = {"models": {"m": "m"}, "interactions": {"base": "", "shout": ""}, "census": False, "n": 40, "seed": 5, "sequential": rule_key(rule)}
    save(Answers.of(rows, {**told, "identity": asked, "sequential": {**rule_key(rule), "stops": stops}}), folder)


def make_unfinished(folder: Path) -> None:
    """The journal of a run with a language model that was killed."""
    identity = {"kind": "llm run", "models": {"m": "m"}, "interactions": {"base": ""}, "n": 9}
    plan = {"scheme": "joint", "n": 9, "per_prompt": None, "complete": False, "prompts": "3 prompts, abc", "identity": identity}
    order = {"model": ["m"], "interaction": ["base"]}
    answer = {"sent": "?", "text": "yes", "why": "", "stop": "stop", "unchanged": False, "original": "?", "expected": ""}
    with Journal.open(folder, identity) as journal:
        journal.write({"plan": {"info": plan, "categories": [[f"q{k}", ""] for k in range(3)], "order": order}})
        for k in range(6):
            draw = f"1:m|4:base|2:q{k % 3}|{k:08d}"
            journal.write({f"answer {draw}": answer, f"judge {draw}": {"hit": k < 2, "why": "", "raw": ""}})


KINDS: dict[str, Callable[[Path], None]] = {
    "table": make_table, "listed": make_listed, "weighted": make_weighted, "stopped": make_stopped, "stream": make_stream, "journal": make_journal,
    "cache": make_cache, "llm": make_llm, "joint": make_joint, "unfinished": make_unfinished,
}  # fmt: skip


# -- what a reader shows ------------------------------------------------------------------------------------------------


def show_run(folder: str) -> dict[str, Any]:
    """Load a run, and return what it shows: sentences, numbers, the table."""
    found = budge.Audit.load(folder)
    shown = {name: {k: v for k, v in found.summary(name).to_dict().items() if k not in ("given", "already", "causes")} for name in found.models}
    return {"numbers": json.dumps(shown, default=str), "table": found.whole().table.to_csv(), "said": str(found)}


def show_journal(folder: str) -> dict[str, Any]:
    """Go on with an audit, and return what it shows."""
    found = audit(n=60, execution=budge.Execution(journal=folder, block_people=10))
    return {"numbers": found.table.to_csv()}


def show_cache(folder: str) -> dict[str, Any]:
    return AnswerCache(Path(folder) / "answers.sqlite").get([f"k{i}" for i in range(200)])


def show_llm(folder: str) -> dict[str, Any]:
    """Load answers, test them, and return the table."""
    found = budge.llm.load(folder)
    return {"numbers": found.counts().to_csv(), "said": str(budge.llm.test(found, threshold=0.5, over="these"))}


SHOW: dict[str, Callable[[str], dict[str, Any]]] = dict.fromkeys(("table", "listed", "weighted", "stopped", "stream"), show_run) | {
    "journal": show_journal, "cache": show_cache, "llm": show_llm, "joint": show_llm, "unfinished": show_llm,
}  # fmt: skip


# -- forging ------------------------------------------------------------------------------------------------------------


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def at(folder: Path, name: str) -> Path:
    """Return a file of a run by the name that it has without its digest."""
    stem, dot, end = name.rpartition(".")
    return next(iter(sorted(folder.glob(f"{stem}-{'[0-9a-f]' * 16}{dot}{end}"))), folder / name)


def record_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.loads((folder / "audit.json").read_text())["record"])
    return found


def seal(folder: Path, record: dict[str, Any] | str, *, arrays: bool = True) -> None:
    """Write a record with its digest, and that of the counts in it."""
    counts = at(folder, "counts.npz")
    if isinstance(record, dict) and arrays and counts.is_file() and "files" in record and isinstance(record["files"], dict):
        record["files"] |= {counts.name: digest(counts.read_bytes())}
    body = record if isinstance(record, str) else json.dumps(record)
    (folder / "audit.json").write_text(json.dumps({"digest": digest(body.encode()), "record": body}))


def forge(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Return what changes the record of a run."""

    def forged(folder: Path) -> None:
        record = record_of(folder)
        seal(folder, change(record) or record)

    return forged


def put(path: str, value: Any) -> Callable[[Path], None]:
    """Return what sets one place of the record; of both records where it is of the design."""

    def change(record: dict[str, Any]) -> None:
        for head in ("", "info.") if path.startswith("design.") else ("",):
            at, last = parent(record, head + path)
            at[last] = value

    return forge(change)


def parent(record: Any, path: str) -> tuple[Any, Any]:
    *ahead, last = [int(k) if k.isdecimal() else k for k in path.split(".")]
    for key in ahead:
        record = record[key]
    return record, last


def arrays(**changes: Any) -> Callable[[Path], None]:
    """Return what changes arrays of the counts; a function is given the array, None takes it out."""

    def forged(folder: Path) -> None:
        with np.load(at(folder, "counts.npz")) as archive:
            found = {name: archive[name] for name in archive.files}
        for name, value in changes.items():
            key = name if name in found else f"0.{name.replace('__', '.')}"
            if value is None:
                del found[key]
            else:
                found[key] = value(found[key].copy()) if callable(value) else value
        np.savez_compressed(at(folder, "counts.npz"), **found, allow_pickle=True)
        seal(folder, record_of(folder))

    return forged


def members(change: Callable[[dict[str, bytes]], dict[str, bytes]], compression: int = zipfile.ZIP_DEFLATED) -> Callable[[Path], None]:
    """Return what changes the members of the packed counts, byte by byte."""

    def forged(folder: Path) -> None:
        with zipfile.ZipFile(at(folder, "counts.npz")) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(at(folder, "counts.npz"), "w", compression) as archive:
            for name, data in change(found).items():
                archive.writestr(name, data)
        seal(folder, record_of(folder))

    return forged


def npy(shape: tuple[int, ...], kind: str, data: bytes = b"") -> bytes:
    """Return an array file whose header states what it is told to."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data


def sql(*statements: str, name: str = "journal.sqlite") -> Callable[[Path], None]:
    """Return what runs statements in a database."""

    def forged(folder: Path) -> None:
        with closing(sqlite3.connect(folder / name, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            for statement in statements:
                connection.execute(statement)

    return forged


def rewritten(change: Callable[[str, str], tuple[str, str] | None], table: str = "done") -> Callable[[Path], None]:
    """Return what changes records of a journal, with checksums and totals that fit."""
    column = "record" if table == "done" else "value"

    def forged(folder: Path) -> None:
        from budge.journal.journal import _add, _checksum

        with closing(sqlite3.connect(folder / "journal.sqlite", isolation_level=None)) as connection:
            rows = connection.execute(f"SELECT key, {column} FROM {table}").fetchall()
            connection.execute(f"DELETE FROM {table}")
            total, new = 0, [pair for pair in (change(key, text) for key, text in rows) if pair is not None]
            for key, text in new:
                connection.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", (key, text, _checksum(key, text)))
                total = _add(total, _checksum(key, text))
            if table == "done":
                note = json.dumps([len(new), f"{total:032x}"], separators=(",", ":"))
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('totals', ?, ?)", (note, _checksum("totals", note)))

    return forged


def in_blocks(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Return what changes the blocks of a journal of an audit."""

    def changed(key: str, text: str) -> tuple[str, str]:
        record = json.loads(text)
        if "people" in record:
            change(record)
        return key, json.dumps(record, sort_keys=True, separators=(",", ":"))

    return rewritten(changed)


def lines(change: Callable[[list[Any]], Any], **record: Any) -> Callable[[Path], None]:
    """Return what changes the lines of a file of answers, with the digest that fits; the first line tells how they were made."""

    def forged(folder: Path) -> None:
        path = at(folder, "answers.jsonl")
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        rows = change(rows) or rows
        path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
        told = json.loads((folder / "run.json").read_text()) | {"rows": len(rows) - 1, "digest": digest(path.read_bytes())} | record
        (folder / "run.json").write_text(json.dumps(told))

    return forged


def piece(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Return what changes a Parquet file of a stream (its table, or its bytes), with the digest that fits."""

    def forged(folder: Path) -> None:
        from pyarrow import parquet

        path = at(folder, "parts/000000-0.parquet")
        made = change(parquet.read_table(path))
        if isinstance(made, bytes):
            path.write_bytes(made)
        else:
            parquet.write_table(made, path, compression="zstd")
        record, seen = record_of(folder), digest(path.read_bytes())
        path.rename(path.with_name(f"000000-0-{seen[:16]}.parquet"))
        record["info"]["pieces"][0]["files"] = [seen]
        seal(folder, record)

    return forged


def column(name: str, value: Any) -> Callable[[Path], None]:
    """Return what changes one column of a Parquet file; a function is given its values."""

    def change(table: Any) -> Any:
        import pyarrow as pa

        new = value(table.column(name).to_pylist()) if callable(value) else value
        return table.set_column(table.column_names.index(name), name, pa.array(new, type=None if callable(value) is False else table.schema.field(name).type))

    return piece(change)


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Yield the place of every value of a record."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, item in items:
        here = f"{path}.{key}".lstrip(".")
        yield here
        yield from leaves(item, here)


def compressed_zeros(size: int) -> bytes:
    """Return a packed file with one member of so many zeros, written in small steps."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("0.n.npy", "w", force_zip64=True) as file:
        file.write(npy((size // 8,), "<i8"))
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    return out.getvalue()


__all__ = ["KINDS", "SHOW", "Journal"]
