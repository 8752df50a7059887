"""People as a stream: a Parquet data set, a CSV file, a Dask DataFrame, or an iterator of tables, read part by part by whoever works on them.

A part is a small value that can be sent anywhere and read there. Which people it holds depends on the data and on the size of a part alone, so that a run
that was started on one machine goes on with the same parts on another.
"""

from __future__ import annotations

import glob
import io
import re
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from budge.errors import DataError, InputError, MissingDependencyError, StorageError, nearest
from budge.frames import table
from budge.spec.tables import as_numbers, header_of, parse_csv

__all__ = ["PART", "Part", "People", "Reader", "is_stream"]

PART = 100_000  # people of a part, at most
STEP = 1 << 22  # bytes of a CSV file that are looked at together
MOST_LABELS = 10**8  # people whose labels are compared with each other
PARQUET, CSV = (".parquet", ".pq"), (".csv", ".tsv")


class Reader(Protocol):
    """Reads the people of a part, labels included where the data has them."""

    def read(self) -> pd.DataFrame: ...


@dataclass(frozen=True)
class Part:
    """Some people who follow each other: the position of the first, their number, and how they are read."""

    first: int
    rows: int
    reader: Reader = field(repr=False)


@dataclass(frozen=True)
class People:
    """People who are read part by part.

    Parameters
    ----------
    parts
        The parts, in order.
    columns
        The columns of the data.
    digest
        A digest of what is known without reading everybody: of Parquet files their sizes and their statistics by column.
    id
        The column that labels people; it is not given to the model. Unless given, the labels are those that the data has, or positions.
    drop
        Further columns that are not given to the model.

    Examples
    --------
    >>> import pandas as pd
    >>> people = People.of(iter([pd.DataFrame({"age": [30, 40]}), pd.DataFrame({"age": [50]})]))
    >>> len(people), [people.read(part)["age"].tolist() for part in people.parts]
    (3, [[30, 40, 50]])
    """

    parts: tuple[Part, ...] = field(repr=False)
    columns: tuple[str, ...]
    digest: str
    id: str | None = None
    drop: tuple[str, ...] = ()
    labelled: bool = False  # what is read has labels of its own
    index: str | None = None  # the column from which they come
    start: tuple[int, int] = (0, 1)  # first label and step, where labels are positions
    place: str | None = None  # the folder that was given
    keep: Any = field(default=None, repr=False, compare=False)  # lives as long as the people do: a folder of tables that came once

    @classmethod
    def of(cls, X: Any, *, id: str | None = None, drop: Iterable[str] = (), part: int = PART) -> People:
        """Return the people of a path, a pattern of paths, a `pyarrow.dataset`, a Dask DataFrame, or an iterator of tables.

        Parameters
        ----------
        X
            A folder, file or pattern (``"people/*.parquet"``) of Parquet files, a CSV file, several paths, a data set, a Dask DataFrame, or an iterator.
        id, drop
            The column that labels people, and columns that are not for the model.
        part
            People of a part, at most.
        """
        if isinstance(part, bool) or not isinstance(part, int | np.integer) or part < 1:
            raise InputError("must be a whole number of at least 1", where="part", got=part)
        if isinstance(X, People):
            found = X
        elif isinstance(X, str | Path):
            found = _of_path(X, int(part))
        elif isinstance(X, list | tuple) and X and all(isinstance(p, str | Path) for p in X):
            found = _of_files([str(p) for p in X], int(part))
        elif _module(X) == "pyarrow" and hasattr(X, "get_fragments"):
            found = _of_dataset(X, int(part))
        elif _module(X).startswith("dask") and hasattr(X, "map_partitions"):
            found = _of_dask(X)
        elif isinstance(X, Iterator):
            found = _of_tables(X, int(part))
        else:
            remedy = "give a path, a pyarrow.dataset, a Dask DataFrame or an iterator of tables"
            raise InputError("is no stream of people", where="X", got=type(X).__name__, remedy=remedy)
        if not len(found):
            raise DataError("there are no people", where="X", got=str(X) if isinstance(X, str | Path) else type(X).__name__)
        gone = [c for c in ([id] if id is not None else []) + list(drop) if c not in found.columns]
        if gone:
            raise InputError("no such column", where="X", got=gone[0], remedy=nearest(gone[0], found.columns))
        found = replace(found, id=id if id is not None else found.id, drop=tuple(drop) or found.drop)
        if found is not X:
            found._check_labels()
        return found

    def _check_labels(self) -> None:
        """Raise an error where two people have one label: they could not be told apart. Of more than 10^8 people this is not looked at."""
        name = self.id if self.id is not None else self.index
        if name is None or len(self) > MOST_LABELS:
            return
        seen = np.concatenate([pd.util.hash_array(part.reader.labels(name).to_numpy(dtype=object)) for part in self.parts])  # type: ignore[attr-defined]
        order = np.argsort(seen, kind="stable")
        twice = np.flatnonzero(seen[order][1:] == seen[order][:-1])
        if len(twice):
            place = int(order[twice[0] + 1])
            part = self.parts[self.part_of(place)]
            label = part.reader.labels(name).iloc[place - part.first]  # type: ignore[attr-defined]
            raise DataError("a label stands for two people", where="X", got=label, remedy="give a column in which everybody differs, or none")

    def __len__(self) -> int:
        return self.parts[-1].first + self.parts[-1].rows if self.parts else 0

    def read(self, part: Part) -> pd.DataFrame:
        """Return the people of a part with all their columns, labelled."""
        frame = part.reader.read()
        if len(frame) != part.rows:
            raise DataError(f"{part.rows:,} people were there, {len(frame):,} are", where="X", remedy="the data has changed since: start again")
        if self.id is not None:
            if frame[self.id].isna().any():
                raise DataError("somebody has no label", where=f"column {self.id}", remedy="fill the column, or leave id out")
            return frame.set_index(self.id)
        if not self.labelled:
            first, step = self.start
            frame.index = pd.RangeIndex(first + step * part.first, first + step * (part.first + part.rows), step)
        return frame

    def for_model(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns that the model is given."""
        return frame.drop(columns=list(self.drop)) if self.drop else frame

    def part_of(self, position: int) -> int:
        """Return the number of the part in which a person stands."""
        return int(np.searchsorted(self._firsts, position, side="right")) - 1

    @cached_property
    def _firsts(self) -> list[int]:
        return [part.first for part in self.parts]


def is_stream(X: Any) -> bool:
    """Return whether people come as a stream: not as a table in memory."""
    if isinstance(X, People | str | Path | Iterator):
        return True
    return (_module(X) == "pyarrow" and hasattr(X, "get_fragments")) or (_module(X).startswith("dask") and hasattr(X, "map_partitions"))


def _module(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def _arrow(name: str) -> Any:
    """Return a module of pyarrow."""
    try:
        return __import__(f"pyarrow.{name}", fromlist=[name])
    except ImportError as error:
        raise MissingDependencyError("streams of people need pyarrow", where="X", remedy="pip install 'budge[parquet]'") from error


# -- Parquet ------------------------------------------------------------------------------------------------------------


def _of_path(path: str | Path, part: int) -> People:
    text = str(path)
    if Path(text).is_dir():
        found = sorted(str(p) for p in Path(text).rglob("*") if p.suffix.lower() in PARQUET and not p.name.startswith((".", "_")))
        if not found:
            raise StorageError("there are no Parquet files in this folder", where=text, remedy="look at its name")
        return _of_files(found, part, base=text)
    if re.search(r"[*?\[]", text) and not Path(text).exists():
        found = sorted(glob.glob(text, recursive=True))
        if not found:
            raise StorageError("no file has such a name", where=text, remedy="look at the pattern; quote it on the shell")
        return _of_files(found, part)
    if not Path(text).exists():
        raise StorageError("there is no such file", where=text, remedy="look at its name and folder")
    return _of_files([text], part)


def _of_files(paths: Sequence[str], part: int, base: str | None = None) -> People:
    kinds = {Path(p).suffix.lower() for p in paths}
    if kinds <= set(PARQUET):
        dataset, hive = _arrow("dataset"), {} if base is None else {"partitioning": "hive", "partition_base_dir": base}
        try:
            return replace(_of_dataset(dataset.dataset(list(paths), format="parquet", **hive), part), place=base)
        except (OSError, ValueError) as error:
            raise DataError(f"cannot be read: {error}", where=paths[0]) from error
    if len(paths) == 1 and kinds <= set(CSV):
        return _of_csv(Path(paths[0]), part)
    remedy = "give Parquet files, or one CSV file (unpacked)"
    raise DataError("cannot be read in parts", where=paths[0], got=", ".join(sorted(kinds)) or "no ending", remedy=remedy)


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
        pa = _arrow("lib")
        try:
            whole = pa.concat_tables([self._slice(one) for one in self.slices])
            frame: pd.DataFrame = whole.replace_schema_metadata(self.schema.metadata).to_pandas()
        except FileNotFoundError as error:
            raise StorageError("there is no such file any more", where=self.slices[0].fragment.path) from error
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"cannot be read: {error}", where=self.slices[0].fragment.path) from error
        for name, known in self.categories.items():
            column = frame[name]
            frame[name] = column.cat.set_categories(known, ordered=column.cat.ordered)
        for name in self.gaps:
            if isinstance(frame[name].dtype, np.dtype):
                frame[name] = frame[name].astype(np.float64 if frame[name].dtype.kind in "iuf" else object)
        return frame

    def labels(self, name: str) -> pd.Series:
        """Return one column."""
        tables = [s.fragment.subset(row_group_ids=[s.group]).to_table(columns=[name], schema=self.schema).slice(s.begin, s.end - s.begin) for s in self.slices]
        column: pd.Series = _arrow("lib").concat_tables(tables).column(name).to_pandas()
        return column

    def _slice(self, one: _Slice) -> Any:
        fragment = one.fragment.subset(row_group_ids=[one.group])
        if (one.begin, one.end) == (0, one.size):
            return fragment.to_table(schema=self.schema)
        key = (one.fragment.path, one.group, _changed(one.fragment.path), self.schema.to_string())
        kept = _last.get("rows")
        if kept is None or kept[0] != key:
            kept = (key, fragment.to_table(schema=self.schema))
            _last["rows"] = kept
        return kept[1].slice(one.begin, one.end - one.begin)


def _changed(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:  # not a file of this machine
        return 0


def _of_dataset(dataset: Any, part: int) -> People:
    slices: list[_Slice] = []
    try:
        fragments = list(dataset.get_fragments())
    except ValueError as error:
        raise DataError(f"cannot be read in parts: {error}", where="X", remedy="write what is filtered to Parquet files first") from None
    if not all(hasattr(fragment, "row_groups") for fragment in fragments):
        raise DataError("is no data set of Parquet files", where="X", remedy="write it to Parquet files first")
    schema = _joint_schema(dataset, fragments)
    seen = blake2b(schema.remove_metadata().to_string().encode(), digest_size=16)
    for fragment in fragments:
        for row_group in fragment.row_groups:
            many = row_group.num_rows
            seen.update(f"{many} {row_group.total_byte_size} {_told(row_group)};".encode())
            count = -(-many // part) if many else 0
            cuts = [many * k // count for k in range(count + 1)] if count else [0]
            slices += [_Slice(fragment, row_group.id, a, b, many) for a, b in pairwise(cuts)]
    about = (schema.pandas_metadata or {}).get("index_columns", [])
    named = [c for c in about if isinstance(c, str) and c in schema.names]
    if len(named) > 1:
        raise DataError("people have labels of several columns", where="X", got=named, remedy="write the data with one index, or none")
    start = (int(about[0]["start"]), int(about[0]["step"])) if about and isinstance(about[0], dict) and len({s.fragment.path for s in slices}) == 1 else (0, 1)
    categories = _categories(schema, slices)
    gaps = _with_gaps(schema, slices)
    readers = [_Rows(group, schema, categories, gaps) for group in _packed(slices, part)]
    return _numbered(
        [(sum(s.end - s.begin for s in r.slices), r) for r in readers], [c for c in schema.names if c not in named], seen.hexdigest(),
        labelled=bool(named), start=start, index=named[0] if named else None,
    )  # fmt: skip


def _joint_schema(dataset: Any, fragments: Sequence[Any]) -> Any:
    """Return the columns of all files: the same names, and types that hold the values of each, as pandas joins tables."""
    pa, found = _arrow("lib"), dataset.schema
    for fragment in fragments:
        own = fragment.physical_schema
        keys = [name for name in dataset.schema.names if f"({name} ==" in str(fragment.partition_expression)]
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


def _with_gaps(schema: Any, slices: Sequence[_Slice]) -> tuple[str, ...]:
    """Return the columns of whole numbers and truth values in which something is missing anywhere: pandas reads these as another type."""
    types = _arrow("types")
    whole = [f.name for f in schema if types.is_integer(f.type) or types.is_boolean(f.type)]
    found = set[str]()
    for fragment, group in {(id(s.fragment), s.group): (s.fragment, s.group) for s in slices}.values():
        row_group = fragment.metadata.row_group(group)
        told = {row_group.column(j).path_in_schema: row_group.column(j).statistics for j in range(row_group.num_columns)}
        for name in whole:
            if name in found or name not in told:
                continue
            statistics = told[name]
            if statistics is not None and statistics.has_null_count:
                missing = statistics.null_count
            else:
                missing = fragment.subset(row_group_ids=[group]).to_table(columns=[name], schema=schema).column(name).null_count
            if missing:
                found.add(name)
    return tuple(name for name in whole if name in found)


def _told(row_group: Any) -> str:
    """Return what a file tells of a row group without reading it: the least and the largest value of each column."""
    return repr(sorted((row_group.statistics or {}).items()))


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


def _numbered(readers: Iterable[tuple[int, Reader]], columns: Iterable[str], digest: str, **more: Any) -> People:
    parts, first = [], 0
    for rows, reader in readers:
        if rows:
            parts.append(Part(first, rows, reader))
            first += rows
    return People(tuple(parts), tuple(map(str, columns)), digest, **more)


# -- CSV ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lines:
    """Reads the lines of a CSV file between two bytes; the types of the columns are those of the whole file."""

    path: Path
    begin: int
    end: int
    header: tuple[str, ...]
    types: Mapping[str, str] = field(default_factory=dict)

    def raw(self) -> pd.DataFrame:
        """Return the lines as they are read without knowing the rest of the file, but for columns that are known to be texts."""
        with self.path.open("rb") as file:
            file.seek(self.begin)
            body = file.read(self.end - self.begin)
        texts = {name: str for name, kind in self.types.items() if kind == "text"}
        return parse_csv(io.BytesIO(body), self.path, header=None, names=list(self.header), index_col=False, dtype=texts)

    def labels(self, name: str) -> pd.Series:
        """Return one column."""
        return self.read().reset_index(names="" if self.header[0] == "" else None)[name]

    def read(self) -> pd.DataFrame:
        """Return the lines as a table."""
        frame = self.raw()
        for name, kind in self.types.items():
            if kind == "text":
                continue
            column = frame[name] if frame[name].dtype.kind in "biuf" else as_numbers(frame[name], all_missing=True)
            frame[name] = column.astype(np.dtype(kind))
        if self.header[0] == "":
            frame = frame.set_index("")
            frame.index.name = None
        return frame


def _of_csv(path: Path, part: int) -> People:
    header = tuple(header_of(path))
    labelled = header[0] == "" and len(header) > 1
    cuts = _line_cuts(path, part)
    readers = [_Lines(path, a, b, header) for a, b in pairwise(cuts)]
    kinds: dict[str, set[str]] = {name: set() for name in header}
    rows, seen = [], blake2b(repr(header).encode(), digest_size=16)
    for reader in readers:
        frame = reader.raw()
        rows.append(len(frame))
        if not len(frame):  # blank lines
            continue
        seen.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
        for name in header:
            kinds[name].add(_kind(frame[name]))
    types = {name: _joint(name, found) for name, found in kinds.items()}
    return _numbered(
        [(many, replace(r, types=types)) for many, r in zip(rows, readers)], [c for c in header if c], seen.hexdigest(), labelled=labelled,
        index="" if labelled else None,
    )  # fmt: skip


def _line_cuts(path: Path, part: int) -> list[int]:
    """Return the bytes at which parts begin, and the end of the file: every so many lines. A line may go on inside quotes."""
    cuts: list[int] = []
    odd, lines, at = 0, 0, 0
    with path.open("rb") as file:
        while block := file.read(STEP):
            bytes_ = np.frombuffer(block, dtype=np.uint8)
            inside = (np.cumsum(bytes_ == ord('"')) + odd) & 1
            ends = np.flatnonzero((bytes_ == ord("\n")) & (inside == 0))
            odd = int(inside[-1])
            if not cuts and len(ends):
                cuts.append(at + int(ends[0]) + 1)  # past the header
                ends = ends[1:]
            # The part after `lines` whole lines ends with the line that makes it full.
            cuts += (at + ends[part - 1 - lines :: part] + 1).tolist() if len(ends) > part - 1 - lines else []
            lines = (lines + len(ends)) % part
            at += len(block)
    if odd:
        raise DataError("a quotation is not closed", where=path.name, remedy="a quotation mark within quotes is written twice")
    return sorted({*(cuts or [at]), at}) if at else [0]


def _kind(column: pd.Series) -> str:
    """Return what a column of some lines holds: i, u, f, b (as in NumPy), truth with gaps, text, or nothing."""
    known = column.dropna()
    if not len(known):
        return ""
    if column.dtype.kind in "iufb":
        return column.dtype.kind
    if all(isinstance(v, bool | np.bool_) for v in known):
        return "truth"
    numbers = as_numbers(column, all_missing=True)
    return "text" if numbers.dtype.kind not in "iuf" else "f" if numbers.notna().any() else "sign"


def _joint(name: str, kinds: set[str]) -> str:
    """Return the type of a column from what its parts hold."""
    found = kinds - {"", "sign"}
    if not found:
        return "text" if "sign" in kinds else "float64"
    if found <= {"i", "u", "f"}:
        if {"i", "u"} <= found:
            raise DataError("whole numbers beyond 64 bits beside others", where=f"column {name}", remedy="write them as texts")
        gaps = kinds != found
        return "float64" if gaps or "f" in found else "uint64" if found == {"u"} else "int64"
    if found <= {"b", "truth"} and "sign" not in kinds:
        return "bool" if kinds == {"b"} else "float64"
    return "text"


# -- tables that come once, and Dask ------------------------------------------------------------------------------------


def _of_tables(tables: Iterator[Any], part: int) -> People:
    """Keep tables that come once in a folder, which goes with the people; each must have the columns and types of the first."""
    pa, parquet = _arrow("lib"), _arrow("parquet")
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
    found = _of_files([str(path)], part)
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


def _of_dask(X: Any) -> People:
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
    return _numbered(readers, X.columns, seen.hexdigest(), labelled=labelled)
