"""Limits of model files, checked before a file is read or unpacked."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
from pathlib import Path

from budge.errors import ModelError, StorageError

__all__ = [
    "COLUMNS",
    "DIRECTORY_BYTES",
    "JSON_PARTS",
    "JSON_TEXTS",
    "MEMBERS",
    "MODEL_BYTES",
    "ONNX_CELLS",
    "ONNX_FIELDS",
    "ONNX_NODES",
    "ONNX_NUMBERS",
    "ONNX_RUN_CELLS",
    "ONNX_RUN_WORK",
    "ONNX_TEXT",
    "ONNX_WORK",
    "SCHEMA_BYTES",
    "TREES",
    "TREE_DEPTH",
    "UNPACKED_BYTES",
    "UNPACKED_TIMES",
    "BeyondLimitError",
    "check_archive",
    "check_parts",
    "check_size",
    "read_bytes",
]  # fmt: skip

MODEL_BYTES = 1 << 30  #: bytes of a model file, with the files of weights beside it
UNPACKED_BYTES = 1 << 30  #: bytes of all members of an archive, unpacked
UNPACKED_TIMES = 100  #: unpacked size over packed size, where an archive unpacks to more than 16 MB
DIRECTORY_BYTES = 16 << 20  #: bytes of the directory of an archive
MEMBERS = 50_000  #: members of an archive
SCHEMA_BYTES = 64 << 20  #: bytes of the schema of a skops file
JSON_PARTS = 1_000_000  #: lists and mappings of a JSON text, values of a UBJSON file
JSON_TEXTS = 900_000  #: texts of a JSON text, keys included
TREES = 100_000  #: trees of a LightGBM file
COLUMNS = 1_000_000  #: columns of an XGBoost or LightGBM model
ONNX_FIELDS = 200_000  #: fields of an ONNX file; a list of numbers counts five times for each 250 kB of it
ONNX_NUMBERS = 16_000_000  #: whole numbers, and kinds of tree nodes, in the lists of an ONNX file
ONNX_NODES = 20_000  #: operations of an ONNX file
ONNX_TEXT = 1000  #: bytes of a label or a category in an ONNX file: each row may be answered with it
ONNX_CELLS = 1 << 24  #: numbers that an ONNX model makes for one row, besides four for each byte of its files
ONNX_WORK = 1 << 30  #: multiplications that an ONNX model does for one row, besides 64 for each byte of its files
ONNX_RUN_CELLS = 1 << 27  #: numbers made in one run of an ONNX model, besides four for each byte; rows that do not fit wait for the next run
ONNX_RUN_WORK = 1 << 33  #: multiplications in one run, besides 64 for each byte of its files
TREE_DEPTH = 2000  #: splits from the root of a tree to a leaf
_SMALL = 16 << 20
_TAIL = 65_600  #: where the end record of an archive lies, with the longest comment


def check_size(*paths: Path) -> None:
    """Raise unless the paths are regular files that together hold at most `MODEL_BYTES`."""
    size = 0
    for path in paths:
        try:
            status = path.stat()
        except (OSError, ValueError) as error:
            raise StorageError(f"the model cannot be read: {getattr(error, 'strerror', None) or error}", where=str(path)) from error
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or a pipe"
            raise ModelError("a model is read from a regular file", where=str(path), got=kind, remedy="give the path of a model file")
        size += status.st_size
    if size > MODEL_BYTES:
        raise ModelError(
            f"the file is too large: at most {MODEL_BYTES:,} bytes (MODEL_BYTES) are read", where=str(paths[0]), got=f"{size:,} bytes",
            remedy="load it with its own library and pass the loaded model",
        )  # fmt: skip


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file within the limit."""
    check_size(path)
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            content = stream.read(min(size, MODEL_BYTES) + 1)  # never more: `read` makes room for what it is asked for
    except (OSError, MemoryError) as error:
        raise StorageError(f"the model cannot be read: {getattr(error, 'strerror', None) or error or 'too little memory'}", where=str(path)) from error
    if len(content) != size:
        raise StorageError("the model was changed while it was read", where=str(path), remedy="read it again")
    return content


class BeyondLimitError(ValueError):
    """A file holds more of something than is read; what it holds may be sound."""

    remedy = "if you trust whoever made it, load it with its own library and pass the loaded model"


def check_parts(text: bytes) -> None:
    """Raise if a JSON text has more parts than are read: each takes some 60 bytes of memory, and a microsecond."""
    parts, texts = text.count(b"[") + text.count(b"{"), text.count(b'"') // 2
    if parts > JSON_PARTS or texts > JSON_TEXTS:
        raise BeyondLimitError(f"it has more than {JSON_PARTS:,} lists and mappings (JSON_PARTS) or {JSON_TEXTS:,} texts (JSON_TEXTS)")


def check_archive(path: Path) -> None:
    """Raise if an archive has too many members or unpacks to too much; what is no archive is left to the reader.

    Python's reader unpacks no more of a member than its entry in the directory states, so that the directory is enough to judge by.
    """
    check_size(path)
    if _directory_bytes(path) > DIRECTORY_BYTES:
        raise ModelError(f"the archive's directory is past {DIRECTORY_BYTES:,} bytes (DIRECTORY_BYTES)", where=str(path))
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, ValueError, EOFError, struct.error):
        return
    if len(entries) > MEMBERS:
        raise ModelError(f"the archive has more than {MEMBERS:,} members (MEMBERS)", where=str(path), got=f"{len(entries):,}")
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > UNPACKED_BYTES:
        what = f"the archive unpacks to more than {UNPACKED_BYTES:,} bytes (UNPACKED_BYTES)"
        raise ModelError(what, where=str(path), got=f"{unpacked:,} bytes", remedy="load it with its own library and pass the loaded model")
    packed = max(path.stat().st_size, 1)
    if unpacked > max(_SMALL, UNPACKED_TIMES * packed):
        what = f"the archive unpacks to more than {UNPACKED_TIMES} times its size (UNPACKED_TIMES)"
        raise ModelError(what, where=str(path), got=f"{packed:,} bytes that unpack to {unpacked:,}", remedy="save the model without compression")


def _directory_bytes(path: Path) -> int:
    """Return the size that the end records of an archive state for its directory; 0 where there is no such record."""
    with path.open("rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - _TAIL))
        tail = stream.read(_TAIL)
    sizes = [0]
    at = tail.rfind(b"PK\x05\x06")
    if 0 <= at <= len(tail) - 22:
        size = struct.unpack_from("<I", tail, at + 12)[0]
        wide = tail.rfind(b"PK\x06\x06", 0, at)
        sizes.append(0 if size == 0xFFFFFFFF and wide >= 0 else size)
        if 0 <= wide <= len(tail) - 56:
            sizes.append(struct.unpack_from("<Q", tail, wide + 40)[0])
    return max(sizes)
