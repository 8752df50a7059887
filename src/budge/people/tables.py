"""Paths, tables that come once, and Dask DataFrames, as streams."""

from __future__ import annotations

import glob
import re
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pandas as pd

from budge.errors import DataError, StorageError
from budge.frames import table
from budge.people.lines import of_csv
from budge.people.parquet import of_dataset, readable
from budge.people.stream import Stream, arrow
from budge.tables import How, form_of, is_address, kind_of, load, open_table, state

__all__ = ["of_dask", "of_files", "of_path", "of_tables"]

PARQUET = (".parquet", ".pq")


def of_path(path: str | Path, part: int, how: How, label: str | None = None) -> Stream:
    """Return the stream of a folder, a pattern of files, a file, or a table of a database; `label`: the column that names the people."""
    text = str(path)
    if is_address(text):
        return _of_frame(load(text, how, label), part)
    if Path(text).is_dir():
        found = sorted(str(p) for p in Path(text).rglob("*") if p.suffix.lower() in PARQUET and not p.name.startswith((".", "_")))
        if not found:
            raise StorageError("there are no Parquet files in this folder", where=text, remedy="look at its name")
        return of_files(found, part, how, base=text)
    if re.search(r"[*?\[]", text) and not Path(text).exists():
        found = sorted(glob.glob(text, recursive=True))
        if not found:
            raise StorageError("no file has such a name", where=text, remedy="look at the pattern; quote it on the shell")
        return of_files(found, part, how, label=label)
    if not Path(text).exists():
        raise StorageError("there is no such file", where=text, remedy="look at its name and folder")
    return of_files([text], part, how, label=label)


def of_files(paths: Sequence[str], part: int, how: How, base: str | None = None, label: str | None = None) -> Stream:
    """Return the stream of Parquet files, or of one file of another kind; `base` is the folder below which names of folders give columns."""
    kinds = {Path(p).suffix.lower() for p in paths}
    if kinds <= set(PARQUET) or (len(paths) == 1 and _kind(paths[0]) == "parquet"):
        how.check_kind("parquet", Path(paths[0]).name)
        dataset, hive = arrow("dataset"), {} if base is None else {"partitioning": "hive", "partition_base_dir": base}
        with readable(paths[0]):
            return replace(of_dataset(dataset.dataset(list(paths), format="parquet", **hive), part), place=base)
    if len(paths) > 1:
        got = ", ".join(sorted(kinds))
        raise DataError("several files must be Parquet files", where=paths[0], got=got, remedy="give Parquet files, or one file of another kind")
    path = Path(paths[0])
    if _kind(path) == "text":
        how.check_kind("text", path.name)
        with open_table(path) as file:
            form, notes = form_of(file, path.name, how, label)
        if form.in_bytes:
            stream, more = of_csv(path, part, form)
            state(path.name, notes + more)
            return stream
    return _of_frame(load(path, how, label), part)


def _kind(path: str | Path) -> str:
    with open_table(Path(path)) as file:
        return kind_of(file, Path(path).name)


@dataclass(frozen=True)
class _Slice:
    """Holds the people of a part: those of a file that cannot be read in parts."""

    rows: pd.DataFrame

    def read(self) -> pd.DataFrame:
        """Return the table."""
        return self.rows.copy(deep=False)

    def labels(self, name: str) -> pd.Series:
        """Return one column."""
        return self.rows.reset_index(names="")[name] if name not in self.rows.columns else self.rows[name].reset_index(drop=True)


def _of_frame(frame: pd.DataFrame, part: int) -> Stream:
    """Return the stream of a table that was read as a whole."""
    labelled = not isinstance(frame.index, pd.RangeIndex)
    seen = blake2b(repr(list(map(str, frame.columns))).encode(), digest_size=16)
    seen.update(pd.util.hash_pandas_object(frame, index=True).to_numpy().tobytes())
    readers = [(len(some), _Slice(some)) for some in (frame.iloc[k : k + part] for k in range(0, len(frame), part))]
    return Stream.numbered(readers, frame.columns, seen.hexdigest(), labelled=labelled, index="" if labelled else None)


def of_tables(tables: Iterator[Any], part: int) -> Stream:
    """Keep tables that come once in a folder, which goes with the people; each must have the columns and types of the first."""
    pa, parquet = arrow("lib"), arrow("parquet")
    place = tempfile.TemporaryDirectory(prefix="budge-people-")
    path = Path(place.name) / "people.parquet"
    writer, schema, plain, rows_so_far = None, None, False, 0
    try:
        for number, given in enumerate(tables):
            frame = table(given)
            first = frame.index.start if isinstance(frame.index, pd.RangeIndex) and frame.index.step == 1 and frame.index.name is None else None
            if number == 0:
                plain = first == 0
            elif plain and first not in (0, rows_so_far):
                raise DataError(f"table {number} labels its people, the first does not", where="X", remedy="label all of them, or none")
            rows_so_far += len(frame)
            try:
                rows = pa.Table.from_pandas(frame, preserve_index=not plain)
                if writer is None or schema is None:
                    schema = rows.schema
                    writer = parquet.ParquetWriter(path, schema)
                writer.write_table(rows.select(schema.names).cast(schema), row_group_size=part)
            except (pa.ArrowException, KeyError, ValueError) as error:
                raise DataError(f"table {number} differs from the first, or cannot be kept: {error}", where="X") from None
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise DataError("there are no people", where="X", got="an iterator without a table")
    found = of_files([str(path)], part, How())
    if plain:
        found = replace(found, start=(0, 1))
    return replace(found, keep=_Held(place))


class _Held:
    """Removes a folder when nobody needs it any more; does not travel."""

    def __init__(self, place: tempfile.TemporaryDirectory[str] | None):
        if place is not None:
            weakref.finalize(self, place.cleanup)

    def __reduce__(self) -> Any:
        return _Held, (None,)


@dataclass(frozen=True)
class _Partition:
    """Reads one partition of a Dask DataFrame where the part is worked on."""

    rows: Any

    def read(self) -> pd.DataFrame:
        """Return the table."""
        frame: pd.DataFrame = self.rows.compute(scheduler="synchronous")
        return frame.copy(deep=False)

    def labels(self, name: str) -> pd.Series:
        """Return one column."""
        return self.read()[name]


def of_dask(X: Any) -> Stream:
    """Return the stream of a Dask DataFrame, a part for each partition."""
    open_ = [str(c) for c, kind in X.dtypes.items() if isinstance(kind, pd.CategoricalDtype) and not X[c].cat.known]
    if open_:
        raise DataError("the categories are not known of the whole", where=f"column {open_[0]}", remedy="call .categorize() first")
    try:
        _Partition(X.partitions[0]).read()
    except Exception as error:  # what was persisted is held by the workers of one cluster
        remedy = "give it as it was before persist()"
        raise DataError(f"a partition cannot be read by itself: {type(error).__name__}: {error}", where="X", remedy=remedy) from error
    rows = X.map_partitions(len).compute()
    seen = blake2b(repr([str(X._name), list(map(int, rows))]).encode(), digest_size=16)
    readers = [(int(many), _Partition(X.partitions[k])) for k, many in enumerate(rows)]
    labelled = bool(X.known_divisions) or X.index.name is not None or X.index.dtype.kind not in "iu"
    return Stream.numbered(readers, X.columns, seen.hexdigest(), labelled=labelled)
