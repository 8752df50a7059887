"""One writer a run folder: a lock that the operating system drops when its owner dies, however it dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from budge.errors import StorageError

__all__ = ["FolderLock"]


class FolderLock:
    """An exclusive `flock` on a file that says who holds it.

    The file stays when the lock is let go: removing it would let two processes lock two files of one name. What a dead
    process wrote in it is no obstacle, since its lock died with it.
    """

    def __init__(self, path: Path, descriptor: int):
        self.path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path) -> Self:
        """Lock the file, or say who holds it."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StorageError(
                f"the folder cannot be written: {error.strerror}", where=str(path), remedy="choose a folder that is writable"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = _owner(descriptor)
            os.close(descriptor)
            if not isinstance(error, BlockingIOError):
                raise StorageError(f"the file cannot be locked: {error.strerror}", where=str(path)) from error
            raise StorageError(
                f"another process works on this run: {owner}",
                where=str(path),
                remedy="wait until it ends, end it, or choose another folder",
            ) from None
        lock = cls(path, descriptor)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        lock._write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "started": started}))
        return lock

    def release(self) -> None:
        """Let go; twice does no harm."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def _write(self, text: str) -> None:
        assert self._descriptor is not None
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text.encode(), 0)
        except OSError as error:
            self.release()
            raise StorageError(f"the folder cannot be written: {error.strerror}", where=str(self.path)) from error


def _owner(descriptor: int) -> str:
    """Who holds the lock, in words. An owner that has locked and not yet signed is given a moment."""
    until = time.monotonic() + 1.0
    while True:
        try:
            note = json.loads(os.pread(descriptor, 4096, 0).decode())
            pid, host, started = int(note["pid"]), str(note["host"]), str(note["started"])
        except (ValueError, KeyError, TypeError, OSError):
            pid = 0
        if pid and (host != socket.gethostname() or _alive(pid)):
            return f"process {pid} on {host}, started {started}"
        if time.monotonic() > until:
            return "its owner has not signed"
        time.sleep(0.02)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
