"""Parquet files: parts are slices of row groups, joined up to the size of a part; every part has the types and categories of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from budge.errors import BudgeError, DataError, StorageError
from budge.footers import Group, check_contents, check_texts, footer_of, groups_of
from budge.people.stream import Stream, arrow

__all__ = ["of_dataset", "readable"]


@dataclass(frozen=True)
class _Slice:
    """Rows of one row group of a file."""

    fragment: Any
    group: int
    begin: int
    end: int
    size: int  # rows of the row group


_last: dict[str, Any] = {}  # the row group that was read last, where parts are slices of it


@dataclass(frozen=True)
class _Rows:
    """Reads slices of Parquet files as one table; texts in categories have the categories of the whole data."""

    slices: tuple[_Slice, ...]
    schema: Any
    categories: Mapping[str, tuple[Any, ...]]
    gaps: tuple[str, ...]  # whole numbers and truth values of which some, somewhere, are missing

    def read(self) -> pd.DataFrame:
        """Return the table."""
        with readable(self.slices[0].fragment.path):
            whole = arrow("lib").concat_tables([self._slice(one) for one in self.slices])
            frame: pd.DataFrame = whole.replace_schema_metadata(self.schema.metadata).to_pandas()
        for name, known in self.categories.items():
            column = frame[name]
            frame[name] = column.cat.set_categories(known, ordered=column.cat.ordered)
        for name in self.gaps:
            if isinstance(frame[name].dtype, np.dtype):
                frame[name] = frame[name].astype(np.float64 if frame[name].dtype.kind in "iuf" else object)
        return frame

    def labels(self, name: str) -> pd.Series:
        """Return one column."""
        with readable(self.slices[0].fragment.path):
            for one in self.slices:
                _check_texts(one)
            groups = [s.fragment.subset(row_group_ids=[s.group]).to_table(columns=[name], schema=self.schema) for s in self.slices]
            tables = [group.slice(s.begin, s.end - s.begin) for group, s in zip(groups, self.slices)]
            column: pd.Series = arrow("lib").concat_tables(tables).column(name).to_pandas()
        return column

    def _slice(self, one: _Slice) -> Any:
        fragment = one.fragment.subset(row_group_ids=[one.group])
        if (one.begin, one.end) == (0, one.size):
            _check_texts(one)
            return fragment.to_table(schema=self.schema)
        key = (one.fragment.path, one.group, _changed(one.fragment.path), self.schema.to_string())
        kept = _last.get("rows")
        if kept is None or kept[0] != key:
            _check_texts(one)
            kept = (key, fragment.to_table(schema=self.schema))
            _last["rows"] = kept
        return kept[1].slice(one.begin, one.end - one.begin)


def _check_texts(one: _Slice) -> None:
    with one.fragment.open() as file:
        check_texts(file, groups_of(footer_of(file)), only=one.group)


def _changed(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:  # not a file of this machine
        return 0


@contextmanager
def readable(where: str) -> Iterator[None]:
    """Turn any error of the reader of Parquet files into one of budge: a file may hold any statistics, metadata and lengths."""
    try:
        yield
    except BudgeError:
        raise
    except FileNotFoundError as error:
        raise StorageError("there is no such file any more", where=where) from error
    except Exception as error:
        raise DataError(f"cannot be read: {type(error).__name__}: {error}"[:500], where=where, remedy="write the file again") from error


def of_dataset(dataset: Any, part: int) -> Stream:
    """Return the stream of a data set of Parquet files."""
    with readable("X"):
        return _of_dataset(dataset, part)


def _of_dataset(dataset: Any, part: int) -> Stream:
    slices: list[_Slice] = []
    try:
        fragments = list(dataset.get_fragments())
    except ValueError as error:
        raise DataError(f"cannot be read in parts: {error}", where="X", remedy="write what is filtered to Parquet files first") from None
    if not all(hasattr(fragment, "row_groups") for fragment in fragments):
        raise DataError("is no data set of Parquet files", where="X", remedy="write it to Parquet files first")
    schema = _joint_schema(dataset, fragments)
    seen = blake2b(schema.remove_metadata().to_string().encode(), digest_size=16)
    told: dict[int, list[Group]] = {}
    for fragment in fragments:
        with fragment.open() as file:
            footer = footer_of(file)
            groups = groups_of(footer)
            if Path(fragment.path).is_file():  # of a distant one, every page would be a request
                check_contents(file, groups)
        seen.update(footer)
        told[id(fragment)] = groups
        for number in [group.id for group in fragment.row_groups]:  # of a filtered data set, some
            many = groups[number].rows
            count = -(-many // part) if many else 0
            cuts = [many * k // count for k in range(count + 1)] if count else [0]
            slices += [_Slice(fragment, number, a, b, many) for a, b in pairwise(cuts)]
    about = (schema.pandas_metadata or {}).get("index_columns", [])
    named = [c for c in about if isinstance(c, str) and c in schema.names]
    if len(named) > 1:
        raise DataError("people have labels of several columns", where="X", got=named, remedy="write the data with one index, or none")
    start = (int(about[0]["start"]), int(about[0]["step"])) if about and isinstance(about[0], dict) and len({s.fragment.path for s in slices}) == 1 else (0, 1)
    categories = _categories(schema, slices)
    gaps = _with_gaps(schema, slices, told)
    readers = [_Rows(group, schema, categories, gaps) for group in _packed(slices, part)]
    return Stream.numbered(
        [(sum(s.end - s.begin for s in r.slices), r) for r in readers], [c for c in schema.names if c not in named], seen.hexdigest(),
        labelled=bool(named), start=start, index=named[0] if named else None,
    )  # fmt: skip


def _joint_schema(dataset: Any, fragments: Sequence[Any]) -> Any:
    """Return the columns of all files: the same names, and types that hold the values of each, as pandas joins tables."""
    pa, found = arrow("lib"), dataset.schema
    for fragment in fragments:
        own = fragment.physical_schema
        keys = list(arrow("dataset").get_partition_keys(fragment.partition_expression))
        twice = [name for name in keys if name in own.names]
        if twice:
            raise DataError("the name of a folder gives a column that the file has, too", where=fragment.path, got=twice[0], remedy="rename one of them")
        odd = sorted({*own.names, *keys} ^ set(found.names))
        if odd:
            raise DataError("the files have different columns", where=fragment.path, got=odd[0], remedy="write them with the same columns")
        types = [own.field(name).type if name in own.names else found.field(name).type for name in found.names]
        if any(a != b for a, b in zip(types, found.types)):
            mine = pa.schema(list(zip(found.names, types)))
            try:
                found = pa.unify_schemas([found.remove_metadata(), mine], promote_options="permissive").with_metadata(dataset.schema.metadata)
            except (pa.ArrowException, TypeError) as error:
                raise DataError(f"the files have different types: {error}", where=fragment.path, remedy="write them with the same types") from None
    return found


def _with_gaps(schema: Any, slices: Sequence[_Slice], told: Mapping[int, Sequence[Group]]) -> tuple[str, ...]:
    """Return the columns of whole numbers and truth values in which something is missing anywhere: pandas reads these as another type."""
    types = arrow("types")
    whole = [f.name for f in schema if types.is_integer(f.type) or types.is_boolean(f.type)]
    found = set[str]()
    for fragment, group in {(id(s.fragment), s.group): (s.fragment, s.group) for s in slices}.values():
        columns = {column.path: column.missing for column in told[id(fragment)][group].columns}
        for name in whole:
            if name in found or name not in columns:
                continue
            missing = columns[name]
            if missing is None:
                missing = fragment.subset(row_group_ids=[group]).to_table(columns=[name], schema=schema).column(name).null_count
            if missing:
                found.add(name)
    return tuple(name for name in whole if name in found)


def _packed(slices: Sequence[_Slice], part: int) -> Iterator[tuple[_Slice, ...]]:
    """Yield slices together that make up a part at most."""
    held, many = list[_Slice](), 0
    for one in slices:
        if held and many + one.end - one.begin > part:
            yield tuple(held)
            held, many = [], 0
        held.append(one)
        many += one.end - one.begin
    if held:
        yield tuple(held)


def _categories(schema: Any, slices: Sequence[_Slice]) -> dict[str, tuple[Any, ...]]:
    """Return all categories of each column that has some: a row group knows only its own."""
    found: dict[str, dict[Any, None]] = {f.name: {} for f in schema if "dictionary" in str(f.type)}
    if found:
        for fragment, group in {(id(s.fragment), s.group): (s.fragment, s.group) for s in slices}.values():
            rows = fragment.subset(row_group_ids=[group]).to_table(columns=list(found), schema=schema)
            for name, seen in found.items():
                for chunk in rows.column(name).chunks:
                    seen |= dict.fromkeys(chunk.dictionary.to_pylist())
    return {name: tuple(seen) for name, seen in found.items()}
