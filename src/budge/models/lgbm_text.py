"""LightGBM's text format, looked over before LightGBM reads it.

LightGBM trusts its files: one that is cut in the middle of a tree ends the process, one with bytes after its header never returns,
and children that point in a circle would be followed for ever. So the frame of the file and the shape of each tree are checked here.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from budge.errors import ModelError
from budge.models.limits import COLUMNS, TREE_DEPTH, TREES, BeyondLimitError

__all__ = ["check_text"]

Ints = npt.NDArray[np.int64]
HEADER = ("num_class", "num_tree_per_iteration", "max_feature_idx", "feature_names", "feature_infos", "tree_sizes")
_NUMBER = r"[-+]?(?:[0-9]{1,20}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}|nan|inf)(?:[eE][-+]?[0-9]{1,3})?"
NUMBERS = re.compile(rf" *+(?:{_NUMBER}(?: ++{_NUMBER})*+)?+ *+", re.ASCII)
WHOLE = re.compile(r" *+(?:-?[0-9]{1,10}(?: ++-?[0-9]{1,10})*+)?+ *+", re.ASCII)  # LightGBM reads 1.0 as two numbers where it expects whole ones
WHOLE_FIELDS = {
    "split_feature", "left_child", "right_child", "decision_type", "leaf_count", "internal_count", "cat_boundaries", "cat_threshold", "num_features",
    "leaf_features",
}  # fmt: skip
INFO = re.compile(rf"none|\[{_NUMBER}:{_NUMBER}\]|-?[0-9]{{1,10}}(?::-?[0-9]{{1,10}})*+", re.ASCII)
OBJECTIVES = {
    "binary", "multiclass", "multiclassova", "regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma", "tweedie",
    "cross_entropy", "cross_entropy_lambda", "lambdarank", "rank_xendcg", "custom",
}  # fmt: skip
LINES = 1000  #: of the header, of a tree, of the parameters
END = b"end of trees\n"


def check_text(content: bytes, *, where: str = "model") -> None:
    """Raise unless the bytes are a whole LightGBM model.

    Examples
    --------
    >>> check_text(b"tree\\nversion=v4\\n")
    Traceback (most recent call last):
    budge.errors.ModelError: model: the LightGBM file is cut off or broken: no "end of trees"; ...
    """
    try:
        _check(content)
    except BeyondLimitError as error:
        raise ModelError(f"the LightGBM file is too large: {error}", where=where, remedy=error.remedy) from error
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        what = f"the LightGBM file is cut off or broken: {reason}"
        raise ModelError(what, where=where, remedy="save the model again") from error


def _check(content: bytes) -> None:
    if b"\x00" in content or b"\r" in content:  # LightGBM ends a line at a carriage return, too
        raise ValueError("it holds bytes that are no text")
    end = content.find(END)
    if end < 0:
        raise ValueError('no "end of trees"')
    head, _, _ = content.partition(b"\n\n")
    if head.count(b"\n") > LINES:
        raise ValueError(f"its header has more than {LINES} lines")
    fields = _fields(head.decode())
    for name in HEADER:
        if name not in fields:
            raise KeyError(name)
    if not WHOLE.fullmatch(fields["tree_sizes"]):
        raise ValueError("tree_sizes holds something other than sizes")
    sizes = [int(size) for size in fields["tree_sizes"].split()]
    if len(sizes) > TREES:
        raise BeyondLimitError(f"it has more than {TREES:,} trees (TREES)")
    start = content.find(b"\nTree=") + 1  # a column may be named so
    if not sizes or not start:
        raise ValueError("it has no trees")
    if content[len(head) : start].strip():  # LightGBM reads the header up to the first tree
        raise ValueError("there is something between its header and its trees")
    columns = _size(fields, "max_feature_idx") + 1
    if columns > COLUMNS:
        raise BeyondLimitError(f"it has {columns:,} columns, more than {COLUMNS:,} (COLUMNS)")
    for key in ("feature_names", "feature_infos"):
        if len(fields[key].split(" ")) != columns:  # any other space may be within a name
            raise ValueError(f"{columns} columns, and not as many {key}")
    if not all(INFO.fullmatch(info) for info in fields["feature_infos"].split()):
        raise ValueError("feature_infos holds something other than ranges and categories")
    classes, each = _size(fields, "num_class"), _size(fields, "num_tree_per_iteration")
    if each < 1 or len(sizes) % each or classes != each:
        raise ValueError(f"num_class={classes} and num_tree_per_iteration={each} do not fit {len(sizes)} trees")
    if _size(fields, "label_index") > columns:
        raise ValueError("label_index is past the columns")
    name, *options = fields.get("objective", "custom").split() or [""]
    if name not in OBJECTIVES or not all(re.fullmatch(r"sqrt|[a-z_]+:[0-9.eE+-]+", option, re.ASCII) for option in options):
        raise ValueError(f"the objective is not known: {fields['objective'][:40]!r}")
    if any(option.startswith("num_class:") and option != f"num_class:{classes}" for option in options):
        raise ValueError("the objective's num_class differs from the model's")
    if start + sum(sizes) > end:
        raise ValueError("its trees are shorter than it says")
    for number, size in enumerate(sizes):
        if content.count(b"\n", start, start + size) > LINES:
            raise ValueError(f"tree {number} has more than {LINES} lines")
        tree = content[start : start + size].decode()
        start += size
        if not tree.startswith(f"Tree={number}\n"):
            raise ValueError(f"tree {number} is not where it should be")
        fields = _fields(tree)
        if len(fields) != sum(1 for line in tree.splitlines() if line.strip()):
            raise ValueError(f"tree {number} holds a line that is no field, or a field twice")
        for key, value in fields.items():
            whole = key in WHOLE_FIELDS
            if not (WHOLE if whole else NUMBERS).fullmatch(value):  # LightGBM ends the process where it meets another token
                raise ValueError(f"{key} of tree {number} holds something other than {'whole ' if whole else ''}numbers")
        _tree(fields, columns, f"tree {number}")
    if content[start:end].strip():
        raise ValueError("there is something after the last tree")
    _parameters(content[end:].decode())


def _size(fields: dict[str, str], key: str, default: str | None = None) -> int:
    value = fields[key] if default is None else fields.get(key, default)
    if not re.fullmatch("[0-9]{1,9}", value, re.ASCII):
        raise ValueError(f"{key} is no size: {value[:40]!r}")
    return int(value)


def _fields(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.M))


def _parameters(text: str) -> None:
    """What follows the trees: the parameters of training, one a line in brackets."""
    _, begun, rest = text.partition("\nparameters:\n")
    if not begun:
        return
    lines, ended, _ = rest.partition("\nend of parameters\n")
    if lines.count("\n") > LINES:
        raise ValueError(f"it has more than {LINES} parameters")
    if not ended or not all(re.fullmatch(r"\[\w+: .*\]", line) for line in lines.splitlines() if line):
        raise ValueError("its parameters cannot be read")


def _count(fields: dict[str, str], key: str, size: int, name: str) -> None:
    """Raise unless a field, whose tokens were checked, holds so many of them."""
    found = len(fields[key].split())
    if found != size:
        raise ValueError(f"{key} of {name} holds {found} values where {size} are expected")


def _whole(fields: dict[str, str], key: str, size: int, name: str) -> Ints:
    row = np.array(fields[key].split(), dtype=np.int64)
    if len(row) != size:
        raise ValueError(f"{key} of {name} holds {len(row)} values where {size} are expected")
    return row


def _tree(fields: dict[str, str], columns: int, name: str) -> None:
    leaves = _size(fields, "num_leaves")
    splits = leaves - 1
    if leaves < 1:
        raise ValueError(f"{name} has {leaves} leaves")
    _count(fields, "leaf_value", leaves, name)
    if not splits:
        return
    _count(fields, "threshold", splits, name)
    for key in {"leaf_weight", "leaf_count"} & fields.keys():  # statistics of training, which may be absent
        _count(fields, key, leaves, name)
    for key in {"split_gain", "internal_value", "internal_weight", "internal_count"} & fields.keys():
        _count(fields, key, splits, name)
    features, left, right, decisions = (_whole(fields, key, splits, name) for key in ("split_feature", "left_child", "right_child", "decision_type"))
    if not ((features >= 0) & (features < columns)).all():
        raise ValueError(f"{name} splits on a column that is not there")
    if not ((decisions >= 0) & (decisions < 16)).all():
        raise ValueError(f"{name} has a split of an unknown type")
    _shape(left, right, name)
    _categories(fields, decisions, name)
    if _size(fields, "is_linear", "0"):
        _linear(fields, leaves, columns, name)


def _shape(left: Ints, right: Ints, name: str) -> None:
    """Each split and each leaf is reached once from the root: no circle, no hole."""
    splits = len(left)
    reached = np.sort(np.concatenate([left, right]))
    if not np.array_equal(reached, np.concatenate([np.arange(-splits - 1, 0), np.arange(1, splits)])):
        raise ValueError(f"the branches of {name} do not make a tree")
    at = np.arange(splits)
    if splits <= TREE_DEPTH and all((row[row >= 0] > at[row >= 0]).all() for row in (left, right)):
        return  # children come after their parents, as LightGBM writes them, so that there is no circle
    lefts, rights = left.tolist(), right.tolist()
    seen, level = 0, [0]
    for _ in range(TREE_DEPTH):
        seen += len(level)
        level = [child for node in level for child in (lefts[node], rights[node]) if child >= 0]
        if not level:
            break
    else:  # LightGBM writes some trees by recursion
        raise BeyondLimitError(f"{name} is more than {TREE_DEPTH} splits deep (TREE_DEPTH)")
    if seen != splits:
        raise ValueError(f"the branches of {name} do not make a tree")


def _categories(fields: dict[str, str], decisions: Ints, name: str) -> None:
    number = _size(fields, "num_cat")
    kinds = np.flatnonzero(decisions & 1)
    if not number:
        if len(kinds):
            raise ValueError(f"{name} splits on categories and lists none")
        return
    thresholds = fields["threshold"].split()
    used = [int(float(thresholds[i])) for i in kinds.tolist()]
    bounds = [int(v) for v in fields["cat_boundaries"].split()]
    words = len(fields["cat_threshold"].split())
    if len(bounds) != number + 1 or bounds != sorted(bounds) or bounds[0] != 0 or bounds[-1] != words:
        raise ValueError(f"the categories of {name} do not fit")
    if not all(0 <= index < number for index in used):
        raise ValueError(f"{name} splits on categories that are not there")


def _linear(fields: dict[str, str], leaves: int, columns: int, name: str) -> None:
    """Check the linear models in the leaves: their lists stand one after the other, as long as num_features states."""
    _count(fields, "leaf_const", leaves, name)
    sizes = _whole(fields, "num_features", leaves, name)
    if sizes.min() < 0:
        raise ValueError(f"num_features of {name} is negative")
    total = int(sizes.sum())
    _count(fields, "leaf_coeff", total, name)
    read = _whole(fields, "leaf_features", total, name)
    if not ((read >= 0) & (read < columns)).all():
        raise ValueError(f"a leaf of {name} reads a column that is not there")
