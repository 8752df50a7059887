"""Answers kept on disk, so that what was once answered is not asked, nor paid for, again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from budge.errors import BudgeError, StorageError
from budge.stored import check_regular, check_tables, harden, parse_json

__all__ = ["AnswerCache"]

#: Keys a query; SQLite allows 999 in old versions.
CHUNK = 500
# By number: SQLite loads what it compares a text key with, however large that is.
_TABLES = {"answers": "CREATE TABLE answers (id INTEGER PRIMARY KEY, answer TEXT NOT NULL, checksum BLOB NOT NULL)"}


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
                some = {_id(key): key for key in keys[start : start + CHUNK]}
                query = f"SELECT id, answer, checksum FROM answers WHERE id IN ({','.join('?' * len(some))})"
                for number, answer, checksum in connection.execute(query, list(some)):
                    key = some[number]
                    if not isinstance(answer, str) or _checksum(key, answer) != checksum:
                        raise ValueError(f"the answer of {key!r} does not match its checksum")
                    found[key] = parse_json(answer, constants=True)
        return found

    def put(self, answers: Mapping[str, object]) -> None:
        """Keep answers; at once, and all or none."""
        with self._open() as connection, connection:
            pairs = [(key, json.dumps(answer)) for key, answer in answers.items()]
            connection.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", [(_id(key), text, _checksum(key, text)) for key, text in pairs])

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        check_regular(*(self.path.with_name(self.path.name + log) for log in ("", "-wal", "-shm", "-journal")))
        try:
            with closing(sqlite3.connect(self.path, timeout=60)) as connection:
                harden(connection)
                if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                    connection.execute("PRAGMA journal_mode=WAL")
                    with suppress(sqlite3.OperationalError):  # another process has made it meanwhile
                        connection.execute(_TABLES["answers"])
                check_tables(connection, _TABLES)
                yield connection
        except (sqlite3.Error, ValueError) as error:
            if isinstance(error, BudgeError):
                raise
            remedy = "give another file, or remove this one"
            raise StorageError(f"the cache of answers cannot be used: {error}", where=str(self.path), remedy=remedy) from error


def _id(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(errors="surrogatepass"), digest_size=8).digest(), signed=True)


def _checksum(key: str, text: str) -> bytes:
    return blake2b(f"{len(key)}:{key}{text}".encode(errors="surrogatepass"), digest_size=16).digest()
