"""Makes hostile model files: real models with one thing changed, files that would run code, archives that grow, and files that never end."""

from __future__ import annotations

import base64
import io
import json
import math
import pickle
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Make = Callable[[Path], object]
CANARY = "code_ran"
NUMBERS = [
    -1,
    -2,
    0,
    1,
    7,
    10**6,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32 + 1,
    2**63,
    1e308,
    math.nan,
    math.inf,
    "x",
    None,
    True,
    [],
    {},
    [1],
]
SIZES = [
    "-1",
    "0",
    "1",
    "2",
    "99999999",
    "2147483647",
    "2147483648",
    "4294967297",
    "1e3",
    "0x10",
    "nan",
    "",
    "x",
    "[1,2]",
    None,
    5,
    [],
    {},
]
DTYPES = {"i1": b"i", "u1": b"U", "i2": b"I", "i4": b"l", "i8": b"L", "f4": b"d", "f8": b"D"}


def frame(rows: int = 80) -> pd.DataFrame:
    """Return a small table of numbers with one column of categories."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(rows, 3)), columns=list("abc"))
    return X.assign(k=pd.Categorical(rng.choice(list("pqrstu"), rows)))


def boosters(folder: Path) -> dict[str, Path]:
    """Train one small XGBoost model of each kind and save it in both formats."""
    import xgboost

    X, rng = frame(), np.random.default_rng(4)
    plain, y = X[list("abc")], (X["a"] + X["b"] > 0).astype(int).to_numpy()
    three, odd = rng.integers(0, 3, len(X)), X["k"].cat.codes.to_numpy() % 2
    sided = np.c_[plain["a"] * 2, plain["b"]]
    kinds: dict[str, tuple[dict[str, Any], Any]] = {
        "gbtree": ({"objective": "binary:logistic"}, xgboost.DMatrix(plain, y)),
        "unnamed": ({"objective": "reg:squarederror"}, xgboost.DMatrix(plain.to_numpy(), y)),
        "dart": ({"booster": "dart", "rate_drop": 0.5, "objective": "binary:logistic"}, xgboost.DMatrix(plain, y)),
        "linear": ({"booster": "gblinear", "objective": "multi:softprob", "num_class": 3}, xgboost.DMatrix(plain, three)),
        "classes": ({"objective": "multi:softprob", "num_class": 3}, xgboost.DMatrix(plain, three)),
        "targets": ({"objective": "reg:squarederror"}, xgboost.DMatrix(plain, sided)),
        "vectors": ({"multi_strategy": "multi_output_tree", "tree_method": "hist"}, xgboost.DMatrix(plain, sided)),
        "categories": ({"tree_method": "hist", "max_cat_to_onehot": 1}, xgboost.DMatrix(X, odd, enable_categorical=True)),
        "ranking": ({"objective": "rank:ndcg"}, xgboost.DMatrix(plain, y, qid=np.arange(len(X)) // 8)),
        "survival": ({"objective": "survival:cox"}, xgboost.DMatrix(plain, y + 1.0)),
        "pruned": ({"tree_method": "exact", "gamma": 2, "max_depth": 5}, xgboost.DMatrix(plain, y)),
        "forest": ({"num_parallel_tree": 2, "subsample": 0.7}, xgboost.DMatrix(plain, y)),
    }
    found = {}
    for name, (options, data) in kinds.items():
        depth = {} if name == "linear" else {"max_depth": 2}
        stopping: dict[str, Any] = (
            {"evals": [(data, "t")], "early_stopping_rounds": 1, "verbose_eval": False} if name == "unnamed" else {}
        )
        booster = xgboost.train({"nthread": 1, **depth, **options}, data, 2, **stopping)
        for suffix in ("json", "ubj"):
            found[f"{name}.{suffix}"] = folder / f"{name}.{suffix}"
            booster.save_model(found[f"{name}.{suffix}"])
    old = json.loads(found["gbtree.json"].read_text())  # as the first versions with JSON wrote it
    old["version"] = [1, 0, 0]
    old["learner"]["learner_model_param"] = {"base_score": "5E-1", "num_class": "0", "num_feature": "3"}
    model = old["learner"]["gradient_booster"]["model"]
    for key in ("cats", "iteration_indptr"):
        model.pop(key, None)
    for tree in model["trees"]:
        for key in ("categories", "categories_nodes", "categories_segments", "categories_sizes", "split_type"):
            del tree[key]
        tree["tree_param"]["size_leaf_vector"] = "0"
        tree["default_left"] = [bool(v) for v in tree["default_left"]]
    found["old.json"] = folder / "old.json"
    found["old.json"].write_text(json.dumps(old))
    return found


def lightgbms(folder: Path) -> dict[str, Path]:
    """Train one small LightGBM model of each kind and save it."""
    import lightgbm

    X, rng = frame(), np.random.default_rng(4)
    kinds: dict[str, dict[str, Any]] = {
        "binary": {"objective": "binary"}, "multi": {"objective": "multiclass", "num_class": 3}, "leafy": {"linear_tree": True},
        "categories": {"objective": "binary", "min_data_per_group": 1, "cat_smooth": 1, "max_cat_to_onehot": 1},
    }  # fmt: skip
    found = {}
    for name, options in kinds.items():
        y = (
            rng.integers(0, 3, len(X))
            if name == "multi"
            else X["k"].cat.codes % 2
            if name == "categories"
            else (X["a"] > 0).astype(int)
        )
        given = X if name == "categories" else X[list("abc")]
        options |= {"verbosity": -1, "num_leaves": 4, "min_data_in_leaf": 3, "num_threads": 1}
        booster = lightgbm.train(options, lightgbm.Dataset(given, y, params={"verbosity": -1}), 2)
        found[name] = folder / f"{name}.txt"
        booster.save_model(found[name])
    return found


def encode_ubj(value: Any) -> bytes:
    """Return a value as UBJSON, the way XGBoost writes it."""
    if isinstance(value, np.ndarray):
        kind = DTYPES[f"{value.dtype.kind}{value.dtype.itemsize}"]
        return b"[$" + kind + b"#" + _long(len(value)) + value.astype(value.dtype.newbyteorder(">")).tobytes()
    if isinstance(value, dict):
        return b"{" + b"".join(_text(k) + encode_ubj(v) for k, v in value.items()) + b"}"
    if isinstance(value, list):
        return b"[#" + _long(len(value)) + b"".join(map(encode_ubj, value))
    if value is None or isinstance(value, bool):
        return b"Z" if value is None else b"T" if value else b"F"
    if isinstance(value, str):
        return b"S" + _text(value)
    if isinstance(value, float):
        return b"d" + struct.pack(">f", min(value, 3e38))
    return b"L" + struct.pack(">q", max(min(value, 2**63 - 1), -(2**63))) if isinstance(value, int) else b"Z"


def _long(n: int) -> bytes:
    return b"L" + struct.pack(">q", n)


def _text(text: str) -> bytes:
    return _long(len(text.encode())) + text.encode()


def changed(tree: Any, dumps: Callable[[Any], bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the document with one thing changed: each field dropped, each number, size and list made wrong in each way."""

    def at(path: list[Any]) -> Any:
        value = tree
        for step in path:
            value = value[step]
        return value

    def walk(path: list[Any]) -> Iterator[tuple[str, Any, list[Any]]]:
        value = at(path)
        place = ".".join(map(str, path))
        if isinstance(value, dict):
            for key in list(value):
                yield f"no {place}.{key}", DROP, [*path, key]
                yield from walk([*path, key])
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{place} shorter", value[:-1], path
            yield f"{place} longer", [*value, value[0]], path
            yield f"{place} empty", [], path
            yield from walk([*path, 0])
        elif isinstance(value, list | np.ndarray):
            yield from lists(place, value, path)
        else:
            for odd in SIZES if isinstance(value, str) else NUMBERS:
                yield f"{place} = {odd!r}", odd, path

    def lists(place: str, value: Any, path: list[Any]) -> Iterator[tuple[str, Any, list[Any]]]:
        for how, part in (("shorter", value[:-1]), ("empty", value[:0]), ("a number", 3), ("a text", "x"), ("nothing", None)):
            yield f"{place} {how}", part, path
        longer = np.concatenate([value, value[:1]]) if isinstance(value, np.ndarray) else [*value, *value[:1], 0]
        yield f"{place} longer", longer, path
        for i in sorted({0, 1, len(value) - 1} & set(range(len(value)))):
            for odd in NUMBERS:
                copy = value.copy()
                if isinstance(copy, np.ndarray):
                    if (
                        isinstance(odd, bool)
                        or not isinstance(odd, int | float)
                        or (copy.dtype.kind != "f" and not math.isfinite(odd))
                    ):
                        continue
                    low, high = (-3e38, 3e38) if copy.dtype.kind == "f" else (np.iinfo(copy.dtype).min, np.iinfo(copy.dtype).max)
                    odd = max(min(odd, high), low)
                copy[i] = odd
                yield f"{place}[{i}] = {odd!r}", copy, path

    for name, value, path in list(walk([])):
        if not path:
            continue
        holder, key = at(path[:-1]), path[-1]
        before, order = holder[key], list(holder) if isinstance(holder, dict) else None
        if value is DROP:
            del holder[key]
        else:
            holder[key] = value
        yield name, dumps(tree)
        holder[key] = before
        if order is not None and value is DROP:  # keep the order of the keys
            for k in order:
                holder[k] = holder.pop(k)


