"""Write files whole or not at all.

Content is written to ``.NAME.part`` beside its place, synced, and moved into place. A reader sees the old file or the new one, an error or an interrupt
leaves nothing, and the part of a writer that was killed is replaced by the next writer of the same place.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from io import BufferedWriter
from itertools import islice
from pathlib import Path

from budge.errors import LONGEST_WORD, BudgeError, OutputExistsError, StorageError

try:
    import fcntl
except ImportError:  # Windows, where a file that another process writes cannot be replaced
    fcntl = None  # type: ignore[assignment]

__all__ = ["make_folder", "near_file", "part_of", "remove", "sync", "whole_file", "write_whole"]

ROOM = "make room, or choose another folder"


def near_file(path: Path) -> str:
    """Return a remedy for a file that is missing: the nearest name in its folder where one is near; nothing else is listed."""
    try:
        names = {entry.name: entry.name.partition(".")[0] for entry in islice(path.parent.iterdir(), 1000)}
        stem = path.name.partition(".")[0]
        if len(stem) > LONGEST_WORD:
            return "check the path"
        stems = get_close_matches(stem, {own for own in names.values() if len(own) <= LONGEST_WORD}, n=3)  # endings are alike between any two files
        close = get_close_matches(path.name, [name for name, own in names.items() if own in stems], n=1, cutoff=0)
    except (OSError, ValueError):
        return "check the path"
    return f"did you mean {close[0]!r}?" if close else "check the path"


def part_of(path: Path) -> Path:
    """Return the file in which the content of a file is written before it is moved into place."""
    return path.with_name(f".{path.name[:60]}.part")


@contextmanager
def whole_file(path: str | Path, *, overwrite: bool = True, remedy: str = ROOM) -> Iterator[BufferedWriter]:
    """Open a file to write; it stands in its place, on the disk, when the block has ended without an error.

    Raises
    ------
    OutputExistsError
        A folder stands there, or a file and `overwrite` is False.
    StorageError
        The file cannot be written.
    """
    path = Path(path)
    part = part_of(path)
    taken = OutputExistsError("something stands there already", where=str(path), remedy="choose another name, or overwrite it")
    if path.is_dir():
        raise OutputExistsError("is a folder", where=str(path), remedy="give the path of a file")
    if path.exists() and not overwrite:
        raise taken
    held = False
    try:
        with os.fdopen(_opened(part), "wb") as file:
            held = True
            os.ftruncate(file.fileno(), 0)  # of a writer that was killed
            yield file
            file.flush()
            os.fsync(file.fileno())
            if path.exists():
                os.chmod(part, path.stat().st_mode & 0o777)
            if os.name == "nt":  # which moves no file that is open
                file.close()
            if overwrite or not _linked(part, path, taken):
                os.replace(part, path)
                held = False
        with suppress(OSError):  # it stands there; not every file system syncs a folder
            sync(path.parent)
    except BudgeError:
        raise
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror or error}", where=str(path), remedy=remedy) from error
    finally:
        if held:
            with suppress(OSError):
                os.unlink(part)


def write_whole(path: str | Path, content: bytes | str, *, overwrite: bool = True, remedy: str = ROOM) -> Path:
    """Write a file; text as UTF-8."""
    with whole_file(path, overwrite=overwrite, remedy=remedy) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return Path(path)


def _opened(part: Path) -> int:
    """Return the part of a file, locked: a second writer of the same file waits for the first one."""
    while True:
        handle = os.open(part, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o666)
        try:
            if fcntl is not None:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(handle, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):  # the writer that was waited for has moved or removed what was opened here
                if os.path.samestat(os.fstat(handle), os.stat(part)):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _linked(part: Path, path: Path, taken: OutputExistsError) -> bool:
    """Put a file in its place where nothing stands, not even what came up meanwhile; return whether the file system can."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise taken from None
    except OSError:
        return False
    return True


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if os.name == "nt":  # which opens no folder, and syncs no file that is open to read
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> bool:
    """Make a folder, and those above it; return whether it was not there."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        if folder.is_dir():
            return False
        raise StorageError("a file stands there, not a folder", where=str(folder), remedy="choose another folder") from error
    except OSError as error:
        raise StorageError(f"the folder cannot be made: {error.strerror}", where=str(folder), remedy="choose another folder") from error
    return True


def remove(paths: Iterable[Path]) -> None:
    """Remove files and folders that nothing refers to any more; what cannot be removed is left for the next writer."""
    for path in paths:
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
