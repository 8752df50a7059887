"""Makes ONNX models that name data elsewhere, or tensors larger than any file."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np


def onnx_model(*, location: str | None = None, dims: tuple[int, ...] = (3, 1), external: bool = True) -> bytes:
    """Return a linear ONNX model; with a location its weights are said to stand in that file."""
    import onnx
    from onnx import TensorProto, helper

    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=list(dims))
    if location is None:
        weights.raw_data = np.ones(3, dtype="<f4").tobytes()
    else:
        weights.external_data.add(key="location", value=location)
        if external:
            weights.data_location = TensorProto.EXTERNAL
    table, score = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width]) for name, width in (("x", 3), ("y", 1)))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [table], [score], [weights])
    model: bytes = onnx.helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    return model


def onnxes() -> Iterator[tuple[str, bytes]]:
    """Yield ONNX models that name data elsewhere, or tensors larger than any file."""
    places = [
        "/etc/passwd",
        "../secret",
        "a/../../secret",
        "",
        ".",
        "..",
        "~/x",
        "file:///etc/passwd",
        "x" * 5000,
        "a\0b",
        "/dev/zero",
        "/proc/self/mem",
        "link",
        "pipe",
        "gone",
    ]
    for i, place in enumerate(places):
        yield f"location {i}", onnx_model(location=place)
        yield f"location without mark {i}", onnx_model(location=place, external=False)
    for i, dims in enumerate([(2**40,), (2**62, 2), (-1,), (-(2**62), 3), (2**20, 2**20), (10**6,), (0,), (1,) * 500, (2,) * 60]):
        yield f"dims {i}", onnx_model(dims=dims)


def graph_model(nodes: list[Any], constants: dict[str, Any] | None = None, *, functions: tuple[Any, ...] = (), opset: int = 17, kind: int = 1) -> bytes:
    """Return a model of these nodes from the table `x` (three columns) to `y`."""
    from onnx import TensorProto, helper, numpy_helper

    table, score = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3]), helper.make_tensor_value_info("y", kind, None)
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", [table], [score], weights)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("own", 1)]
    model: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions)).SerializeToString()
    return model


def doubling(operator: str, times: int, start: str, **attributes: Any) -> list[Any]:
    """Return a chain of nodes, each of which applies the operator to one result twice."""
    from onnx import helper

    names = [start, *(f"d{i}" for i in range(times - 1)), "y"]
    return [helper.make_node(operator, [a, a], [b], **attributes) for a, b in pairwise(names)]


def bombs() -> Iterator[tuple[str, bytes]]:
    """Yield small files that ask for memory or time without bound, while they are opened or while they predict."""
    from onnx import TensorProto, helper

    node, big = helper.make_node, np.array([2**20, 2**14], dtype=np.int64)
    one = np.ones((1, 1), dtype=np.float32)
    y = [node("ReduceSum", ["z"], ["y"])]
    yield "a constant of a shape", graph_model([node("ConstantOfShape", ["s"], ["z"]), *y], {"s": big})
    yield "expand", graph_model([node("Expand", ["c", "s"], ["z"]), *y], {"s": big, "c": one})
    yield "tile", graph_model([node("Tile", ["c", "s"], ["z"]), *y], {"s": big, "c": one})
    yield "tile the table", graph_model([node("Tile", ["x", "s"], ["z"]), *y], {"s": big})
    yield "range", graph_model([node("Range", ["a", "b", "c"], ["r"]), node("Cast", ["r"], ["z"], to=1), *y],
                               {"a": np.int64(0), "b": np.int64(2**34), "c": np.int64(1)})  # fmt: skip
    yield "a negative range", graph_model([node("Range", ["a", "b", "c"], ["r"]), node("Cast", ["r"], ["z"], to=1), *y],
                                          {"a": np.int64(2**62), "b": np.int64(-(2**62)), "c": np.int64(-1)})  # fmt: skip
    yield "one-hot", graph_model([node("OneHot", ["i", "n", "v"], ["z"]), *y],
                                 {"i": np.zeros(9, np.int64), "n": np.int64(2**33), "v": np.float32([0, 1])})  # fmt: skip
    yield "resize", graph_model([node("Resize", ["c", "", "s"], ["z"]), *y], {"c": one, "s": np.float32([1e5, 1e5])})
    yield "pad", graph_model([node("Pad", ["x", "s"], ["z"]), *y], {"s": np.array([0, 2**20, 0, 2**30], np.int64)})
    yield "random numbers", graph_model([node("RandomNormal", [], ["z"], shape=[2**17, 2**17]), *y])
    yield "an identity matrix", graph_model([node("EyeLike", ["w"], ["z"]), *y], {"w": np.zeros((2**10, 2**9), np.int8)})
    for kind in ("Constant", "table"):
        start = "c" if kind == "Constant" else "x"
        yield f"{kind} joined to itself", graph_model(doubling("Concat", 40, start, axis=1), {"c": one})
    outer = [node("Transpose", ["c"], ["t"]), node("Add", ["c", "t"], ["z"]), *y]
    yield "a row plus a column", graph_model(outer, {"c": np.ones((1, 2**17), np.float32)})
    outers = [node("Reshape", [f"v{i}", f"s{i}"], [f"r{i}"]) for i in range(4)]
    outers += [node("Reshape", [f"v{i}", f"u{i}"], [f"t{i}"]) for i in range(4)]
    outers = [n for i in range(4) for n in (outers[i], outers[4 + i], node("Mul", [f"r{i}", f"t{i}"], [f"v{i + 1}"]))]
    shapes = {f"{k}{i}": np.array([1, -1] if k == "s" else [-1, 1], np.int64) for i in range(4) for k in "su"}
    yield "outer products of outer products", graph_model([*outers, node("Identity", ["v4"], ["y"])], {"v0": np.ones(16, np.float32), **shapes})
    yield "products", graph_model([*doubling("MatMul", 400, "c")], {"c": np.eye(1000, dtype=np.float32)})
    texts = [*doubling("StringConcat", 40, "c")[:-1], node("Shape", ["d38"], ["y"])]
    yield "texts", graph_model(texts, {"c": np.array(["ab"])}, opset=20, kind=TensorProto.INT64)
    text = "a" * 10**6
    encoder = node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_floats=[0.0], values_strings=[text], default_string=text)
    yield "long texts", graph_model([encoder], kind=TensorProto.STRING)
    calls = [helper.make_function("own", f"f{i}", ["a"], ["b"], [node(f"f{i + 1}", ["a"], ["m"], domain="own"), node(f"f{i + 1}", ["m"], ["b"], domain="own")],
                                  [helper.make_opsetid("own", 1)]) for i in range(30)]  # fmt: skip
    last = helper.make_function("own", "f30", ["a"], ["b"], [node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 17)])
    yield "functions of functions", graph_model([node("f0", ["x"], ["y"], domain="own")], functions=(*calls, last))
    yield "a loop", graph_model([node("Loop", ["n", "t", "c"], ["y"], body=_loop())], {"n": np.int64(2**62), "t": np.array(True), "c": one})
    yield "branches", graph_model([_branches(31)], {"t": np.array(True), "c": one})
    yield "a scan that grows", graph_model([node("Scan", ["c", "x"], ["z"], body=_scan(grows=True), num_scan_inputs=1), *y], {"c": one})
    yield "a scan within a scan", graph_model([_deep_scan(6)], {"c": np.ones((300, 1), np.float32)})
    yield "a million nodes", _many_nodes()
    sparse = helper.make_sparse_tensor(helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0]), helper.make_tensor("i", TensorProto.INT64, [1], [0]), [2**33])
    yield "a sparse constant", graph_model([node("Constant", [], ["z"], sparse_value=sparse), *y])
    column = np.ones((2**17, 1), np.float32)
    reduced = node("ReduceMax", ["c"], ["r"], axes=[1], keepdims=0)
    reduced.attribute[1].ClearField("i")  # which stands for 0
    yield "a number that is left out", graph_model([reduced, node("Add", ["c", "r"], ["z"]), *y], {"c": column})
    mixed = node("Constant", [], ["s"], value=helper.make_tensor("v", TensorProto.INT64, [2], [2**20, 2**14]))
    mixed.attribute[0].tensors.append(helper.make_tensor("w", TensorProto.INT64, [2], [1, 1]))
    yield "two values of a constant", graph_model([mixed, node("ConstantOfShape", ["s"], ["z"]), *y])
    absent = TensorProto(name="v", data_type=TensorProto.FLOAT, dims=[2**29])
    yield "a constant without its data", graph_model([node("Constant", [], ["z"], value=absent), *y])


def squares() -> bytes:
    """Return a model that multiplies the table with itself, by rows."""
    from onnx import helper

    names = [("Transpose", ["x"], "t"), ("MatMul", ["x", "t"], "s"), ("MatMul", ["s", "s"], "u"), ("MatMul", ["u", "x"], "y")]
    return graph_model([helper.make_node(kind, inputs, [output]) for kind, inputs, output in names])


def _loop() -> Any:
    from onnx import TensorProto, helper

    infos = [helper.make_tensor_value_info(n, t, s) for n, t, s in (("i", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("v", TensorProto.FLOAT, None))]
    outs = [helper.make_tensor_value_info("go2", TensorProto.BOOL, []), helper.make_tensor_value_info("w", TensorProto.FLOAT, None)]
    return helper.make_graph([helper.make_node("Identity", ["go"], ["go2"]), helper.make_node("Neg", ["v"], ["w"])], "b", infos, outs)


def _branches(depth: int) -> Any:
    from onnx import TensorProto, helper

    out = "y" if depth == 31 else f"y{depth}"
    info = [helper.make_tensor_value_info(f"b{depth}", TensorProto.FLOAT, None)]
    inner = [helper.make_node("Neg", ["c"], [f"b{depth}"])] if depth == 0 else [_branches(depth - 1), helper.make_node("Neg", [f"y{depth - 1}"], [f"b{depth}"])]
    one = helper.make_graph(inner, "t", [], info)
    other = helper.make_graph([helper.make_node("Neg", ["c"], [f"b{depth}"])], "e", [], info)
    return helper.make_node("If", ["t"], [out], then_branch=one, else_branch=other)


def _scan(*, grows: bool = False) -> Any:
    from onnx import TensorProto, helper

    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("h", "r", "h2", "o")]
    state = helper.make_node("Concat", ["h", "h"], ["h2"], axis=1) if grows else helper.make_node("Identity", ["h"], ["h2"])
    return helper.make_graph([state, helper.make_node("Neg", ["r"], ["o"])], "b", infos[:2], infos[2:])


def _deep_scan(depth: int) -> Any:
    """Return a scan over a constant of 300 rows, in a scan over it, and so on."""
    from onnx import TensorProto, helper

    infos = [helper.make_tensor_value_info(f"{name}{depth}", TensorProto.FLOAT, None) for name in "ro"]
    inner = [helper.make_node("Neg", [f"r{depth}"], [f"o{depth}"])]
    if depth:
        inner = [_deep_scan(depth - 1), helper.make_node("ReduceSum", [f"y{depth - 1}"], [f"o{depth}"])]
    body = helper.make_graph(inner, "b", infos[:1], infos[1:])
    return helper.make_node("Scan", ["c"], ["y" if depth == 6 else f"y{depth}"], body=body, num_scan_inputs=1)


def _many_nodes() -> bytes:
    """Return a million copies of one small node."""
    from onnx import helper

    return _whole(_field(1, helper.make_node("Neg", ["x"], ["y"]).SerializeToString()) * 1_000_000)


def ensemble(**changes: Any) -> Any:
    """Return a node of one tree with two splits, or what the changes make of it."""
    from onnx import helper

    sound = {
        "nodes_treeids": [0] * 5, "nodes_nodeids": [0, 1, 2, 3, 4], "nodes_featureids": [0, 1, 0, 0, 0], "nodes_values": [0.5, 1.0, 0.0, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF"], "nodes_truenodeids": [1, 3, 0, 0, 0],
        "nodes_falsenodeids": [2, 4, 0, 0, 0], "target_treeids": [0] * 3, "target_nodeids": [2, 3, 4], "target_ids": [0] * 3,
        "target_weights": [1.0, 2.0, 3.0], "n_targets": 1,
    }  # fmt: skip
    return helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **(sound | changes))


def chain(depth: int) -> dict[str, Any]:
    """Return the attributes of a tree that is a chain of splits."""
    size = 2 * depth + 1
    odd = [i % 2 == 1 or i == size - 1 for i in range(size)]
    return {
        "nodes_treeids": [0] * size, "nodes_nodeids": list(range(size)), "nodes_featureids": [0] * size, "nodes_values": [0.0] * size,
        "nodes_modes": ["LEAF" if leaf else "BRANCH_LEQ" for leaf in odd], "nodes_truenodeids": [0 if leaf else i + 1 for i, leaf in enumerate(odd)],
        "nodes_falsenodeids": [0 if leaf else i + 2 for i, leaf in enumerate(odd)], "target_treeids": [0], "target_nodeids": [1],
        "target_ids": [0], "target_weights": [1.0],
    }  # fmt: skip


def lies() -> Iterator[tuple[str, Any]]:
    """Yield ensembles of trees by name: the sound one, and such as onnxruntime would follow out of its memory, or for ever."""
    yield "sound", ensemble()
    yield "deep enough", ensemble(**chain(100_000))
    yield "a column far outside", ensemble(nodes_featureids=[10**8, 1, 0, 0, 0])
    yield "a column before the first", ensemble(nodes_featureids=[-(10**6), 1, 0, 0, 0])
    yield "a circle", ensemble(nodes_truenodeids=[1, 0, 0, 0, 0])
    yield "a node twice", ensemble(nodes_nodeids=[0, 1, 2, 3, 3])
    yield "a branch to nowhere", ensemble(nodes_truenodeids=[1, 77, 0, 0, 0])
    yield "one branch twice", ensemble(nodes_falsenodeids=[1, 4, 0, 0, 0])
    yield "a leaf of another tree", ensemble(target_treeids=[0, 0, 9])
    yield "a target far outside", ensemble(target_ids=[0, 0, 10**6])
    yield "fewer values", ensemble(nodes_values=[0.5])
    yield "fewer weights", ensemble(target_weights=[1.0])
    yield "an unknown kind", ensemble(nodes_modes=["BRANCH_LEQ", "X", "LEAF", "LEAF", "LEAF"])
    yield "many targets", ensemble(n_targets=2**40)


def ensembles() -> Iterator[bytes]:
    """Yield honest models of one node of each kind that takes lists of numbers from the file."""
    from onnx import TensorProto, helper

    def made(kind: str, **attributes: Any) -> Any:
        outputs = ["l", "y"] if kind.endswith("Classifier") else ["y"]
        return helper.make_node(kind, ["x"], outputs, domain="ai.onnx.ml", **attributes)

    yield graph_model([ensemble()])
    trees = {a.name: helper.get_attribute_value(a) for a in ensemble().attribute if not a.name.startswith(("target", "n_targets"))}
    yield graph_model([made("TreeEnsembleClassifier", **trees, class_treeids=[0] * 3, class_nodeids=[2, 3, 4], class_ids=[0, 1, 2],
                            class_weights=[1.0, 1.0, 1.0], classlabels_int64s=[0, 1, 2], post_transform="SOFTMAX")])  # fmt: skip
    yield graph_model([made("LinearClassifier", coefficients=[0.1] * 9, intercepts=[0.0] * 3, classlabels_ints=[0, 1, 2], post_transform="SOFTMAX")])
    yield graph_model([made("LinearRegressor", coefficients=[0.1] * 6, intercepts=[0.0] * 2, targets=2)])
    vectors = {"kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0], "support_vectors": [0.3] * 12}
    yield graph_model([made("SVMRegressor", **vectors, coefficients=[1.0] * 4, n_supports=4, rho=[0.1])])
    yield graph_model([made("SVMClassifier", **vectors, coefficients=[1.0] * 4, vectors_per_class=[2, 2], rho=[0.1], classlabels_ints=[0, 1])])
    yield graph_model([made("SVMClassifier", kernel_type="LINEAR", coefficients=[1.0] * 9, rho=[0.1] * 3, classlabels_ints=[0, 1, 2])])
    yield graph_model([made("Scaler", offset=[0.0] * 3, scale=[1.0] * 3)])
    yield graph_model([made("Imputer", imputed_value_floats=[0.0] * 3, replaced_value_float=float("nan"))])
    yield graph_model([made("Normalizer", norm="L2")])
    yield graph_model([made("LabelEncoder", keys_floats=[0.0, 1.0], values_floats=[2.0, 3.0], default_float=0.0)])
    yield graph_model([made("OneHotEncoder", cats_int64s=[0, 1, 2], zeros=1)])
    yield graph_model([made("LabelEncoder", keys_floats=[0.0, 1.0], values_int64s=[2, 3], default_int64=0)], kind=TensorProto.INT64)
    picked = helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml")
    yield graph_model([picked], {"i": np.array([0, 2], np.int64)})
    yield graph_model([helper.make_node("Gather", ["x", "i"], ["y"], axis=1)], {"i": np.array([0, 2], np.int64)})
    yield graph_model([helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1)], {"i": np.array([[0, 2]], np.int64)})
    yield graph_model([helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=1)], {"k": np.array([2], np.int64)})
    yield graph_model([helper.make_node("Slice", ["x", "a", "b", "c", "d"], ["y"])], {k: np.array([v], np.int64) for k, v in zip("abcd", (0, 2, 1, 1))})
    yield graph_model([helper.make_node("Split", ["x", "k"], ["y", "z"], axis=1)], {"k": np.array([1, 2], np.int64)})
    yield graph_model([helper.make_node("Reshape", ["x", "k"], ["y"])], {"k": np.array([-1, 1], np.int64)})
    yield graph_model([helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])])
    yield graph_model([helper.make_node("ReduceSum", ["x", "k"], ["y"], keepdims=0)], {"k": np.array([1], np.int64)})
    yield graph_model([helper.make_node("CumSum", ["x", "k"], ["y"])], {"k": np.array(1, np.int64)})
    yield graph_model([helper.make_node("Gemm", ["x", "w", "b"], ["y"])], {"w": np.ones((3, 2), "f4"), "b": np.ones(2, "f4")})
    yield graph_model([helper.make_node("LayerNormalization", ["x", "w", "w"], ["y"])], {"w": np.ones(3, "f4")})
    yield graph_model([helper.make_node("BatchNormalization", ["x", "w", "w", "w", "w"], ["y"])], {"w": np.ones(3, "f4")})
    yield graph_model([helper.make_node("OneHot", ["i", "n", "v"], ["y"])], {"i": np.zeros(9, np.int64), "n": np.int64(3), "v": np.float32([0, 1])})
    yield graph_model([helper.make_node("Scan", ["c", "x"], ["z", "y"], body=_scan(), num_scan_inputs=1)], {"c": np.ones((1, 1), "f4")})


def meddled(content: bytes, rng: random.Random) -> bytes:
    """Return the model with one or two of its numbers, lists, names or constants changed."""
    from onnx import ModelProto, numpy_helper

    model = ModelProto.FromString(content)
    whole = [-1, -2, 0, 1, 2, 7, 10**6, 2**31 - 1, 2**31, -(2**31), 2**32 + 1, 2**62, -(2**63)]
    real = [0.0, -1.0, 1e38, float("nan"), float("inf"), -float("inf")]
    words = [b"", b"x", b"POLY", b"RBF", b"SIGMOID", b"LINEAR", b"SOFTMAX", b"PROBIT", b"SOFTMAX_ZERO", b"MAX", b"LEAF", b"BRANCH_EQ", b"\xff\x00"]
    for _ in range(rng.choice([1, 1, 2])):
        node = rng.choice(model.graph.node)
        if node.attribute and rng.random() < 0.75:
            attribute = rng.choice(node.attribute)
            lists = [(attribute.ints, whole), (attribute.floats, real), (attribute.strings, words)]
            for row, values in lists:
                if len(row):
                    how, value = rng.choice(["one", "cut", "more", "mix"]), rng.choice(values)
                    changed = list(row)
                    if how == "one":
                        changed[rng.randrange(len(changed))] = value
                    elif how == "mix":
                        rng.shuffle(changed)
                    else:
                        changed = changed[: rng.randrange(len(changed))] if how == "cut" else changed + [value] * rng.choice([1, 1000])
                    del row[:]
                    row.extend(changed)
            attribute.i, attribute.f, attribute.s = rng.choice(whole), rng.choice(real), rng.choice(words)
            if rng.random() < 0.15:
                attribute.name = rng.choice(["axis", "n_targets", "class_ids", "nodes_values", "keepdims"])
        elif model.graph.initializer:
            constant = rng.choice(model.graph.initializer)
            array = numpy_helper.to_array(constant).copy()
            if array.size and rng.random() < 0.5:
                array.reshape(-1)[rng.randrange(array.size)] = rng.choice(whole if array.dtype.kind == "i" else real)
            constant.CopyFrom(numpy_helper.from_array(array.reshape(-1)[: rng.randrange(array.size + 1)] if rng.random() < 0.3 else array, constant.name))
        elif len(node.input) > 1:
            node.input[rng.randrange(len(node.input))] = rng.choice(["", "x"])
    return model.SerializeToString()


def crowded_onnx() -> Iterator[tuple[str, bytes]]:
    """Yield files of many small fields, or of long lists, that stand in the first node or beside it."""
    n = 600_000
    yield "nodes", _whole(b"\x0a\x00" * n)
    yield "inputs", _whole(_field(1, b"\x0a\x00" * n))
    lists = {"numbers apart": b"\x40\x01\x10\x00" * n, "ints and floats": b"\x40\x01\x3d\0\0\0\0" * n, "packed": _field(8, b"\x01" * 30 * n),
             "ints": b"\x40\x01" * 8 * n, "texts": b"J\x01x" * n, "leaves": b"J\x04LEAF" * 2 * n}  # fmt: skip
    for name, content in lists.items():
        yield name, _whole(_field(1, _field(5, b"\x0a\x01a" + content)))
    yield "lengths", _whole(_field(5, b"\x08\x01" * n))
    yield "packed lengths", _whole(_field(5, _field(1, b"\x01" * n)))
    yield "values", _whole(_field(5, b"\x10\x07" + b"\x38\x01" * n))
    yield "names of the maker", b"\x08\x08" + b"\x12\x00" * n


def _varint(number: int) -> bytes:
    parts = []
    while number >> 7:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _whole(graph: bytes) -> bytes:
    return b"\x08\x08" + _field(8, b"\x10\x11") + _field(7, graph)
