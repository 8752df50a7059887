"""The operators that an ONNX file may hold: for each, the shape of its result from the shapes that go in.

A length may be a bound that is not reached, where data decide (``Compress``). Whole numbers (int64) that follow from constants and shapes are
computed too, since they state sizes. An operator that is not listed, or whose size is not known before the model runs, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from budge.models.onnx_graph import MOST_VALUES, Attribute, Ints, Node
from budge.models.onnx_trees import check_trees

__all__ = ["MOST_DIMS", "OPERATORS", "Call", "Cost", "Shape", "TooMuchError", "UnknownSizeError", "Value", "axis_of"]

Shape = tuple[int, ...]
MOST_DIMS = 32


@dataclass(frozen=True)
class Value:
    """A tensor: a bound on its lengths, whether they are exact, and its whole numbers where they are known."""

    shape: Shape
    exact: bool = True
    known: Ints | None = None

    @property
    def cells(self) -> int:
        return math.prod(self.shape)


@dataclass
class Cost:
    """Cells of all tensors that are made, and multiplications; what is past the most ends the walk."""

    most_cells: int
    most_work: int
    cells: int = 0
    work: int = 0
    open_width: bool = False  # columns are counted when rows come in

    def add(self, cells: int, work: int) -> None:
        self.cells += cells
        self.work += work
        if self.cells > self.most_cells or self.work > self.most_work:
            raise TooMuchError


class TooMuchError(Exception):
    """The graph takes more than it may."""


class UnknownSizeError(ValueError):
    """A size that data decide, or an operator used in a way that its rule does not cover."""


class Call:
    """One use of an operator: its inputs and attributes, read with checks."""

    def __init__(self, node: Node, inputs: list[Value | None], cost: Cost, times: int) -> None:
        self.node, self.inputs, self.cost, self.times = node, inputs, cost, times

    def input(self, i: int) -> Value:
        value = self.inputs[i]
        if value is None:
            raise UnknownSizeError(f"input {i + 1} is missing")
        return value

    @property
    def first(self) -> Value:
        return self.input(0)

    def given(self) -> list[Value]:
        return [value for value in self.inputs if value is not None]

    def optional(self, i: int) -> Value | None:
        return self.inputs[i] if i < len(self.inputs) else None

    def known(self, i: int) -> list[int]:
        """Return the whole numbers of an input that state a size."""
        value = self.input(i)
        if value.known is None:
            raise UnknownSizeError(f"input {i + 1} decides about a size and is not known before the model runs")
        return value.known.ravel().tolist()

    def number(self, name: str, default: int) -> int:
        found = self.node.attributes.get(name)
        return default if found is None else found.number or 0  # a number that is left out is 0

    def ints(self, name: str) -> list[int] | None:
        found = self.node.attributes.get(name)
        if found is not None and len(found.ints) > max(MOST_VALUES, len(self.inputs), len(self.node.outputs)):
            raise UnknownSizeError(f"{name} is too long")
        return None if found is None or not len(found.ints) else found.ints.tolist()

    def count(self, *names: str) -> int:
        """Return the most entries that any of these lists holds."""
        found = [self.node.attributes[name] for name in names if name in self.node.attributes]
        return max((len(a.ints) + a.floats + len(a.strings) + sum(math.prod(t.dims) for t in a.tensors) for a in found), default=0)

    def work(self, number: int) -> None:
        self.cost.add(0, self.times * number)

    def axes(self, rank: int, i: int = 1) -> list[int] | None:
        """Return the axes, which later versions take as an input instead of an attribute; None where there are none."""
        listed = self.known(i) if self.optional(i) is not None else self.ints("axes")
        return None if listed is None else sorted({axis_of(axis, rank) for axis in listed})


def axis_of(axis: int, rank: int) -> int:
    """Return the axis, which may be counted from the end."""
    if not -rank <= axis < rank:
        raise UnknownSizeError(f"axis {axis} of a tensor of {rank} dimensions")
    return axis % rank


def _broadcast(values: list[Value]) -> Value:
    rank = max(len(value.shape) for value in values)
    padded = [(1,) * (rank - len(value.shape)) + value.shape for value in values]
    exact = all(value.exact for value in values)
    shape = tuple(0 if exact and 0 in lengths else max(lengths) for lengths in zip(*padded))
    return Value(shape, exact)


def _each(call: Call) -> Value:
    return _broadcast(call.given())


def _like(call: Call) -> Value:
    return Value(call.first.shape, call.first.exact)


def _numbers(rule: Callable[[Ints, Ints], Ints]) -> Callable[[Call], Value]:
    """Return the rule of an operator on pairs of numbers, which also computes sizes."""

    def apply(call: Call) -> Value:
        made, (a, b) = _each(call), (call.input(0).known, call.input(1).known)
        if a is None or b is None or made.cells > MOST_VALUES:
            return made
        small = max(abs(a).max(initial=0), abs(b).max(initial=0)) < 2**31
        return Value(made.shape, made.exact, np.asarray(rule(a, b), dtype=np.int64)) if small else made

    return apply


def _divide(a: Ints, b: Ints) -> Ints:
    if (a < 0).any() or (b <= 0).any():  # ONNX rounds to zero, NumPy down
        raise UnknownSizeError("a size is divided by a number that is not positive")
    return a // b


def _keep(call: Call) -> Value:
    return call.first


def _cast(call: Call) -> Value:
    return call.first if call.number("to", 0) == 7 else _like(call)


def _reduce(call: Call) -> Value:
    x, rank = call.first, len(call.first.shape)
    if call.node.kind in ("ArgMax", "ArgMin"):
        axes: list[int] | None = [axis_of(call.number("axis", 0), rank)]
    else:
        axes = call.axes(rank)
        if not axes and call.number("noop_with_empty_axes", 0):
            return _like(call)
    axes = axes or list(range(rank))
    keep = call.number("keepdims", 1)
    return Value(tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes), x.exact)


def _matmul(call: Call) -> Value:
    a, b = call.input(0), call.input(1)
    left, right = a.shape if len(a.shape) > 1 else (1, *a.shape), b.shape if len(b.shape) > 1 else (*b.shape, 1)
    many = _broadcast([Value(left[:-2]), Value(right[:-2])]).shape
    call.work(math.prod(many) * left[-2] * max(left[-1], right[-2]) * right[-1])
    tail = (left[-2],) * (len(a.shape) > 1) + (right[-1],) * (len(b.shape) > 1)
    return Value(many + tail, a.exact and b.exact)


def _gemm(call: Call) -> Value:
    a, b = call.input(0), call.input(1)
    (m, k), (p, n) = a.shape, b.shape
    (m, k), (p, n) = (k, m) if call.number("transA", 0) else (m, k), (n, p) if call.number("transB", 0) else (p, n)
    call.work(m * max(k, p) * n)
    return Value((m, n), a.exact and b.exact)


def _cdist(call: Call) -> Value:
    (m, k), (n, p) = call.input(0).shape, call.input(1).shape
    call.work(m * n * max(k, p))
    return Value((m, n), call.input(0).exact and call.input(1).exact)


def _concat(call: Call) -> Value:
    values = call.given()
    axis = axis_of(call.number("axis", 1), len(values[0].shape))
    shape = tuple(sum(lengths) if i == axis else max(lengths) for i, lengths in enumerate(zip(*(v.shape for v in values), strict=True)))
    known = [value.known for value in values if value.known is not None]
    joined = np.concatenate(known, axis=axis) if len(known) == len(values) and math.prod(shape) <= MOST_VALUES else None
    return Value(shape, all(value.exact for value in values), joined)


def _split(call: Call) -> list[Value]:
    x, parts = call.first, len(call.node.outputs)
    axis = axis_of(call.number("axis", 0), len(x.shape))
    sizes = call.known(1) if call.optional(1) is not None else call.ints("split")
    if sizes is None:
        each = -(-x.shape[axis] // max(parts, 1))
        sizes = [each] * (parts - 1) + [x.shape[axis] - each * (parts - 1)]
    if len(sizes) != parts or min(sizes, default=0) < 0 or max(sizes, default=0) > x.shape[axis]:
        raise UnknownSizeError("the parts do not fit")
    return [Value((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.exact and sum(sizes) == x.shape[axis]) for size in sizes]


def _reshape(call: Call) -> Value:
    x, stated = call.first, call.known(1)
    lengths = [x.shape[i] if n == 0 and not call.number("allowzero", 0) else n for i, n in enumerate(stated)]
    if lengths.count(-1) > 1 or min(lengths, default=0) < -1:
        raise UnknownSizeError("a shape holds negative numbers")
    if -1 in lengths:
        rest = -math.prod(lengths)
        lengths[lengths.index(-1)] = x.cells // rest if rest else 0
    if math.prod(lengths) > x.cells:
        raise UnknownSizeError("a shape has more cells than the tensor")
    known = x.known.reshape(lengths) if x.known is not None else None
    return Value(tuple(lengths), x.exact, known)


def _flatten(call: Call) -> Value:
    x, axis = call.first, call.number("axis", 1)
    axis = axis if 0 <= axis <= len(x.shape) else axis_of(axis, len(x.shape))
    return Value((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])), x.exact)


def _squeeze(call: Call) -> Value:
    x = call.first
    axes = call.axes(len(x.shape))
    if axes is None and not x.exact:
        raise UnknownSizeError("the number of dimensions is not known before the model runs")
    gone = {i for i, n in enumerate(x.shape) if n == 1} if axes is None else set(axes)
    return _again(x, tuple(n for i, n in enumerate(x.shape) if i not in gone))


def _unsqueeze(call: Call) -> Value:
    x = call.first
    stated = call.known(1) if call.optional(1) is not None else call.ints("axes") or []
    if len(x.shape) + len(stated) > MOST_DIMS:
        raise UnknownSizeError(f"a tensor has more than {MOST_DIMS} dimensions")
    axes = {axis_of(axis, len(x.shape) + len(stated)) for axis in stated}
    rest = iter(x.shape)
    return _again(x, tuple(1 if i in axes else next(rest) for i in range(len(x.shape) + len(axes))))


def _again(x: Value, shape: Shape) -> Value:
    if math.prod(shape) != x.cells:
        raise UnknownSizeError("a dimension that is left out is longer than 1")
    return Value(shape, x.exact, None if x.known is None else x.known.reshape(shape))


def _transpose(call: Call) -> Value:
    x = call.first
    order = call.ints("perm") or list(range(len(x.shape)))[::-1]
    if sorted(order) != list(range(len(x.shape))):
        raise UnknownSizeError("perm is no order of the dimensions")
    return Value(tuple(x.shape[i] for i in order), x.exact)


def _gather(call: Call) -> Value:
    x, indices = call.first, call.input(1)
    axis = axis_of(call.number("axis", 0), len(x.shape))
    shape = x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
    known = None
    if x.known is not None and indices.known is not None and math.prod(shape) <= MOST_VALUES:
        known = np.take(x.known, indices.known, axis=axis)
    return Value(shape, x.exact and indices.exact, known)


def _gather_elements(call: Call) -> Value:
    return Value(call.input(1).shape, call.input(1).exact)


def _slice(call: Call) -> Value:
    x = call.first
    if len(call.inputs) == 1:
        starts, ends, steps = call.ints("starts") or [], call.ints("ends") or [], None
        axes = call.ints("axes")
    elif any(value is not None and value.known is None for value in call.inputs[1:]):
        return Value(x.shape, exact=False)
    else:
        starts, ends = call.known(1), call.known(2)
        axes = call.known(3) if call.optional(3) is not None else None
        steps = call.known(4) if call.optional(4) is not None else None
    cuts = [slice(None)] * len(x.shape)
    for axis, start, end, step in zip(axes or range(len(starts)), starts, ends, steps or [1] * len(starts), strict=True):
        if step == 0:
            raise UnknownSizeError("a step is 0")
        cuts[axis_of(axis, len(x.shape))] = slice(start, end, step)
    shape = tuple(len(range(*cut.indices(n))) for cut, n in zip(cuts, x.shape))
    if not x.exact:
        return Value(x.shape, exact=False)
    return Value(shape, x.exact, None if x.known is None else x.known[tuple(cuts)])


def _topk(call: Call) -> list[Value]:
    x = call.first
    axis = axis_of(call.number("axis", -1), len(x.shape))
    k = call.known(1)[0] if call.optional(1) is not None else call.number("k", 0)
    if not 0 <= k <= x.shape[axis]:
        raise UnknownSizeError("k is outside the tensor")
    call.work(x.cells * 16)
    return [Value((*x.shape[:axis], k, *x.shape[axis + 1 :]), x.exact)] * 2


def _shape(call: Call) -> Value:
    x = call.first
    lengths = x.shape[slice(call.number("start", 0), call.number("end", len(x.shape)))]
    return Value((len(lengths),), known=np.array(lengths, dtype=np.int64) if x.exact else None)


def _size(call: Call) -> Value:
    return Value((), known=np.array(call.first.cells, dtype=np.int64) if call.first.exact else None)


def _constant(call: Call) -> Value:
    if len(call.node.attributes) != 1:
        raise UnknownSizeError("the constant has several values, or none")
    for name, found in call.node.attributes.items():
        if found.tensors:
            return Value(found.tensors[0].dims, known=found.tensors[0].values)
        if name == "value_int":
            return Value((), known=np.array(found.number or 0))
        if name == "value_ints":
            return Value((len(found.ints),), known=found.ints.astype(np.int64) if len(found.ints) <= MOST_VALUES else None)
        if name in ("value_float", "value_string"):
            return Value(())
        if name in ("value_floats", "value_strings"):
            return Value((found.floats + len(found.strings),))
    raise UnknownSizeError("the constant is of an unknown kind")


def _of_shape(call: Call) -> Value:
    shape = _lengths(call.known(0))
    filled = call.node.attributes.get("value", Attribute()).tensors
    known = filled[0].values if filled else None
    small = known is not None and known.size == 1 and math.prod(shape) <= MOST_VALUES
    return Value(shape, known=np.full(shape, known.ravel()[0]) if small and known is not None else None)


def _expand(call: Call) -> Value:
    return _broadcast([call.first, Value(_lengths(call.known(1)))])


def _tile(call: Call) -> Value:
    return Value(tuple(n * k for n, k in zip(call.first.shape, _lengths(call.known(1)), strict=True)), call.first.exact)


def _range(call: Call) -> Value:
    start, end, step = (call.known(i)[0] for i in range(3))
    if step == 0:
        raise UnknownSizeError("a step is 0")
    made = range(start, end, step)
    size = max(0, -((start - end) // step))
    return Value((size,), known=np.array(made, dtype=np.int64) if size <= MOST_VALUES else None)


def _lengths(stated: list[int]) -> Shape:
    if min(stated, default=0) < 0:
        raise UnknownSizeError("a shape holds negative numbers")
    return tuple(stated)


def _one_hot(call: Call) -> Value:
    x, depth = call.first, call.known(1)[0]
    axis = axis_of(call.number("axis", -1), len(x.shape) + 1)
    return Value(x.shape[:axis] + _lengths([depth]) + x.shape[axis:], x.exact)


def _compress(call: Call) -> Value:
    axis = call.node.attributes.get("axis")
    return Value(call.first.shape if axis is not None else (call.first.cells,), exact=False)


def _non_zero(call: Call) -> Value:
    return Value((max(len(call.first.shape), 1), call.first.cells), exact=False)


def _rows(x: Value) -> int:
    return x.shape[0] if len(x.shape) > 1 else 1


def _columns(x: Value) -> int:
    return x.shape[-1] if x.shape else 1


def _extract(call: Call) -> Value:
    x = call.first
    return Value((*(x.shape[:-1] or (1,)), call.input(1).cells), x.exact and call.input(1).exact)


def _scores(call: Call) -> Value:
    targets = max(call.number("targets", 1), call.number("n_targets", 1), 1)
    _model_work(call)
    return Value((_rows(call.first), targets), call.first.exact)


def _classes(call: Call) -> list[Value]:
    """Labels, and a score for each class, for each pair of classes, or for one of two."""
    stated = call.count("classlabels_ints", "classlabels_int64s", "classlabels_strings")
    labels = max(stated, call.count("intercepts"), 2)
    _model_work(call)
    rows, exact = _rows(call.first), call.first.exact
    pairs = labels * (labels - 1) // 2 if call.node.kind.endswith("SVMClassifier") and not call.count("prob_a") else 0
    return [Value((rows,), exact), Value((rows, max(labels, pairs)), exact and not pairs and labels == stated)]


def _model_work(call: Call) -> None:
    """Count the coefficients, and trees by their depth; a tree that is none is refused."""
    if "TreeEnsemble" in call.node.kind:
        steps = check_trees(call.node, None if call.cost.open_width else _columns(call.first))
    else:
        steps = sum(a.floats for a in call.node.attributes.values())
    call.work(_rows(call.first) * steps)


def _encode(call: Call) -> Value:
    x = call.first
    return Value((*x.shape, call.count("cats_int64s", "cats_strings")), x.exact)


def _vectorise(call: Call) -> Value:
    sizes = call.ints("inputdimensions") or [0]
    values = call.given()
    return Value((max(map(_rows, values)), max(sum(map(abs, sizes)), sum(map(_columns, values)))), exact=False)


def _zip(call: Call) -> Value:
    """A mapping for each row, whose entries take some ten times as much as a number."""
    x = call.first
    labels = call.count("classlabels_int64s", "classlabels_strings")
    return Value((_rows(x), max(labels, _columns(x)), 10), exact=False)


EACH = [
    "And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Or", "PRelu", "Pow",
    "Sum", "Where", "Xor",
]  # fmt: skip
LIKE = [
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "Ceil", "Celu", "Clip", "Cos", "Cosh",
    "CumSum", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Hardmax", "IsInf", "IsNaN",
    "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "Mish", "Neg", "Not", "RMSNormalization",
    "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Swish",
    "Tan", "Tanh", "ThresholdedRelu", "ai.onnx.ml:Binarizer", "ai.onnx.ml:CategoryMapper", "ai.onnx.ml:Imputer",
    "ai.onnx.ml:LabelEncoder", "ai.onnx.ml:Normalizer", "ai.onnx.ml:Scaler",
]  # fmt: skip
REDUCE = [
    "ArgMax", "ArgMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare",
]  # fmt: skip
OPERATORS: dict[str, Callable[[Call], Value | list[Value]]] = {
    **dict.fromkeys(EACH, _each), **dict.fromkeys(LIKE, _like), **dict.fromkeys(REDUCE, _reduce),
    "Add": _numbers(np.add), "Sub": _numbers(np.subtract), "Mul": _numbers(np.multiply), "Div": _numbers(_divide),
    "Identity": _keep, "Cast": _cast, "MatMul": _matmul, "Gemm": _gemm, "com.microsoft:CDist": _cdist,
    "Concat": _concat, "Split": _split, "Reshape": _reshape, "Flatten": _flatten, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze,
    "Transpose": _transpose, "Gather": _gather, "GatherElements": _gather_elements, "Slice": _slice, "TopK": _topk, "Shape": _shape,
    "Size": _size, "Constant": _constant, "ConstantOfShape": _of_shape, "Expand": _expand, "Tile": _tile, "Range": _range,
    "OneHot": _one_hot, "Compress": _compress, "NonZero": _non_zero,
    "ai.onnx.ml:ArrayFeatureExtractor": _extract, "ai.onnx.ml:FeatureVectorizer": _vectorise, "ai.onnx.ml:LinearClassifier": _classes,
    "ai.onnx.ml:LinearRegressor": _scores, "ai.onnx.ml:OneHotEncoder": _encode, "ai.onnx.ml:SVMClassifier": _classes,
    "ai.onnx.ml:SVMRegressor": _scores, "ai.onnx.ml:TreeEnsembleClassifier": _classes, "ai.onnx.ml:TreeEnsembleRegressor": _scores,
    "ai.onnx.ml:ZipMap": _zip,
}  # fmt: skip
