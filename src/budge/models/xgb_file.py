"""XGBoost's two formats, looked over before XGBoost reads them.

XGBoost trusts its files: a child outside its tree, or a circle of children, ends or halts the process. So each part that is used as an index
or as a size is checked here, for JSON and UBJSON alike. A key that stands twice is refused, since two readers may take different ones.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.errors import ModelError
from budge.models.limits import COLUMNS, TREE_DEPTH, BeyondLimitError, check_parts
from budge.models.ubj import DEEPEST, decode_ubj

__all__ = ["check_xgboost"]

Array = npt.NDArray[Any]
MOST_OUTPUTS = 100_000  #: classes, or targets: every row is answered with as many numbers
MOST_CATEGORY = 1 << 24  #: XGBoost's own limit of a category's number
CATEGORY_BITS = 1 << 30  #: of all splits on categories: one takes a bit for each number up to its highest category
#: Where a base score lies, for objectives that take its logarithm.
BASE_SCORES = {
    "binary:logistic": (0.0, 1.0), "reg:logistic": (0.0, 1.0), "reg:gamma": (1e-300, math.inf),
    **dict.fromkeys(("count:poisson", "reg:tweedie", "survival:cox", "survival:aft"), (0.0, math.inf)),
}  # fmt: skip
TEXT = re.compile(r'"((?:[^"\\]|\\.)*+)"(\s*+:)?', re.S)  # a text, and whether it is a key
NO_PARENT = (-1, 2**31 - 1)
DELETED = (2**31 - 1, 2**32 - 1)
INNER = ("split_indices", "default_left", "split_conditions", "loss_changes", "sum_hessian")


def check_xgboost(content: bytes, *, where: str = "model") -> None:
    """Raise unless the bytes are a whole XGBoost model, in JSON or in UBJSON.

    Examples
    --------
    >>> check_xgboost(b'{"learner": {"gradient_booster": {"name": "gbtree"}}}')
    Traceback (most recent call last):
    budge.errors.ModelError: model: the XGBoost file is cut off or broken: no mapping 'learner_model_param'; save the model again
    """
    try:
        if not content.startswith(b"{"):
            raise ValueError("it is no mapping")
        text = content[1:2] in (b'"', b" ", b"\t", b"\r", b"\n")
        if text:
            check_parts(content)
        document = _json(content.decode()) if text else decode_ubj(content)
        _depth(document)
        _learner(_mapping(document, "learner"))
        version = document.get("version")
        if version is not None and (len(numbers := _whole(version, "version")) != 3 or not ((numbers >= 0) & (numbers < 1000)).all()):
            raise ValueError("its version is not three small numbers")
    except BeyondLimitError as error:
        raise ModelError(f"the XGBoost file is too large: {error}", where=where, remedy=error.remedy) from error
    except (ValueError, RecursionError, OverflowError) as error:
        reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        raise ModelError(f"the XGBoost file is cut off or broken: {reason}", where=where, remedy="save the model again") from error


def _json(text: str) -> Any:
    if "\\u" in text and any(key and "\\u" in written for written, key in TEXT.findall(text)):
        raise ValueError("a key holds an escape, which XGBoost does not read")
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        raise ValueError("it holds a key twice")
    return tree


def _depth(value: Any) -> None:
    """Raise where mappings and lists nest beyond the limit."""
    level = [value]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif not {dict, list}.isdisjoint(map(type, item)):
                inner += item
        level = [item for item in inner if isinstance(item, dict | list)]
        if not level:
            return
    raise ValueError(f"it nests more than {DEEPEST} levels deep")


def _learner(learner: dict[str, Any]) -> None:
    param, booster = _mapping(learner, "learner_model_param"), _mapping(learner, "gradient_booster")
    columns = _count(param, "num_feature")
    classes, targets = _count(param, "num_class", 0), _count(param, "num_target", 1)
    outputs = max(classes, targets, 1)
    if classes > 1 and targets > 1:
        raise ValueError(f"{classes} classes and {targets} targets at once, which XGBoost does not read")
    if columns > COLUMNS:  # XGBoost holds as many numbers for each row of a block
        raise BeyondLimitError(f"it has {columns:,} columns, more than {COLUMNS:,} (COLUMNS)")
    if outputs > MOST_OUTPUTS:
        raise ValueError(f"{outputs} outputs, more than {MOST_OUTPUTS}")
    objective = _mapping(learner, "objective")
    _objective(objective, param)
    _base_score(param, outputs, objective["name"])
    for key in ("feature_names", "feature_types"):
        texts = _list(learner, key, [])
        if texts and (len(texts) != columns or not all(isinstance(text, str) for text in texts)):
            raise ValueError(f"{key} are not {columns} texts")
    if not all(isinstance(text, str) for text in _mapping(learner, "attributes", {}).values()):
        raise ValueError("attributes are not all texts")
    name = booster.get("name")
    if name == "gblinear":
        weights = _numbers(_mapping(booster, "model"), "weights", (columns + 1) * outputs, "the linear model")
        if not np.isfinite(weights).all():
            raise ValueError("a weight is no number")
        return
    if name not in ("gbtree", "dart"):
        raise ValueError(f"the booster {str(name)[:40]!r} is not known")
    model = _mapping(_mapping(booster, "gbtree") if name == "dart" else booster, "model")
    trees = _trees(model, columns, outputs)
    if name == "dart":
        _numbers(booster, "weight_drop", trees, "the booster")
    if model.get("cats") is not None:
        _encodings(_mapping(model, "cats"), columns)


def _base_score(param: dict[str, Any], outputs: int, objective: str) -> None:
    text = param.get("base_score")
    if not isinstance(text, str):
        raise ValueError("base_score is no text")
    try:
        scores = [float(part) for part in text.strip().removeprefix("[").removesuffix("]").split(",")]
    except ValueError:
        raise ValueError(f"base_score is no number: {text[:40]!r}") from None
    if len(scores) not in (1, outputs) or not all(map(math.isfinite, scores)):
        raise ValueError(f"base_score does not hold 1 or {outputs} finite numbers")
    low, high = BASE_SCORES.get(objective, (-math.inf, math.inf))
    if not all(low <= score <= high for score in scores):
        raise ValueError(f"base_score {text[:40]} of {objective} is not {f'from {low:g} to {high:g}' if high < math.inf else 'positive'}")


def _objective(objective: dict[str, Any], param: dict[str, Any]) -> None:
    if not isinstance(objective.get("name"), str):
        raise ValueError("the objective has no name")
    if any(isinstance(text, str) and text.count("[") > 1 for part in objective.values() if isinstance(part, dict) for text in part.values()):
        raise ValueError("a parameter of the objective holds lists in lists")  # XGBoost reads them by recursion
    stated = _mapping(objective, "softmax_multiclass_param", {})
    if stated and _count(stated, "num_class") != _count(param, "num_class", 0):
        raise ValueError("the objective's num_class differs from the model's")
    if objective["name"] in ("multi:softprob", "multi:softmax") and not (stated and _count(param, "num_class", 0) >= 1):
        raise ValueError("the objective needs num_class")


def _trees(model: dict[str, Any], columns: int, outputs: int) -> int:
    """Check the trees and how they are ordered; return how many there are."""
    trees, stated = _list(model, "trees"), _mapping(model, "gbtree_model_param")
    number = len(trees)
    if _count(stated, "num_trees") != number:
        raise ValueError(f"it states {_count(stated, 'num_trees')} trees and holds {number}")
    if _count(stated, "num_parallel_tree", 1) > max(number, 1_000_000):
        raise ValueError("num_parallel_tree is past the number of trees")
    groups = _numbers(model, "tree_info", number, "the model", whole=True)
    ends = _whole(model.get("iteration_indptr", []), "iteration_indptr")
    if len(ends) and (ends[0] != 0 or ends[-1] != number or (np.diff(ends) < 0).any() or len(ends) > number + 1):  # absent from old versions
        raise ValueError("iteration_indptr does not lead from 0 to the number of trees")
    places, bits, vectors = [], 0, set()
    for i, tree in enumerate(trees):
        if not isinstance(tree, dict):
            raise ValueError(f"tree {i} is no mapping")
        places.append(tree.get("id", i))
        used, vector = _tree(tree, columns, f"tree {i}")
        bits += used
        vectors.add(vector)
        if bits > CATEGORY_BITS:
            raise ValueError(f"its splits on categories take more than {CATEGORY_BITS:,} bits")
    if not all(type(place) is int for place in places) or sorted(places) != list(range(number)):
        raise ValueError("the trees are not numbered from 0, each once")
    if vectors - {0, 1} and vectors != {outputs}:
        raise ValueError("the leaves do not hold one number for each output")
    if number and not vectors - {0, 1} and outputs > number:
        raise ValueError(f"{outputs} outputs and {number} trees")
    if number and not ((groups >= 0) & (groups < outputs)).all():
        raise ValueError(f"tree_info names an output beyond {outputs}")
    return number


def _tree(tree: dict[str, Any], columns: int, name: str) -> tuple[int, int]:
    """Check one tree; return the bits of its splits on categories, and how many numbers a leaf holds."""
    param = _mapping(tree, "tree_param")
    nodes, vector = _count(param, "num_nodes"), _count(param, "size_leaf_vector", 0)
    if nodes < 1 or _count(param, "num_deleted", 0) >= nodes or _count(param, "num_feature", columns) not in (0, columns) or vector > MOST_OUTPUTS:
        raise ValueError(f"the sizes of {name} do not fit")
    left, right, parents = (_numbers(tree, key, nodes, name, whole=True) for key in ("left_children", "right_children", "parents"))
    rows = {key: _numbers(tree, key, nodes, name, whole=key in INNER[:2]) for key in INNER}
    _numbers(tree, "base_weights", nodes * max(vector, 1), name)
    _shape(left, right, parents, name, vector)
    split = left >= 0
    features = rows["split_indices"]
    if not ((features[split] >= 0) & (features[split] < columns)).all():
        raise ValueError(f"{name} splits on a column that is not there")
    rest = features[~split]
    if not ((rest >= 0) & ((rest < max(columns, 1)) | np.isin(rest, DELETED))).all():
        raise ValueError(f"{name} names a column that is not there")
    if vector > 1:
        leaves = int((~split).sum())
        _numbers(tree, "leaf_weights", leaves * vector, name)
        if not ((right[~split] >= 0) & (right[~split] < leaves)).all():
            raise ValueError(f"{name} names a leaf that is not there")
    return _categories(tree, split, name), vector


def _shape(left: Array, right: Array, parents: Array, name: str, vector: int) -> None:
    """Raise unless what is reached from the root is a tree.

    A child that names its one parent cannot be reached twice, and a root without a parent is on no circle; so no walk is needed.
    """
    nodes = len(left)
    at = np.flatnonzero(left != -1)
    children = np.concatenate([left[at], right[at]])
    good = ((children > 0) & (children < nodes)).all() and (left[at] != right[at]).all() and parents[0] in NO_PARENT
    good = good and ((parents[1:] >= 0) & (parents[1:] < nodes)).all()  # of nodes that were pruned away, too
    if not good or (parents[children] != np.concatenate([at, at])).any():
        raise ValueError(f"the branches of {name} do not make a tree")
    if vector <= 1 and (right[left == -1] != -1).any():
        raise ValueError(f"a leaf of {name} has a branch")
    if nodes > 2 * TREE_DEPTH:  # XGBoost walks some trees by recursion
        level = np.zeros(1, dtype=np.intp)
        for _ in range(TREE_DEPTH + 1):
            level = level[left[level] != -1]
            if not len(level):
                return
            level = np.concatenate([left[level], right[level]]).astype(np.intp)
        raise BeyondLimitError(f"{name} is more than {TREE_DEPTH} splits deep (TREE_DEPTH)")


def _categories(tree: dict[str, Any], split: Array, name: str) -> int:
    """Check the splits on categories; return how many bits their sets take."""
    if "split_type" not in tree and "categories" not in tree:  # versions before categories
        return 0
    kinds = _numbers(tree, "split_type", len(split), name, whole=True)
    values = _whole(tree.get("categories", []), f"categories of {name}")
    nodes = _whole(tree.get("categories_nodes", []), f"categories_nodes of {name}")
    starts, sizes = (_numbers(tree, key, len(nodes), name, whole=True) for key in ("categories_segments", "categories_sizes"))
    if not ((kinds == 0) | (kinds == 1)).all():
        raise ValueError(f"{name} has a split of an unknown type")
    if not np.array_equal(np.flatnonzero((kinds == 1) & split), nodes) or ((kinds == 1) & ~split).any():
        raise ValueError(f"{name} splits on categories other than those listed")
    if not len(nodes):
        if len(values):
            raise ValueError(f"{name} lists categories that no split uses")
        return 0
    if not ((values >= 0) & (values < MOST_CATEGORY)).all():
        raise ValueError(f"a category of {name} is outside 0 to {MOST_CATEGORY - 1:,}")
    if (sizes <= 0).any() or not np.array_equal(starts, np.concatenate([[0], np.cumsum(sizes)[:-1]])) or int(sizes.sum()) != len(values):
        raise ValueError(f"the categories of {name} do not fit")
    return int(np.maximum.reduceat(values, starts.astype(np.intp)).astype(np.int64).sum()) + len(nodes)


def _encodings(cats: dict[str, Any], columns: int) -> None:
    """Check the levels of training, by column: their offsets and their order."""
    levels, ends = _list(cats, "enc", []), _whole(cats.get("feature_segments", []), "feature_segments")
    order = _whole(cats.get("sorted_idx", []), "sorted_idx")
    if not len(levels) and not len(ends) and not len(order):
        return
    if len(levels) != columns or len(ends) != columns + 1 or ends[0] != 0 or (np.diff(ends) < 0).any() or ends[-1] != len(order):
        raise ValueError("the levels of its columns do not fit")
    for i, level in enumerate(levels):
        if not isinstance(level, dict):
            raise ValueError(f"the levels of column {i} are no mapping")
        size, values = int(ends[i + 1] - ends[i]), _array(level.get("values", []), f"levels of column {i}")
        if "offsets" in level:
            offsets = _whole(level["offsets"], f"offsets of column {i}")
            good = len(offsets) == size + 1 and offsets[0] == 0 and (np.diff(offsets) >= 0).all() and offsets[-1] == len(values)
            if not good and (size or len(offsets) or len(values)):
                raise ValueError(f"the levels of column {i} do not fit")
        elif len(values) != size:
            raise ValueError(f"the levels of column {i} do not fit")
        mine = order[int(ends[i]) : int(ends[i + 1])]
        if not np.array_equal(np.sort(mine), np.arange(size)):
            raise ValueError(f"the levels of column {i} are not each ordered once")


def _mapping(tree: dict[str, Any], key: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
    value = tree.get(key, default)
    if not isinstance(value, dict):
        raise ValueError(f"no mapping {key!r}")
    return value


def _list(tree: dict[str, Any], key: str, default: list[Any] | None = None) -> list[Any]:
    value = tree.get(key, default)
    if isinstance(value, np.ndarray) and not len(value):
        return []
    if not isinstance(value, list):
        raise ValueError(f"no list {key!r}")
    return value


def _count(tree: dict[str, Any], key: str, default: int | None = None) -> int:
    """Return a size, which XGBoost writes as a text."""
    value = tree.get(key, None if default is None else str(default))
    if not isinstance(value, str) or not re.fullmatch("[0-9]{1,10}", value, re.ASCII) or int(value) >= 2**31:
        raise ValueError(f"{key} is no size: {str(value)[:40]!r}")
    return int(value)


def _array(value: Any, name: str) -> Array:
    if not isinstance(value, list | np.ndarray):
        raise ValueError(f"{name} is no list of numbers")
    row = np.asarray(value)
    if row.ndim != 1 or row.dtype.kind not in "biuf":
        raise ValueError(f"{name} is no list of numbers")
    return row


def _whole(value: Any, name: str) -> Array:
    row = _array(value, name)
    if (row.dtype.kind == "f" and len(row)) or row.dtype == np.uint64:
        raise ValueError(f"{name} is no list of whole numbers")
    return row.astype(np.int64)


def _numbers(tree: dict[str, Any], key: str, size: int, name: str, *, whole: bool = False) -> Array:
    value = tree.get(key)
    row = _whole(value, f"{key} of {name}") if whole else _array(value, f"{key} of {name}")
    if len(row) != size:
        raise ValueError(f"{key} of {name} holds {len(row)} values where {size} are expected")
    return row
