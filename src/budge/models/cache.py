"""Answers kept on disk, so that what was once answered is not asked, nor paid for, again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from budge.errors import StorageError

__all__ = ["AnswerCache"]

#: Keys a query; SQLite allows 999 in old versions.
CHUNK = 500


@dataclass(frozen=True)
class AnswerCache:
    """Answers by key in an SQLite file; several processes may share it, and what is put in survives a crash.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = AnswerCache(Path(folder) / "answers.sqlite")
    ...     cache.put({"k1": 1, "k2": "1"})
    ...     cache.get(["k2", "k3"])
    {'k2': '1'}
    """

    path: Path

    def get(self, keys: Sequence[str]) -> dict[str, object]:
        """The answers that are known."""
        found: dict[str, object] = {}
        with self._open() as connection:
            for start in range(0, len(keys), CHUNK):
                some = keys[start : start + CHUNK]
                query = f"SELECT key, answer FROM answers WHERE key IN ({','.join('?' * len(some))})"
                found.update((key, json.loads(answer)) for key, answer in connection.execute(query, some))
        return found

    def put(self, answers: Mapping[str, object]) -> None:
        """Keep answers; at once, and all or none."""
        with self._open() as connection, connection:
            pairs = [(key, json.dumps(answer)) for key, answer in answers.items()]
            connection.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", pairs)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=60)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT) WITHOUT ROWID")
                yield connection
        except (sqlite3.Error, ValueError) as error:
            remedy = "give another file, or remove this one"
            raise StorageError(f"the cache of answers cannot be used: {error}", where=str(self.path), remedy=remedy) from error