DROP = object()


def flipped(content: bytes, rng: random.Random, number: int) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes with bits turned, pieces dropped, doubled or moved, and ends cut."""
    for i in range(number):
        data = bytearray(content)
        how = rng.choice(["bit", "bit", "byte", "cut", "drop", "double", "digits"])
        at, size = rng.randrange(len(data)), rng.randrange(1, 40)
        if how == "bit":
            for _ in range(rng.choice([1, 1, 3])):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif how == "byte":
            data[at] = rng.randrange(256)
        elif how == "cut":
            del data[at:]
        elif how == "drop":
            del data[at : at + size]
        elif how == "double":
            data[at:at] = data[at : at + size]
        else:
            digits = [j for j, byte in enumerate(data) if 48 <= byte <= 57]
            if digits:
                data[rng.choice(digits)] = rng.choice(b"0123456789-.e")
        yield f"{how} {i}", bytes(data)


def lines_changed(text: str) -> Iterator[tuple[str, bytes]]:
    """Yield a LightGBM text with one line changed."""
    lines, seen = text.split("\n"), {}
    for i, line in enumerate(lines):
        key, equals, value = line.partition("=")
        if not equals or seen.setdefault(key, 0) >= 2:
            continue
        seen[key] += 1
        first = value.split(" ")
        for odd in ("", "x", "-1", "0", "99999999", "2147483648", "nan", "1e400", f"{value} 1", " ".join(first[:-1]), " ".join(["7"] * len(first)),
                    " ".join(["-9", *first[1:]]), " ".join([*first[:-1], "1000000"])):  # fmt: skip
            yield f"{i}: {key}={odd[:20]}", "\n".join([*lines[:i], f"{key}={odd}", *lines[i + 1 :]]).encode()
        yield f"{i}: no {key}", "\n".join([*lines[:i], *lines[i + 1 :]]).encode()


class Runs:
    """Writes a file where it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.target = str(folder / CANARY)

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.target, "w")


