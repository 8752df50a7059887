"""The files under a journal: made whole or not at all, probed before work starts, locked by one writer at a time, their errors in our words."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from budge.errors import BudgeError, StorageError
from budge.files import part_of, remove, sync
from budge.stored import check_regular, harden, parse_json, read_bytes

__all__ = ["PROBE", "FolderLock", "connect", "create", "damaged", "files_of", "guarded", "probe", "put"]

PROBE = ".journal.probe"

_PROBE_BYTES = 1 << 18
_LOGS = ("-wal", "-shm")
_ROOM = "make room or choose another folder; what was finished is kept, and the same call goes on from there"


def probe(folder: Path) -> None:
    """Write something before any work is done, so that a full disk or a read-only folder shows at once."""
    path = folder / PROBE
    try:
        with path.open("wb") as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        remedy = "make room, or choose another folder"
        raise StorageError(f"the folder cannot be written: {error.strerror}", where=str(folder), remedy=remedy) from error
    finally:
        remove([path])


def files_of(path: Path) -> list[Path]:
    """Return a journal's file and those that SQLite keeps beside it."""
    return [path, *(path.with_name(path.name + log) for log in _LOGS)]


def create(path: Path, script: str) -> None:
    """Make a new file with what the script puts in it, moved into place when it is whole. What stood there stays until then."""
    fresh = part_of(path)
    remove(files_of(fresh))  # of a process that was killed; the lock is held
    try:
        with guarded(path), closing(connect(fresh, new=True)) as connection:
            connection.executescript(script)
        put(fresh, path)
    except BaseException:
        remove(files_of(fresh))
        raise


def put(fresh: Path, path: Path) -> None:
    """Move a journal that nobody has open to another place, over the one that stands there."""
    try:
        sync(fresh)
        if path.exists():  # its log must not be replayed into the new file, nor be lost before that one stands
            with suppress(sqlite3.Error, StorageError), closing(connect(path)) as old:
                old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for log in files_of(path)[1:]:
            log.unlink(missing_ok=True)
        os.replace(fresh, path)
        with suppress(OSError):
            sync(path.parent)
    except OSError as error:
        raise StorageError(f"the journal cannot be put in place: {error.strerror}", where=str(path), remedy=_ROOM) from error


def connect(path: Path, *, new: bool = False) -> sqlite3.Connection:
    """A connection that leaves transactions to us. A file of no bytes, which SQLite would take for a new one, is damaged."""
    check_regular(path, *(path.with_name(path.name + log) for log in ("-wal", "-shm", "-journal")))
    if not new and path.stat().st_size == 0:
        raise damaged(path, "it is empty (0 bytes)")
    with guarded(path):
        connection = sqlite3.connect(path, isolation_level=None, timeout=10.0)
        try:
            harden(connection)
            if new:  # the file remembers it; a file that turns out to be no journal is not touched
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")  # whole after any crash; a power cut may cost the last blocks
        except BaseException:
            connection.close()
            raise
        return connection


def damaged(path: Path, what: str) -> StorageError:
    """The error for a file that is not as it was written."""
    remedy = "start again in another folder, or overwrite it"
    error = StorageError(f"the journal of the run is damaged: {what}", where=str(path), remedy=remedy)
    error.damage = True  # type: ignore[attr-defined]
    return error


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """SQLite's errors in our words."""
    try:
        yield
    except ValueError as error:  # content of another shape; or SQLite quotes what it cannot read, and the quotation cannot be read either
        if isinstance(error, BudgeError):
            raise
        raise damaged(path, str(error)) from error
    except sqlite3.Error as error:
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # the last byte tells the kind, the rest the circumstances
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_FORMAT | sqlite3.SQLITE_ERROR | sqlite3.SQLITE_TOOBIG:
                raise damaged(path, str(error)) from error
            case sqlite3.SQLITE_FULL:
                raise StorageError(f"the disk is full: {error}", where=str(path), remedy=_ROOM) from error
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                remedy = "close it and run again"
                raise StorageError(f"another program holds the journal: {error}", where=str(path), remedy=remedy) from error
            case _:
                raise StorageError(f"the journal cannot be read or written: {error}", where=str(path), remedy=_ROOM) from error


class FolderLock:
    """An exclusive lock on a file, in which its owner is written.

    The file stays when the lock is released: removing it would let two processes lock two files of one name. The note of a
    dead process is no obstacle, since its lock died with it.
    """

    def __init__(self, path: Path):
        # `thread_local=False`: another thread than the taker's may release it.
        self._lock = FileLock(path, thread_local=False, preserve_lock_file=True, on_acquired=_sign)

    @classmethod
    def take(cls, path: Path) -> Self:
        """Lock the file, or raise an error that names its owner."""
        check_regular(path)  # a link would have the owner written into another file
        lock = cls(path)
        try:
            lock._lock.acquire(timeout=0.2)  # time enough for an owner that has locked to sign
        except Timeout:
            remedy = "wait until it ends, end it, or choose another folder"
            raise StorageError(f"another process works on this run: {_owner(path)}", where=str(path), remedy=remedy) from None
        except OSError as error:
            what = f"the folder cannot be written: {error.strerror}"
            raise StorageError(what, where=str(path), remedy="choose a folder that is writable") from error
        return lock

    def release(self) -> None:
        """Release the lock; twice does no harm."""
        self._lock.release()


def _sign(descriptor: int) -> None:
    """Write the owner into the file, after a blank: Windows locks the first byte against readers."""
    note = {"pid": os.getpid(), "host": socket.gethostname(), "started": datetime.now(UTC).isoformat(timespec="seconds")}
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, f" {json.dumps(note)}".encode())


def _owner(path: Path) -> str:
    """Return the owner of the lock, in words."""
    try:
        note = parse_json(read_bytes(path, 4096)[1:])
        return f"process {int(note['pid'])} on {note['host']}, started {note['started']}"
    except (ValueError, KeyError, TypeError, OSError):
        return "its owner has not signed"
