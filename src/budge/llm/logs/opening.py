"""Every read of a log goes through this module: JSON documents, JSON lines, tables, and logs of Inspect."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from budge.errors import DataError, MissingDependencyError, StorageError
from budge.stored import MEGABYTE, check_regular, check_shape, check_values, open_zip, parse_json, read_bytes, reading

__all__ = ["first_record", "inspect_log", "is_packed", "json_document", "json_lines", "starts_with"]

_MOST, _MOST_NAMES = 4096 * MEGABYTE, 64 * MEGABYTE  # bytes of a log, and of the names of its members
_MOST_LISTS = 10**6
_ZSTANDARD = 93  # how Inspect packs
_CUT = "was the file cut off?"


def starts_with(place: Path, mark: bytes) -> bool:
    """Return whether the file begins with these bytes."""
    check_regular(place.resolve())  # a pipe is never waited for
    try:
        with place.open("rb") as file:
            return file.read(len(mark)) == mark
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", where=str(place)) from error


def is_packed(place: Path) -> bool:
    """Return whether the file is a ZIP archive, as Inspect's `.eval` is."""
    return starts_with(place, b"PK")


def json_document(place: Path) -> Any:
    """Return the one JSON value of a file."""
    text = _text(place)
    try:
        found = parse_json(text, constants=True)
        check_shape(found, Any)
        return found
    except ValueError as error:
        raise DataError(f"is not whole JSON: {error}", where=str(place), got=text[:80], remedy=_CUT) from None


def json_lines(place: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place ("file, line 3") and the object of each line that is not blank."""
    text = _text(place)
    with reading(place, "is no log"):
        check_values(text)  # all lines together
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{place}, line {number}"
        try:
            record = parse_json(line, constants=True)
            check_shape(record, Any)
        except ValueError as error:
            raise DataError(f"is not whole JSON: {error}", where=where, got=line[:80], remedy=_CUT) from None
        if not isinstance(record, dict):
            raise DataError("is no JSON object", where=where, got=line[:80], remedy="one object per line")
        yield where, record


def first_record(place: Path) -> dict[str, Any]:
    """Return the object of the first line, or of the whole file; an empty one where there is none."""
    line = next((line for line in _text(place).split("\n") if line.strip()), "")
    if not line:
        raise DataError("is empty", where=str(place), remedy="give a log of a run that answered something")
    try:
        record = parse_json(line, constants=True)
    except ValueError as error:
        if line.lstrip()[0] not in "{[":
            return {}
        if place.suffix.lower() == ".jsonl":
            raise DataError(f"is not whole JSON: {error}", where=f"{place}, line 1", got=line[:80], remedy=_CUT) from None
        record = json_document(place)  # a document that is spread over lines
    return record if isinstance(record, dict) else {}


def inspect_log(place: Path, *, header: bool = False) -> Any:
    """Return Inspect's own object for a log, without events and stores; the header alone where that is enough."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise MissingDependencyError(
            "logs of Inspect need inspect-ai", where=str(place), remedy="pip install 'budge[llm]'"
        ) from None
    with reading(place, "is not a whole log of Inspect"):
        _check_whole(read_bytes(place, _MOST, follow=True))
    try:
        if header:
            return read_eval_log(str(place), header_only=True)
        return read_eval_log(str(place), resolve_attachments=True, exclude_fields={"events", "store"})
    except Exception as error:  # whatever a foreign or damaged file provokes in the reader
        what = f"is not a whole log of Inspect ({type(error).__name__}: {str(error)[:200]})"
        raise DataError(what, where=str(place), remedy="give a .eval or .json log") from error


def _check_whole(data: bytes) -> None:
    """Raise a `ValueError` where a log is damaged or unfolds to more than its size allows: Inspect reads what is there."""
    if not data.startswith(b"PK"):
        check_values(data.decode("utf-8"))
        return
    lists = size = 0
    with open_zip(io.BytesIO(data), most_names=_MOST_NAMES, repeated=True) as packed:
        for member in packed.infolist():
            checked = unfolded = 0
            for some in _unfolded(packed, member, data):
                checked, unfolded, lists = zlib.crc32(some, checked), unfolded + len(some), lists + some.count(b"[") + some.count(b"{")
                if unfolded > member.file_size:
                    break
            if (unfolded, checked) != (member.file_size, member.CRC):
                raise ValueError(f"{member.filename!r} is damaged")
            size += unfolded
    if lists > _MOST_LISTS + size // 8:
        raise ValueError(f"it holds {lists:,} lists and mappings in {size:,} bytes")


def _unfolded(packed: zipfile.ZipFile, member: zipfile.ZipInfo, data: bytes) -> Iterator[bytes]:
    """Yield the content of a member, never much of it at once."""
    with packed.open(member) as file:  # compares both places in which the name stands
        if member.compress_type != _ZSTANDARD:
            while some := file.read(MEGABYTE):
                yield some
            return
    import zstandard

    at = member.header_offset
    start = at + 30 + int.from_bytes(data[at + 26 : at + 28], "little") + int.from_bytes(data[at + 28 : at + 30], "little")
    try:
        with zstandard.ZstdDecompressor().stream_reader(data[start : start + member.compress_size], read_across_frames=True) as stream:
            while some := stream.read(MEGABYTE):
                yield some
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None


def _text(place: Path) -> str:
    try:
        return read_bytes(place, _MOST, follow=True).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"is not text in UTF-8: {error.reason}", where=str(place)) from None
