"""What an ONNX file states, read without running it: nodes, tensors, external data, class labels.

ONNX is a protobuf message. The fields that matter are walked here, so that the file is judged before any engine opens it and without a further
package. Field numbers are those of the published ``onnx.proto``. Where readers of protobuf differ (a field twice, a tag too long), the file is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from budge.errors import ModelError
from budge.models.limits import MODEL_BYTES, ONNX_FIELDS, ONNX_NUMBERS

__all__ = ["Attribute", "Graph", "GraphFacts", "Node", "Tensor", "read_graph"]

Ints = npt.NDArray[np.signedinteger]
MAX_DEPTH = 32  #: graphs within graphs
MOST_CELLS = MODEL_BYTES  #: of a tensor: one of bytes fills the largest file
MOST_VALUES = 64  #: whole numbers of a constant that are kept, since they may state a size
LABEL_ATTRIBUTES = {"classlabels_ints", "classlabels_int64s", "classlabels_strings"}
_WINDOWS = (64, 1 << 10, 1 << 14, 1 << 18)  #: bytes that are looked at for a run, so that many short ones cost little
_MODES = re.compile(rb"J(?:\x0aBRANCH_(?:LEQ|GTE|NEQ)|\x09BRANCH_(?:LT|GT|EQ)|\x04LEAF)")
_KINDS = {bytes([0x4A, len(kind)]) + kind: kind for kind in (b"BRANCH_" + end for end in (b"LEQ", b"GTE", b"NEQ", b"LT", b"GT", b"EQ"))}
_KINDS[b"J\x04LEAF"] = b"LEAF"
_MODE_RUN = re.compile(rb"(?:" + _MODES.pattern + rb")++")


@dataclass(frozen=True)
class Tensor:
    """A constant: its lengths, and its values if they are a few whole numbers (int64)."""

    dims: tuple[int, ...]
    values: Ints | None = None


@dataclass
class Attribute:
    """An attribute of a node; `floats` counts the numbers that are not kept."""

    number: int | None = None
    text: str | None = None
    floats: int = 0
    ints: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    strings: list[bytes] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)


@dataclass
class Node:
    """One operation; the name of its kind begins with its domain unless that is ONNX's own."""

    kind: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attributes: dict[str, Attribute] = field(default_factory=dict)


@dataclass
class Graph:
    """Nodes in their order, constants, and the names of inputs with their lengths (None: open)."""

    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Tensor] = field(default_factory=dict)
    inputs: dict[str, tuple[int | None, ...]] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GraphFacts:
    """Where the file keeps data outside itself, the labels of its classifier, its graph, and what decides about its size."""

    external: tuple[str, ...]
    classes: tuple[int, ...] | tuple[str, ...] | None
    graph: Graph
    opset: int
    functions: bool
    sparse: bool
    longest_text: int


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
    reader = _Reader()
    graphs, opset, functions = [], 0, False
    try:
        for number, value in reader.fields(memoryview(content)):
            if number == 7:
                graphs.append(reader.graph(_message(value), 0))
            elif number == 8:
                domain, version = _opset(reader, _message(value))
                opset = min(version, opset or version) if domain in ("", "ai.onnx") else opset
            elif number == 25:  # a function of the model's own
                functions = True
                for inner, node in reader.fields(_message(value)):
                    if inner == 7:
                        reader.node(_message(node), 0)
            elif number == 20:  # training graphs may name data too
                for inner, graph in reader.fields(_message(value)):
                    if inner in (1, 2):
                        reader.graph(_message(graph), 0)
    except ModelError:
        raise
    except (IndexError, ValueError) as error:
        raise ModelError("the bytes are not an ONNX model", where="onnx") from error
    if len(graphs) != 1:
        raise ModelError("the bytes are not an ONNX model", where="onnx")
    distinct = set(reader.labels)
    classes = reader.labels[-1] if len(distinct) == 1 else None
    external = tuple(dict.fromkeys(reader.external))
    return GraphFacts(external, classes, graphs[0], opset, functions, reader.sparse, reader.longest_text)


def _opset(reader: _Reader, view: memoryview) -> tuple[str, int]:
    domain, version = "", 0
    for number, value in reader.fields(view):
        if number == 1:
            domain = _text(value)
        elif number == 2 and isinstance(value, int):
            version = value
    return domain, version


