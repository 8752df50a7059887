"""Storage that fails: the k-th call that changes a file, a folder or a database raises ENOSPC or EIO.

Files are opened through Python, so that every write of theirs is a call; databases are SQLite's, whose statements fail with its own error codes.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

CALLS = ("replace", "rename", "link", "mkdir", "fsync", "ftruncate")
CHANGES = ("INSERT", "CREATE", "COMMIT", "DELETE", "UPDATE", "BEGIN")


class Storage:
    """Counts calls, and fails from the k-th on (`lasting`) or at the k-th alone."""

    def __init__(self, fails_at: int = 0, code: int = errno.ENOSPC, *, lasting: bool = False, under: str = ""):
        self.fails_at, self.code, self.lasting, self.under, self.calls = fails_at, code, lasting, under, 0
        self.failed = ""

    def fails(self, what: str) -> bool:
        self.calls += 1
        if self.fails_at and (self.calls == self.fails_at or (self.lasting and self.calls > self.fails_at)):
            self.failed = self.failed or what
            return True
        return False

    def call(self, what: str, path: Any) -> None:
        """Count a call on a path or an open file, unless it lies outside the folder that is looked at."""
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}") if self.under else path
        if (not self.under or str(path).startswith(self.under)) and self.fails(what):
            raise OSError(self.code, os.strerror(self.code), str(path))


class _File(io.FileIO):
    storage: Storage

    def write(self, data: Any) -> int:
        self.storage.call("write", self.fileno())
        return super().write(data)


class _Connection(sqlite3.Connection):
    storage: Storage

    def _check(self, sql: str) -> None:
        if sql.lstrip().upper().startswith(CHANGES) and self.storage.fails(f"sqlite: {sql.split()[0]}"):
            full = self.storage.code == errno.ENOSPC
            error = sqlite3.OperationalError("database or disk is full" if full else "disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL if full else sqlite3.SQLITE_IOERR
            raise error

    def execute(self, sql: str, *more: Any) -> Any:
        self._check(sql)
        return super().execute(sql, *more)

    def executemany(self, sql: str, *more: Any) -> Any:
        self._check(sql)
        return super().executemany(sql, *more)

    def executescript(self, sql: str) -> Any:
        self._check("CREATE")
        return super().executescript(sql)

    def __exit__(self, *error: Any) -> Any:
        if error[0] is None:
            try:
                self._check("COMMIT")
            except sqlite3.Error:
                self.rollback()
                raise
        return super().__exit__(*error)


@contextmanager
def failing(storage: Storage) -> Iterator[Storage]:
    """Let storage fail while the block runs."""
    real: dict[str, Any] = {name: getattr(os, name) for name in (*CALLS, "open")}
    opened, connect, fdopen = io.open, sqlite3.connect, os.fdopen
    file_of = type("File", (_File,), {"storage": storage})
    connection_of = type("Connection", (_Connection,), {"storage": storage})

    def wrapped(name: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            storage.call(name, given[0])
            return real[name](*given, **named)

        return call

    def open_low(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            storage.call("open", path)
        return int(real["open"](path, flags, *more, **named))

    def open_file(file: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
        if not set("wax+") & set(mode) or more or set(named) - {"encoding", "newline", "errors"}:
            return opened(file, mode, *more, **named)
        if not isinstance(file, int):
            storage.call("open", file)
        raw = io.BufferedWriter(file_of(file, mode.replace("b", "").replace("t", "")))
        return raw if "b" in mode else io.TextIOWrapper(raw, **named)

    try:
        for name in CALLS:
            setattr(os, name, wrapped(name))
        os.open, os.fdopen = open_low, open_file  # type: ignore[assignment]
        io.open = builtins.open = open_file  # type: ignore[assignment]
        sqlite3.connect = lambda *given, **named: connect(*given, **{"factory": connection_of, **named})  # type: ignore[assignment]
        yield storage
    finally:
        for name in (*CALLS, "open"):
            setattr(os, name, real[name])
        io.open, builtins.open, os.fdopen, sqlite3.connect = opened, opened, fdopen, connect
