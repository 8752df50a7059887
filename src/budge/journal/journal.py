"""The journal of a run: what is finished, block by block, in one SQLite file that survives a kill at any instant.

A block is one transaction, so it is there whole or not at all. Every row carries a checksum of its key and its record,
and the totals of all rows are kept beside them, so that a row that was changed or lost is noticed before any work starts.
The journal is made under another name and then moved into place: half a journal never stands where a journal should.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from budge.errors import InputError, OutputExistsError, Problem, StorageError
from budge.journal.file import FolderLock, connect, create, damaged, guarded, make_folder, probe, tidy
from budge.journal.records import decode, encode

__all__ = ["Journal"]

NAME = "journal.sqlite"
_APPLICATION = 0x62756467  # "budg", in the header of the file
_FORMAT = 1
_MODULUS = 1 << 128
_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_FORMAT};
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE done (key TEXT PRIMARY KEY, record TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID;
"""


class Journal:
    """What a run has finished. Made by `Journal.open`; a context manager that lets go of the folder.

    Attributes
    ----------
    folder
        The run folder.
    complete
        Whether the run was finished.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with Journal.open(folder, {"seed": 7}) as journal:
    ...     journal.write({"ann": {"rho": 0.25}, "bob": {"rho": 0.1}})
    >>> with Journal.open(folder, {"seed": 7}) as journal:  # the same run: it resumes
    ...     journal.done(), journal.complete
    ({'ann': {'rho': 0.25}, 'bob': {'rho': 0.1}}, False)
    """

    def __init__(self, folder: Path, lock: FolderLock, connection: sqlite3.Connection):
        self.folder = folder
        self.path = folder / NAME
        self.complete = False
        self._lock = lock
        self._connection = connection
        self._rows = 0
        self._total = 0

    # -- opening and closing --------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, folder: Path, identity: Mapping[str, Any], *, overwrite: bool = False, resume: bool = True) -> Journal:
        """Start a journal in a folder, or go on with the one that is there.

        Parameters
        ----------
        folder
            The run folder; made if it is not there.
        identity
            All that the results depend on: digests of spec, data and models, target, seed, n, alpha, version. A journal
            with another identity is refused, since its rows answer another question.
        overwrite
            Replace a journal that is there.
        resume
            Go on with a journal that is there; False refuses it.

        Raises
        ------
        InputError
            The journal belongs to another run; each key that differs is named with both values.
        OutputExistsError
            There is a journal and neither `resume` nor `overwrite` was asked for.
        StorageError
            The folder cannot be written, another process holds it, or the journal is damaged.
        """
        folder, wanted = Path(folder), encode(identity)
        path = folder / NAME
        make_folder(folder)
        lock = FolderLock.take(folder / "journal.lock")
        try:
            tidy(path)
            probe(folder)
            if overwrite or not path.exists():
                create(path, _SCHEMA + "".join(_first_notes(wanted)))
            elif not resume:
                remedy = "resume it, overwrite it, or choose another folder"
                raise OutputExistsError("there is a run in this folder", where=str(path), remedy=remedy)
            connection = connect(path)
            try:
                journal = cls(folder, lock, connection)
                journal._check(wanted)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            lock.release()
            raise
        return journal

    def close(self) -> None:
        """Fold the log into the file and let go of the folder; twice does no harm."""
        try:
            with suppress(sqlite3.Error):
                self._connection.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # -- reading and writing --------------------------------------------------------------------------------------------

    def done(self) -> dict[str, dict[str, Any]]:
        """The record of everything that is finished, by key; each compared with its checksum."""
        return dict(self.items())

    def items(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The finished records one by one, in order of their keys: for runs that memory should not hold at once."""
        for key, record, _ in self._verified():
            yield key, decode(record)

    def keys(self) -> set[str]:
        """The keys of everything that is finished."""
        with guarded(self.path):
            return {key for (key,) in self._connection.execute("SELECT key FROM done")}

    @property
    def attempt(self) -> int:
        """The number of this attempt at the run: one more than the largest that a key begins with."""
        return 1 + max((int(key.partition(":")[0]) for key in self.keys() if key.partition(":")[0].isdecimal()), default=0)

    def __len__(self) -> int:
        return self._rows

    def write(self, records: Mapping[str, dict[str, Any]]) -> None:
        """Add a block: all of its records or, if this fails or the process dies, none.

        A record that is there already is let be, if it is the same; another one under its key is an error, since the
        results of a run depend on nothing but its identity.
        """
        assert not self.complete, "the run is complete"
        rows = [(key, text, _checksum(key, text)) for key, text in ((key, encode(record)) for key, record in records.items())]
        if not rows:
            return
        count, total = self._rows, self._total
        with self._transaction():
            for key, text, checksum in rows:
                there = self._connection.execute("SELECT record FROM done WHERE key = ?", (key,)).fetchone()
                if there is None:
                    self._connection.execute("INSERT INTO done VALUES (?, ?, ?)", (key, text, checksum))
                    count, total = count + 1, _add(total, checksum)
                elif there[0] != text:
                    raise StorageError(
                        f"the run has another result for {key!r} already", where=str(self.path), got=text,
                        remedy="the model or the data must have changed under way: start again in another folder",
                    )  # fmt: skip
            self._note("totals", encode([count, f"{total:032x}"]))
        self._rows, self._total = count, total

    def finish(self) -> None:
        """Mark the run as complete."""
        with self._transaction():
            self._note("complete", encode(True))
        self.complete = True

    # -- inside ---------------------------------------------------------------------------------------------------------

    def _check(self, wanted: str) -> None:
        """Everything that can be known before work starts: the file is whole, is ours, is this run's, can be written."""
        with guarded(self.path):
            notes = self._notes()
            problems = [line for (line,) in self._connection.execute("PRAGMA integrity_check(5)") if line != "ok"]
        if problems:
            raise damaged(self.path, "; ".join(problems))
        missing = {"identity", "totals", "complete"} - notes.keys()
        if missing:
            raise damaged(self.path, f"the note {sorted(missing)[0]!r} is missing")
        self._rows, total = decode(notes["totals"])
        self._total = int(total, 16)
        self.complete = decode(notes["complete"])
        if notes["identity"] != wanted:
            raise InputError(_differences(self.path, decode(notes["identity"]), decode(wanted)))
        rows, total = 0, 0
        for _, _, checksum in self._verified():
            rows, total = rows + 1, _add(total, checksum)
        if (rows, total) != (self._rows, self._total):
            raise damaged(self.path, f"{self._rows} records were written, {rows} are there that match")
        with self._transaction():
            self._note("totals", notes["totals"])

    def _verified(self) -> Iterator[tuple[str, str, bytes]]:
        with guarded(self.path):
            for key, record, checksum in self._connection.execute("SELECT key, record, checksum FROM done ORDER BY key"):
                if not isinstance(key, str) or not isinstance(record, str) or _checksum(key, record) != checksum:
                    raise damaged(self.path, f"the record of {key!r} does not match its checksum")
                yield key, record, checksum

    def _notes(self) -> dict[str, str]:
        notes = {}
        if self._connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise damaged(self.path, "it is a database, but no journal of budge")
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version != _FORMAT:
            raise damaged(self.path, f"its format is {version}, this version reads {_FORMAT}")
        for key, value, checksum in self._connection.execute("SELECT key, value, checksum FROM meta"):
            if not isinstance(key, str) or not isinstance(value, str) or _checksum(key, value) != checksum:
                raise damaged(self.path, f"the note {key!r} does not match its checksum")
            notes[key] = value
        return notes

    def _note(self, key: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (key, value, _checksum(key, value)))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with guarded(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise


def _checksum(key: str, text: str) -> bytes:
    return blake2b(f"{len(key)}:{key}{text}".encode(), digest_size=16).digest()


def _first_notes(identity: str) -> Iterator[str]:
    """SQL for the notes of a journal in which nothing is finished."""
    for key, value in {"identity": identity, "totals": encode([0, f"{0:032x}"]), "complete": encode(False)}.items():
        quoted = value.replace("'", "''")
        yield f"INSERT INTO meta VALUES ('{key}', '{quoted}', x'{_checksum(key, value).hex()}');\n"


def _add(total: int, checksum: bytes) -> int:
    """The sum of all checksums: whatever the order in which the blocks came."""
    return (total + int.from_bytes(checksum)) % _MODULUS


def _differences(path: Path, there: dict[str, Any], here: dict[str, Any]) -> list[Problem]:
    def said(values: dict[str, Any], key: str) -> str:
        text = encode(values[key]) if key in values else "nothing"
        return text if len(text) <= 100 else text[:99] + "…"

    keys = [key for key in {**there, **here} if key not in there or key not in here or encode(there[key]) != encode(here[key])]
    remedies = [""] * (len(keys) - 1) + ["choose another folder, overwrite it, or ask for the same run"]
    return [
        Problem(str(path), f"this is another run: {key} was {said(there, key)}, now it is {said(here, key)}", remedy=remedy)
        for key, remedy in zip(keys, remedies)
    ]