class _Reader:
    """Walks messages, counts their fields, and collects what is asked of the whole file."""

    def __init__(self) -> None:
        self.left = ONNX_FIELDS
        self.numbers_left = ONNX_NUMBERS
        self.external: list[str] = []
        self.labels: list[tuple[int, ...] | tuple[str, ...]] = []
        self.sparse = False
        self.longest_text = 0

    def graph(self, view: memoryview, depth: int) -> Graph:
        if depth > MAX_DEPTH:
            raise ModelError(f"graphs nest more than {MAX_DEPTH} levels deep", where="onnx")
        graph = Graph()
        for number, value in self.fields(view):
            if number == 1:
                graph.nodes.append(self.node(_message(value), depth))
            elif number == 5:
                name, tensor = self.tensor(_message(value))
                if name in graph.constants:
                    raise ValueError("a constant twice")
                graph.constants[name] = tensor
            elif number == 11:
                name, dims = self.value_info(_message(value))
                graph.inputs[name] = dims
            elif number == 12:
                graph.outputs.append(self.value_info(_message(value))[0])
            elif number == 15:
                self._sparse(_message(value))
        return graph

    def node(self, view: memoryview, depth: int) -> Node:
        node, domain = Node(), ""
        for number, value in self.fields(view):
            if number == 1:
                node.inputs.append(_text(value))
            elif number == 2:
                node.outputs.append(_text(value))
            elif number == 4:
                node.kind = _text(value)
            elif number == 7:
                domain = _text(value)
            elif number == 5:
                name, attribute = self.attribute(_message(value), depth)
                if name in node.attributes:
                    raise ValueError("an attribute twice")
                node.attributes[name] = attribute
        if domain not in ("", "ai.onnx"):
            node.kind = f"{domain}:{node.kind}"
        return node

    def attribute(self, view: memoryview, depth: int) -> tuple[str, Attribute]:
        name, found, ints = "", Attribute(), list[Ints]()
        for number, value in self.fields(view, runs=True):
            if number == 1:
                name = _text(value)
            elif number == 3 and isinstance(value, int):
                found.number = _signed(value)
            elif number == 4:
                found.text = _text(value)
            elif number == 5:
                found.tensors.append(self.tensor(_message(value))[1])
            elif number == 6:
                found.graphs.append(self.graph(_message(value), depth + 1))
            elif number == 10:  # lists of tensors and of graphs, which no operator that is allowed takes
                self.tensor(_message(value))
            elif number == 11:
                self.graph(_message(value), depth + 1)
            elif number == 7:
                found.floats += len(_message(value)) // 4
            elif number == 8:
                ints += [np.array([_signed(value)])] if isinstance(value, int) else self.numbers(value)
            elif number == 9:
                found.strings.append(bytes(_message(value)))
            elif number == -7:
                found.floats += len(_message(value)) // 5
            elif number == -8:
                ints += self.numbers(_message(value), 2)  # between the tags
            elif number == -9:
                found.strings += [_KINDS[text] for text in _MODES.findall(_message(value))]
                self.count(len(_message(value)) // 6)
            elif number in (22, 23):
                self._sparse(_message(value))
        if len(found.tensors) > 1 or len(found.graphs) > 1:  # readers of protobuf join the two
            raise ValueError("a tensor or a graph twice")
        if ints:
            found.ints = np.concatenate(ints)
        self.longest_text = max(self.longest_text, len(found.text or ""), max(map(len, found.strings), default=0))
        if name in LABEL_ATTRIBUTES and len(found.ints):
            self.labels.append(tuple(found.ints.tolist()))
        elif name in LABEL_ATTRIBUTES and found.strings:
            self.labels.append(tuple(text.decode("utf-8", "replace") for text in found.strings))
        return name, found

    def numbers(self, view: memoryview, step: int = 1) -> Iterator[Ints]:
        """Yield every so many of the numbers that fill these bytes, in pieces so that little more memory is taken than they need."""
        at = 0
        while at < len(view):
            end = min(at + _WINDOWS[-1], len(view))
            while end < len(view) and view[end - 1] >= 0x80:
                end += 1
            piece = _varints(view[at:end])[step - 1 :: step].copy()
            self.count(len(piece))
            yield piece
            at = end

    def count(self, number: int) -> None:
        self.numbers_left -= number
        if self.numbers_left < 0:
            raise ModelError(f"the lists of the file hold more than {ONNX_NUMBERS:,} numbers (ONNX_NUMBERS)", where="onnx")

    def tensor(self, view: memoryview) -> tuple[str, Tensor]:
        name, kind, dims, raw, ints = "", 0, list[int](), None, list[Ints]()
        outside, location, cells = False, None, 1
        for number, value in self.fields(view):
            if number == 1:
                if not isinstance(value, int) and len(value) > 10 * MAX_DEPTH:
                    raise ModelError("a tensor has too many dimensions", where="onnx")
                for length in [value] if isinstance(value, int) else _varints(value).tolist():
                    cells *= length
                    dims.append(length)
                    if length < 0 or cells > MOST_CELLS or len(dims) > MAX_DEPTH:  # before a buffer of that size is made
                        raise ModelError(f"a tensor has more than {MOST_CELLS:,} cells", where="onnx")
            elif number == 2 and isinstance(value, int):
                kind = value & 0xFFFFFFFF
            elif number == 6:
                self.longest_text = max(self.longest_text, len(_message(value)))
            elif number == 7 and cells <= MOST_VALUES and (isinstance(value, int) or len(value) <= 10 * MOST_VALUES):
                ints.append(np.array([_signed(value)]) if isinstance(value, int) else _varints(value))
            elif number == 8:
                name = _text(value)
            elif number == 9:
                raw = _message(value)
            elif number == 14:
                outside = value == 1
            elif number == 13:
                pair = {inner: _text(text) for inner, text in self.fields(_message(value))}
                if pair.get(1) == "location":
                    location = pair.get(2, "")
        if outside or location is not None:
            self.external.append(location or "")
            return name, Tensor(tuple(dims))
        values = None
        if kind == 7 and cells <= MOST_VALUES:
            row = np.frombuffer(raw, "<i8") if raw is not None and len(raw) == 8 * cells else np.concatenate(ints) if ints else np.zeros(0, np.int64)
            values = row.astype(np.int64).reshape(dims) if len(row) == cells else None
        return name, Tensor(tuple(dims), values)

    def value_info(self, view: memoryview) -> tuple[str, tuple[int | None, ...]]:
        """Return the name and the lengths of an input; what is no tensor has none."""
        name, dims = "", list[int | None]()
        for number, value in self.fields(view):
            if number == 1:
                name = _text(value)
            elif number == 2:
                for kind, inner in self.fields(_message(value)):
                    for part, shape in self.fields(_message(inner)) if kind == 1 else ():
                        for _, length in self.fields(_message(shape)) if part == 2 else ():
                            stated = dict(self.fields(_message(length))).get(1)
                            dims.append(_signed(stated) if isinstance(stated, int) else None)
        return name, tuple(dims)

    def _sparse(self, view: memoryview) -> None:
        self.sparse = True
        for number, tensor in self.fields(view):
            if number in (1, 2):
                self.tensor(_message(tensor))

    def fields(self, view: memoryview, *, runs: bool = False) -> Iterator[tuple[int, int | memoryview]]:
        """Yield the fields of a message: number, and an integer or the bytes.

        With `runs`, a list of floats, ints or kinds of tree nodes comes in pieces under its negative number, tags included: forests have millions.
        """
        at, end = 0, len(view)
        while at < end:
            self.left -= 1
            if self.left < 0:
                raise ModelError(f"the file has more than {ONNX_FIELDS:,} fields (ONNX_FIELDS)", where="onnx")
            if runs and view[at] in (0x3D, 0x40, 0x4A) and (size := _run(view, at)):
                self.left -= 4
                yield -(view[at] >> 3), view[at : at + size]
                at += size
                continue
            tag, at = _varint(view, at)
            number, wire = tag >> 3, tag & 7
            if number == 0 or tag >> 32:
                raise ValueError("no field has that number")
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
            if at + size > end:
                raise IndexError("cut off")
            yield number, view[at : at + size]
            at += size


def _run(view: memoryview, at: int) -> int:
    """Return how many bytes from here are fields of one list: floats, ints, or kinds of tree nodes."""
    tag, size = view[at], 0
    if tag == 0x4A:
        found = _MODE_RUN.match(view, at, at + _WINDOWS[-1])
        return found.end() - at if found else 0
    for window in _WINDOWS:
        piece = np.frombuffer(view[at : at + window], np.uint8)
        if tag == 0x3D:
            tags = piece[: len(piece) // 5 * 5 : 5]
            same = tags == tag
            ends = np.arange(5, 5 * len(tags) + 1, 5)
        else:
            last = np.flatnonzero(piece < 0x80)
            last = last[: len(last) // 2 * 2]
            first = np.concatenate([[0], last[1:-1:2] + 1]) if len(last) else last
            same = (piece[first] == tag) & (last[::2] == first) & (last[1::2] - last[::2] <= 10)
            ends = last[1::2] + 1
        number = len(same) if same.all() else int(same.argmin())
        size = int(ends[number - 1]) if number else 0
        if number < len(same) or len(piece) < window:
            break
    return size


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number where a message is expected")
    return value


def _text(value: int | memoryview) -> str:
    return bytes(_message(value)).decode("utf-8", "surrogateescape")


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _varints(view: memoryview) -> Ints:
    """Return the numbers that fill these bytes."""
    piece = np.frombuffer(view, np.uint8)
    last = np.flatnonzero(piece < 0x80)
    if len(piece) and (not len(last) or last[-1] != len(piece) - 1):
        raise IndexError("cut off")
    first = np.concatenate([[0], last[:-1] + 1]) if len(last) else last
    size = last - first + 1
    if len(size) and size.max() > 10:
        raise ValueError("a number without an end")
    values = np.zeros(len(last), dtype=np.uint64)
    for k in range(int(size.max(initial=0))):
        more = size > k
        values[more] |= (piece[first[more] + k] & np.uint64(0x7F)) << np.uint64(7 * k)
    return values.astype(np.int32 if size.max(initial=0) <= 4 else np.int64)


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number without an end")
