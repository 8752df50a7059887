"""The journal of a run: what is finished, block by block, in one SQLite file that survives a kill at any instant.

A block is one transaction, so it is there whole or not at all. Every row carries a checksum of its key and its record,
and the totals of all rows are kept beside them, so that a row that was changed or lost is noticed before any work starts.
The journal is made under another name and then moved into place: half a journal never stands where a journal should.

A run that overwrites another one keeps its journal in ``journal.next.sqlite`` and takes the place of the old one when it is finished.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from budge.errors import InputError, OutputExistsError, Problem, StorageError
from budge.files import make_folder, remove
from budge.journal.file import PROBE, FolderLock, connect, create, damaged, files_of, guarded, probe, put
from budge.journal.records import decode, encode
from budge.stored import COUNT, Rule, check_shape, check_tables, reading

__all__ = ["Journal"]

NAME, NEXT = "journal.sqlite", "journal.next.sqlite"
_APPLICATION = 0x62756467  # "budg", in the header of the file
_FORMAT = 1
_MODULUS = 1 << 128
_TABLES = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID",
    "done": "CREATE TABLE done (key TEXT PRIMARY KEY, record TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID",
}
_SCHEMA = f"PRAGMA application_id = {_APPLICATION};\nPRAGMA user_version = {_FORMAT};\n" + "".join(f"{sql};\n" for sql in _TABLES.values())
_MOST_NOTES = 100
_TOTALS = Rule("a count and a sum", lambda v: isinstance(v, list) and len(v) == 2 and COUNT.holds(v[0]) and isinstance(v[1], str) and len(v[1]) == 32)


class Journal:
    """What a run has finished. Made by `Journal.open`; a context manager that lets go of the folder.

    Attributes
    ----------
    folder
        The run folder.
    complete
        Whether the run was finished.
    overwrite
        Whether a run that turns out to be another one may be started over: see `restart`.

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

    def __init__(self, path: Path, lock: FolderLock, connection: sqlite3.Connection, *, overwrite: bool = False):
        self.folder, self.path, self.overwrite = path.parent, path, overwrite
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
            Replace a run that is finished, damaged or another one: it stays until the new one is finished. An unfinished run of the same identity goes
            on, also one that was overwriting another one.
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
        make_folder(folder)
        lock = FolderLock.take(folder / "journal.lock")
        try:
            remove([folder / PROBE])
            probe(folder)
            path, new = _choose(folder, wanted, overwrite)
            if new:
                create(path, _SCHEMA + "".join(_first_notes(wanted)))
            elif not resume:
                remedy = "resume it, overwrite it, or choose another folder"
                raise OutputExistsError("there is a run in this folder", where=str(path), remedy=remedy)
            journal = cls._opened(path, lock, wanted, overwrite)
        except BaseException:
            lock.release()
            raise
        return journal

    @classmethod
    def _opened(cls, path: Path, lock: FolderLock, wanted: str, overwrite: bool) -> Journal:
        connection = connect(path)
        try:
            journal = cls(path, lock, connection, overwrite=overwrite)
            journal._check(wanted)
        except BaseException as error:
            connection.close()
            if not overwrite or not getattr(error, "damage", False):
                raise
            create(path, _SCHEMA + "".join(_first_notes(wanted)))
            return cls._opened(path, lock, wanted, False)
        return journal

    @property
    def replaces(self) -> bool:
        """Whether another run stands in the folder until this one is finished."""
        return self.path.name == NEXT

    @classmethod
    def discard(cls, folder: Path) -> None:
        """Remove the journal of a folder."""
        lock = FolderLock.take(folder / "journal.lock")
        try:
            remove(files_of(folder / NAME))
        finally:
            lock.release()

    @classmethod
    def peek(cls, folder: Path) -> tuple[dict[str, Any], set[str]]:
        """Return whose journal is in a folder, and the keys of what is finished; nothing is locked or written.

        Raises
        ------
        StorageError
            The journal is damaged.
        """
        path = Path(folder) / NAME
        connection = connect(path)
        try:
            with guarded(path):
                there = cls(path, None, connection)  # type: ignore[arg-type]
                identity = decode(there._notes()["identity"])
                check_shape(identity, {str: Any})
                return identity, there.keys()
        except KeyError:
            raise damaged(path, "the note 'identity' is missing") from None
        finally:
            connection.close()

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
        for key, text, _ in self._verified():
            with reading(self.path, "the journal of the run is damaged"):
                record = decode(text)
                check_shape(record, {str: Any})
            yield key, record

    def keys(self) -> set[str]:
        """The keys of everything that is finished."""
        with guarded(self.path):
            return {str(key) for (key,) in self._connection.execute("SELECT key FROM done")}

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
        """Mark the run as complete; one that was overwritten by it is gone from then on."""
        if self.replaces:
            self._connection.close()
            put(self.path, self.folder / NAME)
            self.path = self.folder / NAME
            self._connection = connect(self.path)
        with self._transaction():
            self._note("complete", encode(True))
        self.complete = True
        remove(files_of(self.folder / NEXT))

    def restart(self) -> None:
        """Forget everything that is finished."""
        with self._transaction():
            self._connection.execute("DELETE FROM done")
            for key, value in _nothing().items():
                self._note(key, value)
        self._rows, self._total, self.complete = 0, 0, False

    # -- inside ---------------------------------------------------------------------------------------------------------

    def _check(self, wanted: str) -> None:
        """Everything that can be known before work starts: the file is whole, is ours, is this run's, can be written."""
        with guarded(self.path):
            notes = self._notes()
            # Of the tree alone, before anything is read along it; a checksum tells what is in it, and no record is loaded here however large it is.
            problems = [line for (line,) in self._connection.execute("PRAGMA quick_check(5)") if line != "ok"]
        if problems:
            raise damaged(self.path, "; ".join(problems))
        missing = {"identity", "totals", "complete"} - notes.keys()
        if missing:
            raise damaged(self.path, f"the note {sorted(missing)[0]!r} is missing")
        with guarded(self.path):
            totals, self.complete, identity = (decode(notes[key]) for key in ("totals", "complete", "identity"))
            check_shape({"totals": totals, "complete": self.complete, "identity": identity}, {"totals": _TOTALS, "complete": bool, "identity": {str: Any}})
            self._rows, self._total = totals[0], int(totals[1], 16)
        if notes["identity"] != wanted:
            raise InputError(_differences(self.path, identity, decode(wanted)))
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
        check_tables(self._connection, _TABLES)
        for key, value, checksum in self._connection.execute(f"SELECT key, value, checksum FROM meta LIMIT {_MOST_NOTES}"):
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


