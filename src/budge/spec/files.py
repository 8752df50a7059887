"""Files of specs: bytes in, with a limit and by nothing but regular files; text out, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from budge.errors import OutputExistsError, SpecError, StorageError, nearest

__all__ = ["ENDINGS", "LARGEST", "ending", "read_text", "write_text"]

LARGEST = 2_000_000  #: bytes of a spec file
ENDINGS = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml"}


def ending(path: Path) -> str:
    """The format that a file's name tells: yaml, json or toml."""
    found = ENDINGS.get(path.suffix.lower())
    if found is None:
        raise SpecError("a spec file ends in .yaml, .yml, .json or .toml", where=path.name, got=path.suffix or path.name)
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
    size = status.st_size
    with os.fdopen(handle, "rb") as file:
        data = b"" if size > LARGEST else file.read(LARGEST + 1)
    if max(size, len(data)) > LARGEST:
        raise SpecError(
            f"is too large for a spec: at most {LARGEST:,} bytes are read",
            where=str(path),
            got=f"{max(size, len(data)):,} bytes or more",
        )
    return data


def _neighbours(path: Path) -> str:
    try:
        names = sorted(p.name for p in path.parent.iterdir() if p.suffix.lower() == path.suffix.lower())[:1000]
    except OSError:
        return "check the path"
    hint = nearest(path.name, names)
    return hint if hint.startswith("did you mean") else "check the path"


def write_text(path: Path, text: str, *, overwrite: bool) -> Path:
    """Write the file at once: a reader sees the old content or the new, never a half."""
    if path.exists() and not overwrite:
        raise OutputExistsError("something stands there already", where=str(path), remedy="choose another name, or overwrite it")
    if path.is_dir():
        raise OutputExistsError("is a folder", where=str(path), remedy="give the path of a file")
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:80]}.", suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~mask)
        if overwrite:
            os.replace(temporary, path)
        else:  # a file that came up meanwhile is not replaced
            try:
                os.link(temporary, path)
            except FileExistsError:
                raise OutputExistsError(
                    "something stands there already", where=str(path), remedy="choose another name, or overwrite it"
                ) from None
            except OSError:  # a file system without links
                os.replace(temporary, path)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"cannot be written: {error.strerror or error}", where=str(path), remedy="check the folder and its permissions"
        ) from None
    finally:
        if temporary:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
    return path
