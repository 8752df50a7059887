"""LightGBM's text format, looked over before LightGBM reads it.

LightGBM trusts its files: one that is cut in the middle of a tree ends the process, one with bytes after its header never returns,
and children that point in a circle would be followed for ever. So the frame of the file and the shape of each tree are checked here.
"""

from __future__ import annotations

import re

from budge.errors import ModelError

__all__ = ["check_text"]

HEADER = ("num_class", "num_tree_per_iteration", "max_feature_idx", "feature_names", "feature_infos", "tree_sizes")
END = b"end of trees"


def check_text(content: bytes, *, where: str = "model") -> None:
    """Raise unless the bytes are a whole LightGBM model.

    Examples
    --------
    >>> check_text(b"tree\\nversion=v4\\n")
    Traceback (most recent call last):
    budge.errors.ModelError: model: the LightGBM file is cut off or broken: no "end of trees"; ...
    """
    try:
        _check(content.replace(b"\r\n", b"\n"))
    except (ValueError, KeyError, IndexError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        what = f"the LightGBM file is cut off or broken: {reason}"
        raise ModelError(what, where=where, remedy="save the model again") from error


def _check(content: bytes) -> None:
    if b"\x00" in content:
        raise ValueError("it holds bytes that are no text")
    end = content.find(END)
    if end < 0:
        raise ValueError('no "end of trees"')
    head, _, _ = content.partition(b"\n\n")
    fields = _fields(head.decode())
    for name in HEADER:
        if name not in fields:
            raise KeyError(name)
    sizes = [int(size) for size in fields["tree_sizes"].split()]
    start = content.find(b"Tree=")
    if not sizes or start < 0:
        raise ValueError("it has no trees")
    columns = int(fields["max_feature_idx"]) + 1
    if len(fields["feature_names"].split()) != columns:
        raise ValueError(f"{columns} columns, and not as many names")
    if start + sum(sizes) > end:
        raise ValueError("its trees are shorter than it says")
    for number, size in enumerate(sizes):
        tree = content[start : start + size].decode()
        start += size
        if not tree.startswith(f"Tree={number}\n"):
            raise ValueError(f"tree {number} is not where it should be")
        _tree(_fields(tree), columns, f"tree {number}")
    if content[start:end].strip():
        raise ValueError("there is something after the last tree")
    _parameters(content[end:].decode())


def _fields(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.M))


def _parameters(text: str) -> None:
    """What follows the trees: the parameters of training, one a line in brackets."""
    _, begun, rest = text.partition("\nparameters:\n")
    if not begun:
        return
    lines, ended, _ = rest.partition("\nend of parameters")
    if not ended or not all(re.fullmatch(r"\[\w+: .*\]", line) for line in lines.splitlines() if line):
        raise ValueError("its parameters cannot be read")


def _numbers(fields: dict[str, str], key: str, size: int, name: str) -> list[float]:
    row = [float(value) for value in fields[key].split()]
    if len(row) != size:
        raise ValueError(f"{key} of {name} holds {len(row)} values where {size} are expected")
    return row


def _tree(fields: dict[str, str], columns: int, name: str) -> None:
    leaves, splits = int(fields["num_leaves"]), int(fields["num_leaves"]) - 1
    if leaves < 1:
        raise ValueError(f"{name} has {leaves} leaves")
    _numbers(fields, "leaf_value", leaves, name)
    if not splits:
        return
    _numbers(fields, "threshold", splits, name)
    for key in {"leaf_weight", "leaf_count"} & fields.keys():  # statistics of training, which may be absent
        _numbers(fields, key, leaves, name)
    for key in {"split_gain", "internal_value", "internal_weight", "internal_count"} & fields.keys():
        _numbers(fields, key, splits, name)
    rows = {key: _numbers(fields, key, splits, name) for key in ("split_feature", "left_child", "right_child", "decision_type")}
    features, left, right, decisions = ([int(value) for value in row] for row in rows.values())
    if not all(0 <= column < columns for column in features):
        raise ValueError(f"{name} splits on a column that is not there")
    _shape(left, right, name)
    _categories(fields, decisions, name)


def _shape(left: list[int], right: list[int], name: str) -> None:
    """Each split and each leaf is reached once from the root: no circle, no hole."""
    reached = sorted(left + right)
    splits = len(left)
    if reached != [*range(-splits - 1, 0), *range(1, splits)]:
        raise ValueError(f"the branches of {name} do not make a tree")
    seen, waiting = 0, [0]
    while waiting:
        node = waiting.pop()
        seen += 1
        waiting += [child for child in (left[node], right[node]) if child >= 0]
    if seen != splits:
        raise ValueError(f"the branches of {name} do not make a tree")


def _categories(fields: dict[str, str], decisions: list[int], name: str) -> None:
    number = int(fields["num_cat"])
    used = [int(float(value)) for value, kind in zip(fields["threshold"].split(), decisions) if kind & 1]
    if not number:
        if used:
            raise ValueError(f"{name} splits on categories and lists none")
        return
    bounds = [int(v) for v in fields["cat_boundaries"].split()]
    words = len(fields["cat_threshold"].split())
    if len(bounds) != number + 1 or bounds != sorted(bounds) or bounds[0] != 0 or bounds[-1] != words:
        raise ValueError(f"the categories of {name} do not fit")
    if not all(0 <= index < number for index in used):
        raise ValueError(f"{name} splits on categories that are not there")
