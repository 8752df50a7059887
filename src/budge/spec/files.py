"""Files of specs: bytes in, with a limit and by nothing but regular files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from budge.errors import SpecError, StorageError, nearest
from budge.spec.limits import SPEC_BYTES, YAML_BYTES

__all__ = ["ENDINGS", "ending", "read_text"]

ENDINGS = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml"}


def ending(path: Path) -> str:
    """The format that a file's name tells: yaml, json or toml."""
    found = ENDINGS.get(path.suffix.lower())
    if found is None:
        remedy = "give the spec before the data" if path.suffix.lower() in (".csv", ".parquet", ".feather", ".xlsx", ".jsonl") else ""
        raise SpecError("a spec file ends in .yaml, .yml, .json or .toml", where=path.name, got=path.suffix or path.name, remedy=remedy)
    return found


def read_text(path: Path) -> str:
    """The text of a regular file of a sane size in UTF-8; never waits on a pipe, never reads an endless one."""
    data = _bytes(path)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise SpecError("is not UTF-8 (it begins as UTF-16 does)", where=path.name, got=data[:2], remedy="save it as UTF-8")
    nul = data.find(b"\0")
    if nul >= 0:
        raise SpecError(
            f"has a NUL byte at byte {nul} (line {data.count(10, 0, nul) + 1})", where=path.name, remedy="a spec is a text file"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        shift = 3 if data.startswith(b"\xef\xbb\xbf") else 0
        at = error.start + shift
        what = f"is not UTF-8 at byte {at} (line {data.count(10, 0, at) + 1})"
        raise SpecError(what, where=path.name, got=data[at : at + 1], remedy="save it as UTF-8") from None
    if not text.strip():
        raise SpecError(
            "is empty" if not data else "holds nothing but blanks", where=path.name, remedy="a spec begins with `budge: 1`"
        )
    return text


def _bytes(path: Path) -> bytes:
    try:
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        )
    except FileNotFoundError:
        raise StorageError("there is no such file", where=str(path), remedy=_neighbours(path)) from None
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot be opened: {getattr(error, 'strerror', None) or error}", where=str(path)) from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or a pipe"
        raise SpecError("is not a regular file", where=str(path), got=kind, remedy="give the path of a spec file")
    size, yaml = status.st_size, ENDINGS.get(path.suffix.lower()) == "yaml"
    most = YAML_BYTES if yaml else SPEC_BYTES
    with os.fdopen(handle, "rb") as file:
        data = b"" if size > most else file.read(most + 1)
    if max(size, len(data)) > most:
        raise SpecError(
            f"is too large for a spec: at most {most:,} bytes{' of YAML' if yaml else ''} are read",
            where=str(path),
            got=f"{max(size, len(data)):,} bytes or more",
            remedy=f"save it as JSON, of which {SPEC_BYTES:,} are read" if yaml and size <= SPEC_BYTES else "split it, or build the model in Python",
        )
    return data


def _neighbours(path: Path) -> str:
    try:
        names = sorted(p.name for p in path.parent.iterdir() if p.suffix.lower() == path.suffix.lower())[:1000]
    except OSError:
        return "check the path"
    hint = nearest(path.name, names)
    return hint if hint.startswith("did you mean") else "check the path"
