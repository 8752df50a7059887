"""What an ONNX file says about itself, read without running it: external data, class labels.

ONNX is a protobuf message. A handful of its fields are walked here, so that the file is judged before any engine opens it and
without a further package. Field numbers are those of the published ``onnx.proto``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from budge.errors import ModelError

__all__ = ["GraphFacts", "read_graph"]

#: Deeper graphs than this are not models but attacks.
MAX_DEPTH = 32
LABEL_ATTRIBUTES = {"classlabels_ints", "classlabels_int64s", "classlabels_strings"}


@dataclass(frozen=True)
class GraphFacts:
    """Where the file keeps data outside itself, and the labels of its classifier."""

    external: tuple[str, ...]
    classes: tuple[int, ...] | tuple[str, ...] | None


def read_graph(content: bytes) -> GraphFacts:
    """Read the facts from a model's bytes.

    Raises
    ------
    ModelError
        If the bytes are not an ONNX model.

    Examples
    --------
    >>> read_graph(b"not a model")
    Traceback (most recent call last):
    budge.errors.ModelError: onnx: the bytes are not an ONNX model
    """
    external: list[str] = []
    labels: list[tuple[int, ...] | tuple[str, ...]] = []
    graphs = 0
    try:
        view = memoryview(content)
        for number, value in _fields(view):
            if number == 7:
                graphs += 1
                _graph(_message(value), external, labels, 0)
            elif number == 25:  # a function of the model's own
                for inner, node in _fields(_message(value)):
                    if inner == 7:
                        _node(_message(node), external, labels, 0)
            elif number == 20:  # training graphs may name data too
                for inner, graph in _fields(_message(value)):
                    if inner in (1, 2):
                        _graph(_message(graph), external, labels, 0)
    except (IndexError, ValueError, UnicodeDecodeError) as error:
        raise ModelError("the bytes are not an ONNX model", where="onnx") from error
    if graphs != 1:
        raise ModelError("the bytes are not an ONNX model", where="onnx")
    distinct = {tuple(found) for found in labels if found}
    return GraphFacts(tuple(dict.fromkeys(external)), labels[-1] if len(distinct) == 1 else None)


def _graph(view: memoryview, external: list[str], labels: list[tuple[int, ...] | tuple[str, ...]], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    for number, value in _fields(view):
        if number == 1:
            _node(_message(value), external, labels, depth)
        elif number == 5:
            _tensor(_message(value), external)
        elif number == 15:  # a sparse tensor: its values and its indices
            for inner, tensor in _fields(_message(value)):
                if inner in (1, 2):
                    _tensor(_message(tensor), external)


def _node(view: memoryview, external: list[str], labels: list[tuple[int, ...] | tuple[str, ...]], depth: int) -> None:
    for number, attribute in _fields(view):
        if number != 5:
            continue
        name, ints, strings = "", list[int](), list[str]()
        for inner, value in _fields(_message(attribute)):
            if inner == 1:
                name = bytes(_message(value)).decode()
            elif inner in (5, 10):
                _tensor(_message(value), external)
            elif inner in (6, 11):
                _graph(_message(value), external, labels, depth + 1)
            elif inner == 8:
                ints += [value] if isinstance(value, int) else _packed(value)
            elif inner == 9:
                strings.append(bytes(_message(value)).decode("utf-8", "replace"))
            elif inner in (22, 23):  # sparse tensors
                for deep, tensor in _fields(_message(value)):
                    if deep in (1, 2):
                        _tensor(_message(tensor), external)
        if name in LABEL_ATTRIBUTES and (ints or strings):
            labels.append(tuple(i - (1 << 64) if i >> 63 else i for i in ints) if ints else tuple(strings))


def _tensor(view: memoryview, external: list[str]) -> None:
    outside, location = False, None
    for number, value in _fields(view):
        if number == 14:
            outside = value == 1
        elif number == 13:
            pair = {inner: bytes(_message(text)).decode("utf-8", "replace") for inner, text in _fields(_message(value))}
            if pair.get(1) == "location":
                location = pair.get(2, "")
    if outside or location is not None:
        external.append(location or "")


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number where a message is expected")
    return value


def _packed(view: memoryview) -> list[int]:
    values, at = [], 0
    while at < len(view):
        value, at = _varint(view, at)
        values.append(value)
    return values


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number without an end")


def _fields(view: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a message: number, and an integer or the bytes."""
    at = 0
    while at < len(view):
        tag, at = _varint(view, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("field 0")
        if wire == 0:
            value, at = _varint(view, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(view, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError("an unknown kind of field")
        if at + size > len(view):
            raise IndexError("cut off")
        yield number, view[at : at + size]
        at += size
