"""What a model file is, by its bytes: a suffix is a claim, the content is the fact."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Literal

from budge.errors import StorageError

__all__ = ["Format", "hidden", "sniff"]

Safe = Literal["onnx", "skops", "xgboost-json", "xgboost-ubj", "lightgbm"]
Unsafe = Literal["pickle", "compressed", "torch", "npz-objects", "npy", "zip"]
Format = Safe | Unsafe | Literal["npz", "empty", "unknown"]

#: Compressed files are what joblib writes; what they hold is a pickle.
COMPRESSED = (
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ",
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
    b"\x78\x01",
    b"\x78\x5e",
    b"\x78\x9c",
    b"\x78\xda",
    b"\x5d\x00\x00",
    b"ZF",
)
#: Starts of pickles of protocols 0 and 1, which have no mark of their own: a global, a mark, a container, an object.
OLD_PICKLE = (b"c", b"(", b"]", b"}", b"i", b"o", b"I", b"S", b"V", b"F", b"L", b"K", b"N.", b"p0", b"q\x00")


def sniff(path: str | Path) -> Format:
    """The format that the bytes show.

    Examples
    --------
    >>> import pickle, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "model.onnx"
    ...     _ = file.write_bytes(pickle.dumps({}))
    ...     sniff(file)
    'pickle'
    """
    path = Path(path)
    try:
        with path.open("rb") as stream:
            head = stream.read(4096)
    except OSError as error:
        raise StorageError(f"the model cannot be read: {error.strerror or error}", where=str(path)) from error
    if not head:
        return "empty"
    if head.startswith(b"PK\x03\x04"):
        return _zip(path)
    if head[0] == 0x80 and len(head) > 1 and head[1] <= 5:
        return "pickle"
    if head.startswith(COMPRESSED):
        return "compressed"
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith((b"tree\n", b"tree\r\n")):
        return "lightgbm"
    if head.startswith((b"{L", b"{i", b"{l", b"{#")):
        return "xgboost-ubj"
    if head.lstrip().startswith(b"{") and b'"learner"' in head[:200] + _tail_key(head):
        return "xgboost-json"
    if _onnx(head):
        return "onnx"
    if head.startswith(OLD_PICKLE):
        return "pickle"
    return "unknown"


def hidden(path: str | Path, form: Format) -> str:
    """What else the file is, beside the format that it opens with: a second format in one file is never an accident.

    Python finds a zip archive by its end, whatever comes before: a model with one appended is two files in one.
    """
    path = Path(path)
    if form in ("zip", "torch", "npz", "npz-objects", "skops"):
        with zipfile.ZipFile(path) as archive:
            starts = [entry.header_offset for entry in archive.infolist()]
        return "" if not starts or min(starts) == 0 else "bytes before the archive"
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - 65_600))
        end = stream.read()
    at = end.rfind(b"PK\x05\x06")
    if at < 0 or len(end) - at < 22:
        return ""
    comment = struct.unpack("<H", end[at + 20 : at + 22])[0]
    return "a zip archive at its end" if len(end) - at == 22 + comment else ""


def _tail_key(head: bytes) -> bytes:
    # Keys are sorted or not, and spaces may stand between: look at the first ones only.
    return b"".join(head[:2000].split())[:400]


def _zip(path: Path) -> Format:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "schema.json" in names:
                return "skops"
            if any(name.endswith(("data.pkl", ".pkl", "constants.pkl")) or "/code/" in name for name in names):
                return "torch"
            if names and all(name.endswith(".npy") for name in names):
                return "npz-objects" if any(_holds_objects(archive, name) for name in names) else "npz"
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError):
        return "unknown"
    return "zip"


def _holds_objects(archive: zipfile.ZipFile, name: str) -> bool:
    with archive.open(name) as stream:
        header = io.BytesIO(stream.read(10_000)).getvalue()
    return not header.startswith(b"\x93NUMPY") or b"'|O'" in header or b"'O'" in header or b"|O" in header[:2000]


def _onnx(head: bytes) -> bool:
    """A protobuf message whose first field is the version of its form, a small number, as every writer puts it."""
    return len(head) > 4 and head[0] == 0x08 and 1 <= head[1] <= 20 and head[2] & 7 in (0, 2) and head[2] >> 3 in range(2, 26)
