"""One writer per run folder: a lock that the operating system drops when its owner dies, however it dies."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from budge.errors import StorageError

__all__ = ["FolderLock"]


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