def _choose(folder: Path, wanted: str, overwrite: bool) -> tuple[Path, bool]:
    """Return the file of the journal, and whether it has to be made."""
    old, new = folder / NAME, folder / NEXT
    there, begun = _peek(old), _peek(new)
    mine = there is not None and there[0] == wanted
    if begun is not None and begun[0] == wanted and (overwrite or not mine):
        return new, False
    if not old.exists():
        return old, True
    if not overwrite or (mine and there is not None and not there[1]):
        return old, False
    return new, True


def _peek(path: Path) -> tuple[str, bool] | None:
    """Return the identity of a journal and whether it is complete; None where there is none that can be read."""
    if not path.exists() or not path.stat().st_size:
        return None
    with suppress(StorageError, sqlite3.Error), closing(connect(path)) as connection, guarded(path):
        notes = dict(connection.execute(f"SELECT key, value FROM meta LIMIT {_MOST_NOTES}"))  # a search would load what it compares with
        return notes.get("identity", ""), notes.get("complete") == encode(True)
    return None


def _nothing() -> dict[str, str]:
    """Return the notes of a journal in which nothing is finished."""
    return {"totals": encode([0, f"{0:032x}"]), "complete": encode(False)}


def _first_notes(identity: str) -> Iterator[str]:
    """SQL for the notes of a journal in which nothing is finished."""
    for key, value in {"identity": identity, **_nothing()}.items():
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
