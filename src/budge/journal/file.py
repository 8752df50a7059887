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

from budge.errors import StorageError

__all__ = ["FolderLock", "connect", "create", "damaged", "guarded", "make_folder", "probe", "tidy"]

_PROBE_BYTES = 1 << 18
_ROOM = "make room or choose another folder; what was finished is kept, and the same call goes on from there"


def make_folder(folder: Path) -> None:
    """The run folder, if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = "a file stands there, not a folder" if folder.exists() else f"the folder cannot be made: {error.strerror}"
        raise StorageError(what, where=str(folder), remedy="choose another folder") from error


def probe(folder: Path) -> None:
    """Write something before any work is done, so that a full disk or a read-only folder shows at once."""
    path = folder / f".probe-{os.getpid()}"
    try:
        with path.open("wb") as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        remedy = "make room, or choose another folder"
        raise StorageError(f"the folder cannot be written: {error.strerror}", where=str(folder), remedy=remedy) from error
    finally:
        with suppress(OSError):
            path.unlink()


def tidy(path: Path) -> None:
    """Remove what a process that died while it probed or made a journal left. We hold the lock: it is nobody's."""
    for pattern in (".probe-*", f".{path.name}-*"):
        for left in path.parent.glob(pattern):
            with suppress(OSError):
                left.unlink()


def create(path: Path, script: str) -> None:
    """A new file with what the script puts in it, moved into place when it is whole. What stood there stays until then."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    with guarded(path), closing(connect(fresh, new=True)) as connection:
        connection.executescript(script)
    try:
        _sync(fresh)
        if path.exists():  # its log must not be replayed into the new file, nor be lost before that one stands
            with suppress(sqlite3.Error), closing(sqlite3.connect(path, isolation_level=None)) as old:
                old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for log in ("-wal", "-shm"):
            path.with_name(path.name + log).unlink(missing_ok=True)
        fresh.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise StorageError(f"the journal cannot be put in place: {error.strerror}", where=str(path)) from error


def connect(path: Path, *, new: bool = False) -> sqlite3.Connection:
    """A connection that leaves transactions to us. A file of no bytes, which SQLite would take for a new one, is damaged."""
    if not new and path.stat().st_size == 0:
        raise damaged(path, "it is empty (0 bytes)")
    with guarded(path):
        connection = sqlite3.connect(path, isolation_level=None, timeout=10.0)
        try:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")  # a checksum notices, rather than the codec
            if new:  # the file remembers it; a file that turns out to be no journal is not touched
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")  # whole after any crash; a power cut may cost the last blocks
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
        except BaseException:
            connection.close()
            raise
        return connection


def damaged(path: Path, what: str) -> StorageError:
    """The error for a file that is not as it was written."""
    remedy = "start again in another folder, or overwrite it"
    return StorageError(f"the journal of the run is damaged: {what}", where=str(path), remedy=remedy)


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """SQLite's errors in our words."""
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite quotes what it cannot read, and the quotation cannot be read either
        raise damaged(path, f"a text in it is none: {error}") from error
    except sqlite3.Error as error:
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # the last byte tells the kind, the rest the circumstances
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_FORMAT | sqlite3.SQLITE_ERROR:
                raise damaged(path, str(error)) from error
            case sqlite3.SQLITE_FULL:
                raise StorageError(f"the disk is full: {error}", where=str(path), remedy=_ROOM) from error
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                remedy = "close it and run again"
                raise StorageError(f"another program holds the journal: {error}", where=str(path), remedy=remedy) from error
            case _:
                raise StorageError(f"the journal cannot be read or written: {error}", where=str(path), remedy=_ROOM) from error


def _sync(path: Path) -> None:
    if os.name == "nt":  # Windows opens no folder, and syncs no file that is open to read
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
        with path.open("rb", buffering=0) as file:
            file.seek(1)
            note = json.loads(file.read(4096))
        return f"process {int(note['pid'])} on {note['host']}, started {note['started']}"
    except (ValueError, KeyError, TypeError, OSError):
        return "its owner has not signed"
