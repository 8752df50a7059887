"""The trees of an ONNX ensemble, checked before onnxruntime follows them: it trusts columns and children."""

from __future__ import annotations

import numpy as np

from budge.models.limits import TREE_DEPTH
from budge.models.onnx_graph import Attribute, Ints, Node

__all__ = ["check_trees"]

_NODES = ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids")
_OPTIONAL = ("nodes_hitrates", "nodes_missing_value_tracks_true")
_MODES = {b"BRANCH_LEQ", b"BRANCH_LT", b"BRANCH_GTE", b"BRANCH_GT", b"BRANCH_EQ", b"BRANCH_NEQ", b"LEAF"}


def check_trees(node: Node, columns: int | None) -> int:
    """Return how many splits one row passes at most; raise ValueError unless the nodes are trees over these columns (None: not known)."""
    found = node.attributes
    trees, ids, features, yes, no = (_ints(found, name) for name in _NODES)
    modes = found.get("nodes_modes", Attribute()).strings
    size = len(ids)
    lengths = {len(trees), len(ids), len(features), len(yes), len(no), len(modes), _size(found, "nodes_values")}
    if lengths != {size} or not size or {_size(found, name) for name in _OPTIONAL} - {0, size}:
        raise ValueError("the lists of its nodes differ in length")
    if not set(modes) <= _MODES:
        raise ValueError("a node is of an unknown kind")
    for row in (trees, ids):
        if row.min() < 0 or row.max() >= 2**31:
            raise ValueError("a tree or a node has a number outside 0 to 2147483647")
    split = np.array([mode != b"LEAF" for mode in modes])
    if columns is not None and split.any() and not 0 <= features[split].min() <= features[split].max() < columns:
        raise ValueError("a tree splits on a column that is not there")
    key = trees << 32 | ids
    order = np.argsort(key, kind="stable")
    if (np.diff(key[order]) == 0).any():
        raise ValueError("a node stands twice")
    left, right = (_places(key, order, trees[split] << 32 | branch[split], split_branch=branch[split]) for branch in (yes, no))
    number = len(np.unique(trees))
    steps = _depth(left, right, split, number) * number
    _answers(found, key, order, split)
    return steps


def _ints(found: dict[str, Attribute], name: str) -> Ints:
    return found.get(name, Attribute()).ints.astype(np.int64)


def _size(found: dict[str, Attribute], name: str) -> int:
    return max((len(a.ints) + a.floats + sum(int(np.prod(t.dims)) for t in a.tensors) for n, a in found.items() if n in (name, f"{name}_as_tensor")), default=0)


def _places(key: Ints, order: Ints, wanted: Ints, *, split_branch: Ints) -> Ints:
    """Return where the wanted nodes stand in the lists."""
    if len(split_branch) and (split_branch.min() < 0 or split_branch.max() >= 2**31):
        raise ValueError("a branch leads to a node that is not there")
    at = np.minimum(np.searchsorted(key, wanted, sorter=order), len(key) - 1)
    places = order[at]
    if (key[places] != wanted).any():
        raise ValueError("a branch leads to a node that is not there")
    return places


def _depth(left: Ints, right: Ints, split: np.ndarray, number: int) -> int:
    """Return how deep the deepest tree is; each node is reached once, from one root for each tree."""
    children = np.concatenate([left, right])
    reached = np.bincount(children, minlength=len(split))
    level = np.flatnonzero(reached == 0)
    if reached.max(initial=0) > 1 or len(level) != number:
        raise ValueError("the branches do not make trees")
    rank = np.cumsum(split) - 1
    seen = 0
    for depth in range(TREE_DEPTH + 1):
        seen += len(level)
        inner = rank[level[split[level]]]
        if not len(inner):
            if seen != len(split):
                raise ValueError("the branches do not make trees")
            return depth
        level = np.concatenate([left[inner], right[inner]])
    raise ValueError(f"a tree is more than {TREE_DEPTH} splits deep (TREE_DEPTH)")


def _answers(found: dict[str, Attribute], key: Ints, order: Ints, split: np.ndarray) -> None:
    """Check what the leaves answer: each entry names a leaf, and a class or a target that is there."""
    kind = "class" if "class_ids" in found else "target"
    trees, nodes, numbers = (_ints(found, f"{kind}_{part}") for part in ("treeids", "nodeids", "ids"))
    if not len(trees) == len(nodes) == len(numbers) == _size(found, f"{kind}_weights") or not len(trees):
        raise ValueError("the lists of its leaves differ in length")
    if kind == "class":
        names = ("classlabels_int64s", "classlabels_ints", "classlabels_strings")
        several = sum(len(found[name].ints) + len(found[name].strings) for name in names if name in found)
    else:
        several = found.get("n_targets", Attribute()).number or 1
    if numbers.min() < 0 or numbers.max() >= max(several, 1):
        raise ValueError("a leaf answers for a class or a target that is not there")
    if split[_places(key, order, trees << 32 | nodes, split_branch=nodes)].any():
        raise ValueError("a split answers as a leaf does")
    if _size(found, "base_values") not in (0, 1, several):
        raise ValueError("base_values do not fit")