def archive(members: dict[str, bytes], *, packed: bool = False) -> bytes:
    """Return a zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as file:
        for name, body in members.items():
            file.writestr(name, body)
    return stream.getvalue()


def npy(shape: tuple[int, ...], kind: str = "<f8", body: bytes = b"") -> bytes:
    """Return an .npy file with a header of any shape and a body of any length."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + body


def array_of(objects: Any) -> bytes:
    """Return an .npy file with an array of objects."""
    stream = io.BytesIO()
    np.save(stream, np.array([objects], dtype=object), allow_pickle=True)
    return stream.getvalue()


def running_code(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (file name, content) of files that create the canary where something unpickles them."""
    import bz2
    import gzip
    import lzma
    import zlib

    bait = Runs(folder)
    contents: dict[str, bytes] = {f"protocol{p}": pickle.dumps(bait, protocol=p) for p in range(6)}
    contents |= {
        f"packed{i}": pack(contents["protocol4"])
        for i, pack in enumerate((zlib.compress, gzip.compress, bz2.compress, lzma.compress))
    }
    contents["torch"] = archive({"m/data.pkl": contents["protocol2"], "m/version": b"3\n", "m/data/0": b"\0" * 8})
    contents["npz"] = archive({"a.npy": array_of(bait)})
    contents["npy"] = array_of(bait)
    contents["pickle then archive"] = contents["protocol4"] + archive({"schema.json": b"{}"})
    contents["json then archive"] = b'{"learner":{}}' + archive({"m/data.pkl": contents["protocol4"]})
    contents["archive then pickle"] = archive({"schema.json": b"{}"}) + contents["protocol4"]
    contents["text then pickle"] = b"tree\nversion=v4\n" + contents["protocol0"]
    contents["pickle in a comment"] = b'{"learner": "' + base64.b64encode(contents["protocol4"]) + b'"}'
    for name, content in contents.items():
        for suffix in ("pkl", "json", "ubj", "txt", "onnx", "skops", "npz", "pt", ""):
            yield f"{name}.{suffix}" if suffix else name, content


def growing(schema: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield archives that unpack to far more than their size."""
    zeros = b"\0" * (40 << 20)
    bomb = archive({"schema.json": schema, "a.npy": zeros}, packed=True)
    for suffix in ("skops", "npz", "pt", "zip"):
        yield f"zeros.{suffix}", bomb
        yield f"many.{suffix}", archive({"schema.json": schema, **{f"{i}.npy": zeros[: 8 << 20] for i in range(6)}}, packed=True)
        yield f"nested.{suffix}", archive({"schema.json": schema, "a.skops": bomb, "b.zip": archive({"c.zip": bomb})})
    lying = bytearray(bomb)
    at = lying.rfind(b"PK\x01\x02")
    lying[at + 24 : at + 28] = struct.pack("<I", 100)  # the directory states a hundred bytes
    yield "lying.skops", bytes(lying)
    yield "schema.skops", archive({"schema.json": b"[" * 200_000 + b"]" * 200_000})
    yield "blank.skops", archive({"schema.json": b" " * (40 << 20)}, packed=True)
    yield "crowd.skops", archive({"schema.json": schema, **{f"{i}": b"" for i in range(60_000)}})
    yield "twins.skops", archive({"schema.json": schema}) + archive({"schema.json": b"{}"})


def endless(folder: Path) -> Iterator[Path]:
    """Make and yield paths that never end, are not files, or are larger than any model."""
    import os

    for suffix in ("json", "ubj", "txt", "onnx", "skops", "npz", "pkl", "pt", ""):
        stem = f".{suffix}" if suffix else ""
        pipe, huge, where, loop, zero, gone = (
            folder / f"{name}{stem}" for name in ("pipe", "huge", "folder", "loop", "zero", "gone")
        )
        os.mkfifo(pipe)
        head = {"json": b'{"learner":', "ubj": b"{L", "txt": b"tree\n", "onnx": b"\x08\x08\x12\x00", "skops": b"PK\x03\x04"}.get(
            suffix, b"\x80\x04"
        )
        huge.write_bytes(head)
        os.truncate(huge, 3 << 30)
        where.mkdir()
        loop.symlink_to(loop)
        zero.symlink_to("/dev/zero")
        gone.symlink_to(folder / "nowhere")
        yield from (pipe, huge, where, loop, zero, gone)


def light_text(trees: list[str]) -> bytes:
    """Return a LightGBM model of two columns with these trees, each without its first line."""
    whole = [f"Tree={i}\n{tree}" for i, tree in enumerate(trees)]
    head = {"version": "v4", "num_class": 1, "num_tree_per_iteration": 1, "label_index": 0, "max_feature_idx": 1, "objective": "regression",
            "feature_names": "a b", "feature_infos": "[0:1] [0:1]", "tree_sizes": " ".join(str(len(tree)) for tree in whole)}  # fmt: skip
    lines = "".join(f"{key}={value}\n" for key, value in head.items())
    return f"tree\n{lines}\n{''.join(whole)}end of trees\n\npandas_categorical:[]\n".encode()


def light_chain(splits: int) -> str:
    """Return a LightGBM tree of which each split has one leaf and the next split."""
    fields = {
        "num_leaves": [splits + 1], "num_cat": [0], "split_feature": [0] * splits, "split_gain": [1] * splits, "threshold": range(splits),
        "decision_type": [2] * splits, "left_child": range(-1, -splits - 1, -1), "right_child": [*range(1, splits), -splits - 1],
        "leaf_value": [1] * (splits + 1), "leaf_weight": [1] * (splits + 1), "leaf_count": [1] * (splits + 1), "internal_value": [0] * splits,
        "internal_weight": [1] * splits, "internal_count": [1] * splits, "is_linear": [0], "shrinkage": [1],
    }  # fmt: skip
    return "".join(f"{key}={' '.join(map(str, values))}\n" for key, values in fields.items()) + "\n\n"


def xgboost_chain(splits: int) -> dict[str, Any]:
    """Return the fields of an XGBoost tree of which each split has one leaf and the next split."""
    nodes = 2 * splits + 1
    split = [i % 2 == 0 and i < nodes - 1 for i in range(nodes)]
    zeros = [0] * nodes
    return {
        "left_children": [i + 1 if s else -1 for i, s in enumerate(split)], "right_children": [i + 2 if s else -1 for i, s in enumerate(split)],
        "parents": [2**31 - 1, *(i - 1 if i % 2 else i - 2 for i in range(1, nodes))], "split_indices": zeros, "default_left": zeros, "split_type": zeros,
        "split_conditions": [float(i) for i in range(nodes)], "loss_changes": [0.0] * nodes, "sum_hessian": [1.0] * nodes, "base_weights": [0.0] * nodes,
        "tree_param": {"num_nodes": str(nodes), "size_leaf_vector": "1", "num_deleted": "0", "num_feature": "3"},
    }  # fmt: skip


def crowded() -> Iterator[tuple[str, bytes]]:
    """Yield files of many small parts: lists, keys, escapes, trees, lines, fields."""
    n = 1_100_000
    start, end = b'{"learner":{"a":', b"}}"
    yield "lists.json", start + b"[" + b"[]," * n + b"[]]" + end
    yield "mappings.json", start + b"[" + b"{}," * n + b"{}]" + end
    yield "texts.json", start + b"[" + b'"ab",' * n + b'"a"]' + end
    yield "keys.json", start + b"{" + b",".join(b'"%x":0' % i for i in range(n)) + b"}" + end
    yield "quotes.json", start + b'"\\u00e9' + b'\\"' * 900_000 + b'"' + end
    yield "escapes.json", start + b'"' + b"\\u00e9" * n + b'"' + end
    yield "texts with escapes.json", start + b'["\\u00e9",' + b'"",' * 800_000 + b"0]" + end
    yield "numbers.json", start + b"[" + b"0," * n + b"0]" + end
    yield "brackets.json", start + b"[" * 900_000
    key = _length(7) + b"learner"
    yield "lists.ubj", b"{" + key + b"[" + b"[]" * n + b"]}"
    yield "nothing.ubj", b"{" + key + b"[" + b"Z" * n + b"]}"
    yield "arrays.ubj", b"{" + key + b"[" + (b"[$l#" + _length(0)) * 1_100_000 + b"]}"
    yield "keys.ubj", b"{" + key + b"{" + b"".join(_length(7) + b"%07dT" % i for i in range(1_100_000)) + b"}}"
    stump = "num_leaves=1\nnum_cat=0\nleaf_value=1\nis_linear=0\nshrinkage=1\n\n\n"
    yield "trees.txt", light_text([stump] * 150_000)
    yield "lines of a tree.txt", light_text([stump + "\n" * n])
    yield "fields of a tree.txt", light_text([stump + "".join(f"a{i}=1\n" for i in range(200_000))])
    whole = light_text([stump])
    yield "lines of the header.txt", whole.replace(b"tree_sizes", b"a=1\n" * n + b"tree_sizes")
    yield "parameters.txt", whole + b"\nparameters:\n" + b"[a: b]\n" * n + b"\nend of parameters\n"
    wide = {b"max_feature_idx=1": b"max_feature_idx=%d" % (n - 1), b"names=a b": b"names=" + b" ".join([b"a"] * n), b"[0:1] [0:1]": b" ".join([b"none"] * n)}
    for old, new in wide.items():
        whole = whole.replace(old, new)
    yield "columns.txt", whole
    schema = b'{"__class__":"dict","__module__":"builtins","__loader__":"DictNode","protocol":1,"content":%s}'
    for name, part in {"lists": b"[],", "mappings": b"{},", "numbers": b"0,0,0,0,", "texts": b'"a",'}.items():
        yield f"{name}.skops", archive({"schema.json": schema % (b"[" + part * n + b"0]")})


def _length(number: int) -> bytes:
    return b"L" + struct.pack(">q", number)
