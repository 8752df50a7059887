"""Files that were written earlier are read here, within limits: regular files alone, JSON of a known shape, arrays that are no larger than their file allows.

A digest tells that a file was not changed by accident. Whoever writes a hostile file computes its digest too, so nothing is trusted because of it.
"""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import stat
import sys
import types
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import numpy.typing as npt

from budge.errors import BudgeError, StorageError

__all__ = [
    "COUNT", "MAYBE_COUNT", "MEGABYTE", "Arrays", "Rule", "check_memory", "check_regular", "check_shape", "check_tables", "check_unfolded", "check_values",
    "harden", "open_regular", "open_zip", "parse_json", "read_bytes", "reading", "word",
]  # fmt: skip

MEGABYTE = 1 << 20
MOST_DEPTH = 40  # lists in lists
MOST_LISTS, MOST_MAPPINGS = 500_000, 200_000  # of a JSON text, and one more per 8 and 16 characters: "[]," becomes 64 bytes, '{"":1},' more than 200
MOST_DIGITS = 300  # of a whole number: it is a float, too
MOST_UNFOLDED = 64 * MEGABYTE  # bytes that a packed file may unfold to however small it is
MOST_RATIO = 200  # and per byte of a larger one; the labels of people alone keep a run from being packed as well as that
MOST_NAMES = MEGABYTE  # bytes of the directory of a packed file: some 10,000 members
MOST_CELL = 64 * MEGABYTE  # bytes of one text in a database
LARGEST_COUNT = 2**62

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.S)  # possessive: a text of many letters takes no memory
_WRONG = (
    ArithmeticError, AssertionError, AttributeError, BudgeError, EOFError, LookupError, MemoryError, NotImplementedError, RuntimeError, TypeError, ValueError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


# -- files --------------------------------------------------------------------------------------------------------------


def read_bytes(path: Path, most: int, *, missing: str = "there is no such file", remedy: str = "", follow: bool = False) -> bytes:
    """Return the content of a regular file of at most so many bytes; what is no such file is refused as `open_regular` does."""
    with open_regular(path, most, missing=missing, remedy=remedy, follow=follow) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            data = file.read(size + 1)  # never more: `read` makes room for what it is asked for
        except (OSError, MemoryError) as error:
            raise StorageError(f"cannot be read: {error}", where=str(path)) from None
    if len(data) > most:
        raise StorageError(f"is too large: at most {most:,} bytes are read", where=str(path), got=f"{len(data):,} bytes")
    if len(data) != size:
        raise StorageError("was changed while it was read", where=str(path), remedy="read it again")
    return data


def open_regular(path: Path, most: int, *, missing: str = "there is no such file", remedy: str = "", follow: bool = False) -> io.BufferedReader:
    """Open a regular file of at most so many bytes to read.

    A pipe is never waited for. A link is an error unless `follow`: whoever made the folder chose where it leads.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        if not follow and path.is_symlink():
            raise StorageError("is a link, not a file", where=str(path), remedy="put the file itself there")
        handle = os.open(path, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    except FileNotFoundError:
        raise StorageError(missing, where=str(path), remedy=remedy) from None
    except (OSError, ValueError) as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=str(path)) from None
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode) and found.st_size <= most:
        return os.fdopen(handle, "rb")
    os.close(handle)
    if not stat.S_ISREG(found.st_mode):
        raise _not_regular(path, found.st_mode)
    raise StorageError(f"is too large: at most {most:,} bytes are read", where=str(path), got=f"{found.st_size:,} bytes")


def check_regular(*paths: Path) -> None:
    """Raise an error where one of these paths is there and is no regular file: a link, a pipe, a device, a folder."""
    for path in paths:
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise StorageError(f"cannot be read: {error}", where=str(path)) from None
        if not stat.S_ISREG(mode):
            raise _not_regular(path, mode)


def _not_regular(path: Path, mode: int) -> StorageError:
    kind = "a folder" if stat.S_ISDIR(mode) else "a link" if stat.S_ISLNK(mode) else "a device or a pipe"
    return StorageError("is not a regular file", where=str(path), got=kind, remedy="put the file itself there")


@contextmanager
def reading(path: Path, what: str = "is not a whole record of a run") -> Iterator[None]:
    """Raise whatever malformed content provokes as an error that names the file."""
    try:
        yield
    except StorageError:
        raise
    except _WRONG as error:
        if isinstance(error, BudgeError) and error.problems[0].where.startswith(str(path)):
            raise StorageError(error.problems) from None
        said = "; ".join(str(p) for p in error.problems[:3]) if isinstance(error, BudgeError) else _said(error)
        raise StorageError(f"{what}: {said}", where=str(path), remedy="make it again") from None


def _said(error: BaseException) -> str:
    text = f"there is no {error.args[0]!r}" if isinstance(error, KeyError) and error.args else str(error) or type(error).__name__
    return text if len(text) <= 300 else text[:299] + "…"


# -- JSON ---------------------------------------------------------------------------------------------------------------


def parse_json(text: str | bytes, *, constants: bool = False, most: int | None = None) -> Any:
    """Return the value of a JSON text; one that is too deep, too large or ambiguous is a `ValueError`.

    Parameters
    ----------
    constants
        Accept NaN and Infinity, which JSON does not have.
    most
        Bytes of memory that the text and its values may take together, which is up to thirty times the text.

    Examples
    --------
    >>> parse_json('{"n": 1, "n": 2}')
    Traceback (most recent call last):
    ...
    ValueError: the key 'n' is repeated
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    check_values(text)
    check_memory(text, most)
    try:
        return json.loads(text, parse_int=_integer, parse_constant=None if constants else _constant, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("lists in lists are too deep") from None


def check_values(text: str) -> None:
    """Raise a `ValueError` where a JSON text holds too many lists or mappings for its length: each takes many times the memory of its text."""
    for sign, most in (("[", MOST_LISTS + len(text) // 8), ("{", MOST_MAPPINGS + len(text) // 16)):
        if text.count(sign) > most and _STRING.sub("", text).count(sign) > most:  # those in texts are none
            raise ValueError(f"it holds more than {most:,} {'lists' if sign == '[' else 'mappings'}")


def check_memory(text: str, most: int | None) -> None:
    """Raise a `ValueError` where a JSON text and its values would take more than so many bytes of memory."""
    if most is not None and _memory(text, text) > most and (found := _memory(text, _STRING.sub("", text))) > most:  # signs in texts are none
        raise ValueError(f"its values would take {found:,} bytes of memory; at most {most:,} are allowed")


def _memory(text: str, signs: str) -> int:
    """Return about what a JSON text and its values take: twice its letters, and for each value what CPython takes while it is read."""
    strings = 30 * text.count('"')  # 60 for each
    return 2 * sys.getsizeof(text) + strings + sum(size * signs.count(sign) for sign, size in (("[", 72), ("{", 200), (":", 160), (",", 40)))


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number has more than {MOST_DIGITS} digits")
    return int(text)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {_short(twice)} is repeated")
    return found


def check_shape(value: Any, shape: Any, at: str = "") -> None:
    """Raise a `ValueError` that names the first place where a value does not have a shape.

    A shape is a type (or a union of types), ``[shape]`` for a list, a mapping of keys to shapes, a `Rule`, or `Any` for whatever is not too
    deep. A key with a question mark may be missing; the key `str` stands for all other keys, which are an error without it.

    Examples
    --------
    >>> check_shape({"n": 3, "names": ["a", 1]}, {"n": int, "names": [str], "more?": Any})
    Traceback (most recent call last):
    ...
    ValueError: names[1] must be a text (got 1)
    """
    if shape is Any:
        _check_depth(value, at)
    elif isinstance(shape, dict):
        _is(value, dict, at)
        named = {str(key).rstrip("?"): own for key, own in shape.items() if key is not str}
        for key in shape:
            if key is not str and not key.endswith("?") and key not in value:
                raise ValueError(f"{_under(at, key)} is missing")
        for key, own in value.items():
            if key not in named and str not in shape:
                raise ValueError(f"{_under(at, key)} is not known here")
            check_shape(own, named.get(key, shape.get(str)), _under(at, key))
    elif isinstance(shape, list):
        _is(value, list, at)
        if isinstance(shape[0], type) and set(map(type, value)) <= {shape[0]}:
            return
        for k, item in enumerate(value):
            check_shape(item, shape[0], f"{at}[{k}]")
    elif isinstance(shape, type | types.UnionType):
        _is(value, shape, at)
    elif not shape.holds(value):
        raise ValueError(f"{at or 'it'} must be {shape.words} (got {_short(value)})")


@dataclass(frozen=True)
class Rule:
    """A shape by a function, and the same in words that end the sentence "it must be …"."""

    words: str
    holds: Callable[[Any], bool]


COUNT = Rule("a whole number of at least 0", lambda value: type(value) is int and 0 <= value < LARGEST_COUNT)
MAYBE_COUNT = Rule(f"nothing, or {COUNT.words}", lambda value: value is None or COUNT.holds(value))


def word(*words: Any) -> Rule:
    """Return the shape of a choice among words."""
    return Rule("one of " + ", ".join(map(repr, words)), lambda value: any(type(value) is type(w) and value == w for w in words))


_NAMES = {dict: "a mapping", list: "a list", str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "nothing"}


def _is(value: Any, kind: Any, at: str) -> None:
    kinds = kind.__args__ if isinstance(kind, types.UnionType) else (kind,)
    if type(value) not in kinds:
        raise ValueError(f"{at or 'it'} must be {' or '.join(_NAMES.get(k, k.__name__) for k in kinds)} (got {_short(value)})")


def _under(at: str, key: str) -> str:
    return f"{at}.{_short(key)}".lstrip(".") if not key.isidentifier() else f"{at}.{key}".lstrip(".")


def _short(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a mapping"
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _check_depth(value: Any, at: str, left: int = MOST_DEPTH) -> None:
    if not isinstance(value, list | dict):
        return
    if not left:
        raise ValueError(f"{at or 'it'} has lists in lists that are too deep")
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, list | dict):
            _check_depth(item, at, left - 1)


# -- packed files -------------------------------------------------------------------------------------------------------


def open_zip(file: IO[bytes], *, most_names: int = MOST_NAMES, repeated: bool = False) -> zipfile.ZipFile:
    """Return a packed file whose members are few and unfold to no more than its size allows; anything else is a `ValueError`.

    `repeated` accepts a name that is there twice; the last one counts.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 66, 0))
    tail = file.read()
    if tail[-22:-18] != b"PK\x05\x06":  # nothing that is read here has a comment at its end
        raise ValueError("it is not a whole packed file")
    number, names = int.from_bytes(tail[-12:-10], "little"), int.from_bytes(tail[-10:-6], "little")
    if tail[-42:-38] == b"PK\x06\x07":  # more than 65,535 members: their number is elsewhere
        number, names = int.from_bytes(tail[-66:-58], "little"), int.from_bytes(tail[-58:-50], "little")
    if names > most_names:
        raise ValueError("it has too many members")
    archive = zipfile.ZipFile(file)
    members = archive.infolist()
    if len(members) != number:  # one may be hidden in the comment of another
        raise ValueError(f"it has {len(members):,} members and states {number:,}")
    if not all(0 <= member.header_offset < size for member in members):
        raise ValueError("a member lies outside of it")
    if not repeated and len({member.filename for member in members}) < len(members):
        raise ValueError("a member is there twice")
    check_unfolded(sum(member.file_size for member in members), size)
    return archive


def check_unfolded(size: int, packed: int) -> None:
    """Raise a `ValueError` where a packed file unfolds to more than any that budge has written."""
    most = max(MOST_UNFOLDED, MOST_RATIO * packed)
    if size > most:
        raise ValueError(f"it unfolds to {size:,} bytes; at most {most:,} are read from {packed:,}")


class Arrays(Mapping[str, npt.NDArray[Any]]):
    """The arrays of an ``.npz`` file: what they are is known from their headers before one of them is unfolded.

    Types of fixed size without Python objects are accepted. `nbytes` is what all arrays take, and no more than the file unfolds to.
    """

    def __init__(self, file: IO[bytes]):
        self._archive = open_zip(file)
        self.headers: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
        for member in self._archive.infolist():
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or not member.filename.endswith(".npy"):
                raise ValueError(f"{member.filename!r} is no array")
            with self._archive.open(member) as file:
                shape, kind = _npy_header(file)
                start = file.tell()
            name = member.filename.removesuffix(".npy")
            if kind.hasobject or kind.kind not in "biufUSmM" or kind.fields is not None:
                raise ValueError(f"{name!r} holds {kind}, which no run holds")
            if start + prod(shape) * kind.itemsize != member.file_size:
                raise ValueError(f"{name!r} states {prod(shape):,} entries and has {member.file_size - start:,} bytes")
            self.headers[name] = shape, kind
        self.nbytes = sum(prod(shape) * kind.itemsize for shape, kind in self.headers.values())

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        shape, kind = self.headers[name]
        with self._archive.open(f"{name}.npy") as file:
            _npy_header(file)
            found = np.frombuffer(bytearray(file.read(prod(shape) * kind.itemsize)), dtype=kind).reshape(shape)
            if file.read(1):
                raise ValueError(f"{name!r} is longer than it states")
        if kind.kind == "b" and found.view(np.uint8).max(initial=0) > 1:
            raise ValueError(f"{name!r} holds values that are neither true nor false")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.headers)

    def __len__(self) -> int:
        return len(self.headers)


def _npy_header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"an array has a header of version {version}")
    shape, fortran, kind = np.lib.format.read_array_header_1_0(file, max_header_size=2000)
    if any(size < 0 or size >= LARGEST_COUNT for size in shape) or len(shape) > 2 or (fortran and len(shape) > 1):
        raise ValueError(f"an array has the shape {shape}")
    return shape, kind


# -- databases ----------------------------------------------------------------------------------------------------------


def harden(connection: sqlite3.Connection) -> None:
    """Set limits before the first statement: nothing in a file is run, and no text is larger than what budge writes."""
    for limit, most in (
        (sqlite3.SQLITE_LIMIT_LENGTH, MOST_CELL), (sqlite3.SQLITE_LIMIT_ATTACHED, 0), (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
    ):  # fmt: skip
        connection.setlimit(limit, most)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")  # a checksum notices, rather than the codec
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")


def check_tables(connection: sqlite3.Connection, tables: Mapping[str, str]) -> None:
    """Raise a `ValueError` where a database holds anything but these tables, as they were made: a view, a trigger, an index or a computed column is none."""
    found = connection.execute("SELECT type, name, tbl_name, substr(sql, 1, 1000) FROM sqlite_master LIMIT 100").fetchall()
    if sorted(found) != sorted(("table", name, name, sql) for name, sql in tables.items()):
        raise ValueError("its tables are not those that budge makes")
