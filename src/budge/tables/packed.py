"""What kind of file a table is in, by its first bytes, and packed files, which unfold within limits."""

from __future__ import annotations

import bz2
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePath
from typing import IO, Any, Literal

from budge.errors import DataError, nearest
from budge.stored import MOST_RATIO, MOST_UNFOLDED, open_zip
from budge.tables.packages import package

__all__ = ["Kind", "kind_of", "unpacked"]

Kind = Literal["text", "json", "parquet", "feather", "excel", "gz", "bz2", "xz", "zst", "zip", "sqlite", "xls"]
_STEP = 1 << 20
_MOST_WINDOW = 100 << 20  # bytes of memory that an .xz file may ask for; the strongest setting of xz takes 65 MB
_STARTS: tuple[tuple[bytes, Kind], ...] = (
    (b"PAR1", "parquet"), (b"ARROW1", "feather"), (b"FEA1", "feather"), (b"\x1f\x8b", "gz"), (b"BZh", "bz2"), (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zst"), (b"SQLite format 3\0", "sqlite"), (b"\xd0\xcf\x11\xe0", "xls"),
)  # fmt: skip
_ENDINGS: dict[str, Kind] = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather", ".xlsx": "excel", ".xlsm": "excel",
                             ".jsonl": "json", ".ndjson": "json", ".json": "json"}  # fmt: skip


def kind_of(file: IO[bytes], name: str) -> Kind:
    """Return the kind of an open file: by its first bytes, and by its ending where these do not tell."""
    file.seek(0)
    start = file.read(16)
    by_name = _ENDINGS.get(PurePath(name).suffix.lower())
    for mark, kind in _STARTS:
        if start.startswith(mark):
            return kind
    if start.startswith(b"PK\x03\x04"):
        return "excel" if by_name == "excel" else "zip"
    return by_name or "text"


def unpacked(file: IO[bytes], kind: Kind, name: str, member: str | None) -> tuple[io.BytesIO, str]:
    """Return what is packed in a file, and its name; a file that unfolds to far more than its size, or holds several, is an error.

    Examples
    --------
    >>> import gzip
    >>> unpacked(io.BytesIO(gzip.compress(b"a,b\\n1,2\\n")), "gz", "people.csv.gz", None)[1]
    'people.csv'
    """
    size = file.seek(0, 2)
    file.seek(0)
    try:
        plain = name[: -len(kind) - 1] if name.lower().endswith(f".{kind}") else name
        blocks, inner = _of_zip(file, name, member) if kind == "zip" else (_blocks(file, kind), plain)
        found = io.BytesIO()
        for block in blocks:
            found.write(block)
            if found.tell() > max(MOST_UNFOLDED, MOST_RATIO * (size if kind == "zip" else file.tell())):
                raise ValueError(f"it unfolds to more than {MOST_RATIO} times its size")
    except (ValueError, OSError, EOFError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"cannot be unpacked: {error}", where=name, remedy="unpack it, and give what it holds") from None
    found.seek(0)
    return found, inner


def _blocks(file: IO[bytes], kind: Kind) -> Iterator[bytes]:
    """Yield what a packed stream unfolds to, in blocks of some size; several streams may follow each other."""
    if kind == "zst":
        stream = package("pyarrow", "files packed with zstd need pyarrow", "parquet").CompressedInputStream(file, "zstd")
        while block := stream.read(_STEP):
            yield block
        return
    made: Any = {"gz": lambda: zlib.decompressobj(31), "bz2": bz2.BZ2Decompressor, "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _MOST_WINDOW)}[kind]
    unfold, waiting = made(), b""
    while True:
        given = waiting or file.read(1 << 16)
        if not given:
            if not unfold.eof:
                raise EOFError("it ends too early")
            return
        if unfold.eof:  # another stream begins, or padding
            if kind == "gz" and not given.strip(b"\0"):
                return
            unfold = made()
        block = unfold.decompress(given, _STEP)
        waiting = unfold.unconsumed_tail if kind == "gz" and not unfold.eof else unfold.unused_data if unfold.eof else b""
        yield block
        while not unfold.eof and kind != "gz" and not unfold.needs_input:
            yield unfold.decompress(b"", _STEP)
        if unfold.eof:
            waiting = unfold.unused_data


def _of_zip(file: IO[bytes], name: str, member: str | None) -> tuple[Iterator[bytes], str]:
    archive = open_zip(file)
    names = [m.filename for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
    if member is None and len(names) != 1:
        listed = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        raise DataError(f"holds {len(names):,} files", where=name, got=listed, remedy="name one: member=…")
    wanted = member if member is not None else names[0]
    if wanted not in names:
        raise DataError("holds no such file", where=name, got=wanted, remedy=nearest(wanted, names))

    def blocks() -> Iterator[bytes]:
        with archive.open(wanted) as inside:
            while block := inside.read(_STEP):
                yield block

    return blocks(), PurePath(wanted).name
