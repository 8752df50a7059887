"""Tables of databases, by an address such as ``sqlite:///people.db?table=people``. Only SELECT is sent, and no password is ever shown."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budge.errors import BudgeError, DataError, InputError, StorageError, nearest
from budge.stored import harden, open_regular
from budge.tables.form import checked_names
from budge.tables.formats import MOST_CELLS, MOST_LETTERS, from_rows
from budge.tables.how import How, Note
from budge.tables.packages import package

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["is_address", "masked", "read_sql"]

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+]*://")
_PASSWORD = re.compile(r"(://[^:/@\s]*:)\S*(@)|((?:password|passwd|pwd|token|secret)=)[^&\s'\"]*", re.I)
_TEXTS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.S)
_WRITES = re.compile(
    r"\b(insert|update|delete|merge|drop|alter|create|truncate|grant|revoke|attach|detach|pragma|vacuum|copy|call|exec|execute|into|set|do)\b", re.I
)


def is_address(text: str) -> bool:
    """Return whether a text is the address of a database rather than a path."""
    return bool(_ADDRESS.match(text))


def masked(text: str) -> str:
    """Return a text with the passwords of addresses in it replaced by stars.

    Examples
    --------
    >>> masked("postgresql://ann:secret@host/db")
    'postgresql://ann:***@host/db'
    """
    return _PASSWORD.sub(lambda found: f"{found[3]}***" if found[3] else f"{found[1]}***{found[2]}", text)


def read_sql(address: str, how: How) -> tuple[pd.DataFrame, list[Note]]:
    """Return a table of a database, or the rows of a SELECT."""
    sql = package("sqlalchemy", "databases need SQLAlchemy", "sql", masked(address))
    try:
        url = sql.engine.make_url(address)
    except (sql.exc.ArgumentError, ValueError):
        raise InputError("is no address of a database", where=masked(address), remedy="write sqlite:///people.db?table=people") from None
    chosen = {name: value for name, value in url.query.items() if name in ("table", "query") and isinstance(value, str)}
    url = url.difference_update_query(["table", "query"])
    table, query = how.table or chosen.get("table"), how.query or chosen.get("query")
    shown = masked(url.render_as_string(hide_password=True))
    if (table is None) == (query is None):
        what = "neither a table nor a query is given" if table is None else "a table and a query are given"
        raise InputError(what, where=shown, remedy="write ?table=NAME at its end, or give a query that begins with SELECT")
    if query is not None:
        _check_query(query, shown)
    with _connected(sql, url, shown) as connection:
        if table is not None:
            names = sql.inspect(connection).get_table_names()
            names += [] if url.get_backend_name() == "sqlite" else sql.inspect(connection).get_view_names()  # a view of a stranger's file may never end
            if table not in names:
                raise InputError("no such table", where=shown, got=table, remedy=nearest(table, names))
        statement = sql.text(query) if query is not None else sql.select(sql.text("*")).select_from(sql.table(table))
        rows = connection.execution_options(stream_results=True).execute(statement)
        columns: dict[str, list[Any]] = {}
        names = [str(key) for key in rows.keys()]  # noqa: SIM118 (no mapping)
        checked_names(names, shown)
        columns = {name: [] for name in names}
        cells = letters = 0
        for block in rows.partitions(100):
            cells += len(block) * len(names)
            letters += sum(len(value) for row in block for value in row if isinstance(value, str | bytes))
            if cells > MOST_CELLS or letters > MOST_LETTERS:
                what = f"has more than {MOST_CELLS:,} cells" if cells > MOST_CELLS else f"has texts of more than {MOST_LETTERS:,} letters"
                raise DataError(what, where=shown, remedy="write it to Parquet files, or select fewer columns")
            for name, values in zip(names, zip(*block)):
                columns[name].extend(values)
    return from_rows(columns, how)


def _check_query(query: str, where: str) -> None:
    """Raise an error unless a query is one SELECT: budge reads, and changes nothing."""
    plain = _TEXTS.sub(" ", query).strip().rstrip(";").strip()
    found = _WRITES.search(plain)
    if not re.match(r"(select|with|values)\b", plain, re.I) or ";" in plain or found:
        got = found.group(0) if found else plain[:40]
        raise InputError("a query is one SELECT, and changes nothing", where=where, got=got, remedy="put names that are such words in double quotes")


@contextmanager
def _connected(sql: Any, url: Any, shown: str) -> Iterator[Any]:
    """Yield a connection on which nothing can be written, and roll back whatever was done."""
    try:
        if url.get_backend_name() == "sqlite":
            path = Path(url.database or "")
            open_regular(path, sys.maxsize, remedy="look at its name and folder", follow=True).close()
            engine = sql.create_engine("sqlite://", creator=lambda: _sqlite(path), poolclass=sql.pool.NullPool)
        else:
            engine = sql.create_engine(url, poolclass=sql.pool.NullPool)
        with engine.connect() as connection:
            if url.get_backend_name() == "postgresql":
                connection = connection.execution_options(postgresql_readonly=True)
            yield connection
            connection.rollback()
    except BudgeError:
        raise
    except ImportError as error:  # the driver of this kind of database
        raise StorageError(f"its driver is not installed: {masked(str(error))}", where=shown, remedy="pip install the driver") from None
    except Exception as error:  # drivers raise errors of any type
        said = str(getattr(error, "orig", None) or error).partition("\n")[0]
        secret = url.password
        said = said.replace(str(secret), "***") if secret else said
        remedy = "look at the address, the table and the query"
        if said.endswith(("prohibited", "not authorized")):
            remedy = "views, virtual tables and computed columns run what their author wrote: write their rows to a table"
        raise StorageError(f"cannot be read: {masked(said)}", where=shown, remedy=remedy) from None


def _sqlite(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    harden(connection)
    connection.execute("PRAGMA query_only = ON")
    things = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view')")
    run = {name.casefold() for name, sql in things if _runs(connection, name, sql)}

    def allow(_: int, first: str | None, __: str | None, ___: str | None, inside: str | None) -> int:
        named = {name.casefold() for name in (first, inside) if name}  # a view stands as the query writes it, in capitals or not
        return sqlite3.SQLITE_OK if named.isdisjoint(run) else sqlite3.SQLITE_DENY

    connection.set_authorizer(allow)
    return connection


def _runs(connection: sqlite3.Connection, name: str, sql: str) -> bool:
    """Return whether reading from something in the file would run what its author wrote: a view, a virtual table, a computed column."""
    if not re.match(r"create\s+table\b", sql or "", re.I):
        return True
    return bool(connection.execute("SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden > 0 LIMIT 1", [name]).fetchall())
